"""Long straight-line code in blocks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

import mgjit
from mgjit.compiler.schedule.blocks import BLOCK_SIZE
from mgjit.ir.program import Block, Loop, Node, count_statements, walk
from tests.lowering import Example, numbers

pytestmark = pytest.mark.once


def irregular(size: int, around: int = 1) -> Example:
    """Operations in no order at all, `around` times over."""
    draw = random.Random(7)
    plan = [(draw.randrange(5), draw.random(), draw.random()) for _ in range(size)]
    ws = [mgjit.Value(v) for v in numbers(4)]

    def step(xs: Any) -> Any:
        found = []
        for x in xs:
            values = [w * x for w in ws]
            for kind, p, q in plan:
                a, b = values[int(p * len(values))], values[int(q * len(values))]
                new = [a + b, a * b, a - b, mgjit.maximum(a, b), mgjit.tanh(a)][kind]
                values.append(mgjit.tanh(new))
            found.append(sum(values))
        loss = sum(found)
        loss.backward()
        return loss

    return Example(step, numbers(around, 3))


def largest(nodes: Sequence[Node]) -> int:
    """The most statements in one function of generated code."""
    bodies = [nodes, *(node.body for node in walk(nodes) if isinstance(node, Block))]
    return max(_own(body) for body in bodies)


def _own(body: Sequence[Node]) -> int:
    return sum(
        _own(n.body) if isinstance(n, Loop) else 0 if isinstance(n, Block) else count_statements([n]) for n in body
    )


def test_01_short_code_is_left_alone() -> None:
    """No blocks where one function is short enough."""
    made = irregular(40)
    program = made.lower("blocks")
    assert not any(isinstance(n, Block) for _, nodes in program.phases for n in walk(nodes))


def test_02_long_code_is_cut() -> None:
    """Every function is of about the block size, and the Program still exact and well formed."""
    made = irregular(400)
    for stage in ("blocks", ""):
        program = made.lower(stage)
        assert any(isinstance(n, Block) for n in walk(program.forward))
        for _, nodes in program.phases:
            assert largest(nodes) <= 3 * BLOCK_SIZE
    made.check(program)


@pytest.mark.long
def test_03_long_code_in_a_loop() -> None:
    """A long body of a loop is cut inside of the loop."""
    made = irregular(300, around=3)
    program = made.lower()
    assert any(isinstance(n, Block) for n in walk(program.forward))
    assert largest(program.forward) <= 3 * BLOCK_SIZE
    made.check(program)
