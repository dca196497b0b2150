"""What governing, watching and reading cost inside LlamaIndex, against LlamaIndex itself.

The LLM under all of them answers at once, so that what is measured is the framework's work and
ours. Both sides count tokens by characters.
"""

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.timing import interleaved, ratio
from harness_core import Governor, Trace
from harness_core.models import register_model

CALLS = 300
NODES = 1000
FEW = 100
"""Nodes for what takes long; its figures are per request, or scaled and said so."""

TEXT = "The harbour office counted ships, crews and cargo in every month of that year. " * 12
REPLY = "In that month the harbour office counted forty ships and three hundred crew."
QUESTION = "How many ships?"
MOST_CALLS = 400


def rows() -> list[dict[str, Any]]:
    """One row per measurement."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        register_model(
            "bench-llm", context_window=16_000, max_output=1000, input_usd=2, output_usd=8
        )
        return [*_per_call(), *_synthesizers(), *_endless()]


def _llm(reply: Callable[[str], str] = lambda prompt: REPLY, window: int = 16_000) -> Any:
    from llama_index.core import set_global_tokenizer
    from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
    from llama_index.core.llms import CustomLLM
    from llama_index.core.llms.callbacks import llm_completion_callback

    set_global_tokenizer(lambda text: [0] * (len(text) // 4))

    class Instant(CustomLLM):
        model: str = "bench-llm"
        max_tokens: int | None = 1000
        asked: list[int] = []  # noqa: RUF012 - a field

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(
                context_window=window, num_output=self.max_tokens or -1, model_name=self.model
            )

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            self.asked.append(len(prompt))
            return CompletionResponse(text=reply(prompt))

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            yield CompletionResponse(text=REPLY, delta=REPLY)

    return Instant(asked=[])


def _openai() -> Any:
    """The real OpenAI class over a transport that answers at once."""
    import httpx
    from llama_index.llms.openai import OpenAI

    body = {
        "id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": REPLY}}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 16, "total_tokens": 316},
    }  # fmt: skip
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))
    client = httpx.Client(transport=transport)
    return OpenAI(model="gpt-4o-mini", api_key="x", http_client=client, max_retries=0)


def _trace() -> Trace:
    return Trace(Governor(max_calls=None, max_cost_usd=None))


def _asked(llm: Any) -> None:
    from llama_index.core.llms import ChatMessage

    for number in range(CALLS):
        llm.chat([ChatMessage(role="user", content=f"{number} {TEXT}")])


def _per_call() -> list[dict[str, Any]]:
    from harness_integrations.llama_index import GovernedLLM, instrument

    bare = _openai()

    def watched() -> None:
        with instrument(_trace()):
            _asked(bare)

    _asked(bare)  # what is made on first use is made
    _asked(GovernedLLM(bare, trace=_trace()))
    seconds = interleaved(
        {
            "bare": lambda: _asked(bare),
            "governed": lambda: _asked(GovernedLLM(bare, trace=_trace())),
            "watched": watched,
        },
        rounds=5,
    )
    ms = {name: [s / CALLS * 1e3 for s in times] for name, times in seconds.items()}
    table: list[dict[str, Any]] = [{
        "what": "OpenAI.chat, an instant transport", "ms per call": min(ms["bare"]),
    }]  # fmt: skip
    for name, what in (
        ("governed", "GovernedLLM: what it adds to it"),
        ("watched", "TraceEventHandler: what it adds to it"),
    ):
        added = median(a - b for a, b in zip(ms[name], ms["bare"], strict=True))
        share = ratio(ms[name], ms["bare"]) - 1
        table.append({
            "what": what,
            "ms per call": added,
            "ours / theirs": share,
            "target": "under 1 ms and under 0.75",
            "met": added < 1.0 and share < 0.75,
        })  # fmt: skip
    return table


def _nodes(count: int, text: str = TEXT) -> list[Any]:
    from llama_index.core.schema import NodeWithScore, TextNode

    return [
        NodeWithScore(node=TextNode(id_=f"n{number}", text=f"Part {number}. {text}"))
        for number in range(count)
    ]


def _synthesizers() -> list[dict[str, Any]]:
    from llama_index.core.response_synthesizers import CompactAndRefine, Refine, TreeSummarize

    from harness_integrations.llama_index import ReaderSynthesizer

    counts = {"map_reduce": NODES, "Refine": NODES, "CompactAndRefine": FEW, "TreeSummarize": FEW}
    nodes = {name: _nodes(count) for name, count in counts.items()}
    llms = {name: _llm() for name in counts}
    trace = Governor(max_calls=None, max_cost_usd=None)
    made: dict[str, Any] = {
        "map_reduce": lambda llm: ReaderSynthesizer(
            "map_reduce", llm, trace=Trace(trace), spec={"max_concurrency": 1}
        ),
        "Refine": lambda llm: Refine(llm=llm),
        "CompactAndRefine": lambda llm: CompactAndRefine(llm=llm),
        "TreeSummarize": lambda llm: TreeSummarize(llm=llm),
    }

    def run(name: str) -> Callable[[], object]:
        return lambda: made[name](llms[name]).synthesize(QUESTION, nodes[name])

    requests: dict[str, int] = {}
    for name in counts:
        llms[name].asked.clear()
        run(name)()
        requests[name] = len(llms[name].asked)
    seconds = interleaved({name: run(name) for name in counts})
    per = {name: [s / requests[name] for s in times] for name, times in seconds.items()}
    table: list[dict[str, Any]] = [{
        "what": f"ReaderSynthesizer map_reduce over {NODES} nodes, priced, held, recorded",
        "ms per call": min(per["map_reduce"]) * 1e3,
        "requests": requests["map_reduce"],
    }]  # fmt: skip
    for name, target in (("Refine", 1.5), ("CompactAndRefine", 0.1), ("TreeSummarize", 0.1)):
        scale = NODES // counts[name]
        said = "" if scale == 1 else f" (measured over {counts[name]}, requests scaled)"
        found = ratio(per["map_reduce"], per[name])
        table.append({
            "what": f"{name} over {NODES} nodes{said}: CPU per request",
            "ms per call": min(per[name]) * 1e3,
            "requests": requests[name] * scale,
            "ours / theirs": found,
            "target": f"under {target}",
            "met": found < target,
        })  # fmt: skip
    return table


class _Endless(Exception):
    """More requests than any reading of three nodes needs."""


def _endless() -> list[dict[str, Any]]:
    """Summaries that do not shrink: who comes to an end, and after how many requests."""
    from llama_index.core.response_synthesizers import TreeSummarize

    from harness_integrations.llama_index import ReaderSynthesizer

    register_model("bench-llm", context_window=1000, max_output=250, input_usd=2, output_usd=8)

    def counted(make: Callable[[Any], Any]) -> tuple[int, bool]:
        seen: list[int] = []
        started = time.perf_counter()

        def reply(_prompt: str) -> str:
            seen.append(1)
            if len(seen) >= MOST_CALLS:
                raise _Endless
            return "the harbour office counted every ship of that year and its cargo " * 50

        llm = _llm(reply, window=1000)
        llm.max_tokens = 250
        try:
            make(llm).synthesize(QUESTION, _nodes(3, TEXT * 2))
        except (_Endless, RecursionError):
            return len(seen), False
        return len(seen), time.perf_counter() - started < 60

    mine, ended = counted(
        lambda llm: ReaderSynthesizer("hierarchical", llm, spec={"max_answer_tokens": 250})
    )
    theirs, also = counted(lambda llm: TreeSummarize(llm=llm))
    register_model("bench-llm", context_window=16_000, max_output=1000, input_usd=2, output_usd=8)
    stopped = "" if also else f" and was stopped at {MOST_CALLS}"
    return [{
        "what": f"summaries that do not shrink, 3 nodes: hierarchical ends; TreeSummarize{stopped}",
        "requests": mine,
        "ours / theirs": mine / theirs,
        "target": "ends",
        "met": ended,
    }]  # fmt: skip
