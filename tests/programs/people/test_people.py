"""Programs as people write them: none is stopped, and all numbers are those of plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgjit.base.ffi import PYPY
from tests.programs.people.people import DOCUMENT, Program, became, load

PROGRAMS = [pytest.param(one, id=f"{chapter}: {one.name}") for chapter, programs in load().items() for one in programs]
ROWS = [line.split(" | ", 1) for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


@pytest.mark.sampled(one_of=3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_never_stopped(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those of plain Python, with at most one warning; docs/people.md says what became of it."""
    monkeypatch.delenv("MGJIT_REFUSE")
    found = became(program, tmp_path)
    assert found.problem == ""
    (told,) = (text for name, text in ROWS if name == f"| {program.name}")
    assert PYPY or told.startswith(found.calls.split(",")[0])


def test_there_are_many() -> None:
    names = [program.name for programs in load().values() for program in programs]
    assert len(names) == len(set(names)) >= 90
