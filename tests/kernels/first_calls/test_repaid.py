"""repaid.py: what a trace was worth in one process is known in the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.kernels.first_calls import earnings
from mgjit.kernels.registry import KERNELS
from mgjit.tensor.memory import Memory


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """First calls have to earn their trace, and nothing is in the cache."""
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(earnings, "_FIRST_SECONDS", 1e6)
    monkeypatch.setattr(earnings, "_MOST_UNLOOKED", 0)
    monkeypatch.setattr(Memory, "exists", False)


def made(**options: Any) -> Any:
    """A step as of a process that has just begun."""
    w = [mgjit.Value(0.5), mgjit.Value(-0.25)]

    @mgjit.compile(**options)
    def step(xs: list[float]) -> Any:
        loss = sum(p * x for p in w for x in xs)
        loss.backward()
        return loss.data

    return step


def test_1_what_was_repaid_is_traced_at_its_first_call() -> None:
    """Other structures are not."""
    first = made()
    first([1.0, 2.0])
    assert first.wait()
    first([1.0, 2.0])
    first._kernels.earnings.note_plain(first._kernels.last.plan.key, 1e3)
    first._kernels.note_repaid()
    second = made()
    second([1.0, 2.0, 3.0])
    assert not second._kernels.earnings.has_begun
    second([1.0, 2.0])
    assert second._kernels.earnings.has_begun


@pytest.mark.parametrize("is_cached", [True, False])
def test_2_what_was_not_repaid_has_to_be_earned_again(is_cached: bool) -> None:
    first = made(cache=is_cached)
    first([1.0, 2.0])
    assert first.wait()
    first._kernels.earnings.note_spent("others", 1e6)
    first([1.0, 2.0])
    if is_cached:
        first._kernels.note_repaid()
    else:  # nor what nobody may keep
        for kernel in first._kernels.all():
            first._kernels.maker.repaid.note(kernel.plan)
    second = made(cache=is_cached)
    second([1.0, 2.0])
    assert not second._kernels.earnings.has_begun


def test_3_each_step_notes_what_it_knows_when_the_process_ends() -> None:
    step = made()
    assert step._kernels in KERNELS
    step.clear()
    assert step._kernels in KERNELS
