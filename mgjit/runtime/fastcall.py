"""A fast call path for one kernel: a Python function generated for the structure of its arguments.

The general path checks the arguments node by node, and the guard entry by entry.  The generated function has all these
checks in one condition, packs all numbers at once, and makes one foreign call:

1. The condition: types and lengths of the arguments, ranges of run-time indices (conditions.py), captured names by
   identity.
2. `struct` packs the numbers, behind the address of the pointer block, into bytes that only this call has.  Arguments
   that are bytes are passed as they are; other buffers are put into the pointer block.
3. A kernel that takes little time, has one result, and gets only bytes is called through `mgjit_short_call`: without
   a lock, with the GIL.  Others are called with the lock of the step; without the GIL, if they take longer.  turn.py
   says why that is safe.
4. What the C function returns is the first output; other results are built from the array of outputs.
5. Numbers of the user's objects are copied in before a long call, and out after it (copies.py); also when something is
   raised in between, once the code has run.

Whatever does not meet the condition, cannot be packed or is refused by the gate takes the general path, which handles
every case and every error.  So a condition may be too strict but never too lax, and what it has checked must not be
able to change before it is used: that is why indices are taken from numbers, bytes, and private lists and copies.
"""

from __future__ import annotations

import math
import os
import struct
import sys
from array import array
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter, Signature
from operator import itemgetter
from textwrap import indent
from types import CellType, FunctionType
from typing import Any

from ..base.ffi import PYPY, PointerBlock
from ..compiler.codegen.entries import MOST_INPUTS
from ..tracing.call.results import ConstantResult, OutputResult
from ..tracing.source.debugging import is_debugged
from ..tracing.surroundings.guard import Guard
from . import vectorcall
from .conditions import ConditionWriter, Unsuitable
from .kernel import Kernel
from .turn import Turn
from .undo import Undo
from .vectorcall import expect, quick_call, result_in_c
from .vectorcall_copies import described

#: A kernel that takes no longer than this may keep the GIL: waking another thread takes about as long, and getting the
#: GIL back from it may take a hundred times as long.
_SHORT_SECONDS = 50e-6
#: How many calls are timed before a kernel gets its function; more, if it may be short when its memory is near and
#: nothing else runs.
_TIMED_CALLS, _MORE_CALLS = 3, 20
#: The file name of the generated code: inside the package, so that error locations skip its frames.
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<generated call>")
#: With more conditions than this, compiling the function takes longer than it saves.
_MOST_CONDITIONS = 500
#: The name of the function in its source; a parameter may have the same name.
_NAME = "call"


