"""What governing, watching and replaying cost inside LangChain, against LangChain itself.

The model under all of them is ``ChatOpenAI``. What governing adds is compared with a call to a
server in another process on this machine: CPU of this process alone, sockets included.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from bench.timing import interleaved, ratio
from harness_core import Governor, Trace
from harness_core.models import register_model

CALLS = 150
ROUNDS = 11
STEPS = 200
NOWHERE = "http://127.0.0.1:9/v1"
PROMPT = "The harbour office counted ships and cargo in that month. " * 20


def rows() -> list[dict[str, Any]]:
    """One row per measurement."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        register_model(
            "bench-chat", context_window=128_000, max_output=4096, input_usd=2, output_usd=8
        )
        return [*_per_call(), *_replays()]


def _per_call() -> list[dict[str, Any]]:
    from harness_integrations.langchain import GovernedChatModel, trace_calls

    with _server() as url:
        bare, instant = _model(url), _model()
        wrapped = GovernedChatModel(bare, trace=_trace())

        def governed() -> None:
            _asked(wrapped)

        def watched() -> None:
            with trace_calls(_trace()):
                _asked(bare)

        seconds = interleaved(
            {
                "instant": lambda: _asked(instant),
                "bare": lambda: _asked(bare),
                "governed": governed,
                "watched": watched,
            },
            rounds=ROUNDS,
        )
    ms = {name: [s / CALLS * 1e3 for s in times] for name, times in seconds.items()}
    table: list[dict[str, Any]] = [
        {"what": "ChatOpenAI.invoke, no socket at all", "ms per call": min(ms["instant"])},
        {"what": "ChatOpenAI.invoke, a server on this machine", "ms per call": min(ms["bare"])},
    ]
    for name, what in (
        ("governed", "GovernedChatModel: what it adds"),
        ("watched", "TraceCallbackHandler: what it adds"),
    ):
        added = [max(a - b, 0.0) for a, b in zip(ms[name], ms["bare"], strict=True)]
        share = ratio(added, ms["bare"])
        table.append({
            "what": what,
            "ms per call": median(added),
            "ours / theirs": share,
            "target": "under 0.5 ms and under 0.25",
            "met": median(added) < 0.5 and share < 0.25,
        })  # fmt: skip
    return table


def _replays() -> list[dict[str, Any]]:
    """A recorded run of a chain, replayed by us and from a cassette of the same requests."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        return _replayed_in(Path(name))


def _replayed_in(folder: Path) -> list[dict[str, Any]]:
    from harness_integrations.langchain.testing import ReplayChatModel, record

    recording, cassette = folder / "run.jsonl", folder / "run.yaml"
    with record(_model(), recording, max_calls=None, max_cost_usd=None) as model:
        for number in range(STEPS):
            model.invoke(f"{number} {PROMPT}")
    _write_cassette(cassette)
    plain = _model(NOWHERE)

    def replayed() -> None:
        model = ReplayChatModel(recording)
        for number in range(STEPS):
            model.invoke(f"{number} {PROMPT}")

    def played() -> None:
        import vcr  # type: ignore[import-untyped]  # it ships no types

        tape = vcr.VCR(record_mode="none", match_on=["method", "uri", "body"])
        with tape.use_cassette(str(cassette)):
            for number in range(STEPS):
                plain.invoke(f"{number} {PROMPT}")

    seconds = interleaved({"ours": replayed, "vcrpy": played}, rounds=2)
    found = ratio(seconds["vcrpy"], seconds["ours"])
    return [
        {"what": f"ReplayChatModel, {STEPS} requests, loading included",
         "ms per call": min(seconds["ours"]) / STEPS * 1e3},
        {"what": "vcrpy cassette of the same requests, loading included",
         "ms per call": min(seconds["vcrpy"]) / STEPS * 1e3, "theirs / ours": found,
         "target": "at least 10", "met": found >= 10},
    ]  # fmt: skip


def _asked(model: Any) -> None:
    for number in range(CALLS):
        model.invoke(f"{number} {PROMPT}")


def _trace() -> Trace:
    return Trace(Governor(max_calls=None, max_cost_usd=1000.0))


def _model(url: str | None = None) -> Any:
    """A chat model of the server at ``url``; without one, of nobody: its answers are made here."""
    import httpx
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    answer: Callable[[httpx.Request], httpx.Response] = _answer
    here = httpx.Client(transport=httpx.MockTransport(answer))
    return ChatOpenAI(
        model="bench-chat", api_key=SecretStr("k"), base_url=url or NOWHERE,
        max_completion_tokens=100, http_client=here if url is None else httpx.Client(),
    )  # fmt: skip


@contextmanager
def _server() -> Iterator[str]:
    """The address of a server in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-c", "from bench.langchain import serve; serve()"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if child.stdout is None:
            raise RuntimeError("the server has no output")
        yield f"http://127.0.0.1:{child.stdout.readline().strip()}/v1"
    finally:
        child.terminate()
        child.wait()


def serve() -> None:
    """Answer at once, until terminated; the port is the first line of output."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(_completion(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def _answer(request: Any) -> Any:
    import httpx

    return httpx.Response(200, json=_completion(json.loads(request.content)))


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    asked = body["messages"][0]["content"]
    said = f"In that month the harbour office counted forty ships: {asked[:9]}"
    message = {"role": "assistant", "content": said}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 220, "completion_tokens": 14, "total_tokens": 234},
    }  # fmt: skip


def _write_cassette(path: Path) -> None:
    """The cassette that vcrpy writes of the same run, recorded against the instant transport."""
    import httpx
    import yaml  # type: ignore[import-untyped]  # vcrpy brings it, without types
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    bodies: list[bytes] = []

    def keep(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200, json=_completion(json.loads(request.content)))

    model = ChatOpenAI(
        model="bench-chat", api_key=SecretStr("k"), base_url=NOWHERE, max_completion_tokens=100,
        http_client=httpx.Client(transport=httpx.MockTransport(keep)),
    )  # fmt: skip
    for number in range(STEPS):
        model.invoke(f"{number} {PROMPT}")
    interactions = [
        {
            "request": {
                "method": "POST", "uri": f"{NOWHERE}/chat/completions",
                "body": body.decode(), "headers": {"content-type": ["application/json"]},
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {"content-type": ["application/json"]},
                "body": {"string": json.dumps(_completion(json.loads(body)))},
            },
        }
        for body in bodies
    ]  # fmt: skip
    path.write_text(yaml.dump({"version": 1, "interactions": interactions}))
