"""Situations are about what lies around a step."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def quickly(quick_compiler: None) -> None:
    """A compiler that does not optimise is as good."""
