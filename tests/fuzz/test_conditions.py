"""Sides of conditions that do more than compute are as in plain Python; `conditions.py --seed N` shows one."""

from __future__ import annotations

from collections import Counter

import pytest

from mgjit.tracing.source.stores import NO_CHANGES
from mgjit.tracing.source.untaken import Untaken
from tests.fuzz import conditions

pytestmark = pytest.mark.fuzz


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def test_01_as_plain_python() -> None:
    """What sides draw, change, append, take from iterators and raise; some programs are compiled."""
    counts = Counter[str]()
    wrong = {
        seed: conditions.fails(seed, calls=20, counts=counts, backend="python", verify="never") for seed in range(30)
    }
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}
    assert counts["kernel"] >= 5


def test_02_what_is_not_looked_at_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at what sides leave behind, some programs leave something else."""
    monkeypatch.setattr(Untaken, "put_back", lambda self, own=None: NO_CHANGES)
    options = {"calls": 10, "backend": "python", "verify": "never"}
    assert any(conditions.fails(seed, **options) for seed in range(40))  # type: ignore[arg-type]
