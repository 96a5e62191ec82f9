"""Nests executed by their plans: lanes, rests, packed copies, and that no sum changes its order."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.simplify.pad import pad
from mgjit.compiler.toolchain.target import Processor
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
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    count_copies,
    walk,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import SCALAR, WIDE, Example, numbers, sgd
from tests.nests import random_chain, random_choosing, random_program

pytestmark = pytest.mark.once

PROCESSORS = [SCALAR, Processor(2, 16), Processor(4, 16), WIDE, Processor(16, 32)]
EVERY = pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: f"{processor.lanes} lanes")

X, Y = Array("x", "input", 2_000), Array("y", "input", 2_000)
W, T, S = (Array(name, "parameter", 2_000) for name in "wts")


def layer(rows: int, columns: int, inputs: int, steps: tuple[int, int] | None = None, reverse: bool = False) -> Loop:
    """`for b: for j: r = bias; for i: r += w * x; t = relu(r)`; `steps` of the weights for j and i."""
    r = Array("r", "scratch", rows * columns, shape=(rows, columns))
    b, j, i = Loop(rows, []), Loop(columns, [], reverse), Loop(inputs, [], reverse)
    weight, other = steps or (1, columns)
    term = Statement("multiply", (load(W, (j, weight), (i, other)), load(X, (b, inputs), (i, 1))))
    place = (b, columns), (j, 1)
    total = around(i, term, update(at(r, *place), "add", Register(term)))
    last = define(at(T, *place), "relu", load(r, *place))
    return around(b, around(j, define(at(r, *place), "copy", load(Y, (j, 1))), total, last))


def lanes(program: Program) -> list[int]:
    """The counts of all loops over lanes."""
    return [node.count for _, nodes in program.phases for node in walk(nodes) if isinstance(node, Loop) and node.lanes]


def scheduled(*nodes: Node, processor: Processor = WIDE, room: bool = False) -> Program:
    """The Program after the pass, with the same bits."""

    def change(program: Program) -> None:
        if room:
            pad(program, processor.lanes)
        vectorise(program, processor)

    program = Program(list(nodes))
    program.tables.extend([3, 1, 2, 0] * 10)
    same_bits(program, change)
    return program


def test_01_as_in_the_docstring() -> None:
    """Sums of two vectors side by side, one loop over what is summed."""
    program = scheduled(layer(1, 16, 3))
    assert print_program(Program(program.forward)) == (
        "forward:\n"
        "    for i in 0 .. 0:\n"
        "        for j in 0 .. 1, side by side:\n"
        "            for k in 0 .. 7, as lanes:\n"
        "                %0 = r[16*i + 8*j + k] = copy(y[8*j + k])\n"
        "        for j in 0 .. 2:\n"
        "            for k in 0 .. 1, side by side:\n"
        "                for l in 0 .. 7, as lanes:\n"
        "                    %1 = multiply(w[8*k + l + 16*j], x[3*i + j])\n"
        "                    r[16*i + 8*k + l] = add(r[16*i + 8*k + l], %1)\n"
        "        for j in 0 .. 1, side by side:\n"
        "            for k in 0 .. 7, as lanes:\n"
        "                %3 = t[16*i + 8*j + k] = relu(r[16*i + 8*j + k])\n"
    )


@EVERY
@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 33, 50])
def test_02_counts(count: int, processor: Processor) -> None:
    """Below, at and above whole vectors: whole ones, then halves, every element once."""
    j = Loop(count, [])
    program = scheduled(around(j, define(at(T, (j, 1)), "multiply", load(X, (j, 1)), load(Y))), processor=processor)
    widths = lanes(program)
    assert all(width <= processor.lanes and width & (width - 1) == 0 for width in widths)
    if processor.lanes > 1 and count > 1:
        assert max(widths) == min(processor.lanes, 1 << (count.bit_length() - 1))


@EVERY
@pytest.mark.parametrize("room", [False, True], ids=["", "padded"])
@pytest.mark.parametrize("shape", [(1, 3, 2), (4, 13, 3), (2, 16, 5), (17, 6, 2)])
@pytest.mark.sampled
def test_03_layers(shape: tuple[int, int, int], room: bool, processor: Processor) -> None:
    """Of all sizes, by rows and by columns, in both directions: the sums keep their order."""
    rows, columns, inputs = shape
    for steps in (None, (inputs, 1)):
        for reverse in (False, True):
            scheduled(layer(rows, columns, inputs, steps, reverse), processor=processor, room=room)


def test_04_room_behind_rows() -> None:
    """The last vector goes beyond the end where all arrays have room; then there is no rest."""
    rows, columns = 3, 13
    t, u = (Array(name, "scratch", rows * columns, shape=(rows, columns)) for name in "tu")
    nodes: list[Node] = []
    for number in range(3):
        i, j = Loop(rows, []), Loop(columns, [])
        place = (i, columns), (j, 1)
        source = load(X, *place) if number == 0 else load(t if number == 1 else u, *place)
        target = at(t, *place) if number == 0 else at(u, *place) if number == 1 else at(S, *place)
        nodes.append(around(i, around(j, define(target, "negate", source))))
    program = scheduled(*nodes, room=True)
    assert t.padded_rows
    assert t.padded_rows[0].pitch == 16
    inner = [node.count for node in walk([program.forward[1]]) if isinstance(node, Loop) and node.lanes]
    assert set(inner) == {8}
    rest = [node.count for node in walk([program.forward[-1]]) if isinstance(node, Loop) and node.lanes]
    assert 4 in rest


def test_05_packed() -> None:
    """Weights by rows are copied once for a large batch."""
    program = scheduled(layer(40, 16, 12, (12, 1)))
    assert "packed1[" in print_program(program)
    two = scheduled(layer(40, 16, 12, (12, 1)), layer(40, 16, 12, (12, 1)))
    assert "packed2" not in print_program(two)
    changed = scheduled(layer(40, 16, 12, (12, 1)), define(at(W), "copy", Constant(2.0)), layer(40, 16, 12, (12, 1)))
    assert "packed2" in print_program(changed)


def test_06_what_is_the_same_for_all_lanes() -> None:
    """It is computed once, outside of the loops over lanes."""
    j = Loop(16, [])
    once = Statement("exp", (load(Y),))
    program = scheduled(around(j, once, define(at(T, (j, 1)), "multiply", load(X, (j, 1)), Register(once))))
    outer = program.forward[0]
    assert isinstance(outer, Loop)
    first, vector = outer.body
    assert isinstance(first, Statement)
    assert first.operation == "exp"
    assert isinstance(vector, Loop)
    assert vector.lanes


def test_07_registers_between_stretches() -> None:
    """What every lane needs behind a loop is kept in an array."""
    j, i = Loop(16, []), Loop(3, [])
    made = Statement("exp", (load(X, (j, 1)),))
    total = around(i, update(at(T, (j, 1)), "add", load(W, (i, 16), (j, 1))))
    program = scheduled(around(j, made, total, define(at(S, (j, 1)), "multiply", Register(made), load(T, (j, 1)))))
    assert "lane1[" in print_program(program)
    assert lanes(program)


@EVERY
@pytest.mark.parametrize(("step", "base"), [(1, 0), (2, 0), (-1, 40), (-3, 100), (0, 5)])
def test_08_steps(step: int, base: int, processor: Processor) -> None:
    """Elements in a row, far apart, and backwards, written and read; one element is a sum."""
    for write in (False, True):
        j = Loop(19, [])
        one, other = at(S, (j, step), base=base) if step else at(S, base=base), at(T, (j, 1))
        body = update(one, "add", load(X, (j, 1))) if write else define(other, "multiply", Load(one), load(X, (j, 1)))
        program = scheduled(around(j, body), processor=processor)
        if processor.lanes > 1 and step in (0, 1) and (step or write):
            assert bool(lanes(program)) is bool(step)


@EVERY
def test_09_several_sums_of_one_array(processor: Processor) -> None:
    """Two sums into neighbouring rows, and one element that is updated twice."""
    j, i = Loop(11, []), Loop(6, [])
    body = around(
        i,
        update(at(T, (j, 1)), "add", load(W, (i, 11), (j, 1))),
        update(at(T, (j, 1), base=11), "subtract", load(W, (i, 11), (j, 1))),
        update(at(T, (j, 1)), "multiply", load(X, (i, 1))),
    )
    scheduled(around(j, body), processor=processor)


@pytest.mark.parametrize("kind", range(4))
@EVERY
def test_10_what_is_not_affine(processor: Processor, kind: int) -> None:
    """Choices, tables and run-time indices: their loops stay in steps of one, others may not."""
    i, j = Loop(5, []), Loop(16, [])
    operands: list[Operand] = [
        Choice(i, load(X, (j, 1)), load(Y, (i, 16), (j, 1))),
        Choice(j, load(X, (i, 1)), load(Y, (j, 1))),
        Load(Reference(Y, Index(0, ((j, 1),), TableEntry(0, ((i, 1),))))),
        Load(Reference(Y, Index(0, ((j, 1),), None, Dynamic(Constant(3.0), 7, 9)))),
    ]
    target = at(T, (i, 16), (j, 1))
    program = scheduled(
        around(i, around(j, define(target, "multiply", operands[kind], load(X, (j, 1))))), processor=processor
    )
    assert bool(lanes(program)) is (kind != 1 and processor.lanes > 1)


def test_11_a_choice_of_a_run_time_index() -> None:
    """The number of an element may be chosen by a loop, too."""
    j = Loop(2, [])
    number = Choice(j, load(Array("constants", "constant", 1)), Constant(3.0))
    program = Program(
        [around(j, update(at(T, (j, 1)), "add", Load(Reference(W, Index(0, ((j, 1),), None, Dynamic(number, 5, 8))))))]
    )
    program.constants.append(2.0)
    same_bits(program, lambda changed: vectorise(changed, Processor(2, 16)))
    assert lanes(program) == []


def test_12_blocks_and_nests_inside() -> None:
    """In blocks, and in loops that keep their order."""
    t, j = Loop(4, []), Loop(16, [])
    inner = around(j, define(at(T, (t, 16), (j, 1), base=16), "multiply", load(T, (t, 16), (j, 1)), load(X, (j, 1))))
    before = define(at(S, (t, 1)), "copy", load(S, (t, 1), base=1))
    program = scheduled(around(t, before, inner), Block([layer(1, 8, 3)]))
    assert lanes(program)
    outer = program.forward[0]
    assert isinstance(outer, Loop)
    assert (outer.count, outer.lanes) == (4, False)


def test_13_without_vectors() -> None:
    """Sums run side by side as well."""
    program = scheduled(around(Loop(1, []), layer(1, 16, 50)), processor=SCALAR)
    assert lanes(program) == []
    assert count_copies(program.forward) > 10


def test_14_names() -> None:
    """Arrays that the pass makes have names of their own in all functions."""
    nests = [layer(40, 16, 12, (12, 1)) for _ in range(3)]
    program = Program([nests[0]], [nests[1]], [nests[2]])
    same_bits(program, lambda changed: vectorise(changed, WIDE))
    found = {
        target.array
        for _, nodes in program.phases
        for node in walk(nodes)
        if isinstance(node, Statement) and isinstance(target := node.target, Reference)
    }
    names = [array.name for array in found if array.name.startswith("packed")]
    assert len(names) == 3
    assert len(set(names)) == 3


@EVERY
def test_15_a_step(processor: Processor) -> None:
    """A batch through a network, and its update."""
    model = mgjit.nn.MLP(3, [7, 9, 1])

    def step(xs: Any, ys: Any, rate: Any) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    made = Example(step, [numbers(3, seed) for seed in range(11)], numbers(11), 0.05)
    program = made.lower("vectorise", laid_out=True, processor=processor)
    assert bool(lanes(program)) is (processor.lanes > 1)
    made.check(program)


@pytest.mark.parametrize("seed", range(16))
def test_16_random_nests(seed: int) -> None:
    """Whatever they access, with and without room."""
    processor = PROCESSORS[seed % len(PROCESSORS)]
    for made in (random_program(seed), random_program(seed, plain=True), random_chain(seed), random_choosing(seed)):
        same_bits(made, lambda program: (pad(program, processor.lanes), vectorise(program, processor)))


def test_17_nests_with_next_to_no_work_keep_their_order() -> None:
    """As much as may be neglected of all work, in code that is to be there soon."""

    def are_in_lanes(neglected: float) -> tuple[bool, bool]:
        j = Loop(16, [])
        small = around(j, define(at(S, (j, 1)), "copy", load(X, (j, 1))))
        program = scheduled(layer(8, 16, 100), small, processor=Processor(8, 32, neglected=neglected))
        *large, last = program.forward
        return bool(lanes(Program(large))), bool(lanes(Program([last])))

    assert are_in_lanes(0.0) == (True, True)
    assert are_in_lanes(0.01) == (True, False)
    assert are_in_lanes(1.0) == (False, False)
