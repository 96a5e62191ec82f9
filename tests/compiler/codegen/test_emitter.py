"""What both generators share: which accumulators may live in a local variable."""

from __future__ import annotations

import pytest

from mgjit.compiler.codegen.accumulators import invariant_accumulators
from mgjit.compiler.codegen.emitter import Emitter
from mgjit.ir.program import (
    Array,
    Bound,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Reference,
    Statement,
    TableEntry,
)

R, T = Array("r", "scratch", 8), Array("t", "scratch", 8)
OUTER, ONE = Loop(2, []), Constant(1.0)


def loop_with(target: Reference, *others: Node, operand: Operand = ONE) -> Loop:
    """A loop that adds to `target`."""
    return Loop(4, [Statement("add", (operand,), target, update=True), *others])


def lanes_of(count: int, base: int, step: int = 1) -> tuple[Loop, Reference]:
    """A loop over lanes that adds to as many elements, and the elements."""
    lane = Loop(count, [], lanes=True)
    target = Reference(R, Index(base, ((lane, step),)))
    lane.body = [Statement("add", (ONE,), target, update=True)]
    return lane, target


@pytest.mark.parametrize("vectors", [False, True])
def test_01_a_sum(vectors: bool) -> None:
    """The same element in all iterations, used for nothing else."""
    target = Reference(R, Index(3, ((OUTER, 2),)))
    assert invariant_accumulators(loop_with(target), vectors) == [(target, None)]


@pytest.mark.parametrize("vectors", [False, True])
def test_02_not_when_the_element_moves(vectors: bool) -> None:
    """With the loop variable, a table or a run-time index."""
    loop = loop_with(Reference(R, Index(0)))
    loop.body[0].target = Reference(R, Index(0, ((loop, 1),)))  # type: ignore[union-attr]
    assert invariant_accumulators(loop, vectors) == []
    for index in (Index(0, (), TableEntry(0, ())), Index(0, (), None, Dynamic(ONE, 1, 4))):
        assert invariant_accumulators(loop_with(Reference(R, index)), vectors) == []


@pytest.mark.parametrize(
    "other",
    [
        Statement("copy", (Load(Reference(R, Index(0))),)),
        Statement("copy", (Constant(0.0),), Reference(R, Index(5))),
        Statement("add", (Constant(0.0),), Reference(R, Index(0, (), TableEntry(0, ()))), update=True),
        Loop(2, [Statement("copy", (Load(Reference(R, Index(7))),))]),
    ],
    ids=["read", "written", "updated", "read in a loop"],
)
def test_03_not_when_the_array_is_used_otherwise(other: Node) -> None:
    """Another access to the array might be to the same element."""
    assert invariant_accumulators(loop_with(Reference(R, Index(0)), other), vectors=True) == []


@pytest.mark.parametrize(
    ("space", "kept"),
    [("gradient", True), ("parameter", True), ("state", True), ("scratch", True), ("output", False), ("input", False)],
)
def test_04_what_memory(space: str, kept: bool) -> None:
    """Memory of every name is memory of its own, but for what the caller gave."""
    target = Reference(Array("a", space, 8), Index(0))
    assert invariant_accumulators(loop_with(target), vectors=False) == ([(target, None)] if kept else [])


def test_05_several_sums_of_one_array() -> None:
    """Different elements, or one that is added to twice; not elements that may be the same in some iteration around."""
    for base, expected in ((1, 2), (0, 1)):
        other = Statement("add", (ONE,), Reference(R, Index(base)), update=True)
        assert len(invariant_accumulators(loop_with(Reference(R, Index(0)), other), vectors=True)) == expected
    other = Statement("add", (ONE,), Reference(R, Index(1, ((OUTER, 1),))), update=True)
    assert invariant_accumulators(loop_with(Reference(R, Index(0)), other), vectors=True) == []
    two = Reference(R, Index(0, ((OUTER, 1),)))
    assert invariant_accumulators(loop_with(two, other), vectors=True) == [(two, None), (other.target, None)]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ((4, 0, 1), (4, 4, 1), True),  # side by side
        ((4, 0, 1), (4, 3, 1), False),  # one element in common
        ((4, 0, 1), (2, 4, 1), True),  # a shorter rest
        ((4, 0, 2), (4, 1, 2), True),  # every other element
        ((4, 0, 2), (3, 2, 2), False),
        ((4, 3, -1), (4, 7, -1), True),  # downwards
        ((4, 3, -1), (4, 6, -1), False),
    ],
)
def test_06_vectors(first: tuple[int, int, int], second: tuple[int, int, int], kept: bool) -> None:
    """Sums of vectors stay in registers when no two have an element in common."""
    one, target = lanes_of(*first)
    other, other_target = lanes_of(*second)
    loop = Loop(5, [one, other])
    assert invariant_accumulators(loop, vectors=True) == ([(target, one), (other_target, other)] if kept else [])
    assert invariant_accumulators(loop, vectors=False) == []  # loops like others


def test_07_a_vector_and_a_number() -> None:
    """A sum of one element beside sums of vectors."""
    lane, target = lanes_of(4, 0)
    for base, kept in ((4, True), (3, False)):
        number = Statement("add", (ONE,), Reference(R, Index(base)), update=True)
        found = invariant_accumulators(Loop(5, [lane, number]), vectors=True)
        assert found == ([(target, lane), (number.target, None)] if kept else [])


@pytest.mark.parametrize(
    ("parts", "base", "text"),
    [([], 0, "0"), ([], -3, "-3"), (["i"], 0, "i"), (["2 * i", "j"], 5, "2 * i + j + 5"), (["i"], -5, "i - 5")],
)
def test_08_sums_of_terms(parts: list[str], base: int, text: str) -> None:
    """Indices as text."""
    assert Emitter.sum(parts, base) == text


def test_09_loops_that_may_have_no_iterations() -> None:
    """The sum is read before and written after the loop also then, so its element must exist whatever the loop does."""
    loop = loop_with(Reference(R, Index(-1, ((OUTER, 1),))))
    assert len(invariant_accumulators(loop, vectors=False)) == 1
    loop.bound = Bound(0, ((OUTER, 1),))
    assert invariant_accumulators(loop, vectors=False) == []
    loop = loop_with(Reference(R, Index(0, ((OUTER, 1),))))
    loop.bound = Bound(0, ((OUTER, 1),))
    assert len(invariant_accumulators(loop, vectors=False)) == 1


@pytest.mark.parametrize(("base", "step", "kept"), [(0, 1, False), (3, 1, True), (0, 0, False), (3, 0, True)])
def test_10_what_is_added_is_of_the_same_array(base: int, step: int, kept: bool) -> None:
    """It may be the sum itself, but for another element in the same iteration of the loops around."""
    target = Reference(R, Index(0, ((OUTER, 1),)))
    loop = Loop(5, [])
    term = Load(Reference(R, Index(base, ((OUTER, step),) if step else ())))
    loop.body = [Statement("add", (term,), target, update=True)]
    assert invariant_accumulators(loop, vectors=False) == ([(target, None)] if kept else [])
