"""The service under load, on loopback, with a model that takes 200 ms; and what attackers may cost.

The askers are another process: ``python -m bench.engine URL KEY ASKERS ANSWERS``.
"""

import json
import resource
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import httpx

from bench.timing import wall_seconds
from harness_core import BaseClient
from harness_core.collections import Collections, in_this_process
from harness_core.messages import Reply, Request, Usage
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from harness_integrations.engine.service.settings import ServiceSettings

ROOT = Path(__file__).parents[1]
MODEL_SECONDS = 0.2
ASKERS = {1: 20, 16: 160, 64: 320}
FILES = 50
ANSWER = "/namespaces/bench/collections/docs:answer"
SEARCH = "/namespaces/bench/collections/secret:search"


class _Slow(BaseClient):
    model = "mock-model"
    unpriced_ok = True

    async def asend(self, request: Request, /, *, on_text: Any = None) -> Reply:
        await anyio.sleep(MODEL_SECONDS)
        label = request.task.excerpts[0][0] if request.task else 0
        return Reply(
            ok=True, text=f"It is so [chunk {label}].", model=self.model, finish_reason="stop",
            usage=Usage(input=1, output=1),
        )  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Latency by askers at once, memory, and the cost of hostile requests."""
    with _served() as (url, headers):
        _load(url, headers, 1, 5)
        before = _peak_mib()
        loaded = [_load(url, headers, askers, count) for askers, count in ASKERS.items()]
        grown = _peak_mib() - before
        memory = {
            "what": f"peak memory over {sum(ASKERS.values())} answers",
            "value": f"{grown:+.0f} MiB", "target": "under 64 MiB", "met": grown < 64,
        }  # fmt: skip
        return [*loaded, memory, *_attacks(url, headers)]


@contextmanager
def _served() -> Iterator[tuple[str, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        engine = Collections(
            Path(folder, "bench.sqlite3"), client=_Slow(), ingestion=in_this_process
        )
        engine.create_namespace("bench")
        space = engine.namespace("bench")
        docs = space.create_collection("docs")
        secret = space.create_collection("secret", access_control="enforced")
        for place in range(FILES):
            text = (
                f"Port {place}. " + "The harbour office counted ships and cargo that month. " * 40
            )
            docs.add(f"/{place}.txt", text)
            secret.add(f"/{place}.txt", text, principals=["user:other"])
        key = engine.keys.create("cluster").secret
        with running(ServiceApp(engine, ServiceSettings(running=64))) as url:
            yield url, {"authorization": f"Bearer {key}"}
        engine.close()


def _load(url: str, headers: dict[str, str], askers: int, count: int) -> dict[str, Any]:
    key = headers["authorization"].split()[-1]
    asked = [sys.executable, "-m", "bench.engine", url, key, str(askers), str(count)]
    told = json.loads(subprocess.run(asked, capture_output=True, check=True, cwd=ROOT).stdout)
    ranked, failed = sorted(told["seconds"]), told["failed"]
    return {
        "what": f"{askers} askers, {count} answers",
        "p50 ms": 1000 * ranked[len(ranked) // 2],
        "p99 ms": 1000 * ranked[min(len(ranked) - 1, len(ranked) * 99 // 100)],
        "value": f"{failed} errors", "target": "no errors", "met": failed == 0,
    }  # fmt: skip


async def _ask(url: str, key: str, askers: int, count: int) -> dict[str, Any]:
    """Each asker on a connection of its own, in plain bytes: a client's pool would be measured."""
    seconds: list[float] = []
    failed = 0
    left = iter(range(count))
    place = httpx.URL(url)

    async def asker() -> None:
        nonlocal failed
        async with await anyio.connect_tcp(place.host, place.port or 80) as stream:
            for number in left:
                began = time.perf_counter()
                await stream.send(_question(key, number))
                failed += not await _answered(stream)
                seconds.append(time.perf_counter() - began)

    async with anyio.create_task_group() as group:
        for _ in range(askers):
            group.start_soon(asker)
    return {"seconds": seconds, "failed": failed}


def _question(key: str, number: int) -> bytes:
    body = json.dumps({"query": f"What did port {number % FILES} count?"})
    head = f"POST {ANSWER} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    more = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return (head + more + body).encode()


async def _answered(stream: anyio.abc.ByteStream) -> bool:
    told = b""
    while b"\r\n\r\n" not in told:
        told += await stream.receive()
    head, _, body = told.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    while len(body) < length:
        body += await stream.receive()
    return head.startswith(b"HTTP/1.1 200")


def _attacks(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    with httpx.Client(base_url=url, headers=headers, timeout=60) as http:

        def post(path: str, body: dict[str, Any]) -> float:
            return min(wall_seconds(lambda: http.post(path, json=body)) for _ in range(5))

        many = [{"field": "bytes", "op": "eq", "value": n} for n in range(100_000)]
        bomb = post(ANSWER, {"query": "x", "filter": {"or": many}})
        letters = string.ascii_lowercase
        words = " ".join(f"{a}{b}{c}" for a in letters for b in letters for c in letters)[:32_000]
        wide = post(SEARCH, {"query": words, "principals": ["user:other"]})
        asked = {"query": "harbour", "principals": ["user:me"]}
        paths = ("/0.txt", "/no-such.txt")
        hidden, absent = (
            post(SEARCH, {**asked, "filter": {"field": "path", "op": "eq", "value": path}})
            for path in paths
        )
    size = len(json.dumps(many)) / 2**20
    return [
        _bound(f"SEC70: a filter of 100,000 clauses ({size:.1f} MiB) is refused", bomb, 1.0),
        _bound("SEC71: a question of 8,000 distinct words is searched", wide, 1.0),
        {
            "what": "SEC34: a hidden path against one that is not there",
            "value": f"{hidden / absent:.2f} times", "target": "0.5 to 2 times",
            "met": 0.5 <= hidden / absent <= 2,
        },
    ]  # fmt: skip


def _bound(what: str, seconds: float, most: float) -> dict[str, Any]:
    return {
        "what": what, "value": f"{1000 * seconds:.0f} ms", "target": f"under {1000 * most:.0f} ms",
        "met": seconds < most,
    }  # fmt: skip


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


if __name__ == "__main__":
    print(json.dumps(anyio.run(_ask, sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
