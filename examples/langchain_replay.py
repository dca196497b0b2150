"""An existing chain, recorded once and replayed in a pytest test with sockets blocked.

The chain is the app's own and is not changed: ``record`` gives it back with its model governed, and
the test puts a replayed model in the real one's place.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable

from harness_integrations.langchain.testing import record

TEST = """
import socket

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from harness_core import ReplayMissError
from harness_integrations.langchain.testing import ReplayChatModel


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a test opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)


def translate(model):
    return ChatPromptTemplate.from_template("In French: {text}") | model | StrOutputParser()


def test_the_translation_is_what_it_was():
    model = ReplayChatModel("RECORDING")
    assert translate(model).invoke({"text": "good morning"}) == "bonjour"
    model.assert_all_used()


def test_a_changed_prompt_is_noticed():
    with pytest.raises(ReplayMissError, match="differs at character"):
        translate(ReplayChatModel("RECORDING")).invoke({"text": "good evening"})
"""


class HouseModel(FakeListChatModel):
    """Stands for your chat model; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"


def translate(model: BaseChatModel) -> Runnable[Any, str]:
    """The app's chain."""
    prompt = ChatPromptTemplate.from_template("In French: {text}")
    return prompt | model | StrOutputParser()


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]


def main() -> None:
    """Record a run of the chain, write a test that replays it, run the test."""
    with tempfile.TemporaryDirectory(prefix="harness-replay-") as name:
        folder = Path(name)
        recording = folder / "translate.jsonl"
        with record(translate(HouseModel(responses=["bonjour"])), recording) as chain:
            print(f"Live      {chain.invoke({'text': 'good morning'})}")
        test = folder / "test_translate.py"
        test.write_text(TEST.replace("RECORDING", recording.as_posix()))
        done = subprocess.run([*PYTEST, test], capture_output=True, text=True, check=False)  # noqa: S603 - ours
        passed = "2 passed" in done.stdout
        print(f"Replayed  {'2 tests passed, no socket opened' if passed else done.stdout}")


if __name__ == "__main__":
    main()
