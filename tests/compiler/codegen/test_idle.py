"""Iterations that a zero makes idle: what they leave out, what that rests on, and the same bits without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from mgjit import nn
from mgjit.compiler.codegen import idle
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.idle import Idle, idle_nodes
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Array, Constant, Load, Loop, Node, Operand, Reference, Register, Statement
from tests.compiler.codegen.native import compile_c, find, run_native
from tests.handmade import around, at, define, load, update
from tests.lowering import SCALAR, WIDE, Example, bits, sgd

pytestmark = pytest.mark.once

P, V = Array("p", "parameter", 1000), Array("v", "state", 1000)
X, RATE, D = Array("x", "input", 20), Array("rate", "input", 1), Array("d", "scratch", 40)
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324]


Step = Callable[[Operand, Operand, Reference], "list[Statement]"]


def descend(rate: Operand, operation: str = "subtract", begin: float | None = 0.0) -> Step:
    """`p = p - rate * (begin + x * d)`."""

    def made(x: Operand, d: Operand, place: Reference) -> list[Statement]:
        found = [Statement("multiply", (x, d))]
        if begin is not None:
            found.append(Statement("add", (Constant(begin), Register(found[-1]))))
        found.append(Statement("multiply", (rate, Register(found[-1]))))
        return [*found, Statement(operation, (Load(place), Register(found[-1])), place)]

    return made


def updating(x: Operand, d: Operand, place: Reference) -> list[Statement]:
    """`p -= rate * (0.0 + x * d)`, and nothing else."""
    *found, last = descend(load(RATE))(x, d, place)
    return [*found, Statement("subtract", last.operands[1:], place, update=True)]


def kept(x: Operand, d: Operand, place: Reference) -> list[Statement]:
    """The gradient can be read afterwards."""
    found = descend(load(RATE))(x, d, place)
    found[1].target = place._replace(array=V)
    return found


def momentum(x: Operand, d: Operand, place: Reference) -> list[Statement]:
    """State decays also where there is no gradient."""
    speed = place._replace(array=V)
    decayed = Statement("multiply", (Constant(0.9), Load(speed)))
    term = Statement("multiply", (x, d))
    total = Statement("add", (Register(decayed), Register(term)), speed)
    return [decayed, term, total, *descend(load(RATE))(x, d, place)]


def analysed(step: Step, *others: Callable[[Loop], Node]) -> tuple[Idle | None, Loop]:
    """What is idle in `for i: for j: for k: step(x[i], d[j,k], p[i,j,k])`, with other nodes behind."""
    i, j, k = Loop(20, []), Loop(5, []), Loop(8, [], lanes=True)
    around(k, *step(load(X, (i, 1)), load(D, (j, 8), (k, 1)), at(P, (i, 40), (j, 8), (k, 1))))
    around(i, around(j, k), *(other(i) for other in others))
    return idle_nodes(i), i


@pytest.fixture(autouse=True)
def _however_little_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_LEAST", 4)
    monkeypatch.setattr(idle, "_FEWEST", 4)


RATES: dict[str, tuple[Step, dict[Operand, int]]] = {
    "rate": (descend(load(RATE)), {load(RATE): 1}),
    "minus": (descend(load(RATE), "add"), {load(RATE): -1}),
    "constant": (descend(Constant(0.1)), {}),
    "minus constant": (descend(Constant(-0.1), "add"), {}),
    "update": (updating, {load(RATE): 1}),
}


@pytest.mark.parametrize("name", RATES)
def test_01_descent(name: str) -> None:
    """All of it, if the gradients are finite, and the rate has the sign that keeps -0.0 what it is."""
    step, signs = RATES[name]
    found, loop = analysed(step)
    assert found is not None
    assert found.factor == load(X, (loop, 1))
    assert (found.nodes, found.others) == (loop.body, [])
    assert found.signs == signs
    assert {operand.reference.array for operand in found.finite} == {D, *((RATE,) if signs else ())}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "step",
    [
        descend(load(RATE), begin=None),  # the zero may be -0.0, which 0.0 - -0.0 would turn into 0.0
        descend(Constant(-0.1)), descend(Constant(0.1), "add"), descend(Constant(math.inf)), kept, momentum,
    ],
)  # fmt: skip
def test_02_what_changes_something(step: Step) -> None:
    assert analysed(step)[0] is None


def test_03_other_nodes_stay() -> None:
    """What else is in the loop is executed, unless it has to come first: then nothing is idle."""

    def adds(i: Loop) -> Node:
        return update(at(V), "add", load(P, (i, 40)))

    def changes(i: Loop) -> Node:
        return define(at(D, base=3), "copy", load(X, (i, 1)))

    found, loop = analysed(descend(load(RATE)), adds)
    assert found is not None
    assert (found.nodes, found.others) == (loop.body[:1], loop.body[1:])
    assert analysed(descend(load(RATE)), changes)[0] is None
    loop.body.reverse()
    assert idle_nodes(loop) is None


def test_04_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed once for each iteration comes first, but not from what the idle part may write."""
    found, loop = analysed(descend(load(RATE)))
    assert found is not None
    inner = loop.body[0]
    first = Statement("copy", (load(P, (loop, 40)),))
    last = define(at(V), "copy", Register(first))
    loop.body = [first, inner, last]
    found = idle_nodes(loop)
    assert found is not None
    assert (found.before, found.nodes, found.others) == ([first], [inner], [last])
    loop.body = [inner, first, last]
    found = idle_nodes(loop)
    assert found is not None
    assert (found.before, found.nodes, found.others) == ([], [inner], [first, last])
    monkeypatch.undo()
    assert idle_nodes(loop) is None  # 20 vector operations take less time than a wrong guess


def perceptron(rate: float, weights: list[float], xs: list[float]) -> Example:
    model = nn.MLP(len(xs), [12, 2], seed=3)
    for p, number in zip(model.parameters(), weights):
        p.data = number

    def step(xs: Any, rate: Any) -> Any:
        loss = sum(s * s for s in model(xs))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    return Example(step, xs, rate)


@pytest.mark.parametrize(
    ("family", "processor"),
    [("gcc", SCALAR), ("gcc", Processor(4, 16)), ("gcc", WIDE), ("clang", WIDE), ("tcc", SCALAR)],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.sampled(one_of=3)
def test_05_the_same_bits(family: str, processor: Processor, dtype: str) -> None:
    """Rates and weights of every kind: where a zero would make a difference, nothing is left out."""
    xs = [0.0, 0.5, -0.0, 0.0, 0.0, 1.5, -0.0, 0.25] * 2
    libraries: dict[str, Any] = {}
    for rate in (0.1, -0.1, 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324):
        for weights in ([], [-0.0, 0.0, 1.0] * 5, SPECIAL):
            made = perceptron(rate, weights, xs)
            made = made if dtype == "float64" else made.in_float32()
            program = made.lower(processor=processor, laid_out=True, grads=False)
            layout = lay_out(program, made.memory)
            text = emit_c(program, layout)
            assert "!= 0.0" in text
            if text not in libraries:
                libraries[text] = compile_c(find(family), text)
            expected = made.run(program)
            for place, content in run_native(made, program, layout, libraries[text]).items():
                assert [bits(x) for x in content] == [bits(x) for x in expected[place]], (rate, weights, place)
