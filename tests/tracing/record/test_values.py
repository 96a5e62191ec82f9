"""What an operation on traced things records: which operation, which operands, in which order."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.ir import opcodes as ops
from tests.lowering import Example


def records(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """Each record as `operation operand operand`; numbers in brackets are plain-number operations."""
    made = Example(function, *arguments)
    trace, lines = made.trace, []

    def name(operand: int) -> str:
        if operand >= 0:
            return f"%{operand}"
        kind = ops.leaf_kind(operand)
        if kind == ops.CONSTANT:
            return repr(trace.constants[ops.leaf_index(operand)])
        return f"{ops.KINDS[kind]}"

    for position, code in enumerate(trace.op):
        operation = ops.operation_name(code)
        if operation == "store" and ops.leaf_kind(trace.a[position]) == ops.OUTPUT:
            continue
        operands = [trace.a[position]]
        if code & (ops.NUMBER - 1) not in ops.UNARY:
            operands.append(trace.b[position])
        if trace.c is not None and operation == "select":
            operands.insert(0, trace.c[position])
        text = " ".join([operation, *map(name, operands)])
        lines.append(f"[{text}]" if code & ops.NUMBER else text)
    return lines


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda w, x: w + x, ["add parameter input"]),
        (lambda w, x: x + w, ["add input parameter"]),
        (lambda w, x: 1 + w, ["add 1.0 parameter"]),
        (lambda w, x: x - w, ["subtract input parameter"]),
        (lambda w, x: 2.0 * (w * 3), ["multiply parameter 3.0", "multiply 2.0 %0"]),
        (lambda w, x: x + 1, ["[add input 1.0]"]),
        (lambda w, x: 1 - x, ["[subtract 1.0 input]"]),
        (lambda w, x: x / 4, ["[divide input 4.0]"]),
        (lambda w, x: 4 / x, ["[divide 4.0 input]"]),
        (lambda w, x: x**2, ["[power input 2.0]"]),
        (lambda w, x: 2**x, ["[power 2.0 input]"]),
        (lambda w, x: w / x, ["[power input -1.0]", "multiply parameter %0"]),
        (lambda w, x: x / w, ["power parameter -1.0", "multiply input %0"]),
        (lambda w, x: w / 4, ["multiply parameter 0.25"]),
        (lambda w, x: w / w, ["power parameter -1.0", "multiply parameter %0"]),
        (lambda w, x: w**3, ["power parameter 3.0"]),
        (lambda w, x: -w, ["negate parameter"]),
        (lambda w, x: -x, ["[negate input]"]),
        (lambda w, x: abs(w) + abs(x), ["absolute parameter", "[absolute input]", "add %0 %1"]),
        (lambda w, x: w < x, ["[less parameter input]"]),
        (lambda w, x: w > x, ["[less input parameter]"]),
        (lambda w, x: x >= 2, ["[less_equal 2.0 input]"]),
        (lambda w, x: x <= 2, ["[less_equal input 2.0]"]),
        (lambda w, x: x == 2, ["[equal input 2.0]"]),
        (lambda w, x: x != 2, ["[not_equal input 2.0]"]),
        (lambda w, x: sum([w, x]), ["add 0.0 parameter", "add %0 input"]),
        (lambda w, x: mgjit.maximum(w, x), ["maximum parameter input"]),
        (lambda w, x: mgjit.maximum(x, w), ["maximum input parameter"]),
        (lambda w, x: mgjit.minimum(x, 0.0), ["[minimum input 0.0]"]),
        (lambda w, x: mgjit.where(x > 0, w, x), ["[less 0.0 input]", "select %0 parameter input"]),
        (lambda w, x: mgjit.where(x, 1.0, 2.0), ["[select input 1.0 2.0]"]),
        (lambda w, x: mgjit.one_hot(x, 2), ["[equal input 0.0]", "[equal input 1.0]"]),
        (lambda w, x: mgjit.take([5.0, 6.0], x), ["[take 5.0 input]"]),
        (lambda w, x: w.data * x, ["[multiply parameter input]"]),
        (lambda w, x: w.data * w, ["[copy parameter]", "multiply %0 parameter"]),
        (lambda w, x: w.grad + 1, ["[add gradient 1.0]"]),
        (lambda w, x: +w * +x, ["multiply parameter input"]),
    ],
)
def test_01_operations(function: Callable[[Any, Any], Any], expected: list[str]) -> None:
    """Operands keep the order in which the interpreter reads them."""
    w = mgjit.Value(1.5)
    recorded = records(lambda x: function(w, x), 1.0)
    assert recorded == expected


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sqrt", "relu"])
def test_02_functions(name: str) -> None:
    """As functions and, of Values, as methods; a number stays a number."""
    w = mgjit.Value(1.5)
    function = getattr(mgjit, name)
    assert records(lambda x: function(w), 1.0) == [f"{name} parameter"]
    assert records(lambda x: getattr(w, name)(), 1.0) == [f"{name} parameter"]
    assert records(lambda x: function(x), 1.0) == [f"[{name} input]"]


def test_03_assignments() -> None:
    """Of data, gradients and state elements, with every in-place operator."""
    w, s = mgjit.Value(1.5), mgjit.state([1.0, 2.0])

    def step(x: Any) -> None:
        w.data -= x
        w.grad = 0.0
        w.grad += x
        s[-1] *= x
        s[0] = 3

    assert records(step, 1.0) == [
        "[subtract parameter input]", "store parameter %0", "store gradient 0.0", "[add gradient input]",
        "store gradient %3", "[multiply state input]", "store state %5", "store state 3.0",
    ]  # fmt: skip


def test_04_assignment_to_computed_values() -> None:
    """Is refused: there is no memory behind them."""
    w = mgjit.Value(1.5)
    for name in ("data", "grad"):
        with pytest.raises(mgjit.errors.TraceError, match=r"test_values\.py:\d+"):
            Example(lambda x, name=name: setattr(w * x, name, 0.0), 1.0)


def test_05_power_of_values() -> None:
    """Is refused as it is undecorated."""
    w = mgjit.Value(1.5)
    with pytest.raises(TypeError, match=r"mgjit\.exp"):
        Example(lambda x: w**w, 1.0)
    with pytest.raises(TypeError, match=r"mgjit\.exp"):
        Example(lambda x: (w * x) ** w, 1.0)
    with pytest.raises(TypeError):
        Example(lambda x: 2.0**w, 1.0)


@pytest.mark.parametrize("other", ["text", None, [1.0], object()])
def test_06_nonsense_operands(other: Any) -> None:
    """A TypeError, as Python's own."""
    w = mgjit.Value(1.5)
    for operate in (lambda x: w + other, lambda x: (w * x) * other, lambda x: x - other):
        with pytest.raises(TypeError):
            Example(operate, 1.0)
