"""Two traces become a family: how their counts follow from a number, and for which members there is room."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mgjit
from mgjit.compiler.lengths.family import Member
from mgjit.compiler.lengths.founding import Shared, found_family
from mgjit.compiler.lengths.lengths import Unlike, records_in, shapes_of
from mgjit.compiler.pipeline.shared import member_of
from mgjit.compiler.roll.growing import Rolled, roll_growing
from mgjit.ir.printer import print_program
from mgjit.ir.verify import verify
from tests.lowering import Example, numbers
from tests.workload import values


def rolled(member: Member) -> Rolled:
    return roll_growing(member.trace, member.reach)


def member(step: Callable[..., Any], length: int) -> Member:
    made = Example(step, numbers(length), 0.5)
    return member_of(made.trace, made.regions)


def founded(step: Callable[..., Any], lengths: Sequence[int]) -> Shared:
    one, other = (member(step, length) for length in lengths)
    found = found_family(one, other, rolled)
    verify(found.program)
    return found


def polynomial(xs: Any, y: Any) -> Any:
    total = y * 1.0
    for x in xs:
        total = total * y + x
    return total


def triangle(xs: Any, y: Any) -> Any:
    return [sum((x * y for x in xs[: i + 1]), 0.0) for i in range(len(xs))]


@pytest.mark.parametrize("lengths", [(6, 9), (9, 6), (6, 7)])
def test_01_each_length_between_two_members_has_a_number(lengths: tuple[int, int]) -> None:
    family = founded(polynomial, lengths).family
    (length,) = {shape.length for shape in shapes_of(family.tree)}
    assert length.given == 1
    assert records_in(family.tree, 0, ()) == len(member(polynomial, 6).trace)
    assert records_in(family.tree, 1, ()) == len(member(polynomial, 7).trace)


def test_02_lengths_that_come_in_threes_have_numbers_beside_each_other() -> None:
    def step(xs: Any, y: Any) -> Any:
        return polynomial(xs[: len(xs) // 3 * 3], y)

    family = founded(step, (6, 9)).family
    assert {shape.length.given for shape in shapes_of(family.tree)} == {1}
    assert records_in(family.tree, 3, ()) == len(member(step, 9).trace)


def test_03_members_of_all_lengths_in_the_room() -> None:
    """The first iteration is no part of the loop, which has room for sixteen."""
    family = founded(polynomial, (6, 7)).family
    counts = [records_in(family.tree, n, ()) for n in range(family.least, family.most + 1)]
    assert counts == [len(member(polynomial, length).trace) for length in range(2, 18)]


def test_04_the_bound_is_a_number_that_is_given() -> None:
    shared = founded(triangle, (6, 7))
    text = print_program(shared.program)
    assert re.search(r"given", text)
    (given,) = shared.program.given
    assert given.count == shared.family.most - shared.family.least + 1


def test_05_nothing_is_lost_when_operations_are_other_ones() -> None:
    """What shows before anything is rolled is found without rolling."""

    def step(xs: Any, y: Any) -> Any:
        return polynomial(xs, y) / y if len(xs) == 7 else polynomial(xs, y)

    def never(_: Member) -> Rolled:
        raise AssertionError("it was rolled")

    with pytest.raises(Unlike, match="operations"):
        found_family(member(step, 6), member(step, 7), never)


def test_06_counts_that_follow_no_progression() -> None:
    """In one of them, the second loop grows by one; in the other by two in the middle."""

    def step(xs: Any, y: Any) -> Any:
        counts = range(len(xs)) if len(xs) == 6 else [0, 1, 2, 4, 5, 6, 7]
        return [sum((x * y for x in xs[: i + 1]), 0.0) for i in counts]

    with pytest.raises(Unlike):
        founded(step, (6, 8))


def test_07_other_memory() -> None:
    def step(xs: Any, y: Any) -> Any:
        return polynomial(xs, y)

    one = member(step, 6)
    made = Example(lambda xs, y: polynomial(xs, y) + len(xs), numbers(7), 0.5)
    other = member_of(made.trace, made.regions)
    other.trace.layouts.append(made.trace.layouts[0] if made.trace.layouts else None)  # type: ignore[arg-type]
    with pytest.raises(Unlike, match="memory"):
        found_family(one, other, rolled)


def test_08_members_that_would_read_behind_an_array_in_a_choice() -> None:
    """The first term of each sum is one of ten parameters, of which a longer member would need more."""
    weights = values(random.Random(4), 10)

    def step(xs: Any, y: Any) -> Any:
        total = sum(weights) * y
        for i in range(len(xs)):
            r = weights[i]
            for j in range(4):
                r = mgjit.tanh(r + xs[j])
            total = r - total
        return total

    assert founded(step, (6, 9)).family.most == 4  # ten of them
