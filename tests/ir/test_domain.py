"""Which iterations are executed: against executing them all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest

from mgjit.ir.domain import bounding, elements, extent, fewest, full_range, iterations, loops_of_bound
from mgjit.ir.program import Bound, Index, Loop, TableEntry

TABLES = [3, 0, 2, 1, 4, 2]


def triangle(count: int = 4) -> tuple[Loop, Loop]:
    """`for i in 0 .. count - 1: for j in 0 .. i - 1`."""
    outer = Loop(count, [])
    return outer, Loop(count - 1, [], bound=Bound(0, ((outer, 1),)))


def test_01_iterations() -> None:
    """Those of a triangle, in order; of a box."""
    outer, inner = triangle()
    found = [tuple(variables.values()) for variables in iterations((outer, inner), ())]
    assert found == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    box = Loop(2, []), Loop(3, [])
    assert [tuple(v.values()) for v in iterations(box, ())] == list(product(range(2), range(3)))
    assert [dict(variables) for variables in iterations((), ())] == [{}]


def test_02_loops_of_bounds() -> None:
    """Also those by which a table is read."""
    outer, inner = triangle()
    other = Loop(2, [])
    looked_up = Loop(4, [], bound=Bound(1, ((inner, 2),), TableEntry(0, ((other, 3),))))
    assert looked_up.bound is not None
    assert loops_of_bound(looked_up.bound) == {inner, other}
    assert bounding([outer, inner, looked_up]) == {outer, inner, other}


@pytest.mark.parametrize(
    ("base", "step", "entry", "expected"),
    [(0, 1, None, 0), (1, 1, None, 1), (4, -1, None, 1), (3, -1, None, 0), (0, 0, 0, 0), (1, 0, 2, 2), (2, -2, 3, 0)],
)
def test_03_the_fewest_iterations(base: int, step: int, entry: int | None, expected: int) -> None:
    """Of a loop in a loop of 4 iterations; an entry of a table is the one of four that is least."""
    outer = Loop(4, [])
    table = None if entry is None else TableEntry(entry, ((outer, 1),)) if entry < 2 else TableEntry(entry + 1, ())
    assert fewest(Loop(9, [], bound=Bound(base, ((outer, step),), table)), TABLES) == expected
    assert fewest(Loop(9, []), TABLES) == 9


def nest(draw: random.Random) -> list[Loop]:
    """Some loops, each with a bound by those around it or without."""
    loops: list[Loop] = []
    for _ in range(draw.choice((1, 2, 3, 4))):
        terms = tuple((loop, draw.choice((-1, 1, 2))) for loop in loops if draw.random() < 0.4)
        low, high = full_range(Index(0, terms))
        bound = Bound(-low + draw.choice((0, 1)), terms) if terms else None
        if loops and draw.random() < 0.2:
            bound = Bound(0, (), TableEntry(0, ((loops[0], 1),)))
        count = draw.choice((1, 2, 3)) if bound is None else 4 if bound.table is not None else high - low + 2
        loops.append(Loop(count, [], bound=bound))
    return loops


def by_executing(base: int, steps: Sequence[int], loops: Sequence[Loop]) -> tuple[int, int] | None:
    values = [
        base + sum(step * variables[loop] for loop, step in zip(loops, steps))
        for variables in iterations(loops, TABLES)
    ]
    return (min(values), max(values)) if values else None


@pytest.mark.parametrize("seed", range(100))
def test_04_the_least_and_greatest_value(seed: int) -> None:
    """As found by executing the nest; the box has all of them."""
    draw = random.Random(seed)
    loops = nest(draw)
    steps = [draw.choice((-5, -1, 0, 1, 3)) for _ in loops]
    terms = tuple((loop, step) for loop, step in zip(loops, steps) if step)
    found = extent(7, terms, loops, TABLES)
    assert found == by_executing(7, steps, loops)
    low, high = full_range(Index(7, terms))
    assert found is None or (low <= found[0] and found[1] <= high)


@pytest.mark.parametrize("seed", range(100))
def test_05_elements(seed: int) -> None:
    """A bit for each; those before the array are left out."""
    draw = random.Random(seed)
    loops = nest(draw)
    steps = [draw.choice((-3, -1, 0, 1, 2)) for _ in loops]
    index = Index(draw.choice((0, 2, 20)), tuple((loop, step) for loop, step in zip(loops, steps) if step))
    known = {loops[0]: loops[0].count - 1} if draw.random() < 0.3 else {}
    inside = loops[len(known) :]
    places = {
        index.base + sum(step * variables[loop] for loop, step in zip(loops, steps))
        for variables in iterations(inside, TABLES, known)
    }
    assert elements(index, inside, TABLES, known) == sum(1 << place for place in places if place >= 0)
