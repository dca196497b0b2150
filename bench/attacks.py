"""What hostile requests cost: they are refused early, and time tells nothing of what is hidden."""

import json
import string
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, Final

import httpx

_PLAIN: Final = "/namespaces/bench/collections/docs:answer"
_GUARDED: Final = "/namespaces/bench/collections/secret"
_ROUNDS: Final = 300


def attacks(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    """What hostile requests cost a service with the collections of ``bench.engine``."""
    with httpx.Client(base_url=url, headers=headers, timeout=60) as http:

        def post(path: str, body: bytes, status: int) -> float:
            """Seconds until the reply to a body that is there already."""
            asked = http.build_request(
                "POST", path, content=body, headers={"content-type": "application/json"}
            )
            began = time.perf_counter()
            reply = http.send(asked)
            taken = time.perf_counter() - began
            if reply.status_code != status:
                raise AssertionError(f"{path} gave {reply.status_code}: {reply.text}")
            return taken

        bombs = {name: min(post(_PLAIN, body, 400) for _ in range(5)) for name, body in _bombs()}
        wide = {"query": _many_words(), "principals": ["user:me"]}
        searched = min(post(f"{_GUARDED}:search", _encoded(wide), 200) for _ in range(5))
        times = _alike(lambda path: post(f"{_GUARDED}:answer", _naming(path), 200))
    return [
        *(_bound(f"SEC70: {what} is refused", seconds, 0.05) for what, seconds in bombs.items()),
        _bound("SEC71: 32,000 characters of different words are searched for", searched, 1.0),
        {
            "what": f"SEC34: a hidden path against one that is not there, {_ROUNDS} rounds",
            "value": f"{times:.3f} times", "target": "0.9 to 1.1 times", "met": 0.9 <= times <= 1.1,
        },
    ]  # fmt: skip


def _bombs() -> Iterator[tuple[str, bytes]]:
    """Filters that cost a parser much more than their sender."""
    yield "a filter 100,000 deep", _filtered('{"not":' * 100_000 + "{}" + "}" * 100_000)
    yield "a filter of 1,000,000 clauses", _filtered('{"or":[' + "{}," * 999_999 + "{}]}")
    long = json.dumps(["x" * 500] * 100)
    listed = ",".join([f'{{"field":"path","op":"in","value":{long}}}'] * 100)
    yield "a filter of 100 lists of 100 long strings", _filtered('{"or":[' + listed + "]}")


def _filtered(given: str) -> bytes:
    return f'{{"query":"x","filter":{given}}}'.encode()


def _encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


def _many_words() -> str:
    letters = string.ascii_lowercase
    return " ".join(f"{a}{b}{c}" for a in letters for b in letters for c in letters)[:32_000]


def _naming(path: str) -> bytes:
    named = {"field": "path", "op": "eq", "value": path}
    return _encoded({"query": "harbour", "principals": ["user:me"], "filter": named})


def _alike(seconds_of: Callable[[str], float]) -> float:
    """How much longer the hidden path takes: medians of rounds that change who is first."""
    paths = ["/00.txt", "/zz.txt"]
    seconds: dict[str, list[float]] = {path: [] for path in paths}
    for number in range(_ROUNDS):
        for path in paths[:: 1 if number % 2 else -1]:
            seconds[path].append(seconds_of(path))
    hidden, absent = (median(seconds[path]) for path in paths)
    return hidden / absent


def _bound(what: str, seconds: float, most: float) -> dict[str, Any]:
    return {
        "what": what, "value": f"{1000 * seconds:.0f} ms", "target": f"under {1000 * most:.0f} ms",
        "met": seconds < most,
    }  # fmt: skip
