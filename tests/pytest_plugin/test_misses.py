"""What a test hears when its app asks for something else than was recorded."""

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]
Recordings = Callable[[], dict[str, str]]

APP = """
from harness_core import MockClient, Trace, Governor, call, ReplayMissError

def ask(client, question, **settings):
    return call(client, question, **settings).unwrap().text

def test_it(harness_recording):
    client = harness_recording.client(lambda: MockClient(lambda messages: "Twelve."))
    {body}
"""


def app(pytester: pytest.Pytester, *lines: str) -> None:
    pytester.makepyfile(test_app=APP.format(body="\n    ".join(lines)))


def test_a_miss_shows_what_changed_against_the_nearest_request_and_how_to_record_it(
    run: Run, pytester: pytest.Pytester
) -> None:
    app(
        pytester,
        'ask(client, "What is the weather like at the harbour today?")',
        'ask(client, "Read this first. How many passengers can the Dunlin carry?", max_output=50)',
    )
    run("once").assert_outcomes(passed=1)
    app(
        pytester,
        'ask(client, "Read this first. How many people can the Dunlin carry?", max_output=60,'
        ' schema={"type": "object"})',
    )
    result = run("none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*recording recordings/test_app/test_it.jsonl does not hold this 'call' request."
            " Against the nearest of its 2 requests (step 2, 'call'):*",
            "*max_output: 50 was recorded, 60 is asked*",
            "*schema: none was recorded, * is asked*",
            "*message 1 (user), recorded (-) and asked (+):*",
            "* -How many passengers can the Dunlin carry?*",
            "* +How many people can the Dunlin carry?*",
            '*missing: pytest "test_app.py::test_it" --harness-record=new*',
            '*anew: pytest "test_app.py::test_it" --harness-record=all*',
        ]
    )


def test_a_request_too_many_says_that_it_is_recorded_once(
    run: Run, pytester: pytest.Pytester
) -> None:
    app(pytester, 'ask(client, "Hello")')
    run("once").assert_outcomes(passed=1)
    app(pytester, 'ask(client, "Hello")', 'ask(client, "Hello")')
    result = run("none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ReplayExhausted*", "*--harness-record=new*"])


def test_a_miss_that_the_test_swallowed_fails_it_all_the_same(
    run: Run, pytester: pytest.Pytester
) -> None:
    app(pytester, 'ask(client, "Hello")')
    run("once").assert_outcomes(passed=1)
    app(
        pytester,
        "try:",
        '    ask(client, "Goodbye")',
        "except RuntimeError:",
        "    pass",
    )
    result = run("none")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*went on after a request that its recording does not answer*"])


def test_unused_replies_fail_under_strict_alone(run: Run, pytester: pytest.Pytester) -> None:
    app(pytester, 'ask(client, "Hello")', 'ask(client, "Goodbye")')
    run("once").assert_outcomes(passed=1)
    app(pytester, 'ask(client, "Hello")')
    run("none").assert_outcomes(passed=1)
    result = run("none", "--harness-strict")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 recorded request(s) of *were not made*", "*step 2*'Goodbye'*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_recordings_of_tests_that_are_gone_fail_the_run_under_strict(
    run: Run, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    app(pytester, 'ask(client, "Hello")')
    run("once").assert_outcomes(passed=1)
    old = pytester.path / "recordings" / "test_app" / "test_it.jsonl"
    old.with_name("test_gone.jsonl").write_text(old.read_text())
    assert run("none").ret == 0
    result = run("none", "--harness-strict", *workers, apart=bool(workers))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*no test uses the recording *test_gone.jsonl*"])
    assert run("none", "--harness-strict", "test_app.py::test_it").ret == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-40],
        lambda text: text.replace('{"step"', '<<<<<<< HEAD\n{"step"', 1),
        lambda text: "no trace at all\n",
        lambda text: "",
        lambda text: text.replace('"label"', '"lable"'),
    ],
    ids=["cut off", "merge conflict", "no trace", "empty", "no step"],
)
def test_a_damaged_recording_is_named(
    run: Run, pytester: pytest.Pytester, damage: Callable[[str], str]
) -> None:
    app(pytester, 'ask(client, "Hello")')
    run("once").assert_outcomes(passed=1)
    path = pytester.path / "recordings" / "test_app" / "test_it.jsonl"
    path.write_text(damage(path.read_text()))
    result = run("none")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*ReplayUnreadableError: the recording *test_it.jsonl cannot be read*anew: pytest*all*"]
    )
    run("all").assert_outcomes(passed=1)


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_sent(
    run: Run, pytester: pytest.Pytester
) -> None:
    app(pytester, "assert ask(client, 'Hello') and False, 'it was sent'")
    (pytester.path / "recordings").write_text("a file where the folder should be")
    result = run("once")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TraceError: the recording *cannot be written*replay only*"])
    result.stdout.no_fnmatch_line("*it was sent*")


