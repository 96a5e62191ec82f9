"""Runs a program's text undecorated, compiled and interpreted, and compares every bit.

`reference(text)` gives a list of snapshots, one a call: the result, then `data` and `grad` of every parameter,
then the state.  The other functions give the same for a compiled form of the step.  Ways whose name ends in 32 are
float32 steps, and compared with the undecorated program over numbers that round themselves.  Ways whose name begins
with "kept" are steps with `grads=False`, whose gradients are not compared.
"""

from __future__ import annotations

import inspect
import random
import re
import struct
import tempfile
import warnings
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit.compiler.codegen.idle import Idle, idle_nodes
from mgjit.compiler.pipeline.pipeline import Lowered, lower
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.leaks import PlainCall
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision, float32
from mgjit.engine.state import zero_array
from mgjit.errors import ColumnError, MismatchWarning
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.opcodes import GRADIENT, INPUT, OUTPUT, PARAMETER, STATE
from mgjit.ir.program import Loop
from mgjit.ir.trace import InputRegion
from mgjit.memory.buffers import Move, ParameterStorage, memory_of
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call
from tests.fuzz.exported import exporting
from tests.lowering import by_array
from tests.single import single_precision, with_singles

#: Ways whose results belong to a part of a call, or are columns.
_WITHOUT_RESULTS = ("phases", "loop", "kept-loop")

Snapshot = list[Any]
Call = Callable[[Any, tuple[Any, ...]], Any]

#: What plain-number Python arithmetic raises where C has an answer; mgjit promises nothing for such steps.
UNDEFINED = (ZeroDivisionError, OverflowError)


#: Between calls, gradients that a step with `grads=False` has not written are not defined.
_HOST_READS_GRADIENTS = re.compile(r"lambda values, states: .*\.grad")


class Loaded(NamedTuple):
    """What a program's text defines, all of it new."""

    steps: list[Any]
    values: list[Any]
    states: list[Any]
    calls: list[tuple[Any, ...]]
    order: list[int]
    host: list[Callable[[Any, Any], Any]]


def load(text: str) -> Loaded:
    """Execute a program's text; `make()` may return one step or several."""
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)  # noqa: S102 - the program under test
    step, values, states = names["make"]()
    calls = names["CALLS"]
    order = names.get("ORDER", [0] * len(calls))
    host = names.get("HOST", [lambda *_: None] * len(calls))
    return Loaded(step if isinstance(step, list) else [step], values, states, calls, order, host)


def argument_values(arguments: Any) -> list[Any]:
    """The Values among the arguments of a call."""
    if isinstance(arguments, mgjit.Value):
        return [arguments]
    parts = arguments if isinstance(arguments, (list, tuple)) else ()
    return [value for part in parts for value in argument_values(part)]


def bits(thing: Any) -> Any:
    """Nested results with every number as its 64 bits, all nans alike."""
    if isinstance(thing, mgjit.Value):
        return bits(thing.data)
    if isinstance(thing, (bool, int, float)):
        number = float(thing)
        return "nan" if number != number else struct.pack(">d", number).hex()
    if isinstance(thing, (list, tuple, array, bytes)):  # a returned buffer comes back as a list
        return [bits(part) for part in thing]
    if isinstance(thing, dict):
        return {key: bits(part) for key, part in thing.items()}
    return thing


def run_program(
    text: str,
    call: Callable[[Any], Callable[..., Any]],
    results: bool = True,
    dtype: str = "float64",
    gradients: bool = True,
) -> list[Snapshot]:
    program = load(text)
    functions = [call(step) for step in program.steps]
    snapshots = []
    for arguments, number, host in zip(program.calls, program.order, program.host):
        host(program.values, program.states)
        if dtype == "float32":  # memory that no float32 step has used yet still holds float64 numbers
            _round_memory(program.values + argument_values(arguments), program.states)
        result = functions[number](*arguments)
        values = program.values + argument_values(arguments)
        snapshots.append(
            [
                bits(_in_precision(result, dtype)) if results else None,
                bits([v.data for v in values]),
                bits([v.grad for v in values]) if gradients else None,
                bits([list(s) for s in program.states]),
            ]
        )
    return snapshots


