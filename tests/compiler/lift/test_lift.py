"""Lifting: a rolled trace as a Program that computes the same, for every class of operand column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.ir.program import Backward, Choice, Load, Loop, Mixed, Operand, Statement, statements, walk
from tests.lowering import Example, numbers


def operands(made: Example) -> list[Operand]:
    """All operands of the lifted Program."""
    return [operand for s in statements(made.lower("lift").forward) for operand in s.operands]


def exact(made: Example) -> Example:
    """Check the lifted Program, rolled and flat."""
    for rolled in (True, False):
        again = Example(made.function, *made.arguments)
        again.check(again.lower("lift", rolled))
    return made


def values(count: int, seed: int = 1) -> list[Any]:
    return [mgjit.Value(v) for v in numbers(count, seed)]


def test_01_affine() -> None:
    """Rows of parameters times inputs: loads with coefficients, no table."""
    ws = [values(5, k) for k in range(6)]
    made = exact(Example(lambda xs: [sum(w * x for w, x in zip(row, xs)) for row in ws], numbers(5)))
    program = made.lower("lift")
    assert len(program.tables) == 0
    assert any(len(o.reference.index.terms) == 2 for o in operands(made) if isinstance(o, Load))
    assert sum(1 for node in walk(program.forward) if isinstance(node, Loop)) <= 4


def test_02_reversed_and_strided() -> None:
    """Negative and larger steps are affine as well."""
    ws = values(20)
    made = exact(Example(lambda xs: [w * x for w, x in zip(ws[::-2], xs[::3])], numbers(30)))
    coefficients = {c for o in operands(made) if isinstance(o, Load) for _, c in o.reference.index.terms}
    assert {-2, 3} <= coefficients


def test_03_first_iteration_differs() -> None:
    """A carried value: a Choice by the loop."""
    w = mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        h: Any = w * 3.0
        for x in xs:
            h = h * w + x
        return h

    made = exact(Example(step, numbers(12)))
    assert any(isinstance(o, Choice) for o in operands(made))


def test_04_table() -> None:
    """No pattern in the indices: an index table over one array."""
    ws = values(16)
    order = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    made = exact(Example(lambda x: [ws[k] * x for k in order], 0.3))
    program = made.lower("lift")
    assert len(program.tables) >= 16
    assert any(isinstance(o, Load) and o.reference.index.table is not None for o in operands(made))


def test_05_mixed() -> None:
    """Operands from several arrays without a pattern."""
    ws = values(4)

    def step(x: Any) -> Any:
        found = [mgjit.exp(w * x) for w in ws] + [mgjit.tanh(w * x) for w in ws]
        return [found[k] + found[j] for k, j in zip([0, 7, 2, 5, 1, 6, 3, 3], [4, 1, 6, 2, 2, 7, 0, 5])]

    made = exact(Example(step, 0.4))
    assert any(isinstance(o, Mixed) for o in operands(made))


def test_06_windows_and_broadcasts() -> None:
    """x[i + k] read at many places of one iteration space; a value read in all iterations."""
    kernel = values(3)

    def step(xs: Any) -> Any:
        scale = mgjit.exp(kernel[0])
        return [sum(k * x for k, x in zip(kernel, xs[i : i + 3])) * scale for i in range(10)]

    made = exact(Example(step, numbers(12)))
    assert len(made.lower("lift").tables) == 0


def test_07_buffers_and_outputs() -> None:
    """Inputs of two buffers and packed numbers are arrays of their own; results go to outputs."""
    w = mgjit.Value(0.5)
    step: Callable[..., Any] = lambda a, b, c: [w * x + y * c for x, y in zip(a, b)]  # noqa: E731
    made = exact(Example(step, bytes(range(9)), bytearray(range(9, 18)), 0.25))
    loads = {o.reference.array.name for o in operands(made) if isinstance(o, Load)}
    assert {"x0", "x1", "x2"} <= loads


def test_08_state_and_stores() -> None:
    """Stores keep their place among the reads."""
    s, w = mgjit.state(numbers(8)), mgjit.Value(0.5)

    def step(x: Any) -> Any:
        for k in range(8):
            s[k] = s[k] * 0.9 + w.data * x
            w.data = w.data + s[k - 1]
        return s[0], w

    exact_once = Example(step, 0.3)
    exact_once.check(exact_once.lower("lift"))


@pytest.mark.parametrize("table", [[1.0, 2.5, -3.0], "values", "state"])
def test_09_take(table: Any) -> None:
    """Run-time indices into constants, parameters and state."""
    rows = {"values": values(3), "state": mgjit.state([0.1, 0.2, 0.3])}
    chosen = rows[table] if isinstance(table, str) else table
    for k in range(3):
        made = Example(lambda i, x: mgjit.take(chosen, i) * x, k, 0.7)
        made.check(made.lower("lift"))


def test_10_three_deep() -> None:
    """Loops in loops in loops."""
    ws = [[values(6, 10 * a + b) for b in range(4)] for a in range(5)]

    def step(xs: Any) -> Any:
        return [mgjit.exp(sum(sum(w * x for w, x in zip(row, xs)).relu() for row in plane)) for plane in ws]

    made = exact(Example(step, numbers(6)))
    assert max(len(o.reference.index.terms) for o in operands(made) if isinstance(o, Load)) == 3


def test_11_backward_nodes() -> None:
    """A backward pass stands where it was recorded, with its root, and counts its instances."""
    ws = values(4)

    def step(xs: Any) -> Any:
        for x in xs:
            (ws[0] * x + ws[1]).backward()
        return ws[0].grad

    made = Example(step, numbers(6))
    nodes = list(walk(made.lower("lift").forward))
    found = [node for node in nodes if isinstance(node, Backward)]
    assert len(found) == 1
    assert found[0].instances == frozenset(range(6))
    assert sum(1 for node in nodes if isinstance(node, Statement)) < 12
