"""Expensive operations leave the loops that they do not depend on."""

from __future__ import annotations

import pytest

import mgjit
from mgjit.compiler.schedule.hoist import hoist
from mgjit.compiler.simplify.simplify import delete_dead_statements
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
    Mixed,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    statements,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example, numbers, sgd

X, Y, T = Array("x", "parameter", 60), Array("y", "parameter", 60), Array("t", "gradient", 60)


def clean(program: Program) -> None:
    hoist(program)
    delete_dead_statements(program)


def moved(program: Program) -> int:
    """How many results have been moved; the bits stay."""
    same_bits(program, clean)
    arrays = {
        s.target.array
        for s in statements(program.forward)
        if isinstance(s.target, Reference) and s.target.array.name.startswith("once")
    }
    return len(arrays)


def test_01_a_softmax() -> None:
    """As in the docstring of the module."""
    b, i = Loop(3, []), Loop(5, [])
    inverse = Statement("power", (load(X, (b, 1)), Constant(-1.0)))
    product = define(at(T, (b, 5), (i, 1)), "multiply", load(Y, (b, 5), (i, 1)), Register(inverse))
    program = Program([around(b, around(i, inverse, product))])
    assert moved(program) == 1
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 2:\n"
        "        %0 = once1[i] = power(x[i], -1.0)\n"
        "    for i in 0 .. 2:\n"
        "        for j in 0 .. 4:\n"
        "            %1 = t[5*i + j] = multiply(y[5*i + j], once1[i])\n"
    )


def test_02_the_slice_moves_along() -> None:
    """What computes the operands is computed in front of the loop as well; a stored result becomes a copy."""
    i = Loop(4, [])
    sum_ = Statement("add", (load(X), Constant(1.0)))
    power = define(at(T, (i, 1)), "power", Constant(0.9), Register(sum_))
    program = Program([around(i, sum_, power)])
    assert moved(program) == 1
    assert print_program(program) == (
        "forward:\n"
        "    %0 = add(x[0], 1.0)\n"
        "    %1 = once1[0] = power(0.9, %0)\n"
        "    for i in 0 .. 3:\n"
        "        %2 = t[i] = copy(once1[0])\n"
    )


def test_03_out_of_as_many_loops_as_possible() -> None:
    """Something that the outer loop writes keeps it inside that one."""
    b, i = Loop(3, []), Loop(5, [])
    write = update(at(X), "add", load(Y, (b, 1)))
    power = define(at(T, (b, 5), (i, 1)), "power", load(X), Constant(0.5))
    program = Program([around(b, write, around(i, power))])
    assert moved(program) == 1
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 2:\n"
        "        x[0] = add(x[0], y[i])\n"
        "        %1 = once1[i] = power(x[0], 0.5)\n"
        "        for j in 0 .. 4:\n"
        "            %2 = t[5*i + j] = copy(once1[i])\n"
    )


def test_04_what_stays() -> None:
    """Cheap operations, those that depend on every loop, what the loop writes, updates, and loops of one iteration."""
    for operation, place, count in (
        ("multiply", at(T), 4),
        ("power", at(X), 4),
        ("power", at(T), 1),
    ):
        i = Loop(count, [])
        target = Reference(place.array, Index(0, ((i, 1),)))
        assert moved(Program([around(i, define(target, operation, load(X), Constant(2.0)))])) == 0
    i = Loop(4, [])
    assert moved(Program([around(i, define(at(T, (i, 1)), "power", load(X, (i, 1)), Constant(2.0)))])) == 0
    i = Loop(4, [])
    assert moved(Program([around(i, update(at(T), "power", load(X)))])) == 0


def test_05_the_same_slice_twice() -> None:
    """In one loop or in the next: computed once, unless what it reads is written in between."""

    def loop(base: int) -> Loop:
        b, i = Loop(3, []), Loop(4, [])
        power = define(at(T, (b, 4), (i, 1), base=base), "power", load(X, (b, 2)), Constant(0.5))
        again = define(at(T, (b, 4), (i, 1), base=base + 12), "power", load(X, (b, 2)), Constant(0.5))
        return around(b, around(i, power, again))

    assert moved(Program([loop(0), loop(24)])) == 1
    assert moved(Program([loop(0), define(at(X, base=2), "copy", Constant(7.0)), loop(24)])) == 2


