"""Forests: counts of loops that depend on the loops around them, and how they are printed."""

from __future__ import annotations

from mgjit.compiler.roll.forest import all_counts, count_at, print_forest
from mgjit.compiler.roll.growing import roll_growing
from tests.growing_steps import suffix_products
from tests.lowering import Example


def test_a_count_by_the_iterations_of_the_loops_around() -> None:
    counts = ((1, 2), 7, (3, 4, 5))
    assert [count_at(counts, point) for point in ((0, 1), (1, 0), (1, 9), (2, 2))] == [2, 7, 7, 5]
    assert list(all_counts(counts)) == [1, 2, 7, 3, 4, 5]


def test_counts_are_printed() -> None:
    step, arguments = suffix_products(5)
    made = Example(step, *arguments)
    trace, _, forest = roll_growing(made.trace, made.reach)
    assert print_forest(forest, trace).splitlines() == [
        "for 5:  # records 0 .. 59",
        "    multiply",
        "    for <= 5: [5 4 3 2 1]:  # records 1 .. 10",
        "        multiply",
        "        subtract",
        "    multiply",
        "for 5:  # records 60 .. 64",
        "    store",
    ]
