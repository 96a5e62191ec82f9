"""Defects of our own passes, code generators, guards and copies, put in on purpose: each is noticed by a comparison.

Every defect is a patch of one function.  A step that uses what it breaks is called a few times, with another argument
and another captured number each time.  The kernel must be found out, and from then on the numbers are those of the
undecorated step that goes on from where this one is.
"""

from __future__ import annotations

import copy
import math
import random
import struct
from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.build import build
from mgjit.compiler.cache.store import Store
from mgjit.compiler.codegen import scalar
from mgjit.compiler.codegen.emitter import Emitter
from mgjit.compiler.codegen.function import FunctionEmitter
from mgjit.compiler.pipeline import order
from mgjit.compiler.schedule import pack
from mgjit.compiler.simplify import first_contributions, powers, reductions, registers
from mgjit.engine.value import Value
from mgjit.ir import derivatives
from mgjit.ir.program import Constant, Loop, Operand, Statement, statements
from mgjit.runtime.kernel import Kernel
from mgjit.tracing.call import inputs as input_nodes
from mgjit.tracing.call.results import CompositeResult, OutputResult
from mgjit.tracing.copies import copies
from mgjit.tracing.draws.plan import DrawPlan
from mgjit.tracing.record.recorder import Recorder
from mgjit.tracing.surroundings.guard import Guard
from mgjit.verification import trial

pytestmark = pytest.mark.once
Patch = pytest.MonkeyPatch


class Machine:
    """A step over everything that a defect may touch."""

    def __init__(self) -> None:
        random.seed(8)
        self.model = nn.MLP(12, [16, 8])
        self.scale = Value(0.7)
        self.table = [Value(0.1 * k) for k in range(5)]
        self.moments = [0.25] * 40
        self.totals = {"norm": 0.5}
        self.state = mgjit.zeros(3)
        self.config = SimpleNamespace(rate=0.01)
        self.calls = 0

    def step(self, xs: list[float], k: int, data: Any, extra: Value) -> Any:
        config = self.config
        self.calls += 1
        noise = random.random()
        hidden = self.model(xs)
        chosen = mgjit.take(self.table, k)
        loss = Value(0.0)
        for j, h in enumerate(hidden):
            loss = loss + (h - data[j]) ** 2 - h * chosen * 0.125
        for entry in self.table:
            loss = loss + (entry - extra + OFFSET) ** 3
        loss = loss + (self.scale * noise).tanh() + extra.relu() / 3.0
        parameters = [*self.model.parameters(), *self.table, self.scale, extra]
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        before = self.scale.data
        for p in parameters:
            p.data -= config.rate * p.grad
        for j, w in enumerate(self.model.layers[0].neurons[0].w):
            self.moments[j] = 0.5 * self.moments[j] + w.grad
        again = self.model([x + 1.0 for x in xs])  # the weights have changed since they were read
        self.totals["norm"] = self.totals["norm"] * 0.5 + again[0].data
        self.state[1] += before - self.scale.data
        cubes = [entry.data**3 for entry in self.table]
        return loss, before, [h.data for h in again], self.calls, noise, cubes

    def cells(self) -> list[Any]:
        """Everything that the step changes, as it is now."""
        parameters = [*self.model.parameters(), *self.table, self.scale]
        numbers = [[p.data for p in parameters], [p.grad for p in parameters], list(self.moments), list(self.state)]
        return [*numbers, self.totals["norm"], self.calls, random.getstate()]

    def become(self, cells: list[Any]) -> None:
        """Take over what another one has."""
        data, gradients, moments, state, self.totals["norm"], self.calls, generator = copy.deepcopy(cells)
        for p, number, gradient in zip([*self.model.parameters(), *self.table, self.scale], data, gradients):
            p.data, p.grad = number, gradient
        self.moments[:] = moments
        for k, number in enumerate(state):
            self.state[k] = number
        random.setstate(generator)


def inputs(call: int) -> tuple[Any, ...]:
    xs = [math.sin(1.0 + call + 0.3 * k) for k in range(12)]
    return xs, (2 * call + 1) % 5, array("d", [0.1 * k + call for k in range(8)]), Value(0.3 + 0.1 * call)


#: A captured number.
OFFSET = 0.0


