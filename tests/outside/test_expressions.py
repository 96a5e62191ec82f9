"""Steps over the state of libraries and of the system compute what plain Python computes, or say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.outside.programs import Program, programs, run

#: One in so many of the programs is not slow.
_QUICK = 12
_PROGRAMS = [
    pytest.param(program, id=program.name, marks=[pytest.mark.long] if number % _QUICK else [])
    for number, program in enumerate(programs())
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each program runs in a process of its own")
@pytest.mark.parametrize("program", _PROGRAMS)
def test_01_as_in_plain_python(program: Program, tmp_path: Path) -> None:
    """The same numbers before and after a change; no error that plain Python has not; one warning of plain calls."""
    wanted = run(program, tmp_path / "plain", decorated=False)  # folders of equally long names: programs tell lengths
    if wanted.error:
        pytest.skip(wanted.error)
    got = run(program, tmp_path / "other", decorated=True)
    assert (got.error, got.seen) == ("", wanted.seen)
    if "warnings." not in program.name:  # which changes what is shown
        assert len(got.warned) == 1 if got.calls == 0 else len(got.warned) <= 1, got
