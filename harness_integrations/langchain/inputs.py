"""What a chain hands to a reader: a question and documents, under any of the usual names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from harness_core.documents.types import Chunks
from harness_core.errors import BadSettingError
from harness_core.models.budgets import budget
from harness_core.reading.spec import ReadSpec
from harness_core.segmenting.chunks import capped, new_chunks
from harness_integrations.shared.metadata import page_of

QUESTION_KEYS = ("question", "input", "query")
DOCUMENT_KEYS = ("context", "documents", "docs", "input_documents")
PROMPT_ROOM = 1000
"""Tokens kept free for the instructions of a request when one document fills the window."""


def read_input(given: Any, question_key: str | None, documents_key: str | None) -> tuple[str, Any]:
    """The question and the documents of an input; named keys win over the usual ones.

    Raises:
        BadSettingError: an input without one of them; the message lists the keys there are.
    """
    known = as_state(given)
    return (
        question_text(_value(known, question_key, QUESTION_KEYS, "question")),
        _value(known, documents_key, DOCUMENT_KEYS, "documents"),
    )


def as_state(given: Any) -> Mapping[str, Any]:
    """A mapping, a dataclass or a pydantic object (a graph's state) by its names.

    Raises:
        BadSettingError: anything else.
    """
    if isinstance(given, Mapping):
        return given
    if isinstance(given, BaseModel) or (is_dataclass(given) and not isinstance(given, type)):
        names = type(given).model_fields if isinstance(given, BaseModel) else vars(given)
        return {name: getattr(given, name) for name in names}
    raise BadSettingError(
        f"a reader takes a mapping with a question and documents, not {type(given).__name__}"
    )


def question_text(given: Any) -> str:
    """The question in a text, a message, or a list of messages (the last of a person)."""
    if isinstance(given, BaseMessage):
        return str(given.text)
    if isinstance(given, Sequence) and not isinstance(given, str):
        asked = [one for one in given if isinstance(one, BaseMessage) and one.type == "human"]
        return str(asked[-1].text) if asked else ""
    return given if isinstance(given, str) else str(given)


def _value(known: Mapping[str, Any], key: str | None, usual: tuple[str, ...], what: str) -> Any:
    names = usual if key is None else (key,)
    for name in names:
        if known.get(name) is not None:
            return known[name]
    raise BadSettingError(
        f"no {what} under {' or '.join(map(repr, names))}; the input's keys are "
        f"{', '.join(map(repr, known)) or 'none'}. Name the key with "
        f"{'question_key' if what == 'question' else 'documents_key'}="
    )


def as_documents(given: Any) -> list[Document]:
    """Documents from a text (one document), one document, or several texts or documents.

    Raises:
        BadSettingError: anything else.
    """
    if isinstance(given, str):
        return [Document(page_content=given)] if given.strip() else []
    if isinstance(given, Document):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, Mapping):
        return [one for item in given for one in _documents(item)]
    raise BadSettingError(f"documents are Documents or text, not {type(given).__name__}")


def _documents(item: Any) -> list[Document]:
    if isinstance(item, (str, Document)):
        return as_documents(item)
    raise BadSettingError(f"documents are Documents or texts, not {type(item).__name__}")


def as_chunks(
    documents: Sequence[Document],
    spec: ReadSpec,
    model: str,
    *,
    shown: Sequence[str] | None = None,
) -> Chunks:
    """Documents as chunks: as they are, and only one that alone passes the window is split.

    ``shown`` is what prompts show of each, where that is not its own text. Ids and metadata stay
    with the chunk; page and section are read from them.
    """
    kept = [(one, text) for one, text in zip(documents, shown or _texts(documents), strict=True)
            if text.strip()]  # fmt: skip
    chunks = new_chunks(
        [text for _, text in kept],
        "documents",
        page=[page_of(one.metadata) for one, _ in kept],
        section=[_section(one.metadata) for one, _ in kept],
        source_text=[None if shown is None else one.page_content for one, _ in kept],
        metadata=[
            {**one.metadata, "id": one.id} if one.id else dict(one.metadata) for one, _ in kept
        ],
    )
    room = budget(model, spec.max_answer_tokens).input - PROMPT_ROOM
    return capped(chunks, room) if room > 0 else chunks


def _texts(documents: Sequence[Document]) -> list[str]:
    return [one.page_content for one in documents]


def _section(metadata: Mapping[str, Any]) -> str | None:
    section = metadata.get("section", metadata.get("title"))
    return section if isinstance(section, str) else None
