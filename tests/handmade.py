"""What the tests of passes on hand-made Programs share: short names for nodes, and the same bits before and after."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import (
    Array,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    Target,
    arrays_read,
    arrays_written,
    statements,
)
from mgjit.ir.verify import verify
from tests.lowering import bits

SPECIAL = (0.0, -0.0, float("inf"), -float("inf"), float("nan"), 5e-324, 1.7e308)


def at(array: Array, *terms: tuple[Loop, int], base: int = 0) -> Reference:
    """`array[base + sum of coefficient * loop]`."""
    return Reference(array, Index(base, terms))


def load(array: Array, *terms: tuple[Loop, int], base: int = 0) -> Load:
    """The content of that element."""
    return Load(at(array, *terms, base=base))


def define(target: Target, operation: str, *operands: Operand) -> Statement:
    """`target = operation(operands)`."""
    return Statement(operation, operands, target)


def update(target: Target, operation: str, *operands: Operand) -> Statement:
    """`target = operation(target, operands)`."""
    return Statement(operation, operands, target, update=True)


def around(loop: Loop, *body: Node) -> Loop:
    """The loop, with a body."""
    loop.body = list(body)
    return loop


def visible(program: Program) -> list[Array]:
    """Every array that is not scratch, in order of appearance."""
    found: dict[Array, None] = {}
    for _, nodes in program.phases:
        for s in statements(nodes):
            found.update(dict.fromkeys([*arrays_read(s), *arrays_written(s)]))
    return [array for array in found if array.space not in ("scratch", "constant")]


def result(program: Program, arrays: list[Array], seed: int) -> list[list[bytes]]:
    """The bits that a run leaves behind; every other seed has infinities, nans and zeros of both signs."""
    draw = random.Random(seed)
    memory: dict[Array, Any] = {
        array: [
            draw.choice(SPECIAL) if seed % 2 and draw.random() < 0.3 else draw.uniform(-2.0, 2.0)
            for _ in range(array.size)
        ]
        for array in arrays
    }
    Interpreter(program, memory).run()
    return [[bits(x) for x in memory[array]] for array in arrays]


def same_bits(program: Program, change: Callable[[Program], Any]) -> None:
    """Apply a pass to a Program: it must stay well formed and compute the same."""
    verify(program)
    arrays = visible(program)
    before = [result(program, arrays, seed) for seed in range(6)]
    change(program)
    verify(program)
    assert [result(program, arrays, seed) for seed in range(6)] == before
