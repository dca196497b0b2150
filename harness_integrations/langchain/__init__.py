"""LangChain: governed readers, models, traces and replays inside existing chains and agents.

Names are loaded on first use; the agents' middleware is in ``.middleware``, test doubles in
``.testing``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness_integrations.shared.extras import needs

if TYPE_CHECKING:
    from harness_core.calls.ambient import governed_run
    from harness_core.calls.cache import ResponseCache
    from harness_core.calls.governor import Governor
    from harness_core.calls.trace import Trace
    from harness_core.errors import RequestRefused
    from harness_integrations.langchain.caches import TraceCache
    from harness_integrations.langchain.callbacks import TraceCallbackHandler, trace_calls
    from harness_integrations.langchain.chains import create_reader_chain
    from harness_integrations.langchain.client import LangChainClient
    from harness_integrations.langchain.collections import AnswerCollection, CollectionRetriever
    from harness_integrations.langchain.compressors import ReaderCompressor
    from harness_integrations.langchain.embeddings import GovernedEmbeddings
    from harness_integrations.langchain.errors import (
        GovernedRefusal,
        GovernedReplayExhausted,
        GovernedReplayMiss,
        retry_unless_refused,
    )
    from harness_integrations.langchain.governing import govern
    from harness_integrations.langchain.models import GovernedChatModel
    from harness_integrations.langchain.outputs import ReaderOutput
    from harness_integrations.langchain.reader import DocumentReader, ReaderInput
    from harness_integrations.langchain.retrievers import ReaderRetriever
    from harness_integrations.langchain.tools import create_reader_tool
    from harness_integrations.shared.governing import UngovernedError, UngovernedWarning

__all__ = [
    "AnswerCollection",
    "CollectionRetriever",
    "DocumentReader",
    "GovernedChatModel",
    "GovernedEmbeddings",
    "GovernedRefusal",
    "GovernedReplayExhausted",
    "GovernedReplayMiss",
    "Governor",
    "LangChainClient",
    "ReaderCompressor",
    "ReaderInput",
    "ReaderOutput",
    "ReaderRetriever",
    "RequestRefused",
    "ResponseCache",
    "Trace",
    "TraceCache",
    "TraceCallbackHandler",
    "UngovernedError",
    "UngovernedWarning",
    "create_reader_chain",
    "create_reader_tool",
    "govern",
    "governed_run",
    "retry_unless_refused",
    "trace_calls",
]

_HOMES = {
    "AnswerCollection": "harness_integrations.langchain.collections",
    "CollectionRetriever": "harness_integrations.langchain.collections",
    "DocumentReader": "harness_integrations.langchain.reader",
    "GovernedChatModel": "harness_integrations.langchain.models",
    "GovernedEmbeddings": "harness_integrations.langchain.embeddings",
    "GovernedRefusal": "harness_integrations.langchain.errors",
    "GovernedReplayExhausted": "harness_integrations.langchain.errors",
    "GovernedReplayMiss": "harness_integrations.langchain.errors",
    "Governor": "harness_core.calls.governor",
    "LangChainClient": "harness_integrations.langchain.client",
    "ReaderCompressor": "harness_integrations.langchain.compressors",
    "ReaderInput": "harness_integrations.langchain.reader",
    "ReaderOutput": "harness_integrations.langchain.outputs",
    "ReaderRetriever": "harness_integrations.langchain.retrievers",
    "RequestRefused": "harness_core.errors",
    "ResponseCache": "harness_core.calls.cache",
    "Trace": "harness_core.calls.trace",
    "TraceCache": "harness_integrations.langchain.caches",
    "TraceCallbackHandler": "harness_integrations.langchain.callbacks",
    "UngovernedError": "harness_integrations.shared.governing",
    "UngovernedWarning": "harness_integrations.shared.governing",
    "create_reader_chain": "harness_integrations.langchain.chains",
    "create_reader_tool": "harness_integrations.langchain.tools",
    "govern": "harness_integrations.langchain.governing",
    "governed_run": "harness_core.calls.ambient",
    "retry_unless_refused": "harness_integrations.langchain.errors",
    "trace_calls": "harness_integrations.langchain.callbacks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("langchain", "langchain_core"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
