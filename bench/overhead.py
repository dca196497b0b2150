"""What governing costs: our own CPU per model call, against frameworks that do less.

They neither count, price, hold nor record. LangChain's model counts by length here, since its
default counter downloads one; LlamaIndex counts with its own, as it comes.
"""

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from bench.timing import interleaved, ratio, wall_seconds
from harness_core import BaseClient, Governor, Reply, Request, Trace, new_chunks, read
from harness_core.documents.types import Chunks
from harness_core.models import register_model

CHUNKS = 1000
TEXT = "The harbour office counted ships, crews and cargo in every month of that year. " * 18
REPLY = "In that month the harbour office counted forty ships and three hundred crew."


def rows() -> list[dict[str, Any]]:
    """One row per comparison."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the chains compared with are deprecated
        return [*_per_call(), _parallel(), _import_time()]


class _Instant(BaseClient):
    model = "bench-model"
    api = "bench"
    base_url = "bench://"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
        if self.seconds:
            time.sleep(self.seconds)
        return Reply(ok=True, text=REPLY, finish_reason="stop")


def _chunks(count: int) -> Chunks:
    return new_chunks([f"Part {number}. {TEXT}" for number in range(count)])


def _ours(count: int, width: int, seconds: float = 0.0) -> Callable[[], int]:
    register_model(
        "bench-model", context_window=128_000, max_output=4096, input_usd=2, output_usd=8
    )
    chunks = _chunks(count)

    def run() -> int:
        trace = Trace(Governor(max_calls=None, max_cost_usd=None))
        spec = {"reader": "map_reduce", "max_concurrency": width}
        answer = read(chunks, "How many ships?", _Instant(seconds), spec, trace=trace)
        return answer.totals().calls

    return run


def _per_call() -> list[dict[str, Any]]:
    ours, langchain = _ours(CHUNKS, 1), _langchain(CHUNKS)
    refine, accumulate = _llama_index(CHUNKS)
    calls = {"ours": ours(), "langchain": langchain(), "refine": CHUNKS, "accumulate": CHUNKS}
    seconds = interleaved({
        "ours": ours, "langchain": langchain, "refine": refine, "accumulate": accumulate,
    })  # fmt: skip
    per_call = {name: [s / calls[name] for s in times] for name, times in seconds.items()}
    names = {
        "langchain": ("LangChain map_reduce chain", 1.0),
        "refine": ("LlamaIndex Refine", 0.25),
        "accumulate": ("LlamaIndex Accumulate", 0.25),
    }
    table: list[dict[str, Any]] = [{
        "what": f"map_reduce over {CHUNKS} chunks: counted, priced, held, recorded",
        "ms per call": min(per_call["ours"]) * 1e3,
    }]  # fmt: skip
    for name, (what, target) in names.items():
        found = ratio(per_call["ours"], per_call[name])
        table.append({
            "what": what,
            "ms per call": min(per_call[name]) * 1e3,
            "ours / theirs": found,
            "target": f"under {target}",
            "met": found < target,
        })  # fmt: skip
    return table


def _langchain(count: int) -> Callable[[], int]:
    from langchain_classic.chains.combine_documents.map_reduce import MapReduceDocumentsChain
    from langchain_classic.chains.combine_documents.reduce import ReduceDocumentsChain
    from langchain_classic.chains.combine_documents.stuff import StuffDocumentsChain
    from langchain_classic.chains.llm import LLMChain
    from langchain_core.documents import Document
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import PromptTemplate

    class Counted(FakeListChatModel):
        def get_num_tokens(self, text: str) -> int:
            return len(text) // 4

    model = Counted(responses=[REPLY])
    ask = LLMChain(llm=model, prompt=PromptTemplate.from_template("How many ships? {text}"))
    merge = LLMChain(llm=model, prompt=PromptTemplate.from_template("Merge: {text}"))
    stuff = StuffDocumentsChain(llm_chain=merge, document_variable_name="text")
    chain = MapReduceDocumentsChain(
        llm_chain=ask,
        reduce_documents_chain=ReduceDocumentsChain(combine_documents_chain=stuff),
        document_variable_name="text",
    )
    documents = [Document(page_content=chunk.text) for chunk in _chunks(count)]

    def run() -> int:
        chain.invoke({"input_documents": documents})
        return count + count // 100  # its collapse levels, at its fixed 3,000 tokens

    return run


def _llama_index(count: int) -> tuple[Callable[[], object], Callable[[], object]]:
    from llama_index.core.llms import MockLLM
    from llama_index.core.response_synthesizers import Accumulate, Refine

    texts = [chunk.text for chunk in _chunks(count)]
    llm = MockLLM(max_tokens=12)
    refine, accumulate = Refine(llm=llm), Accumulate(llm=llm)
    return (
        lambda: refine.get_response("How many ships?", texts),
        lambda: accumulate.get_response("How many ships?", texts),
    )


def _parallel() -> dict[str, Any]:
    count, width, latency = 160, 8, 0.05
    run = _ours(count, width, latency)
    calls = run()
    ideal = -(-(calls - 1) // width) * latency + latency
    found = min(wall_seconds(run) for _ in range(2)) / ideal
    return {
        "what": f"wall time of {calls} calls of 50 ms with {width} workers against the ideal",
        "ours / theirs": found,
        "target": "under 1.1",
        "met": found < 1.1,
    }


def _import_time() -> dict[str, Any]:
    def seconds(code: str) -> float:
        timed = f"import time; s = time.process_time(); {code}; print(time.process_time() - s)"
        runs = [
            subprocess.run(
                [sys.executable, "-c", timed], capture_output=True, text=True, check=True
            )
            for _ in range(5)
        ]
        return min(float(run.stdout) for run in runs)

    found = seconds("import harness_core; harness_core.read, harness_core.Trace")
    return {
        "what": "import harness_core and its first names, CPU seconds",
        "seconds": found,
        "target": "under 0.3",
        "met": found < 0.3,
    }
