"""Questions to a PDF, answered with quotations that were checked, each at its place.

``ExtractiveClient`` stands in for an LLM: it needs no key and copies what it finds. Give a
LlamaIndex LLM instead and nothing else changes.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from llama_index.core import Document

from harness_core import ExtractiveClient, example_document, ingest
from harness_integrations.llama_index import ReaderQueryEngine, verify_response_citations

QUESTION = "How many passengers can the Dunlin carry?"


def pages(path: Path) -> Iterator[Document]:
    """The pages of a PDF as LlamaIndex's documents."""
    for page, blocks in groupby(ingest(path).blocks, key=lambda block: block.page):
        text = "\n\n".join(block.text for block in blocks)
        yield Document(text=text, id_=f"page-{page}", metadata={"page_label": str(page)})


def main() -> None:
    """Preview, ask, check."""
    documents = list(pages(Path(example_document("pdf"))))
    engine = ReaderQueryEngine.from_documents(documents, "skim", ExtractiveClient())
    estimate = engine.preview(QUESTION)
    print(f"Preview   {estimate.calls} requests over {estimate.chunks} nodes, ${estimate.usd}")
    response: Any = engine.query(QUESTION)  # a ReaderResponse
    print(f"Answer    {response}")
    for one in response.citations[:2]:
        place = f"{one.document_id} from {one.document_start} to {one.document_end}"
        print(f"Quotes    {one.text[:60]!r} ({place}, verified: {one.verified})")
    checks = verify_response_citations(response, raise_on_failure=True)
    print(f"Checked   {len(checks)} quotations, all there: {all(one.ok for one in checks)}")


if __name__ == "__main__":
    main()
