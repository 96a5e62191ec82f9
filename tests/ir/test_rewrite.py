"""Rewriting operands, walking with the loops around, and which arrays an operand reads."""

from __future__ import annotations

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
    Operand,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
)
from mgjit.ir.rewrite import map_operand, map_target, operand_arrays, rewrite_operands, with_surroundings
from tests.handmade import around, at, define, load

P, Q, X = Array("p", "parameter", 20), Array("q", "parameter", 20), Array("x", "input", 20)


def at_run_time(array: Array, operand: Operand) -> Reference:
    """`array[2 * operand + 1]`."""
    return Reference(array, Index(1, (), None, Dynamic(operand, 2, 5)))


def five(operand: Operand) -> Operand:
    """Reads of `x` become the number five."""
    return Constant(5.0) if isinstance(operand, Load) and operand.reference.array is X else operand


def test_01_plain_operands() -> None:
    """The function decides; what it does not change is the same object."""
    kept = load(P, base=2)
    assert map_operand(load(X), five) == Constant(5.0)
    assert map_operand(kept, five) is kept


def test_02_choices_and_run_time_indices() -> None:
    """All alternatives, and indices inside of them, from the inside out."""
    i = Loop(3, [])
    inner = Load(at_run_time(P, load(X)))
    expected = Load(at_run_time(P, Constant(5.0)))
    assert map_operand(Choice(i, load(X), Choice(i, inner, load(Q))), five) == (
        Choice(i, Constant(5.0), Choice(i, expected, load(Q)))
    )
    assert map_operand(Load(at_run_time(P, inner)), five) == Load(at_run_time(P, expected))


def test_03_targets() -> None:
    """Only run-time indices are operands of a target."""
    i = Loop(3, [])
    made = map_target(TargetChoice(i, at_run_time(P, load(X)), at(X)), five)
    assert made == TargetChoice(i, at_run_time(P, Constant(5.0)), at(X))
    assert map_target(None, five) is None


def test_04_statements() -> None:
    """In place: operands and target."""
    statement = define(at_run_time(Q, load(X)), "add", load(X), load(P))
    rewrite_operands(statement, five)
    assert statement.operands == (Constant(5.0), load(P))
    assert statement.target == at_run_time(Q, Constant(5.0))


def test_05_surroundings() -> None:
    """Every statement once, in order, outermost loop first; blocks are looked through."""
    i, j = Loop(3, []), Loop(2, [])
    a, b, c, d = (Statement("copy", (Constant(float(n)),)) for n in range(4))
    around(i, a, around(j, b), Block([c]))
    assert list(with_surroundings([i, d])) == [(a, (i,)), (b, (i, j)), (c, (i,)), (d, ())]


def test_06_arrays() -> None:
    """Of every alternative, of run-time indices, of mixed operands; constants and registers read none."""
    i = Loop(3, [])
    entry = TableEntry(0, ())
    statement = Statement("copy", (Constant(1.0),))
    assert list(operand_arrays(Choice(i, load(P), Mixed((Q, X), entry, entry)))) == [P, Q, X]
    assert list(operand_arrays(Load(at_run_time(P, Load(at_run_time(Q, load(X))))))) == [P, Q, X]
    assert not list(operand_arrays(Constant(1.0)))
    assert not list(operand_arrays(Register(statement)))
