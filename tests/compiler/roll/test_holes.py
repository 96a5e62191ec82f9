"""Padding: every record keeps its operation and operands, at places that are affine in the loops."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mgjit.compiler.roll.forest import Fold, Item, count_at
from mgjit.compiler.roll.growing import Rolled, roll_growing
from mgjit.compiler.roll.holes import Padded, Placed, grown, offsets, records_of, size_of
from tests.growing_steps import STEPS
from tests.lowering import Example


def executed(items: Sequence[Item], shift: int = 0, growing: tuple[int, ...] = ()) -> list[int]:
    """The places that are executed, in order."""
    found: list[int] = []
    for item in items:
        if isinstance(item, Fold):
            count = item.count if item.counts is None else count_at(item.counts, growing)
            assert count <= item.count
            for k in range(count):
                found += executed(item.body, shift + k * item.period, (*growing, k) if item.grows else growing)
        else:
            found.append(item + shift)
    return found


def check(made: Example, rolled: Rolled) -> None:
    """What is executed is the trace, record by record."""
    places = executed(rolled.forest)
    assert places == sorted(set(places))
    place_of = dict(enumerate(places))
    before, after = made.trace, rolled.trace
    assert len(places) == len(before)
    assert [after.op[place] for place in places] == list(before.op)
    pairs = [(before.a, after.a), (before.b, after.b)]
    if before.c is not None and after.c is not None:
        pairs.append((before.c, after.c))
    for old, new in pairs:
        assert [new[place] for place in places] == [place_of.get(operand, operand) for operand in old]
    if made.reach.marks is not None and rolled.reach.marks is not None:
        assert [rolled.reach.marks[place] for place in places] == list(made.reach.marks)
    assert rolled.reach.backwards == [place_of[position] for position in made.reach.backwards]


@pytest.mark.parametrize("name", STEPS)
def test_the_records_of_a_padded_trace_are_those_of_the_trace(name: str) -> None:
    step, arguments = STEPS[name]()
    made = Example(step, *arguments)
    rolled = roll_growing(made.trace, made.reach)
    assert len(rolled.trace) > len(made.trace)
    check(made, rolled)


def test_places_of_a_triangle() -> None:
    tree = grown(3, [0, grown(2, [1], counts=(0, 1, 2))], grows=True)
    assert size_of(tree) == 9
    assert offsets(tree) == [0, 3, 4, 6, 7, 8]
    assert records_of(tree) == [0, 1, 1] * 3


def test_a_padded_trace_says_which_record_is_at_a_place() -> None:
    step, arguments = STEPS["suffix products"]()
    made = Example(step, *arguments)
    tree = grown(2, [0, grown(3, [1, 2], counts=(1, 3)), 3], grows=True)
    padded = Padded(made.trace, made.reach, [Placed(0, 12, tree)])
    assert list(padded.places[:13]) == [0, 1, 2, 7, *range(8, 16), 16]
    assert [padded.record_at(place) for place in (0, 3, 7, 8, 16)] == [0, 3, 3, 4, 12]
    assert padded.folds[0].end == 16