def _in_precision(result: Any, dtype: str) -> Any:
    """A result with its numbers rounded: an argument that a float32 step returns is the caller's own object."""
    if dtype == "float64" or isinstance(result, (bool, str, bytes, mgjit.Value)) or result is None:
        return result
    if isinstance(result, dict):
        return {key: _in_precision(part, dtype) for key, part in result.items()}
    if isinstance(result, (list, tuple, array)):
        return [_in_precision(part, dtype) for part in result]
    return float32(result)


def _round_memory(values: list[Any], states: list[Any]) -> None:
    for value in values:
        value.data, value.grad = float32(value.data), float32(value.grad)
    for state in states:
        state[:] = [float32(number) for number in state]


def reference(text: str, results: bool = True, gradients: bool = True) -> list[Snapshot] | None:
    """What the undecorated step does; None when Python raises where C does not."""
    try:
        return run_program(text, lambda step: step, results, gradients=gradients)
    except UNDEFINED:
        return None


def single_reference(text: str, results: bool = True, gradients: bool = True) -> list[Snapshot] | None:
    """What the undecorated step does in float32."""
    with single_precision():
        try:
            return run_program(text, with_singles, results, "float32", gradients)
        except UNDEFINED:
            return None


def expected(text: str, way: str) -> list[Snapshot] | None:
    """What a way of running a program must give; None when it cannot be compared."""
    gradients = not way.startswith("kept")
    if not gradients and (len(load(text).steps) > 1 or _HOST_READS_GRADIENTS.search(text)):
        return None
    if way.startswith("phases") and ".backward()" not in text:
        return None  # refused: nothing tells its forward part from its update
    undecorated = single_reference if way.endswith("32") else reference
    return undecorated(text, results=not way.startswith(_WITHOUT_RESULTS), gradients=gradients)


def compiled(text: str, **options: Any) -> list[Snapshot]:
    """What the compiled step does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call, gradients = mgjit.compile(**options), options.get("grads", True)
        return run_program(text, call, dtype=options.get("dtype", "float64"), gradients=gradients)


def exported(text: str, compiler: str, **options: Any) -> list[Snapshot]:
    """What the compiled step does, of which each call is also made by exported C."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = exporting(compiler, compiler="tcc", cache=False, background=False, **options)
        return run_program(text, call, dtype=options.get("dtype", "float64"))


def phased(text: str, every: int = 1, **options: Any) -> list[Snapshot]:
    """The phases called one by one, in every `every`-th call; without results, which belong to different phases."""

    def by_phases(step: Any) -> Callable[..., None]:
        compiled_step = mgjit.compile(**options)(step)
        numbers = count(1)

        def call(*arguments: Any) -> None:
            if next(numbers) % every:
                compiled_step(*arguments)
                return
            compiled_step.forward(*arguments)
            compiled_step.backward()
            compiled_step.update()

        return call

    return run_program(text, by_phases, False, options.get("dtype", "float64"))


def swapped(text: str) -> list[Snapshot]:
    """Calls are plain Python, then quick code, then better code, which take over after random calls."""
    draw = random.Random(text)

    def with_swaps(step: Any) -> Callable[..., Any]:
        compiled_step = mgjit.compile(step, cache=False)

        def call(*arguments: Any) -> Any:
            result = compiled_step(*arguments)
            chosen = draw.randrange(4)
            if chosen == 0:
                for pending in compiled_step._kernels._awaited.pending():
                    pending.job.wait()
            elif chosen == 1:
                compiled_step.wait()
            return result

        return call

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", MismatchWarning)
        patch.setenv("MGJIT_VERIFY", "auto")  # better code is compared with the code that it replaces
        patch.setenv("MGJIT_BACKGROUND", "1")
        patch.setattr("mgjit.kernels.kernels.SECONDS_TO_DETACH", 0.0)
        return run_program(text, with_swaps)


