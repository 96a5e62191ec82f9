"""What is removed, and that nothing visible changes, to the sign of a zero."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.ir.program import Program, Register, count_statements, statements
from mgjit.passes.first_contributions import merge_first_contributions
from mgjit.passes.registers import use_registers
from mgjit.passes.simplify import delete_dead_statements
from tests.lowering import Example, numbers


def values(count: int, seed: int = 1) -> list[Any]:
    return [mgjit.Value(v) for v in numbers(count, seed)]


def registers(program: Program) -> None:
    """Registers in all bodies."""
    use_registers(program, across_loops=True)


def size(program: Program) -> int:
    """Statements of all phases."""
    return sum(count_statements(nodes) for _, nodes in program.phases)


def network() -> Example:
    """A layer, a loss, a backward pass; gradients are visible."""
    ws = [values(6, k) for k in range(5)]

    def step(xs: Any) -> Any:
        loss = sum(mgjit.tanh(sum(w * x for w, x in zip(row, xs))) for row in ws)
        loss.backward()
        return loss

    return Example(step, numbers(6))


def test_01_each_part_alone_is_exact() -> None:
    """Merging, registers and dead statements, in turn."""
    for parts in (
        [merge_first_contributions], [registers], [delete_dead_statements],
        [merge_first_contributions, registers, delete_dead_statements],
    ):  # fmt: skip
        made = network()
        program = made.lower("phases")
        for part in parts:
            part(program)
        made.check(program)


def test_02_fewer_statements_and_less_memory() -> None:
    """Intermediate results become registers."""
    made = network()
    before, after = made.lower("phases"), made.lower()
    assert size(after) < size(before)
    registers = [
        o for _, nodes in after.phases for s in statements(nodes) for o in s.operands if isinstance(o, Register)
    ]
    assert registers
    assert any(s.target is None for _, nodes in after.phases for s in statements(nodes))


def test_03_what_nobody_sees_is_gone() -> None:
    """A result that is not returned costs nothing; one that is stored stays."""
    w, s = mgjit.Value(0.5), mgjit.state([0.0])

    def step(x: Any) -> Any:
        mgjit.exp(w * x)
        s[0] = mgjit.tanh(x)
        return w

    made = Example(step, 0.25)
    program = made.lower()
    names = {st.operation for _, nodes in program.phases for st in statements(nodes)}
    assert "exp" not in names
    assert "tanh" in names
    made.check(program)


def test_04_negative_zero_survives() -> None:
    """`0.0 + (-0.0)` is 0.0: a gradient that was added to zero is not the contribution itself."""
    a, b = mgjit.Value(0.5), mgjit.Value(-0.0)

    def step(x: Any) -> Any:
        hidden = a * x
        loss = hidden * b
        loss.backward()
        return hidden.grad, a.grad, -x * 0.0

    made = Example(step, 0.25)
    made.check(made.lower())


def test_05_overwritten_between_definition_and_use() -> None:
    """A load is a register only while memory still holds that result."""
    s, w = mgjit.state([1.0, 2.0]), mgjit.Value(0.5)

    def step(x: Any) -> Any:
        s[0] = x * 2.0
        first = s[0] * w
        s[0] = x * 3.0
        s[1] = s[0] + s[1]
        return first, s[0] * w

    made = Example(step, 0.25)
    made.check(made.lower())


def test_06_running_twice_changes_nothing() -> None:
    """It is idempotent."""
    made = network()
    program = made.lower()
    before = size(program)
    for part in (registers, delete_dead_statements):
        part(program)
    assert size(program) == before
    made.check(program)
