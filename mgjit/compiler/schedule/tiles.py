"""Execute a nest with sums in tiles: some rows and vectors at a time, whose sums stay in registers.

    for i: for j:                              for j in steps of 64:
        r[i,j] = c[j]                              for k: for l < 64: panel[k,l] = b[k,j+l]
        for k:                           ->        for i in steps of 4:
            r[i,j] += a[i,k] * b[k,j]                  for rows: for vectors: tile[row, vector] = c[...]
        t[i,j] = relu(r[i,j])                          for k:
                                                           tile[0,0..15] += a[i+0,k] * panel[k,0..15] ...
                                                           tile[3,48..63] += a[i+3,k] * panel[k,48..63]
                                                       for rows: for vectors: t[...] = relu(tile[row, vector])

1. The loops of the vectors and of the rows are split into blocks and remainders.  What the sums read along the vectors
   is packed for each block: then it lies side by side, fits a cache, and is read once for all rows.
2. In a tile, sums are kept in an array of its own, with room for whole vectors: a remainder needs no shorter ones.
3. The body is taken apart where a loop begins or ends.  Sums are executed for all rows and vectors side by side; what
   is between them in loops over rows and vectors, which is less code.  Registers that cross become array elements.

Only independent iterations change places, and no sum changes its order.

Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builders import nested, row_major
from ...ir.dependence import plain
from ...ir.nest import Nest, loops_of
from ...ir.program import (
    Array,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Reference,
    Statement,
    arrays_read,
    arrays_written,
    reads,
    statements,
    walk,
    writes,
)
from ...ir.rewrite import rewrite_operands
from ...ir.substitute import Substitution, copy_nodes
from .expand import Arrays, crossing_registers, expand_registers
from .in_blocks import FEW, beside, blocks, rolled, sections
from .plan import SPECIAL, Plan
from .tile_plan import in_padded_row

#: Panels that are transposed are filled in stretches of so many elements, about a cache line.
_STRETCH = 16


class Tiles:
    """Executes a nest by a plan with tiles.

    Args:
        nest, plan: the nest and its plan.
        lanes: of a vector.
        arrays: makes the arrays of tiles.
    """

    def __init__(self, nest: Nest, plan: Plan, lanes: int, arrays: Arrays) -> None:
        assert plan.vector is not None
        assert plan.rows is not None
        self.nest, self.plan, self.lanes, self.arrays = nest, plan, lanes, arrays
        self.vector, self.rows = plan.vector, plan.rows

    def nodes(self) -> list[Node]:
        """The nodes that take the place of the nest."""
        place = self.plan.order.index(self.rows)
        outside = [loop for loop in self.plan.order[:place] if loop is not self.vector]
        packed = self.plan.packed
        depends = {loop for reference in packed for loop in loops_of(reference.index)}
        # The loops behind the last one that a panel depends on are inside a block of vectors.
        around = max((number + 1 for number, loop in enumerate(outside) if loop in depends or not packed), default=0)
        base = Substitution()
        loops = [base.loop_copy(loop) for loop in outside]
        sums = [base.loop_copy(loop) for loop in self.plan.order[place + 1 :]]
        body = nested(sums, copy_nodes(self.nest.body, base))
        packed = [self._moved(reference, base) for reference in packed]
        done: list[Node] = []
        for outer, size, start in blocks(self.vector.count, self.plan.vectors * self.lanes):
            nodes = self._columns(body, packed, loops[around:], outer, size, start)
            done += nodes if outer is None else nested([outer], nodes)
        return nested(loops[:around], done)

    @staticmethod
    def _moved(reference: Reference, substitution: Substitution) -> Reference:
        return Reference(reference.array, substitution.index(reference.index))

    # ---- 1: blocks --------------------------------------------------------------------------------------

    def _columns(
        self,
        body: Sequence[Node],
        packed: Sequence[Reference],
        inside: Sequence[Loop],
        outer: Loop | None,
        size: int,
        start: int,
    ) -> list[Node]:
        """A block of vectors: its panels, and, in the loops inside of it, the blocks of rows."""
        column = Loop(size, [])
        split = Substitution(self.vector, outer, self.plan.vectors * self.lanes, start, lane=column)
        copy = copy_nodes(body, split)
        filling: list[Node] = []
        panels: dict[Reference, Reference] = {}
        for reference in dict.fromkeys(self._moved(one, split) for one in packed):
            panel, fill = self._panel(reference, copy, column)
            panels[reference] = panel
            filling += fill
        _redirect(copy, panels)
        known = {panel.array for panel in panels.values()}
        done: list[Node] = []
        for outer_row, count, first in blocks(self.rows.count, self.plan.row_count):
            row = Loop(count, [])
            nodes = copy_nodes(copy, Substitution(self.rows, outer_row, self.plan.row_count, first, lane=row))
            tile = _Tile(nodes, row, column, self.lanes, self.arrays, known).nodes()
            done += tile if outer_row is None else nested([outer_row], tile)
        copies = Substitution()
        loops = [copies.loop_copy(loop) for loop in inside]
        return [*filling, *nested(loops, copy_nodes(done, copies) if loops else done)]

    def _panel(self, reference: Reference, nodes: Sequence[Node], column: Loop) -> tuple[Reference, list[Node]]:
        """The element of a packed copy of what a block of vectors reads, and the loops that fill it."""
        depends = {loop for loop, _ in reference.index.terms}
        loops = [node for node in walk(nodes) if isinstance(node, Loop) and node in depends]
        terms, size = row_major([*loops, column], [*(loop.count for loop in loops), self._width(column)])
        panel = Reference(self.arrays.new(size), Index(0, terms))
        return panel, _fill(reference, panel, loops, column, self.lanes)

    def _width(self, column: Loop) -> int:
        return -(-column.count // self.lanes) * self.lanes


def _redirect(nodes: Sequence[Node], places: dict[Reference, Reference]) -> None:
    """Read and write other elements in place of some, in place."""

    def replace(operand: Operand) -> Operand:
        if isinstance(operand, Load) and operand.reference in places:
            return Load(places[operand.reference])
        return operand

    for statement in statements(nodes):
        rewrite_operands(statement, replace)
        if isinstance(statement.target, Reference):
            statement.target = places.get(statement.target, statement.target)


def _fill(source: Reference, panel: Reference, loops: Sequence[Loop], column: Loop, lanes: int) -> list[Node]:
    """The loops that fill a panel."""
    steps = dict(source.index.terms)
    beside = next((loop for loop in loops if abs(steps[loop]) == 1), None)
    copies = {loop: Loop(loop.count, []) for loop in loops}
    substitution = Substitution(copies=copies)
    copy = Statement("copy", (substitution.operand(Load(source)),), substitution.target(panel))
    if steps[column] == 1 or beside is None:
        return nested(list(copies.values()), rolled([copy], None, column, lanes))
    # It is transposed: a stretch of a row at a time, so that both sides stay in a cache.
    others = [copies[loop] for loop in loops if loop is not beside]
    done: list[Node] = []
    for outer, size, start in blocks(beside.count, _STRETCH):
        stretch, lane = Loop(size, []), Loop(column.count, [])
        split = Substitution(copies[beside], outer, _STRETCH, start, copies={column: lane}, lane=stretch)
        inner = nested([lane, stretch], copy_nodes([copy], split))
        done += inner if outer is None else nested([outer], inner)
    return nested(others, done)


# ---- 2 and 3: a tile --------------------------------------------------------------------------------------------


class _Tile:
    """The nodes of one iteration of two loops, to be executed for all of them.

    Args:
        nodes: what one iteration does.
        row, column: the two loops.
        known: arrays that have room for whole vectors of columns.
    """

    def __init__(
        self, nodes: list[Node], row: Loop, column: Loop, lanes: int, arrays: Arrays, known: set[Array]
    ) -> None:
        self.body, self.row, self.column, self.lanes, self.arrays = nodes, row, column, lanes, arrays
        self.wide = set(known)
        self.width = -(-column.count // lanes) * lanes

    def nodes(self) -> list[Node]:
        """The tile."""
        self._keep_sums()
        parts = list(sections(self.body))
        part_of = {s: number for number, section in enumerate(parts) for s in statements(section)}
        crossing = crossing_registers(self.body, part_of)
        if crossing:
            column = self.column.count
            self.column.count = self.width  # so that these arrays have room for whole vectors
            held = _Held(self.arrays, self.wide)
            assert expand_registers(self.body, (self.row, self.column), part_of, crossing, held)
            self.column.count = column
            parts = list(sections(self.body))
        done: list[Node] = []
        for section in parts:
            # How a sum begins is short, and better done in registers.
            begins = not done and len(section) <= FEW and len(parts) > 1
            if begins or (isinstance(section[0], Loop) and self._adds_up(section[0])):
                width = self.width if self._has_room(section) else self.column.count
                done += beside(section, self.row, self.column, width, self.lanes)
            else:
                done += rolled(section, self.row, self.column, self.lanes)
        return done

    def _adds_up(self, loop: Loop) -> bool:
        inside = {node for node in walk([loop]) if isinstance(node, Loop)}
        return any(
            statement.update
            and isinstance(statement.target, Reference)
            and plain(statement.target.index) is not None
            and inside.isdisjoint(other for other, _ in statement.target.index.terms)
            for statement in statements([loop])
        )

    def _has_room(self, section: Sequence[Node]) -> bool:
        """Whether vectors may go beyond the last column."""
        return not any(
            statement.operation in SPECIAL
            or any(self._ends(array, index) and not self._is_padded(array, index) for array, index in reads(statement))
            or any(self._ends(array, index) for array, index in writes(statement))
            for statement in statements(section)
        )

    def _ends(self, array: Array, index: Index | None) -> bool:
        """Whether an access may have nothing behind its last column."""
        return array not in self.wide and (index is None or self.column in dict(index.terms))

    def _is_padded(self, array: Array, index: Index | None) -> bool:
        return index is not None and in_padded_row(Reference(array, index), self.column, self.width)

    def _keep_sums(self) -> None:
        """Let sums be in arrays of the tile, and copy them from and to where they are."""
        targets = {
            statement.target: statement
            for node in self.body
            if isinstance(node, Loop) and self._adds_up(node)
            for statement in statements([node])
            if statement.update and isinstance(statement.target, Reference)
        }
        for target, statement in targets.items():
            index = target.index
            if not self._is_only(target) or {self.row, self.column} - {loop for loop, _ in index.terms}:
                continue
            terms, size = row_major([self.row, self.column], [self.row.count, self.width])
            place = Reference(self.arrays.new(size), Index(0, terms))
            self.wide.add(place.array)
            begins = self._is_defined_first(target)
            _redirect(self.body, {target: place})
            if not begins:
                self.body.insert(0, Statement("copy", (Load(target),), place, origin=statement.origin))
            self.body.append(Statement("copy", (Load(place),), target, origin=statement.origin))

    def _is_only(self, target: Reference) -> bool:
        """Whether every access to an array is to this element."""
        for statement in statements(self.body):
            found = [*reads(statement), *writes(statement)]
            if any(array is target.array and (array, index) != target for array, index in found):
                return False
        return True

    def _is_defined_first(self, target: Reference) -> bool:
        """Whether the body begins with an assignment to an element, before anything reads it."""
        for node in self.body:
            if isinstance(node, Statement) and node.target == target and not node.update:
                return target not in list(reads(node))
            if any(target.array in {*arrays_read(s), *arrays_written(s)} for s in statements([node])):
                return False
        return False


class _Held(Arrays):
    """Makes arrays for registers that cross, all of which have room for whole vectors."""

    def __init__(self, arrays: Arrays, wide: set[Array]) -> None:
        super().__init__(arrays.prefix)
        self._arrays, self._wide = arrays, wide

    def over(self, loops: Sequence[Loop]) -> Reference:
        found = self._arrays.over(loops)
        self._wide.add(found.array)
        return found
