"""Settings: the table, process defaults, scopes, and the environment."""

import contextvars
import math
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from harness_core import config, configure, current_settings, override
from harness_core.config import SETTINGS, setting
from harness_core.errors import BadSettingError, BadSettingWarning


@pytest.fixture(autouse=True)
def _as_in_a_new_process() -> Iterator[None]:
    config._from_environment.cache_clear()
    yield
    config._from_environment.cache_clear()


def test_every_setting_has_its_default_and_is_listed() -> None:
    assert dict(current_settings()) == {row.name: row.default for row in SETTINGS}


def test_what_was_there_before_comes_back() -> None:
    before = dict(current_settings())
    former = configure(max_cost_usd=None, max_calls=7, temperature=0.5)
    assert former == {"max_cost_usd": 5.0, "max_calls": 400, "temperature": None}
    assert (setting("max_cost_usd"), setting("max_calls")) == (None, 7)  # none is kept as none
    assert configure(**former) == {"max_cost_usd": None, "max_calls": 7, "temperature": 0.5}
    assert dict(current_settings()) == before


def test_nothing_is_set_when_one_of_several_cannot_be() -> None:
    for change in (configure, lambda **more: override(**more).__enter__()):
        with pytest.raises(BadSettingError):
            change(max_calls=7, max_cost_usd="5")
    assert setting("max_calls") == 400


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("max_calls", 3.9, 3),
        ("max_calls", 1e10, 10_000_000_000),
        ("max_cost_usd", math.inf, None),
        ("max_cost_usd", 0, 0),
        ("temperature", "0.5", 0.5),
        ("max_retries", "3", 3),
        ("max_retries", 4.0, 4),
        ("allowed_models", "gpt-4o", frozenset({"gpt-4o"})),
        ("allowed_models", ["a", "b"], frozenset({"a", "b"})),
        ("actor", {"owner": "me"}, {"owner": "me"}),
    ],
)
def test_a_value_is_kept_as_its_kind(name: str, value: Any, kept: Any) -> None:
    with override(**{name: value}):
        assert setting(name) == kept


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [("max_retries", 99, 10), ("temperature", -1, 0), ("request_timeout", 0, 1)],
)
def test_a_number_out_of_its_range_moves_to_the_bound(name: str, value: Any, kept: Any) -> None:
    with pytest.warns(BadSettingWarning, match=name), override(**{name: value}):
        assert setting(name) == kept


@pytest.mark.parametrize("value", ["many", [1, 2], math.nan, True, {}])
def test_a_number_that_cannot_be_read_leaves_the_current_value(value: Any) -> None:
    with (
        override(max_retries=7),
        pytest.warns(BadSettingWarning, match="7 is kept"),
        override(max_retries=value),
    ):
        assert setting("max_retries") == 7


@pytest.mark.parametrize(
    "settings",
    [
        {"no_such": 1},
        {"api": "soap"},
        {"allow_urls": 1},
        {"model": 7},
        {"allowed_models": [""]},
        {"actor": "me"},
    ],
)
def test_what_is_no_setting_or_no_value_of_it_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettingError, match=next(iter(settings))):
        configure(**settings)


def test_an_unknown_setting_lists_the_known_ones() -> None:
    with pytest.raises(BadSettingError, match=r"max_cost_usd.*allow_unpriced"):
        configure(budget=1)
    assert "api_key" not in {row.name for row in SETTINGS}  # a key is never a setting


# --- the environment ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("max_cost_usd", "0.25", 0.25),
        ("max_calls", "12", 12),
        ("max_calls", "none", None),
        ("temperature", "NULL", None),
        ("model", " gpt-4o ", "gpt-4o"),
        ("model", "  ", "gpt-5.6-terra"),
        ("api", "chat", "chat"),
        ("allow_unpriced", "yes", True),
        ("allow_unpriced", "Off", False),
        ("allowed_models", "gpt-4o, gpt-4o-mini,", frozenset({"gpt-4o", "gpt-4o-mini"})),
        ("actor", "owner=me, purpose=a=b", {"owner": "me", "purpose": "a=b"}),
        ("api_headers", "X-Team=readers", {"X-Team": "readers"}),
    ],
)
def test_the_environment_sets_a_default(
    monkeypatch: pytest.MonkeyPatch, name: str, raw: str, value: Any
) -> None:
    monkeypatch.setenv(f"HARNESS_{name.upper()}", raw)
    assert setting(name) == value


@pytest.mark.parametrize(
    ("name", "raw"), [("max_calls", "many"), ("allow_urls", "perhaps"), ("api", "soap")]
)
def test_a_variable_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, raw: str
) -> None:
    monkeypatch.setenv(f"HARNESS_{name.upper()}", raw)
    with pytest.raises(BadSettingError, match=f"HARNESS_{name.upper()}"):
        setting(name)


def test_the_nearest_says_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_MAX_CALLS", "10")
    assert setting("max_calls") == 10
    configure(max_calls=20)
    with override(max_calls=30):
        with override(max_calls=40):
            assert setting("max_calls") == 40
        assert setting("max_calls") == 30
    assert setting("max_calls") == 20


# --- scopes ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_tasks_do_not_see_each_others_overrides() -> None:
    seen: dict[int, tuple[int, int]] = {}
    both = anyio.Event()

    async def one(number: int) -> None:
        with override(max_calls=number):
            if number == 2:
                both.set()
            await both.wait()
            here = setting("max_calls")
            there = await anyio.to_thread.run_sync(lambda: setting("max_calls"))
            seen[number] = (here, there)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, 1)
        tasks.start_soon(one, 2)
    assert seen == {1: (1, 1), 2: (2, 2)}
    assert setting("max_calls") == 400


def test_a_thread_sees_the_override_of_the_context_it_is_given() -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(setting("max_calls"))

    with override(max_calls=9):
        for target in (partial(contextvars.copy_context().run, look), look):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert seen == [9, 400]
