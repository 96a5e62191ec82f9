"""Whole programs as people write them, plain and compiled: everything that they check is equal to the last bit.

Each file beside this one holds programs, each below a line `#### name`.  What is expected besides equal numbers follows
the name in brackets: nothing where the steps are compiled, `[plain]` where they run as plain Python, `[typed]` where
the program ends with an error of mgjit, before anything was different.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgjit.errors import DefectWarning, MgjitError, MismatchWarning
from tests.programs.traps.traps import play

_FILES = ("training.txt",)
_PRELUDE = """
import abc, array, contextlib, heapq, os, random

compile = mgjit.compile


def P(ps): return [(p.data, p.grad) for p in ps]


def PF(ps): return [(p.data, float(p.grad)) for p in ps]


class Node(Node):
    def __add__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__
    __neg__ = lambda self: self * -1.0
    __sub__ = lambda self, other: self + (-other)


"""


def _situations() -> list[tuple[str, str, str]]:
    found = []
    for name in _FILES:
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        parts = re.split(r"^#### *(.*?)(?: *\[(\w+)\])?$", text, flags=re.MULTILINE)[1:]
        found += list(zip(parts[::3], (kind or "right" for kind in parts[1::3]), parts[2::3]))
    return found


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind", "code"), _situations(), ids=[name for name, *_ in _situations()])
def test_a_program_computes_what_it_computes_undecorated(
    name: str, kind: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "import numpy" in code:
        pytest.importorskip("numpy")
        monkeypatch.delenv("MGJIT_VERIFY")  # which sees what plain Python leaves as numpy's float64
    wanted = play(_PRELUDE + code, tmp_path, "user_undecorated", decorated=False)
    assert wanted.error is None
    got = play(_PRELUDE + code, tmp_path, "user_decorated", decorated=True)
    assert got.seen == wanted.seen[: len(got.seen)]
    if kind == "typed":
        assert isinstance(got.error, MgjitError)
        return
    assert got.error is None
    assert len(got.seen) == len(wanted.seen)
    warned = [w.message for w in got.warned]
    assert not [w for w in warned if isinstance(w, (MismatchWarning, DefectWarning))]
    assert any("runs as plain Python" in str(w) for w in warned) is (kind == "plain")
