"""What operands read that read one of several arrays, and tables for it."""

from __future__ import annotations

import random
from array import array

import pytest

from mgjit.compiler.simplify.mixed import as_index, as_table, entries_of
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Index, Loop, Mixed, Program, Reference, TableEntry

A, B = Array("a", "scratch", 9), Array("b", "scratch", 9)


def test_01_one_loop() -> None:
    """The selector and the position of each iteration."""
    i = Loop(3, [])
    mixed = Mixed((A, B), TableEntry(0, ((i, 1),)), TableEntry(3, ((i, 2),)))
    found = entries_of(mixed, [0, 1, 0, 7, 70, 8, 80, 5])
    assert found.loops == (i,)
    assert found.places == [(A, 7), (B, 8), (A, 5)]


def test_02_loops_of_one_of_the_two() -> None:
    """The array may depend on one loop and the element on another."""
    i, j = Loop(2, []), Loop(3, [])
    mixed = Mixed((A, B), TableEntry(0, ((i, 1),)), TableEntry(2, ((j, 1),)))
    found = entries_of(mixed, [1, 0, 4, 5, 6])
    assert found.loops == (i, j)
    assert found.places == [(B, 4), (B, 5), (B, 6), (A, 4), (A, 5), (A, 6)]


def test_03_without_loops() -> None:
    """One place."""
    mixed = Mixed((A, B), TableEntry(0, ()), TableEntry(1, ()))
    assert entries_of(mixed, [1, 8]).places == [(B, 8)]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([5, 5, 5, 5, 5, 5], (5, ())),
        ([0, 1, 2, 3, 4, 5], (0, (3, 1))),
        ([9, 8, 7, 6, 5, 4], (9, (-3, -1))),
        ([2, 4, 6, 2, 4, 6], (2, (0, 2))),
        ([2, 2, 2, 12, 12, 12], (2, (10, 0))),
    ],
)
def test_04_affine(numbers: list[int], expected: tuple[int, tuple[int, ...]]) -> None:
    """Where it is affine, no table is made."""
    i, j = Loop(2, []), Loop(3, [])
    tables = array("i", [1, 2])
    index = as_index(numbers, (i, j), tables)
    steps = tuple((loop, step) for loop, step in zip((i, j), expected[1]) if step)
    assert index == Index(expected[0], steps)
    assert len(tables) == 2


def test_05_not_affine() -> None:
    """Through a new table, behind those there are."""
    i, j = Loop(2, []), Loop(3, [])
    tables = array("i", [1, 2])
    index = as_index([0, 1, 2, 3, 4, 6], (i, j), tables)
    assert index == Index(0, (), TableEntry(2, ((i, 3), (j, 1))))
    assert list(tables) == [1, 2, 0, 1, 2, 3, 4, 6]
    assert as_table([7], (), tables) == TableEntry(8, ())


@pytest.mark.parametrize("seed", range(10))
def test_06_random_numbers(seed: int) -> None:
    """An index gives what it was made from, in every iteration."""
    draw = random.Random(seed)
    loops = [Loop(draw.randint(1, 4), []) for _ in range(draw.randint(0, 3))]
    numbers: list[int] = []
    steps = [draw.randint(-2, 3) for _ in loops]

    def fill(depth: int, value: int) -> None:
        if depth == len(loops):
            numbers.append(value + (draw.random() < 0.05))
            return
        for i in range(loops[depth].count):
            fill(depth + 1, value + steps[depth] * i)

    fill(0, 40)
    program = Program([])
    index = as_index(numbers, loops, program.tables)
    interpreter = Interpreter(program, {})
    found: list[int] = []

    def read(depth: int) -> None:
        if depth == len(loops):
            found.append(interpreter.index(Reference(A, index).index))
            return
        for i in range(loops[depth].count):
            interpreter.variables[loops[depth]] = i
            read(depth + 1)

    read(0)
    assert found == numbers
