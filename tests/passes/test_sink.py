"""Which loops move inwards, which stay, and that every sum keeps its order."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    walk,
)
from mgjit.passes.sink import sink
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example, numbers

W, X, T, S = (Array(name, "parameter", 80) for name in "wxts")
R = Array("r", "gradient", 80)


def layer(rows: int = 6, columns: int = 5, row_step: int = 1, column_step: int = 6) -> Loop:
    """A layer over a matrix that is stored with neighbouring rows side by side."""
    j, i = Loop(rows, []), Loop(columns, [])
    weight = load(W, (j, row_step), (i, column_step))
    return around(
        j,
        define(at(R, (j, 1)), "copy", load(S, (j, 1))),
        around(i, update(at(R, (j, 1)), "add", weight)),
        define(at(T, (j, 1)), "relu", load(R, (j, 1))),
    )


def sunk(program: Program) -> bool:
    """Whether the pass changes a Program; its bits never."""
    before = print_program(program)
    same_bits(program, sink)
    return print_program(program) != before


def test_01_a_layer() -> None:
    """As in the docstring of the module."""
    program = Program([layer()])
    assert sunk(program)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 5:\n"
        "        %0 = r[i] = copy(s[i])\n"
        "    for i in 0 .. 4:\n"
        "        for j in 0 .. 5:\n"
        "            r[j] = add(r[j], w[j + 6*i])\n"
        "    for i in 0 .. 5:\n"
        "        %2 = t[i] = relu(r[i])\n"
    )


def test_02_all_phases_and_depths() -> None:
    """In the other phases, inside another loop, inside a block, and downwards."""
    program = Program([around(Loop(2, []), layer())], [layer()], [Block([layer()])])
    assert sunk(program)
    assert print_program(program).count("relu") == 3
    nests = [node for _, nodes in program.phases for node in walk(nodes) if isinstance(node, Loop) and node.count == 5]
    assert [[type(inner) for inner in nest.body] for nest in nests] == [[Loop]] * 3
    downwards = layer()
    downwards.reverse = True
    program = Program([downwards])
    assert sunk(program)
    assert print_program(program).count("5 .. 0") == 3


def test_03_not_worth_it() -> None:
    """Few iterations, long steps, and nothing inside."""
    assert not sunk(Program([layer(rows=3)]))
    assert sunk(Program([layer(rows=4)]))
    assert not sunk(Program([layer(row_step=5, column_step=1)]))
    j = Loop(6, [])
    assert not sunk(Program([around(j, define(at(R, (j, 1)), "copy", load(S, (j, 1))))]))


def test_04_dependences_stay() -> None:
    """A recurrence over the outer loop keeps its order."""
    nest = layer()
    nest.body.append(define(at(S, (nest, 1), base=1), "copy", load(T, (nest, 1))))
    assert not sunk(Program([nest]))


@pytest.mark.parametrize("kind", range(3))
def test_05_what_is_not_affine(kind: int) -> None:
    """Table look-ups, run-time indices, and operands chosen by a loop."""
    nest = layer()
    inner: Any = nest.body[1]
    choices: list[Operand] = [
        Load(Reference(W, Index(0, (), TableEntry(0, ((nest, 1),))))),
        Load(Reference(W, Index(0, ((nest, 1),), None, Dynamic(Constant(2.0), 1, 4)))),
        Choice(nest, Constant(0.5), load(W, (nest, 1), (inner, 6))),
    ]
    inner.body[0].operands = (choices[kind],)
    program = Program([nest])
    program.tables.extend([3, 1, 4, 1, 5, 9])
    assert not sunk(program)


def test_06_registers() -> None:
    """A register inside a stretch moves along, one that crosses a loop keeps the loop."""
    for crosses in (False, True):
        nest = layer()
        made = Statement("relu", (load(S, (nest, 1)),))
        stored = define(at(X, (nest, 1)), "copy", Register(made))
        nest.body[:0] = [made] if crosses else [made, stored]
        nest.body += [stored] if crosses else []
        assert sunk(Program([nest])) is not crosses


def test_07_a_part_that_may_move() -> None:
    """A loop with a part that depends on itself is split when another part gains."""
    nest = layer()
    total = update(at(X), "add", load(S, (nest, 1)))
    nest.body = [nest.body[1], total]
    program = Program([nest])
    assert sunk(program)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 4:\n"
        "        for j in 0 .. 5:\n"
        "            r[j] = add(r[j], w[j + 6*i])\n"
        "    for i in 0 .. 5:\n"
        "        x[0] = add(x[0], s[i])\n"
    )


def test_08_a_network() -> None:
    """Layers of a traced step over moved parameters."""
    model = mgjit.nn.MLP(5, [7, 8, 1])

    def step(x: Any) -> Any:
        loss = model(x) ** 2
        loss.backward()
        return loss

    made = Example(step, numbers(5))
    before = print_program(made.lower("dead statements", laid_out=True))
    program = made.lower("sink", laid_out=True)
    assert print_program(program) != before
    made.check(program)
