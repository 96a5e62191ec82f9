"""Which nests are executed together, which may not be, and that every bit stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.schedule.fuse import fuse
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
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    count_statements,
)
from mgjit.ir.substitute import Substitution, copy_nodes
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import SCALAR, WIDE, Example, numbers, sgd
from tests.nests import random_chain

P, G = Array("p", "parameter", 40), Array("g", "gradient", 40)
X, D, S = Array("x", "input", 40), Array("d", "input", 40), Array("s", "state", 40)


@pytest.fixture(autouse=True)
def whatever_it_costs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be fused is fused, but in tests of what it costs."""
    if "costs" not in request.node.name:
        monkeypatch.setattr("mgjit.compiler.schedule.fuse.best_plan", lambda nest, processor, independent: (0.0, None))


def gradient(rows: int = 4, columns: int = 5) -> Loop:
    """`for i: for j: g[i,j] = x[i] * d[j]`."""
    i, j = Loop(rows, []), Loop(columns, [])
    return around(i, around(j, define(at(G, (i, columns), (j, 1)), "multiply", load(X, (i, 1)), load(D, (j, 1)))))


def descent(rows: int = 4, columns: int = 5, base: int = 0) -> Loop:
    """`for i: for j: p[i,j] = p[i,j] - g[i,j]`."""
    i, j = Loop(rows, []), Loop(columns, [])
    place = [(i, columns), (j, 1)]
    return around(i, around(j, update(at(P, *place), "subtract", load(G, *place, base=base))))


def fused(backward: Sequence[Node], updating: Sequence[Node]) -> Program:
    """A whole step after the pass: it has the bits of before, and so have separate phases."""
    nodes = [*backward, *updating]
    copies = copy_nodes(nodes, Substitution())
    phases = Program([], copies[: len(backward)], copies[len(backward) :], separate=True)
    program = Program([], nodes)
    for made in (phases, program):
        made.tables.extend([5, 3, 1, 2])
        same_bits(made, lambda changed: fuse(changed, WIDE))
    return program


def together(backward: Sequence[Node], updating: Sequence[Node]) -> bool:
    """Whether there are fewer nodes in the step than before."""
    return len(fused(backward, updating).backward) < len(backward) + len(updating)


def test_01_the_update_joins() -> None:
    """One nest with both statements."""
    program = fused([gradient()], [descent()])
    assert print_program(Program(program.backward)) == (
        "forward:\n"
        "    for i in 0 .. 3:\n"
        "        for j in 0 .. 4:\n"
        "            %0 = g[5*i + j] = multiply(x[i], d[j])\n"
        "            p[5*i + j] = subtract(p[5*i + j], g[5*i + j])\n"
    )


def test_02_as_in_the_docstring() -> None:
    """What clears, what sums over another loop, and what updates; the sum keeps its order."""
    i, j = Loop(4, []), Loop(5, [])
    clear = around(i, around(j, define(at(G, (i, 5), (j, 1)), "copy", Constant(0.0))))
    b, k, m = Loop(3, [], reverse=True), Loop(4, []), Loop(5, [])
    term = update(at(G, (k, 5), (m, 1)), "add", load(X, (b, 4), (k, 1)))
    program = fused([clear, around(b, around(k, around(m, term)))], [descent()])
    assert print_program(Program(program.backward)) == (
        "forward:\n"
        "    for i in 0 .. 3:\n"
        "        for j in 0 .. 4:\n"
        "            %0 = g[5*i + j] = copy(0.0)\n"
        "            for k in 2 .. 0:\n"
        "                g[5*i + j] = add(g[5*i + j], x[4*k + i])\n"
        "            p[5*i + j] = subtract(p[5*i + j], g[5*i + j])\n"
    )


def test_03_partner_and_remainder() -> None:
    """What does not fuse comes after the backward phase, in order."""
    j = Loop(7, [])
    decay = around(j, update(at(S, (j, 1)), "multiply", Constant(0.5)))
    program = fused([gradient(), define(at(S, base=30), "copy", load(G, base=3))], [descent(), decay])
    assert [type(node) for node in program.backward] == [Loop, Statement, Loop]


