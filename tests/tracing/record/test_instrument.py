"""Instrumentation: only while a trace runs, only in its thread, and gone without a trace of it."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import builtins
import sys
import threading
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.engine.state import State
from mgjit.errors import LeakError
from mgjit.memory.buffers import bound_classes
from tests.lowering import Example


def members() -> dict[Any, dict[str, Any]]:
    """Everything that instrumentation may touch."""
    return {cls: dict(vars(cls)) for cls in (Value, State, *bound_classes.values())}


def test_01_everything_is_restored() -> None:
    """After a trace, and after one that failed."""
    w = Value(1.0)
    mgjit.compile(backend="python")(lambda x: w * x)(1.0)  # a bound class exists
    before, function = members(), builtins.sum

    def fails(x: Any) -> Any:
        w.data = x
        raise ZeroDivisionError

    Example(lambda x: mgjit.where(x > 0.0, w, x), 1.0)
    assert members() == before
    with pytest.raises(ZeroDivisionError):
        Example(fails, 1.0)
    assert members() == before
    assert builtins.sum is function
    assert w.data == 1.0


def test_02_other_threads_are_not_traced() -> None:
    """They compute real numbers while a trace is running."""
    w, other, s = Value(1.0), Value(3.0), mgjit.state([2.0])
    found: list[Any] = []

    def elsewhere() -> None:
        y = (other * 2.0 - 1.0 / other + other**2).relu() + mgjit.maximum(other, 0.0) + Value(1.0)
        y.backward()
        s[0] = s[0] + other.data
        found.extend([y.data, other.grad, s[0], sum([0.1] * 10), other > 1.0, mgjit.where(other > 0.0, y, other).data])

    def step(x: Any) -> Any:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return w * x

    made = Example(step, 2.0)
    expected = other * 2.0 - 1.0 / other + other**2
    total = expected.relu().data + 3.0 + 1.0
    gradient = found[1]
    assert found == [total, gradient, 5.0, sum([0.1] * 10), True, total]
    assert gradient == pytest.approx(2.0 + 1.0 / 9.0 + 6.0 + 1.0)
    assert len(made.trace) == 2


def test_03_values_made_in_a_step_end_with_it() -> None:
    """Afterwards they refuse, by name and line; their class is a Value still."""
    made: list[Value] = []

    def step(x: Any) -> Any:
        made.append(Value(x))
        return made[0] * 2.0

    Example(step, 1.0)
    assert isinstance(made[0], Value)
    assert "compiled step" in repr(made[0])
    for use in (lambda: made[0].data, lambda: made[0].grad, lambda: made[0] + 1.0):
        with pytest.raises(LeakError, match=r"test_instrument\.py:\d+"):
            use()


def test_04_state() -> None:
    """Slices, iteration, length and negative indices in a step; an index out of range is Python's error."""
    s = mgjit.state([1.0, 2.0, 3.0])

    def step(x: Any) -> Any:
        s[1:] = [x, s[0] * 2.0]
        return sum(s), len(s), s[-3], list(s[:2])

    made = Example(step, 5.0)
    made.check(made.lower("lift"))
    with pytest.raises(IndexError, match="State of 3"):
        Example(lambda x: s[3] * x, 1.0)
    with pytest.raises(ValueError, match="fixed length"):
        Example(lambda x: s.__setitem__(slice(0, 2), [x]), 1.0)


def test_05_sum() -> None:
    """Compensated from 3.12 on, plain before; in both cases what this interpreter does."""
    made = Example(lambda xs: sum(xs), [1.0, 1e100, 1.0, -1e100])
    made.check(made.lower("lift"))
    compensated = "select" in {operation(code) for code in made.trace.op}
    assert compensated is (sys.version_info >= (3, 12) and sys.implementation.name == "cpython")


def operation(code: int) -> str:
    from mgjit.ir.opcodes import operation_name

    return operation_name(code)


def test_06_derived_classes() -> None:
    """Users may derive from Value; bound ones keep their class's name and methods."""

    class Weight(Value):
        __slots__ = ("name",)

        def doubled(self) -> Any:
            """A method of the user's."""
            return self * 2.0

    w = Weight(1.5)
    w.name = "first"
    step = mgjit.compile(backend="python")(lambda x: w.doubled() * x)
    assert [float(step(1.0)), float(step(2.0))] == [3.0, 6.0]
    assert (type(w).__name__, w.name, w.data) == ("Weight", "first", 1.5)
    w.data = 2.0
    assert step(1.0) == 4.0
