"""Which loops are unrolled, and that nothing is left to choose."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.simplify.unroll import unroll
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Backward,
    Choice,
    Constant,
    Loop,
    Operand,
    Program,
    Register,
    Statement,
    TargetChoice,
    count_statements,
    walk,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.nests import random_program

T, X, S = Array("t", "state", 80), Array("x", "input", 80), Array("s", "parameter", 80)


def rows(count: int, reverse: bool = False) -> Loop:
    """As in the docstring of the module."""
    i, j = Loop(count, [], reverse), Loop(5, [])
    earlier = load(T, (i, 16), (j, 1), base=-16)
    return around(
        i, around(j, define(at(T, (i, 16), (j, 1)), "multiply", Choice(i, load(X, (j, 1)), earlier), load(S, (i, 1))))
    )


def loops(program: Program) -> list[int]:
    """The counts of all loops."""
    return [node.count for node in walk(program.forward) if isinstance(node, Loop)]


def test_01_two_rows() -> None:
    """The second reads what the first has made."""
    program = Program([rows(2)])
    same_bits(program, unroll)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 4:\n"
        "        %0 = t[i] = multiply(x[i], s[0])\n"
        "    for i in 0 .. 4:\n"
        "        %1 = t[i + 16] = multiply(t[i], s[1])\n"
    )


@pytest.mark.parametrize(("count", "expected"), [(1, [5]), (2, [5, 5]), (3, [5, 5, 5]), (4, [4, 5])])
def test_02_counts(count: int, expected: list[int]) -> None:
    """Up to three iterations."""
    program = Program([rows(count)])
    same_bits(program, unroll)
    assert loops(program) == expected


def test_03_downwards() -> None:
    """The last iteration first."""
    i = Loop(3, [], reverse=True)
    program = Program([around(i, update(at(T), "subtract", Choice(i, load(X), load(X, (i, 2)))))])
    same_bits(program, unroll)
    assert [line.split("x")[-1] for line in print_program(program).splitlines()[1:]] == ["[4])", "[2])", "[0])"]


def test_04_only_loops_that_choose() -> None:
    """By their own variable, in an operand or a target; others stay."""
    i, j = Loop(2, []), Loop(2, [])
    program = Program(
        [around(i, around(j, define(at(T, (i, 2), (j, 1)), "copy", Choice(i, load(X, (j, 1)), load(S)))))]
    )
    same_bits(program, unroll)
    assert loops(program) == [2, 2]
    i = Loop(2, [])
    program = Program([around(i, update(TargetChoice(i, None, at(T, (i, 1))), "add", load(X, (i, 1))))])
    same_bits(program, unroll)
    assert loops(program) == []
    program = Program([around(Loop(2, []), define(at(T), "copy", load(X)))])
    same_bits(program, unroll)
    assert loops(program) == [2]


def test_05_registers_inside() -> None:
    """Each iteration has its own."""
    i = Loop(2, [])
    made = Statement("exp", (Choice(i, load(X), load(X, (i, 1))),))
    program = Program([around(i, made, define(at(T, (i, 1)), "negate", Register(made)))])
    same_bits(program, unroll)
    assert count_statements(program.forward) == 4


def test_06_a_backward_pass_inside_keeps_the_loop() -> None:
    """The passes of its iterations have numbers that the loop gives them."""
    i = Loop(2, [])
    choice: Operand = Choice(i, Constant(1.0), load(X))
    program = Program([around(i, define(at(T), "copy", choice), Backward(load(T), 0, frozenset({0, 1})))])
    unroll(program)
    assert loops(program) == [2]


@pytest.mark.parametrize("seed", random.Random(1).sample(range(10_000), 30))
def test_07_random_nests(seed: int) -> None:
    """Whatever the loops do, the same bits."""
    same_bits(random_program(seed), unroll)