def test_04_registers_inside_move_along() -> None:
    """A register between statements that join names their copies."""
    i, j = Loop(4, []), Loop(5, [])
    place = [(i, 5), (j, 1)]
    scaled = Statement("multiply", (load(G, *place), Constant(0.1)))
    around(i, around(j, scaled, update(at(P, *place), "subtract", Register(scaled))))
    assert together([gradient()], [i])


def test_05_loops_in_another_order() -> None:
    """Loops correspond by the elements they visit; independent ones may be in any order, and in any direction."""
    j, i = Loop(5, [], reverse=True), Loop(4, [])
    assert together([gradient()], [around(j, around(i, update(at(P, (i, 5), (j, 1)), "add", load(G, (i, 5), (j, 1)))))])
    i, j = Loop(5, []), Loop(5, [])
    transposed = around(i, around(j, update(at(P, (i, 5), (j, 1)), "subtract", load(G, (j, 5), (i, 1)))))
    assert together([gradient(5, 5)], [transposed])


def test_06_other_shapes() -> None:
    """Other counts, or other elements, do not fuse."""
    assert not together([gradient()], [descent(5, 4)])
    assert not together([gradient()], [descent(3, 5)])
    assert not together([gradient()], [descent(base=1)])
    i, j = Loop(4, []), Loop(5, [])
    upside_down = around(i, around(j, update(at(P, (i, 5), (j, 1)), "subtract", load(G, (i, -5), (j, 1), base=15))))
    assert not together([gradient()], [upside_down])


def test_07_nothing_in_common() -> None:
    """Nests that share no element gain nothing."""
    i, j = Loop(4, []), Loop(5, [])
    assert not together([gradient()], [around(i, around(j, update(at(S, (i, 5), (j, 1)), "multiply", load(X))))])


def test_08_nests_that_are_not_perfect() -> None:
    """A statement between the loops keeps a nest of two free loops out; one outer loop may still be shared."""
    nest = gradient()
    nest.body.append(define(at(S, (nest, 1)), "copy", Constant(1.0)))
    assert not together([nest], [descent()])
    rows = Loop(4, [])
    assert together([nest], [around(rows, update(at(S, (rows, 1)), "multiply", load(X, (rows, 1))))])


@pytest.mark.parametrize(
    "between",
    [
        define(at(G, base=3), "copy", Constant(2.0)),  # changes what is read
        define(at(S), "copy", load(P, base=7)),  # reads what is written
        define(at(P, base=7), "copy", Constant(0.5)),  # writes it too
        define(at(S), "copy", Load(Reference(P, Index(0, (), TableEntry(0, ()))))),  # reads it from somewhere
    ],
)
def test_09_what_is_on_the_way(between: Statement) -> None:
    """Nothing is passed by the update that touches the same elements; the gradient may be passed instead."""
    for backward, updating in (([gradient(), between], [descent()]), ([gradient()], [between, descent()])):
        program = fused(backward, updating)
        assert [type(node) for node in program.backward] in ([Statement, Loop], [Loop, Statement, Loop])


def test_10_neither_may_pass() -> None:
    """In between is what needs the gradient and changes the parameter."""
    between = define(at(P, base=7), "copy", load(G, base=3))
    assert not together([gradient(), between], [descent()])


def test_11_what_may_be_passed() -> None:
    """Reads of what is read, and other elements of what is written."""
    for between in (define(at(S), "copy", load(G, base=3)), define(at(P, base=20), "copy", load(P, base=39))):
        assert together([gradient(), between], [descent()])
        assert together([gradient()], [between, descent()])


@pytest.mark.parametrize("chosen", [False, True])
def test_12_registers_from_outside(chosen: bool) -> None:
    """A number that is computed on the way is there first: the gradient moves behind it. A choice may hide it."""
    rate = Statement("multiply", (load(X, base=9), Constant(0.1)))
    i, j = Loop(4, []), Loop(5, [])
    place = [(i, 5), (j, 1)]
    operand = Choice(j, Register(rate), Constant(2.0)) if chosen else Register(rate)
    around(i, around(j, define(at(P, *place), "multiply", load(G, *place), operand)))
    program = fused([gradient()], [rate, i])
    assert [type(node) for node in program.backward] == [Statement, Loop]


