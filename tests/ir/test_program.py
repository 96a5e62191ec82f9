"""Walking Programs, and what a statement reads and writes."""

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
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
    arrays_read,
    arrays_written,
    count_statements,
    leaf_operands,
    leaf_targets,
    statements,
    walk,
)

A, B, C, N = (Array(name, "scratch", 4) for name in "abcn")


def load(array: Array, base: int = 0) -> Load:
    return Load(Reference(array, Index(base)))


def test_01_walk_in_order() -> None:
    """Loops and blocks before their bodies, any depth, no recursion."""
    first, second, third = (Statement("copy", (Constant(float(k)),)) for k in range(3))
    inner = Loop(2, [second])
    block = Block([inner])
    outer = Loop(3, [first, block, third])
    assert list(walk([outer])) == [outer, first, block, inner, second, third]
    assert list(statements([outer])) == [first, second, third]
    assert count_statements([outer, third]) == 4
    nodes: list[Loop] = []
    for _ in range(5000):
        nodes = [Loop(1, list(nodes))]
    assert sum(1 for _ in walk(nodes)) == 5000


def test_02_reads_and_writes() -> None:
    """Every alternative of every operand; an update reads its target."""
    loop = Loop(2, [])
    entry = TableEntry(0, ())
    statement = Statement("add", (Choice(loop, load(A), load(B)), Mixed((B, C), entry, entry)), Reference(N, Index(0)))
    assert set(arrays_read(statement)) == {A, B, C}
    assert list(arrays_written(statement)) == [N]
    statement.update = True
    assert set(arrays_read(statement)) == {A, B, C, N}


def test_03_run_time_indices_are_read() -> None:
    """Of operands and of targets."""
    dynamic = Index(0, dynamic=Dynamic(load(N), 1, 4))
    statement = Statement("copy", (Load(Reference(A, dynamic)),), Reference(B, dynamic))
    assert set(arrays_read(statement)) == {A, N}
    assert list(leaf_operands(Load(Reference(A, dynamic)))) == [Load(Reference(A, dynamic)), load(N)]


def test_04_targets() -> None:
    """Choices and mixtures write to all of their places, None to none."""
    loop = Loop(2, [])
    entry = TableEntry(0, ())
    mixed = TargetMixed((A, None), entry, entry)
    choice = TargetChoice(loop, Reference(B, Index(0)), TargetChoice(loop, None, mixed))
    assert list(leaf_targets(choice)) == [Reference(B, Index(0)), mixed]
    assert list(arrays_written(Statement("add", (), choice, update=True))) == [B, A]
    assert list(arrays_read(Statement("add", (), choice, update=True))) == [B, A]
    assert list(leaf_targets(None)) == []


def test_05_registers_and_phases() -> None:
    """A register reads no array; phases come in order."""
    first = Statement("copy", (Constant(1.0),))
    program = Program([first], [Statement("negate", (Register(first),))])
    assert [name for name, _ in program.phases] == ["forward", "backward", "update"]
    assert list(arrays_read(program.backward[0])) == []  # type: ignore[arg-type]
