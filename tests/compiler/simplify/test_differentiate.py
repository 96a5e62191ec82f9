"""Backward passes as statements: every rule, every order of accumulation, every kind of memory."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.lift.lift import lift
from mgjit.compiler.lift.memory import Memory
from mgjit.compiler.roll.roll import roll
from mgjit.compiler.simplify.differentiate import DifferentiateError, differentiate
from mgjit.ir.program import Backward, Mixed, statements, walk
from tests.lowering import Example, numbers

POINTS = [0.3, -0.7, 1.9, 0.0, -0.0, math.inf, -math.inf, math.nan, 1e308, 5e-324]
RULES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (b * b + 1.0), lambda a, b: -a,
    lambda a, b: a**2, lambda a, b: a**3.5, lambda a, b: a**-1, lambda a, b: a**0, lambda a, b: abs(a),
    lambda a, b: a.relu(), lambda a, b: mgjit.exp(a), lambda a, b: mgjit.log(a), lambda a, b: mgjit.tanh(a),
    lambda a, b: mgjit.sqrt(a), lambda a, b: mgjit.maximum(a, b), lambda a, b: mgjit.minimum(a, b),
    lambda a, b: a + a, lambda a, b: a * a, lambda a, b: a - a, lambda a, b: mgjit.maximum(a, a),
    lambda a, b: a.data * b + a, lambda a, b: (a * b).data * b,
]  # fmt: skip


def values(count: int, seed: int = 1) -> list[Any]:
    return [mgjit.Value(v) for v in numbers(count, seed)]


def exact(function: Callable[..., Any], *arguments: Any) -> None:
    """The differentiated Program against the engine; no Backward node is left."""
    made = Example(function, *arguments)
    program = made.lower("differentiate")
    assert not any(isinstance(node, Backward) for node in walk(program.forward))
    made.check(program)


@pytest.mark.parametrize("rule", RULES)
def test_01_every_rule_at_every_kind_of_point(rule: Callable[[Any, Any], Any]) -> None:
    """Ordinary numbers, zeros of both signs, infinities, nan, the ends of the range."""
    for x in POINTS:
        for y in (0.5, -2.0, 0.0, math.inf):
            a, b = mgjit.Value(x), mgjit.Value(y)

            def step(scale: Any, a: Any = None, b: Any = None) -> Any:
                loss = rule(a * scale, b)
                loss.backward()
                return loss

            exact(lambda scale, a=a, b=b: step(scale, a, b), 1.25)


@pytest.mark.parametrize("condition", [0.0, 1.0, -3.0])
def test_02_where(condition: float) -> None:
    """The gradient goes to the branch that was taken."""
    a, b = mgjit.Value(0.5), mgjit.Value(-0.5)

    def step(c: Any) -> Any:
        mgjit.where(c > 0.5, a * 2.0, b * 3.0).backward()
        return a.grad, b.grad

    made = Example(step, condition)
    outputs = made.run(made.lower("differentiate"))
    taken = condition > 0.5
    assert made.result(next(c for array, c in outputs.items() if array.space == "output")) == (
        2.0 if taken else 0.0,
        0.0 if taken else 3.0,
    )


def test_03_interleaved_contributions() -> None:
    """A value with many uses gets its contributions in reverse order of creation, whichever loop they are in."""
    ws = values(8)

    def step(xs: Any) -> Any:
        shared = ws[0] * ws[1]
        first = sum(shared * w * x for w, x in zip(ws, xs))
        middle = mgjit.exp(shared)
        second = sum(w * x + shared for w, x in zip(ws, xs))
        loss = first * middle + second * shared
        loss.backward()
        return loss, shared.grad, middle.grad

    exact(step, numbers(8))


def test_04_accumulation_over_calls() -> None:
    """Leaves accumulate over several passes, interior nodes start again."""
    ws = values(3)

    def step(xs: Any) -> Any:
        ws[0].grad = 0.0
        hidden = sum(w * x for w, x in zip(ws, xs))
        loss = hidden * hidden
        loss.backward()
        loss.backward()
        once = hidden.grad
        (hidden * 3.0).backward()
        return once, hidden.grad, loss.grad

    exact(step, numbers(3))


def test_05_data_changed_between_forward_and_backward() -> None:
    """Operands are read where they are when the pass runs, as the engine does."""
    ws = values(5)

    def step(xs: Any) -> Any:
        loss = sum(w * w * x for w, x in zip(ws, xs))
        for w in ws:
            w.data = w.data * 0.5
        loss.backward()
        return loss

    exact(step, numbers(5))


def test_06_second_use_of_gradients() -> None:
    """Gradient penalties by numbers, clipping, momentum: gradients are ordinary memory."""
    ws, momentum = values(5), mgjit.zeros(5)

    def step(xs: Any) -> Any:
        loss = sum(w * x for w, x in zip(ws, xs)) ** 2
        loss.backward()
        norm = mgjit.sqrt(sum(w.grad * w.grad for w in ws))
        for k, w in enumerate(ws):
            momentum[k] = 0.9 * momentum[k] + mgjit.minimum(mgjit.maximum(w.grad / norm, -0.5), 0.5)
            w.data -= momentum[k]
            w.grad = 0.0
        (ws[0] * ws[1]).backward()
        return norm

    exact(step, numbers(5))


def test_07_values_made_in_the_step() -> None:
    """Leaves of the step have gradients of their own."""

    def step(xs: Any) -> Any:
        made = [mgjit.Value(x) for x in xs]
        loss = sum(v * v for v in made)
        loss.backward()
        made[0].data = made[0].data - made[0].grad
        return [v.grad for v in made], made[0]

    exact(step, numbers(6))


def test_08_root_is_a_leaf_or_constant() -> None:
    """`p.backward()` sets its gradient to 1; of nothing else."""
    p = mgjit.Value(0.5)

    def step() -> Any:
        p.grad = 7.0
        p.backward()
        return p.grad

    exact(step)


def test_09_take_scatters() -> None:
    """The gradient of a look-up goes to the row that was used, also when it is used twice."""
    table = [values(2, k) for k in range(4)]

    def step(i: Any, j: Any) -> Any:
        a, b = mgjit.take(table, i), mgjit.take(table, j)
        loss = a[0] * b[1] + a[1] * b[1]
        loss.backward()
        return loss

    exact(step, 2, 2)
    exact(step, 3, 0)


def test_10_passes_in_loops() -> None:
    """One pass an iteration, in the loop."""
    ws = values(3)

    def step(xs: Any) -> Any:
        for x in xs:
            hidden = mgjit.tanh(ws[0] * x + ws[1])
            (hidden * ws[2]).backward()
            ws[0].data -= 0.1 * ws[0].grad
        return hidden.grad

    exact(step, numbers(9))


def test_11_what_it_cannot_express() -> None:
    """A pass that reaches the iteration before raises, and the unrolled form is exact."""
    w = mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        before: Any = w * 1.0
        for x in xs:
            h = w * x
            (h * before).backward()
            before = h
        return before

    made = Example(step, numbers(8))
    memory = Memory(made.trace, made.regions)
    program = lift(made.trace, roll(made.trace, made.reach.marks), memory, made.reach)
    with pytest.raises(DifferentiateError, match=r"earlier iteration|different records"):
        differentiate(program, memory)
    made.check(made.lower("differentiate", rolled=False))


def test_12_gradients_of_nodes_in_different_arrays() -> None:
    """Rows of a memory have different lengths, and one loop reads the gradients of all."""
    ws = values(8)

    def step(xs: Any) -> Any:
        rows = [[w * x for w, x in zip(ws[:n], xs)] for n in (3, 5, 4, 7, 6, 8)]
        memory = [mgjit.tanh(sum(row[k] for row in rows[i:])) for i in range(6) for k in range(3)]
        loss = sum(m * m for m in memory) + sum(sum(row) ** 2 for row in rows)
        loss.backward()
        return [row[k].grad * 0.5 for row in rows for k in range(3)] + [m.grad * 2.0 for m in memory]

    made = Example(step, numbers(8))
    program = made.lower("differentiate")
    operands = [operand for s in statements(program.forward) for operand in s.operands]
    assert any(isinstance(x, Mixed) and all(a.space == "scratch" for a in x.arrays) for x in operands)
    made.check(program)