def test_13_the_partner_needs_the_old_parameter() -> None:
    """A parameter that another iteration of the partner still reads keeps the update out; its own may."""
    for step, expected in ((5, True), (0, False)):
        i, j = Loop(4, []), Loop(5, [])
        nest = around(i, around(j, define(at(G, (i, 5), (j, 1)), "copy", load(P, (i, step), (j, 1)))))
        assert together([nest], [descent()]) is expected


def test_14_sums() -> None:
    """A sum that is complete only after all rows may be shared over columns alone."""
    i, j = Loop(4, []), Loop(5, [])
    total = around(i, around(j, update(at(G, (j, 1)), "add", load(X, (i, 1)))))
    i2, j2 = Loop(4, []), Loop(5, [])
    use = around(i2, around(j2, define(at(P, (i2, 5), (j2, 1)), "copy", load(G, (j2, 1)))))
    assert not together([total], [use])
    j3 = Loop(5, [])
    assert together([total], [around(j3, define(at(P, (j3, 1)), "copy", load(G, (j3, 1))))])


def test_15_blocks() -> None:
    """Long code stays as it is."""
    blocks = Program([], [Block([define(at(S), "copy", Constant(1.0))]), gradient(), descent()])
    same_bits(blocks, lambda program: fuse(program, WIDE))
    assert len(blocks.backward) == 3


def test_16_choices() -> None:
    """An operand chosen by a loop moves along; a target that is chosen keeps its nest."""
    for base, expected in ((0, True), (-5, False)):  # of this row, or of the one before
        i, j = Loop(4, []), Loop(5, [])
        chosen = Choice(i, Constant(1.0), load(G, (i, 5), (j, 1), base=base))
        nest = around(i, around(j, update(at(P, (i, 5), (j, 1)), "subtract", chosen)))
        j.body.append(define(at(S, (i, 5), (j, 1)), "copy", load(G, (i, 5), (j, 1))))
        assert together([gradient()], [nest]) is expected
    i, j = Loop(4, []), Loop(5, [])
    target = TargetChoice(i, None, at(P, (i, 5), (j, 1)))
    assert not together([gradient()], [around(i, around(j, update(target, "subtract", load(G, (i, 5), (j, 1)))))])


def test_17_inside_loops() -> None:
    """Nests in a loop that itself stays are fused in it."""
    t = Loop(3, [])
    first, second = gradient(), descent()
    program = Program([around(t, first, second, define(at(P), "copy", load(G, (t, 1))))])
    same_bits(program, lambda changed: fuse(changed, WIDE))
    outer = program.forward[0]
    assert isinstance(outer, Loop)
    assert len(outer.body) == 2


def test_18_phases() -> None:
    """Nests of different phases stay apart."""
    program = Program([], [gradient()], [descent()], separate=True)
    same_bits(program, lambda changed: fuse(changed, WIDE))
    assert len(program.backward) == len(program.update) == 1


@pytest.mark.parametrize("processor", [SCALAR, WIDE], ids=["scalar", "vectors"])
@pytest.mark.parametrize("laid_out", [True, False])
def test_19_what_it_costs_in_a_network(laid_out: bool, processor: Any) -> None:
    """Weights are updated where their gradients are computed."""
    model = nn.MLP(5, [8, 1])

    def step(x: Any, rate: Any) -> Any:
        loss: mgjit.Value = model(x) ** 2
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    made = Example(step, numbers(5), 0.1)
    before = len(made.lower("more first contributions", laid_out=laid_out, processor=processor).backward)
    program = made.lower("fuse", laid_out=laid_out, processor=processor)
    assert len(program.backward) < before or not laid_out
    made.check(program)


@pytest.mark.parametrize("seed", range(25))
def test_20_random_nests(seed: int) -> None:
    """Nests over the same rows and columns, in the phases and in the whole step, whatever it costs."""
    for whole in (False, True):
        made = random_chain(seed)
        if whole:
            made.backward, made.update = [*made.backward, *made.update], []
        same_bits(made, lambda program: fuse(program, WIDE))


@pytest.mark.parametrize(("power", "expected"), [(1.0, True), (1.02, True), (1.1, False)])
def test_21_what_it_costs(monkeypatch: pytest.MonkeyPatch, power: float, expected: bool) -> None:
    """Nests stay apart when the one that they would make costs more than both."""
    cost = lambda nest, processor, independent: (count_statements([nest]) ** power, None)  # noqa: E731
    monkeypatch.setattr("mgjit.compiler.schedule.fuse.best_plan", cost)
    assert together([gradient()], [descent()]) is expected