def again(text: str, **options: Any) -> list[Snapshot]:
    """What a process does that finds the code of another one, which made the calls in another order."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_CACHE_DIR", directory)
        for is_first in (True, False):
            patch.setattr("mgjit.compiler.build.build._shared", {})
            patch.setattr("mgjit.compiler.build.relatives._families", {})
            patch.setattr("mgjit.compiler.build.relatives._families_of", {})
            patch.setattr("mgjit.compiler.roll.kept._kept", OrderedDict())
            if is_first:
                program = load(text)
                steps = [mgjit.compile(step, **options) for step in program.steps]
                calls = list(zip(program.order, program.calls))
                random.Random(text).shuffle(calls)
                for number, arguments in calls:
                    steps[number](*arguments)
        return compiled(text, **options)


def looped(text: str, **options: Any) -> list[Snapshot]:
    """Each call as a loop of one row; without results, which are columns."""

    def by_rows(step: Any) -> Callable[..., None]:
        compiled_step = mgjit.compile(**options)(step)

        def call(*arguments: Any) -> None:
            if arguments:
                compiled_step.loop(*([argument] for argument in arguments))
            else:
                compiled_step()

        return call

    return run_program(text, by_rows, False, options.get("dtype", "float64"))


def in_turn(text: str, **options: Any) -> list[Snapshot | None]:
    """All calls as one loop, after they have been made one by one, which makes their kernels; the last snapshot.

    Nothing is looked at where calls are of several steps, have no arguments, or write them, or Python does something
    between them.
    """
    program = load(text)
    nothing: list[Snapshot | None] = [None] * len(program.calls)
    if len(program.steps) > 1 or not all(program.calls) or "\nHOST = " in text:
        return nothing
    compiled_step = mgjit.compile(program.steps[0], **options)
    values = program.values + [value for arguments in program.calls for value in argument_values(arguments)]
    before = [[(v.data, v.grad) for v in values], [list(s) for s in program.states], bits(program.calls)]
    for arguments in program.calls:
        compiled_step(*arguments)
    for value, numbers in zip(values, before[0]):
        value.data, value.grad = numbers
    for state, numbers in zip(program.states, before[1]):
        state[:] = numbers
    if bits(program.calls) != before[2]:
        return nothing
    try:
        compiled_step.loop(*map(list, zip(*program.calls)))
    except ColumnError:  # rows of different kinds of numbers
        return nothing
    values, states = program.values + argument_values(program.calls[-1]), program.states
    gradients = bits([v.grad for v in values]) if options.get("grads", True) else None
    return [*nothing[1:], [None, bits([v.data for v in values]), gradients, bits([list(s) for s in states])]]


def rotated(text: str, **options: Any) -> list[Snapshot | None]:
    """The same, in loops that are rotated wherever they can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgjit.compiler.schedule.rotate.is_worth_it", lambda saved, scratch: saved > 0)
        patch.setattr("mgjit.compiler.schedule.straighten.MOST_RECORDS", 0)  # a step without loops is not rotated
        return in_turn(text, **options)


