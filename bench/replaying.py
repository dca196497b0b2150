"""Loading and replaying a 1,000-step trace, against vcrpy playing the same requests back."""

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from bench.timing import interleaved, ratio
from harness_core import BaseClient, Governor, ReplayClient, Reply, Request, Trace
from harness_core.calls.api import run_flow
from harness_core.flows.ask import ask_all
from harness_core.messages import Message
from harness_core.models import register_model

STEPS = 1000
PROMPT = "The harbour office counted ships and cargo. " * 90


def rows() -> list[dict[str, Any]]:
    """One row per way of playing back."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        return _rows(Path(name))


def _rows(folder: Path) -> list[dict[str, Any]]:
    trace, cassette = _recorded(folder), _cassette(folder)

    def replayed() -> None:
        client = ReplayClient(trace)
        run_flow(_asking(), client, Trace(Governor(max_calls=None, max_cost_usd=None)), width=1)

    def played() -> None:
        import httpx
        import vcr  # type: ignore[import-untyped]  # ships no types

        matching = ["method", "uri", "body"]
        with vcr.use_cassette(str(cassette), record_mode="none", match_on=matching):
            client = httpx.Client()
            for number in range(0, STEPS, 10):
                client.post("http://127.0.0.1:9/v1/chat", json=_body(number))

    seconds = interleaved({"ours": replayed, "vcrpy": played}, rounds=2)
    mine = [s / STEPS for s in seconds["ours"]]
    theirs = [s / (STEPS // 10) for s in seconds["vcrpy"]]
    found = ratio(mine, theirs)
    size = trace.stat().st_size / 1e6
    return [
        {"what": f"load and replay a trace of {STEPS} steps", "ms per call": min(mine) * 1e3,
         "MB": size},
        {"what": f"vcrpy, body matched, {STEPS} recorded (100 played)",
         "ms per call": min(theirs) * 1e3, "MB": cassette.stat().st_size / 1e6,
         "ours / theirs": found, "target": "under 0.01", "met": found < 0.01},
    ]  # fmt: skip


class _Instant(BaseClient):
    model = "bench-model"
    api = "bench"

    def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
        return Reply(ok=True, text=f"Reply to {request.messages[0].content[:12]}")


def _asking() -> Any:
    return ask_all(
        Request(messages=(Message("user", f"{number} {PROMPT}"),), max_output=200)
        for number in range(STEPS)
    )


def _recorded(folder: Path) -> Path:
    register_model(
        "bench-model", context_window=128_000, max_output=4096, input_usd=2, output_usd=8
    )
    path = folder / "run.jsonl"
    trace = Trace(Governor(max_calls=None, max_cost_usd=None), path=path)
    run_flow(_asking(), _Instant(), trace, width=1)
    trace.close()
    return path


def _body(number: int) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": f"{number} {PROMPT}"}]}


def _cassette(folder: Path) -> Path:
    """A cassette as vcrpy writes it, made by hand: recording it would take minutes."""
    import yaml  # type: ignore[import-untyped]  # vcrpy brings it, without types

    interactions = [
        {
            "request": {
                "method": "POST", "uri": "http://127.0.0.1:9/v1/chat",
                "body": json.dumps(_body(number), separators=(",", ":")),
                "headers": {"content-type": ["application/json"]},
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {"content-type": ["application/json"]},
                "body": {"string": json.dumps({"text": f"Reply {number}"})},
            },
        }
        for number in range(STEPS)
    ]  # fmt: skip
    path = folder / "cassette.yaml"
    path.write_text(yaml.dump({"version": 1, "interactions": interactions}))
    return path
