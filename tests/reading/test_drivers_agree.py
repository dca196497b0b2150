"""One reader, one way of sending it: sync, threads, asyncio, trio and replay give one result.

Every registered reader is tried, those added later too, with a model whose reply depends on the
prompt and the draw, in good and bad moods and with money for half of what it wants to ask.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
import pytest

from harness_core import (
    Answer,
    Chunks,
    Client,
    Governor,
    MockClient,
    ReadSpec,
    ReplayClient,
    Trace,
    aread,
    list_readers,
    new_chunks,
    override,
    read,
    register_model,
    register_reader,
)
from harness_core.flows.types import Flow
from harness_core.readers.map_reduce import MapReduce
from harness_core.reading import registry
from harness_core.reading.job import Job
from tests.support.oracle import Mood, Oracle

QUESTION = "What does each entry say about the harbour?"
MODEL = "oracle-1"
MOODS: tuple[Mood, ...] = ("well", "third fails", "cut off", "no structure")
HALF = "money for half"
DRIVERS = ("threads", "asyncio", "trio", "replay")
READERS = [row["name"] for row in list_readers()]

pytestmark = pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")


@pytest.fixture(autouse=True)
def _priced() -> None:
    # replies are what costs: a limit can then be passed by them and not by the prompts
    register_model(MODEL, context_window=64_000, max_output=400, input_usd=0.001, output_usd=50)


def the_chunks() -> Chunks:
    sections = ["Quays", "Quays", "Sheds", "Sheds", "Roads", "Roads", "People", "People", "Money"]
    texts = [
        f"The marker{number}x entry says that the harbour has {number * 11} berths to let. "
        f"In the {number}th year nobody asked for more of them than there were."
        for number in range(1, 10)
    ]
    return new_chunks(texts, page=list(range(1, 10)), section=list(sections))


def the_spec(reader: str) -> ReadSpec:
    """Every setting that some reader needs; the others take no notice."""
    return ReadSpec(
        reader, model=MODEL, top_k=4, cite=reader not in ("hierarchical",),
        include=("it is about harbours",), fields=["topic"], resolve="model",
        max_answer_tokens=120, max_chunk_tokens=120, max_summary_tokens=120, rerank_min_score=1,
    )  # fmt: skip


def delayed(oracle: Oracle, seed: int) -> Callable[..., Any]:
    dice = random.Random(seed)  # noqa: S311 - pauses, not secrets

    def answer(messages: Any, params: Any) -> Any:
        time.sleep(dice.random() * 0.002)
        return oracle(messages, params)

    return answer


def async_delayed(oracle: Oracle, seed: int) -> Callable[..., Any]:
    dice = random.Random(seed)  # noqa: S311 - pauses, not secrets

    async def answer(messages: Any, params: Any) -> Any:
        await anyio.sleep(dice.random() * 0.002)
        return oracle(messages, params)

    return answer


@dataclass(frozen=True)
class Ran:
    """What one run left behind."""

    answer: Answer
    trace: Trace

    def told(self) -> dict[str, Any]:
        plain = self.answer.to_dict(trace=False)
        plain["warnings"] = sorted(map(str, plain["warnings"]))
        return plain

    def rows(self, *, paid: bool) -> list[Any]:
        return [
            (s.step, s.label, s.kind, s.ok, s.error, s.response, s.tokens.input, s.tokens.output,
             s.prompt, s.detail, s.state, s.recovered, s.budget_pico if paid else None)
            for s in self.trace.steps
        ]  # fmt: skip

    def refused(self) -> list[tuple[str, str]]:
        return [(one.label, one.reason) for one in self.trace.refusals]


def the_trace(most: float | None) -> Trace:
    return Trace(Governor(max_cost_usd=most), record_embeddings=True)


def one_by_one(reader: str, mood: Mood, most: float | None = None) -> Ran:
    oracle, trace = Oracle(mood), the_trace(most)
    client = MockClient(oracle, oracle.embed)
    with override(max_concurrency=1):
        answer = read(the_chunks(), QUESTION, client, the_spec(reader), trace=trace)
    return Ran(answer, trace)


def driven(driver: str, reader: str, mood: Mood, most: float | None, first: Ran) -> Ran:
    with override(max_concurrency=8):
        return _driven(driver, reader, mood, most, first)


def _driven(driver: str, reader: str, mood: Mood, most: float | None, first: Ran) -> Ran:
    oracle, trace, spec = Oracle(mood), the_trace(most), the_spec(reader)
    if driver == "replay":
        client: Client = ReplayClient(first.trace)
        return Ran(read(the_chunks(), QUESTION, client, spec, trace=trace), trace)
    if driver == "threads":
        client = MockClient(delayed(oracle, 7), oracle.embed, concurrent=True)
        return Ran(read(the_chunks(), QUESTION, client, spec, trace=trace), trace)
    client = MockClient(async_delayed(oracle, 7), oracle.embed, concurrent=True)

    async def main() -> Answer:
        return await aread(the_chunks(), QUESTION, client, spec, trace=trace)

    return Ran(anyio.run(main, backend=driver), trace)


def check_agreement(reader: str, mood: Mood, most: float | None, first: Ran) -> None:
    """Every driver gives what the sequential run gave, and keeps the limit."""
    for driver in DRIVERS:
        if driver == "replay" and not any(s.kind == "chat" for s in first.trace.requests):
            continue  # no prompt was sent, so there is nothing to replay
        other = driven(driver, reader, mood, most, first)
        replayed = driver == "replay"
        told, expected = other.told(), first.told()
        assert told == expected, driver
        assert other.rows(paid=not replayed) == first.rows(paid=not replayed), driver
        assert other.refused() == first.refused(), driver
        assert other.trace.calls == first.trace.calls, driver
        assert other.trace.spent_usd == (0 if replayed else first.trace.spent_usd), driver
        assert other.trace.ledger.held == 0
        if most is not None:
            assert other.trace.spent_usd + other.trace.replayed_usd <= most


def check_degrading(ran: Ran, mood: Mood) -> None:
    """The answer is partial exactly when something went wrong."""
    asked = ran.trace.requests
    wrong = (
        bool(ran.trace.refusals)
        or any(not step.ok or step.finish_reason == "length" for step in asked)
        or (mood == "no structure" and any(step.params.get("schema_hash") for step in asked))
    )
    assert ran.answer.partial is wrong, (ran.answer.notes, ran.answer.warnings)
    assert bool(ran.answer.reasons()) is wrong


def check_coverage(reader: str, ran: Ran) -> None:
    """A reader that says it reads all shows every chunk to the model."""
    if registry.find_reader(reader).reads_all:
        prompts = "\n".join(m.content for step in ran.trace.requests for m in step.prompt)
        missing = [n for n in range(1, 10) if f"marker{n}x" not in prompts]
        assert not missing, f"{reader} never showed chunk(s) {missing}"


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("reader", READERS)
def test_every_driver_gives_the_sequential_result(reader: str, mood: Mood) -> None:
    # readers 184, core 151
    first = one_by_one(reader, mood)
    check_degrading(first, mood)
    check_coverage(reader, first)
    check_agreement(reader, mood, None, first)


@pytest.mark.parametrize("reader", READERS)
def test_half_the_money_gives_one_partial_answer_in_every_driver(reader: str) -> None:
    whole = one_by_one(reader, "well")
    asked = [step for step in whole.trace.requests if step.kind == "chat"]
    dearest = max(step.bound_pico or 0 for step in asked) / 1e12
    # the bound of a request is above its price: half the price and one bound stop in the middle
    half = whole.trace.spent_usd / 2 + (dearest if len(asked) > 1 else 0)
    most = min(half, whole.trace.spent_usd + dearest * 0.9)
    first = one_by_one(reader, "well", most)
    assert first.trace.spent_usd <= most
    assert first.trace.refusals, "the limit was meant to be felt"
    check_degrading(first, "well")
    check_agreement(reader, "well", most, first)


# --- the suite would notice -----------------------------------------------------------------------


@pytest.fixture
def scratch() -> Iterator[None]:
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)


class Skipping(MapReduce):
    """Leaves one chunk out."""

    signature: ClassVar = "all|N+logN|skipping"

    def read(self, job: Job, /) -> Flow[Answer]:
        kept = new_chunks([chunk.text for chunk in job.chunks if chunk.chunk_id != 5])
        return (yield from MapReduce().read(job.having(chunks=kept)))


class Hurried(MapReduce):
    """Leaves one chunk out when it runs under an event loop."""

    signature: ClassVar = "all|N+logN|hurried"

    def read(self, job: Job, /) -> Flow[Answer]:
        import sniffio

        try:
            sniffio.current_async_library()
        except sniffio.AsyncLibraryNotFoundError:
            return (yield from MapReduce().read(job))
        kept = new_chunks([chunk.text for chunk in job.chunks if chunk.chunk_id != 5])
        return (yield from MapReduce().read(job.having(chunks=kept)))


@pytest.mark.usefixtures("scratch")
def test_a_reader_that_skips_a_chunk_would_be_noticed() -> None:
    register_reader("skipping", Skipping())
    ran = one_by_one("skipping", "well")
    with pytest.raises(AssertionError, match=r"never showed chunk\(s\) \[5\]"):
        check_coverage("skipping", ran)


@pytest.mark.usefixtures("scratch")
def test_a_reader_that_depends_on_its_driver_would_be_noticed() -> None:
    register_reader("hurried", Hurried())
    with pytest.raises(AssertionError, match="asyncio"):
        check_agreement("hurried", "well", None, one_by_one("hurried", "well"))
