"""Chains become accumulators where that is exact, and stay chains where it is not."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.ir.program import Program, statements
from tests.lowering import Example, numbers, sgd


def updates(program: Program) -> list[str]:
    """Operations of in-place statements."""
    return [s.operation for _, nodes in program.phases for s in statements(nodes) if s.update]


def values(count: int, seed: int = 1) -> list[Any]:
    return [mgjit.Value(v) for v in numbers(count, seed)]


def rewritten(made: Example) -> list[str]:
    """What became a reduction; the whole Program is checked on the way."""
    found = updates(made.lower("reductions"))
    made.check(made.lower("differentiate"))
    return found


def test_01_a_sum() -> None:
    """A dot product: one accumulator; the scratch array is gone."""
    ws = values(20)
    made = Example(lambda xs: sum(w * x for w, x in zip(ws, xs)), numbers(20))
    before = made.lower("lift")
    after = made.lower("reductions")
    assert updates(before) == []
    assert updates(after) == ["add"]
    assert rewritten(made) == ["add"]


def test_02_nested_sums() -> None:
    """One accumulator element for each outer iteration."""
    ws = [values(7, k) for k in range(5)]
    made = Example(lambda xs: [sum((w * x for w, x in zip(row, xs)), row[0]) for row in ws], numbers(7))
    assert rewritten(made) == ["add"]


def test_03_differentiated_sums() -> None:
    """With a backward pass the adjoint of every partial sum is that of the total."""
    ws, bias = values(9), mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        loss = sum((w * x for w, x in zip(ws, xs)), bias) ** 2
        loss.backward()
        sgd([*ws, bias], 0.1)
        return loss

    assert "add" in rewritten(Example(step, numbers(9)))


def test_04_products_only_without_a_gradient() -> None:
    """The derivative of a product needs the partial results."""
    ws = values(9)

    def product(xs: Any) -> Any:
        total = ws[0] * 1.0
        for w, x in zip(ws, xs):
            total = total * (w + x)
        return total

    def with_backward(xs: Any) -> Any:
        total = product(xs)
        total.backward()
        return total

    assert rewritten(Example(product, numbers(9))) == ["multiply"]
    assert "multiply" not in rewritten(Example(with_backward, numbers(9)))


def test_05_partial_results_that_are_read() -> None:
    """A prefix sum keeps its array."""
    ws = values(9)

    def step(xs: Any) -> Any:
        total: Any = 0.0
        found = []
        for w, x in zip(ws, xs):
            total = total + w * x
            found.append(mgjit.tanh(total))
        return found

    assert rewritten(Example(step, numbers(9))) == []


def test_06_initial_value_and_first_term_share_memory() -> None:
    """`p + p*x0 + p*x1 ...`: the engine adds the contributions to p in another order, so it stays a chain."""
    p = mgjit.Value(0.3)

    def step(xs: Any) -> Any:
        total: Any = p
        for _ in range(6):
            total = total + p
        for x in xs:
            total = total + p * x
        total.backward()
        return total

    rewritten(Example(step, numbers(9)))


def test_07_maximum_and_subtraction() -> None:
    """Other operations: a running maximum without gradient, a running difference with."""
    ws = values(9)

    def largest(xs: Any) -> Any:
        best = ws[0] * xs[0]
        for w, x in zip(ws[1:], xs[1:]):
            best = mgjit.maximum(best, w * x)
        return best

    def difference(xs: Any) -> Any:
        rest = ws[0] * 10.0
        for w, x in zip(ws[1:], xs[1:]):
            rest = rest - w * x
        rest.backward()
        return rest

    assert rewritten(Example(largest, numbers(9))) == ["maximum"]
    assert "subtract" in rewritten(Example(difference, numbers(9)))


def test_08_a_start_that_the_loop_overwrites() -> None:
    """The initial value may not move in front of a loop that writes where it is read from."""
    w = mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        total: Any = w
        for x in xs:
            total = total + x
            w.data = w.data * 0.5
        return total

    made = Example(step, numbers(9))
    made.check(made.lower("reductions"))
