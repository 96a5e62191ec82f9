"""Arguments and results of all kinds of classes: they keep their identity, and what a step changes in them stays."""

from __future__ import annotations

import os

import pytest

from tests.programs.situations.play import situations, verdict

_FOUND = [found for file in ("arguments.txt", "numbers.txt") for found in situations(file)]
#: Both of `verify` and both back ends take turns.
CASES = [
    pytest.param(script, expected, ("never", "always")[number % 2], ("c", "python")[number // 2 % 2], id=name)
    for number, (name, script, expected) in enumerate(_FOUND)
]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each situation is played in processes of its own")
@pytest.mark.parametrize(("script", "expected", "verify", "backend"), CASES)
def test_01_as_in_plain_python(
    script: str, expected: str, verify: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same results, with their types, and the same objects of the caller's, from the first call on."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    options = f"compile = functools.partial(mgjit.compile, verify={verify!r}, backend={backend!r})\n"
    assert verdict(options + script) == expected