def test_22_elements_chosen_at_run_time() -> None:
    """Two iterations may add to the same element: their order stays."""
    i, j = Loop(5, []), Loop(5, [], reverse=True)
    number = Array("constants", "constant", 5)
    made = around(i, define(at(S, (i, 1)), "multiply", load(X, (i, 1)), load(D, (i, 1))))
    place = Reference(P, Index(0, ((j, 1),), None, Dynamic(load(number, (j, 1)), 1, 3)))
    program = Program([made, around(j, update(place, "add", load(S, (j, 1))))])
    program.constants.extend([2.0, 1.0, 0.0, 1.0, 0.0])
    same_bits(program, lambda changed: fuse(changed, WIDE))
    assert len(program.forward) == 2


def test_23_a_recurrence_between() -> None:
    """A chosen target writes an array that the same statement reads as well: what reads it later stays behind."""
    i, j, k = Loop(5, []), Loop(5, [], reverse=True), Loop(5, [])
    made = around(i, update(at(S, (i, 1)), "add", load(X, (i, 1))))
    earlier = TargetChoice(j, at(P), at(S, (j, 1), base=-1))
    passed_on = around(j, update(earlier, "add", load(S, (j, 1))))
    used = around(k, define(at(G, (k, 1)), "copy", load(S, (k, 1))))
    program = Program([made, passed_on, used])
    same_bits(program, lambda changed: fuse(changed, WIDE))
    assert len(program.forward) == 3


def test_24_what_reads_two_nests_joins_both() -> None:
    """`g = x * d`, `s = p * p` and `p = g - s`: after the last has joined one of them, both join the other."""
    j, k, m = Loop(7, []), Loop(7, []), Loop(7, [])
    one = around(j, define(at(G, (j, 1)), "multiply", load(X, (j, 1)), load(D, (j, 1))))
    two = around(k, define(at(S, (k, 1)), "multiply", load(P, (k, 1)), load(P, (k, 1))))
    last = around(m, define(at(P, (m, 1)), "subtract", load(G, (m, 1)), load(S, (m, 1))))
    program = fused([one, two], [last])
    assert print_program(Program(program.backward)) == (
        "forward:\n"
        "    for i in 0 .. 6:\n"
        "        %0 = g[i] = multiply(x[i], d[i])\n"
        "        %1 = s[i] = multiply(p[i], p[i])\n"
        "        %2 = p[i] = subtract(g[i], s[i])\n"
    )


@pytest.mark.parametrize(("rows", "expected"), [(40, 3), (400, 1)])
def test_25_what_it_costs_to_read_again(monkeypatch: pytest.MonkeyPatch, rows: int, expected: int) -> None:
    """The update of a large matrix joins the sums of its gradient: it would be read from memory again."""
    cost = lambda nest, processor, independent: (count_statements([nest]) ** 1.5, None)  # noqa: E731
    monkeypatch.setattr("mgjit.compiler.schedule.fuse.best_plan", cost)
    g, m, t = (Array(name, "state", 400 * rows) for name in "gmt")
    x, d = Array("x", "input", 8 * rows), Array("d", "input", 8 * 400)

    i, j, k = Loop(rows, []), Loop(400, []), Loop(8, [])
    place = (i, 400), (j, 1)
    term = Statement("multiply", (load(x, (k, rows), (i, 1)), load(d, (k, 400), (j, 1))))
    sums = around(k, term, update(at(g, *place), "add", Register(term)))
    nests: list[Node] = [around(i, around(j, define(at(g, *place), "copy", Constant(0.0)), sums))]
    i, j = Loop(rows, []), Loop(400, [])
    place = (i, 400), (j, 1)
    nests.append(around(i, around(j, define(at(t, *place), "multiply", load(m, *place), Constant(0.5)))))
    i, j = Loop(rows, []), Loop(400, [])
    place = (i, 400), (j, 1)
    nests.append(around(i, around(j, define(at(m, *place), "add", load(t, *place), load(g, *place)))))
    program = Program([], nests)
    fuse(program, WIDE)
    assert len(program.backward) == expected
