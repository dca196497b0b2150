"""An embedder that knows which words mean the same."""

from collections.abc import Callable

from harness_core import MockClient
from harness_core.collections import Collections

MEANINGS = (
    ("pump", "motor"), ("garden", "lawn"), ("bridge", "viaduct"), ("alpha",), ("beta",),
    ("gamma",),
)  # fmt: skip


def meant(texts: list[str]) -> list[list[float]]:
    """A row per text: how often it says each of the things known, and a little of nothing."""
    return [
        [0.01, *(float(sum(text.lower().count(w) for w in words)) for words in MEANINGS)]
        for text in texts
    ]


def embedder(
    embed: Callable[..., object] = meant, model: str = "mock-embed", identity: str | None = None
) -> MockClient:
    """A client that embeds and does nothing else."""
    client = MockClient(silent, embed, concurrent=True)
    client.embedding_model = model
    client.identity = identity
    return client


def silent(_messages: list[dict[str, str]]) -> str:
    """It is asked for nothing but vectors."""
    raise AssertionError("an embedder was asked for text")


def beside(engine: Collections, **settings: object) -> Collections:
    """Another view of the same store, with other settings."""
    given = {"client": engine._engine.client, "ingestion": engine._engine.ingestion, **settings}
    return Collections(engine.store, **given)  # type: ignore[arg-type]  # settings by name
