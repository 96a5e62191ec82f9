"""Copies of nodes: every kind of index, operand and target, with loops and registers replaced."""

from __future__ import annotations

import pytest

from mgjit.ir.program import (
    Array,
    Block,
    Bound,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
)
from mgjit.ir.substitute import Substitution, copy_nodes
from tests.bounded import random_bounded
from tests.handmade import around, at, define, load, same_bits, update

P, X = Array("p", "parameter", 60), Array("x", "input", 60)


def test_01_a_loop_by_a_multiple_of_another() -> None:
    """`i = 8 * n + 3` in the affine part, the table entry and the run-time part."""
    i, n, other = Loop(4, []), Loop(2, []), Loop(3, [])
    dynamic = Dynamic(load(X, (i, 2), base=1), 5, 6)
    index = Index(10, ((other, 7), (i, 2)), TableEntry(4, ((i, 3),)), dynamic)
    made = Substitution(i, n, 8, 3).index(index)
    assert made.base == 10 + 2 * 3
    assert made.terms == ((other, 7), (n, 16))
    assert made.table == TableEntry(4 + 3 * 3, ((n, 24),))
    assert made.dynamic == Dynamic(load(X, (n, 16), base=7), 5, 6)


def test_02_operands() -> None:
    """Loads, registers, choices, mixed ones and constants."""
    i, j, n = Loop(4, []), Loop(4, []), Loop(4, [])
    old, new = Statement("copy", (Constant(1.0),)), Statement("copy", (Constant(1.0),))
    moved = Substitution(copies={i: n})
    moved.registers[old] = new
    entry, changed = TableEntry(2, ((i, 1),)), TableEntry(2, ((n, 1),))
    assert moved.operand(Choice(i, load(P, (i, 1)), Register(old))) == Choice(n, load(P, (n, 1)), Register(new))
    assert moved.operand(Mixed((P, X), entry, entry)) == Mixed((P, X), changed, changed)
    assert moved.operand(load(P, (j, 1))) == load(P, (j, 1))
    assert moved.operand(Register(new)) == Register(new)
    assert moved.operand(Constant(-0.0)) == Constant(-0.0)


def test_03_targets() -> None:
    """References, choices and mixed ones; nothing stays nothing."""
    i, n = Loop(4, []), Loop(4, [])
    moved = Substitution(copies={i: n})
    entry, changed = TableEntry(2, ((i, 1),)), TableEntry(2, ((n, 1),))
    assert moved.target(at(P, (i, 2))) == at(P, (n, 2))
    assert moved.target(TargetChoice(i, None, at(P, (i, 1)))) == TargetChoice(n, None, at(P, (n, 1)))
    assert moved.target(TargetMixed((P, None), entry, entry)) == TargetMixed((P, None), changed, changed)
    assert moved.target(None) is None


def test_04_a_choice_by_the_replaced_loop() -> None:
    """Has no meaning over a multiple of another loop."""
    i, n = Loop(4, []), Loop(4, [])
    with pytest.raises(AssertionError):
        Substitution(i, n, 2, 1).operand(Choice(i, Constant(1.0), Constant(2.0)))
    with pytest.raises(AssertionError):
        Substitution(i, n, 2, 1).target(TargetChoice(i, None, None))


def test_05_copies_share_nothing() -> None:
    """Loops and statements are new, registers refer to the new statements, all else is kept."""
    i = Loop(4, [], reverse=True)
    made = Statement("exp", (load(X, (i, 1)),), None, False, frozenset([3]))
    around(i, made, update(at(P, (i, 1)), "add", Register(made)))
    (copy,) = copy_nodes([i], Substitution())
    assert isinstance(copy, Loop)
    assert copy is not i
    assert (copy.count, copy.reverse) == (4, True)
    first, second = copy.body
    assert isinstance(first, Statement)
    assert isinstance(second, Statement)
    assert first is not made
    assert first.passes == {3}
    assert first.operands == (load(X, (copy, 1)),)
    assert second.operands == (Register(first),)
    assert second.update
    assert second.target == at(P, (copy, 1))
    assert made.operands == (load(X, (i, 1)),)


def test_06_the_same_bits() -> None:
    """A Program of copies; and a loop of twelve as three stretches of four."""

    def copied(program: Program) -> None:
        program.forward[:] = copy_nodes(program.forward, Substitution())

    def in_stretches(program: Program) -> None:
        (loop,) = program.forward
        assert isinstance(loop, Loop)
        parts = [Loop(4, []) for _ in range(3)]
        for number, part in enumerate(parts):
            part.body = copy_nodes(loop.body, Substitution(loop, part, 1, 4 * number))
        program.forward[:] = parts

    for change in (copied, in_stretches):
        i, j = Loop(12, []), Loop(3, [])
        made = Statement("relu", (load(P, (i, 3), (j, 1), base=1),))
        looked_up = Load(Reference(X, Index(0, (), TableEntry(0, ((i, 1),)))))
        around(
            i, around(j, made, update(at(P, (i, 3), (j, 1)), "add", Register(made))), define(at(P), "copy", looked_up)
        )
        program = Program([i])
        program.tables.extend([5, 3, 8, 1, 0, 2, 9, 4, 7, 6, 11, 10])
        same_bits(program, change)


def test_07_blocks() -> None:
    """A block is copied as a block, with what is in it."""

    def copied(program: Program) -> None:
        program.forward[:] = copy_nodes(program.forward, Substitution())

    i = Loop(3, [])
    program = Program(
        [around(i, Block([define(at(P, (i, 1)), "negate", load(X, (i, 1)))]), define(at(P), "copy", load(X)))]
    )
    inner = i.body[0]
    same_bits(program, copied)
    loop = program.forward[0]
    assert isinstance(loop, Loop)
    assert isinstance(loop.body[0], Block)
    assert loop.body[0] is not inner


def test_08_bounds() -> None:
    """They follow their loops; one that is known now is a count, and a loop without iterations goes."""
    i, n = Loop(4, []), Loop(2, [])
    j = Loop(9, [], reverse=True, bound=Bound(-3, ((i, 2),), TableEntry(1, ((i, 3),))))
    k = Loop(9, [define(at(P), "copy", Constant(1.0))], bound=Bound(0, ((i, 1), (j, 1))))
    around(j, k)
    moved = copy_nodes([j], Substitution(i, n, 2, 1))[0]
    assert isinstance(moved, Loop)
    assert (moved.count, moved.reverse, moved.bound) == (9, True, Bound(-1, ((n, 4),), TableEntry(4, ((n, 6),))))
    inner = moved.body[0]
    assert isinstance(inner, Loop)
    assert inner.bound == Bound(1, ((n, 2), (moved, 1)))
    k.bound = Bound(0, ((i, 1),))
    for iteration in range(3):
        found = copy_nodes([k], Substitution(i, None, 1, iteration))
        assert [(loop.count, loop.bound) for loop in found if isinstance(loop, Loop)] == [(iteration, None)][:iteration]


@pytest.mark.parametrize("seed", range(30))
def test_09_random_nests_with_bounds(seed: int) -> None:
    """Copies compute the same."""
    same_bits(random_bounded(seed), lambda program: program.forward.__setitem__(slice(None), copied(program.forward)))


def copied(nodes: list[Node]) -> list[Node]:
    """The nodes as copies."""
    return copy_nodes(nodes, Substitution())
