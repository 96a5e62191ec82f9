"""Exceptions at many points of a call; `python -m tests.faults.robustness.injection` is the long form."""

from __future__ import annotations

import signal

import pytest

from tests.faults.robustness.injection import SCENARIOS, failures

pytestmark = pytest.mark.long

#: Scenarios whose every world is traced and lowered from the beginning.
SLOW = {
    "first call, from disk", "first call, compiled", "first call, Python", "first loop, Python", "backward, Python",
    "later call, Python", "later call, lists, Python", "lower",
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_01_at_lines_of_the_package(name: str) -> None:
    """The numbers are those of whole steps, nothing stays locked or switched off, the next call is right."""
    lines, interruptions, wrong = failures(name, samples=8 if name in SLOW else 20)
    assert interruptions > 5
    assert lines > 10
    assert wrong == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a callback of weakref
@pytest.mark.parametrize("name", ["first call", "later call, Python", "loop", "first loop", "later call, lists, fast"])
def test_02_by_signals(name: str) -> None:
    """The same by real signals, at random moments."""
    assert failures(name, signals=20)[2] == []
