"""Arrays that continue others become one with them, and exceptions for a first iteration become loads."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit.compiler.simplify.merge import merge
from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Bound, Choice, Loop, Mixed, Node, Program, TableEntry
from tests.backends import FlatMemory
from tests.handmade import around, at, define, load, same_bits
from tests.lowering import Example, numbers, sgd
from tests.workload import values

N, WIDTH = 5, 3
X, Y = Array("x", "input", 90), Array("y", "state", 90)


def filled(array: Array) -> Node:
    """Everything in it from the input."""
    loop = Loop(array.size, [])
    return around(loop, define(at(array, (loop, 1)), "copy", load(X, (loop, 1), base=array.size)))


def rows(first: Array, rest: Array, base: int = -WIDTH, grows: bool = True, *others: Node, start: int = 0) -> Program:
    """`for i: for j in 0 .. i: for k: y[i] += first[k] if j == 0 else rest[j - 1, k]`."""
    i, k = Loop(N, []), Loop(WIDTH, [])
    j = Loop(N, [], bound=Bound(1, ((i, 1),)) if grows else None)
    read = Choice(j, load(first, (k, 1), base=start), load(rest, (k, 1), (j, WIDTH), base=base))
    around(i, around(j, around(k, define(at(Y, (i, WIDTH), (k, 1)), "maximum", load(Y, (i, WIDTH), (k, 1)), read))))
    return Program([filled(first), filled(rest), *others, i])


def arrays() -> tuple[Array, Array]:
    """One row, and all others."""
    return Array("a", "scratch", WIDTH, shape=(WIDTH,)), Array("b", "scratch", N * WIDTH, shape=(N, WIDTH))


def merged(program: Program, *kept: Array) -> str:
    """The Program after the pass."""
    memory = FlatMemory([])
    memory.adjoint_reads = {(array, 0): array for array in kept}
    same_bits(program, lambda program: merge(program, memory))  # type: ignore[arg-type]
    return print_program(program)


def test_01_as_in_the_docstring() -> None:
    """One array with one row more, read without an exception."""
    program = rows(*arrays())
    text = merged(program)
    assert "== 0" not in text
    assert "maximum(y[3*i + k], a[k + 3*j])" in text
    loop = program.forward[0]
    assert isinstance(loop, Loop)
    target = loop.body[0].target  # type: ignore[union-attr]
    assert (target.array.size, target.array.shape) == ((N + 1) * WIDTH, (N + 1, WIDTH))  # type: ignore[union-attr]


def test_02_what_stays() -> None:
    """Nothing grows; what is read is another row; somebody needs the array as it is; it is not the step's own."""
    assert "== 0" in merged(rows(*arrays(), grows=False))
    assert "== 0" in merged(rows(*arrays(), base=1 - WIDTH))
    for number in range(2):
        pair = arrays()
        assert "== 0" in merged(rows(*pair), pair[number])
    _, rest = arrays()
    assert "== 0" in merged(rows(Array("p", "parameter", WIDTH), rest))


def test_03_read_through_one_operand_with_others() -> None:
    """Such arrays have been merged, or cannot be."""
    first, rest = arrays()
    loop = Loop(2, [])
    entry = TableEntry(0, ((loop, 1),))
    program = rows(first, rest, -WIDTH, True, around(loop, define(at(Y), "copy", Mixed((first, X), entry, entry))))
    program.tables.extend((0, 1))
    assert "== 0" in merged(program)


def test_04_several_in_a_row() -> None:
    """Three arrays, one behind the other; but not if one has two successors."""
    first, rest = arrays()
    last = Array("c", "scratch", N * WIDTH, shape=(N, WIDTH))
    other = rows(rest, last, start=(N - 1) * WIDTH).forward[-1]
    program = rows(first, rest, -WIDTH, True, filled(last), other)
    assert "== 0" not in merged(program)
    first, rest = arrays()
    other = rows(first, last).forward[-1]
    assert merged(rows(first, rest, -WIDTH, True, filled(last), other)).count("== 0") == 2


def test_05_nested_choices() -> None:
    """The exception that goes may be inside of another one."""
    first, rest = arrays()
    program = rows(first, rest)
    i = program.forward[-1]
    assert isinstance(i, Loop)
    statement = i.body[0].body[0].body[0]  # type: ignore[union-attr]
    value, read = statement.operands  # type: ignore[union-attr]
    statement.operands = (value, Choice(i, load(X), read))  # type: ignore[union-attr]
    text = merged(program)
    assert text.count("== 0") == 1


@pytest.mark.parametrize("positions", [5, 9])
def test_06_attention_whose_first_position_is_code_of_its_own(positions: int) -> None:
    """It has fewer operations than the others; its keys are in front of theirs, and so are their gradients."""
    width = 4
    weights = values(random.Random(3), 2 * width)

    def step(xs: Any, rate: Any) -> Any:
        keys: list[list[Any]] = []
        loss: Any = 0.0
        for t in range(positions):
            x = xs[t * width : (t + 1) * width]
            keys.append([w * a for w, a in zip(weights, x)])
            scores = [sum(w * a * b for w, a, b in zip(weights[width:], x, key)) for key in keys]
            top = scores[0]
            for score in scores[1:]:
                top = mgjit.maximum(top, score)
            loss = loss + sum(mgjit.exp(score - top) for score in scores)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    made = Example(step, numbers(positions * width), 0.01)
    made.check(made.lower(growing=True))
