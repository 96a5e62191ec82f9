"""The Program: what a trace becomes when it is rolled, and what every pass takes and returns.

A Program is a tree of loops and statements, executed in order.  A statement computes one operation and
optionally writes its result to an array element:

    define   t7[i,j] = multiply(p0[50*i + j], x[j])
    update   g0[50*i + j] = add(g0[50*i + j], %3)          (an in-place reduction)

Array elements are addressed by an affine function of the surrounding loop variables, plus, where that is
not enough, an entry of an index table and a run-time term (`take`).  Executing the tree from top to bottom
performs the operations in exactly the order of the trace, so a Program is exact by construction; passes
keep it so.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from ..engine.precision import FLOAT64, Precision


class PaddedRows(NamedTuple):
    """`count` rows of an array from `place` on, `pitch` elements apart: the first `used` are data, the rest padding."""

    place: int
    used: int
    pitch: int
    count: int  # type: ignore[assignment]


class Joined(NamedTuple):
    """Regions of equal size that are one array, though each lies somewhere else: the weights of equal layers.

    Attributes:
        regions: their numbers, in order.
        size: of each, in elements.
    """

    regions: tuple[int, ...]
    size: int

    @property
    def pitch(self) -> int:
        """How many elements the beginnings of regions are apart: there is a gap, so that none seem to be adjacent."""
        return 16 * (self.size // 16 + 1)


class Array:
    """A named block of numbers.

    Attributes:
        name: used in printed Programs and in generated code.
        space: which memory it is part of: constant, parameter, gradient, state, input, output, scratch.
        size: number of elements; of arguments and results of a Program whose numbers are given, the most.
        least: number of elements that it has in any case.
        region: for parameter, gradient, state and input, which of the regions of that space.
        format: of an input, the struct code of the elements, which are converted when read; all other arrays
            have numbers of the Program's precision.
        shape: the counts of the loops that a scratch array was made for.
        padded_rows: the stretches of the array whose rows have padding behind them.
        joined: of which regions it consists, if of several.
    """

    __slots__ = ("_least", "format", "joined", "name", "padded_rows", "region", "shape", "size", "space")

    def __init__(
        self, name: str, space: str, size: int, region: int = 0, format: str = "d", shape: tuple[int, ...] = ()
    ) -> None:
        self.name, self.space, self.size, self.region = name, space, size, region
        self.format, self.shape = format, shape
        self.padded_rows: tuple[PaddedRows, ...] = ()
        self.joined: Joined | None = None
        self._least: int | None = None

    @property
    def least(self) -> int:
        return self.size if self._least is None else self._least

    @least.setter
    def least(self, size: int) -> None:
        self._least = size

    def __repr__(self) -> str:
        return f"{self.name}[{self.size}]"


Term = tuple["Loop", int]


class TableEntry(NamedTuple):
    """`tables[offset + sum of coefficient * loop variable]`."""

    offset: int
    terms: tuple[Term, ...]


class Dynamic(NamedTuple):
    """A run-time contribution to an address: `stride * operand`, the operand being an integer in range."""

    operand: Operand
    stride: int
    count: int  # type: ignore[assignment]


class Bound(NamedTuple):
    """How often a loop is executed: `base + sum of coefficient * variable of a loop around it [+ table entry]`."""

    base: int
    terms: tuple[Term, ...] = ()
    table: TableEntry | None = None


class Index(NamedTuple):
    """An element: `base + sum of coefficient * loop variable [+ table entry] [+ dynamic]`."""

    base: int
    terms: tuple[Term, ...] = ()
    table: TableEntry | None = None
    dynamic: Dynamic | None = None


class Reference(NamedTuple):
    """An element of an array."""

    array: Array
    index: Index  # type: ignore[assignment]


# ---- operands -------------------------------------------------------------------------------------


class Constant(NamedTuple):
    """A number known when the step was traced."""

    value: float


class Load(NamedTuple):
    """The current content of an array element."""

    reference: Reference


class Register(NamedTuple):
    """The result that `statement`, earlier in the same iteration of the same body, just computed."""

    statement: Statement


class Choice(NamedTuple):
    """`first` in iteration 0 of `loop`, `rest` in the others."""

    loop: Loop
    first: Operand
    rest: Operand


class Mixed(NamedTuple):
    """An element of one of several arrays: `arrays[tables[selector]][tables[position]]`."""

    arrays: tuple[Array, ...]
    selector: TableEntry
    position: TableEntry


Operand = Union[Constant, Load, Register, Choice, Mixed]


# ---- nodes ----------------------------------------------------------------------------------------


class Origin(NamedTuple):
    """Where a statement comes from: known only of traces that note it, for people, and without any effect.

    Attributes:
        sites: how many of its records come from each place in the user's program (see `Trace.sites`).
        is_gradient: whether it is part of the gradient of what was recorded there.
    """

    sites: Mapping[int, int]
    is_gradient: bool = False


NOWHERE = Origin({})


class Statement:
    """One operation.

    Attributes:
        operation: a name in record.opcodes.OPERATIONS.
        operands: its operands; an update has the target as an additional first operand.
        target: where the result goes, or None (then it is only read as a Register).  A Choice target
            of an update writes to one of two places; a None inside a Choice writes nowhere.
        update: whether the old content of the target is the first operand.
        passes: numbers of the backward passes that reach the statement.
        origin: where it comes from.
    """

    __slots__ = ("operands", "operation", "origin", "passes", "target", "update")

    def __init__(
        self,
        operation: str,
        operands: tuple[Operand, ...],
        target: Target = None,
        update: bool = False,
        passes: frozenset[int] = frozenset(),
        origin: Origin = NOWHERE,
    ) -> None:
        self.operation, self.operands, self.target = operation, operands, target
        self.update, self.passes, self.origin = update, passes, origin


class TargetChoice(NamedTuple):
    """The target of an update: `first` in iteration 0 of `loop`, else `rest`."""

    loop: Loop
    first: Target
    rest: Target


class TargetMixed(NamedTuple):
    """The target of an update in one of several arrays; None where a selection is not differentiated."""

    arrays: tuple[Array | None, ...]
    selector: TableEntry
    position: TableEntry


Target = Union[Reference, TargetChoice, TargetMixed, None]


class Loop:
    """`count` iterations of `body`; `reverse` counts the variable down.  The variable is the loop itself.

    A loop with a `bound` has as many iterations as that says, between 0 and `count`, and ends or, if it is reversed,
    begins with the last of them.  Arrays have room for `count`, so a nest is a part of a box.

    `lanes` marks an innermost loop of independent iterations that are meant to be executed side by side, as one
    vector operation a statement; `beside` marks a loop of few independent iterations, each of which is code of its own;
    `at_once` is how many iterations of the loop that the user wrote are side by side in each iteration of this one, as
    vectors or as rows.  None of them says anything about what is computed.
    """

    __slots__ = ("at_once", "beside", "body", "bound", "count", "lanes", "reverse")

    def __init__(
        self, count: int, body: list[Node], reverse: bool = False, lanes: bool = False, bound: Bound | None = None
    ) -> None:
        self.count, self.body, self.reverse, self.lanes, self.bound = count, body, reverse, lanes, bound
        self.at_once = 1
        self.beside = False

    def empty_copy(self) -> Loop:
        """A loop of the same kind without a body; its bound is by the same loops (see `Substitution.loop`)."""
        copy = Loop(self.count, [], self.reverse, self.lanes, self.bound)
        copy.at_once, copy.beside = self.at_once, self.beside
        return copy


class Given(Loop):
    """A number between 0 and `count - 1` that is known when the step runs: a loop around everything, of one iteration.

    Programs of a family (lengths/family.py) have the same tree; in their indices and bounds, what differs is an affine
    function of this number.  It is no node of the Program.
    """

    __slots__ = ()

    def __init__(self, count: int) -> None:
        super().__init__(count, [])


class Block:
    """A stretch of a long body that becomes a function of its own; registers do not cross its ends."""

    __slots__ = ("body",)

    def __init__(self, body: list[Node]) -> None:
        self.body = body


class Backward:
    """A backward pass from `root`; gone after differentiation.

    Attributes:
        root: what is differentiated.
        number: the number of the pass in its first iteration; passes are counted in order of the trace.
        instances: the numbers of the pass in all iterations of the loops around it.
        origin: where it comes from.
    """

    __slots__ = ("instances", "number", "origin", "root")

    def __init__(self, root: Operand, number: int, instances: frozenset[int], origin: Origin = NOWHERE) -> None:
        self.root, self.number, self.instances, self.origin = root, number, instances, origin


Node = Union[Loop, Block, Statement, Backward]


class Rotation(NamedTuple):
    """What a loop over rows may run between two rows (schedule/rotate.py).

    Attributes:
        nodes: the rest of a row after forward, and forward of the next row.
        following: for each array that every row has of its own, the same array of the next row.
    """

    nodes: list[Node]
    following: dict[Array, Array]


class Row(NamedTuple):
    """One step of a loop over rows, in which some arrays are local (schedule/superwords.py).

    Attributes:
        nodes: all that a step does.
        places: of local arrays whose elements have another order, where each element lies.
    """

    nodes: list[Node]
    places: dict[Array, tuple[int, ...]]


@dataclass
class Program:
    """Phases of nodes and the memory they work on.

    Attributes:
        forward, backward, update: the three phases, executed in this order by a step.
        gradients: what may be left until somebody looks at gradients; executed after all else, if nobody leaves it.
        separate: whether each phase is to be run by itself; otherwise only all of them are, one after the other, and
            what belongs to the update may be part of `backward`.
        constants: contents of the constant array.
        tables: contents of the index table array (int32).
        precision: the number type.
        is_path: whether it is one path of several through a step, as of a Trace.
        verdict: the output that ends a call behind the forward phase, where it is not 0.0; -1 if none does.
        given: the numbers that are known when the step runs.
        is_straight: whether it has no loops, so that no place is computed but from run-time indices.
        rotation: of a loop over rows, where it is faster than one step after the other.
        row: a step of a loop over rows, where it is faster than that of a call.
    """

    forward: list[Node]
    backward: list[Node] = field(default_factory=list)
    update: list[Node] = field(default_factory=list)
    constants: array[float] = field(default_factory=lambda: array("d"))
    tables: array[int] = field(default_factory=lambda: array("i"))
    precision: Precision = FLOAT64
    is_path: bool = False
    verdict: int = -1
    separate: bool = False
    given: tuple[Given, ...] = ()
    is_straight: bool = False
    rotation: Rotation | None = None
    row: Row | None = None
    gradients: list[Node] = field(default_factory=list)

    @property
    def asks_first(self) -> bool:
        """Whether a call that is for another path ends before it has written anything that can be seen."""
        return self.verdict >= 0

    @property
    def phases(self) -> tuple[tuple[str, list[Node]], ...]:
        """Name and nodes of each phase."""
        phases = ("forward", self.forward), ("backward", self.backward), ("update", self.update)
        return (*phases, ("gradients", self.gradients)) if self.gradients else phases

    def regions_of_gradients(self) -> tuple[int, ...]:
        """The regions of parameters whose gradients are read or written."""
        every = [s for _, nodes in self.phases for s in statements(nodes)]
        arrays = {array for s in every for array in (*arrays_read(s), *arrays_written(s)) if array.space == "gradient"}
        return tuple(sorted({array.region for array in arrays}))


# ---- traversal --------------------------------------------------------------------------------------


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """Every node below, in order, loops before their bodies."""
    stack = [iter(nodes)]
    while stack:
        for node in stack[-1]:
            yield node
            if isinstance(node, (Loop, Block)):
                stack.append(iter(node.body))
                break
        else:
            stack.pop()


def statements(nodes: Sequence[Node]) -> Iterator[Statement]:
    """Every statement below, in order."""
    for node in nodes:
        if type(node) is Statement:
            yield node
        elif isinstance(node, (Loop, Block)):
            yield from statements(node.body)


def has_blocks(nodes: Sequence[Node]) -> bool:
    """Whether there are Blocks below."""
    return any(
        type(node) is not Statement and (isinstance(node, Block) or (isinstance(node, Loop) and has_blocks(node.body)))
        for node in nodes
    )


def leaf_operands(operand: Operand) -> Iterator[Operand]:
    """The operand itself or the alternatives of a Choice, including the operands of run-time indices."""
    if isinstance(operand, Choice):
        yield from leaf_operands(operand.first)
        yield from leaf_operands(operand.rest)
    else:
        yield operand
        if isinstance(operand, Load) and operand.reference.index.dynamic is not None:
            yield from leaf_operands(operand.reference.index.dynamic.operand)


def leaf_targets(target: Target) -> Iterator[Reference | TargetMixed]:
    """Every place that a target may write to."""
    if isinstance(target, TargetChoice):
        yield from leaf_targets(target.first)
        yield from leaf_targets(target.rest)
    elif target is not None:
        yield target


def reads(statement: Statement) -> Iterator[tuple[Array, Index | None]]:
    """Every element that the statement may read, including the target of an update; None stands for any element."""
    operands = list(statement.operands)
    for place in leaf_targets(statement.target):
        if isinstance(place, Reference):
            if statement.update:
                yield place
            if place.index.dynamic is not None:
                operands.append(place.index.dynamic.operand)
        elif statement.update:
            yield from ((a, None) for a in place.arrays if a is not None)
    for operand in operands:
        for part in leaf_operands(operand):
            if isinstance(part, Load):
                yield part.reference
            elif isinstance(part, Mixed):
                yield from ((a, None) for a in part.arrays)


def writes(statement: Statement) -> Iterator[tuple[Array, Index | None]]:
    """Every element that the statement may write; None stands for any element."""
    for place in leaf_targets(statement.target):
        if isinstance(place, Reference):
            yield place
        else:
            yield from ((a, None) for a in place.arrays if a is not None)


def arrays_read(statement: Statement) -> Iterator[Array]:
    """Every array that the statement may read, including the target of an update."""
    return (array for array, _ in reads(statement))


def arrays_written(statement: Statement) -> Iterator[Array]:
    """Every array that the statement may write."""
    return (array for array, _ in writes(statement))


def count_statements(nodes: Sequence[Node]) -> int:
    """Number of statements below."""
    return sum(
        1 if type(node) is Statement else count_statements(node.body) if isinstance(node, (Loop, Block)) else 0
        for node in nodes
    )


def count_copies(nodes: Sequence[Node]) -> int:
    """Number of statements below, counted once for each iteration side by side, as in the code."""
    return sum(
        1
        if type(node) is Statement
        else count_copies(node.body) * (node.count if isinstance(node, Loop) and node.beside else 1)
        if isinstance(node, (Loop, Block))
        else 0
        for node in nodes
    )