def fast_call(
    function: Callable[..., Any],
    kernel: Kernel,
    guard: Guard,
    signature: Signature,
    fallback: Callable[..., Any],
    turn: Turn,
    counter: array[int],
    tracing: Collection[int],
    siblings: list[Any],
    other_path: Callable[..., Any],
) -> Callable[..., Any] | None:
    """Generate the function; None if calls of this structure must take the general path.

    Args:
        function: of the step.
        fallback: the general path; takes the arguments by position.
        counter: is incremented by each call.
        tracing: the threads that are tracing; not empty while a trace is under way.
        siblings: the quick calls of the step.
        other_path: makes a call that is one for another path, with arguments by position.
    """
    library = kernel.code.library
    parameters = list(signature.parameters.values())
    plain = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    if (
        library is None
        or guard.expired
        or kernel.writes is not None
        or len(kernel.plan.buffers) + (kernel.draws is not None) >= MOST_INPUTS
        or any(p.kind not in plain for p in parameters)
    ):
        return None
    writer = _Writer(kernel, [parameter.name for parameter in parameters])
    writer.other_path = other_path
    try:
        for parameter, node in zip(parameters, kernel.plan.nodes):
            writer.visit(node, parameter.name)
    except Unsuitable:
        return None
    for question, answer in zip(kernel.plan.questions, kernel.plan.answers):
        if answer is not None:
            writer.conditions.append(question.condition(answer, writer.parameters, writer.name_of))
    if len(writer.conditions) > _MOST_CONDITIONS:
        return None
    namespace = getattr(function, "__globals__", {})
    of_guard = guard.conditions(writer.name_of, writer.variable_of, namespace, writer.parameters)
    writer.conditions += of_guard
    writer.conditions.append(f"not {writer.name_of(tracing)}")
    writer.conditions.append(f"({writer.name_of(sys.gettrace)}() is None or not {writer.name_of(is_debugged)}())")
    brief = is_short(kernel, turn)
    short = brief and not writer.puts
    quick = brief or _is_quick(kernel, turn)
    if quick:
        kernel.awaits_c = expect(writer, of_guard, counter)
    else:
        turn.expect_long_calls()
    own = kernel.outputs[:]
    block = kernel.call_block(turn.gate, counter, own if brief and not PYPY else None)
    enter = library.caller("mgjit_short_call" if short else "mgjit_call", holds_gil=_takes_little_time(kernel))
    if enter is None:
        body = writer.body_without_addresses(library.bind("mgjit_counted_step", block), block, turn, counter)
    elif int(float(block.location())) == block.location():
        body = writer.body(enter, block, turn, short, quick, counter)
    else:
        return None
    source = writer.function(parameters, body, fallback)
    name = getattr(function, "__name__", type(function).__name__)
    made = _in_namespace(name, source, namespace, writer.names, writer.cells)
    made.block = block  # type: ignore[attr-defined]  # known to the function by its address only

    def of_condition(condition: str) -> Callable[..., Any]:
        text = f"def {_NAME}():\n    return (\n        {condition}\n    )"
        return _in_namespace(name, text, namespace, writer.names, writer.cells)

    if not quick or enter is None:
        return made
    if not short:  # between what this function puts into its block and its call, there may be quick calls
        enter, block = library.caller("mgjit_short_call", True), kernel.call_block(turn.gate, counter, own)
    times = guard.times, guard.pace.next
    by_c = quick_call(
        writer, of_guard, made, of_condition, namespace, enter, block, tracing, siblings, times, turn.gate, own,
        None if kernel.verdict < 0 else Undo(kernel).in_c(counter),
    )  # fmt: skip
    return by_c or made


def is_worth_it(kernel: Kernel) -> bool:
    """Whether there have been enough calls to make generating a function worthwhile.

    Not while all calls have been undone, so that the numbers are still in the user's objects.
    """
    is_clear = not _SHORT_SECONDS < kernel.seconds_a_call < 4 * _SHORT_SECONDS
    return kernel.timed_calls >= (_TIMED_CALLS if is_clear else _MORE_CALLS) and kernel.move is None


def is_short(kernel: Kernel, turn: Turn) -> bool:
    """Whether calls may hold the GIL and need no lock, unless they have buffers to put into the block."""
    # Copies and draws could not be undone if the gate then refused.
    simple = isinstance(kernel.result, (OutputResult, ConstantResult)) and kernel.copies is None and kernel.verdict < 0
    return simple and _is_brief(kernel, turn)


def _is_quick(kernel: Kernel, turn: Turn) -> bool:
    """Whether quick calls copy all that there is to copy, and make the result."""
    can_be = vectorcall.extension.is_possible and result_in_c(kernel) is not None
    return can_be and _is_brief(kernel, turn) and described(kernel.copies) is not None


def _is_brief(kernel: Kernel, turn: Turn) -> bool:
    return kernel.draws is None and _takes_little_time(kernel) and not turn.has_long_calls


def _takes_little_time(kernel: Kernel) -> bool:
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return bool(has_gil and kernel.seconds_a_call <= _SHORT_SECONDS)


def _in_namespace(
    name: str, source: str, namespace: dict[str, Any], names: dict[str, Any], cells: dict[str, CellType]
) -> Callable[..., Any]:
    """The function that `source` defines, with these globals, and with `names` and `cells` as its closure.

    It thus reads what the step captures as cheaply as the step itself.
    """
    around = f"def make({', '.join([*names, *cells])}):\n{indent(source, '    ')}\n    return {_NAME}\n"
    module: dict[str, Any] = {}
    exec(compile(around, _FILE, "exec"), module)  # noqa: S102 - the point of this file
    make = FunctionType(module["make"].__code__, namespace)
    made = make(*names.values(), *cells.values())
    closure = zip(made.__code__.co_freevars, made.__closure__ or ())
    shared = tuple(cells.get(name, cell) for name, cell in closure)
    code = made.__code__.replace(co_name=name)
    found = FunctionType(code, namespace, name, made.__defaults__, shared)
    found.__module__ = __name__  # so that traces treat it as mgjit's own code
    found.__qualname__ = name  # appears in Python's error messages
    return found


