"""A LangGraph graph whose parallel branches share one budget.

Two readers run side by side; whatever they ask for together, six requests is all they get.
"""

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from harness_integrations.langchain import DocumentReader, Governor, Trace

PARTS = [Document(f"Part {number}: {number} ships came in.") for number in range(1, 5)]


class State(TypedDict, total=False):
    """What the graph passes on."""

    question: str
    documents: list[Document]
    by_part: str
    at_once: str
    details: dict[str, Any]


class HouseModel(FakeListChatModel):
    """Stands for your chat model; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"


def main() -> None:
    """Run both branches on one trace, then once more: the budget is used up."""
    trace = Trace(Governor(max_calls=6))
    llm = HouseModel(responses=["Ten ships came in."])
    graph = StateGraph(State)
    graph.add_node("each", DocumentReader(llm, trace=trace).as_node(answer="by_part"))
    whole = DocumentReader(llm, "stuff", trace=trace)
    graph.add_node("all", whole.as_node(answer="at_once", full="details"))
    for node in ("each", "all"):
        graph.add_edge(START, node)
        graph.add_edge(node, END)
    app = graph.compile()

    asked: State = {"question": "How many ships?", "documents": PARTS}
    state = app.invoke(asked)
    print(f"By part  {state['by_part']}")
    print(f"At once  {state['at_once']}")
    print(f"Requests {trace.calls} of 6")
    again = app.invoke(asked)
    print(f"Again    {again['at_once']}, stopped by {again['details']['stop_reason']}")
    print(f"Requests {trace.calls} of 6")


if __name__ == "__main__":
    main()
