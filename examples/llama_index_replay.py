"""An existing query engine recorded once, and replayed in pytest with sockets blocked."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from llama_index.core import Document, SummaryIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from harness_integrations.llama_index.testing import record

TEST = """
import socket
import sys

import pytest

sys.path.insert(0, {examples!r})
from llama_index_replay import engine

from harness_integrations.llama_index.testing import ReplayLLM


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch):
    def closed(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", closed)


def test_the_engine_answers_as_recorded():
    llm = ReplayLLM({recording!r})
    assert str(engine(llm).query("When was the bridge built?")) == "It was built in 1884."
    llm.assert_all_used()


def test_another_question_is_no_guess():
    llm = ReplayLLM({recording!r})
    with pytest.raises(RuntimeError, match="no recorded reply"):
        engine(llm).query("Who built the bridge?")
"""


class HouseLLM(CustomLLM):
    """Stands for your LLM."""

    model: str = "gpt-4o-mini"
    max_tokens: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        """Its window, its cap, its name."""
        return LLMMetadata(
            context_window=128_000, num_output=self.max_tokens or -1, model_name=self.model
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer."""
        return CompletionResponse(text="It was built in 1884.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Answer in one piece."""
        yield CompletionResponse(text="It was built in 1884.", delta="It was built in 1884.")


def engine(llm: LLM) -> Any:
    """The app under test: an engine of LlamaIndex's own, as it was before."""
    notes = Document(
        text="The old bridge was built in 1884.",
        metadata={"file_path": str(Path.cwd() / "notes.txt")},
    )
    return SummaryIndex.from_documents([notes]).as_query_engine(llm=llm)


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]


def main() -> None:
    """Record, write the test, run it."""
    with tempfile.TemporaryDirectory(prefix="replay-") as name:
        folder = Path(name)
        recording = folder / "run.jsonl"
        with record(HouseLLM(), recording) as llm:
            print(f"Live      {engine(llm).query('When was the bridge built?')}")
        test = folder / "test_engine.py"
        test.write_text(TEST.format(examples=str(Path(__file__).parent), recording=str(recording)))
        done = subprocess.run([*PYTEST, test], capture_output=True, text=True, check=False)  # noqa: S603 - ours
        passed = "2 passed" in done.stdout
        print(f"Replayed  {'2 tests passed, no socket opened' if passed else done.stdout}")


if __name__ == "__main__":
    main()
