"""The promise: a compiled step leaves the same bits as the undecorated one, on every backend.

By default: gcc, tcc and generated Python, a few calls.  `pytest tests/test_exactness.py --exhaustive` runs
every backend and 20 calls; bench/exactness.py prints the same comparison as a table.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.build.options import Options
from mgjit.engine.precision import PRECISIONS, Precision
from mgjit.ir import opcodes as ops
from mgjit.ir.interpreter import Interpreter
from mgjit.memory.buffers import memory_of
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call
from tests.lowering import by_array
from tests.training import CALLS, WORKLOADS, mnist
from tests.workload import (
    BACKENDS,
    Factory,
    Instance,
    Snapshot,
    compare,
    leaves,
    missing,
    run,
    run_single,
    snapshot,
    values,
)

FEW_CALLS = 4
USUAL_BACKENDS = ("gcc", "tcc", "python")
ALL: dict[str, Factory] = {**WORKLOADS, "784-50-10": mnist}
#: Quick enough for the reference interpreter, which visits every statement in Python.
BIG = ("two moons 2-16-16-1, batch 100", "digits 64-50-10", "784-50-10")


@functools.cache
def undecorated(name: str, calls: int) -> list[Snapshot]:
    return run(ALL[name], calls)


@functools.cache
def undecorated_in_float32(name: str, calls: int) -> list[Snapshot]:
    return run_single(ALL[name], calls)


def requires(backend: str) -> None:
    if missing(backend):
        pytest.skip(f"{missing(backend)} is not installed")


def assert_same(expected: list[Snapshot], got: list[Snapshot]) -> None:
    compared, differences = compare(expected, got)
    assert compared
    assert not differences, f"{len(differences)} of {compared} differ: " + "; ".join(differences[:5])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--exhaustive")
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", BACKENDS if everything else USUAL_BACKENDS)
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", ALL if everything else WORKLOADS)


@pytest.mark.sampled(one_of=2)
def test_compiled_equals_undecorated(name: str, backend: str, exhaustive: bool) -> None:
    requires(backend)
    calls = CALLS if exhaustive else FEW_CALLS
    assert_same(undecorated(name, calls), run(ALL[name], calls, **BACKENDS[backend]))


def test_code_that_is_built_quickly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tier: without a schedule, by a compiler that does not optimise."""

    def quickly(*chosen: Any) -> Options:
        quick = Options(*chosen).quickly()
        return quick or pytest.skip("there is no compiler that is quick")

    monkeypatch.setattr("mgjit.step.decorator.Options", quickly)
    assert_same(undecorated(name, FEW_CALLS), run(ALL[name], FEW_CALLS))


@pytest.mark.sampled(one_of=3)
def test_float32_equals_numbers_that_round_themselves(name: str, backend: str, exhaustive: bool) -> None:
    requires(backend)
    calls = CALLS if exhaustive else 2
    assert_same(undecorated_in_float32(name, calls), run(ALL[name], calls, dtype="float32", **BACKENDS[backend]))


@pytest.mark.sampled(one_of=3)
def test_phases_equal_the_fused_step(name: str, backend: str, exhaustive: bool) -> None:
    requires(backend)
    calls = CALLS if exhaustive else 2
    instance = ALL[name]()
    step = mgjit.compile(**BACKENDS[backend])(instance.step)
    for number, expected in enumerate(undecorated(name, calls), 1):
        arguments = instance.calls[number - 1]
        before = instance.observe()
        result = step.forward(*arguments)
        if instance.one_pass:
            after_forward = {**instance.observe(), "state": before["state"]}
            _, moved = compare([Snapshot(before)], [Snapshot(after_forward)])
            assert not moved, f"call {number}: forward alone changed {moved[:5]}"
        step.backward()
        step.update()
        after = snapshot(instance, result)
        if not instance.one_pass:  # some results are not known after the forward phase
            after.numbers["result"] = expected.numbers["result"]
        assert_same([expected], [after])


