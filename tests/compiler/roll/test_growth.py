"""Iterations that differ in counts: how the counts change, and what iterations of other sizes look like."""

from __future__ import annotations

from mgjit.compiler.roll.growth import Growth
from mgjit.compiler.roll.roll import FoldShape

#: Shapes of records are small letters here, and those of loops capital ones.
Folds = dict[str, FoldShape]


def growth_of(iterations: list[str], folds: Folds) -> Growth:
    """The iterations, which begin at record 10."""

    def records(shape: str) -> int:
        return folds[shape].count * folds[shape].records if shape in folds else 1

    return Growth(iterations, 10, folds, records)


#: a (bc)^n d (e)^(2n - 1), for n = 4, 5, 6.
TRIANGLE: Folds = {
    "P": FoldShape(4, "bc", 2), "Q": FoldShape(5, "bc", 2), "R": FoldShape(6, "bc", 2),
    "X": FoldShape(7, "e", 1), "Y": FoldShape(9, "e", 1), "Z": FoldShape(11, "e", 1),
}  # fmt: skip


def test_counts_that_are_affine_in_the_size() -> None:
    growth = growth_of(["aPdX", "aQdY", "aRdZ"], TRIANGLE)
    assert growth.grows
    assert growth.is_predictable
    assert growth.sizes == [4, 5, 6]
    assert growth.shapes(4) == "abcbcbcbcdeeeeeee"
    assert growth.shapes(1) == "abcde"
    assert not growth.shapes(0)  # the last loop would have -1 iterations


def test_counts_that_are_not() -> None:
    folds = {**TRIANGLE, "Y": FoldShape(8, "e", 1)}
    growth = growth_of(["aPdX", "aQdY", "aRdZ"], folds)
    assert growth.grows
    assert not growth.is_predictable
    tree = growth.tree(None, int)
    assert [getattr(part, "counts", part) for part in tree.body] == [10, (4, 5, 6), 19, (7, 8, 11)]


def test_iterations_that_are_equal_do_not_grow() -> None:
    assert not growth_of(["aP", "aP"], TRIANGLE).grows


def test_the_loop_with_further_iterations() -> None:
    tree = growth_of(["aPdX", "aQdY", "aRdZ"], TRIANGLE).tree([2, 3, 4, 5, 6, 7], int)
    assert (tree.count, tree.grows, tree.size) == (6, True, 1 + 2 * 7 + 1 + 13)
    assert [getattr(part, "counts", part) for part in tree.body] == [10, (2, 3, 4, 5, 6, 7), 19, (3, 5, 7, 9, 11, 13)]


def test_the_size_of_records_before_and_behind() -> None:
    growth = growth_of(["aPdX", "aQdY", "aRdZ"], TRIANGLE)
    records = growth.shapes(3) + growth.shapes(9)
    assert 3 in growth.likely_sizes(records, 0, False)
    assert 9 in growth.likely_sizes(records, len(records), True)
    assert len(growth.likely_sizes(records, 0, False)) <= 3


def test_counts_inside_of_a_loop_that_grows_itself() -> None:
    """Row n is a triangle of n rows: counts are affine in the size, and in the row of the triangle."""
    folds: Folds = {}
    for n in (4, 5, 6):
        folds[f"{n}"] = FoldShape(n, "b", 1, tuple(n + k for k in range(n)))
        folds["FGH"[n - 4]] = FoldShape(n, f"a{n}", 1 + n, None, True)
    growth = growth_of(["F", "G", "H"], folds)
    assert growth.is_predictable
    assert growth.shapes(2) == "abb" + "abbb"
    tree = growth.tree([2, 3, 4], int)
    (inner,) = tree.body
    assert not isinstance(inner, int)
    assert (inner.count, inner.counts, inner.grows) == (4, (2, 3, 4), True)
    assert getattr(inner.body[1], "counts", None) == ((2, 3), (3, 4, 5), (4, 5, 6, 7))
