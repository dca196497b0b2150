"""A recording as it is kept."""

import json
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness_core import Message, Trace
from harness_core.calls import keys
from harness_core.calls.steps import Step
from harness_core.messages import Request
from harness_integrations.pytest_plugin.numbering import renumbered
from harness_integrations.pytest_plugin.scrubbing import Scrubber
from harness_integrations.pytest_plugin.writing import write


def steps_of_a_run(seed: int) -> list[Step]:
    """A run of an agent as two days would leave it: alike but for what is made anew."""
    dice = random.Random(seed)  # noqa: S311 - no secret

    def anew() -> str:
        return str(uuid.UUID(int=dice.getrandbits(128)))

    call = f"call_{anew()[:8]}"
    raw = {
        "id": f"chatcmpl-{anew()}",
        "created": dice.randrange(10**9, 2 * 10**9),
        "timings": {"predicted_ms": dice.random()},
        "tool_calls": [{"id": call, "name": "look", "args": {"id": "bridge-7"}}],
        "parsed": {"id": "bridge-7", "of": call},
        "extra": {"id": anew()},
    }
    return [
        Step(
            step="1", label="chat", model="m", prompt=(Message("user", "hello"),), response="hi",
            started_utc=anew(), seconds=dice.random(), response_id=anew(), fingerprint=anew(),
            params={"model": "m"}, params_sent={"base_url": f"http://127.0.0.1:{dice.random()}"},
            raw=raw, replay_key="k", budget_pico=0,
        )
    ]  # fmt: skip


def test_what_is_made_anew_in_every_run_is_left_out(tmp_path: Path) -> None:
    for seed in (1, 2):
        path = tmp_path / f"{seed}.jsonl"
        write(path, steps_of_a_run(seed), [], {}, Scrubber())
    one, other = ((tmp_path / f"{seed}.jsonl").read_text() for seed in (1, 2))
    assert one == other
    raw = json.loads(one.splitlines()[1])["raw"]
    assert raw == {
        "tool_calls": [{"id": "call_1", "name": "look", "args": {"id": "bridge-7"}}],
        "parsed": {"id": "bridge-7", "of": "call_1"},
        "extra": {},
    }


def test_a_failure_keeps_that_it_failed_and_what_it_cost(tmp_path: Path) -> None:
    step = Step(
        step="1", label="chat", ok=False, error="slow down", status=429, budget_pico=0,
        prompt=(Message("user", "hello"),), replay_key="k", params={"model": "m"},
    )  # fmt: skip
    write(tmp_path / "a.jsonl", [step], [], {}, Scrubber())
    (kept,) = Trace.load(tmp_path / "a.jsonl").steps
    assert (kept.ok, kept.error, kept.status, kept.budget_pico) == (False, "slow down", 429, 0)


def test_a_redacted_prompt_is_found_by_its_redacted_words(tmp_path: Path) -> None:
    params = {"model": "m", "max_output_asked": 10, "temperature": 0.5, "stop": ["x"]}
    step = Step(
        step="1", label="chat", prompt=(Message("user", "I am Ann"),), params=params, replay_key="k"
    )
    write(tmp_path / "a.jsonl", [step], [], {}, Scrubber(lambda text: text.replace("Ann", "N")))
    (kept,) = Trace.load(tmp_path / "a.jsonl").steps
    request = Request(
        messages=(Message("user", "I am N"),), max_output=10, temperature=0.5, stop=("x",)
    )
    asked = keys.replay_key(keys.message_bytes(request), request, model="m", temperature=0.5)
    assert kept.prompt == request.messages
    assert kept.replay_key == asked


TOOLS = [{"name": "look", "parameters": {"type": "object"}}, {"name": "go"}]


@given(
    st.builds(
        Request,
        messages=st.just((Message("user", "hello"),)),
        max_output=st.none() | st.integers(1, 100),
        effort=st.none() | st.just("low"),
        schema=st.none() | st.just({"type": "object"}),
        stop=st.sampled_from([(), ("x", "y")]),
        tools=st.sampled_from([(), tuple(TOOLS)]),
        tool_choice=st.none() | st.sampled_from(["required", "look"]),
        n=st.integers(1, 3),
    ),
    st.none() | st.floats(0, 2),
)
def test_the_key_of_a_step_is_made_again_from_what_it_keeps(
    request: Request, temperature: float | None
) -> None:
    from dataclasses import replace

    from harness_core import MockClient
    from harness_core.calls.governor import Limits
    from harness_core.calls.prepare import prepare

    call = prepare(replace(request, temperature=temperature), MockClient(), Limits())
    messages = keys.message_bytes(request)
    stored: dict[str, Any] = json.loads(json.dumps(dict(call.params)))
    assert keys.key_of_params(messages, stored) == call.replay_key


@given(st.lists(st.sampled_from(["1", "2", "2.1", "3", "7"]), max_size=12))
def test_numbers_given_twice_are_told_apart_and_keep_their_order(numbers: list[str]) -> None:
    steps = [Step(step=number, label="x") for number in numbers]
    found = [step.step for step in renumbered(steps)]
    assert len(set(found)) == len(found)
    if len(set(numbers)) == len(numbers):
        assert found == numbers


SECRETS: list[str] = [
    "sk-proj-abcdefghijklmnopqrstu",
    "Bearer abcdefghijklmnopqrstuvwxyz",
    "api_key=abcdefghijklmnop",
    "AKIAABCDEFGHIJKLMNOP",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
]


@given(st.text(), st.sampled_from(SECRETS), st.text())
def test_scrubbing_twice_is_scrubbing_once(before: str, secret: str, after: str) -> None:
    scrub: Callable[[str], str] = Scrubber().text
    once = scrub(f"{before} {secret} {after}")
    assert secret not in once
    assert scrub(once) == once
