"""How a flow asks: one request, several, or several flows side by side."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, TypeVar

from harness_core.flows.types import Flow, Pause, Work
from harness_core.messages import Asked, Embeddings, Outcome, Reply, Request, Texts

T = TypeVar("T")


def ask(request: Request) -> Flow[Reply]:
    """Send one request; the flow goes on with its reply."""
    return (yield from ask_all((request,)))[0]


def ask_all(requests: Iterable[Request]) -> Flow[list[Reply]]:
    """Send requests side by side; the replies come in request order. None for none."""
    batch = tuple(requests)
    if not batch:
        return []
    outcomes: Sequence[Outcome] = yield batch
    return [reply_of(outcome) for _, outcome in zip(batch, outcomes, strict=True)]


def ask_vectors(requests: Iterable[Texts]) -> Flow[list[Embeddings]]:
    """Send embedding requests side by side; the outcomes come in request order."""
    batch = tuple(requests)
    if not batch:
        return []
    outcomes: Sequence[Outcome] = yield batch
    return [_embeddings(outcome) for _, outcome in zip(batch, outcomes, strict=True)]


def work(function: Callable[[], T]) -> Flow[T]:
    """Have a slow function run where slow work runs; the flow goes on with its result."""
    result: T = yield Work(function)
    return result


def together(flows: Iterable[Flow[T]]) -> Flow[list[T]]:
    """Run flows side by side: the rounds of all of them are merged, in order, into one batch.

    A ``Work`` or ``Pause`` of one is done when its round comes; a slow neighbour delays all.
    """
    running = list(flows)
    results: dict[int, T] = {}
    answers: dict[int, object] = dict.fromkeys(range(len(running)))
    try:
        while answers:
            asked: dict[int, tuple[Asked, ...]] = {}
            for place, answer in list(answers.items()):
                todo = yield from _to_batch(running[place], answer, results, place)
                if todo is None:
                    del answers[place]
                else:
                    asked[place] = todo
            if asked:
                outcomes = iter((yield tuple(one for batch in asked.values() for one in batch)))
                for place, batch in asked.items():
                    answers[place] = list(islice(outcomes, len(batch)))
    finally:
        for flow in running:
            flow.close()
    return [results[place] for place in range(len(running))]


def _to_batch(
    flow: Flow[T], answer: object, results: dict[int, T], place: int
) -> Flow[tuple[Asked, ...] | None]:
    while True:
        try:
            todo = flow.send(answer)
        except StopIteration as stop:
            results[place] = stop.value
            return None
        if not isinstance(todo, (Work, Pause)):
            return todo
        answer = yield todo


def relayed(
    flow: Flow[T], landed: Callable[[tuple[Asked, ...], list[Outcome]], Flow[list[Outcome]]]
) -> Flow[T]:
    """``flow``, the outcomes of each of its batches going through ``landed`` before it has them."""
    resume: Callable[[Any], Any] = flow.send
    answer: Any = None
    with closing(flow):
        while True:
            try:
                todo = resume(answer)
            except StopIteration as stop:
                result: T = stop.value
                return result
            try:
                resume, answer = flow.send, (yield todo)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the flow
                resume, answer = flow.throw, error
            else:
                if isinstance(todo, tuple):
                    answer = yield from landed(todo, answer)


def reply_of(outcome: Outcome) -> Reply:
    """The outcome of a request for text, which is a ``Reply``."""
    if not isinstance(outcome, Reply):
        raise TypeError(f"a text request was answered with {type(outcome).__name__}")
    return outcome


def _embeddings(outcome: Outcome) -> Embeddings:
    if not isinstance(outcome, Embeddings):
        raise TypeError(f"an embedding request was answered with {type(outcome).__name__}")
    return outcome
