"""Split a sum into partial sums that are computed side by side, where sums may be reordered (fast mode).

    for i: r[i] = b[i]                       for i: r[i] = b[i]
           for k: r[i] += w[i,k] * x[k]      for i: for l < 16: part[i,l] = 0.0
           t[i] = relu(r[i])             ->                     for k: part[i,l] += w[i,16k+l] * x[16k+l]
                                             for i: for l < 16: r[i] += part[i,l]
                                             for i: t[i] = relu(r[i])

A sum is a chain of dependent additions.  Where there are few sums, and they are long, neither vectors nor latency have
enough of them.  The loop over the partial sums is independent, so that schedule/cost.py plans it as any other: as lanes
along the sum, or as rows, which are chains side by side.

1. A nest of independent loops is cut into one nest for each stretch of statements, and for each loop, in its body.
2. In a nest whose body has statements only, a sum is what an update adds to an element that does not depend on a loop,
   if nothing else in the nest accesses its array.  But for sums, the iterations of that loop must be independent.
3. The loop is split into steps of so many iterations as there are partial sums; what is behind the last whole step
   adds to the first ones of them.  They begin with what changes no sum (0, for maxima minus infinity).
4. Partial sums are lanes, side by side in memory, or a few chains, each with its sums side by side.  Lanes are added
   by halves until they are one vector.

Source: "parallel reduction" in R. Allen, K. Kennedy, "Optimizing Compilers for Modern Architectures", 2001, chapter 5.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir.builders import nested, row_major
from ...ir.dependence import independent_among, plain
from ...ir.nest import Nest, band, examine, executions
from ...ir.program import (
    Array,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Reference,
    Statement,
    arrays_read,
    arrays_written,
    statements,
)
from ...ir.rewrite import operand_arrays
from ...ir.substitute import Substitution, copy_nodes
from .expand import Arrays, crossing_registers
from .in_blocks import sections

#: By operation: with what partial results begin, and what puts them together.
_REDUCTIONS = {
    "add": (0.0, "add"),
    "subtract": (0.0, "add"),
    "multiply": (1.0, "multiply"),
    "maximum": (-math.inf, "maximum"),
    "minimum": (math.inf, "minimum"),
}
#: So many chains side by side, and so many vectors of lanes.
_CHAINS = (2, 4)
_VECTORS = (1, 4)
#: A loop has at least so many iterations for each partial sum.
_FEWEST_STEPS = 2
#: Nests of more statements are left alone, and so are sums of which there are so many.
_MOST_STATEMENTS = 24
_MOST_ELEMENTS = 1 << 14


@dataclass
class PartialSums:
    """A way to split the sums of a nest.

    Attributes:
        nest: whose body has loops only if all loops of its band are independent.
        free: the loops of its band that are.
        count: of the partial sums of each sum.
        lanes: of a vector, if partial sums are lanes; else 1.
    """

    nest: Nest
    free: Sequence[Loop]
    count: int
    lanes: int

    def nodes(self, arrays: Arrays) -> list[Node] | None:
        """The nests that take the place of the nest, or None if no sum of it can be split."""
        if not self.nest.inner:
            return self._split(self.nest, self.free, arrays)
        done: list[Node] = []
        found = False
        for section in sections(self.nest.body):
            part = _inside(self.nest.band, section)
            one = examine(part)
            split = None
            if one is not None and not one.inner and len(one.band) > len(self.nest.band):
                split = self._split(one, independent_among(one.band, [part]), arrays)
            found = found or split is not None
            done += [part] if split is None else split
        return done if found else None

    # ---- 2 to 4 -------------------------------------------------------------------------------------

    def _split(self, nest: Nest, free: Sequence[Loop], arrays: Arrays) -> list[Node] | None:
        for loop in reversed(nest.band):
            if loop not in free and loop not in nest.fixed and loop.count >= _FEWEST_STEPS * self.count:
                outer = [one for one in nest.band if one in free]
                sums = _sums(nest, outer)
                few = executions(outer) * self.count <= _MOST_ELEMENTS
                if sums and few and _is_independent(nest, loop, sums):
                    return self._steps(nest, loop, outer, sums, arrays)
        return None

    def _steps(
        self, nest: Nest, loop: Loop, outer: Sequence[Loop], sums: Sequence[Statement], arrays: Arrays
    ) -> list[Node]:
        """The nests for whole steps, for what is behind them, and for the sums of the partial sums."""
        held = {statement: arrays.new(executions(outer) * self.count) for statement in sums}
        whole, rest = divmod(loop.count, self.count)
        done: list[Node] = []
        for start, count, steps in ((0, self.count, whole), (whole * self.count, rest, 1)):
            if not count:
                continue
            lane, step = Loop(count, []), Loop(steps, []) if steps > 1 else None
            copied = Substitution(loop, step, self.count, start, lane=lane)
            around = [copied.loop_copy(one) for one in outer]
            inside = [step if one is loop else copied.loop_copy(one) for one in nest.band if one not in outer]
            body = copy_nodes(nest.body, copied)
            first: list[Node] = []
            for statement, array in held.items():
                part = Reference(array, self._index(around, lane))
                first.append(Statement("copy", (Constant(_REDUCTIONS[statement.operation][0]),), part))
                copied.registers[statement].target = part
            adding = nested([one for one in inside if one is not None], body)
            done += nested([*around, lane], adding if start else [*first, *adding])
        for statement, array in held.items():
            done += self._together(statement, array, outer)
        return done

    def _index(self, outer: Sequence[Loop], lane: Loop, distance: int = 0) -> Index:
        """The place of a partial sum: those of one sum side by side, or the sums of one chain."""
        if self.lanes > 1:
            terms, _ = row_major([*outer, lane], [*(one.count for one in outer), self.count])
            return Index(distance, terms)
        terms, size = row_major(outer)
        return Index(distance * size, ((lane, size), *terms))

    def _together(self, statement: Statement, array: Array, outer: Sequence[Loop]) -> list[Node]:
        """Add partial sums to their sum."""
        operation = _REDUCTIONS[statement.operation][1]
        done: list[Node] = []
        count = self.count
        while count > max(1, self.lanes):
            count //= 2
            copied, lane = Substitution(), Loop(count, [])
            around = [copied.loop_copy(one) for one in outer]
            near, far = (Reference(array, self._index(around, lane, distance)) for distance in (0, count))
            done += nested([lane, *around], [Statement(operation, (Load(far),), near, True)])
        copied, lane = Substitution(), Loop(count, [])
        around = [copied.loop_copy(one) for one in outer]
        part = Load(Reference(array, self._index(around, lane)))
        adding = Statement(operation, (part,), copied.target(statement.target), True, origin=statement.origin)
        return [*done, *nested([*around, lane] if self.lanes > 1 else [lane, *around], [adding])]


def partial_sums(nest: Nest, free: Sequence[Loop], lanes: int) -> Iterator[PartialSums]:
    """The ways to split the sums of a nest that are worth a look.

    Args:
        nest: the nest.
        free: the loops of its band whose iterations are independent.
        lanes: of a vector.
    """
    if len(nest.around) > _MOST_STATEMENTS:
        return
    if any(loop.bound is not None for loop in nest.band) or not _has_few_sums(nest, free):
        return
    if nest.inner and not _can_be_cut(nest, free):
        return
    yield from (PartialSums(nest, free, count, 1) for count in _CHAINS)
    if lanes > 1:
        yield from (PartialSums(nest, free, lanes * count, lanes) for count in _VECTORS)


def free_but_for_sums(nest: Nest) -> list[Loop]:
    """The loops of the band whose iterations are independent, or add up."""
    found = independent_among([loop for loop in nest.band if loop.bound is None], [nest.band[0]])
    for loop in nest.band:
        if loop not in found and loop not in nest.fixed:
            sums = _sums(nest, [other for other in nest.band if other is not loop])
            if sums and _is_independent(nest, loop, sums):
                found.append(loop)
    return found


def sums_apart(loop: Loop) -> list[Node]:
    """The nest as one nest for each stretch of statements and each loop in its body, if few long sums are among them.

    Args:
        loop: the outermost of the nest.
    """
    nest = examine(loop) if any(isinstance(node, Loop) for node in band(loop)[-1].body) else None
    if nest is None or not _has_few_sums(nest, nest.band):
        return [loop]
    if not _can_be_cut(nest, independent_among(nest.band, [loop])):
        return [loop]
    return [_inside(nest.band, section) for section in sections(nest.body)]


def _has_few_sums(nest: Nest, free: Sequence[Loop]) -> bool:
    """Whether it has sums, and not as many of them as terms: then vectors and registers find enough sums."""
    counts = [loop.count for loop in (*nest.band, *nest.inner) if loop not in free]
    return bool(counts) and executions(free) <= max(counts) and any(s.update for s in nest.around)


def _can_be_cut(nest: Nest, free: Sequence[Loop]) -> bool:
    """Whether each part of the body may be executed for all iterations of the band, one part after the other."""
    if not nest.inner or len(free) < len(nest.band) or any(one.bound is not None for one in (*nest.band, *nest.inner)):
        return False
    part_of = {s: number for number, section in enumerate(sections(nest.body)) for s in statements(section)}
    return not crossing_registers(nest.body, part_of)


def _inside(band: Sequence[Loop], nodes: Sequence[Node]) -> Loop:
    """A copy of some nodes in copies of the loops."""
    copied = Substitution()
    loops = [copied.loop_copy(loop) for loop in band]
    (outermost,) = nested(loops, copy_nodes(nodes, copied))
    assert isinstance(outermost, Loop)
    return outermost


def _sums(nest: Nest, others: Sequence[Loop]) -> list[Statement]:
    """The updates that add up along another loop, where nothing else accesses what they add to.

    Args:
        nest: the nest.
        others: the loops that what they add to may depend on.
    """
    found = [
        statement
        for statement in nest.around
        if statement.update
        and statement.operation in _REDUCTIONS
        and isinstance(statement.target, Reference)
        and plain(statement.target.index) is not None
        and all(other in others for other, _ in statement.target.index.terms)
    ]
    accessed = Counter(array for s in nest.around for array in {*arrays_read(s), *arrays_written(s)})
    by_array: defaultdict[Array, list[Statement]] = defaultdict(list)
    for statement in found:
        assert isinstance(statement.target, Reference)
        by_array[statement.target.array].append(statement)
    return [
        statement
        for array, those in by_array.items()
        if len(those) == accessed[array]
        and len({_REDUCTIONS[one.operation][1] for one in those}) == 1
        and not any(array in operand_arrays(operand) for one in those for operand in one.operands)
        for statement in those
    ]


def _is_independent(nest: Nest, loop: Loop, sums: Sequence[Statement]) -> bool:
    """Whether the iterations of a loop are independent when each has sums of its own."""
    apart = Substitution()
    loops = [apart.loop_copy(one) for one in nest.band]
    body = copy_nodes(nest.body, apart)
    for statement in sums:
        copy = apart.registers[statement]
        assert isinstance(copy.target, Reference)
        array, index = copy.target
        many = Array(array.name, "scratch", array.size * loop.count)
        copy.target = Reference(many, index._replace(terms=(*index.terms, (apart.copies[loop], array.size))))
    return bool(independent_among([apart.copies[loop]], nested(loops, body)))