def packed(text: str, **options: Any) -> list[Snapshot | None]:
    """The same, in loops without loops inside, whose statements are lanes of vectors wherever they can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgjit.compiler.schedule.straighten.MOST_RECORDS", 1000)
        patch.setattr("mgjit.compiler.schedule.straighten.MOST_STATEMENTS", 1000)
        patch.setattr("mgjit.compiler.schedule.superwords._MOST", 1000.0)
        return in_turn(text, **options)


#: Loops that were emitted while `leaving_out` was in force, and those of them of which a zero leaves something out.
idle_loops: Counter[str] = Counter()


def leaving_out(run: Callable[..., Any], text: str, **options: Any) -> Any:
    """`run(text, ...)` with code in which rows that change nothing are left out, however little that saves."""

    def counted(loop: Loop) -> Idle | None:
        found = idle_nodes(loop)
        idle_loops["idle" if found is not None else "others"] += 1
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgjit.compiler.codegen.function.idle_nodes", counted)
        patch.setattr("mgjit.compiler.codegen.idle._LEAST", 2)
        patch.setattr("mgjit.compiler.codegen.idle._FEWEST", 2)
        patch.setattr("mgjit.compiler.schedule.straighten.MOST_RECORDS", 0)  # a step without loops has no rows
        return run(text, cache=False, grads=False, **options)


def interpreted(
    text: str, precision: Precision = FLOAT64, processor: Processor | None = None, grads: bool = True
) -> list[Snapshot]:
    """What the reference interpreter makes of the Program.

    Args:
        text: the program.
        precision: of its numbers.
        processor: that the Program is scheduled for.
        grads: whether gradients are compared.
    """
    lowering = partial(lower, processor=processor, grads=grads)
    return run_program(text, lambda step: Interpreted(step, precision, lowering), dtype=precision.name, gradients=grads)


class Interpreted:
    """Calls a step by interpreting its Program: traced at the first call, then only run."""

    def __init__(self, step: Any, precision: Precision, lowering: Callable[..., Lowered]) -> None:
        self.step, self.precision, self.lowering = step, precision, lowering
        self.interpreter: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self.interpreter is None or not self.plan.pack(arguments, self.plan.frame()):
            try:
                self.build(arguments)
            except PlainCall:  # such as one that returns a slice of an argument
                self.interpreter = None
                return mgjit.compile(dtype=self.precision.name, backend="python")(self.step)(*arguments)
        frame = self.plan.frame()
        assert self.plan.pack(arguments, frame)
        for index, value in enumerate(frame.values):
            self.slots.data[index], self.slots.grad[index] = value.data, value.grad
        for (_, region), content in zip(self.memory.regions[INPUT], [frame.packed, *frame.buffers]):
            self.interpreter.memory[region] = content
        self.run_once()
        for index, value in enumerate(frame.values):
            value.data, value.grad = self.slots.data[index], self.slots.grad[index]
        return self.result(self.outputs)

    def run_once(self) -> None:
        """Run the Program as a step does."""
        self.interpreter.run()

    def build(self, arguments: tuple[Any, ...]) -> None:
        names = list(inspect.signature(self.step).parameters)
        self.plan = plan_arguments(names, arguments, frozenset(), precision=self.precision)
        self.slots = ParameterStorage(len(self.plan.values), self.precision)
        traced = trace_call(lambda made: self.step(*made), self.plan, self.slots)
        trace, self.result = traced.trace, traced.result
        inputs = [InputRegion(0, self.plan.packed_size, self.precision.format)]
        inputs += [InputRegion(node.place, node.size, node.format) for node in self.plan.buffers]
        lowered = self.lowering(trace, inputs)
        self.memory = lowered.memory
        move = Move.of_trace(trace, self.memory.layouts)
        move.fill()
        move.commit()
        storages = [move.storage] if trace.new_parameters else []
        storages += [storage for _, storage in trace.bound_storages]
        contents: dict[Any, Any] = {}
        for kind, buffers in (
            (PARAMETER, [storage.data for storage in storages]),
            (GRADIENT, [storage.grad for storage in storages]),
            (STATE, [memory_of(state._buffer) for _, state in trace.states]),
        ):
            contents.update(by_array(self.memory.regions[kind], buffers))
        self.outputs = zero_array(trace.outputs, self.precision)
        contents[self.memory.regions[OUTPUT][0][1]] = self.outputs
        self.interpreter = self.executor(lowered, contents)

    def executor(self, lowered: Lowered, contents: dict[Any, Any]) -> Any:
        """What runs the Program over the memory `contents`, by array."""
        return Interpreter(lowered.program, contents)


def difference(expected: list[Snapshot], found: Sequence[Snapshot | None]) -> str:
    """The first place where two runs differ, in words; empty when they agree."""
    for number, (mine, theirs) in enumerate(zip(expected, found)):
        if theirs is None:  # nothing was looked at
            continue
        for name, a, b in zip(("result", "data", "grad", "state"), mine, theirs):
            if a != b:
                return f"call {number}, {name}:{_first(a, b)}"
    return ""


def _first(a: Any, b: Any) -> str:
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next(f"[{i}]{_first(x, y)}" for i, (x, y) in enumerate(zip(a, b)) if x != y)
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return next(f"[{key!r}]{_first(a[key], b[key])}" for key in a if a[key] != b[key])
    return f" {_readable(a)} expected, {_readable(b)} found"


def _readable(bit_pattern: Any) -> str:
    if isinstance(bit_pattern, str) and len(bit_pattern) == 16:
        return repr(struct.unpack(">d", bytes.fromhex(bit_pattern))[0])
    return repr(bit_pattern)


#: Every way of running a program that must agree with `reference`.
WAYS: dict[str, Callable[[str], Any]] = {
    "tcc": lambda text: compiled(text, compiler="tcc", cache=False),
    "default": lambda text: compiled(text, cache=False),
    "gcc": lambda text: compiled(text, compiler="gcc", cache=False),
    "gcc0": lambda text: compiled(text, compiler="gcc", cache=False, optimisation="-O0"),
    "clang": lambda text: compiled(text, compiler="clang", cache=False),
    "python": lambda text: compiled(text, backend="python"),
    "interpreter": interpreted,
    "swapped": swapped,
    "again": lambda text: again(text, compiler="tcc"),
    "loop": lambda text: looped(text, compiler="tcc", cache=False),
    "loop-in-turn": lambda text: in_turn(text, compiler="tcc", cache=False),
    "loop-gcc": lambda text: in_turn(text, compiler="gcc", cache=False),
    "loop-rotated": lambda text: rotated(text, compiler="gcc", cache=False),
    "loop-packed": lambda text: packed(text, compiler="gcc", cache=False),
    "loop-packed-clang": lambda text: packed(text, compiler="clang", cache=False),
    "loop-rotated-tcc": lambda text: rotated(text, compiler="tcc", cache=False),
    "loop-python": lambda text: looped(text, backend="python"),
    "loop32": lambda text: looped(text, compiler="tcc", cache=False, dtype="float32"),
    # Without -march=native: vectors of two float64, or four float32.
    "narrow": lambda text: compiled(text, compiler="gcc", cache=False, optimisation="-O2"),
    "narrow-clang": lambda text: compiled(text, compiler="clang", cache=False, optimisation="-O2"),
    "narrow32": lambda text: compiled(text, compiler="gcc", cache=False, optimisation="-O2", dtype="float32"),
    **{
        f"lanes-{lanes}": partial(interpreted, processor=Processor(lanes, registers))
        for lanes, registers in ((2, 16), (4, 16), (8, 32), (16, 32))
    },
    "lanes-4-of-32": partial(interpreted, precision=FLOAT32, processor=Processor(4, 16)),
    "lanes-16-of-32": partial(interpreted, precision=FLOAT32, processor=Processor(16, 32)),
    "kept": lambda text: compiled(text, cache=False, grads=False),
    "kept-tcc": lambda text: compiled(text, compiler="tcc", cache=False, grads=False),
    "kept-lanes": partial(interpreted, processor=Processor(4, 16), grads=False),
    "kept-idle": lambda text: leaving_out(compiled, text, compiler="gcc"),
    "kept-idle-clang": lambda text: leaving_out(compiled, text, compiler="clang"),
    "kept-idle-tcc": lambda text: leaving_out(compiled, text, compiler="tcc"),
    "kept-idle32": lambda text: leaving_out(compiled, text, compiler="tcc", dtype="float32"),
    "kept-loop-idle": lambda text: leaving_out(rotated, text, compiler="gcc"),
    "kept-loop-idle-tcc": lambda text: leaving_out(rotated, text, compiler="tcc"),
    "kept32": lambda text: compiled(text, cache=False, grads=False, dtype="float32"),
    "phases": lambda text: phased(text, backend="python"),
    "phases-tcc": lambda text: phased(text, every=2, compiler="tcc", cache=False),
    "tcc32": lambda text: compiled(text, compiler="tcc", cache=False, dtype="float32"),
    "default32": lambda text: compiled(text, cache=False, dtype="float32"),
    "gcc32": lambda text: compiled(text, compiler="gcc", cache=False, dtype="float32"),
    "clang32": lambda text: compiled(text, compiler="clang", cache=False, dtype="float32"),
    "python32": lambda text: compiled(text, backend="python", dtype="float32"),
    "interpreter32": lambda text: interpreted(text, FLOAT32),
    "export": lambda text: exported(text, "tcc"),
    "export-gcc": lambda text: exported(text, "gcc"),
    "export-clang32": lambda text: exported(text, "clang", dtype="float32"),
    "export32": lambda text: exported(text, "tcc", dtype="float32"),
    "phases32": lambda text: phased(text, backend="python", dtype="float32"),
}


def check(text: str, way: str) -> str:
    """How `way` differs from the undecorated program; empty when it does not, or cannot be compared."""
    wanted = expected(text, way)
    return "" if wanted is None else difference(wanted, WAYS[way](text))
