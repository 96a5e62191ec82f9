"""Counts that follow from a number, and what they say about the loops of a member."""

from __future__ import annotations

from mgjit.compiler.lengths.lengths import Count, Shape, counts_of, records_in, shapes_of, tree_of
from mgjit.compiler.roll.holes import Grown, size_of

#: `for i in 0 .. number + 2: (a record, for k in 0 .. i + 1: two records)`, with room for six.
INNER = Shape(Count(1, 0, (1,)), (1, 2), False, 6)
OUTER = Shape(Count(2, 1, ()), (0, INNER), True, 6)


def test_01_counts() -> None:
    count = Count(3, 2, (1, -1))
    assert count.at(4, (5, 2)) == 3 + 8 + 5 - 2
    assert count.at(4, (5,)) == 3 + 8 + 5
    assert [one.varies for one in (count, Count(3, 0, (0,)), Count(3, 0, (0, 1)))] == [True, False, True]


def test_02_counts_of_a_loop_in_each_iteration() -> None:
    assert counts_of(OUTER.length, (), 3, ()) == 5
    assert counts_of(INNER.length, (OUTER,), 1, ()) == (1, 2, 3)


def test_03_a_loop_that_does_not_depend_on_the_loops_around_has_one_count() -> None:
    assert counts_of(Count(4, 0, (0,)), (OUTER,), 1, ()) == 4


def test_04_records_of_a_member() -> None:
    for number in range(5):
        rows = number + 2
        assert records_in((OUTER,), number, ()) == rows + 2 * rows * (rows + 1) // 2


def test_05_all_members_have_boxes_of_one_size() -> None:
    trees = [tree_of(OUTER, number, ()) for number in range(5)]
    assert {size_of(tree) for tree in trees} == {6 * (1 + 6 * 2)}
    assert [tree.counts for tree in trees if isinstance(tree, Grown)] == [2, 3, 4, 5, 6]


def test_06_shapes_of_all_loops() -> None:
    assert list(shapes_of((OUTER, 3))) == [OUTER, INNER]
