"""A RAG chain with a governed reader where ``create_stuff_documents_chain`` stood.

The chain keeps its shape: ``create_retrieval_chain`` fills ``context``, the reader answers. What is
new is a limit that holds, and an output that says what the answer rests on.
"""

from langchain_classic.chains.retrieval import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from harness_integrations.langchain import Governor, ReaderRetriever, Trace, create_reader_chain

NOTES = [
    Document("The harbour bridge was opened in 1932.", id="bridge", metadata={"page": 3}),
    Document("The ferry stopped running two years later.", id="ferry", metadata={"page": 4}),
    Document("The lighthouse was built in 1854.", id="light", metadata={"page": 9}),
]


class HouseModel(FakeListChatModel):
    """Stands for your chat model; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"


def main() -> None:
    """Ask, show what it rests on and what it cost; then ask with an empty budget."""
    trace = Trace(Governor(max_cost_usd=0.05, max_calls=20))
    llm = HouseModel(responses=["It was opened in 1932 [chunk 1]."])
    reader = create_reader_chain(llm, "stuff", trace=trace, output="full")
    chain = create_retrieval_chain(ReaderRetriever(docs=NOTES, k=2), reader)

    answer = chain.invoke({"input": "When was the bridge opened?"})["answer"]
    print(f"Answer    {answer['answer']}")
    for citation in answer["citations"]:
        print(f"Rests on  {citation['document_id']}, page {citation['page']}")
    print(f"Cost      {answer['spend']['calls']} request(s), limit held: {trace.spent_usd < 0.05}")

    broke = create_reader_chain(llm, "stuff", governor=Governor(max_calls=0), output="full")
    refused = create_retrieval_chain(ReaderRetriever(docs=NOTES, k=2), broke)
    partial = refused.invoke({"input": "When was the bridge opened?"})["answer"]
    print(f"No budget {partial['stop_reason']}: partial={partial['partial']}")


if __name__ == "__main__":
    main()
