"""Tests of what is computed eagerly use the definition, Python loops, which needs no compiler."""

from __future__ import annotations

import pytest


@pytest.fixture
def python_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """No C for eager operations; what C computes is compared with Python in test_cases.py."""
    from mgjit.tensor import eager

    monkeypatch.setattr(eager, "_functions", {})
    monkeypatch.setattr(eager, "_compile", lambda form, quickly: None)
