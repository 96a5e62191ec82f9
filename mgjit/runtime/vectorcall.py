"""Calls of short kernels by a small C extension, where CPython's headers are there: no frame of Python, no ctypes.

1. A step that has made many quick calls asks for the extension.  It is looked up in the disk cache, by source and
   SOABI; else a thread compiles it, once for all processes.  Until it is there, and wherever it cannot be, everything
   stays as it is.
2. `quick_call` makes a callable of it for one kernel.  Arguments are numbers, short lists or tables of them, bytes and
   other buffers, and constants; what is compared by identity is compared in C, and all other conditions are one Python
   function.  Of indices in buffers only those in bytes are looked at: nobody can change them.  Numbers in the user's
   objects are copied in C as well where they lie in the usual places (vectorcall_copies.py).
3. What this callable does not take, it offers to the quick calls of the step for other structures, such as other
   lengths, that the step has chosen before; else it passes it on to the generated function of fastcall.py, which it
   stands for.

It is not used on PyPy, whose calls are quick, nor in builds of CPython without the GIL, where a call could not keep
others from running.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sysconfig
from array import array
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any

from ..base import ffi, settings
from ..base.threads import OwnThread
from ..compiler.cache.about import NAME as ABOUT
from ..compiler.cache.about import about
from ..compiler.cache.entry import Entry
from ..compiler.cache.key import entry_key, machine
from ..compiler.cache.store import open_store
from ..compiler.toolchain import build, compilers
from ..engine.precision import FLOAT64
from ..tracing.call.in_c import in_c
from ..tracing.call.inputs import EXACT_INTEGERS, BufferNode, NumberNode, NumbersNode
from ..tracing.call.known import KnownNode, StaticNode, ValueNode
from ..tracing.call.results import CompositeResult, ConstantResult, OutputResult
from ..tracing.surroundings.facts import are_same
from .conditions import ConditionWriter
from .kernel import Kernel
from .vectorcall_copies import described
from .vectorcall_source import SOURCE

#: After so many calls of a step, the extension is asked for.
MANY_CALLS = 5_000
#: The most arguments of a call, the most numbers in them, and the most buffers among them, as in the source.
_MOST, _MOST_NUMBERS, _MOST_BUFFERS = 32, 1024, 4
#: The most parts of a result, as in the source.
_MOST_PARTS = 32
#: So many quick calls of a step are asked one after the other.
_MOST_SIBLINGS = 32

_IDENTITY = re.compile(r"(\w+) is (\w+)")
_ENTRY = re.compile(r"(\w+)\['(\w+)'\] is (\w+)")
_EQUALITY = re.compile(r"(\w+) == (\w+)")
_ELEMENTS = re.compile(r"(\w+)\((\w+), (\w+)\)")
_ELEMENT = re.compile(r"(\w+)\[\d+\] is \w+")
_COUNTDOWN = re.compile(r"\(\((\w+) := \1 - 1\) >= 0 or (\w+)\(\)\)")


class Extension:
    """The extension of this process.

    Attributes:
        make: makes a quick call of its parts; None as long as there is none.
        floats: makes the bytes of an array of a list of floats, and None of others; None as long as there is none.
        table: does so for nested lists of a shape (`NumbersNode.packed`); None as long as there is none.
        is_possible: whether there is, or may be one.
        asked_after: so many calls of a step, where there are known to be many more; None for MANY_CALLS.
    """

    def __init__(self) -> None:
        self._include = include = sysconfig.get_paths().get("include", "")
        has_headers = os.path.isfile(os.path.join(include, "Python.h")) and len(include.split()) == 1
        free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        self.asked_after: int | None = None
        self.make: Callable[[tuple[Any, ...]], Callable[..., Any]] | None = None
        self.floats: Callable[[list[Any]], bytes | None] | None = None
        self.table: Callable[[tuple[Any, ...]], bytes | None] | None = None
        self.is_possible = not ffi.PYPY and has_headers and not free
        self._parts = {
            "structure": "quick call",
            "source": SOURCE,
            "include": include,
            "abi": str(sysconfig.get_config_var("SOABI")),
            "machine": machine(),
        }
        self.thread: OwnThread | None = None

    def is_ready(self) -> bool:
        """Whether it is there; if not, it is looked for, or built in a thread."""
        if self.make is None and self.is_possible and self.thread is None:
            try:
                self.thread = OwnThread(self.obtain, name="quick calls")
            except RuntimeError:  # no more threads
                self.is_possible = False
        return self.make is not None

    def is_being_made(self) -> bool:
        """Whether the thread is at work that looks for it."""
        return self.thread is not None and self.thread.is_alive()

    def obtain(self) -> None:
        """Load the extension, or build and load it."""
        if self.make is not None or not self.is_possible:
            return
        try:
            library = self._library()
        except Exception as reason:  # whatever it is, calls go on as before
            settings.LOGGER.info("calls go through ctypes: %s", reason)
            library = None
        self.is_possible = library is not None
        if library is not None:
            found = ctypes.PyDLL(library.path, handle=library._handle._handle)
            functions = make, floats, table = [found[f"mgjit_{name}"] for name in ("quick_call", "floats", "table")]
            for function in functions:
                function.argtypes, function.restype = (ctypes.py_object,), ctypes.py_object
            self._kept = library
            self.make, self.floats, self.table = make, floats, table

    def _library(self) -> ffi.Library | None:
        store, key = open_store(), entry_key(self._parts)
        if store.get(key) is None:
            with store.building(key):
                if store.get(key, again=True) is None:
                    compiler = compilers.find()
                    if compiler is None:
                        return None
                    # With -O1 its calls take as long as with -O2, and it takes 0.3 s instead of 0.5.
                    built = build.compile_shared(compiler, SOURCE, optimisation=f"-O1 -I{self._include}")
                    store.put(key, Entry({ABOUT: about("quick calls", self._parts, built)}, SOURCE, built.binary))
        return store.load(key, ffi.load)


extension = in_c.extension = Extension()


def add_sibling(call: Callable[..., Any], siblings: list[Any]) -> None:
    """Let the quick calls of a step know one that the step may use; other calls are left out."""
    is_quick = extension.make is not None and hasattr(call, "__wrapped__")
    if is_quick and call not in siblings and len(siblings) < _MOST_SIBLINGS:
        siblings.append(call)


def expect(writer: ConditionWriter, of_guard: Sequence[str], calls: Sequence[int]) -> bool:
    """Let the function that is about to be written ask for the extension, if it could be a quick call instead.

    Returns:
        Whether it could be.

    Args:
        of_guard: the conditions of the guard.
        calls: one number, that of the calls of the step.
    """
    countdown = next(filter(None, map(_COUNTDOWN.fullmatch, of_guard)), None)
    if not extension.is_possible or extension.make is not None or _arguments(writer) is None:
        return False
    if countdown is None:
        return True
    seem_same, kernel = writer.names[countdown[2]], writer.kernel

    def ask() -> bool:
        if not seem_same():
            return False
        if calls[0] < (extension.asked_after or MANY_CALLS) or not extension.is_possible or not extension.is_ready():
            return True
        kernel.fast_calls.clear()  # the general path makes another one
        return False

    writer.names[countdown[2]] = ask
    return True


def quick_call(
    writer: ConditionWriter,
    of_guard: Sequence[str],
    general: Callable[..., Any],
    compiled: Callable[[str], Callable[..., Any]],
    namespace: dict[str, Any],
    enter: Any,
    block: ffi.PointerBlock,
    tracing: Collection[int],
    siblings: list[Any],
    times: tuple[array[float], array[float]],
    gate: array[int],
    outputs: array[float],
    undo: tuple[Any, ...] | None,
) -> Callable[..., Any] | None:
    """A callable for a kernel; None where its calls are of another kind.

    Args:
        writer: which has written the conditions of the arguments.
        of_guard: the conditions of the guard.
        general: the generated function.
        compiled: makes a function of a condition.
        namespace: the global variables of these conditions.
        enter: the entry point of the kernel.
        block: its pointers.
        tracing: must be empty.
        siblings: quick calls of the same step, which get what this one does not take.
        times: of the guard and its pace, when there is something to look at.
        gate: of the step: closed while a call is under way that may be interrupted.
        outputs: of these calls alone.
        undo: how calls are undone for which one of the outputs is not 0.0 (`Undo.in_c`).
    """
    kernel = writer.kernel
    arguments, result, places = _arguments(writer), result_in_c(kernel), described(kernel.copies)
    if arguments is None or result is None or places is None or extension.make is None or type(tracing) is not dict:
        return None
    facts: list[Any] = []
    look, rest = None, []
    for condition in of_guard:
        countdown = _COUNTDOWN.fullmatch(condition)
        fact = _fact(condition, writer, namespace)
        if countdown is not None:
            look = writer.names[countdown[2]]
        elif fact is not None:
            facts += fact
        else:
            rest.append(condition)
    lists = {id(thing) for thing, kind in zip(facts[::3], facts[1::3]) if kind is True}
    rest = [one for one in rest if not ((found := _ELEMENT.fullmatch(one)) and id(writer.names.get(found[1])) in lists)]
    asked = compiled("\n        and ".join(rest)) if rest else None
    state, owed = (None, []) if kernel.copies is None else (kernel.copies.numbers, kernel.copies.owed)
    address = ctypes.cast(enter, ctypes.c_void_p).value
    form, made = result
    kept = enter, block, times, state, owed, gate, outputs, places
    parts = general, tuple(facts), tracing, asked, look, made, kept, siblings
    addresses = address, *(0 if each is None else each.buffer_info()[0] for each in (*times, state, gate, outputs))
    numbers = float(block.location()), len(kernel.plan.buffers), int(kernel.plan.precision is not FLOAT64)
    return extension.make((*parts, *addresses, *numbers, form, owed, places, tuple(arguments), undo))


def result_in_c(kernel: Kernel) -> tuple[str, tuple[Any, ...]] | None:
    """How a quick call makes the result of a kernel, as the source takes it; None if it is of another kind.

    Returns:
        'o' for one part, 't' for a tuple of parts, 'l' for a list; and for each part the index of its output, what
        makes it of that number, if something does, and a tuple with what each call returns instead, or None.
    """
    result, form = kernel.result, "o"
    parts = [result]
    if type(result) is CompositeResult and result.make in (tuple, list) and kernel.outputs.typecode == "d":
        parts, form = result.parts, "l" if result.make is list else "t"
    found: list[tuple[Any, ...]] = []
    for part in parts:
        if isinstance(part, OutputResult):
            found.append((part.index, part.make, None))
        elif isinstance(part, ConstantResult):
            found.append((0, None, (part.returned,)))
    return (form, tuple(found)) if len(found) == len(parts) <= _MOST_PARTS else None


def _fact(condition: str, writer: ConditionWriter, namespace: dict[str, Any]) -> Sequence[Any] | None:
    """A condition as one or more of (dict, key, content), (cell, None, content), (list, True, elements), if it is."""
    found = _IDENTITY.fullmatch(condition)
    if found is not None and found[2] in writer.names:
        meant = writer.names[found[2]]
        if found[1] in writer.cells:
            return writer.cells[found[1]], None, meant
        if found[1] in namespace and found[1] not in writer.parameters and type(namespace) is dict:
            return namespace, found[1], meant
    found = _ENTRY.fullmatch(condition)
    if found is not None and found[3] in writer.names and type(writer.names.get(found[1])) is dict:
        return writer.names[found[1]], found[2], writer.names[found[3]]
    found = _EQUALITY.fullmatch(condition) or _ELEMENTS.fullmatch(condition)
    if found is None or not writer.names.keys() >= set(found.groups()):
        return None
    if found.re is _ELEMENTS and writer.names.get(found[1]) is not are_same:
        return None
    now, meant = map(writer.names.__getitem__, found.groups()[-2:])
    pairs = [*zip(now, meant)] if type(now) is tuple and type(meant) is tuple else [(now, meant)]
    if all(type(thing) is list for pair in pairs for thing in pair):
        return [part for thing, noted in pairs for part in (thing, True, tuple(noted))]
    return None


def _arguments(writer: ConditionWriter) -> list[tuple[str, int, int, Any]] | None:
    """Kind, two numbers and an object of each argument, as the source takes them; None if one is of another kind."""
    plan, kernel = writer.kernel.plan, writer.kernel
    is_usual = len(plan.buffers) <= _MOST_BUFFERS and len(plan.nodes) <= _MOST and plan.packed_size <= _MOST_NUMBERS
    if not is_usual or plan.questions or kernel.draws is not None:
        return None
    changed = struct.pack(f"{len(kernel.changed)}N", *sorted(kernel.changed))
    found: list[tuple[str, int, int, Any]] = []
    for node in plan.nodes:
        if isinstance(node, NumberNode) and node.integer and node.is_plain:
            ends = writer.integers(node)
            found.append(("i", ends[0], ends[-1], None))
        elif isinstance(node, NumberNode) and node.is_plain and not writer.is_index(node.place):
            found.append(("f", 0, 0, None))
        elif isinstance(node, NumbersNode) and node.kinds[0] in (list, tuple) and node.is_plain:
            ranges = writer.index_ranges(node)
            if ranges is None:
                return None
            if kernel.plan.precision is FLOAT64:
                indices = struct.pack(f"{3 * len(ranges)}q", *chain(*ranges))
                rows = node.kinds[0], node.shape, node.types, changed, indices
                found.append(("r", int(node.may_mix), node.limit, rows))
            elif len(node.shape) == 1 and node.types is None:
                found.append(("l" if node.kinds[0] is list else "t", node.shape[0], 0, changed))
            else:
                return None
        elif type(node) is BufferNode and node.type is bytes:
            found.append(("b", node.size, node.region, writer.limits(node)))
        elif isinstance(node, BufferNode) and node.limit < EXACT_INTEGERS:
            return None
        elif type(node) is BufferNode and not changed and not _has_indices(node, node.size, writer):
            thing = node.type, node.format.encode(), *node.shape
            found.append(("a", len(node.shape), node.region, thing))
        elif isinstance(node, StaticNode):
            found.append(("o", 0, 0, node.argument))
        elif isinstance(node, KnownNode):
            found.append(("o", 0, 0, node.container))
        elif isinstance(node, ValueNode) and node.slot is None:
            found.append(("o", 0, 0, node.value))
        else:
            return None
    return found


def _has_indices(node: BufferNode, size: int, writer: ConditionWriter) -> bool:
    return any(writer.is_index(node.place + k) for k in range(size))