def test_the_limits_of_the_recorded_run_are_in_force_in_its_replay(
    run: Run, pytester: pytest.Pytester
) -> None:
    body = (
        "run = Trace(Governor(max_calls=1))",
        'replies = [call(client, word, trace=run) for word in ("one", "two")]',
        'assert [reply.reason for reply in replies] == [None, "calls"]',
    )
    app(pytester, *body)
    run("once").assert_outcomes(passed=1)
    run("none", "--harness-strict").assert_outcomes(passed=1)


UNPRICED = """
from harness_core import CallableClient, call

def test_it(harness_recording):
    client = harness_recording.client(
        lambda: CallableClient(lambda messages: "Twelve.", model="nobody-priced-it")
    )
    {limits}
    reply = call(client, "How many?", max_output=9, trace=harness_recording.trace)
    {end}
"""
ALLOWED = "harness_recording.limits(allow_unpriced=True)"


@pytest.mark.parametrize(
    ("end", "outcome"),
    [("assert reply.ok", {"failed": 1}), ("assert reply.reason", {"passed": 1, "errors": 1})],
    ids=["failing", "passing"],
)
def test_a_run_that_was_refused_for_want_of_a_price_leaves_no_recording(
    run: Run, pytester: pytest.Pytester, recordings: Recordings, end: str, outcome: dict[str, int]
) -> None:
    pytester.makepyfile(test_app=UNPRICED.format(limits="", end=end))
    result = run("once", "-W", "ignore")
    result.assert_outcomes(**outcome)
    result.stdout.fnmatch_lines(
        ["*nothing was recorded in recordings/*(unpriced)*.limits(allow_unpriced=True)*"]
    )
    assert recordings() == {}
    pytester.makepyfile(test_app=UNPRICED.format(limits=ALLOWED, end="assert reply.ok"))
    run("once", "-W", "ignore").assert_outcomes(passed=1)
    run("none", "-W", "ignore", "--harness-strict").assert_outcomes(passed=1)


@pytest.mark.parametrize(("end", "kept"), [("assert reply.ok", 0), ("assert not reply.ok", 1)])
def test_a_run_that_a_limit_refused_whole_is_kept_where_the_test_was_there_for_it(
    run: Run, pytester: pytest.Pytester, recordings: Recordings, end: str, kept: int
) -> None:
    none = "harness_recording.limits(max_calls=0, allow_unpriced=True)"
    pytester.makepyfile(test_app=UNPRICED.format(limits=none, end=end))
    run("once", "-W", "ignore").assert_outcomes(passed=kept, failed=1 - kept)
    assert len(recordings()) == kept
    result = run("none", "-W", "ignore")
    result.assert_outcomes(passed=kept, failed=1 - kept)


def test_a_miss_in_a_run_that_lacked_a_price_says_how_to_go_on_without(
    run: Run, pytester: pytest.Pytester
) -> None:
    text = UNPRICED.format(limits="{}", end='call(client, "Who?", model="mock-model")')
    pytester.makepyfile(test_app=text.format(""))
    run("once", "-W", "ignore").assert_outcomes(passed=1)
    pytester.makepyfile(test_app=text.format(ALLOWED))
    result = run("none", "-W", "ignore")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cut short by a limit (unpriced)*limits(allow_unpriced=True)*"])


