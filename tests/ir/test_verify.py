"""The verifier: well formed Programs pass, each kind of defect is found."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

import pytest

from mgjit.engine.precision import FLOAT32
from mgjit.errors import VerificationError
from mgjit.ir.program import (
    Array,
    Backward,
    Block,
    Bound,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
)
from mgjit.ir.verify import verify

T = Array("t", "scratch", 6)
LOOP, OTHER = Loop(3, []), Loop(2, [])


def at(base: int, *terms: tuple[Loop, int], dynamic: Dynamic | None = None) -> Reference:
    return Reference(T, Index(base, terms, None, dynamic))


def copy(target: Reference) -> Statement:
    return Statement("copy", (Constant(1.0),), target)


FIRST = copy(at(0))
ENTRY = TableEntry(0, ((OTHER, 1),))


def in_loop(*body: Node) -> list[Node]:
    LOOP.body = list(body)
    return [LOOP]


def in_other(*body: Node) -> list[Node]:
    OTHER.body = list(body)
    return [OTHER]


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [copy(at(5))],
        [copy(at(3, dynamic=Dynamic(Constant(0.0), -1, 4)))],
        [FIRST, Loop(3, [Statement("negate", (Register(FIRST),))])],
        [Block([FIRST, Statement("negate", (Register(FIRST),))])],
    ],
)
def test_01_well_formed(nodes: list[Node]) -> None:
    """These are all right."""
    verify(Program(nodes))
    verify(Program([], nodes))


def test_02_loops_around() -> None:
    """Loop variables are known inside of their loops, choices as well."""
    verify(Program(in_loop(copy(at(1, (LOOP, 2))), Statement("copy", (Choice(LOOP, Constant(1.0), Constant(2.0)),)))))
    verify(Program(in_loop(copy(at(5, (LOOP, -2))))))


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        (lambda: [copy(at(6))], "elements 6 .. 6"),
        (lambda: [copy(at(-1))], "elements -1"),
        (lambda: in_loop(copy(at(2, (LOOP, 2)))), "elements 2 .. 6"),
        (lambda: in_loop(copy(at(1, (LOOP, -1)))), "elements -1 .. 1"),
        (lambda: [copy(at(3, dynamic=Dynamic(Constant(0.0), 1, 4)))], "elements 3 .. 6"),
        (lambda: [copy(at(0, (LOOP, 1)))], "not around"),
        (lambda: [Statement("copy", (Choice(LOOP, Constant(1.0), Constant(2.0)),))], "choice"),
        (lambda: [Statement("copy", (Constant(1.0),), TargetChoice(LOOP, at(0), at(1)))], "choice"),
        (lambda: in_loop(Statement("copy", (Choice(LOOP, Load(at(0, (OTHER, 1))), Constant(2.0)),))), "not around"),
        (lambda: in_loop(Statement("copy", (Choice(LOOP, Mixed((T,), ENTRY, ENTRY), Constant(2.0)),))), "table"),
        (lambda: [Statement("negate", (Register(FIRST),)), FIRST], "register"),
        (lambda: [FIRST, Block([Statement("negate", (Register(FIRST),))])], "register"),
        (lambda: [*in_loop(FIRST), Statement("negate", (Register(FIRST),))], "register"),
        (lambda: in_loop(Statement("negate", (Choice(LOOP, Constant(1.0), Register(FIRST)),))), "register"),
        (lambda: [Statement("copy", (Mixed((T,), ENTRY, ENTRY),))], "table"),
        (lambda: [Statement("copy", (Constant(1.0),), TargetMixed((T,), ENTRY, ENTRY))], "table"),
        (lambda: [Statement("copy", (Load(Reference(T, Index(0, (), ENTRY))),))], "table"),
        (lambda: [Backward(Register(FIRST), 0, frozenset((0,)))], "register"),
        (lambda: in_loop(LOOP), "inside itself"),
    ],
)
def test_03_defects(nodes: object, what: str) -> None:
    """Each is named; a VerificationError is an AssertionError."""
    with pytest.raises(VerificationError, match=what) as caught:
        verify(Program(nodes()))  # type: ignore[operator]
    assert isinstance(caught.value, AssertionError)


def test_04_constants_are_numbers_of_the_precision() -> None:
    """0.1 is no float32, neither is 1e39; 0.5, infinity and nan are."""
    for number in (0.5, -0.0, math.inf, math.nan, 2.0**-149):
        verify(Program([Statement("negate", (Constant(number),))], precision=FLOAT32))
    for number in (0.1, 1e39, 2.0**-150):
        verify(Program([Statement("negate", (Constant(number),))]))
        with pytest.raises(VerificationError, match="is no float32"):
            verify(Program([Statement("negate", (Constant(number),))], precision=FLOAT32))


def triangle(bound: Bound, count: int, target: Callable[[Loop, Loop], Reference]) -> list[Node]:
    """`for i in 0 .. 2: for j in the bound: target = 1.0`."""
    inner = Loop(count, [], bound=bound)
    inner.body = [copy(target(LOOP, inner))]
    return in_loop(inner)


@pytest.mark.parametrize(
    ("bound", "count", "target"),
    [
        (Bound(1, ((LOOP, 1),)), 3, lambda i, j: at(0, (i, 1), (j, 1))),
        (Bound(1, ((LOOP, 1),)), 3, lambda i, j: at(1, (i, 2), (j, -2))),  # -3 in iterations that are not executed
        (Bound(0, ((LOOP, 1),)), 2, lambda i, j: at(-1, (i, 1))),  # -1 where there is no iteration
        (Bound(0, ((LOOP, 1),)), 9, lambda i, j: at(0, (j, 2))),
        (Bound(0, (), TableEntry(1, ((LOOP, 1),))), 2, lambda i, j: at(0, (j, 5))),
        (Bound(0), 2, lambda i, j: at(77)),
    ],
)
def test_05_bounds(bound: Bound, count: int, target: Callable[[Loop, Loop], Reference]) -> None:
    """Elements count only where something is executed."""
    verify(Program(triangle(bound, count, target), tables=array("i", (9, 1, 0, 2))))


@pytest.mark.parametrize(
    ("bound", "count", "target", "what"),
    [
        (Bound(1, ((LOOP, 1),)), 2, lambda i, j: at(0), "a loop of 2 iterations has 1 .. 3"),
        (Bound(1, ((LOOP, -1),)), 2, lambda i, j: at(0), "a loop of 2 iterations has -1 .. 1"),
        (Bound(0, ((OTHER, 1),)), 2, lambda i, j: at(0), "a bound by a loop that is not around it"),
        (Bound(0, (), TableEntry(0, ((OTHER, 1),))), 2, lambda i, j: at(0), "a bound by a loop that is not around it"),
        (Bound(0, (), TableEntry(0, ((LOOP, 1),))), 8, lambda i, j: at(0), "a loop of 8 iterations has 0 .. 9"),
        (Bound(1, ((LOOP, 1),)), 3, lambda i, j: at(0, (i, 2), (j, 1)), "elements 0 .. 6"),
        (Bound(1, ((LOOP, 1),)), 3, lambda i, j: at(1, (i, 1), (j, -2)), "elements -1 .. 3"),
    ],
)
def test_06_wrong_bounds(bound: Bound, count: int, target: Callable[[Loop, Loop], Reference], what: str) -> None:
    """By which loops, how many iterations, which elements."""
    with pytest.raises(VerificationError, match=what):
        verify(Program(triangle(bound, count, target), tables=array("i", (9, 1, 0, 2))))


def test_07_a_loop_in_its_own_bound() -> None:
    """That is not around it either."""
    LOOP.bound = Bound(0, ((LOOP, 1),))
    with pytest.raises(VerificationError, match="not around"):
        verify(Program(in_loop(copy(at(0)))))
    LOOP.bound = None
