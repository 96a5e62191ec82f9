"""Steps that handle errors do what plain Python does; `handlers.py --seed N` shows one program."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import handlers

pytestmark = pytest.mark.fuzz


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def test_01_as_plain_python() -> None:
    """Results and what is kept; many calls are compiled."""
    counts = Counter[str]()
    wrong = {seed: handlers.fails(seed, counts=counts, backend="python", verify="never") for seed in range(24)}
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}
    assert counts["compiled"] >= 100
