"""Chunks and models for tests of reading."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from harness_core import Chunks, MockClient, new_chunks
from harness_core.messages import Reply
from harness_core.reading import registry

QUESTION = "What was revenue in 2025?"
Say: TypeAlias = str | Reply | Exception | Callable[[str], Any]


def the_chunks(count: int = 5) -> Chunks:
    """Chunks that each hold one figure of their own."""
    return new_chunks([
        f"Part {number}. Revenue of unit {number} was {number}.5 million in 2025. It rose a little."
        for number in range(1, count + 1)
    ])  # fmt: skip


def saying(**by_stage: Say) -> MockClient:
    """A mock that answers by stage label: ``map_answer="..."``; ``other`` for all the rest.

    A function is given the text of the prompt.
    """
    told = {name.replace("_", ".", 1): said for name, said in by_stage.items()}

    def answer(messages: list[dict[str, Any]], params: Mapping[str, Any]) -> Any:
        said = told.get(params["label"], by_stage.get("other", "Revenue was 45.2 million."))
        if isinstance(said, Exception):
            raise said
        return said("\n".join(m["content"] for m in messages)) if callable(said) else said

    return MockClient(answer)


def cut(text: str) -> Reply:
    """A reply that stopped at its output cap."""
    return Reply(ok=True, text=text, finish_reason="max_tokens")


def labels(client: MockClient) -> list[str]:
    """The stage labels of what the mock was asked."""
    return [call.label for call in client.calls()]


def prompt(client: MockClient, number: int) -> str:
    """The text of the ``number``-th request, from 0."""
    return "\n".join(message.content for message in client.calls()[number].messages)


def restored_readers() -> Iterator[None]:
    """Forget, after a test, the readers that it registered."""
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)
