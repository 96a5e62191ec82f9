"""Loops over rows that begin and end in the middle of a row: the same bits as one row after the other."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.schedule import adjacent
from mgjit.compiler.schedule import rotate as rotation
from mgjit.compiler.schedule.rotate import is_worth_it, rotate
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.opcodes import INPUT, OUTPUT
from mgjit.ir.program import Array, Loop, Program
from mgjit.ir.verify import verify
from tests import nests
from tests.compiler.codegen.native import working
from tests.handmade import around, at, define, load, update, visible
from tests.lowering import SCALAR, WIDE, Example, bits, flat, numbers, sgd
from tests.nests import random_chain, random_program

pytestmark = pytest.mark.once

P, D, S = Array("p", "parameter", 40), Array("d", "scratch", 8), Array("s", "state", 40)
X, Y, R = Array("x", "input", 8), Array("y", "output", 8), Array("r", "scratch", 8)


@pytest.fixture(autouse=True)
def _however_little_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are updates that fit a cache loops of their own, as they would be."""
    monkeypatch.setattr(rotation, "is_worth_it", lambda saved, scratch: saved > 0)
    monkeypatch.setattr(adjacent, "from_cache", lambda elements: 1.0)


def perceptron() -> Any:
    """Two layers, plain descent."""
    model = nn.MLP(9, [8, 3])

    def step(x: Any, label: Any, rate: Any) -> Any:
        scores = model([element / 3.0 for element in x])
        loss = sum((s - t) * (s - t) for s, t in zip(scores, mgjit.one_hot(label, 3)))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss, scores[0]

    return step, model.parameters(), []


def momentum() -> Any:
    """A layer whose update also goes through state."""
    rows = [[mgjit.Value(number) for number in numbers(9, seed)] for seed in range(8)]
    parameters = [w for row in rows for w in row]
    speeds = mgjit.zeros(len(parameters))

    def step(x: Any, label: Any, rate: Any) -> Any:
        scores = [mgjit.tanh(sum(w * element for w, element in zip(row, x))) for row in rows]
        loss = sum(s * s for s in scores) - label * scores[2]
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for k, p in enumerate(parameters):
            speeds[k] = 0.9 * speeds[k] + p.grad
            p.data -= rate * speeds[k]
        return loss

    return step, parameters, [speeds]


def kept_gradients() -> Any:
    """Gradients that add up from row to row."""
    rows = [[mgjit.Value(number) for number in numbers(9, seed)] for seed in range(8)]
    parameters = [w for row in rows for w in row]

    def step(x: Any, label: Any, rate: Any) -> Any:
        powers = [mgjit.exp(sum(w * element for w, element in zip(row, x))) for row in rows]
        loss = sum(power * power for power in powers) * (label + 1.0)
        loss.backward()
        sgd(parameters, rate)
        return loss

    return step, parameters, []


STEPS = [perceptron, momentum, kept_gradients]
ROWS = [([*numbers(9, k)], k % 3, 0.01 * k) for k in range(5)]


def memory_of(parameters: Any, states: Any) -> list[Any]:
    """All numbers that a step leaves."""
    return [bits(x) for p in parameters for x in (p.data, p.grad)] + [bits(x) for state in states for x in state]


@pytest.mark.parametrize("processor", [WIDE, Processor(4, 16), SCALAR], ids=["wide", "narrow", "scalar"])
@pytest.mark.parametrize("make", STEPS)
def test_01_traced_steps(make: Callable[[], Any], processor: Processor) -> None:
    """Rotated, the interpreter leaves what it leaves row by row, in memory and as results; from 1 row on."""
    example = Example(make()[0], *ROWS[0])
    program = example.lower(laid_out=True, processor=processor)
    if processor is WIDE:
        assert program.rotation is not None
    for count in (1, 2, 5):
        rotated, one_by_one = (_run_rows(example, program, count, with_it) for with_it in (True, False))
        assert rotated == one_by_one


def _run_rows(example: Example, program: Program, count: int, rotated: bool) -> Any:
    contents = example.contents()
    (_, output), inputs = example.memory.regions[OUTPUT][0], example.memory.regions[INPUT]
    rows: list[dict[Array, Any]] = []
    for arguments in ROWS[:count]:
        frame = example.plan.frame()
        assert example.plan.pack(arguments, frame)
        packed = [list(frame.packed), *(list(memoryview(buffer)) for buffer in frame.buffers)]
        rows.append({output: [0.0] * output.size, **{one: part for (_, one), part in zip(inputs, packed)}})
    left = _left_by(program, rotated, contents, rows)
    return left, [[bits(x) for x in row[output]] for row in rows]


def _left_by(program: Program, rotated: bool, contents: dict[Array, Any], rows: list[dict[Array, Any]]) -> Any:
    """What a loop over rows leaves of the memory that is not of rows."""
    memory = {one: [*part] for one, part in contents.items()}
    Interpreter(program if rotated else replace(program, rotation=None), dict(memory)).run_rows(rows)
    return [[bits(x) for x in part] for one, part in memory.items() if one not in rows[0]]


