"""What an export consists of: the Program, its arrays and where each of them lies in C.

An array is one of these:

1. An input or the result: a parameter of the exported function.
2. Parameters that no statement writes: constant data.  In a forward pass these are the weights.
3. Parameters, gradients and state that are written: members of the memory, which the caller provides.  Their first
   contents are constant data as well, which the initialisation copies.
4. Scratch: a member of the memory.

Constant data lies in the C file, or in a data file that the caller loads, or leaves in flash, and passes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compiler.codegen.layout import Layout
from ..compiler.lift.memory import Memory
from ..ir.opcodes import GRADIENT, PARAMETER, STATE
from ..ir.program import Array, Program, arrays_read, arrays_written, statements
from ..ir.trace import IndexCheck
from ..tracing.call.plan import ArgumentPlan
from ..tracing.tracer.sites import Sites
from ..tracing.tracer.tracer import TracedCall
from .arguments import CArguments
from .emitter import NUMBERS
from .memory import Contents
from .names import unique
from .naming import Known
from .recording import Recording

_NAMES = {PARAMETER: "parameters", GRADIENT: "gradients", STATE: "state"}
_MEANINGS = {PARAMETER: "learned numbers", GRADIENT: "their gradients", STATE: "what else stays"}


@dataclass
class Data:
    """Numbers that exist before the first call.

    Attributes:
        target: the array of the Program.
        name: of the C array, without the prefix.
        numbers: at first.
        changes: whether the step writes them: then they are a member of the memory.
        about: what they are, for people.
        shape: of the tensor that they are; else how many there are.
        offset: where they begin in the data file, in numbers.
    """

    target: Array
    name: str
    numbers: array[float]
    changes: bool
    about: str
    shape: tuple[int, ...]
    offset: int = 0


@dataclass
class Design:
    """One export.

    Attributes:
        prefix: of all C names.
        title: the step, in words: its name and parameters.
        mode: "strict" or "fast".
        in_file: whether constant data lies in a data file.
        outputs: how many numbers the step gives.
        results: comments about what they are.
        sites: the lines that the statements of the program come from.
        kept: (array, element, limit) of the ints in the state that are indices.
    """

    prefix: str
    title: str
    mode: str
    in_file: bool
    program: Program
    layout: Layout
    arguments: CArguments
    checks: list[IndexCheck]
    outputs: int
    results: list[str]
    plan: ArgumentPlan
    recording: Recording
    sites: Sites
    kept: list[tuple[Array, int, int]] = field(default_factory=list)
    data: list[Data] = field(default_factory=list)

    @property
    def number(self) -> str:
        """The C type of all numbers of the step."""
        return NUMBERS[self.program.precision]

    @property
    def macro(self) -> str:
        """The prefix of macros."""
        return self.prefix.upper()

    @property
    def changing(self) -> list[Data]:
        """What is part of the memory and is there before the first call."""
        return [one for one in self.data if one.changes]

    @property
    def file_size(self) -> int:
        """The numbers in the data file."""
        return sum(len(one.numbers) for one in self.data) if self.in_file else 0

    @property
    def needs_init(self) -> bool:
        """Whether the memory has to be initialised before the first call."""
        return bool(self.changing) or bool(self.file_size)

    def members(self) -> list[tuple[str, int, str]]:
        """Declarator, size and meaning of the arrays in the memory: `weight[8][4]`, 32, and what they are."""
        found = [(one.name, one.shape, one.about) for one in self.changing]
        found.append(("scratch", (self.layout.scratch_size,), "only used during a call"))
        return [
            (name + "".join(f"[{length}]" for length in shape), math.prod(shape), about) for name, shape, about in found
        ]

    def first_of(self, one: Data, memory: str = "memory->") -> str:
        """The C expression for the first number of an array in the memory."""
        return f"{memory}{one.name}" if len(one.shape) == 1 else f"({self.number} *){memory}{one.name}"

    def element(self, one: Data, index: str) -> str:
        """The C expression for one of its numbers."""
        first = self.first_of(one)
        return f"({first})[{index}]" if len(one.shape) > 1 else f"{first}[{index}]"

    def sources(self) -> dict[Array, str]:
        """For each array that is no scratch, the C expression for its first element."""
        found = {}
        for one in self.data:
            if one.changes:
                found[one.target] = self.first_of(one)
            elif self.in_file:
                found[one.target] = f"memory->weights + {one.offset}"
            else:
                found[one.target] = f"{self.prefix}_{one.name}"
        for array_ in self.layout.slot_of:
            if array_.space in ("input", "output"):
                found[array_] = array_.name
            elif array_.space == "constant":
                found[array_] = f"{self.prefix}_constants"
        return found

    def constants(self) -> set[Array]:
        """The arrays that no function changes."""
        fixed = {one.target for one in self.data if not one.changes}
        return fixed | {array_ for array_ in self.layout.slot_of if array_.space in ("input", "constant")}


def kept_indices(memory: Memory, traced: TracedCall) -> list[tuple[Array, int, int]]:
    """The ints in the state that the step uses as indices: the array, the element, and how many it may choose from."""
    trace, heap = traced.trace, traced.heap
    first = next((start for start, state in trace.states if state is heap.state), 0)
    array_ = next((array_ for start, array_ in memory.regions[STATE] if start == first), None)
    found = [(offset, check.count) for part in heap.copied for offset, check in part.allowed.items()]
    return [] if array_ is None else [(array_, offset, count) for offset, count in found]


def data_of(
    program: Program, memory: Memory, contents: Contents, known: Mapping[int, Sequence[Known]], prefix: str
) -> list[Data]:
    """The numbers that exist before the first call and that the Program uses.

    Args:
        known: what the user knows about each region of parameters, and of state. prefix: of all C names.
    """
    used: set[Array] = set()
    written: set[Array] = set()
    for _, nodes in program.phases:
        for statement in statements(nodes):
            written.update(arrays_written(statement))
            used.update(arrays_read(statement))
    used |= written
    numbers: dict[int, list[Any]] = {
        PARAMETER: contents.parameters,
        GRADIENT: contents.gradients,
        STATE: contents.states,
    }
    found: list[Data] = []
    taken = {"scratch", "weights"}
    offset = 0
    for kind, name in _NAMES.items():
        for region, (_, array_) in enumerate(memory.regions[kind]):
            if array_ in used and array_.space != "scratch":
                content = numbers[kind][region]
                about = known[STATE if kind == STATE else PARAMETER][region]
                label = name if len(memory.regions[kind]) == 1 else f"{name}{region}"
                if about.path:
                    label = unique(about.path if kind == PARAMETER else f"{about.path}.grad", taken, prefix)
                taken.add(label)
                text = ": ".join(filter(None, [about.path, _MEANINGS[kind], about.parts]))
                shape = about.shape if len(about.shape) > 1 else (len(content),)
                found.append(Data(array_, label, content, array_ in written, text, shape, offset))
                offset += len(content)
    return found
