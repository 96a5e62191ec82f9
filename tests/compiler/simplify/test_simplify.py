"""What is removed, and that nothing visible changes, to the sign of a zero."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.compiler.simplify.first_contributions import merge_first_contributions
from mgjit.compiler.simplify.registers import use_registers
from mgjit.compiler.simplify.simplify import delete_dead_statements, forget_gradients
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    arrays_written,
    count_statements,
    statements,
)
from mgjit.ir.verify import verify
from tests.handmade import around, at, define, load, result, update, visible
from tests.lowering import Example, numbers, sgd


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


# ---- gradients that nobody reads ------------------------------------------------------------------------------

G, P, S = Array("g", "gradient", 40), Array("p", "parameter", 40), Array("s", "state", 40)
T = Array("t", "scratch", 40)


def forgotten(*nodes: Node, forward: tuple[Node, ...] = ()) -> Program:
    """A step whose backward phase is `nodes`, after the pass; parameters and state have the same bits."""
    program = Program(list(forward), list(nodes))
    program.tables.extend([3, 1, 2])
    arrays = [array for array in (P, S) if array in visible(program)]

    def run() -> list[list[bytes]]:
        return [bits for seed in range(4) for bits in result(program, arrays, seed)]

    before = run()
    forget_gradients(program)
    verify(program)
    assert run() == before
    return program


def gradient(row: int = 0) -> tuple[Loop, Statement]:
    """`for i: %1 = exp(x[i]); g[i] = %1`, of a row of ten."""
    i = Loop(10, [])
    made = define(at(G, (i, 1), base=10 * row), "exp", load(S, (i, 1), base=20))
    return around(i, made), made


def test_10_assigned_and_not_read() -> None:
    """The assignment goes, the number stays for who uses it."""
    i, made = gradient()
    i.body.append(define(at(P, (i, 1)), "negate", Register(made)))
    assert print_program(Program(forgotten(i).backward)) == (
        "forward:\n    for i in 0 .. 9:\n        %0 = exp(s[i + 20])\n        %1 = p[i] = negate(%0)\n"
    )


def test_11_what_the_step_reads() -> None:
    """In a later nest, in an update of the gradient, or in the forward phase of the next step."""
    j = Loop(10, [])
    read = around(j, define(at(P, (j, 1)), "negate", load(G, (j, 1))))
    assert "g[i] = exp" in print_program(forgotten(gradient()[0], read))
    j = Loop(10, [])
    added = around(j, update(at(G, (j, 1)), "add", load(S, (j, 1))))
    assert "g[i] = exp" in print_program(forgotten(gradient()[0], added))
    early = define(at(P), "copy", load(G, base=3))
    assert "g[i] = exp" in print_program(forgotten(gradient()[0], forward=(early,)))


def test_12_other_elements() -> None:
    """A gradient that is read keeps its own assignment, not that of the others."""
    j = Loop(10, [])
    read = around(j, define(at(P, (j, 1)), "negate", load(G, (j, 1), base=10)))
    text = print_program(forgotten(gradient(0)[0], gradient(1)[0], read))
    assert "g[i + 10] = exp" in text
    assert "g[i] =" not in text


def test_13_read_from_anywhere() -> None:
    """Through a table, by a run-time index, or as one of several arrays: all elements are read."""
    reads = [
        Load(Reference(G, Index(0, (), TableEntry(0, ())))),
        Load(Reference(G, Index(0, (), None, Dynamic(Constant(2.0), 1, 9)))),
        Mixed((G, S), TableEntry(1, ()), TableEntry(2, ())),
        Choice(Loop(1, []), load(G, base=2), Constant(1.0)),
        Choice(Loop(1, []), Mixed((G, S), TableEntry(1, ()), TableEntry(2, ())), load(G, base=30)),
    ]
    for operand in reads:
        read: Node = define(at(P), "copy", operand)
        if isinstance(operand, Choice):
            read = around(operand.loop, read)
        assert "g[i] = exp" in print_program(forgotten(gradient()[0], read))


def test_14_sums_of_gradients() -> None:
    """An update whose result nobody reads goes with what it adds to."""
    i = Loop(10, [])
    total = around(i, update(at(G, (i, 1)), "add", load(S, (i, 1))))
    text = print_program(forgotten(total, define(at(P), "copy", load(S))))
    assert "add" in text  # it reads what it adds to
    once = print_program(forgotten(define(at(G), "copy", Constant(0.0)), define(at(P), "copy", load(S))))
    assert "g[" not in once


def test_15_a_step_without_gradients() -> None:
    """Parameters and results are those of the step; gradients are not written, unless the phases are separate.

    The update of several layers would be one loop (schedule/adjacent.py), which reads them.
    """
    weights = values(40)

    def step(x: Any, rate: Any) -> Any:
        loss = sum(sum(w * element for w, element in zip(weights[5 * k :], x)) ** 2 for k in range(8))
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    made = Example(step, numbers(5), 0.1)
    for separate in (True, False):
        program = made.lower(laid_out=True, grads=False, separate=separate)
        written = {array.space for s in statements(program.backward) for array in arrays_written(s)}
        assert ("gradient" in written) is separate
    made.check(program)


def test_16_gradients_that_accumulate() -> None:
    """Without zero_grad the step reads what the last one left: nothing may be forgotten."""
    w = values(8)

    def step(x: Any, rate: Any) -> Any:
        loss = sum(p * x for p in w) ** 2
        loss.backward()
        sgd(w, rate)
        return loss

    made = Example(step, 0.7, 0.1)
    program = made.lower(grads=False)
    assert any(array.space == "gradient" for s in statements(program.backward) for array in arrays_written(s))
    made.check(program)
