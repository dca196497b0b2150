"""Chunks, clients that answer by stage, what these were asked, and reads without a pre-flight."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness_core.answer import Answer
from harness_core.calls.api import run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockCall, MockClient
from harness_core.documents.types import Chunks
from harness_core.messages import Reply
from harness_core.models.registry import register_model
from harness_core.reading import registry
from harness_core.reading.flow import make_job
from harness_core.reading.registry import find_reader
from harness_core.reading.spec import ReadSpec
from harness_core.segmenting.chunks import new_chunks

QUESTION = "What was revenue in 2025?"

Said = str | Reply | Exception | Mapping[str, Any] | Callable[[str], Any] | Sequence[Any]


def chunks_of(*texts: str, **more: Any) -> Chunks:
    """Chunks of the texts, numbered from 1."""
    return new_chunks(list(texts), **more)


def client_of(stages: Mapping[str, Said] | None = None, default: Said = "An answer.") -> MockClient:
    """A mock that answers by stage label: the longest stem given that covers the label decides.

    What a stage says is a reply, an error to raise, a function of the prompt, or a list with one of
    these for each of its requests (the last one repeats).
    """
    known = dict(stages or {})
    asked: dict[str, int] = {}

    def answer(messages: list[dict[str, Any]], params: dict[str, Any]) -> Any:
        label = params["label"]
        stems = [stem for stem in known if label == stem or label.startswith(f"{stem}.")]
        stem = max(stems, key=len, default="")
        said: Any = known.get(stem, default)
        if isinstance(said, list):
            number = asked.get(stem, 0)
            asked[stem] = number + 1
            said = said[min(number, len(said) - 1)]
        if callable(said):
            said = said("\n\n".join(message["content"] for message in messages))
        if isinstance(said, Exception):
            raise said
        return said

    return MockClient(answer)


def the_chunks(count: int = 5) -> Chunks:
    """Chunks that each hold one figure of their own."""
    return chunks_of(*(
        f"Part {number}. Revenue of unit {number} was {number}.5 million in 2025. It rose a little."
        for number in range(1, count + 1)
    ))  # fmt: skip


def saying(*, other: Said = "Revenue was 45.2 million.", **by_stage: Said) -> MockClient:
    """``client_of`` with stages as keywords: ``map_answer="..."``; ``other`` for all the rest."""
    return client_of({name.replace("_", ".", 1): said for name, said in by_stage.items()}, other)


def cut_off(text: str) -> Reply:
    """A reply that stopped at its output cap."""
    return Reply(ok=True, text=text, finish_reason="max_tokens")


def asked(client: MockClient, stem: str = "") -> list[MockCall]:
    """The requests of a stage, or all."""
    return [
        call
        for call in client.calls()
        if not stem or call.label == stem or call.label.startswith(f"{stem}.")
    ]


def labels(client: MockClient) -> list[str]:
    """The stage labels of all requests, in order."""
    return [call.label for call in client.calls()]


def system(call: MockCall) -> str:
    """The system message of a request."""
    return call.messages[0].content


def prompt(call: MockCall) -> str:
    """The user messages of a request, joined."""
    return "\n\n".join(message.content for message in call.messages[1:])


def prompt_of(client: MockClient, number: int) -> str:
    """The whole text of the ``number``-th request, from 0."""
    return "\n".join(message.content for message in client.calls()[number].messages)


def window(tokens: int, *, max_output: int = 400) -> str:
    """The name of a free model with a window of that many tokens."""
    name = f"window-{tokens}-{max_output}"
    register_model(name, context_window=tokens, max_output=max_output, input_usd=0, output_usd=0)
    return name


def notes_of(trace: Trace, label: str) -> list[dict[str, Any]]:
    """The details of the local steps with that label."""
    return [dict(step.detail or {}) for step in trace.steps if step.local and step.label == label]


def read_unchecked(
    chunks: Chunks, client: MockClient, max_calls: int, reader: str, **settings: Any
) -> Answer:
    """A read under a call cap that the pre-flight would have refused."""
    trace = Trace(Governor(max_calls=max_calls))
    spec = ReadSpec(reader, **settings)
    job = make_job(chunks, QUESTION, spec, client, trace)
    return run_flow(find_reader(reader).reader.read(job), client, trace)


def restored_readers() -> Iterator[None]:
    """Forget, after a test, the readers that it registered."""
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)
