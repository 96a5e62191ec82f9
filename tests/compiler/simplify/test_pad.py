"""Which rows get room for whole vectors, and that everybody finds them again."""

from __future__ import annotations

import pytest

from mgjit.compiler.simplify.pad import pad
from mgjit.ir.program import (
    Array,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    PaddedRows,
    Program,
    Reference,
    TableEntry,
    TargetChoice,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.nests import random_chain, random_program

X, S = Array("x", "input", 90), Array("s", "state", 90)


def matrix(rows: int = 4, columns: int = 10) -> Array:
    """A scratch array that was made over two loops."""
    return Array("t", "scratch", rows * columns, shape=(rows, columns))


def fill(t: Array) -> Loop:
    """Every element a number."""
    rows, columns = t.shape
    i, j = Loop(rows, []), Loop(columns, [])
    return around(i, around(j, define(at(t, (i, columns), (j, 1)), "copy", load(X, (i, columns), (j, 1)))))


def padded(t: Array, *nodes: Node, lanes: int = 8) -> bool:
    """Whether rows get room; the bits are the same."""
    program = Program([fill(t), *nodes])
    program.tables.extend([3, 0, 11, 25])
    same_bits(program, lambda changed: pad(changed, lanes))
    return bool(t.padded_rows)


def test_01_rows_of_whole_vectors() -> None:
    """As in the docstring of the module."""
    t = matrix()
    i, j = Loop(4, []), Loop(10, [])
    read = define(at(S, (i, 10), (j, 1)), "copy", load(t, (i, 10), (j, 1)))
    assert padded(t, around(i, around(j, read)))
    assert t.size == 64
    assert t.padded_rows == (PaddedRows(0, 10, 16, 4),)
    assert read.operands == (load(t, (i, 16), (j, 1)),)


@pytest.mark.parametrize(
    ("columns", "lanes", "expected"),
    [
        (8, 8, False), (16, 8, False), (7, 8, True), (5, 8, True), (4, 8, False), (3, 8, False), (9, 8, True),
        (9, 16, True), (8, 16, False), (3, 4, True), (2, 4, False), (3, 2, True), (2, 2, False), (7, 1, False),
    ],
)  # fmt: skip
def test_02_lengths(columns: int, lanes: int, expected: bool) -> None:
    """Rows of whole vectors need no room; for up to half a vector it would be waste."""
    t = matrix(4, columns)
    i = Loop(4, [])
    assert padded(t, around(i, define(at(S, (i, 1)), "copy", load(t, (i, columns)))), lanes=lanes) is expected


@pytest.mark.parametrize(
    ("steps", "counts", "base", "expected"),
    [
        ((10, 1), (4, 10), 0, True),
        ((1, 10), (10, 4), 0, True),  # columns first
        ((-10, -1), (4, 10), 39, True),  # backwards
        ((10, 2), (4, 5), 1, True),  # every other column
        ((20, 1), (2, 10), 10, True),  # every other row
        ((10,), (4,), 7, True),  # one column
        ((10, 1), (4, 7), 3, True),  # a part of each row
        ((10, 1), (3, 8), 3, False),  # beyond the end of a row
        ((1,), (40,), 0, False),  # all elements in one loop
        ((11,), (3,), 0, False),  # a diagonal
        ((10, 1, 5), (4, 5, 2), 0, True),  # a row in two parts
        ((10, 1, 5), (3, 6, 2), 0, False),  # which overlap and leave the row
    ],
)
def test_03_accesses(steps: tuple[int, ...], counts: tuple[int, ...], base: int, expected: bool) -> None:
    """Each stays inside one row, or nothing is padded; as reads, as writes, as updates."""
    for write in (False, True):
        t = matrix()
        loops = [Loop(count, []) for count in counts]
        place = at(t, *zip(loops, steps), base=base)
        node: Node = update(place, "add", load(X)) if write else define(at(S), "add", Load(place), load(S))
        for loop in reversed(loops):
            node = around(loop, node)
        i = Loop(4, [])
        assert padded(t, node, around(i, define(at(S, (i, 1), base=20), "copy", load(t, (i, 10), base=9)))) is expected


@pytest.mark.parametrize("kind", ["table", "run-time index", "mixed", "mixed in a choice of targets"])
def test_04_what_is_not_plain(kind: str) -> None:
    """Nobody else knows where the rows begin."""
    t = matrix()
    operands: dict[str, Operand] = {
        "table": Load(Reference(t, Index(0, (), TableEntry(2, ())))),
        "run-time index": Load(Reference(t, Index(0, (), None, Dynamic(Constant(2.0), 10, 4)))),
        "mixed": Mixed((t, X), TableEntry(1, ()), TableEntry(2, ())),
    }
    operand = operands.get(kind, Constant(1.0))
    i = Loop(4, [])
    other = at(t, (i, 10)) if kind in operands else Reference(t, Index(0, ((i, 1),), TableEntry(2, ())))
    target = TargetChoice(i, at(S), other)
    assert not padded(t, define(at(S), "copy", operand), around(i, define(target, "copy", Constant(0.5))))


def test_05_choices_of_targets() -> None:
    """Both places move."""
    t = matrix()
    i = Loop(4, [])
    write = update(TargetChoice(i, at(t, (i, 10), base=3), at(t, (i, 10), base=4)), "add", Constant(0.5))
    read = around(Loop(1, []), define(at(S), "copy", load(t, base=14)), define(at(S, base=1), "copy", load(t, base=3)))
    assert padded(t, around(i, write), read)
    assert write.target == TargetChoice(i, at(t, (i, 16), base=3), at(t, (i, 16), base=4))


def test_06_other_arrays() -> None:
    """Only scratch memory that was made over loops."""
    for array in (Array("t", "scratch", 40), Array("t", "state", 40, shape=(4, 10))):
        i = Loop(40, [])
        program = Program([around(i, define(at(array, (i, 1)), "copy", load(X, (i, 1))))])
        same_bits(program, lambda changed: pad(changed, 8))
        assert (array.size, array.padded_rows) == (40, ())


def test_07_one_row_is_a_row() -> None:
    """An array over one loop."""
    t = Array("t", "scratch", 10, shape=(10,))
    i, j = Loop(10, []), Loop(10, [])
    nodes = [
        around(i, define(at(t, (i, 1)), "copy", load(X, (i, 1)))),
        around(j, define(at(S, (j, 1)), "copy", load(t, (j, 1)))),
    ]
    same_bits(Program(list(nodes)), lambda changed: pad(changed, 4))
    assert (t.size, t.padded_rows) == (12, (PaddedRows(0, 10, 12, 1),))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(5))
def test_08_random_nests(seed: int, lanes: int) -> None:
    """Whatever they access."""
    for program in (random_program(seed), random_program(seed, plain=True), random_chain(seed)):
        same_bits(program, lambda changed: pad(changed, lanes))


def test_09_one_array_in_two_ways() -> None:
    """A plain read does not speak for another that is not."""
    t = matrix()
    assert not padded(t, define(at(S), "add", load(t, base=3), Mixed((t, X), TableEntry(1, ()), TableEntry(2, ()))))
