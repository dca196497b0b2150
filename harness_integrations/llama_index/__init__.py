"""A *reader* here is a way of reading documents with a model, not a loader as in LlamaIndex.

Governed readers, LLMs, traces and replays for existing indexes, engines and agents.
Names are loaded on first use; test doubles are in ``.testing``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harness_integrations.shared.extras import needs

if TYPE_CHECKING:
    from harness_core.calls.ambient import governed_run
    from harness_core.calls.cache import ResponseCache
    from harness_core.calls.governor import Governor
    from harness_core.calls.trace import Trace
    from harness_core.errors import RequestRefused
    from harness_integrations.llama_index.citations import CitationCheck, verify_response_citations
    from harness_integrations.llama_index.client import LlamaIndexClient
    from harness_integrations.llama_index.collection_chat import CollectionChatEngine
    from harness_integrations.llama_index.collections import (
        CollectionQueryEngine,
        CollectionRetriever,
    )
    from harness_integrations.llama_index.embeddings import GovernedEmbedding
    from harness_integrations.llama_index.engine import ReaderQueryEngine
    from harness_integrations.llama_index.errors import (
        OutputCapUnenforceable,
        OutputInvalidError,
        QuoteError,
    )
    from harness_integrations.llama_index.events import (
        GovernorRefusalEvent,
        ReadingEndEvent,
        ReadingStartEvent,
        ReadingStepEvent,
    )
    from harness_integrations.llama_index.gate import RequestGate, install_gate
    from harness_integrations.llama_index.governed import GovernedLLM, govern_llm
    from harness_integrations.llama_index.handlers import TraceEventHandler, TraceSpanHandler
    from harness_integrations.llama_index.instrumenting import instrument
    from harness_integrations.llama_index.legacy import TraceCallbackHandler
    from harness_integrations.llama_index.nodes import Citation
    from harness_integrations.llama_index.postprocessors import (
        QuoteVerifierPostprocessor,
        ReaderRerank,
    )
    from harness_integrations.llama_index.responses import (
        AsyncReaderStreamingResponse,
        ReaderPydanticResponse,
        ReaderResponse,
        ReaderStreamingResponse,
    )
    from harness_integrations.llama_index.retriever import ReaderRetriever
    from harness_integrations.llama_index.synthesizer import ReaderSynthesizer

__all__ = [
    "AsyncReaderStreamingResponse",
    "Citation",
    "CitationCheck",
    "CollectionChatEngine",
    "CollectionQueryEngine",
    "CollectionRetriever",
    "GovernedEmbedding",
    "GovernedLLM",
    "Governor",
    "GovernorRefusalEvent",
    "LlamaIndexClient",
    "OutputCapUnenforceable",
    "OutputInvalidError",
    "QuoteError",
    "QuoteVerifierPostprocessor",
    "ReaderPydanticResponse",
    "ReaderQueryEngine",
    "ReaderRerank",
    "ReaderResponse",
    "ReaderRetriever",
    "ReaderStreamingResponse",
    "ReaderSynthesizer",
    "ReadingEndEvent",
    "ReadingStartEvent",
    "ReadingStepEvent",
    "RequestGate",
    "RequestRefused",
    "ResponseCache",
    "Trace",
    "TraceCallbackHandler",
    "TraceEventHandler",
    "TraceSpanHandler",
    "govern_llm",
    "governed_run",
    "install_gate",
    "instrument",
    "verify_response_citations",
]

_HOMES = {
    "AsyncReaderStreamingResponse": "harness_integrations.llama_index.responses",
    "Citation": "harness_integrations.llama_index.nodes",
    "CitationCheck": "harness_integrations.llama_index.citations",
    "CollectionChatEngine": "harness_integrations.llama_index.collection_chat",
    "CollectionQueryEngine": "harness_integrations.llama_index.collections",
    "CollectionRetriever": "harness_integrations.llama_index.collections",
    "GovernedEmbedding": "harness_integrations.llama_index.embeddings",
    "GovernedLLM": "harness_integrations.llama_index.governed",
    "Governor": "harness_core.calls.governor",
    "GovernorRefusalEvent": "harness_integrations.llama_index.events",
    "LlamaIndexClient": "harness_integrations.llama_index.client",
    "OutputCapUnenforceable": "harness_integrations.llama_index.errors",
    "OutputInvalidError": "harness_integrations.llama_index.errors",
    "QuoteError": "harness_integrations.llama_index.errors",
    "QuoteVerifierPostprocessor": "harness_integrations.llama_index.postprocessors",
    "ReaderPydanticResponse": "harness_integrations.llama_index.responses",
    "ReaderQueryEngine": "harness_integrations.llama_index.engine",
    "ReaderRerank": "harness_integrations.llama_index.postprocessors",
    "ReaderResponse": "harness_integrations.llama_index.responses",
    "ReaderRetriever": "harness_integrations.llama_index.retriever",
    "ReaderStreamingResponse": "harness_integrations.llama_index.responses",
    "ReaderSynthesizer": "harness_integrations.llama_index.synthesizer",
    "ReadingEndEvent": "harness_integrations.llama_index.events",
    "ReadingStartEvent": "harness_integrations.llama_index.events",
    "ReadingStepEvent": "harness_integrations.llama_index.events",
    "RequestGate": "harness_integrations.llama_index.gate",
    "RequestRefused": "harness_core.errors",
    "ResponseCache": "harness_core.calls.cache",
    "Trace": "harness_core.calls.trace",
    "TraceCallbackHandler": "harness_integrations.llama_index.legacy",
    "TraceEventHandler": "harness_integrations.llama_index.handlers",
    "TraceSpanHandler": "harness_integrations.llama_index.handlers",
    "govern_llm": "harness_integrations.llama_index.governed",
    "governed_run": "harness_core.calls.ambient",
    "install_gate": "harness_integrations.llama_index.gate",
    "instrument": "harness_integrations.llama_index.instrumenting",
    "verify_response_citations": "harness_integrations.llama_index.citations",
}

with needs("llama-index", "llama_index"):
    if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
        raise ModuleNotFoundError("No module named 'llama_index.core'", name="llama_index.core")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("llama-index", "llama_index"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