def test_06_a_register_from_outside() -> None:
    outside = Statement("add", (load(X), load(Y)))
    i = Loop(4, [])
    power = define(at(T, (i, 1)), "exp", Register(outside))
    assert moved(Program([outside, around(i, power)])) == 1


@pytest.mark.parametrize("kind", range(4))
def test_07_every_kind_of_operand(kind: int) -> None:
    """What an operand depends on: choices, tables, run-time places and mixtures."""
    for depends in (False, True):
        b, i = Loop(3, []), Loop(2, [])
        loop = i if depends else b
        operands: list[Operand] = [
            Choice(loop, load(X), load(Y, (b, 1))),
            Load(Reference(X, Index(0, (), TableEntry(0, ((loop, 1),))))),
            Load(Reference(X, Index(0, (), None, Dynamic(load(Y, (loop, 1)), 1, 3)))),
            Mixed((X, Y), TableEntry(0, ((loop, 1),)), TableEntry(3, ((b, 1),))),
        ]
        power = define(at(T, (b, 2), (i, 1)), "power", operands[kind], load(Y, (b, 1)))
        program = Program([around(b, around(i, power))])
        program.tables.extend([0, 1, 1, 2, 5, 3])
        hoisted = "once" in print_program(_hoisted(program))
        assert hoisted is not depends


def _hoisted(program: Program) -> Program:
    if not any(
        isinstance(o, Load) and o.reference.index.dynamic for s in statements(program.forward) for o in s.operands
    ):
        same_bits(program, clean)  # arbitrary numbers are no places
    else:
        clean(program)
    return program


def test_08_out_of_a_block() -> None:
    """Results go through memory, so the ends of blocks are no obstacle; a block itself keeps its registers."""
    i = Loop(4, [])
    one, other = Statement("add", (load(X), Constant(1.0))), Statement("negate", (load(Y, (i, 1)),))
    power = Statement("power", (Register(one), Constant(0.5)))
    product = define(at(T, (i, 1)), "multiply", Register(power), Register(other))
    assert moved(Program([around(i, Block([one, other, power, product]))])) == 1


def test_09_long_slices_stay() -> None:
    i = Loop(4, [])
    chain = [Statement("add", (load(X), Constant(1.0)))]
    for _ in range(9):
        chain.append(Statement("add", (Register(chain[-1]), load(Y))))
    power = define(at(T, (i, 1)), "exp", Register(chain[-1]))
    assert moved(Program([around(i, *chain, power)])) == 0


def test_10_traced_steps() -> None:
    """A softmax over a batch, and Adam's corrections: a power for each row, two for the whole step."""
    model = mgjit.nn.MLP(4, [6, 7])
    parameters = model.parameters()
    m, v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))

    def step(rows: list[list[float]], t: float) -> mgjit.Value:
        losses = []
        for row in rows:
            exps = [mgjit.exp(score) for score in model(row)]
            total = sum(exps)
            losses += [e * total**-1 for e in exps]
        loss = sum(losses)
        loss.backward()
        for i, p in enumerate(parameters):
            m[i] = 0.9 * m[i] + 0.1 * p.grad
            v[i] = 0.99 * v[i] + 0.01 * p.grad**2
            p.data -= 0.01 * (m[i] / (1.0 - 0.9**t)) / ((v[i] / (1.0 - 0.99**t)) ** 0.5 + 1e-8)
        return loss

    example = Example(step, [numbers(4, seed) for seed in range(8)], 3.0)
    program = example.lower("hoist")
    once = [s for s in statements(program.update) if s.operation == "power" and s.operands[0] == Constant(0.9)]
    assert all(isinstance(s.target, Reference) and s.target.array.size == 1 for s in once)
    assert any(s.target.array.size == 8 for s in statements(program.forward) if isinstance(s.target, Reference)
               and s.target.array.name.startswith("once"))  # fmt: skip
    example.check(example.lower())


def test_11_nothing_expensive() -> None:
    """A Program without such operations is not touched."""
    model = mgjit.nn.MLP(3, [4, 1])

    def step(x: list[float]) -> None:
        model(x).backward()
        sgd(model.parameters(), 0.1)

    program = Example(step, numbers(3)).lower("fuse")
    before = print_program(program)
    hoist(program)
    assert print_program(program) == before
