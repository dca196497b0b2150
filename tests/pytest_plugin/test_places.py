"""Where recordings lie: beside the tests, one for each, whatever the tests are called."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_integrations.pytest_plugin.places import file_name

Run = Callable[..., pytest.RunResult]
Recordings = Callable[[], dict[str, str]]

HEAD = """
import pytest
from harness_core import MockClient, call

def ask(harness_recording, text="Hello"):
    client = harness_recording.client(lambda: MockClient(lambda messages: messages[0]["content"]))
    assert call(client, text).text == text
"""


def files(recordings: Recordings) -> list[str]:
    return [Path(one).name for one in recordings()]


def test_each_case_of_a_parametrised_test_has_its_own(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app=HEAD
        + """
@pytest.mark.parametrize("text", ["a/b", "a:b", "ü", "x" * 400, "..", ""], ids=lambda text: text)
def test_it(harness_recording, text):
    ask(harness_recording, f"say {text}")

class TestIt:
    @pytest.mark.harness_recording("named")
    @pytest.mark.parametrize("text", ["one", "two"])
    def test_it(self, harness_recording, text):
        ask(harness_recording, text)

    def test_größe_東京(self, harness_recording):
        ask(harness_recording)
"""
    )
    run("once").assert_outcomes(passed=9)
    found = files(recordings)
    assert len(found) == 9
    assert {"named[one].jsonl", "named[two].jsonl", "TestIt.test_größe_東京.jsonl"} <= set(found)
    assert max(len(name.encode()) for name in found) <= 140
    run("none", "--harness-strict").assert_outcomes(passed=9)


def test_two_tests_of_one_name_are_told_apart_by_class_and_module(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    body = HEAD + "def test_it(harness_recording):\n    ask(harness_recording)\n"
    nested = "class TestA:\n  def test_it(self, harness_recording): ask(harness_recording)\n"
    pytester.makepyfile(test_one=body + nested, test_two=body)
    run("once").assert_outcomes(passed=3)
    assert list(recordings()) == [
        "recordings/test_one/TestA.test_it.jsonl",
        "recordings/test_one/test_it.jsonl",
        "recordings/test_two/test_it.jsonl",
    ]


@pytest.mark.parametrize("names", [("same", "same"), ("same", "Same"), ("test_a", None)])
def test_two_tests_with_one_recording_are_both_told(
    run: Run, pytester: pytest.Pytester, names: tuple[str, str | None], recordings: Recordings
) -> None:
    marks = [f"@pytest.mark.harness_recording({name!r})\n" if name else "" for name in names]
    pytester.makepyfile(
        test_app=HEAD
        + f"{marks[0]}def test_b(harness_recording): ask(harness_recording)\n"
        + f"{marks[1]}def test_a(harness_recording): ask(harness_recording)\n"
    )
    result = run("once")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*two tests have one recording*test_app.py::test_*Give one*"])
    assert recordings() == {}


def test_a_marker_cannot_lead_out_of_the_folder(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app=HEAD
        + """
@pytest.mark.harness_recording("../../../elsewhere")
def test_it(harness_recording): ask(harness_recording)
"""
    )
    run("once").assert_outcomes(passed=1)
    (path,) = recordings()
    assert path.startswith("recordings/test_app/_.._.._elsewhere-")


@given(st.text(), st.text())
def test_names_of_files_are_short_plain_and_differ_where_the_tests_do(one: str, other: str) -> None:
    name = file_name(one)
    assert len(name.encode()) <= 140
    assert not set(name) & set('/\\:*?"<>| \0\n')
    assert name not in ("", ".", "..")
    if file_name(other) == name:
        import unicodedata

        assert unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def test_workers_record_and_replay_their_own_tests(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app=HEAD
        + """
@pytest.mark.parametrize("text", list("abcdefgh"))
def test_it(harness_recording, text): ask(harness_recording, text)
"""
    )
    run("once", "-n", "2", apart=True).assert_outcomes(passed=8)
    kept = recordings()
    assert len(kept) == 8
    run("none", "-n", "2", "--harness-strict", apart=True).assert_outcomes(passed=8)
    run("all").assert_outcomes(passed=8)
    assert recordings() == kept


def test_async_tests_of_both_plugins_are_recorded(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app="""
        import asyncio
        import anyio
        import pytest
        from harness_core import MockClient, acall

        async def ask(harness_recording, text):
            client = harness_recording.client(
                lambda: MockClient(lambda messages: messages[0]["content"], concurrent=True)
            )
            reply = await acall(client, text)
            assert reply.text == text

        @pytest.mark.anyio
        async def test_anyio(harness_recording):
            await ask(harness_recording, "one")

        @pytest.mark.asyncio
        async def test_asyncio(harness_recording):
            await ask(harness_recording, "two")
        """
    )
    run("once").assert_outcomes(passed=3)
    assert files(recordings) == [
        "test_anyio[asyncio].jsonl", "test_anyio[trio].jsonl", "test_asyncio.jsonl",
    ]  # fmt: skip
    run("none", "--harness-strict").assert_outcomes(passed=3)
