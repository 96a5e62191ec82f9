"""What both generators share: which accumulators may live in a local variable."""

from __future__ import annotations

import pytest

from mgjit.codegen.emitter import Emitter, invariant_accumulators
from mgjit.ir.program import Array, Constant, Index, Load, Loop, Operand, Reference, Statement, TableEntry

R, T = Array("r", "scratch", 8), Array("t", "scratch", 8)
OUTER, ONE = Loop(2, []), Constant(1.0)


def loop_with(target: Reference, *others: Statement, operand: Operand = ONE) -> Loop:
    """A loop that adds to `target`."""
    return Loop(4, [Statement("add", (operand,), target, update=True), *others])


def test_01_a_sum() -> None:
    """The same element in all iterations, used for nothing else."""
    target = Reference(R, Index(3, ((OUTER, 2),)))
    assert invariant_accumulators(loop_with(target)) == [target]


def test_02_not_when_the_element_moves() -> None:
    """With the loop variable, a table or a run-time index."""
    loop = loop_with(Reference(R, Index(0)))
    loop.body[0].target = Reference(R, Index(0, ((loop, 1),)))  # type: ignore[union-attr]
    assert invariant_accumulators(loop) == []
    assert invariant_accumulators(loop_with(Reference(R, Index(0, (), TableEntry(0, ()))))) == []


@pytest.mark.parametrize(
    "other",
    [
        Statement("copy", (Load(Reference(R, Index(0))),)),
        Statement("copy", (Constant(0.0),), Reference(R, Index(5))),
        Statement("add", (Constant(0.0),), Reference(R, Index(0, (), TableEntry(0, ()))), update=True),
    ],
    ids=["read", "written", "updated"],
)
def test_03_not_when_the_array_is_used_otherwise(other: Statement) -> None:
    """Another access to the array might be to the same element."""
    assert invariant_accumulators(loop_with(Reference(R, Index(0)), other)) == []


def test_04_not_visible_memory() -> None:
    """Gradients and state are written at once: another name may mean the same memory."""
    gradient = Array("g0", "gradient", 8)
    assert invariant_accumulators(loop_with(Reference(gradient, Index(0)))) == []


@pytest.mark.parametrize(
    ("parts", "base", "text"),
    [([], 0, "0"), ([], -3, "-3"), (["i"], 0, "i"), (["2 * i", "j"], 5, "2 * i + j + 5"), (["i"], -5, "i - 5")],
)
def test_05_sums_of_terms(parts: list[str], base: int, text: str) -> None:
    """Indices as text."""
    assert Emitter.sum(parts, base) == text
