"""A small open model behind an OpenAI-compatible server on this machine: see tools/live_server.py.

Nothing here is called by a replay but ``registered`` and the settings.
"""

import os
from typing import Any

from harness_core import (
    Chunks,
    ReadSpec,
    SegmentSpec,
    example_document,
    ingest,
    new_chunks,
    segment,
)
from harness_core.clients.openai import OpenAIClient
from harness_core.models.registry import register_model

MODEL = "gemma-3-270m"
QUESTION = "How many passengers can the Dunlin carry?"
TOLD = f"The Dunlin carries 120 passengers. {QUESTION}"
SCHEMA = {
    "title": "Ship",
    "type": "object",
    "properties": {"passengers": {"type": "integer", "minimum": 0, "maximum": 9999}},
    "required": ["passengers"],
    "additionalProperties": False,
}
_CAP = 16  # tokens of a reply: the least there is, so that each is cut off
_SETTINGS: dict[str, dict[str, Any]] = {
    "extract": {"fields": ["passengers"]},
    "screen": {"include": ("It is about ferries.",)},
}


def registered() -> None:
    """Make the model known, at no price."""
    register_model(MODEL, context_window=8192, max_output=1024, input_usd=0, output_usd=0)


def pieces() -> Chunks:
    """Two small pieces of the bundled report."""
    report = segment(ingest(example_document("md")), SegmentSpec(method="paragraph", max_tokens=60))
    return new_chunks([chunk.text for chunk in report if "Dunlin" in chunk.text][:2])


def spec(reader: str) -> ReadSpec:
    """A reader's settings for a short run."""
    return ReadSpec(
        reader, max_answer_tokens=_CAP, max_chunk_tokens=_CAP, max_summary_tokens=_CAP,
        max_rounds=2, temperature=0, max_concurrency=1, **_SETTINGS.get(reader, {}),
    )  # fmt: skip


def client() -> OpenAIClient:
    """The core's client."""
    return OpenAIClient(
        model=MODEL, api="chat", api_key="none", base_url=os.environ["LIVE_SERVER_URL"], timeout=300
    )


def chat_model(**settings: Any) -> Any:
    """LangChain's."""
    from langchain_openai import ChatOpenAI

    url: Any = os.environ["LIVE_SERVER_URL"]
    key: Any = "none"
    return ChatOpenAI(
        model=MODEL, base_url=url, api_key=key, temperature=0, timeout=300, stream_usage=True,
        **{"max_completion_tokens": _CAP, **settings},
    )  # fmt: skip


def llm(**settings: Any) -> Any:
    """LlamaIndex's."""
    from llama_index.llms.openai_like import (  # type: ignore[import-untyped]  # it ships no types
        OpenAILike,
    )

    return OpenAILike(
        model=MODEL, api_base=os.environ["LIVE_SERVER_URL"], api_key="none", temperature=0,
        timeout=300, is_chat_model=True, context_window=8192, **{"max_tokens": _CAP, **settings},
    )  # fmt: skip
