"""Bounds that are removed, and bounds that stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mgjit.compiler.schedule.boxes import fill_boxes
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Bound, Constant, Load, Loop, Node, Program, Reference, Statement, TableEntry
from tests.bounded import random_bounded, random_bounded_chain
from tests.growing_steps import STEPS
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example

N = 16
X, Y = Array("x", "input", N * N), Array("y", "state", N * N)
WIDE = Processor(lanes=8, registers=32)
#: What is in the inner loop, by the outer loop and the array that it fills.
Body = Callable[[Loop, Loop, Array], Node]


def rows(make: Body, *others: Node, growth: Callable[[Loop], Bound] | None = None) -> Program:
    """`for i: for j in 0 .. i: ...`, and then `for i: for j in 0 .. i: y[i,j] = t[i,j]`."""
    t = Array("t", "scratch", N * N, shape=(N, N))
    i, j, a = Loop(N, []), Loop(N, []), Loop(N, [])
    j.bound = (growth or (lambda i: Bound(1, ((i, 1),))))(i)
    b = Loop(N, [], bound=Bound(1, ((a, 1),)))
    around(b, define(at(Y, (a, N), (b, 1)), "copy", load(t, (a, N), (b, 1))))
    return Program([around(i, around(j, make(i, j, t))), *others, around(a, b)])


def kept(program: Program, processor: Processor = WIDE) -> int:
    """How many bounds are left."""
    same_bits(program, lambda program: fill_boxes(program, processor))
    return print_program(program).count("at most")


def exponential(i: Loop, j: Loop, t: Array) -> Node:
    """`t[i,j] = exp(x[i,j])`."""
    return define(at(t, (i, N), (j, 1)), "exp", load(X, (i, N), (j, 1)))


def test_01_spare_elements() -> None:
    """Those beyond the diagonal; what can be seen afterwards keeps its bound, and so does all without lanes."""
    assert kept(rows(exponential)) == 1
    assert kept(rows(exponential), Processor(lanes=1)) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda i, j, t: update(at(t, (i, N)), "add", load(X, (i, N), (j, 1))),  # a sum along the loop
        lambda i, j, t: define(at(t, (i, 1), (j, N)), "exp", load(X, (j, N - 1), (i, 1))),  # x ends before
        lambda i, j, t: define(at(t, (j, 1)), "exp", load(X, (i, 1))),  # the same row for all
        lambda i, j, t: define(at(t, (i, N), (j, 1)), "log", load(X, (i, N), (j, 1))),  # slow on arbitrary numbers
        lambda i, j, t: define(at(t, (i, N), (j, 1)), "exp", Load(Reference(X, at(X, (i, N), (j, 2)).index))),
    ],
)
def test_02_what_keeps_its_bound(make: Body) -> None:
    """Sums, elements that do not exist or are used, operations that take long on what happens to be in memory."""
    program = rows(make)
    if make is not None:
        fill_boxes(program, WIDE)
    assert print_program(program).count("at most") == 2


def test_03_elements_that_others_use() -> None:
    """Another loop writes or reads beyond the diagonal."""
    program = rows(exponential)
    t = program.forward[0].body[0].body[0].target.array  # type: ignore[union-attr]
    every = Loop(N * N, [])
    reads: Node = around(every, update(at(Y), "add", load(t, (every, 1))))
    fills: Node = around(Loop(1, []), define(at(t, base=N - 1), "copy", Constant(0.5)))
    for other in (reads, fills):
        other_program = Program([*program.forward[:1], other, *program.forward[1:]])
        fill_boxes(other_program, WIDE)
        assert print_program(other_program).count("at most") == 2


def test_04_bounds_in_tables() -> None:
    """They are looked up."""
    program = rows(exponential, growth=lambda i: Bound(0, (), TableEntry(0, ((i, 1),))))
    program.tables.extend([9, 12, 0, 16, 3, 8, 8, 1, 16, 2, 5, 7, 11, 13, 14, 15])
    fill_boxes(program, WIDE)
    assert print_program(program).count("at most") == 2  # elements before the diagonal are used
    program.forward.pop()
    program.forward.append(around(Loop(1, []), update(at(Y), "add", Constant(1.0))))
    assert kept(program) == 0


def test_05_only_if_it_is_faster() -> None:
    """Nothing is gained where lanes run along another loop already."""
    i, j, d = Loop(N, []), Loop(N, []), Loop(N, [])
    j.bound = Bound(1, ((i, 1),))
    t = Array("t", "scratch", N * N * N, shape=(N, N, N))
    s = Statement("multiply", (load(X, (d, 1)), load(X, (i, N), (j, 1))), at(t, (i, N * N), (j, N), (d, 1)))
    assert kept(Program([around(i, around(j, around(d, s)))])) == 1


@pytest.mark.parametrize("seed", range(25))
def test_06_random_nests(seed: int) -> None:
    """The same bits."""
    for program in (random_bounded_chain(seed), random_bounded(seed, plain=True)):
        same_bits(program, lambda program: fill_boxes(program, WIDE))


def test_07_attention() -> None:
    """Scores, their exponentials and shares in lanes; sums over the positions keep their order and their bounds."""
    step, arguments = STEPS["causal attention"]()
    made = Example(step, *arguments)
    before, after = (print_program(made.lower(stage, growing=True)) for stage in ("dead statements after", "boxes"))
    assert before.count("at most") > after.count("at most") > 0
    made.check(made.lower(growing=True))
