"""Where the nests of loops find their operands: places in arrays, for the iterations of the loops around them.

1. What a nest writes in different iterations is a tensor each, a region of memory.  These regions become one array, and
   so do those that it reads one after the other (`Memory.join_tensors`).  Parameters of equal layers, which lie
   anywhere, become one array as well, of which the code has a table of pointers (`Memory.join_parameters`).
2. A column of places is what one operand of a nest is in all iterations of the loops around.  It is an element that is
   affine in these loops; or another one in the first iteration of one of them; or a table of elements of one array.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Callable, NamedTuple

from ...ir.opcodes import GRADIENT, PARAMETER, TENSOR, leaf_index, leaf_kind
from ...ir.program import Array, Choice, Index, Load, Operand, Reference, TableEntry
from ...ir.trace import NestRecord, Place, Trace
from ..roll.columns import Dimension, positions_of


class Around(NamedTuple):
    """A nest in loops: the position of its first record, and the loops, outermost first."""

    position: int
    dimensions: tuple[Dimension, ...]

    def nests(self, trace: Trace) -> list[NestRecord]:
        """Those of all iterations, in order."""
        return [trace.nests[leaf_index(trace.a[p])] for p in positions_of(self.position, self.dimensions)]


def tensors_to_join(trace: Trace, nests: Sequence[Around]) -> list[list[int]]:
    """The numbers of the regions that are to be one array, for each such array in order of their places."""
    bases = [region.base for region in trace.tensors]
    together = []
    for around in nests:
        for leaves in _columns(around, trace) if around.dimensions else ():
            regions = [bisect_right(bases, leaf_index(leaf)) - 1 for leaf in leaves]
            if not any(trace.tensors[number].is_leaf for number in regions):
                together.append(regions)
    return _groups(len(bases), together)


def parameters_to_join(trace: Trace, bases: Sequence[int], nests: Sequence[Around]) -> list[list[int]]:
    """The same of regions of parameters, which begin at `bases`."""
    columns = (
        places
        for around in nests
        for places in (zip(*(nest.places() for nest in around.nests(trace))) if around.dimensions else ())
        if leaf_kind(places[0].leaf) in (PARAMETER, GRADIENT)
    )
    leaves = ([leaf_index(place.leaf) for place in places] for places in columns)
    return _groups(len(bases), [[bisect_right(bases, leaf) - 1 for leaf in one] for one in leaves])


def _groups(count: int, together: Sequence[Sequence[int]]) -> list[list[int]]:
    """The classes of `range(count)`, in order, in which all numbers are that are somewhere together; not of one."""
    parent = list(range(count))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for numbers in together:
        for number in numbers:
            parent[root(number)] = root(numbers[0])
    groups: dict[int, list[int]] = {}
    for number in range(count):
        groups.setdefault(root(number), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def _columns(around: Around, trace: Trace) -> Iterator[list[int]]:
    """The leaves of tensors that each place of a nest is in the iterations around; reads without first iterations."""
    nests = around.nests(trace)
    if leaf_kind(nests[0].target.leaf) == TENSOR:
        yield [nest.target.leaf for nest in nests]
    points = product(*(range(d.high) for d in around.dimensions))
    later = [nest for nest, point in zip(nests, points) if all(point)] or nests
    for number, place in enumerate(later[0].operands):
        if not place.column and leaf_kind(place.leaf) == TENSOR:
            yield [nest.operands[number].leaf for nest in later]


#: An array, and an element.
Element = tuple[Array, int]
#: The iterations of a loop.
Span = range
#: Makes the entry of a table: of its entries and the loops, the last one side by side.
MakeTable = Callable[["list[int]", "list[Dimension]"], TableEntry]


class Column:
    """The elements that one place of a nest is in the iterations of the loops around.

    Args:
        elements: of all iterations, in order.
        dimensions: the loops.
        table: makes the entry of a table over loops.
    """

    def __init__(self, elements: Sequence[Element], dimensions: Sequence[Dimension], table: MakeTable) -> None:
        self._dimensions, self._make_table = dimensions, table
        self._spans = [range(d.low, d.high) for d in dimensions]
        self._elements = dict(zip(product(*self._spans), elements))

    def operand(self, own: Index) -> Operand | None:
        """The operand, with the index that the loops of the nest itself contribute; None if there is none."""
        return self._found(self._spans, own)

    def _found(self, spans: list[Span], own: Index) -> Operand | None:
        found = self._affine(spans, own)
        if found is not None:
            return found
        for k in reversed(range(len(spans))):
            if spans[k].start == 0 and len(spans[k]) > 1:
                rest = self._affine([*spans[:k], range(1, spans[k].stop), *spans[k + 1 :]], own)
                first = self._found([*spans[:k], range(1), *spans[k + 1 :]], own) if rest is not None else None
                if rest is not None and first is not None:
                    return Choice(self._dimensions[k].loop, first, rest)
        return self._table(spans, own)

    def _affine(self, spans: Sequence[Span], own: Index) -> Load | None:
        origin = tuple(span.start for span in spans)
        array, first = self._elements[origin]
        steps = []
        for k, span in enumerate(spans):
            next_one = (*origin[:k], origin[k] + 1, *origin[k + 1 :])
            steps.append(self._elements[next_one][1] - first if len(span) > 1 else 0)
        for point in product(*spans):
            expected = first + sum(step * (x - low) for step, x, low in zip(steps, point, origin))
            if self._elements[point] != (array, expected):
                return None
        base = first - sum(step * low for step, low in zip(steps, origin))
        terms = tuple((d.loop, step) for d, step in zip(self._dimensions, steps) if step)
        return Load(Reference(array, own._replace(base=own.base + base, terms=(*terms, *own.terms))))

    def _table(self, spans: Sequence[Span], own: Index) -> Load | None:
        found = [self._elements[point] for point in product(*spans)]
        if len({id(array) for array, _ in found}) > 1:
            return None
        shape = [d._replace(low=span.start, high=span.stop) for d, span in zip(self._dimensions, spans)]
        entry = self._make_table([index for _, index in found], shape)
        return Load(Reference(found[0][0], own._replace(table=entry)))


def spans_of(place: Place, counts: Sequence[int]) -> tuple[int, int]:
    """By how much the elements of a place lie before and behind the first one."""
    steps = [stride * (count - 1) for stride, count in zip(place.strides, counts)]
    if place.chosen is not None:
        steps.append(place.chosen[1] * (place.chosen[2] - 1))
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