def test_failures_replay_as_failures(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_app="""
        from harness_core import CallableClient, Reply, call

        def make():
            seen = []
            def answer(messages):
                seen.append(1)
                if len(seen) == 1:
                    return Reply(ok=False, error="slow down", status=429)
                return "Twelve."
            return CallableClient(answer, model="mock-model")

        def test_it(harness_recording):
            client = harness_recording.client(make)
            replies = [call(client, "How many?") for _ in range(2)]
            assert [(one.ok, one.status, one.text) for one in replies] == [
                (False, 429, ""), (True, replies[1].status, "Twelve."),
            ]
        """
    )
    run("once").assert_outcomes(passed=1)
    run("none", "--harness-strict").assert_outcomes(passed=1)
    run("new").assert_outcomes(passed=1)


def test_secrets_and_what_is_redacted_are_in_no_recording(
    run: Run, pytester: pytest.Pytester, recordings: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "topsecretvalue99")
    pytester.makepyfile(
        test_app="""
        import os
        import re
        import pytest
        from harness_core import MockClient, call

        @pytest.fixture
        def harness_redact():
            return lambda text: re.sub("Ann Smith", "[name]", text)

        def test_it(harness_recording):
            client = harness_recording.client(lambda: MockClient(lambda messages: "Ann Smith did."))
            secrets = "key topsecretvalue99 and sk-abcdefghijklmnop1234"
            said = call(client, f"{secrets} in {os.getcwd()}/x").text
            again = call(client, f"Who is {said}").text
            assert again
            assert said in ("Ann Smith did.", "[name] did.")
        """
    )
    run("once").assert_outcomes(passed=1)
    (text,) = recordings().values()
    for word in ("topsecretvalue99", "sk-abcdefg", "Ann Smith", str(pytester.path)):
        assert word not in text
    run("none", "--harness-strict").assert_outcomes(passed=1)
    run("new").assert_outcomes(passed=1)
    assert list(recordings().values()) == [text]


def test_a_redacting_function_can_be_named_in_the_settings(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    app(pytester, 'ask(client, "Hello Ann")')
    pytester.makepyfile(scrub="def names(text):\n    return text.replace('Ann', '[name]')")
    ini = ("-o", "harness_redact=scrub:names", "-o", "pythonpath=.")
    run("once", *ini).assert_outcomes(passed=1)
    assert "Hello [name]" in next(iter(recordings().values()))
    run("none", *ini).assert_outcomes(passed=1)
    result = run("none", "-o", "harness_redact=scrub:missing")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*harness_redact = scrub:missing*"])


def test_vectors_are_left_out_where_the_settings_say_so(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app="""
        from harness_core import MockClient, embed

        def test_it(harness_recording):
            client = harness_recording.client(MockClient)
            assert embed(client, ["one", "two"]).vectors.shape == (2, 64)
        """
    )
    run("once", "-o", "harness_record_embeddings=false").assert_outcomes(passed=1)
    assert "vectors" not in next(iter(recordings().values()))
    result = run("none", "-W", "error")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NoEmbeddingsWarning*"])
    run("all").assert_outcomes(passed=1)
    run("none", "--harness-strict").assert_outcomes(passed=1)


def test_the_file_of_a_killed_write_is_never_seen(tmp_path: Path) -> None:
    from harness_integrations.pytest_plugin.scrubbing import Scrubber
    from harness_integrations.pytest_plugin.writing import write

    path = tmp_path / "recordings" / "a.jsonl"

    def broken() -> object:
        yield from ()
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write(path, broken(), [], {}, Scrubber())  # type: ignore[arg-type]  # it never yields
    assert list(tmp_path.rglob("*.jsonl")) == []
