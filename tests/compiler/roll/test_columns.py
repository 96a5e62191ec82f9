"""Columns over an iteration space: against all of their entries, one by one."""

from __future__ import annotations

import random
from array import array

from mgjit.compiler.roll.columns import Dimension, affine_column, positions_of, rows_of, without_affine_dimensions
from mgjit.ir.program import Loop


def nest(draw: random.Random) -> list[Dimension]:
    """Up to three loops around a record, some of them from the second iteration on."""
    made, period = [], 1
    for _ in range(draw.randrange(4)):
        high = draw.randrange(2, 6)
        made.append(Dimension(Loop(high, []), draw.randrange(2), high, period * draw.randrange(1, 3)))
        period = made[-1].period * high
    return made[::-1]


def test_01_affine_columns() -> None:
    """Found where all entries are as the steps say, and only there."""
    draw = random.Random(3)
    found = 0
    for _ in range(2000):
        dimensions = nest(draw)
        column = array("i", [-900] * 2000)
        steps = [draw.randrange(-3, 4) for _ in dimensions]
        positions = positions_of(7, dimensions)
        for position in positions:
            rest, entry = position - 7, -500
            for d, step in zip(dimensions, steps):
                entry += step * (rest // d.period - d.low)
                rest %= d.period
            column[position] = entry
        is_broken = draw.random() < 0.3 and len(positions) > 1
        if is_broken:
            column[draw.choice(positions)] += 1
        origin = 7 + sum(d.low * d.period for d in dimensions)
        affine = affine_column(column, origin, dimensions, frozenset())
        if not is_broken:
            wanted = [step if d.high - d.low > 1 else 0 for d, step in zip(dimensions, steps)]
            assert affine == (-500, wanted)
        elif affine is not None:
            first, others = affine
            for position in positions:
                rest, entry = position - 7, first
                for d, step in zip(dimensions, others):
                    entry += step * (rest // d.period - d.low)
                    rest %= d.period
                assert column[position] == entry
        found += affine is not None
    assert 1000 < found < 1950


def test_02_rows() -> None:
    """All positions, each with its index."""
    draw = random.Random(4)
    for _ in range(300):
        dimensions = [d._replace(low=0) for d in nest(draw)]
        strides, size = [], 1
        for d in reversed(dimensions):
            strides.insert(0, size)
            size *= d.high
        found = {}
        for row, indices in rows_of(5, dimensions, strides):
            found.update(zip(range(row.start, row.stop, row.step or 1), indices))
        assert [found[position] for position in positions_of(5, dimensions)] == list(range(size))


def test_03_dimensions_along_which_a_table_is_affine() -> None:
    """They are dropped, with their step."""
    rows = [[0, 1, 2], [7, 8, 9], [3, 4, 5]]
    assert without_affine_dimensions([e for row in rows for e in row], [3, 3]) == ([0, 7, 3], [None, 1])
