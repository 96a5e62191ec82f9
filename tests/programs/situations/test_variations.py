"""Variations of programs that were wrong, stopped or dear once: of each cause, those of several people's styles.

The name of a situation of variations.txt begins with the cause; causes.py says what these are, and plays all.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.programs.situations.causes import CAUSES, left_out
from tests.programs.situations.play import situations, verdict

_FOUND = list(situations("variations.txt"))
_CASES = [
    pytest.param("auto" if number % 2 and "# mgjit run" not in script else "never", name, script, id=name)
    for number, (name, script, _) in enumerate(_FOUND)
]


@pytest.mark.sampled(one_of=30)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each situation is played in processes of its own")
@pytest.mark.parametrize(("verify", "name", "script"), _CASES)
def test_01_as_in_plain_python(verify: str, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same results, types, objects and side effects; of a step in plain Python, one warning says so."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    monkeypatch.setenv("MGJIT_VERIFY", verify)
    if reason := left_out(name, script):
        pytest.skip(reason)
    assert verdict(script, are_warnings_compared=True) == "right"


def test_02_there_are_ten_of_each_cause() -> None:
    """Each has a name of its own."""
    names = [name for name, _, _ in _FOUND]
    assert len(set(names)) == len(names)
    counts = Counter(name.partition(":")[0] for name in names)
    assert set(counts) == set(CAUSES)
    assert min(counts.values()) >= 10
