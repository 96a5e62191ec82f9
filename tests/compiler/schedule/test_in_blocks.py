"""Iterations side by side: steps, rests, loops inside that are shared, and that every sum keeps its order."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.in_blocks import in_blocks
from mgjit.compiler.schedule.jam import side_by_side
from mgjit.compiler.simplify.common import share
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Choice,
    Constant,
    Loop,
    Program,
    Register,
    Statement,
    count_copies,
    count_statements,
    statements,
    walk,
)
from mgjit.ir.substitute import Substitution
from tests.handmade import around, at, define, load, same_bits, update

W, X, B, T = (Array(name, "parameter", 120) for name in "wxbt")
R = Array("r", "scratch", 40)


def layer(rows: int = 11, columns: int = 3, reverse: bool = False) -> Loop:
    """A layer whose sums live in scratch memory."""
    j, i = Loop(rows, [], reverse), Loop(columns, [])
    return around(
        j,
        define(at(R, (j, 1)), "copy", load(B, (j, 1))),
        around(i, update(at(R, (j, 1)), "add", load(W, (j, columns), (i, 1)))),
        define(at(T, (j, 1)), "relu", load(R, (j, 1))),
    )


def jammed(nest: Loop, factor: int) -> Program:
    """A Program of the nest alone, with `factor` of its iterations side by side."""

    def change(program: Program) -> None:
        program.forward[:] = in_blocks(nest.body, nest, factor)

    program = Program([nest])
    same_bits(program, change)
    return program


def test_01_as_in_the_docstring() -> None:
    """Every node for two iterations before the next; the rest by itself."""
    assert print_program(jammed(layer(5), 2)) == (
        "forward:\n"
        "    for i in 0 .. 1, 2 at once:\n"
        "        for j in 0 .. 1, side by side:\n"
        "            %0 = r[2*i + j] = copy(b[2*i + j])\n"
        "        for j in 0 .. 2:\n"
        "            for k in 0 .. 1, side by side:\n"
        "                r[2*i + k] = add(r[2*i + k], w[6*i + 3*k + j])\n"
        "        for j in 0 .. 1, side by side:\n"
        "            %2 = t[2*i + j] = relu(r[2*i + j])\n"
        "    %3 = r[4] = copy(b[4])\n"
        "    for i in 0 .. 2:\n"
        "        r[4] = add(r[4], w[i + 12])\n"
        "    %5 = t[4] = relu(r[4])\n"
    )


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 9, 16, 17])
def test_02_counts(rows: int, factor: int) -> None:
    """Below, at and above the factor: all iterations, once, and no loop of a single step."""
    program = jammed(layer(rows, 6), factor)
    steps, rest = divmod(rows, factor)
    loops = [node for node in program.forward if isinstance(node, Loop) and node.at_once == factor]
    if factor > 1:
        assert [loop.count for loop in loops] == [steps] * (steps > 1)
        assert count_copies(program.forward) == 3 * (factor * (steps > 0) + rest)
        assert count_statements(program.forward) == 3 * ((steps > 0) + (rest > 0))


def test_03_downwards() -> None:
    """The direction of a loop of independent iterations means nothing."""
    assert print_program(jammed(layer(9, reverse=True), 4)) == print_program(jammed(layer(9), 4))


def test_04_one_step_needs_no_loop() -> None:
    """Exactly as many iterations as side by side: constant places."""
    program = jammed(layer(4), 4)
    assert [isinstance(node, Loop) and (node.count, node.beside) for node in program.forward] == [
        (4, True),
        (3, False),
        (4, True),
    ]


def test_05_loops_in_loops() -> None:
    """Loops inside are shared at every depth."""
    j, i, k = Loop(4, []), Loop(3, [], reverse=True), Loop(2, [])
    total = around(i, around(k, update(at(R, (j, 1)), "add", load(W, (j, 6), (i, 2), (k, 1)))))
    total.body.append(define(at(T, (j, 1)), "copy", load(R, (j, 1))))
    nest = around(j, define(at(R, (j, 1)), "copy", Constant(0.0)), total)
    program = jammed(nest, 2)
    outer = program.forward[0]
    assert isinstance(outer, Loop)
    shared = outer.body[1]
    assert isinstance(shared, Loop)
    assert (shared.count, shared.reverse) == (3, True)
    assert [isinstance(node, Loop) and node.beside for node in shared.body] == [False, True]


def test_06_registers_and_choices_of_other_loops() -> None:
    """Registers name the copies of their own iteration; a loop that is shared goes on choosing."""
    j, i = Loop(5, []), Loop(3, [])
    made = Statement("exp", (load(X, (j, 1)),))
    uses = define(at(T, (j, 1)), "multiply", Register(made), load(B, (j, 1)))
    chosen = update(at(R, (j, 1), base=10), "add", Choice(i, Register(made), load(X, (i, 1))))
    clear = define(at(R, (j, 1), base=10), "copy", Constant(0.0))
    last = define(at(T, (j, 1), base=20), "copy", load(R, (j, 1), base=10))
    text = print_program(jammed(around(j, made, uses, clear, around(i, chosen), last), 2))
    assert text.count("if j == 0") == 2
    assert text.count("if i == 0") == 1  # of the rest


def test_07_lanes_stay_whole() -> None:
    """A loop over lanes is one operation: each iteration has its own."""
    j, lane = Loop(4, []), Loop(2, [], lanes=True)
    body = [around(lane, define(at(T, (j, 2), (lane, 1)), "copy", load(X, (j, 2), (lane, 1))))]
    nodes = side_by_side(body, [Substitution(j, None, 1, number) for number in range(4)])
    assert [isinstance(node, Loop) and node.lanes for node in nodes] == [True] * 4


def long_layer(rows: int, columns: int, crosses: bool = False) -> Loop:
    """A layer with three statements behind its sums; the last may use a register from in front of them."""
    j, i = Loop(rows, []), Loop(columns, [])
    begin = define(at(R, (j, 1)), "copy", load(B, (j, 1)))
    last = define(at(T, (j, 1)), "relu", load(R, (j, 1)))
    more = Statement("multiply", (Register(last), Register(begin if crosses else last)))
    return around(
        j,
        begin,
        around(i, update(at(R, (j, 1)), "add", load(W, (j, columns), (i, 1)))),
        last,
        more,
        define(at(X, (j, 1)), "add", Register(more), load(X, (j, 1))),
    )


def test_08_what_is_long_behind_a_sum_is_a_loop() -> None:
    """Sums are side by side, and so is how they begin; the three statements behind them are not written out."""
    assert print_program(jammed(long_layer(8, 3), 4)) == (
        "forward:\n"
        "    for i in 0 .. 1, 4 at once:\n"
        "        for j in 0 .. 3, side by side:\n"
        "            %0 = r[4*i + j] = copy(b[4*i + j])\n"
        "        for j in 0 .. 2:\n"
        "            for k in 0 .. 3, side by side:\n"
        "                r[4*i + k] = add(r[4*i + k], w[12*i + 3*k + j])\n"
        "        for j in 0 .. 3:\n"
        "            %2 = t[4*i + j] = relu(r[4*i + j])\n"
        "            %3 = multiply(%2, %2)\n"
        "            %4 = x[4*i + j] = add(%3, x[4*i + j])\n"
    )


def test_09_registers_that_cross_a_sum_keep_everything_side_by_side() -> None:
    """A register is not there in another loop."""
    program = jammed(long_layer(8, 3, crosses=True), 4)
    assert count_statements(program.forward) == 5 * 4


@pytest.mark.parametrize("columns", [1, 7, 8, 20, 37])
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_10_rows_and_vectors(rows: int, columns: int) -> None:
    """Blocks of three rows and two vectors, and all remainders."""
    j, i, k = Loop(rows, []), Loop(columns, []), Loop(3, [])
    r, t = Array("r", "scratch", rows * columns), Array("t", "parameter", rows * columns)
    place = (j, columns), (i, 1)
    last = define(at(t, *place), "relu", load(r, *place))
    more = Statement("multiply", (Register(last), load(B, (i, 1))))
    body = [
        define(at(r, *place), "copy", load(B, (i, 1))),
        around(k, update(at(r, *place), "add", load(X, (j, 3), (k, 1)))),
        last,
        more,
        define(at(t, *place), "add", Register(more), load(B, (j, 1))),
    ]
    program = Program([around(j, around(i, *body))])

    def change(program: Program) -> None:
        program.forward[:] = in_blocks(body, j, 3, i, 2, 4)

    same_bits(program, change)
    assert all(node.count <= 4 for node in walk(program.forward) if isinstance(node, Loop) and node.lanes)


def test_11_what_may_stay_in_a_register_is_written_out() -> None:
    """What one stretch stores and another loads would not be found again in two loops."""
    j, i = Loop(8, []), Loop(3, [])
    half = Array("h", "scratch", 8)
    begin = define(at(half, (j, 1)), "multiply", load(B, (j, 1)), Constant(0.5))
    clear = define(at(R, (j, 1)), "copy", Constant(0.0))
    term = Statement("multiply", (load(half, (j, 1)), load(X, (i, 1))))
    total = around(i, term, update(at(R, (j, 1)), "add", Register(term)))
    program = jammed(around(j, begin, clear, total), 4)
    assert not any(isinstance(node, Loop) and node.beside for node in walk(program.forward))


def test_12_what_is_the_same_in_all_iterations_is_written_out() -> None:
    """So that it is found to be the same, and computed once (simplify/common.py)."""
    j, i = Loop(8, []), Loop(3, [])
    power = Statement("exp", (load(X, (i, 1)),))
    total = around(i, power, update(at(R, (j, 1)), "add", Register(power)))
    program = jammed(around(j, define(at(R, (j, 1)), "copy", load(B, (j, 1))), total), 4)
    same_bits(program, share)
    assert [s.operation for s in statements(program.forward)] == ["copy", "exp", *["add"] * 4]
