"""step/units.py: when a step gets a function compiled by itself."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.kernels.first_calls import earnings
from mgjit.step import unit_choice, units
from tests.step.unit_programs import program


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr(earnings, "_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(units, "_SECONDS", 0.0)
    monkeypatch.setattr(unit_choice, "_SHARE", 0.0)  # one call is measured, in which PyPy may do something else
    monkeypatch.setattr("mgjit.step.leaving.unlooked", lambda *given: 0)  # each call looks for a kernel


def units_after(batches: Any, **options: Any) -> Any:
    found = program(7)
    step: Any = mgjit.compile(backend="python", **options)(found.step)
    for batch in batches(found.batches):
        step(batch, 0.05)
    return step.stats.units


def test_batches_of_ever_new_lengths_get_one() -> None:
    assert set(units_after(lambda all_of_them: all_of_them[:8])) == {"loss_of"}


def test_nobody_traces_a_whole_step_whose_lengths_never_come_again() -> None:
    found = program(7)
    step: Any = mgjit.compile(backend="python")(found.step)
    for batch in found.batches:
        step(batch, 0.05)
    assert step.stats.units
    assert not step.stats.traces


def test_where_traces_take_long_plain_calls_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on PyPy, which has to translate the tracer."""
    monkeypatch.setattr(earnings, "_BEFORE_FIRST", 1e9)
    assert not units_after(lambda all_of_them: all_of_them[:12])


def test_batches_of_the_same_lengths_get_none() -> None:
    assert not units_after(lambda all_of_them: all_of_them[:1] * 12)


@pytest.mark.parametrize("options", [{"mode": "fast"}, {"dtype": "float32"}, {"lock": False}])
def test_steps_that_are_not_strict_get_none(options: dict[str, Any]) -> None:
    if options == {"lock": False}:
        found = program(7)
        made: Any = units.Units(found.step, mgjit.compile(**options)(found.step)._options)
        assert not made._is_open
        return
    assert not units_after(lambda all_of_them: all_of_them[:8], **options)


def test_steps_of_short_calls_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_SECONDS", 1e9)
    assert not units_after(lambda all_of_them: all_of_them[:8])


def test_explain_says_what_is_compiled_by_itself() -> None:
    found = program(7)
    step: Any = mgjit.compile(backend="python")(found.step)
    for batch in found.batches[:12]:
        step(batch, 0.05)
    assert "loss_of is compiled by itself: " in step.lower(found.batches[0], 0.05).explain()