def called(machine: Machine, step: Callable[..., Any], call: int) -> Any:
    globals()["OFFSET"] = 0.5 * (call // 2)
    machine.config.rate = 0.01 / (1 + call)
    given = inputs(call)
    loss, *others = step(*given)
    return [loss.data, *others, given[3].data, given[3].grad, machine.cells()]


# ---- the defects -------------------------------------------------------------------------------------------


def wrong_stride(patch: Patch) -> None:
    """Rows lie one element too close to each other."""
    terms = Emitter.terms
    patch.setattr(Emitter, "terms", lambda self, parts: terms(self, [(loop, c - (c > 8)) for loop, c in parts]))


def swapped_subtraction(patch: Patch) -> None:
    expression = FunctionEmitter.expression

    def swapped(self: Any, operation: str, operands: Any) -> str:
        return expression(self, operation, operands[::-1] if operation == "subtract" else operands)

    patch.setattr(FunctionEmitter, "expression", swapped)


def one_iteration_too_few(patch: Patch) -> None:
    open_loop = FunctionEmitter.open_loop

    def shorter(self: Any, name: str, loop: Any) -> None:
        few = loop.count > 4 and not loop.reverse
        open_loop(self, name, Loop(loop.count - few, [], loop.reverse, bound=loop.bound))

    patch.setattr(FunctionEmitter, "open_loop", shorter)


def short_constants(patch: Patch) -> None:
    """Six digits, as `%g` prints them."""
    literal = scalar.float_literal
    patch.setattr(scalar, "float_literal", lambda value, *rest: literal(float(f"{value:g}"), *rest))


def relu_of_everything(patch: Patch) -> None:
    expression = FunctionEmitter.expression

    def passed(self: Any, operation: str, operands: Any) -> str:
        return operands[0] + " * 1.5" if operation == "relu" else expression(self, operation, operands)

    patch.setattr(FunctionEmitter, "expression", passed)


def dropped_clear(patch: Patch) -> None:
    """The clear of a gradient is deleted, and its first contribution is still added."""
    patch.setattr(first_contributions, "_define", lambda access, accesses: None)


def wrong_derivative_of_a_product(patch: Patch) -> None:
    patch.setitem(derivatives.RULES, "multiply", lambda e, x, out, g: [e.multiply(x[0], g), e.multiply(x[1], g)])


def wrong_sign_of_a_derivative(patch: Patch) -> None:
    patch.setitem(derivatives.RULES, "subtract", lambda e, x, out, g: [g, g])


def wrong_derivative_of_a_power(patch: Patch) -> None:
    patch.setitem(derivatives.RULES, "power", lambda e, x, out, g: [e.multiply(e.multiply(x[1], x[0]), g)])


def stale_register(patch: Patch) -> None:
    """What an element held before it was assigned is used again."""
    note = registers._Known.note

    def noted(self: Any, statement: Statement) -> None:
        if not statement.update:
            note(self, statement)

    patch.setattr(registers._Known, "forget", lambda self, arrays: None)
    patch.setattr(registers._Known, "note", noted)


def cube_as_products(patch: Patch) -> None:
    """The C library's power has other last bits."""
    write = powers._write

    def written(statement: Statement, base: Operand, exponent: float) -> list[Statement]:
        if exponent == 3.0:
            square = Statement("multiply", (base, base))
            statement.operation, statement.operands = "multiply", (powers.Register(square), base)
            return [square]
        return write(statement, base, exponent)

    patch.setattr(powers, "_OF_FLOAT64", frozenset({*powers._OF_FLOAT64, 3.0}))
    patch.setattr(powers, "_write", written)


def lost_start_of_a_sum(patch: Patch) -> None:
    """Sums begin with zero instead of what they began with."""
    chain = reductions._chain

    def from_zero(loop: Loop, statement: Statement) -> Any:
        found = chain(loop, statement)
        return found and (Constant(0.0), found[1])

    patch.setattr(reductions, "_chain", from_zero)


def reordered_sum(patch: Patch) -> None:
    """Loops run backwards."""
    open_loop = FunctionEmitter.open_loop

    def backwards(self: Any, name: str, loop: Any) -> None:
        open_loop(self, name, Loop(loop.count, [], not loop.reverse, bound=loop.bound))

    patch.setattr(FunctionEmitter, "open_loop", backwards)


def lost_copy_back(patch: Patch) -> None:
    """Numbers of the user's objects stay in the memory of the kernel."""
    made = copies.copying_functions
    patch.setattr(copies, "copying_functions", lambda *given: (made(*given)[0], lambda: None))


def counters_become_floats(patch: Patch) -> None:
    make = OutputResult.__init__
    patch.setattr(OutputResult, "__init__", lambda self, index, kind: make(self, index, None if kind is int else kind))


def argument_values_are_not_written(patch: Patch) -> None:
    patch.setattr(Kernel, "copy_out", lambda self: self.copies.show() if self.copies is not None else None)


def forgotten_guard(patch: Patch) -> None:
    """A captured number that changes is not noticed."""
    patch.setattr(Guard, "difference", lambda self: "")


def frozen_argument(patch: Patch) -> None:
    """The last number of a list stays what it was in the first call."""
    pack_list = input_nodes.NumbersNode.pack
    first: dict[int, Any] = {}

    def frozen(self: Any, argument: Any, frame: Any) -> bool:
        return pack_list(self, [*argument[:-1], first.setdefault(0, argument[-1])], frame)

    patch.setattr(input_nodes.NumbersNode, "pack", frozen)


def drawn_twice(patch: Patch) -> None:
    """One random number too many is drawn."""
    filler = DrawPlan.filler

    def twice(self: DrawPlan, numbers: Any) -> Any:
        fill = filler(self, numbers)
        return lambda: (fill(), fill())

    patch.setattr(DrawPlan, "filler", twice)


def swapped_results(patch: Patch) -> None:
    """Two numbers of a list that is returned change places."""
    make = CompositeResult.__init__

    def swapped(self: CompositeResult, made: Any, parts: Any, *rest: Any) -> None:
        is_list = made is list and len(parts) > 1 and all(isinstance(part, OutputResult) for part in parts)
        make(self, made, [parts[1], parts[0], *parts[2:]] if is_list else parts, *rest)

    patch.setattr(CompositeResult, "__init__", swapped)


def late_read_of_an_old_number(patch: Patch) -> None:
    """`before = p.data`, used after an assignment, is the new number."""
    patch.setattr(Recorder, "late_read", lambda self, operand, read_at: operand)


def drawn_once(patch: Patch) -> None:
    """Later calls use the random numbers of the first."""
    filler = DrawPlan.filler

    def once(self: DrawPlan, numbers: Any) -> Any:
        fill = filler(self, numbers)
        left = [fill]
        return lambda: left.pop()() if left else None

    patch.setattr(DrawPlan, "filler", once)


def last_statement_is_dead(patch: Patch) -> None:
    """A store to a state is deleted."""
    delete = order.delete_dead_statements

    def too_many(program: Any) -> None:
        delete(program)
        for _, nodes in program.phases:
            dead = {s for s in statements(nodes) if getattr(getattr(s.target, "array", None), "space", "") == "state"}
            nodes[:] = simplify_without(nodes, set(list(dead)[-1:]))

    from mgjit.compiler.simplify.simplify import without as simplify_without

    patch.setattr(order, "delete_dead_statements", too_many)


DEFECTS = [
    wrong_stride, swapped_subtraction, one_iteration_too_few, short_constants, relu_of_everything, dropped_clear,
    wrong_derivative_of_a_product, wrong_sign_of_a_derivative, wrong_derivative_of_a_power,
    stale_register, cube_as_products, lost_start_of_a_sum, reordered_sum, lost_copy_back, counters_become_floats,
    argument_values_are_not_written, forgotten_guard, frozen_argument, drawn_twice, swapped_results,
    late_read_of_an_old_number, drawn_once, last_statement_is_dead,
]  # fmt: skip


@pytest.fixture(autouse=True)
def verifying(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    monkeypatch.setattr(build, "_shared", {})  # all code is built anew
    monkeypatch.setattr(build, "_memory_store", Store(memory_only=True))


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("defect", DEFECTS)
def test_01_a_defect_is_noticed_and_the_numbers_are_right_from_then_on(defect: Any, monkeypatch: Patch) -> None:
    """In the second call of the kernel that is used for all calls but the first."""
    machine = Machine()
    step = mgjit.compile(machine.step, cache=False)
    found = -1
    with monkeypatch.context() as patch:
        defect(patch)
        for call in range(4):
            called(machine, step, call)
            if step.stats.mismatches:
                found = call
                break
    assert found >= 1, f"not noticed; {step.stats.compared_calls} calls compared"
    undecorated = Machine()
    undecorated.become(machine.cells())
    for call in range(found + 1, found + 4):
        now = random.getstate()
        wanted = called(undecorated, undecorated.step, call)
        random.setstate(now)
        assert same(called(machine, step, call), wanted)


@pytest.mark.filterwarnings("error::mgjit.errors.MismatchWarning")
def test_02_without_a_defect_nothing_is_noticed(monkeypatch: Patch) -> None:
    """The same calls, and a later one, and the undecorated step."""
    monkeypatch.setattr(trial, "_EARLIEST", 8)
    monkeypatch.setattr(trial, "_LATEST", 8)
    machine, undecorated = Machine(), Machine()
    step = mgjit.compile(machine.step, cache=False)
    for call in range(12):
        now = random.getstate()
        wanted = called(undecorated, undecorated.step, call)
        random.setstate(now)
        assert same(called(machine, step, call), wanted)
    assert step.stats.compared_calls >= 2


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.optimised  # tcc has no vectors to pack for
def test_03_a_packed_copy_of_other_elements(monkeypatch: Patch) -> None:
    """Whatever has been packed before is taken for what is wanted."""
    model = nn.MLP(32, [32, 8])

    @mgjit.compile(cache=False)
    def doubled(x: float) -> float:  # from now on the weights lie where this step reads them best
        for p in model.parameters():
            p.data *= x
        return x

    @mgjit.compile(cache=False)
    def step(rows: list[list[float]], rate: float) -> Any:
        loss = sum((out * out for row in rows for out in model(row)), Value(0.0))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    doubled(2.0)
    rows = [[0.01 * k + 0.1 * row for k in range(32)] for row in range(4)]
    monkeypatch.setattr(pack, "_key", lambda reference, loops: len(loops))
    step(rows, 0.01)
    step(rows, 0.01)
    assert step.stats.mismatches


def same(one: Any, other: Any) -> bool:
    """Bit for bit."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", float(other))
    return type(one) is type(other) and bool(one == other)
