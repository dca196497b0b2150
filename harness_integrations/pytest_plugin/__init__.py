"""Recorded runs as pytest tests: run once with a key, commit the recording, replay from then on.

A test asks for the fixture ``harness_recording``; see there. Nothing but pytest and the standard
library is imported until it does.
"""

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from harness_integrations.pytest_plugin import budgets, modes, places

if TYPE_CHECKING:
    from harness_integrations.pytest_plugin.recorder import HarnessRecording

__all__ = ["harness_recording", "harness_redact"]

_report = pytest.StashKey[pytest.TestReport]()
_places = pytest.StashKey[places.Places]()
_budget = pytest.StashKey[budgets.Budget]()
_orphans = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("harness", "recorded language model runs")
    group.addoption(
        "--harness-record",
        choices=modes.CHOICES,
        default=None,
        help="none: replay only; once: record what has no recording yet; new: replay, and record "
        "what is missing; all: record everything anew (default: none when CI is set, else once)",
    )
    group.addoption(
        "--harness-strict",
        action="store_true",
        help="fail when recorded replies, or whole recordings, are not used any more",
    )
    group.addoption(
        "--harness-max-cost",
        type=float,
        default=None,
        metavar="USD",
        help="the most that the requests of this test run may cost, all workers together",
    )
    parser.addini(
        "harness_redact", "module:function that is given each text of a recording and returns it "
        "without what must not be kept", default="",
    )  # fmt: skip
    parser.addini(
        "harness_record_embeddings", "whether recordings hold vectors", type="bool", default=True
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the markers mean, and open the budget of the run."""
    config.addinivalue_line("markers", "harness_recording(name): the name of this test's recording")
    config.addinivalue_line(
        "markers",
        "harness_budget(max_cost_usd): the most that the requests of the tests under this marker "
        "may cost together, in one test run",
    )
    config.stash[_budget] = budgets.opened(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the budget of the run."""
    if _budget in config.stash:
        config.stash[_budget].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let an xdist worker take its leases from the budget of the whole run."""
    node.workerinput["harness_budget"] = node.config.stash[_budget].shared(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Note whose recording is whose, before any test is deselected."""
    config = session.config
    whole = not any("::" in str(one) for one in config.args)
    config.stash[_places] = places.Places(items, whole=whole)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep how a test went, for what is checked after it."""
    report = yield
    if call.when == "call":
        item.stash[_report] = report
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under ``--harness-strict``, recordings that belong to no test fail the run."""
    config = session.config
    if _places in config.stash and config.getoption("harness_strict"):
        config.stash[_orphans] = config.stash[_places].orphans()
    found = config.stash.get(_orphans, [])
    if hasattr(config, "workeroutput"):
        config.workeroutput["harness_orphans"] = found
    elif found and session.exitstatus in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear from an xdist worker which recordings belong to no test; all tell the same."""
    if found := getattr(node, "workeroutput", {}).get("harness_orphans"):
        node.config.stash[_orphans] = found


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the recordings that belong to no test."""
    for path in config.stash.get(_orphans, []):
        terminalreporter.write_line(f"no test uses the recording {path}; delete it", red=True)


@pytest.fixture
def harness_redact(request: pytest.FixtureRequest) -> Callable[[str], str] | None:
    """What each text of a recording goes through; override it. None keeps texts as they are.

    It must give the same for its own result, and for the same text in every run.
    """
    named = str(request.config.getini("harness_redact"))
    if not named:
        return None
    module, _, function = named.partition(":")
    from importlib import import_module

    try:
        found: Callable[[str], str] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"harness_redact = {named}: {error}") from error
    return found


@pytest.fixture
def harness_recording(
    request: pytest.FixtureRequest, harness_redact: Callable[[str], str] | None
) -> Iterator["HarnessRecording"]:
    """The test's recording: wraps models and clients so that they replay it, or record it.

    ``.client(real)``, ``.chat_model(real)``, ``.llm(real)``, ``.embeddings(real)``,
    ``.runnable(real)``, ``.engine(real)``, ``.patch("myapp.models.model")``, ``.settings()``, and
    ``.trace``. ``real`` may be a function that makes it; a replay never calls that function.
    """
    from harness_integrations.pytest_plugin.recorder import HarnessRecording

    item, config = request.node, request.config
    place = config.stash[_places].of(item)
    recording = HarnessRecording(
        place=place,
        mode=modes.chosen(config.getoption("harness_record")),
        redact=harness_redact,
        vectors=bool(config.getini("harness_record_embeddings")),
        lease=lambda: config.stash[_budget].lease(item),
    )
    yield recording
    report = item.stash.get(_report, None)
    passed = report is not None and report.passed
    recording.finish(passed=passed, strict=config.getoption("harness_strict"))
    if recording.unkept is not None:
        item.add_report_section("teardown", "harness_recording", recording.unkept)
