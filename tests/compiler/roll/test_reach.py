"""Which records a backward pass visits."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.compiler.roll.reach import reach
from mgjit.ir.opcodes import operation_name
from tests.lowering import Example


def reached(made: Example, number: int = 0) -> list[str]:
    """Names of the operations that pass `number` reaches."""
    found = reach(made.trace)
    return [operation_name(code) for k, code in enumerate(made.trace.op) if number in found.reached_by(k)]


def test_01_only_what_the_root_depends_on() -> None:
    """Not later records, not other branches, not the operands of numbers."""
    a = mgjit.Value(2.0)

    def step(x: Any) -> Any:
        other = mgjit.exp(a * x)
        number = x * 3.0 + 1.0
        root = mgjit.tanh(a * number)
        root.backward()
        return root - other

    assert reached(Example(step, 0.5)) == ["multiply", "tanh"]


def test_02_data_cuts() -> None:
    """Through `.data` nothing flows."""
    a = mgjit.Value(2.0)

    def step(x: Any) -> Any:
        b = mgjit.exp(a)
        root = b.data * a + b.data
        root.backward()
        return root

    names = reached(Example(step, 0.5))
    assert "exp" not in names
    assert {"multiply", "add"} <= set(names)


def test_03_exponents_and_conditions_get_nothing() -> None:
    """The exponent of a power and the condition of a select are not differentiated."""
    a = mgjit.Value(2.0)

    def step(x: Any) -> Any:
        condition = mgjit.exp(a) > x
        root = mgjit.where(condition, a * 2.0, a**x)
        root.backward()
        return root

    assert sorted(reached(Example(step, 0.5))) == ["multiply", "power", "select"]


def test_04_several_passes() -> None:
    """Each pass has its number; a record may belong to several."""
    a = mgjit.Value(2.0)

    def step(x: Any) -> Any:
        shared = a * x
        first = mgjit.exp(shared)
        second = mgjit.tanh(shared)
        first.backward()
        second.backward()
        return first

    made = Example(step, 0.5)
    assert reached(made, 0) == ["multiply", "exp"]
    assert reached(made, 1) == ["multiply", "tanh"]


def test_05_no_pass() -> None:
    """Without backward nothing is marked."""
    a = mgjit.Value(2.0)
    found = reach(Example(lambda x: a * x, 0.5).trace)
    assert (found.backwards, found.marks) == ([], None)
    assert found.reached_by(0) == frozenset()


def test_06_marks_repeat_over_iterations() -> None:
    """Iterations that contain their own pass have equal marks, which is what lets them roll."""
    a = mgjit.Value(2.0)

    def step(xs: Any) -> Any:
        for x in xs:
            (mgjit.exp(a * x)).backward()
        return a.grad

    found = Example(step, [0.1, 0.2, 0.3, 0.4, 0.5]).reach
    assert found.marks is not None
    period = found.backwards[1] - found.backwards[0]
    assert len(found.backwards) == 5
    assert found.marks[:period] == found.marks[period : 2 * period]
