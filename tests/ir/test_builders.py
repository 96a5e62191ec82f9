"""Nests and row-major numbers."""

from __future__ import annotations

from itertools import product

import pytest

from mgjit.ir.builders import nested, row_major
from mgjit.ir.program import Constant, Loop, Node, Statement


@pytest.mark.parametrize("counts", [(), (5,), (3, 4), (2, 1, 3), (1, 1)])
def test_01_row_major_numbers_count_the_iterations(counts: tuple[int, ...]) -> None:
    """In the order in which they are executed, from 0 on."""
    loops = [Loop(count, []) for count in counts]
    terms, size = row_major(loops)
    assert [loop for loop, _ in terms] == loops
    numbers = [sum(c * i for (_, c), i in zip(terms, point)) for point in product(*map(range, counts))]
    assert numbers == list(range(size))


def test_02_rows_with_room_behind_them() -> None:
    """The counts say how many places a loop gets."""
    loops = [Loop(3, []), Loop(5, [])]
    assert row_major(loops, [3, 8]) == (((loops[0], 8), (loops[1], 1)), 24)


def test_03_a_nest() -> None:
    """The first loop is the outermost; without loops it is the body."""
    body: list[Node] = [Statement("copy", (Constant(1.0),)), Statement("copy", (Constant(2.0),))]
    outer, inner = Loop(2, []), Loop(3, [])
    assert nested([outer, inner], body) == [outer]
    assert outer.body == [inner]
    assert inner.body == body
    assert nested([], body) is body
