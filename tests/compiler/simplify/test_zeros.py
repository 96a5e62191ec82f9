"""`0.0 + x` is left out only where nobody can see a difference."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.simplify.zeros import drop_zeros
from mgjit.ir.program import Array, Constant, Operand, Program, Register, Statement, statements
from tests.bounded import random_bounded
from tests.handmade import at, define, load, same_bits, update
from tests.nests import random_program

pytestmark = pytest.mark.once

X, P, T, U = Array("x", "input", 4), Array("p", "parameter", 4), Array("t", "scratch", 4), Array("u", "scratch", 4)
ZERO, MINUS = Constant(0.0), Constant(-0.0)


def plus(operand: Operand, zero: Operand = ZERO) -> Statement:
    """`0.0 + operand`, which is only read as a register."""
    return define(None, "add", zero, operand)


def left(*nodes: Statement) -> int:
    """How many additions to 0.0 are left; the bits are the same, also of zeros of both signs."""
    program = Program([*nodes])
    same_bits(program, drop_zeros)
    return sum(s in nodes and s.operation == "add" and s.operands[0] is ZERO for s in statements(program.forward))


def test_01_chains() -> None:
    """Of additions and products, the last addition stays; on both sides of the sum."""
    first = plus(load(X))
    second = define(None, "multiply", load(X, base=1), Register(first))
    assert left(first, second, define(at(P), "add", ZERO, Register(second))) == 1
    first = plus(load(X))
    second = define(None, "add", ZERO, Register(first))
    assert left(first, second, define(at(P), "copy", Register(second))) == 1


def test_02_what_can_be_seen() -> None:
    """Results, what is subtracted from any number, quotients, indices, powers, and where -0.0 is added."""
    for operation, operands in {
        "copy": (), "negate": (), "multiply": (load(X),), "tanh": (), "relu": (), "power": (Constant(-1.0),),
    }.items():  # fmt: skip
        first = plus(load(X, base=1))
        assert left(first, define(at(P), operation, Register(first), *operands)) == 1
    for operation in ("subtract", "divide", "maximum", "add"):
        first = plus(load(X, base=1))
        assert left(first, define(at(P), operation, load(P), Register(first))) == 1
    first = plus(load(X, base=1))
    assert left(first, define(at(P), "add", MINUS, Register(first))) == 1


def test_03_what_cannot() -> None:
    """Comparisons, sums with what is never -0.0, numbers that never are."""
    for operation, operands in {"less": (load(X),), "equal": (ZERO,), "absolute": (), "add": (Constant(2.0),)}.items():
        first = plus(load(X, base=1))
        assert left(first, define(at(P), operation, Register(first), *operands)) == 0
    square = define(None, "multiply", load(X), load(X))
    assert left(square, define(at(P), "add", ZERO, Register(square))) == 0
    first = plus(load(X))
    assert left(first, define(at(P), "subtract", Constant(1.0), Register(first))) == 0


def test_04_two_do_not_vouch_for_each_other() -> None:
    """Of a sum of two such numbers, at least one is what makes 0.0 of it."""
    first, second = plus(load(X)), plus(load(X, base=1))
    assert left(first, second, define(at(P), "add", Register(first), Register(second))) >= 1


def test_05_memory() -> None:
    """Scratch memory that sums begin in as 0.0 never holds -0.0; what it holds may be hidden."""
    first = plus(load(X))
    sums = [define(at(T), "copy", ZERO), first, update(at(T), "add", Register(first)), define(at(P), "copy", load(T))]
    assert left(*sums) == 0
    first = plus(load(X))
    sums = [
        define(at(T), "copy", load(X)),
        first,
        update(at(T), "add", Register(first)),
        define(at(P), "copy", load(T)),
    ]
    assert left(*sums) == 1
    kept = define(at(U), "add", ZERO, load(X))
    assert left(kept, define(at(P), "add", Constant(1.0), load(U))) == 0


@pytest.mark.parametrize("seed", random.Random(7).sample(range(10_000), 12))
def test_06_random_nests(seed: int) -> None:
    """With additions to 0.0 in front of operands, and of any other statements."""
    draw = random.Random(seed)
    for program in (random_program(seed, plain=True), random_program(seed), random_bounded(seed)):
        for _, nodes in program.phases:
            for statement in list(statements(nodes)):
                if draw.random() < 0.5 and not statement.update and len(statement.operands) == 2:
                    statement.operation, statement.operands = "add", (ZERO, statement.operands[1])
                elif draw.random() < 0.3 and len(statement.operands) == 1 and statement.operation == "copy":
                    statement.operation, statement.operands = "add", (ZERO, *statement.operands)
        same_bits(program, drop_zeros)


def test_07_equal_constants_are_not_one_number() -> None:
    """0.0 == -0.0, and their product is -0.0; a number that is also an index is seen."""
    product = define(None, "multiply", ZERO, MINUS)
    assert left(product, define(at(P), "add", ZERO, Register(product))) == 1
