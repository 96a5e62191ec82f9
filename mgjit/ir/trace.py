"""The trace of one call, as finished.py makes it from what the recorder has collected."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..engine.precision import FLOAT64, Precision
from ..engine.state import State
from .opcodes import (
    GRADIENT,
    INDEX_MASK,
    PARAMETER,
    TableLayout,
    leaf_kind,
)

#: New parameters are numbered around this index, in order of creation, relative to the first one met...
NEW_BASE = 1 << 24
#: ... those of other classes than Value from here on, in the order in which they lie...
FOREIGN_BASE = NEW_BASE + (1 << 23)
#: ... and those that already live in the storage of another kernel from here on.
BOUND_BASE = 1 << 25
#: Only until the trace is finished: the kind of operands that become copies.
LATE = 31
assert LATE << 26 | INDEX_MASK < 1 << 31


@dataclass(frozen=True)
class InputRegion:
    """A range of INPUT indices: the packed numbers (format "d"), or one buffer."""

    start: int
    size: int
    format: str


@dataclass(frozen=True)
class IndexCheck:
    """An input that must be an integer in a range before anything runs: a run-time index, or what one is computed from.

    Attributes:
        input_index: which input.
        count: how many integers there are in the range.
        location: the line that looks up.
        start: the first integer in the range.
        is_index: whether the input itself is the index.
        plain: a number that is out of range, with which the call is plain Python; None if there is none.
    """

    input_index: int
    count: int
    location: str
    start: int = 0
    is_index: bool = True
    plain: int | None = None

    @property
    def allowed(self) -> range:
        """The range."""
        return range(self.start, self.start + self.count)


class Block(NamedTuple):
    """The records of some neurons of `mgjit.nn` with the same inputs, one neuron after the other (record/blocks.py).

    Attributes:
        start: the first record.
        inputs: of each neuron: so many pairs of a product and an addition.
        neurons: how many there are.
        nonlinear: whether a relu follows.
    """

    start: int
    inputs: int
    neurons: int
    nonlinear: bool

    @property
    def period(self) -> int:
        """The number of records of a neuron."""
        return 2 * self.inputs + self.nonlinear

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.start + self.neurons * self.period

    def operands(self, b: array[int]) -> array[int]:
        """The operands that are the inputs, in the column of second operands."""
        return b[self.start : self.start + 2 * self.inputs : 2]

    def is_continued_by(self, other: Block) -> bool:
        """Whether the neurons of another block follow those of this one, and have as many inputs."""
        return self.end == other.start and (self.inputs, self.nonlinear) == (other.inputs, other.nonlinear)


class TensorRegion(NamedTuple):
    """The memory of a tensor of the step: elements from `base` on; a leaf has gradients."""

    base: int
    size: int
    is_leaf: bool = False


class Place(NamedTuple):
    """What a nest reads or writes in each iteration.

    Attributes:
        leaf: the element of the first iteration; leaf codes count downwards.
        column: 0; or 1 or 2 for a number that is the second or third operand of the record.
        strides: for each loop, in elements.
        flows: whether gradients flow to it.
        cut: whether it has a gradient that must not flow.
        chosen: what is added to the place at run time: the number of an operand, a stride, and the limit.
    """

    leaf: int
    column: int
    strides: tuple[int, ...]
    flows: bool = False
    cut: bool = False
    chosen: tuple[int, int, int] | None = None


class NestRecord(NamedTuple):
    """An operation on tensors (tensor/nests.py): what an iteration does, the loops, and what is read and written."""

    name: str
    body: Any
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    operands: tuple[Place, ...]
    target: Place
    flows: bool
    adds: bool = False

    def places(self) -> tuple[Place, ...]:
        """All that is in memory: operands that are no numbers, and the target."""
        return (*(place for place in self.operands if not place.column), self.target)


@dataclass
class Trace:
    """One traced call, flat and symbolic: it does not contain the numbers of parameters or inputs."""

    op: array[int]
    a: array[int]
    b: array[int]
    c: array[int] | None
    constants: list[float]
    layouts: list[TableLayout]
    new_parameters: list[tuple[int, Any]] = field(repr=False)
    bound_storages: list[tuple[int, Any]] = field(repr=False)
    states: list[tuple[int, State]] = field(repr=False)
    locals: int = 0
    outputs: int = 0
    adjoint_reads: list[tuple[int, int]] = field(default_factory=list)
    checks: list[IndexCheck] = field(default_factory=list)
    precision: Precision = FLOAT64
    power_lines: dict[tuple[int, int], str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list, repr=False)
    #: For each record the number of the place in the program that it comes from (tracer/sites.py); None if not noted.
    sites: array[int] | None = field(default=None, repr=False)
    nests: list[NestRecord] = field(default_factory=list, repr=False)
    tensors: list[TensorRegion] = field(default_factory=list, repr=False)
    #: Whether it is of one path of several, so that its last two outputs say whether a call is one for it.
    is_path: bool = False
    #: Whether one statement may be over several memories: the code gets a pointer to each.
    has_pointers: bool = True

    def __len__(self) -> int:
        return len(self.op)

    def shifted(self, shift: int) -> Trace:
        """The same trace with other leaves for parameters: each is so far from the one that it was."""

        def column(operands: array[int]) -> array[int]:
            kinds = {x: x + shift for x in set(operands) if x < 0 and leaf_kind(x) in (PARAMETER, GRADIENT)}
            return array("i", map(kinds.get, operands, operands))

        c = None if self.c is None else column(self.c)
        return replace(self, a=column(self.a), b=column(self.b), c=c)

    def in_blocks(self) -> int:
        """How many records are in blocks."""
        return sum(block.end - block.start for block in self.blocks)

    def work_in_nests(self) -> int:
        """About how many scalar operations the nests are, with those of a backward pass."""
        return sum(
            (3 if nest.flows else 1) * len(nest.body.steps) * math.prod((*nest.outer, *nest.inner))
            for nest in self.nests
        )

    def gaps(self) -> list[tuple[int, int]]:
        """The records that belong to no block: the first of each stretch, and the position after the last."""
        edges = [0, *(edge for block in self.blocks for edge in (block.start, block.end)), len(self.op)]
        return [(low, high) for low, high in zip(edges[::2], edges[1::2]) if low < high]
