"""Steps that ask for numbers on their way are as in plain Python; `paths.py --seed N` shows one."""

from __future__ import annotations

from collections import Counter

import pytest

from mgjit.tracing.record.answers import Answers
from tests.fuzz import paths

pytestmark = pytest.mark.fuzz


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def test_01_as_plain_python() -> None:
    """Whatever way a call takes; most calls are compiled."""
    counts = Counter[str]()
    wrong = {seed: paths.fails(seed, calls=25, counts=counts, backend="python", verify="never") for seed in range(8)}
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}
    assert counts["compiled calls"] > 0.7 * counts["calls"]


def test_02_an_answer_that_is_not_tested_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "verdict", lambda self: None)
    options = {"calls": 10, "backend": "python", "verify": "never"}
    assert any(paths.fails(seed, **options) for seed in range(8))  # type: ignore[arg-type]


def test_03_assumptions_that_fail_one_after_the_other() -> None:
    """A call that a kernel leaves has left nothing behind, whichever assumption it was, and whatever was instead."""
    with paths.injected() as made:
        wrong = {seed: paths.fails(seed, calls=25, backend="python", verify="never") for seed in range(100, 106)}
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}
    assert sum(made.values()) > 20
    assert max(made) > 2
