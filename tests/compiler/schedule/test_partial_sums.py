"""Sums that are split into partial sums: when, and that they are the same sums but for their order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mgjit.compiler.schedule.cost import best_plan
from mgjit.compiler.schedule.expand import Arrays
from mgjit.compiler.schedule.fuse import fuse
from mgjit.compiler.schedule.partial_sums import PartialSums, free_but_for_sums, partial_sums, sums_apart
from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.dependence import independent_among
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.nest import examine
from mgjit.ir.program import Array, Loop, Node, Program, Register, Statement, statements
from mgjit.ir.verify import verify
from tests.handmade import around, at, define, load, update, visible

pytestmark = pytest.mark.once

FAST = Processor(8, 32, fuses=True, is_fast=True)


def result(program: Program, arrays: list[Array], seed: int) -> list[list[float]]:
    draw = random.Random(seed)
    memory: dict[Array, Any] = {array: [draw.uniform(-2.0, 2.0) for _ in range(array.size)] for array in arrays}
    Interpreter(program, memory).run()
    return [list(memory[array]) for array in arrays]


def same_sums(program: Program, change: Callable[[Program], Any]) -> None:
    """Apply a pass to a Program: it must stay well formed and compute the same, but for last bits."""
    verify(program)
    arrays = visible(program)
    before = [result(program, arrays, seed) for seed in range(2)]
    change(program)
    verify(program)
    for old, new in zip(before, [result(program, arrays, seed) for seed in range(2)]):
        for one, other in zip(old, new):
            assert one == pytest.approx(other, rel=1e-11, abs=1e-11)


def total(operation: str, rows: int, columns: int) -> Loop:
    """`for i: for j: r[0] = operation(r[0], x[i,j])`."""
    x, r = Array("x", "input", rows * columns), Array("r", "parameter", 1)
    i, j = Loop(rows, []), Loop(columns, [], reverse=True)
    return around(i, around(j, update(at(r), operation, load(x, (i, columns), (j, 1)))))


def layer(rows: int, terms: int) -> Loop:
    """`for i: r[i] = b[i]; for k: r[i] += w[i,k] * x[k]; t[i] = relu(r[i])`."""
    w, x, b = Array("w", "state", rows * terms), Array("x", "input", terms), Array("b", "input", rows)
    r, t = Array("r", "scratch", rows), Array("t", "parameter", rows)
    i, k = Loop(rows, []), Loop(terms, [])
    term = Statement("multiply", (load(w, (i, terms), (k, 1)), load(x, (k, 1))))
    adding = around(k, term, update(at(r, (i, 1)), "add", Register(term)))
    return around(
        i, define(at(r, (i, 1)), "copy", load(b, (i, 1))), adding, define(at(t, (i, 1)), "relu", load(r, (i, 1)))
    )


def split(loop: Loop, count: int, lanes: int) -> list[Node] | None:
    """The nest with so many partial sums."""
    nest = examine(loop)
    assert nest is not None
    return PartialSums(nest, independent_among(nest.band, [loop]), count, lanes).nodes(Arrays("part"))


def replaced(count: int, lanes: int) -> Callable[[Program], None]:
    """The pass that splits the sums of every nest."""

    def change(program: Program) -> None:
        done: list[Node] = []
        for node in program.forward:
            assert isinstance(node, Loop)
            nodes = split(node, count, lanes)
            assert nodes is not None
            done += nodes
        program.forward[:] = done

    return change


@pytest.mark.parametrize(("count", "lanes"), [(2, 1), (4, 1), (8, 8), (32, 8)])
@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_01_the_same_total(operation: str, count: int, lanes: int) -> None:
    """Of whole steps, with a rest behind them, along both loops, forwards and backwards."""
    for columns in (64, 71):
        same_sums(Program([total(operation, 2, columns)]), replaced(count, lanes))


@pytest.mark.parametrize(("count", "lanes"), [(2, 1), (8, 8), (16, 8)])
def test_02_what_is_beside_a_sum(count: int, lanes: int) -> None:
    """What comes before and after a sum becomes a nest of its own."""
    same_sums(Program([layer(5, 37)]), replaced(count, lanes))


def test_03_what_is_no_sum() -> None:
    """What is read on the way, what each iteration needs of the one before, and what is not added up."""
    x, r, t = Array("x", "input", 64), Array("r", "parameter", 1), Array("t", "parameter", 65)
    for last in (
        lambda j: define(at(t, (j, 1)), "copy", load(r)),  # running totals
        lambda j: define(at(t, (j, 1), base=1), "add", load(t, (j, 1)), load(x, (j, 1))),  # a recurrence
        lambda j: update(at(r), "multiply", load(x, (j, 1))),  # added and multiplied
        lambda j: define(at(r), "copy", load(x, (j, 1))),  # assigned
    ):
        j = Loop(64, [])
        assert split(around(j, update(at(r), "add", load(x, (j, 1))), last(j)), 8, 8) is None


def test_04_a_sum_for_each_iteration_of_a_loop_that_stays() -> None:
    """Partial sums have places for the free loops only: what depends on another one is left alone."""
    x, r = Array("x", "input", 640), Array("r", "parameter", 11)
    i, j = Loop(10, []), Loop(64, [])
    place = at(r, (i, 1))
    nest = around(
        i, around(j, update(place, "add", load(x, (i, 64), (j, 1))), update(at(r, (i, 1), base=1), "add", load(r)))
    )
    assert split(nest, 8, 8) is None


def test_05_by_the_cost_model() -> None:
    """Few long sums are split along their terms; where there are as many sums as terms, lanes are different sums."""
    _, plan = best_plan(layer(4, 1000), FAST)
    assert plan is not None
    assert plan.partial is not None
    for loop, processor in ((layer(4, 1000), replace(FAST, is_fast=False)), (layer(1000, 16), FAST)):
        _, plan = best_plan(loop, processor)
        assert plan is None or plan.partial is None


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(("rows", "terms"), [(1, 130), (3, 67), (24, 5)])
def test_06_scheduled(lanes: int, rows: int, terms: int) -> None:
    """The schedule of a step in fast mode computes the same but for last bits."""
    processor = replace(FAST, lanes=lanes)
    program = Program([layer(rows, terms), total("add", rows, terms)])
    same_sums(program, lambda program: vectorise(program, processor))


def squares(rows: int, columns: int) -> Program:
    """`for i: for j: d = x - y; s = d * d`, and `for i: for j: r += s`, and what needs r."""
    x, y = Array("x", "input", rows * columns), Array("y", "input", rows * columns)
    d, s = Array("d", "scratch", rows * columns), Array("s", "scratch", rows * columns)
    r, t = Array("r", "parameter", 1), Array("t", "parameter", rows * columns)
    (i, j), (k, m), (a, b) = ((Loop(rows, []), Loop(columns, [])) for _ in range(3))
    here, there, last = (((outer, columns), (inner, 1)) for outer, inner in ((i, j), (k, m), (a, b)))
    first = define(at(d, *here), "subtract", load(x, *here), load(y, *here))
    square = define(at(s, *here), "multiply", load(d, *here), load(d, *here))
    scaled = define(at(t, *last), "multiply", load(s, *last), load(r))
    return Program([
        around(i, around(j, first, square)),
        around(k, around(m, update(at(r), "add", load(s, *there)))),
        around(a, around(b, scaled)),
    ])  # fmt: skip


def test_07_added_up_where_they_are_computed() -> None:
    """In fast mode, a sum joins the nest that computes its terms; what needs the total does not."""
    program = squares(6, 50)
    same_sums(program, lambda program: fuse(program, FAST))
    first, last = program.forward
    assert [s.update for s in statements([first])] == [False, False, True]
    assert len(list(statements([last]))) == 1
    same_sums(program, lambda program: vectorise(program, FAST))
    strict = squares(6, 50)
    fuse(strict, replace(FAST, is_fast=False))
    assert len(strict.forward) == 3


def test_08_the_loops_of_sums() -> None:
    """All loops of a total are free but for the sum; those of a recurrence are not."""
    nest = examine(total("add", 3, 20))
    assert nest is not None
    assert set(free_but_for_sums(nest)) == set(nest.band)
    t = Array("t", "parameter", 65)
    j = Loop(64, [])
    nest = examine(around(j, define(at(t, (j, 1), base=1), "negate", load(t, (j, 1)))))
    assert nest is not None
    assert free_but_for_sums(nest) == []


def test_09_few_sums_are_taken_out_of_their_nest() -> None:
    """Only where there are fewer sums than terms: else they share a nest with what is beside them."""
    assert len(sums_apart(layer(4, 100))) == 3
    assert len(sums_apart(layer(100, 4))) == 1


def test_10_nothing_to_split() -> None:
    """Nests without sums, and with bounds."""
    (first, *_) = squares(6, 50).forward
    assert isinstance(first, Loop)
    nest = examine(first)
    assert nest is not None
    assert list(partial_sums(nest, nest.band, 8)) == []
