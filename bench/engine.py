"""The service under load, on loopback, with a model that takes 200 ms; and what attackers may cost.

The askers are another process: ``python -m bench.engine URL KEY ASKERS ANSWERS``.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import httpx

from bench.attacks import attacks
from harness_core import BaseClient
from harness_core.collections import Collections, in_this_process
from harness_core.messages import Reply, Request, Usage
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from harness_integrations.engine.service.settings import ServiceSettings

ROOT: Final = Path(__file__).parents[1]
MODEL_SECONDS: Final = 0.2
ASKERS: Final = {1: 20, 16: 480}
MANY: Final = 64
WARM, HALF = 500, 5_000
FILES: Final = 50
GROWTH_MIB: Final = 64
ANSWER: Final = "/namespaces/bench/collections/docs:answer"


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
    """Latency by askers at once, memory over 10,000 answers, and the cost of hostile requests."""
    with _served(ServiceSettings(running=MANY)) as (url, headers):
        _load(url, headers, 1, 5)  # what is loaded at the first question takes its own time
        loaded = [_load(url, headers, askers, count) for askers, count in ASKERS.items()]
        loaded += _lasting(url, headers)
    with _served(ServiceSettings()) as (url, headers):
        usual = _load(url, headers, MANY, 320)
        usual["what"] += f", {ServiceSettings().running} running as usual"
        return [*loaded, usual, *attacks(url, headers)]


def _lasting(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    """Ten thousand answers in two halves: what memory does after the first."""
    _load(url, headers, MANY, WARM)
    peak, began = _peak_mib(), _resident_mib()
    first = _load(url, headers, MANY, HALF)
    middle = _resident_mib()
    second = _load(url, headers, MANY, HALF)
    ended = _resident_mib()
    grown = max(_peak_mib() - peak, ended - began)
    return [
        first,
        second,
        {
            "what": f"memory over those {2 * HALF:,} answers, peak and resident",
            "value": f"{_peak_mib() - peak:+.0f} and {ended - began:+.0f} MiB, in the second half "
            f"{1000 * (ended - middle) / HALF:+.2f} MiB a thousand",
            "target": f"under {GROWTH_MIB} MiB", "met": grown < GROWTH_MIB,
        },
    ]  # fmt: skip


@contextmanager
def _served(settings: ServiceSettings) -> Iterator[tuple[str, dict[str, str]]]:
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
            docs.add(f"/{place:02}.txt", text)
            who = "user:me" if place % 2 else "user:other"
            secret.add(f"/{place:02}.txt", text, principals=[who])
        key = engine.keys.create("cluster").secret
        with running(ServiceApp(engine, settings)) as url:
            yield url, {"authorization": f"Bearer {key}"}
        engine.close()


def _load(url: str, headers: dict[str, str], askers: int, count: int) -> dict[str, Any]:
    key = headers["authorization"].split()[-1]
    asked = [sys.executable, "-m", "bench.engine", url, key, str(askers), str(count)]
    spent = time.process_time()
    told = json.loads(subprocess.run(asked, capture_output=True, check=True, cwd=ROOT).stdout)
    spent = time.process_time() - spent
    ranked, failed = sorted(told["seconds"]), told["failed"]
    return {
        "what": f"{askers} at a time, {count:,} answers",
        "p50 ms": 1000 * ranked[len(ranked) // 2],
        "p99 ms": 1000 * ranked[min(len(ranked) - 1, len(ranked) * 99 // 100)],
        "CPU ms each": 1000 * spent / count,
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


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _resident_mib() -> float:
    """What is held now; the peak, where the system does not say."""
    said = Path("/proc/self/statm")
    if not said.exists():
        return _peak_mib()
    return int(said.read_text().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    print(json.dumps(anyio.run(_ask, sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
