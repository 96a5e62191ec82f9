"""Whether the operands of iterations that grow are regular enough for them to be a loop.

1. The operands are put in the places that they would have in the padded trace.
2. A column of operands is regular if it is affine, with a different first iteration of one of the loops perhaps; or if
   it changes by one step from each iteration of the growing loop to the next.
3. What an iteration reads from memory, or from a sequence that has a length of its own, may begin anywhere.  What was
   computed before the loop may be anything, since it may be part of another loop that has not been found yet.
4. Failing that, each operand may have a step of its own, or be outside of the loop.

Layers of different widths have equal shapes, and are no loop because their weights lie differently.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Union

from ...base.cached import cached_property
from ...ir.opcodes import ADJOINT, BACKWARD, leaf_kind
from ...ir.program import Loop
from ...ir.trace import Trace
from .columns import Dimension
from .holes import Grown, offsets, size_of
from .iterations import Bounded, Box, Point, domain_of, separate

#: Tells whether a column of a statement is regular, from the column, the place of the statement, and its iterations.
_Rule = Callable[["array[int]", int, Union[Box, Bounded]], bool]


class Operands:
    """The operands of a growing loop.

    Args:
        trace: without holes.
        places: of all records, and of the end, in the trace as it is padded so far.
        start, end: the records of the loop.
        tree: the loop.
        is_ragged: whether its counts follow no progression.
    """

    def __init__(self, trace: Trace, places: Sequence[int], start: int, end: int, tree: Grown, is_ragged: bool) -> None:
        self._trace, self._places, self._tree, self._is_ragged = trace, places, tree, is_ragged
        self._start, self._end = start, end
        self._domains: dict[tuple[tuple[Loop, int], ...], Box | Bounded] = {}
        self._dimension = Dimension(Loop(0, []), 0, tree.count, tree.size, None, True)
        self._inner: dict[int, Dimension] = {}

    def are_affine(self) -> bool:
        """Whether all columns are affine, or change by one step in each iteration."""
        return self._all(self._is_affine)

    def are_alike(self) -> bool:
        """The same, where each operand of an iteration may have a step of its own."""

        def is_regular(column: array[int], base: int, domain: Box | Bounded) -> bool:
            return self._is_affine(column, base, domain) or self._is_alike(column, base, domain)

        return self._all(is_regular)

    @cached_property
    def _offsets(self) -> list[int]:
        return offsets(self._tree)

    @cached_property
    def _columns(self) -> list[array[int]]:
        """The columns in the places of the loop; none if the loop contains what cannot be part of one."""
        trace, start, end = self._trace, self._start, self._end
        if len(self._offsets) != end - start or BACKWARD in trace.op[start:end]:
            return []
        columns = [column[start:end] for column in (trace.a, trace.b, trace.c) if column is not None]
        kinds = {leaf_kind(operand) for column in columns for operand in set(column)}
        return [] if ADJOINT in kinds else list(map(self._placed, columns))

    def _placed(self, operands: array[int]) -> array[int]:
        found = array("i", bytes(4 * size_of(self._tree)))
        start, places = self._start, self._places
        base = places[start]
        for offset, x in zip(self._offsets, operands):
            found[offset] = x if x < 0 else places[x] if x < start else base + self._offsets[x - start]
        return found

    def _all(self, is_regular: _Rule) -> bool:
        def all_of(tree: Grown, base: int, dimensions: tuple[Dimension, ...]) -> bool:
            domain = self._domain(dimensions)
            for part in tree.body:
                if isinstance(part, Grown):
                    inner = self._inner.setdefault(
                        id(part), Dimension(Loop(0, []), 0, part.count, part.size, part.counts, part.grows)
                    )
                    if not all_of(part, base, (*dimensions, inner)):
                        return False
                elif not domain.is_empty() and not all(is_regular(column, base, domain) for column in self._columns):
                    return False
                base += size_of(part)
            return True

        return bool(self._columns) and all_of(self._tree, 0, (self._dimension,))

    def _domain(self, dimensions: Sequence[Dimension]) -> Box | Bounded:
        key = tuple((d.loop, d.low) for d in dimensions)
        if key not in self._domains:
            self._domains[key] = domain_of(dimensions)
        return self._domains[key]

    def _without_first(self, domain: Box | Bounded, k: int) -> Box | Bounded:
        """All but the first iterations of one of the loops."""
        dimensions = domain.dimensions
        return self._domain([*dimensions[:k], dimensions[k]._replace(low=1), *dimensions[k + 1 :]])

    def _is_affine(self, column: array[int], base: int, domain: Box | Bounded) -> bool:
        if domain.affine(column, base, frozenset()) is not None:
            return True
        for k in range(len(domain.dimensions)):
            rest = self._without_first(domain, k)
            if rest.is_empty() or rest.affine(column, base, frozenset()) is not None:
                return True
        for part in (domain, self._without_first(domain, 0)):
            entries = [column[position] for position in part.positions(base)]
            if min(entries) >= 0 and max(entries) < self._places[self._start]:
                return True
            steps, _ = separate(part.points, entries)
            if steps[0] is not None or (None not in steps[1:] and (self._is_ragged or max(entries) < 0)):
                return True
        return False

    def _is_alike(self, column: array[int], base: int, domain: Box | Bounded) -> bool:
        part = self._without_first(domain, 0)
        entries = [column[position] for position in part.positions(base)]
        lines: dict[Point, list[tuple[int, int]]] = {}
        for (iteration, *inner), entry in zip(part.points, entries):
            lines.setdefault(tuple(inner), []).append((iteration, entry))
        return max(entries) >= 0 and all(map(self._is_outside_or_affine, lines.values()))

    def _is_outside_or_affine(self, line: Sequence[tuple[int, int]]) -> bool:
        """Whether an operand is outside of the loop in all iterations, or affine in them."""
        if all(entry < self._places[self._start] for _, entry in line):
            return True
        steps, _ = separate([(iteration,) for iteration, _ in line], [entry for _, entry in line])
        return steps[0] is not None
