"""An LCEL pipeline: retriever, reader and parser joined by ``|``, answered word by word."""

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnablePassthrough

from harness_integrations.langchain import DocumentReader, Governor, ReaderRetriever, governed_run

NOTES = [
    Document("Ann keeps three cats.", id="ann"),
    Document("Bob keeps two dogs and a cat.", id="bob"),
    Document("The weather was fine all week.", id="weather"),
]


class HouseModel(FakeListChatModel):
    """Stands for your chat model; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"


def main() -> None:
    """Build the pipeline once, run it under a budget of this request alone."""
    llm = HouseModel(responses=["Bob keeps two dogs and a cat."])
    chain = {
        "context": ReaderRetriever(docs=NOTES, k=2),
        "question": RunnablePassthrough(),
    } | DocumentReader(llm, "stuff")

    with governed_run(governor=Governor(max_cost_usd=0.01)) as run:
        pieces = list(chain.stream("Who keeps dogs?"))
    print(f"Answer  {''.join(pieces)}")
    print(f"Pieces  {len(pieces) > 1}")
    print(f"Steps   {', '.join(step.label for step in run.requests)}")
    print(f"Under   {run.spent_usd < 0.01}")


if __name__ == "__main__":
    main()