class _Writer(ConditionWriter):
    """Writes the function.

    Attributes:
        packing: expression of the packed numbers.
        other_path: makes a call that is one for another path.
    """

    packing = ""

    other_path: Callable[..., Any]

    def _called(self, function: Callable[..., Any]) -> str:
        """A call with the same arguments."""
        return f"{self.name_of(function)}({', '.join(self.parameters)})"

    def function(self, parameters: Sequence[Parameter], body: Sequence[str], fallback: Callable[..., Any]) -> str:
        """The source of the function."""
        packed = self.own("packed")
        condition = "\n            and ".join(self.conditions)
        lines = [
            f"def {_NAME}({self._head(parameters)}):",
            *([f"    nonlocal {', '.join(self.cells)}"] if self.cells else []),  # a condition may count in one
            "    try:",
            "        if (",
            f"            {condition}",
            "        ):",
            *(f"            {line}" for line in self.unpackings),
            f"            {packed} = {self.packing}",
            "        else:",
            f"            {packed} = None",
            f"    except {self.name_of(Exception)}:",
            f"        {packed} = None",
            f"    if {packed} is not None:",
            *(f"        {line}" for line in body),
            f"    return {self._called(fallback)}",
        ]
        return "\n".join(lines)

    def body(
        self,
        enter: Callable[..., float],
        block: PointerBlock,
        turn: Turn,
        short: bool,
        quick: bool,
        counter: array[int],
    ) -> list[str]:
        """The statements that run once the numbers are packed.

        Args:
            short: whether the call needs no turn. quick: whether quick calls may come in between.
        """
        packed, number = self.own("packed"), self.own("number")
        precision, parts, end = self.kernel.plan.precision, ["d"], 0
        for place, size in self.tables:
            parts += [f"{place - end}{precision.format}", f"{size}s"]
            end = place + size // precision.size
        form = struct.Struct("".join([*parts, f"{self.kernel.plan.packed_size - end}{precision.format}"]))
        numbers = ", ".join([self.name_of(float(block.location())), *self.numbers])
        self.packing = f"{self.name_of(form.pack)}({numbers})"
        call = f"{number} = {self.name_of(enter)}({', '.join([packed, *self.pointers])})"
        if short:
            accepted = f"{number} == {number} or {self.name_of(math.copysign)}(1.0, {number}) > 0.0"
            return [call, f"if {accepted}:", f"    return {self._result(number)}"]
        puts = [f"{self.name_of(block.set)}({slot}, {local})" for slot, local in self.puts]
        lines = [*puts, *self._with_copies(call, counter, self._result(number))]
        return self._in_turn(turn, self._closed(turn, lines) if quick and self.kernel.copies is not None else lines)

    def body_without_addresses(
        self, enter: Callable[[], int], block: PointerBlock, turn: Turn, counter: array[int]
    ) -> list[str]:
        """As `body`, for PyPy, where bytes have no fixed address: everything is copied into the kernel's memory."""
        packed, kernel = self.own("packed"), self.kernel
        self.packing = f"({''.join(f'{number}, ' for number in self.numbers)})"
        frame, put = self.name_of(kernel.frame.packed), self.name_of(block.set)
        passed = [(kernel.slot("input", k + 1), local) for k, local in enumerate(self.pointers) if local != "None"]
        result = self._result(f"{self.name_of(kernel.outputs)}[0]")
        call = self._with_copies(f"{self.name_of(enter)}()", counter, result)
        puts = [f"{put}({slot}, {local})" for slot, local in [*passed, *self.puts]]
        return self._in_turn(turn, _inside(f"if {self.name_of(_store)}({frame}, {packed}):", [*puts, *call]))

    def _in_turn(self, turn: Turn, lines: list[str]) -> list[str]:
        return _inside(f"with {self.name_of(turn.lock)}:", lines)

    def _closed(self, turn: Turn, lines: list[str]) -> list[str]:
        """With the gate closed, so that no quick call of another thread uses the same memory in between."""
        gate, was = f"{self.name_of(turn.gate)}[0]", self.own("was")
        opened = f"    {gate} = {was} or {self.name_of(turn)}.has_long_calls"
        return [f"{was} = {gate}", *_inside("try:", [f"{gate} = 1", *lines]), "finally:", opened]

    def _with_copies(self, call: str, counter: array[int], result: str) -> list[str]:
        """A call and the return of its result, with the copying and drawing around it.

        Numbers are owed from before the call until they have been copied back; recovery is attempted twice, as in
        interruption.py.
        """
        copies, draw = self.kernel.copies, self.kernel.draw
        draws = [] if draw is None else [f"{self.name_of(draw)}()"]  # last, when nothing can refuse the call any more
        undone: list[str] = []
        if self.kernel.verdict >= 0:
            undo = Undo(self.kernel)
            draws = [*undo.saving(self.name_of), *draws]
            undone = [
                f"if {self.name_of(self.kernel.outputs)}[{self.kernel.verdict}] != 0.0:",
                f"    return {self.name_of(undo.of_counted(counter))}()",
            ]
            if self.kernel.told:  # another path may be the one
                undone[1:] = [f"    {self.name_of(undo.of_counted(counter))}()"]
                undone.append(f"    return {self._called(self.other_path)}")
        if copies is None:
            return [*draws, call, *undone, f"return {result}"]
        owed, show = self.name_of(copies.owed), self.name_of(copies.show)
        undone[1:] = [f"    {owed}[0] = -1", *undone[1:]] if undone else []
        lines = [f"{owed}[0] = {self.name_of(counter)}[0]", call, *undone, f"{show}()", f"{owed}[0] = -1"]
        recovering = [f"    {self.name_of(copies.recover)}()", "    raise"]
        for _ in range(2):
            lines = [*_inside("try:", lines), f"except {self.name_of(BaseException)}:", *recovering]
        indices = self._indices(copies.inputs) if copies.inputs else ""
        fill = f"{self.name_of(copies.fill)}({indices})"
        kept = "".join(f"{path.expression(self.parameters, self.name_of)}, " for path in copies.told.paths)
        keeping = [f"{self.name_of(copies.told.given)}[:] = {kept}"] if kept else []
        accepted = " and ".join([f"{owed}[0] < 0", fill, *self.afterwards])
        return _inside(f"if {accepted}:", [*keeping, *draws, *lines, f"return {result}"])

    def _indices(self, inputs: Sequence[int]) -> str:
        """Some of the packed numbers of the call."""
        packed, precision = self.own("packed"), self.kernel.plan.precision
        if PYPY:
            return f"{self.name_of(itemgetter(*inputs, inputs[0]))}({packed})"
        ends = [8, *(8 + (place + 1) * precision.size for place in inputs)]  # the address of the block comes first
        gaps = [8 + place * precision.size - end for place, end in zip(inputs, ends)]
        form = struct.Struct("=8x" + "".join(f"{gap}x{precision.format}" for gap in gaps))
        return f"{self.name_of(form.unpack_from)}({packed})"

    def _head(self, parameters: Sequence[Parameter]) -> str:
        parts = []
        for parameter in parameters:
            optional = parameter.default is not Parameter.empty
            parts.append(f"{parameter.name}={self.name_of(parameter.default)}" if optional else parameter.name)
        positional = sum(parameter.kind is Parameter.POSITIONAL_ONLY for parameter in parameters)
        if positional:
            parts.insert(positional, "/")
        return ", ".join(parts)

    def _result(self, number: str) -> str:
        result = self.kernel.result
        if isinstance(result, OutputResult):
            return number if result.make is None else f"{self.name_of(result.make)}({number})"
        return result.expression(self.name_of(self.kernel.outputs), self.name_of, self.parameters)


def _inside(head: str, lines: Sequence[str]) -> list[str]:
    return [head, *(f"    {line}" for line in lines)]


def _store(packed: array[float], numbers: Sequence[Any]) -> bool:
    try:
        for place, number in enumerate(numbers):
            packed[place] = number
    except (TypeError, OverflowError):
        return False
    return True