def test_phases_of_a_backward_pass_leave_the_parameters_until_update() -> None:
    instance = WORKLOADS["momentum"]()
    step = mgjit.compile(backend="python")(instance.step)
    start = instance.observe()
    step.forward(*instance.calls[0])
    step.backward()
    assert instance.observe()["gradient"] != start["gradient"]
    assert instance.observe()["parameter"] == start["parameter"]
    assert instance.observe()["state"] == start["state"]
    step.update()
    assert instance.observe()["parameter"] != start["parameter"]


@pytest.mark.parametrize("workload", [name for name in WORKLOADS if name not in BIG])
def test_compiled_and_undecorated_calls_can_alternate(workload: str) -> None:
    """Half of the calls run compiled, half as plain Python on the same, now bound, parameters."""
    instance = ALL[workload]()
    step = mgjit.compile(backend="python")(instance.step)
    chosen: list[Any] = [instance.step, step, step, instance.step]
    got = [snapshot(instance, f(*a)) for f, a in zip(chosen, instance.calls)]
    assert_same(undecorated(workload, FEW_CALLS)[: len(got)], got)


@pytest.mark.once
def test_graph_and_source_can_be_printed(name: str) -> None:
    instance = ALL[name]()
    before = instance.observe()
    lowering = mgjit.compile(instance.step).lower(*instance.calls[0])
    assert "multiply" in lowering.graph
    assert "mgjit_step" in lowering.c_source
    assert "records traced" in lowering.explain()
    assert instance.observe() == before or name == "infinite and nan inputs"


class Interpreted:
    """A step that runs through the reference interpreter, from its second call on: then the parameters are bound."""

    def __init__(self, instance: Instance, arguments: tuple[Any, ...], precision: Precision) -> None:
        compiled = mgjit.compile(backend="python", dtype=precision.name)(instance.step)
        self.first_result = compiled(*arguments)
        lowered = compiled.lower(*arguments).lowered
        names = list(inspect.signature(instance.step).parameters)
        self.plan = plan_arguments(names, arguments, frozenset(), precision=precision)
        traced = trace_call(lambda traced_arguments: instance.step(*traced_arguments), self.plan, None)
        assert not traced.trace.new_parameters
        storages = [storage for _, storage in traced.trace.bound_storages]
        self.frame = self.plan.frame()
        self.outputs = [float("nan")] * traced.trace.outputs
        contents: dict[int, list[Any]] = {
            ops.PARAMETER: [storage.data for storage in storages],
            ops.GRADIENT: [storage.grad for storage in storages],
            ops.STATE: [memory_of(state._buffer) for _, state in traced.trace.states],
            ops.INPUT: [self.frame.packed],
            ops.OUTPUT: [self.outputs],
        }
        memory = {
            region: content
            for kind, buffers in contents.items()
            for region, content in by_array(lowered.memory.regions[kind], buffers).items()
        }
        self.result = traced.result
        self.interpreter = Interpreter(lowered.program, memory)

    def __call__(self, *arguments: Any) -> Any:
        assert self.plan.pack(arguments, self.frame)
        self.interpreter.run()
        return self.result(self.outputs)


@pytest.mark.once
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("workload", [name for name in WORKLOADS if name not in BIG])
def test_reference_interpreter_equals_undecorated(workload: str, dtype: str) -> None:
    instance = WORKLOADS[workload]()
    defaults = instance.step.__defaults__ or ()
    calls = [(*arguments, *defaults) for arguments in instance.calls[:FEW_CALLS]]
    step = Interpreted(instance, calls[0], PRECISIONS[dtype])
    got = [snapshot(instance, step.first_result)]
    got += [snapshot(instance, step(*arguments)) for arguments in calls[1:]]
    expected = undecorated if dtype == "float64" else undecorated_in_float32
    assert_same(expected(workload, FEW_CALLS), got)


