"""Where a step is cut into forward, backward and update."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit import nn
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Constant, arrays_written, statements
from tests.lowering import Example, numbers, sgd


def written(nodes: Any) -> set[str]:
    """Memory spaces that a phase writes."""
    return {array.space for s in statements(nodes) for array in arrays_written(s)} - {"scratch"}


def training() -> Example:
    """zero_grad at the top, results of numbers and Values."""
    model = nn.MLP(3, [4, 1])

    def step(x: Any, rate: Any) -> Any:
        doubled = rate * 2.0
        model.zero_grad()
        loss = model(x) ** 2
        loss.backward()
        sgd(model.parameters(), rate)
        return loss, doubled

    return Example(step, numbers(3), 0.1)


def test_01_each_phase_writes_its_own() -> None:
    """Forward only results, backward gradients, update parameters."""
    made = training()
    program = made.lower("phases", separate=True)
    assert written(program.forward) == {"output"}
    assert written(program.backward) == {"gradient"}
    assert written(program.update) == {"parameter"}
    made.check(program)


def test_02_forward_alone_changes_nothing() -> None:
    """Its results are there; parameters and gradients are as before."""
    made = training()
    program = made.lower("phases", separate=True)
    before, memory = made.contents(), made.contents()
    Interpreter(program, memory).execute(program.forward)
    for array, content in before.items():
        assert (memory[array] == content) is (array.space != "output")


def test_03_no_backward() -> None:
    """Everything is forward, assignments too."""
    s, w = mgjit.state([1.0]), mgjit.Value(0.5)

    def step(x: Any) -> Any:
        s[0] = s[0] + x
        return w * s[0]

    made = Example(step, 0.25)
    program = made.lower("phases", separate=True)
    assert (program.backward, program.update) == ([], [])
    assert written(program.forward) == {"state", "output"}
    made.check(program)


def test_04_results_of_the_update() -> None:
    """A result that depends on the update is written there, with the value of that time."""
    w = mgjit.Value(0.5)

    def step(x: Any) -> Any:
        loss = w * x
        before = w.data
        loss.backward()
        gradient = w.grad
        w.data -= gradient
        return loss, before, gradient, w

    made = Example(step, 0.25)
    program = made.lower("phases", separate=True)
    assert "output" in written(program.update)
    made.check(program)


def test_05_several_passes() -> None:
    """From the first pass to the last is the backward phase."""
    w, v = mgjit.Value(0.5), mgjit.Value(0.25)

    def step(x: Any) -> Any:
        (w * x).backward()
        second = w * v
        second.backward()
        w.data = 3.0
        return second

    made = Example(step, 0.25)
    program = made.lower("phases", separate=True)
    assert "gradient" in written(program.backward)
    assert written(program.update) >= {"parameter"}
    made.check(program)


def test_06_a_gradient_that_forward_reads() -> None:
    """A reset that the forward phase depends on stays in it."""
    w = mgjit.Value(0.5)

    def step(x: Any) -> Any:
        w.grad = 2.0
        loss = w * x + w.grad
        loss.backward()
        return loss

    made = Example(step, 0.25)
    program = made.lower("phases", separate=True)
    assert "gradient" in written(program.forward)
    made.check(program)


def test_07_a_whole_step() -> None:
    """What belongs to the update follows in the backward phase."""
    made = training()
    program = made.lower("phases")
    assert written(program.forward) == {"output"}
    assert written(program.backward) == {"gradient", "parameter"}
    assert program.update == []
    made.check(program)


def test_what_only_the_update_needs_stays_there() -> None:
    """An optimiser's share of its state is computed where it is used; what a result needs is computed at once."""
    w, s = mgjit.Value(0.5), mgjit.state([1.0, 2.0])

    def step(x: Any) -> Any:
        loss = w * x
        w.grad = 0.0
        loss.backward()
        kept, shown = 0.9 * s[0], s[1] * 3.0
        s[0] = kept + 0.1 * w.grad
        return loss, shown

    made = Example(step, 2.0)
    program = made.lower("phases")
    constants = [o.value for s_ in statements(program.forward) for o in s_.operands if isinstance(o, Constant)]
    assert 3.0 in constants
    assert 0.9 not in constants
    made.check(program)
