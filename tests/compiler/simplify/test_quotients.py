"""Quotients of bytes are looked up only where that is the same, and not for each lane."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.simplify.quotients import look_up_quotients
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Constant, Loop, Node, Program, statements
from mgjit.ir.verify import verify
from tests.compiler.codegen.native import find, working
from tests.handmade import around, at, define, load, update
from tests.lowering import SCALAR, WIDE, Example, bits, sgd

pytestmark = pytest.mark.once

X, F = Array("x", "input", 12, 1, "B"), Array("f", "input", 12, 1, "d")
T, Y = Array("t", "scratch", 16), Array("y", "output", 12)


def divided(nodes: list[Node]) -> int:
    """How many divisions are left; what is computed stays, bit for bit."""
    program = Program(nodes)
    verify(program)
    before = _run(program)
    look_up_quotients(program)
    verify(program)
    assert _run(program) == before
    return sum(one.operation == "divide" for one in statements(program.forward))


def _run(program: Program) -> list[bytes]:
    draw = random.Random(3)
    inputs = [float(draw.randrange(256)) for _ in range(12)]
    memory: dict[Array, Any] = {X: [*inputs], F: [*inputs], Y: [0.0] * 12}
    Interpreter(program, memory).run()
    return [bits(number) for number in memory[Y]]


def writer(count: int = 10, start: int = 0, source: Array = X, ahead: int = 0, divisor: float = 255.0) -> Loop:
    """`t[k] = x[k + ahead] / divisor`."""
    i = Loop(count, [])
    quotient = define(at(T, (i, 1), base=start), "divide", load(source, (i, 1), base=start + ahead), Constant(divisor))
    return around(i, quotient)


def reader(count: int = 10, start: int = 0, lanes: bool = False) -> Loop:
    """`y[k] += t[k]`."""
    j = Loop(count, [])
    j.lanes = lanes
    return around(j, update(at(Y, (j, 1), base=start), "add", load(T, (j, 1), base=start)))


def test_01_looked_up() -> None:
    """From the first element, further on, and if vectors and a rest write it."""
    assert divided([writer(), reader()]) == 0
    assert divided([writer(ahead=2), reader(4, 3)]) == 0
    assert divided([writer(8), writer(2, 8), reader()]) == 0


def test_02_what_stays() -> None:
    """Other divisors or places for a rest, other numbers than bytes, reads in lanes, too many reads, other phases."""
    assert divided([writer(8), writer(2, 8, divisor=3.0), reader()]) == 2
    assert divided([writer(8), writer(2, 8, ahead=1), reader()]) == 2
    assert divided([writer(source=F), reader()]) == 1
    assert divided([writer(divisor=0.0), reader()]) == 1
    assert divided([writer(8), reader(8, lanes=True)]) == 1
    assert divided([writer(), *(reader() for _ in range(20))]) == 1
    i = Loop(10, [])
    assert divided([writer(), around(i, define(at(T, (i, 1)), "copy", load(F, (i, 1)))), reader()]) == 1
    program = Program([writer(), reader()], separate=True)
    look_up_quotients(program)
    assert any(one.operation == "divide" for one in statements(program.forward))


def images() -> Example:
    """A step over bytes, whose number is no multiple of the lanes."""
    model = nn.MLP(13, [8, 3])

    def step(pixels: Any, label: Any, rate: Any) -> Any:
        scores = model([pixel / 255.0 for pixel in pixels])
        loss = sum((s - t) * (s - t) for s, t in zip(scores, mgjit.one_hot(label, 3)))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    return Example(step, bytes(range(0, 247, 19)), 2, 0.1)


@pytest.mark.parametrize("processor", [WIDE, SCALAR], ids=["wide", "scalar"])
def test_03_a_traced_step(processor: Processor) -> None:
    """Without vectors, a division takes no longer than a look-up."""
    example = images()
    program = example.lower(laid_out=True, processor=processor)
    used = {one.operation for _, phase in program.phases for one in statements(phase)}
    assert ("divide" in used) == (processor is SCALAR)
    example.check(program)


def test_04_float32() -> None:
    """Quotients are rounded to the numbers of the step."""
    found = []
    for until in ("gradients", "quotients"):
        example = images().in_float32()
        left = example.run(example.lower(until))
        found.append([list(map(bits, left[array])) for array in left if array.space in ("parameter", "output")])
    assert found[0] == found[1]


@pytest.mark.parametrize("command", working())
def test_05_compiled(command: str) -> None:
    """Calls and a loop give what plain Python gives."""

    find(command)

    def trained(compiler: str | None) -> list[float]:
        model = nn.MLP(13, [8, 3])

        def step(pixels: Any, rate: Any) -> Any:
            loss = sum(s * s for s in model([pixel / 255.0 for pixel in pixels]))
            model.zero_grad()
            loss.backward()
            sgd(model.parameters(), rate)
            return loss

        rows = [bytes((7 * k + j * j) % 256 for j in range(13)) for k in range(6)]
        if compiler is None:
            losses = [step(row, 0.01).data for row in rows]
        else:
            compiled = mgjit.compile(compiler=compiler, background=False)(step)
            losses = [compiled(row, 0.01).data for row in rows[:3]]
            losses += compiled.loop(rows[3:], 0.01)
        return [*losses, *(p.data for p in model.parameters())]

    assert trained(command) == trained(None)
