"""What joins the loops of the backward phase, what must not, and that both forms leave the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
)
from mgjit.passes.fuse import fuse
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example, numbers, sgd

P, G = Array("p", "parameter", 40), Array("g", "gradient", 40)
X, D, S = Array("x", "input", 40), Array("d", "input", 40), Array("s", "state", 40)


def gradient(rows: int = 4, columns: int = 5) -> Loop:
    """`for i: for j: g[i,j] = 0.0 + x[i] * d[j]`, without the zero."""
    i, j = Loop(rows, []), Loop(columns, [])
    return around(i, around(j, define(at(G, (i, columns), (j, 1)), "multiply", load(X, (i, 1)), load(D, (j, 1)))))


def descent(rows: int = 4, columns: int = 5, base: int = 0) -> Loop:
    """`for i: for j: p[i,j] = p[i,j] - g[i,j]`."""
    i, j = Loop(rows, []), Loop(columns, [])
    place = [(i, columns), (j, 1)]
    return around(i, around(j, update(at(P, *place), "subtract", load(G, *place, base=base))))


def fused(backward: Sequence[Node], updating: Sequence[Node]) -> Program:
    """The Program after the pass; whatever became of it has the same bits."""
    program = Program([], list(backward), list(updating))
    before = print_program(program)
    made = Program([], list(backward), list(updating))
    fuse(made)
    same_bits(program, fuse, fused=bool(made.fused))
    assert print_program(program).startswith(before)  # the phases stay as they are
    return program


def test_01_the_update_joins() -> None:
    """One nest with both statements; the phases on their own stay."""
    program = fused([gradient()], [descent()])
    assert print_program(program).split("fused:\n")[1] == (
        "    for i in 0 .. 3:\n"
        "        for j in 0 .. 4:\n"
        "            %2 = g[5*i + j] = multiply(x[i], d[j])\n"
        "            p[5*i + j] = subtract(p[5*i + j], g[5*i + j])\n"
    )


def test_02_partner_and_remainder() -> None:
    """What does not fuse comes after the backward phase, in order."""
    j = Loop(7, [])
    decay = around(j, update(at(S, (j, 1)), "multiply", Constant(0.5)))
    program = fused([gradient(), define(at(S, base=30), "copy", load(G, base=3))], [descent(), decay])
    assert len(program.fused) == 3
    assert isinstance(program.fused[1], Statement)


def test_03_registers_inside_move_along() -> None:
    """A register between statements that join names their copies."""
    i, j = Loop(4, []), Loop(5, [])
    place = [(i, 5), (j, 1)]
    scaled = Statement("multiply", (load(G, *place), Constant(0.1)))
    around(i, around(j, scaled, update(at(P, *place), "subtract", Register(scaled))))
    assert len(fused([gradient()], [i]).fused) == 1


def test_04_other_shapes() -> None:
    """Other counts, other elements, or other orders of iteration do not fuse."""
    assert not fused([gradient()], [descent(5, 4)]).fused
    assert not fused([gradient()], [descent(3, 5)]).fused
    assert not fused([gradient()], [descent(base=1)]).fused
    i, j = Loop(5, []), Loop(5, [])
    transposed = around(i, around(j, update(at(P, (i, 5), (j, 1)), "subtract", load(G, (j, 5), (i, 1)))))
    assert not fused([gradient(5, 5)], [transposed]).fused


def test_05_nests_that_are_not_perfect() -> None:
    """A statement between the loops keeps either nest out."""
    extra = define(at(S), "copy", Constant(1.0))
    nest = gradient()
    nest.body.append(extra)
    assert not fused([nest], [descent()]).fused
    nest = descent()
    nest.body.append(extra)
    assert not fused([gradient()], [nest]).fused


@pytest.mark.parametrize(
    "between",
    [
        define(at(G, base=3), "copy", Constant(2.0)),  # changes what is read
        define(at(S), "copy", load(P, base=7)),  # reads what is written
        define(at(P, base=7), "copy", Constant(0.5)),  # writes it too
        define(at(S), "copy", Load(Reference(P, Index(0, (), TableEntry(0, ()))))),  # reads it from somewhere
    ],
)
def test_06_what_is_on_the_way(between: Statement) -> None:
    """Nothing is passed that touches the same elements: at the end of the backward phase or in the update."""
    for backward, updating in (([gradient(), between], [descent()]), ([gradient()], [between, descent()])):
        program = Program([], list(backward), list(updating))
        program.tables.append(5)
        same_bits(program, fuse)
        assert not program.fused


def test_07_what_may_be_passed() -> None:
    """Reads of what is read, and other elements of what is written."""
    for between in (define(at(S), "copy", load(G, base=3)), define(at(P, base=20), "copy", load(P, base=39))):
        assert fused([gradient(), between], [descent()]).fused
        assert fused([gradient()], [between, descent()]).fused


def test_08_registers_from_outside() -> None:
    """A number that is computed on the way is not there yet."""
    rate = Statement("multiply", (load(X, base=9), Constant(0.1)))
    i, j = Loop(4, []), Loop(5, [])
    place = [(i, 5), (j, 1)]
    around(i, around(j, update(at(P, *place), "subtract", load(G, *place), Register(rate))))
    i.body[0].body[0] = define(at(P, *place), "multiply", load(G, *place), Register(rate))  # type: ignore[union-attr]
    assert not fused([gradient()], [rate, i]).fused


def test_09_the_partner_needs_the_old_parameter() -> None:
    """A parameter that another iteration of the partner still reads keeps the update out; its own may."""
    for step, expected in ((5, True), (0, False)):
        i, j = Loop(4, []), Loop(5, [])
        nest = around(i, around(j, define(at(G, (i, 5), (j, 1)), "copy", load(P, (i, step), (j, 1)))))
        assert bool(fused([nest], [descent()]).fused) is expected


def test_10_sums_blocks_and_choices() -> None:
    """A gradient that is still being summed, a block, and what is chosen by a loop do not fuse."""
    i, j = Loop(4, []), Loop(5, [])
    total = around(i, around(j, update(at(G, (j, 1)), "add", load(X, (i, 1)))))
    i2, j2 = Loop(4, []), Loop(5, [])
    use = around(i2, around(j2, define(at(P, (i2, 5), (j2, 1)), "copy", load(G, (j2, 1)))))
    assert not fused([total], [use]).fused
    blocks = Program([], [Block([define(at(S), "copy", Constant(1.0))]), gradient()], [descent()])
    same_bits(blocks, fuse)
    assert not blocks.fused
    i, j = Loop(4, []), Loop(5, [])
    chosen = Choice(i, load(G, (i, 5), (j, 1)), Constant(1.0))
    around(i, around(j, update(at(P, (i, 5), (j, 1)), "subtract", chosen)))
    assert not fused([gradient()], [i]).fused


def test_11_a_network() -> None:
    """Weights are updated where their gradients are computed."""
    model = nn.MLP(5, [6, 1])

    def step(x: Any, rate: Any) -> Any:
        loss: mgjit.Value = model(x) ** 2
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    for laid_out in (True, False):
        made = Example(step, numbers(5), 0.1)
        program = made.lower("fuse", laid_out=laid_out)
        assert program.fused or not laid_out
        made.check(program)
