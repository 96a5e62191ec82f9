"""Execute the whole box of a nest where nobody sees the difference, and that is faster.

    for i: for j in 0 .. i:                        for i: for j in 0 .. 15:
        t[16 i + j] = exp(s[16 i + j])     ->          t[16 i + j] = exp(s[16 i + j])

A loop that grows runs neither in lanes nor side by side with others.  Without its bound it computes more, from whatever
is in memory there, and stores it where no other operation looks.

1. List the elements that the operations of the Program access, as the bits of a number.  All others are spare.
2. A bound may go if all that is written in the additional iterations is spare, nothing is written that can be seen
   after the step, and everything that is read exists.  What is computed from spare elements is then only ever stored in
   spare elements.
3. It goes if the plan of the nest then costs less (schedule/cost.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...engine.library import FUNCTIONS as LIBRARY
from ...ir.dependence import plain, ranged
from ...ir.domain import (
    MOST_ELEMENTS,
    MOST_ITERATIONS,
    bounding,
    elements,
    full_range,
    has_bounds,
    iterations,
    loops_of_bound,
    that_matter,
    value,
)
from ...ir.nest import executions
from ...ir.program import (
    Array,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    arrays_written,
    reads,
    walk,
    writes,
)
from ...ir.rewrite import with_surroundings
from ..toolchain.target import Processor
from .cost import best_plan
from .plan import SPECIAL


def fill_boxes(program: Program, processor: Processor) -> None:
    """Remove bounds from the loops of a Program, in place.

    Args:
        program: changed in place.
        processor: the processor for which nests are costed.
    """
    if processor.lanes == 1 or not any(has_bounds(nodes) for _, nodes in program.phases):
        return
    used = _Used(program)
    for _, nodes in program.phases:
        for node in nodes:
            if isinstance(node, Loop):
                _fill_boxes_of(node, used, processor)


def _with_bounds(nodes: Sequence[Node], around: tuple[Loop, ...]) -> Iterator[tuple[Loop, tuple[Loop, ...]]]:
    """The loops that have bounds, and those around each."""
    for node in nodes:
        if isinstance(node, Loop):
            if node.bound is not None:
                yield node, around
            yield from _with_bounds(node.body, (*around, node))


def _fill_boxes_of(nest: Loop, used: _Used, processor: Processor) -> None:
    """Remove the bound of each loop without which its nest costs less."""
    least = None
    for loop, around in list(_with_bounds([nest], ())):
        if used.leaves_spare(loop, around):
            least = best_plan(nest, processor)[0] if least is None else least
            bound, loop.bound = loop.bound, None
            cost = best_plan(nest, processor)[0]
            if cost < least:
                least = cost
            else:
                loop.bound = bound


class _Used:
    """The elements that the operations of a Program access, as it was."""

    def __init__(self, program: Program) -> None:
        self._tables = program.tables
        #: All numbers that may be given.
        self._given = [dict(known) for known in iterations(program.given, program.tables)]
        self._accesses: defaultdict[Array, dict[tuple[Index | None, tuple[Loop, ...]], None]] = defaultdict(dict)
        for _, nodes in program.phases:
            for statement, loops in with_surroundings(nodes):
                for array, index in (*reads(statement), *writes(statement)):
                    self._accesses[array][ranged(index), loops] = None
        bounded = {loop for _, nodes in program.phases for loop in walk(nodes) if isinstance(loop, Loop) and loop.bound}
        written = {a for loop in bounded for s, _ in with_surroundings(loop.body) for a in arrays_written(s)}
        self._elements = {array: self._listed(array) for array in written}

    def _listed(self, array: Array) -> list[int] | None:
        """The elements of an array that are used, for each number that may be given; None if they cannot be known."""
        found = [0] * len(self._given)
        for index, loops in self._accesses[array]:
            times = len(self._given) * executions(that_matter(loops))
            if index is None or array.size > MOST_ELEMENTS or times > MOST_ITERATIONS:
                return None
            visited = _Visited(index, loops, self._tables)
            for number, known in enumerate(self._given):
                found[number] |= visited.at(known)
        return found

    def leaves_spare(self, loop: Loop, around: tuple[Loop, ...]) -> bool:
        """Whether the iterations beyond the bound of a loop write nothing but spare elements."""
        inside = list(with_surroundings([loop]))
        if not all(_is_harmless(statement, loop) for statement, _ in inside):
            return False
        below = [node for node in walk(loop.body) if isinstance(node, Loop)]
        if any(other.bound is not None and loop in loops_of_bound(other.bound) for other in below):
            return False
        places = {(s.target, loops[1:]) for s, loops in inside if isinstance(s.target, Reference)}
        listed = {target.array: self._elements[target.array] for target, _ in places}
        visited = [(target.array, _Visited(target.index, loops, self._tables)) for target, loops in places]
        return None not in listed.values() and not any(
            place.at(known) & used[number]
            for number, given in enumerate(self._given)
            for known in self._beyond(loop, around, below, given)
            for array, place in visited
            if (used := listed[array]) is not None
        )

    def _beyond(
        self, loop: Loop, around: tuple[Loop, ...], below: Sequence[Loop], given: dict[Loop, int]
    ) -> Iterator[dict[Loop, int]]:
        """The iterations beyond the bound of a loop."""
        assert loop.bound is not None
        outer = that_matter(around, [*around, loop, *below])
        for variables in iterations(outer, self._tables, given):
            for iteration in range(value(loop.bound, variables, self._tables), loop.count):
                yield {**variables, loop: iteration}


class _Visited:
    """The elements that an access visits (see `elements`), found once for all iterations that do not matter to it."""

    def __init__(self, index: Index, loops: tuple[Loop, ...], tables: Sequence[int]) -> None:
        self._access = index, loops, tables
        self._matter = list({*(loop for loop, _ in index.terms), *bounding(loops)})
        self._found: dict[tuple[int | None, ...], int] = {}

    def at(self, known: Mapping[Loop, int]) -> int:
        """The elements, in these iterations of other loops."""
        key = tuple(map(known.get, self._matter))
        if key not in self._found:
            self._found[key] = elements(*self._access, known)
        return self._found[key]


def _is_harmless(statement: Statement, loop: Loop) -> bool:
    """Whether a statement may be executed beyond a bound, as far as can be said without looking at elements."""
    target = statement.target
    slow = statement.operation in SPECIAL or statement.operation in LIBRARY
    if slow and any(_may_vary(operand, loop) for operand in statement.operands):
        return False  # on arbitrary numbers
    if target is not None:
        if not isinstance(target, Reference) or target.array.space != "scratch" or plain(target.index) is None:
            return False
        if loop not in dict(target.index.terms):
            return False  # it is the element of other iterations
    return all(_exists(array, index) for array, index in (*reads(statement), *writes(statement)))


def _may_vary(operand: Operand, loop: Loop) -> bool:
    """Whether an operand may be another number in other iterations of a loop."""
    if isinstance(operand, Load):
        return plain(operand.reference.index) is None or loop in dict(operand.reference.index.terms)
    return not isinstance(operand, Constant)


def _exists(array: Array, index: Index | None) -> bool:
    """Whether there is such an element, whatever the loops do."""
    if index is None or plain(index) is None:
        return False
    low, high = full_range(index)
    return low >= 0 and high < array.least
