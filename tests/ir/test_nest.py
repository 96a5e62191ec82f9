"""What is known about a nest before it is scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.ir.nest import band, examine, executions
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
)
from tests.handmade import around, at, define, load, update

X, T, R = Array("x", "input", 90), Array("t", "state", 90), Array("r", "scratch", 90)


def layer() -> tuple[Loop, Loop, Loop]:
    """`for b: for j: r = 0; for i: r += x * t; t = relu(r)`."""
    b, j, i = Loop(3, []), Loop(4, []), Loop(5, [])
    term = Statement("multiply", (load(X, (b, 5), (i, 1)), load(T, (i, 4), (j, 1))))
    around(
        b,
        around(
            j,
            define(at(R, (b, 4), (j, 1)), "copy", Constant(0.0)),
            around(i, term, update(at(R, (b, 4), (j, 1)), "add", Register(term))),
            define(at(T, (b, 4), (j, 1), base=40), "relu", load(R, (b, 4), (j, 1))),
        ),
    )
    return b, j, i


def test_01_the_band() -> None:
    """Loops with nothing but the next loop in them."""
    b, j, i = layer()
    assert band(b) == [b, j]
    assert band(j) == [j]
    assert band(i) == [i]


def test_02_uses() -> None:
    """Every access with the loops around it; an update reads and writes."""
    b, j, i = layer()
    nest = examine(b)
    assert nest is not None
    assert nest.band == [b, j]
    assert nest.inner == [i]
    assert nest.fixed == set()
    assert [(use.reference.array.name, len(use.loops), use.writes) for use in nest.uses] == [
        ("r", 2, True), ("x", 3, False), ("t", 3, False), ("r", 3, False), ("r", 3, True), ("r", 2, False),
        ("t", 2, True),
    ]  # fmt: skip
    assert executions(next(use.loops for use in nest.uses if len(use.loops) == 3)) == 60
    assert executions(()) == 1


def test_03_what_varies() -> None:
    """By an index, or by a register of what does."""
    b, j, i = layer()
    nest = examine(b)
    assert nest is not None
    names = {loop: sorted(s.operation for s in nest.varying(loop)) for loop in (b, j, i)}
    assert names == {
        b: ["add", "copy", "multiply", "relu"],
        j: ["add", "copy", "multiply", "relu"],
        i: ["add", "multiply"],
    }


def one(operand: Any = None, target: Any = None) -> tuple[Loop, Loop, Statement]:
    """Two loops around a statement."""
    i, j = Loop(3, []), Loop(4, [])
    statement = define(at(T, (i, 4), (j, 1)), "copy", Constant(1.0))
    if operand is not None:
        statement.operands = (operand(i, j),)
    if target is not None:
        statement.target = target(i, j)
    around(i, around(j, statement))
    return i, j, statement


@pytest.mark.parametrize(
    ("operand", "fixed"),
    [
        (lambda i, j: load(X, (i, 4), (j, 1)), ""),
        (lambda i, j: Choice(i, load(X), Choice(j, load(X), Constant(1.0))), "ij"),
        (lambda i, j: Load(Reference(X, Index(0, ((i, 1),), TableEntry(0, ((j, 1),))))), "j"),
        (lambda i, j: Load(Reference(X, Index(0, ((i, 1),), None, Dynamic(load(X, (j, 1)), 1, 4)))), "j"),
        (lambda i, j: Load(Reference(X, Index(0, (), None, Dynamic(Choice(i, load(X), Constant(2.0)), 1, 4)))), "i"),
        (lambda i, j: Mixed((X, T), TableEntry(0, ((i, 1),)), TableEntry(0, ((i, 1),))), "i"),
    ],
    ids=["affine", "choices", "table", "run-time index", "choice of a run-time index", "mixed"],
)
def test_04_loops_that_are_fixed(operand: Any, fixed: str) -> None:
    """Something but an affine index depends on them."""
    i, j, _ = one(operand)
    nest = examine(i)
    assert nest is not None
    assert nest.fixed == {loop for loop, name in ((i, "i"), (j, "j")) if name in fixed}


def test_05_run_time_indices_that_were_just_computed() -> None:
    """They may differ in any iteration."""
    i, j, statement = one()
    number = Statement("less", (load(X, (j, 1)), Constant(0.5)))
    statement.operands = (Load(Reference(X, Index(0, (), None, Dynamic(Register(number), 1, 2)))),)
    j.body.insert(0, number)
    nest = examine(i)
    assert nest is not None
    assert nest.fixed == {i, j}


@pytest.mark.parametrize(
    "target",
    [
        lambda i, j: TargetChoice(i, None, at(T, (j, 1))),
        lambda i, j: TargetMixed((T, None), TableEntry(0, ((i, 1),)), TableEntry(0, ((j, 1),))),
    ],
    ids=["choice", "mixed"],
)
def test_06_targets_that_are_not_plain(target: Any) -> None:
    """Such nests are left alone; so are those with blocks."""
    assert examine(one(target=target)[0]) is None
    assert examine(around(Loop(2, []), Block([define(at(T), "copy", Constant(1.0))]))) is None


def test_07_targets_by_tables() -> None:
    """The loop of a table is fixed."""
    i, j, _ = one(target=lambda i, j: Reference(T, Index(0, ((i, 1),), TableEntry(0, ((j, 1),)))))
    nest = examine(i)
    assert nest is not None
    assert nest.fixed == {j}
