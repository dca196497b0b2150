"""An agent that reads documents through a tool, every model call of it under one budget.

The tool's answer goes to the model; its evidence stays beside the message as an artifact. The
middleware stands last in the list, so that it wraps the model that is really called.
"""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage

from harness_integrations.langchain import (
    DocumentReader,
    Governor,
    ReaderRetriever,
    Trace,
    create_reader_tool,
)
from harness_integrations.langchain.middleware import GovernorMiddleware

NOTES = [
    Document("The warranty covers two years.", id="warranty", metadata={"source": "manual.pdf"}),
    Document("Batteries are not covered.", id="batteries", metadata={"source": "manual.pdf"}),
]


class HouseModel(FakeMessagesListChatModel):
    """Stands for your chat model; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take tools as they are: the replies are written already."""
        return self.bind(tools=list(tools))


def main() -> None:
    """Let the agent ask its tool, then answer."""
    trace = Trace(Governor(max_calls=5))
    reading = HouseModel(responses=[AIMessage("Two years [chunk 1].")])
    tool = create_reader_tool(
        DocumentReader(reading, "stuff", trace=trace),
        ReaderRetriever(docs=NOTES),
        name="read_manual",
        description="Answers questions about the manual.",
    )
    call = {"name": "read_manual", "args": {"question": "How long is the warranty?"}, "id": "1"}
    acting = HouseModel(
        responses=[AIMessage("", tool_calls=[call]), AIMessage("The warranty covers two years.")]
    )
    agent: Any = create_agent(
        acting, [tool], middleware=[GovernorMiddleware(trace=trace, exit_behavior="end")]
    )
    state = agent.invoke({"messages": [("human", "How long is the warranty?")]})
    read = next(one for one in state["messages"] if isinstance(one, ToolMessage))
    print(f"Tool      {read.text}")
    print(f"Evidence  {[row['document_id'] for row in read.artifact['citations']]}")
    print(f"Answer    {state['messages'][-1].text}")
    print(f"Requests  {trace.calls}: {', '.join(step.label for step in trace.requests)}")


if __name__ == "__main__":
    main()
