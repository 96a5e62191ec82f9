"""Situations thought of by those who set out to break mgjit: as in plain Python, or refused in words."""

from __future__ import annotations

import os

import pytest

from tests.programs.situations.play import situations, verdict

CASES = [
    pytest.param(script, expected, id=f"{file[:-4]}: {name}")
    for file in ("around.txt", "places.txt")
    for name, script, expected in situations(file)
]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each situation is played in processes of its own")
@pytest.mark.parametrize(("script", "expected"), CASES)
def test_01_as_in_plain_python(script: str, expected: str) -> None:
    """The same results, parameters, gradients, state and types after each call; nothing of a trace is left behind."""
    assert verdict(script) == expected
