"""What other packages use of a step."""

from __future__ import annotations

import threading

import pytest

import mgjit
from mgjit.errors import PhaseError
from mgjit.step.inside import Inside


def _scaled(x: float, factor: float = 2.0) -> float:
    return x * factor


def test_01_arguments_get_their_defaults() -> None:
    inside = Inside(mgjit.compile(_scaled), "ensemble")
    assert inside.arguments((3.0,), {}) == (3.0, 2.0)
    assert inside.arguments((3.0,), {"factor": 4.0}) == (3.0, 4.0)
    assert inside.parameters == ["x", "factor"]


def test_02_a_call_is_a_single_row() -> None:
    inside = Inside(mgjit.compile(_scaled), "ensemble")
    row = inside.one_row((3.0, 2.0))
    assert row.length == 1
    assert row.row(0) == (3.0, 2.0)
    assert inside.run_row(row.row(0)) == 6.0


def test_03_a_step_without_a_lock_is_that_of_the_thread() -> None:
    step = mgjit.compile(_scaled, lock=False)
    found = []
    thread = threading.Thread(target=lambda: found.append(Inside(step, "ensemble").step))
    thread.start()
    thread.join()
    assert Inside(step, "ensemble").step is Inside(step, "ensemble").step is not found[0]


def test_04_it_refuses_to_run_inside_of_a_trace() -> None:
    inside = Inside(mgjit.compile(_scaled), "ensemble")

    @mgjit.compile
    def outer(x: float) -> float:
        return inside.run("ensemble", lambda: x)

    with pytest.raises(PhaseError, match=r"\.ensemble\(\) runs a kernel"):
        outer.lower(1.0)
