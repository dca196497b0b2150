"""Random programs decide, at any width and in any driver, as one request after another does."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import (
    SURVIVABLE,
    DriverName,
    Program,
    carry_out,
    differences,
    programs,
)

DRIVERS: tuple[DriverName, ...] = ("threads", "asyncio", "trio")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Not ``tmp_path``: one folder serves every example."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture(autouse=True, scope="module")
def _threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("driver", DRIVERS)
@given(program=programs())
def test_a_program_is_carried_out_as_one_request_after_another_would_be(
    program: Program, driver: DriverName, folder: Path
) -> None:  # core 149
    assert differences(program, carry_out(program, driver, folder)) == []


@pytest.mark.parametrize("driver", DRIVERS)
@given(program=programs(fates=(*SURVIVABLE, "bug", "auth")))
def test_a_failing_neighbour_lets_what_is_in_flight_land_and_the_first_failure_is_raised(
    program: Program, driver: DriverName, folder: Path
) -> None:  # core 150
    assert differences(program, carry_out(program, driver, folder)) == []


@given(program=programs(), data=st.data())
def test_every_driver_leaves_the_same_trace(
    program: Program, data: st.DataObject, folder: Path
) -> None:
    one, other = (carry_out(program, data.draw(st.sampled_from(DRIVERS)), folder) for _ in "ab")
    assert [s.step for s in one.trace.steps] == [s.step for s in other.trace.steps]
    assert [r.as_json() for r in one.trace.refusals] == [r.as_json() for r in other.trace.refusals]
