"""A body is refused by its size and shape before it is built."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.collections.contract import BODY_BYTES, AnswerRequest
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_integrations.engine.service import strict_json
from harness_integrations.engine.service.strict_json import CONTAINERS, DEPTH, VALUES, parse_body
from tests.support.engine import World, error_of

CLAUSE = b'{"field":"bytes","op":"eq","value":0}'


def _asking(filter_: bytes) -> bytes:
    return b'{"query":"x","filter":' + filter_ + b"}"


def _within(piece: bytes, times: int = BODY_BYTES) -> bytes:
    fitting = min(times, (BODY_BYTES - 60) // (len(piece) + 1))
    return _asking(b'{"or":[' + b",".join([piece] * fitting) + b"]}")


def _listed(lists: int) -> bytes:
    one = {"field": "path", "op": "in", "value": ["x" * 580] * 100}
    return _asking(json.dumps({"or": [one] * lists}).encode())


BOMBS: dict[str, Callable[[], bytes]] = {
    "deep": lambda: _asking(b'{"not":' * 100_000 + CLAUSE + b"}" * 100_000),
    "deep-unclosed": lambda: b"[" * 1_000_000,
    "clauses": lambda: _within(CLAUSE),
    "empty-clauses": lambda: _within(b"{}", 1_000_000),
    "lists": lambda: _listed(100),
    "numbers": lambda: _within(b"1"),
    "texts": lambda: _within(b'""'),
    "quotes": lambda: b"[" * 65 + b'"' * (BODY_BYTES - 65),
    "open-text": lambda: b"[" * 65 + b'"' + b'\\"' * 3_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_at_once(name: str) -> None:  # SEC70: 50 ms, measured by the benchmark
    body = BOMBS[name]()
    assert len(body) <= BODY_BYTES
    begun = time.process_time()
    with pytest.raises(InvalidRequestError):
        compile_filter(AnswerRequest.parse(parse_body(body)).filter, {})
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("name", sorted(set(BOMBS) - {"lists", "open-text"}))
def test_of_a_bomb_nothing_is_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_integrations.engine.service.strict_json.json", None)
    with pytest.raises(InvalidRequestError):
        parse_body(BOMBS[name]())


@pytest.mark.parametrize("name", ["deep", "clauses", "lists", "numbers"])
def test_a_bomb_is_told_what_it_is(served: World, name: str) -> None:  # SEC70
    response = served.ask(raw=BOMBS[name]())
    assert error_of(response)[0] == 400


def test_the_largest_requests_of_the_contract_are_not_bombs(served: World) -> None:
    lists = [{"field": "path", "op": "in", "value": [str(n) for n in range(100)]}] * 99
    turns = [{"role": "user", "content": '[{"\\",' * 4_000}] * 32
    assert served.ask(filter={"or": lists}, history=turns).status_code == 200


def test_limits_are_kept_to_the_last_value() -> None:
    deepest = b"[" * DEPTH + b"]" * DEPTH
    assert parse_body(deepest)
    assert len(parse_body(b"[" + b"[]," * (CONTAINERS - 2) + b"[]]")) == CONTAINERS - 1
    assert len(parse_body(b"[" + b"1," * VALUES + b"1]")) == VALUES + 1
    for body in (
        b"[" + deepest + b"]",
        b"[" + b"[]," * (CONTAINERS - 1) + b"[]]",
        b"[" + b"1," * (VALUES + 1) + b"1]",
    ):
        with pytest.raises(InvalidRequestError):
            parse_body(body)


TEXTS = st.text(alphabet='ab"\\[]{},\u00e9\U0001f600', max_size=6)
VALUES_OF_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, inner), default=0)


def _containers(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + sum(map(_containers, value.values() if isinstance(value, dict) else value))


@given(VALUES_OF_JSON, st.booleans(), st.integers(1, 5), st.integers(1, 8))
def test_what_is_counted_is_what_is_built(
    value: Any, escaped: bool, depth: int, containers: int
) -> None:
    body = json.dumps([value] * 2, ensure_ascii=escaped).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_json, "DEPTH", depth)
        patch.setattr(strict_json, "CONTAINERS", containers)
        if _depth([value] * 2) <= depth and _containers([value] * 2) <= containers:
            assert parse_body(body) == [value] * 2
        else:
            with pytest.raises(InvalidRequestError):
                parse_body(body)