@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize("make", STEPS)
def test_02_loops_of_c(make: Callable[[], Any], family: str) -> None:
    """Rows in several calls of C, of 1, 4 and 2 rows, against the undecorated step."""
    plain, plain_parameters, plain_states = make()
    step, parameters, states = make()
    compiled = mgjit.compile(compiler=family, cache=False, background=False)(step)
    for chunk in (ROWS[:1], ROWS[1:], ROWS[:2]):
        expected = [flat(plain(*row)) for row in chunk]
        found = compiled.loop(*map(list, zip(*chunk)))
        columns = found if isinstance(found, tuple) else (found,)
        assert [[bits(x) for x in row] for row in zip(*columns)] == [[bits(x) for x in row] for row in expected]
        assert memory_of(parameters, states) == memory_of(plain_parameters, plain_states)


def _program(forward: list[Any], backward: list[Any]) -> Program:
    program = Program(forward, backward)
    rotate(program)
    verify(program)
    return program


def _forward(base: int = 0, reverse: bool = False, count: int = 5) -> list[Any]:
    i, j = Loop(count, [], reverse), Loop(8, [], lanes=True)
    clear, show = Loop(8, [], lanes=True), Loop(8, [], lanes=True)
    nest = around(i, around(j, update(at(R, (j, 1)), "add", load(P, (j, 1), (i, 8), base=base))))
    cleared = around(clear, define(at(R, (clear, 1)), "copy", load(X, (clear, 1))))
    return [cleared, nest, around(show, define(at(Y, (show, 1)), "copy", load(R, (show, 1))))]


def _update(reverse: bool = False, read: int | None = None) -> Any:
    i, j = Loop(5, [], reverse), Loop(8, [], lanes=True)
    old = load(P, (j, 1), (i, 8)) if read is None else load(P, (j, 1), base=read)
    return around(i, around(j, define(at(P, (j, 1), (i, 8)), "subtract", old, load(R, (j, 1)))))


def test_03_what_can_share_a_pass() -> None:
    """The order of a sum stays; the independent iterations of the update take it."""
    for reverse in (False, True):
        program = _program(_forward(reverse=reverse), [_update()])
        assert program.rotation is not None
        (nest,) = [node for node in program.rotation.nodes if isinstance(node, Loop) and not node.lanes]
        assert nest.reverse is reverse


def test_04_what_cannot() -> None:
    """Other elements in an iteration, dependent iterations in another order, other counts, a use in between."""
    j = Loop(8, [], lanes=True)
    between = around(j, define(at(P, (j, 1), base=8), "copy", load(R, (j, 1))))
    for forward, backward in (
        (_forward(base=0, count=4), [_update()]),
        (_forward(reverse=True), [_update(read=0)]),
        ([around(Loop(1, []), between), *_forward()], [_update()]),
        (_forward(), [_update(), around(Loop(1, []), between)]),
    ):
        assert _program(forward, backward).rotation is None
    for changed in ({"separate": True}, {"is_straight": True}):
        program = Program(_forward(), [_update()], **changed)  # type: ignore[arg-type]
        rotate(program)
        assert program.rotation is None


@pytest.mark.parametrize("make", [random_chain, lambda seed: random_program(seed, plain=True)], ids=["chain", "any"])
def test_05_random_nests(make: Callable[[int], Program], monkeypatch: pytest.MonkeyPatch) -> None:
    """All strides and directions; most of them cannot be rotated."""
    monkeypatch.setattr(nests, "COUNTS", (3, 4, 5))
    rotated = 0
    for seed in range(8 if make is random_chain else 80):
        program = make(seed)
        rotate(program)
        if program.rotation is not None:
            verify(program)
            rotated += 1
            draw = random.Random(seed)
            memory, *rows = (
                {one: [draw.uniform(-2.0, 2.0) for _ in range(one.size)] for one in visible(program)} for _ in range(4)
            )
            rows = [{one: part for one, part in row.items() if one.space == "input"} for row in rows]
            assert _left_by(program, True, memory, rows) == _left_by(program, False, memory, rows), seed
    assert rotated >= 3


def test_06_when_it_is_worth_it() -> None:
    """More than the first cache holds, and more than the memory that it takes."""
    assert is_worth_it(40_000, 1_000)
    assert not is_worth_it(40_000, 50_000)
    assert not is_worth_it(1_000, 100)


def test_07_many_vectors_side_by_side() -> None:
    """The statements of a register block of seven vectors count once for each vector, and not for each pair of them."""
    model = nn.MLP(9, [50, 3])

    def step(x: Any, rate: Any) -> Any:
        loss = sum(s * s for s in model(x))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    program = Example(step, numbers(9), 0.1).lower(laid_out=True, processor=Processor(8, 32), grads=False)
    assert program.rotation is not None
