"""Iterations of nests: columns over domains that are no boxes, compared with looking at every point."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator

import pytest

from mgjit.compiler.roll.columns import Dimension
from mgjit.compiler.roll.forest import Counts, count_at
from mgjit.compiler.roll.iterations import Bounded, Box, domain_of, separate
from mgjit.ir.program import Loop

Point = tuple[int, ...]


def random_domain(seed: int) -> list[Dimension]:
    """Up to four loops, the first of which grow; counts are affine or arbitrary."""
    draw = random.Random(seed)
    counts = [draw.randrange(1, 5) for _ in range(draw.randrange(2, 5))]
    growing = draw.randrange(1, len(counts))
    dimensions: list[Dimension] = []
    period = 1
    for high in reversed(counts):
        dimensions.insert(0, Dimension(Loop(high, []), 0, high, period))
        period *= high + draw.randrange(2)
    for k in range(growing):
        dimensions[k] = dimensions[k]._replace(grows=True)
    bounded = draw.randrange(1, len(counts))
    depth = min(bounded, growing)

    def some(level: int, start: int) -> Counts:
        if level == depth:
            high = counts[bounded]
            return min(high, start) if seed % 2 else draw.randrange(high + 1)
        return tuple(some(level + 1, start + i) for i in range(counts[level]))

    dimensions[bounded] = dimensions[bounded]._replace(counts=some(0, 0))
    return dimensions


def points_of(dimensions: list[Dimension]) -> Iterator[Point]:
    """Every iteration."""

    def below(k: int, point: Point, growing: Point) -> Iterator[Point]:
        if k == len(dimensions):
            yield point
            return
        d = dimensions[k]
        high = d.high if d.counts is None else min(d.high, count_at(d.counts, growing))
        for i in range(d.low, high):
            yield from below(k + 1, (*point, i), (*growing, i) if d.grows else growing)

    return below(0, (), ())


@pytest.mark.parametrize("seed", range(40))
def test_affine_columns_and_tables(seed: int) -> None:
    dimensions = random_domain(seed)
    domain = domain_of(dimensions)
    points = sorted(points_of(dimensions))
    assert isinstance(domain, Bounded)
    assert domain.is_empty() == (not points)
    if not points:
        return
    base = 3
    positions = {p: base + sum(i * d.period for i, d in zip(p, dimensions)) for p in points}
    assert dict(zip(domain.points, domain.positions(base))) == positions
    size = base + sum(d.high * d.period for d in dimensions) + 1
    draw = random.Random(seed)
    steps = [draw.randrange(-3, 4) for _ in dimensions]
    column = array("i", [-1] * size)
    for point, position in positions.items():
        column[position] = 50 + sum(step * i for step, i in zip(steps, point))
    found = domain.affine(column, base, frozenset())
    if found is not None:
        first, got = found
        for point, position in positions.items():
            assert column[position] == first + sum(s * (i - o) for s, i, o in zip(got, point, domain.origin))
        values = [column[position] - first for position in positions.values()]
        assert domain.span(got) == (min(0, *values), max(0, *values))
    entries = [draw.randrange(9) if seed % 3 else column[position] for position in domain.positions(base)]
    constant, separated, table = domain.separated(entries)
    kept = [k for k, step in enumerate(separated) if step is None]
    whole = domain.table(entries)
    for point, entry in zip(domain.points, entries):
        total = constant + sum(step * i for step, i in zip(separated, point) if step is not None)
        assert entry == total + (table[_number(point, dimensions, kept)] if kept else 0)
        assert entry == whole[_number(point, dimensions, list(range(len(dimensions))))]


def _number(point: Point, dimensions: list[Dimension], kept: list[int]) -> int:
    """The number of a point in a table over some of the loops."""
    number = 0
    for k in kept:
        number = number * (dimensions[k].high - dimensions[k].low) + point[k] - dimensions[k].low
    return number


def test_a_triangle_is_affine_where_its_box_is_not() -> None:
    rows, columns = Dimension(Loop(3, []), 0, 3, 3, None, True), Dimension(Loop(3, []), 0, 3, 1, (0, 1, 2))
    column = array("i", [-1, -1, -1, 7, -1, -1, 9, 8, -1])
    assert domain_of([rows, columns]).affine(column, 0, frozenset()) == (7, [2, -1])
    assert Box([rows, columns]).affine(column, 0, frozenset()) is None


def test_entries_are_separated_along_the_coordinates_in_which_they_are_affine() -> None:
    points = [(i, j) for i in range(3) for j in range(i + 1)]
    assert separate(points, [5 * i + 2 * j + 1 for i, j in points]) == ([5, 2], {(0, 0): 1})
    steps, rest = separate(points, [(4, 0, 9)[i] + 2 * j for i, j in points])
    assert steps == [None, 2]
    assert rest == {(0, 0): 4, (1, 0): 0, (2, 0): 9}
