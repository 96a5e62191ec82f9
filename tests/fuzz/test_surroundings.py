"""Random programs about what lies around a step are as plain Python; `surroundings.py --seed N` shows one."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.tracing.surroundings.guard import Guard
from tests.fuzz import surroundings

pytestmark = pytest.mark.fuzz


def test_01_as_plain_python() -> None:
    """What is read, what is kept, and what changes between calls."""
    wrong = {seed: surroundings.fails(seed, backend="python") for seed in range(30)}
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}


def test_02_a_forgotten_guard_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without variables in the guards, some programs use numbers of an earlier call."""

    def nothing(self: Guard, survey: Any) -> None:
        """Forget them."""

    monkeypatch.setattr(Guard, "_note_variables", nothing)
    assert any(surroundings.fails(seed, backend="python") for seed in range(80))
