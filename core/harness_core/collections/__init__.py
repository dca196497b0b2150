"""Answers over a collection of files, with citations, for those who may see them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.collections.answer_cache import AnswerCache
    from harness_core.collections.collection import Collection
    from harness_core.collections.contract import (
        AnswerRequest,
        AnswerResult,
        QueryImage,
        ReadSpansRequest,
        ReadSpansResult,
        SearchRequest,
        SearchResult,
        Source,
        Span,
        Turn,
    )
    from harness_core.collections.deadlines import Budgets
    from harness_core.collections.efforts import EFFORTS, HIGH, MEDIUM, SKIM, Plan
    from harness_core.collections.faults import CollectionFault
    from harness_core.collections.ids import new_request_id
    from harness_core.collections.ingestion.limits import Limits
    from harness_core.collections.ingestion.processing import in_a_process, in_this_process
    from harness_core.collections.keys import Key, KeyGrant, Keys, NewKey
    from harness_core.collections.postgres.store import PostgresStore
    from harness_core.collections.questions import QuestionCutWarning
    from harness_core.collections.searching import RewriteFailedWarning
    from harness_core.collections.service import Collections, Namespace
    from harness_core.collections.store import Event, FileInfo, Ranker, Store

_HOMES = {
    "contract": (
        "AnswerRequest", "AnswerResult", "QueryImage", "ReadSpansRequest", "ReadSpansResult",
        "SearchRequest", "SearchResult", "Source", "Span", "Turn",
    ),
    "answer_cache": ("AnswerCache",),
    "deadlines": ("Budgets",),
    "efforts": ("EFFORTS", "HIGH", "MEDIUM", "Plan", "SKIM"),
    "faults": ("CollectionFault",),
    "ids": ("new_request_id",),
    "ingestion.limits": ("Limits",),
    "ingestion.processing": ("in_a_process", "in_this_process"),
    "keys": ("Key", "KeyGrant", "Keys", "NewKey"),
    "collection": ("Collection",),
    "questions": ("QuestionCutWarning",),
    "searching": ("RewriteFailedWarning",),
    "service": ("Collections", "Namespace"),
    "postgres.store": ("PostgresStore",),
    "store": ("Event", "FileInfo", "Ranker", "Store"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnswerCache", "AnswerRequest", "AnswerResult", "Budgets", "Collection", "CollectionFault",
    "Collections", "EFFORTS", "Event", "FileInfo", "HIGH", "Key", "KeyGrant", "Keys", "Limits",
    "MEDIUM", "Namespace", "NewKey", "Plan", "PostgresStore", "QueryImage",
    "QuestionCutWarning", "Ranker", "ReadSpansRequest", "ReadSpansResult", "RewriteFailedWarning",
    "SKIM", "SearchRequest", "SearchResult", "Source", "Span", "Store", "Turn",
    "in_a_process", "in_this_process", "new_request_id",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
