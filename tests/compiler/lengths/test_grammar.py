"""A shorter or longer trace is parsed by the loops of another one; whether that is right, others prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from mgjit.compiler.lengths.grammar import Repeated, Rule, parsed
from mgjit.compiler.lengths.lengths import Unlike
from tests.compiler.lengths.test_family import STEPS, check, example, family
from tests.compiler.lengths.test_founding import member, polynomial, rolled, triangle


def loops(rules: Sequence[Rule]) -> Iterator[Repeated]:
    for rule in rules:
        if isinstance(rule, Repeated):
            yield rule
            yield from loops(rule.body)


def counts(step: Callable[..., Any], known: int, other: int) -> list[tuple[int, int | None]]:
    """Of each loop of the known length the least count, and that of the other length."""
    one, two = member(step, known), member(step, other)
    rules = parsed(rolled(one), (one.trace, one.reach), (two.trace, two.reach))
    return [(loop.known.base, loop.other and loop.other.base) for loop in loops(rules)]


@pytest.mark.parametrize(("known", "other"), [(9, 6), (9, 3), (9, 2), (6, 14)])
def test_01_shorter_and_longer_traces_consist_of_the_same_loops(known: int, other: int) -> None:
    """Also where the other one would not be rolled into a loop at all."""
    assert counts(polynomial, known, other) == [(known - 1, other - 1)]


def test_02_counts_along_growing_loops() -> None:
    """The rows, the sum in each of them, and the results."""
    for other in (5, 4):
        rows, terms, results = counts(triangle, 9, other)
        assert (rows, results) == ((9, other), (9, other))
        assert terms[0] == terms[1]  # in the first row


def test_03_what_follows_tells_where_a_loop_ends() -> None:
    """Two additions of products behind the loop look like two more of its iterations."""

    def step(xs: Any, y: Any) -> Any:
        total = polynomial(xs, y)
        return (total * xs[0] + y) * xs[0] + y

    assert [more - less for more, less in counts(step, 9, 5)] == [4]  # type: ignore[operator]


def remainder(xs: Any, y: Any) -> Any:
    """The second loop is executed as often as is left over by the first one."""
    total, rest = y, xs[0]
    for x in xs:
        total = total * 0.5 + x
    for _ in range(16 - len(xs)):
        rest = rest / 3.0
    return total - rest


def test_04_loops_that_become_shorter() -> None:
    assert counts(remainder, 9, 5) == [(8, 4), (6, 10)]
    assert counts(remainder, 5, 9) == [(4, 8), (10, 6)]


@pytest.mark.parametrize("odd", [4, 6])
def test_05_a_trace_of_other_operations_is_refused(odd: int) -> None:
    def step(xs: Any, y: Any) -> Any:
        return polynomial(xs, y) / y if len(xs) == odd else polynomial(xs, y)

    with pytest.raises(Unlike):
        counts(step, 10 - odd, odd)


@pytest.mark.parametrize(("name", "short"), [("prefix sums", 3), ("recurrent", 2), ("suffixes", 2), ("attention", 2)])
def test_06_lengths_that_roll_unlike_each_other_are_a_family(name: str, short: int) -> None:
    """Of so few positions there are no loops, and a single iteration does not tell how indices change along one."""
    make, unit = STEPS[name]
    step = make()
    found, lowered = family(example(step, short, unit), example(step, 9, unit))
    for length in (short, 9, 5, 7, 8):
        check(example(step, length, unit), found, lowered)