# ---- corners that the workloads do not reach ---------------------------------------------------------

#: Float and integer inputs whose sum depends on the order, and on Python's compensation since 3.12.
TERMS = [0.1, 3, 0.2, 1e16, 1, -1e16]


def shared_values(pick: Callable[[list[mgjit.Value]], list[tuple[Any, ...]]]) -> Instance:
    """A step over Values that are arguments, one of which (the first) is captured as well."""
    parameters = values(random.Random(6), 3)
    captured = parameters[0]

    def step(a: Any, b: Any, x: Any) -> Any:
        loss = a * b * x + captured * b
        loss.backward()
        a.data -= 0.1 * a.grad
        b.data += 1.0
        captured.data *= 0.5
        return loss

    return Instance(step, pick(parameters), parameters)


def number_step(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Instance:
    """A step over numbers and one parameter, which is also the last argument of `function`."""
    parameter = mgjit.Value(2.0)

    def step(*arguments: Any) -> Any:
        parameter.grad = 0.0
        result, *others = function(*arguments, parameter)
        result.backward()
        return result, others

    return Instance(step, list(calls), [parameter])


CORNERS: dict[str, Factory] = {
    "other Values in every call": lambda: shared_values(
        lambda p: [(p[1], p[2], 1.0), (p[2], p[1], 2.0), (p[1], p[2], 3.0)]
    ),
    "one Value as two arguments": lambda: shared_values(
        lambda p: [(p[1], p[2], 1.0), (p[2], p[1], 2.0), (p[1], p[1], 3.0), (p[2], p[2], 3.0), (p[1], p[2], 4.0)]
    ),
    "a captured Value as argument": lambda: shared_values(
        lambda p: [(p[1], p[2], 1.0), (p[0], p[1], 2.0), (p[1], p[0], 3.0), (p[2], p[1], 4.0)]
    ),
    "a captured Value as the first argument": lambda: shared_values(
        lambda p: [(p[0], p[1], 1.0), (p[1], p[0], 2.0), (p[2], p[1], 3.0), (p[1], p[2], 4.0)]
    ),
    "integer zero, negated": lambda: number_step(lambda x, p: (-x * p, -x, x * -1), (0,), (1,), (0.0,), (-0.0,)),
    "integer zero, subtracted": lambda: number_step(lambda x, p: (p - x, 0 - x, 0.0 * x), (0,), (1,), (-0.0,)),
    "sum of floats": lambda: number_step(
        lambda xs, p: (sum(xs) * p, sum(xs, 0.5), sum(xs[:1]), sum(x * x for x in xs)), ([float(x) for x in TERMS],)
    ),
    "sum of floats and integers": lambda: number_step(
        lambda xs, p: (sum([*xs, 3, *xs, 1]) * p, sum([2, *xs, 10**15])), ([float(x) for x in TERMS],)
    ),
    "sum of floats, then a Value": lambda: number_step(
        lambda xs, p: (sum([*xs, p * 2.0]), sum([p, *xs])), ([float(x) for x in TERMS],)
    ),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_corner(corner: str, backend: str) -> None:
    requires(backend)
    assert_same(run(CORNERS[corner], CALLS), run(CORNERS[corner], CALLS, **BACKENDS[backend]))


def test_comparison_sees_signed_zeros_and_last_bits() -> None:
    """The oracle itself: it would be worth nothing if it let these pass."""
    same = Snapshot({"result": [0.0, 1.0, float("nan")]})
    assert compare([same], [Snapshot({"result": [0.0, 1.0, float("nan")]})]) == (3, [])
    for other in ([-0.0, 1.0, float("nan")], [0.0, 1.0 + 2**-52, float("nan")], [0.0, 1.0, 0.0], [0.0, 1.0]):
        assert compare([same], [Snapshot({"result": other})])[1]
    assert list(leaves({"a": mgjit.Value(2.0), "b": [1, (3.0,)]})) == [2.0, 1.0, 3.0]
