"""Nests that are cut in two behind their whole vectors: when, and that every number stays the same."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.cost import Plan
from mgjit.compiler.schedule.rests import without_rest
from mgjit.compiler.schedule.tile_plan import plan_along
from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.dependence import independent_among
from mgjit.ir.nest import Nest, examine
from mgjit.ir.program import Array, Loop, Program, Register, Statement
from tests.handmade import around, at, define, load, same_bits, update

pytestmark = pytest.mark.once

PROCESSOR = Processor(8, 32, fuses=True)


def gradients(rows: int, columns: int, samples: int) -> Loop:
    """`for i: for j: g = 0; for n: g += x[n,i] * d[n,j]; p[i,j] = 2 g`, each row of p with room for whole vectors."""
    x, d = Array("x", "state", rows * samples), Array("d", "input", columns * samples)
    g, p = Array("g", "scratch", rows * columns), Array("p", "parameter", rows * 64)
    i, j, n = Loop(rows, []), Loop(columns, []), Loop(samples, [])
    term = Statement("multiply", (load(x, (n, rows), (i, 1)), load(d, (n, columns), (j, 1))))
    place = (i, columns), (j, 1)
    first = Statement("copy", (load(p, (i, 64), (j, 1)),), at(g, *place))
    adding = update(at(g, *place), "add", Register(term))
    last = define(at(p, (i, 64), (j, 1)), "add", load(g, *place), load(g, *place))
    return around(i, around(j, first, around(n, term, adding), last))


def tiled(loop: Loop) -> tuple[Nest, Plan]:
    """The nest and a plan with vectors along its columns."""
    nest = examine(loop)
    assert nest is not None
    free = independent_among([one for one in nest.band if one.count > 1], [loop])
    plan = plan_along(nest, nest.band[1], nest.band[0], free, PROCESSOR)
    assert plan is not None
    return nest, plan


@pytest.mark.parametrize("columns", [9, 18, 26])
def test_01_the_same_numbers(columns: int) -> None:
    """Both nests together do what the whole one does."""
    program = Program([gradients(32, columns, 5)])

    def cut(program: Program) -> None:
        (loop,) = program.forward
        assert isinstance(loop, Loop)
        parts = without_rest(*tiled(loop), PROCESSOR, {})
        assert [part.body[0].count for part in parts if isinstance(part, Loop) and isinstance(part.body[0], Loop)] == [
            columns - columns % 8,
            columns % 8,
        ]
        program.forward[:] = parts

    same_bits(program, cut)


def test_02_what_stays_whole() -> None:
    """Whole vectors, less than one vector, a rest that is nearly a vector, and plans without tiles."""
    for columns in (16, 5, 15):
        assert without_rest(*tiled(gradients(32, columns, 5)), PROCESSOR, {}) == []
    nest, plan = tiled(gradients(32, 18, 5))
    plan.tiled = False
    assert without_rest(nest, plan, PROCESSOR, {}) == []


def test_03_a_schedule_with_it() -> None:
    """Large enough for tiles: two columns are executed along the rows."""
    program = Program([gradients(784, 18, 300)])
    report = vectorise(program, PROCESSOR)
    assert len(report) == 2
