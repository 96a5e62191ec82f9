"""Lift a rolled trace to a Program: a statement for each record of the forest, and arrays instead of references.

1. Build the tree of loops and statements; every statement that has a result gets a scratch array with one
   element for each of its iterations (`simplify` removes most of them again).
2. The operand of a statement is a column of references over its iteration space.  Trace positions are affine in
   the loop variables, so a column is read with strided slices and compared with arithmetic progressions.
3. Classify each column: affine in memory; or different in the first iteration of one loop (a carried value)
   and affine in the rest; or anything else, which becomes an index table over the loops it depends on, or,
   when it mixes arrays, a table of arrays and one of indices.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...ir.builders import row_major
from ...ir.opcodes import (
    ADJOINT,
    BACKWARD,
    CONSTANT,
    GRADIENT,
    LINK,
    LINK_DIVIDED,
    NEST,
    NUMBER,
    OPERATIONS,
    PARAMETER,
    PUT,
    SELECT,
    STORE,
    TAKE,
    TEMPORARY,
    UNARY,
    TableLayout,
    leaf_index,
    leaf_kind,
)
from ...ir.parameters import ParameterLayout
from ...ir.program import (
    NOWHERE,
    Array,
    Backward,
    Block,
    Bound,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Origin,
    Program,
    Reference,
    Statement,
    TableEntry,
    Term,
    statements,
)
from ...ir.trace import Trace
from ..roll.columns import Dimension, positions_of, rows_of
from ..roll.forest import Counts, Fold, Item, LiftError, count_at
from ..roll.iterations import Bounded, Box, domain_of
from ..roll.known_loops import KnownSteps
from ..roll.reach import Reach
from .memory import Memory
from .nest_places import Around, parameters_to_join, tensors_to_join
from .nests import lift_nest
from .redirect import as_target, moved_to_adjoint, with_dynamic

#: By the number of a column, the record that is executed first and the first iteration of each loop: how much the index
#: changes along the loops.
Guide = dict[tuple[int, ...], dict[int, int]]


class _Record(NamedTuple):
    """A statement, its number from 1 on, and the trace positions of its iterations."""

    number: int
    base: int
    dimensions: tuple[Dimension, ...]
    statement: Statement
    strides: tuple[int, ...]
    result: Array


class _Level(NamedTuple):
    """The items of one body, for finding the statement of a trace position."""

    starts: list[int]
    entries: list[_Record | tuple[Fold, _Level]]


def lift(
    trace: Trace,
    forest: Sequence[Item],
    memory: Memory,
    reach: Reach,
    hole: int | None = None,
    wanted: Callable[[int], bool] | None = None,
    guide: Guide | None = None,
) -> Program:
    """The Program of a rolled trace, with Backward nodes, all in its forward phase.

    Args:
        hole: the entry of tables for iterations that are not executed; by default one that exists.  Tables of equal
            contents remain several ones then.
        wanted: whether the statement at a position is to have operands; where that is asked, loops have no bounds.
        guide: what other members of a family have told, and are told by this one.

    Raises:
        LiftError: the forest cannot be expressed.
    """
    return _Lifter(trace, memory, reach, hole, wanted, guide).run(forest)


class _Lifter:
    def __init__(
        self,
        trace: Trace,
        memory: Memory,
        reach: Reach,
        hole: int | None,
        wanted: Callable[[int], bool] | None,
        guide: Guide | None,
    ) -> None:
        self.trace, self.memory, self.reach, self.hole, self.wanted = trace, memory, reach, hole, wanted
        self._guide = guide
        self.records: list[_Record] = []
        self.backwards: list[tuple[int, Backward]] = []
        self.nests: list[tuple[Around, Node, list[Node]]] = []
        precision = trace.precision
        self.program = Program([], constants=array(precision.format, trace.constants), precision=precision)
        self.program.is_path = trace.is_path
        self.constant_array = Array("constants", "constant", len(trace.constants))
        self._tables: dict[bytes, int] = {}
        self._owners = self._indices = array("i")  # of some records: the number of the statement, and the iteration
        self._known_steps = KnownSteps(trace.blocks, trace.b)
        self._dimensions_of: dict[Backward, tuple[Dimension, ...]] = {}
        self._domains: dict[tuple[tuple[Loop, int, int], ...], Box | Bounded] = {}

    def run(self, forest: Sequence[Item]) -> Program:
        self.program.forward, self.top = self._build(forest, ())
        nests = [around for around, _, _ in self.nests]
        self.memory.join_tensors(tensors_to_join(self.trace, nests))
        self.memory.join_parameters(parameters_to_join(self.trace, self.memory.bases_of_parameters(), nests))
        for record in self.records:
            if self.wanted is None or self.wanted(record.base):
                self._fill(record)
        for around, placeholder, body in self.nests:
            nodes = lift_nest(self, around, self.reach.reached_by(around.position))
            for statement in statements(nodes):
                statement.origin = self._origin(*around)
            at = body.index(placeholder)
            body[at : at + 1] = nodes
        for position, node in self.backwards:
            node.root = self.operand(self.trace.a, position, self._dimensions_of[node])
        return self.program

    # ---- 1: the tree ------------------------------------------------------------------------------

    def _build(self, items: Sequence[Item], around: tuple[Dimension, ...]) -> tuple[list[Node], _Level]:
        nodes: list[Node] = []
        level = _Level([], [])
        for item in items:
            if isinstance(item, Fold):
                loop = Loop(item.count, [])
                if item.counts is not None and self.wanted is None:
                    loop.bound = self._bound(item.counts, around)
                dimension = Dimension(loop, 0, item.count, item.period, item.counts, item.grows)
                loop.body, inner = self._build(item.body, (*around, dimension))
                nodes.append(loop)
                level.starts.append(item.start)
                level.entries.append((item, inner))
            elif self.trace.op[item] == NEST:
                if around and (self.hole is not None or not isinstance(self._domain(around), Box)):
                    raise LiftError("operations on tensors in loops whose counts differ")
                nodes.append(Block([]))
                self.nests.append((Around(item, around), nodes[-1], nodes))
            elif self.trace.op[item] == BACKWARD:
                numbers = [bisect_left(self.reach.backwards, position) for position in positions_of(item, around)]
                node = Backward(Constant(0.0), numbers[0], frozenset(numbers), self._origin(item, around))
                self.backwards.append((item, node))
                self._dimensions_of[node] = around
                nodes.append(node)
            else:
                record = self._record(item, around)
                nodes.append(record.statement)
                level.starts.append(item)
                level.entries.append(record)
        return nodes, level

    def _origin(self, position: int, around: Sequence[Dimension]) -> Origin:
        """Where the iterations of a record come from, if the trace has noted it."""
        sites = self.trace.sites
        if sites is None:
            return NOWHERE
        return Origin(Counter(map(sites.__getitem__, self._domain(tuple(around)).positions(position))))

    def _bound(self, counts: Counts, around: Sequence[Dimension]) -> Bound:
        """The bound of a loop that is executed so often."""
        growing = [d for d in around if d.grows]
        domain = self._domain(growing)
        base, steps, entries = domain.separated([count_at(counts, point) for point in domain.points])
        table = self.table(entries, [d for d, step in zip(growing, steps) if step is None]) if entries else None
        return Bound(base, _terms((d.loop, step) for d, step in zip(growing, steps) if step is not None), table)

    def _domain(self, dimensions: Sequence[Dimension]) -> Box | Bounded:
        """The iterations of these loops."""
        key = tuple((d.loop, d.low, d.high) for d in dimensions)
        if key not in self._domains:
            self._domains[key] = domain_of(dimensions, self.hole)
        return self._domains[key]

    def _record(self, position: int, around: tuple[Dimension, ...]) -> _Record:
        shape = tuple(d.high for d in around)
        terms, size = row_major([d.loop for d in around], shape)
        strides = tuple(stride for _, stride in terms)
        code = self.trace.op[position]
        name = OPERATIONS[min(code & (NUMBER - 1), TAKE)]
        result = Array(f"t{len(self.records)}", "scratch", size, shape=shape)
        statement = Statement("copy" if name in ("store", "take") else name, ())
        statement.passes, statement.origin = self.reach.reached_by(position), self._origin(position, around)
        record = _Record(len(self.records) + 1, position, around, statement, strides, result)
        if name != "store" and code < PUT:
            statement.target = Reference(result, Index(0, terms))
        self.records.append(record)
        return record

    def _locate(self, position: int) -> tuple[_Record, list[int]]:
        """The statement of a trace position, and the iteration of each loop around it."""
        level = self.top
        indices: list[int] = []
        while True:
            entry = level.entries[bisect_right(level.starts, position) - 1]
            if isinstance(entry, _Record):
                return entry, indices
            fold, level = entry
            iteration, offset = divmod(position - fold.start, fold.period)
            indices.append(iteration)
            position = fold.start + offset

    # ---- 2: statements ------------------------------------------------------------------------------

    def _fill(self, record: _Record) -> None:
        trace, position, dimensions, statement = self.trace, record.base, record.dimensions, record.statement
        code = trace.op[position] & (NUMBER - 1)
        if code == STORE:
            statement.target = as_target(self.operand(trace.a, position, dimensions, as_place=True))
            statement.operands = (self.operand(trace.b, position, dimensions),)
        elif code >= TAKE:
            layout = trace.layouts[code - TAKE]
            place = self.operand(trace.a, position, dimensions, as_place=True)
            is_put = trace.op[position] >= PUT
            index = self.operand(trace.c if is_put and trace.c is not None else trace.b, position, dimensions)
            stride = self._table_stride(position, dimensions, layout)
            element = with_dynamic(place, Dynamic(index, stride, layout.count))
            if is_put:
                statement.target = as_target(element)
                statement.operands = (self.operand(trace.b, position, dimensions),)
            else:
                statement.operands = (element,)
        elif code in (SELECT, LINK, LINK_DIVIDED):
            assert trace.c is not None
            columns = (trace.c, trace.a, trace.b) if code == SELECT else (trace.a, trace.b, trace.c)
            statement.operands = tuple(self.operand(column, position, dimensions) for column in columns)
        elif code in UNARY:
            statement.operands = (self.operand(trace.a, position, dimensions),)
        else:
            statement.operands = tuple(self.operand(column, position, dimensions) for column in (trace.a, trace.b))

    def _table_stride(self, base: int, dimensions: tuple[Dimension, ...], layout: TableLayout) -> int:
        """The distance in memory of the elements of a look-up table, for a record of which all tables are alike."""
        firsts = {self.trace.a[position] for position in self._domain(dimensions).positions(base)}
        if leaf_kind(next(iter(firsts))) not in (PARAMETER, GRADIENT) or layout.count == 1:
            return layout.stride
        strides = {self._element(first - layout.stride)[1] - self._element(first)[1] for first in firsts}
        if len(strides) != 1:
            raise LiftError("a loop looks up parameters in tables that are laid out differently")
        return strides.pop()

    # ---- 3: columns -> operands ----------------------------------------------------------------------

    def operand(
        self, column: array[int], base: int, dimensions: tuple[Dimension, ...], as_place: bool = False
    ) -> Operand:
        domain = self._domain(dimensions)
        first = column[base + sum(i * d.period for i, d in zip(domain.origin, dimensions))]
        if leaf_kind(first) == ADJOINT:
            return self._adjoint_operand(column, base, dimensions)
        found = self._affine_operand(column, base, dimensions, as_place)
        if found is not None:
            return found
        for k in reversed(range(len(dimensions))):
            d = dimensions[k]
            if d.low == 0 and d.high > 1:
                one = () if isinstance(domain, Box) else (d._replace(high=1),)
                inner = (*dimensions[:k], *one, *dimensions[k + 1 :])
                rest_dimensions = (*dimensions[:k], d._replace(low=1), *dimensions[k + 1 :])
                if self._domain(inner).is_empty() or self._domain(rest_dimensions).is_empty():
                    continue
                rest = self._affine_operand(column, base, rest_dimensions, as_place)
                if rest is not None:
                    return Choice(d.loop, self.operand(column, base, inner, as_place), rest)
        return self._table_operand(column, base, dimensions)

    def _affine_operand(
        self, column: array[int], base: int, dimensions: tuple[Dimension, ...], as_place: bool
    ) -> Operand | None:
        domain = self._domain(dimensions)
        origin = base + sum(d.low * d.period for d in dimensions)
        affine = domain.affine(column, base, self._known_steps.of(column, origin, dimensions))
        if affine is None:
            return None
        first, steps = affine
        kind = leaf_kind(first)
        low, high = domain.span(steps)
        lowest, highest = first + low, first + high
        if kind == TEMPORARY:
            return self._temporary(column, base, steps, domain) if lowest >= 0 else None
        told = self._told(column, base, dimensions)
        if highest >= 0 or leaf_kind(lowest) != kind or leaf_kind(highest) != kind:
            return None
        if kind == CONSTANT and not any(steps) and not as_place:
            return Constant(self.program.constants[leaf_index(first)])
        place = self.leaf_place(kind, leaf_index(highest), leaf_index(lowest))
        if place is None:
            return None
        array_, start = place
        index = leaf_index(first) - start
        layout = self.memory.layout_of(array_)
        if layout is not None:
            return _in_block(array_, layout, index, [-step for step in steps], domain, told)
        return Load(Reference(array_, _affine_index(index, [-step for step in steps], domain, told)))

    def _told(self, column: array[int], base: int, dimensions: tuple[Dimension, ...]) -> dict[int, int] | None:
        """By how much an index changes along each loop, as far as members of a family have told."""
        if self._guide is None:
            return None
        columns = (self.trace.a, self.trace.b, self.trace.c)
        number = next((k for k, one in enumerate(columns) if one is column), None)
        return None if number is None else self._guide.setdefault((number, base, *[d.low for d in dimensions]), {})

    def leaf_place(self, kind: int, low: int, high: int) -> tuple[Array, int] | None:
        if kind == CONSTANT:
            return self.constant_array, 0
        return self.memory.place(kind, low, high)

    def _temporary(self, column: array[int], base: int, steps: list[int], domain: Box | Bounded) -> Operand | None:
        dimensions = domain.dimensions
        first = column[base + sum(i * d.period for i, d in zip(domain.origin, dimensions))]
        record, origin = self._locate(first)
        changes = []
        for k, step in enumerate(steps):
            if step == 0:
                changes.append([0] * len(origin))
                continue
            one, other, distance = domain.neighbours(k)
            here, indices = (record, origin) if column[base + one] == first else self._locate(column[base + one])
            neighbour, others = self._locate(column[base + other])
            if here is not record or neighbour is not record:
                return None
            change = [(j - i) // distance for i, j in zip(indices, others)]
            if sum(c * e.period for c, e in zip(change, record.dimensions)) != step:
                return None
            changes.append(change)
        for m, e in enumerate(record.dimensions):
            low, high = domain.span([change[m] for change in changes])
            if origin[m] + low < 0 or origin[m] + high >= e.high:
                return None
        dense = [sum(c * s for c, s in zip(change, record.strides)) for change in changes]
        index = sum(o * s for o, s in zip(origin, record.strides))
        told = self._told(column, base, tuple(dimensions))
        return Load(Reference(record.result, _affine_index(index, dense, domain, told)))

    def _adjoint_operand(self, column: array[int], base: int, dimensions: tuple[Dimension, ...]) -> Operand:
        """The gradient of an interior node: an operand over its record, redirected to the adjoint array."""
        reads = self.trace.adjoint_reads
        size = len(column)
        records = array("i", bytes(4 * size))
        numbers = set()
        for position in self._domain(dimensions).positions(base):
            if leaf_kind(column[position]) != ADJOINT:
                raise LiftError("a loop reads gradients of interior nodes and other things in one place")
            record, read_at = reads[leaf_index(column[position])]
            records[position] = record
            numbers.add(sum(1 for b in self.reach.backwards if b < read_at))
        if len(numbers) != 1:
            raise LiftError("gradients of interior nodes are read between different backward passes")
        operand = self.operand(records, base, dimensions)
        return moved_to_adjoint(operand, self.memory, numbers.pop())

    def _table_operand(self, column: array[int], base: int, dimensions: tuple[Dimension, ...]) -> Operand:
        domain = self._domain(dimensions)
        arrays, numbers, indices = self._elements(list(map(column.__getitem__, domain.positions(base))))
        if len(arrays) == 1:
            shift = 0 if self.hole is None else indices[0]  # it may be another one in other members of a family
            start, steps, entries = domain.separated([index - shift for index in indices])
            start += shift
            terms = _terms((d.loop, step) for d, step in zip(dimensions, steps) if step is not None)
            kept = [d for d, step in zip(dimensions, steps) if step is None]
            return Load(Reference(arrays[0], Index(start, terms, self.table(entries, kept) if kept else None)))
        selector = self.table(domain.table(numbers), list(dimensions))
        return Mixed(tuple(arrays), selector, self.table(domain.table(indices), list(dimensions)))

    def _elements(self, operands: list[int]) -> tuple[list[Array], list[int], list[int]]:
        """The arrays that operands lie in; and for each operand the number of its array, and the index in that."""
        if min(operands) >= 0:
            return self._results(operands)
        found = {operand: self._element(operand) for operand in dict.fromkeys(operands)}
        numbers: dict[Array, int] = {}
        for array_, _ in found.values():
            numbers.setdefault(array_, len(numbers))
        places = list(map(found.__getitem__, operands))
        return list(numbers), [numbers[array_] for array_, _ in places], [index for _, index in places]

    def _results(self, positions: list[int]) -> tuple[list[Array], list[int], list[int]]:
        """The same of records: those of a statement are looked up at once."""
        if not self._owners:
            self._owners, self._indices = (array("i", bytes(4 * len(self.trace))) for _ in range(2))
        owners, numbers = self._owners, dict[int, int]()
        for position in positions:
            owner = owners[position] or self._own(position)
            if owner not in numbers:
                numbers[owner] = len(numbers)
        arrays = [self.records[owner - 1].result for owner in numbers]
        if len(arrays) == 1:
            chosen = [0] * len(positions)
        else:
            chosen = [numbers[owners[position]] for position in positions]
        return arrays, chosen, list(map(self._indices.__getitem__, positions))

    def _own(self, position: int) -> int:
        """Note all iterations of the statement of a trace position; returns its number, from 1 on."""
        record, _ = self._locate(position)
        for row, index in rows_of(record.base, record.dimensions, record.strides):
            self._owners[row] = array("i", [record.number]) * len(index)
            self._indices[row] = array("i", index)
        return record.number

    def _element(self, operand: int) -> tuple[Array, int]:
        kind = leaf_kind(operand)
        if kind == TEMPORARY:
            record, indices = self._locate(operand)
            return record.result, sum(i * s for i, s in zip(indices, record.strides))
        index = leaf_index(operand)
        place = self.leaf_place(kind, index, index)
        assert place is not None
        array_, start = place
        layout = self.memory.layout_of(array_)
        return array_, index - start if layout is None else layout.position(index - start)

    def table(self, entries: list[int], dimensions: list[Dimension]) -> TableEntry:
        contents = array("i", entries)
        if self.hole is not None:
            return self._table_by_itself(contents, dimensions)
        key = contents.tobytes()
        offset = self._tables.get(key)
        if offset is None:
            offset = self._tables[key] = len(self.program.tables)
            self.program.tables.extend(contents)
        terms, _ = row_major([d.loop for d in dimensions], [d.high - d.low for d in dimensions])
        return TableEntry(offset - sum(d.low * stride for d, (_, stride) in zip(dimensions, terms)), terms)

    def _table_by_itself(self, contents: array[int], dimensions: list[Dimension]) -> TableEntry:
        """The same of a table with an offset that no other one has; there may be holes for iterations from 0 on."""
        terms, size = row_major([d.loop for d in dimensions], [d.high for d in dimensions])
        before = 0
        if size != len(contents):
            terms, _ = row_major([d.loop for d in dimensions], [d.high - d.low for d in dimensions])
            before = sum(d.low * stride for d, (_, stride) in zip(dimensions, terms))
        assert self.hole is not None
        offset = len(self.program.tables)
        self.program.tables.extend([self.hole] * before)
        self.program.tables.extend(contents)
        return TableEntry(offset, terms)


# ---- memory ------------------------------------------------------------------------------------------


def _in_block(
    array_: Array,
    layout: ParameterLayout,
    first: int,
    steps: list[int],
    domain: Box | Bounded,
    told: dict[int, int] | None,
) -> Operand | None:
    """An operand over parameters that a layout has moved, if all iterations are in one block."""
    block, row, column = layout.find(first)
    changes = []
    for step in steps:
        neighbour = block.locate(first + step)
        if neighbour is None:
            return None
        changes.append((neighbour[0] - row, neighbour[1] - column))
    for k, (here, end) in enumerate(((row, block.rows), (column, block.columns))):
        low, high = domain.span([change[k] for change in changes])
        if here + low < 0 or here + high >= end:
            return None
    dense = [rows * block.row_stride + columns * block.column_stride for rows, columns in changes]
    return Load(Reference(array_, _affine_index(block.position(row, column), dense, domain, told)))


def _affine_index(first: int, steps: Sequence[int], domain: Box | Bounded, told: dict[int, int] | None) -> Index:
    """The index that is `first` in the first iteration, and changes by these steps.

    Args:
        told: the steps along loops of which there is a single iteration; all others are noted there.
    """
    if told is not None:
        steps = [told.get(k, 0) if domain.is_single(k) else step for k, step in enumerate(steps)]
        for k, step in enumerate(steps):
            if not domain.is_single(k):
                told.setdefault(k, step)
    base = first - sum(step * i for step, i in zip(steps, domain.origin))
    return Index(base, _terms((d.loop, step) for d, step in zip(domain.dimensions, steps)))


def _terms(pairs: Iterable[Term]) -> tuple[Term, ...]:
    return tuple((loop, coefficient) for loop, coefficient in pairs if coefficient)
