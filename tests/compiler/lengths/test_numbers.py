"""The numbers in which Programs differ, and the key of everything else."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from mgjit.compiler.lengths.lengths import Unlike
from mgjit.compiler.lengths.numbers import Numbers, loaded_constants, table_entries
from mgjit.ir.program import (
    Array,
    Bound,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Program,
    Reference,
    Statement,
    TableEntry,
    statements,
)


def program(first: int = 0, bound: int = 3, factor: float = 2.0, stride: int = 1) -> Program:
    """`for i in 0 .. bound: y[i] = x[first + stride * i] * factor`."""
    x, y = Array("x", "input", 20), Array("y", "output", 20)
    loop = Loop(8, [], bound=Bound(bound))
    operands = (Load(Reference(x, Index(first, ((loop, stride),)))), Constant(factor))
    loop.body = [Statement("mul", operands, Reference(y, Index(0, ((loop, 1),))))]
    return Program([loop])


def test_01_bounds_first_elements_and_constants_are_numbers() -> None:
    found = Numbers.of(program(5, 4, 0.5), [])
    assert sorted(found.numbers) == [0, 4, 5]
    assert found.constants == [0.5]


def test_02_programs_that_differ_in_nothing_else_have_one_key() -> None:
    keys = {Numbers.of(program(*given), []).key for given in ((0, 3, 2.0), (5, 3, 2.0), (0, 4, 2.0), (0, 3, 0.5))}
    assert len(keys) == 1
    assert Numbers.of(program(stride=2), []).key not in keys


def test_03_numbers_are_written_in_the_order_in_which_they_are_read() -> None:
    read = Numbers.of(program(5, 4), []).numbers
    following = iter(read)
    other = program(0, 0)
    Numbers(lambda _: (next(following), ()), Constant).rewrite(other)
    loop: Any = other.forward[0]
    assert loop.bound == Bound(4)
    (statement,) = statements(other.forward)
    operand: Any = statement.operands[0]
    assert operand.reference.index.base == 5


def constants_read(index: Index) -> Program:
    source = Array("constants", "constant", 9)
    target = Reference(Array("y", "output", 1), Index(0))
    statement = Statement("copy", (Load(Reference(source, index)),), target)
    return Program([statement], constants=array("d", [0.0] * 9), tables=array("i", [3, 1, 6, 2]))


def test_04_how_many_constants_are_read() -> None:
    assert loaded_constants(constants_read(Index(4))) == 5
    loop = Loop(3, [])
    assert loaded_constants(constants_read(Index(1, ((loop, 2),)))) == 6
    assert loaded_constants(constants_read(Index(0, (), TableEntry(1, ((loop, 1),))))) == 7
    operand = Load(Reference(Array("x", "input", 1), Index(0)))
    with pytest.raises(Unlike, match="run time"):
        loaded_constants(constants_read(Index(0, (), None, Dynamic(operand, 1, 3))))


def test_05_uses_of_tables() -> None:
    entry = TableEntry(1, ((Loop(3, []), 1),))
    assert table_entries(constants_read(Index(0, (), entry))) == ([entry], [])
