"""A reader where ``create_stuff_documents_chain`` stands today."""

from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from harness_core.reading.spec import ReadSpec
from harness_integrations.langchain.reader import DocumentReader


def create_reader_chain(
    llm: Runnable[Any, Any],
    reader: str = "map_reduce",
    *,
    instructions: str | None = None,
    document_prompt: BasePromptTemplate[str] | None = None,
    spec: Any = None,
    **fields: Any,
) -> DocumentReader:
    """A reader for ``create_retrieval_chain(retriever, ...)``: takes ``input`` and ``context``.

    ``instructions`` (style, language, format) go with the answering requests; they cannot loosen
    the reader's rules. ``document_prompt`` forms what a prompt shows of each document. Further
    keywords are ``DocumentReader``'s.
    """
    chosen = ReadSpec.of(spec)
    if instructions is not None:
        chosen = chosen.having(instructions=instructions)
    name = fields.pop("name", "reader_chain")
    return DocumentReader(
        llm, reader, spec=chosen, document_prompt=document_prompt, name=name, **fields
    )
