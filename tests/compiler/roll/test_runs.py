"""What is known about a run: against the definitions, and however far the search has moved since the last question."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

import pytest

from mgjit.compiler.roll.known_loops import KnownSteps
from mgjit.compiler.roll.runs import PossibleStarts, Rotations
from mgjit.compiler.roll.wiring import Wiring

LENGTH, PERIOD = 60, 6


def columns(seed: int) -> list[array[int]]:
    """Operands of records that repeat with the period, in most places: earlier records, or leaves."""
    draw = random.Random(seed)
    made = []
    for _ in range(2):
        distances = [draw.choice((1, 1, 2, 3, 5, 6, 7, 12, 30, 0)) for _ in range(PERIOD)]
        column = array("i")
        for position in range(LENGTH):
            distance = distances[position % PERIOD] if draw.random() > 0.03 else draw.randrange(1, 15)
            column.append(position - distance if distance and position >= distance else -5)
        made.append(column)
    return made


def items(seed: int) -> tuple[list[int], int]:
    """The first record of each item, and the period in items: some items are loops of two records."""
    draw = random.Random(seed)
    lengths = draw.choice(([1] * 6, [2, 1, 1, 2], [1, 2, 1, 1, 1], [2, 2, 2]))
    starts = [0]
    while starts[-1] < LENGTH:
        starts.append(starts[-1] + lengths[(len(starts) - 1) % len(lengths)])
    return starts, len(lengths)


@pytest.mark.parametrize("fewest", [2, 3, 4])
def test_01_no_loop_is_ruled_out(fewest: int) -> None:
    """Where a loop of enough iterations starts, none is ruled out; elsewhere most are."""
    loops = refused = others = 0
    for seed in range(200):
        given = columns(seed)
        wiring = Wiring(given, KnownSteps([], given[1]))
        for k in (0, 7, 20):
            possible = PossibleStarts(given, range(LENGTH + 1), k, LENGTH, PERIOD, fewest)
            for start in range(k, LENGTH - fewest * PERIOD + 1):
                count = wiring.alike(start, PERIOD, (LENGTH - start) // PERIOD)
                if count >= fewest:
                    loops += 1
                    assert possible.has_any(start, 1), (seed, k, start)
                else:
                    others += 1
                    refused += not possible.has_any(start, 1)
    assert loops > 500
    assert refused > 0.4 * others


def test_02_any_of_several_starts() -> None:
    """An iteration may start at any of the items of a period."""
    for seed in range(50):
        starts, period = items(seed)
        end = len(starts) - 1
        possible = PossibleStarts(columns(seed), starts, 3, end, starts[3 + period] - starts[3], 2)
        for k in range(3, end - period):
            assert possible.has_any(k, period) == any(possible.has_any(k + one, 1) for one in range(period))


def by_definition(given: Sequence[array[int]], starts: Sequence[int], k: int, period: int) -> list[int]:
    """The rotations, counted one by one in the second iteration, as if it were all iterations."""
    start = starts[k + period]
    flat_period = starts[k + period] - starts[k]
    cost = []
    for offset in range(period):
        cut = starts[k + offset] - starts[k]
        cost.append(0)
        for column in given:
            for phase in range(flat_period):
                distance = start + phase - column[start + phase]
                if column[start + phase] >= 0 and distance < flat_period:
                    between = [(phase - d) % flat_period for d in range(distance)]
                    cost[-1] += cut in between
    best = cost.index(min(cost))
    return [0] if cost[best] == cost[0] else [best, 0]


def test_03_rotations() -> None:
    """As defined, whatever was asked before: the items in between, or some far away."""
    found = set()
    for seed in range(100):
        given, (starts, period) = columns(seed), items(seed)
        flat_period = starts[period] - starts[0]
        draw = random.Random(seed)
        one = Rotations(given, starts, period, flat_period)
        k = 0
        while k + 2 * period < len(starts):
            expected = by_definition(given, starts, k, period)
            assert one.best(k) == expected == one.best(k), (seed, k)
            found.add(expected[0])
            k += draw.choice((1, 1, 1, 2, 5, 9))
    assert len(found) > 3
