"""Where every array of a Program lies: the slots of the pointer block and the offsets in scratch memory.

A kernel gets one array of pointers.  Each parameter, gradient, state and input region and the outputs is a
slot; all scratch arrays share one slot, and so do constants and index tables.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from ...ir.builders import row_major
from ...ir.opcodes import GRADIENT, INPUT, OUTPUT, PARAMETER, STATE
from ...ir.program import Array, Loop, Mixed, Program, TableEntry, TargetMixed, arrays_read, arrays_written, statements
from ..lift.memory import Memory
from .slot import Slot

#: Elements per cache line, for the smaller number type; scratch arrays of at least this size are aligned to one.
_LINE = 16


class Selection(NamedTuple):
    """How a Mixed operand is addressed: the base arrays (None is the whole scratch memory) and two tables."""

    bases: tuple[Array | None, ...]
    selector: TableEntry
    position: TableEntry


@dataclass
class Layout:
    """The memory of one kernel.

    Attributes:
        slots: of the pointer block, in order.
        slot_of: the slot of each array that is not scratch; the first one, where it is joined.
        slots_of: all slots of arrays that are joined.
        offset_of: the place of each scratch array in scratch memory.
        scratch_size: elements of scratch memory.
        second_scratch: where the scratch memory of the next row begins in it, if the Program has a rotation.
        tables: the index tables, those of the Program first.
        given: the places of the numbers that are known when the step runs, among them.
        shared: the loops that threads share (sharing.py).
        own: of arrays of which each thread has its own, by how many elements they are apart.
    """

    slots: list[Slot] = field(default_factory=list)
    slot_of: dict[Array, int] = field(default_factory=dict)
    slots_of: dict[Array, list[int]] = field(default_factory=dict)
    offset_of: dict[Array, int] = field(default_factory=dict)
    scratch_size: int = 0
    second_scratch: int = 0
    tables: array[int] = field(default_factory=lambda: array("i"))
    given: dict[Loop, int] = field(default_factory=dict)
    shared: dict[Loop, None] = field(default_factory=dict)
    own: dict[Array, int] = field(default_factory=dict)

    def slot_number(self, space: str) -> int:
        """The slot of a space that has only one."""
        return next(number for number, slot in enumerate(self.slots) if slot.space == space)

    def selection(self, mixed: Mixed | TargetMixed) -> Selection:
        """Base arrays and tables of an operand that mixes arrays."""
        bases: list[Array | None] = []
        number_of: list[int] = []
        shifts: list[int] = []
        for member in mixed.arrays:
            scratch = member is None or member.space == "scratch"
            base = None if scratch else member
            if base not in bases:
                bases.append(base)
            number_of.append(bases.index(base))
            # Contributions to operands without a gradient go to the last element of scratch, which is never read.
            shifts.append(self.scratch_size - 1 if member is None else self.offset_of[member] if scratch else 0)
        selectors = [s if 0 <= s < len(mixed.arrays) else 0 for s in self._entries(mixed.selector)]
        positions = self._entries(mixed.position)
        assert len(selectors) == len(positions), "both tables are looked up by the same loops"
        numbers = [number_of[s] for s in selectors]
        places = [shifts[s] + (p if mixed.arrays[s] is not None else 0) for s, p in zip(selectors, positions)]
        return Selection(
            tuple(bases), self._new_table(numbers, mixed.selector), self._new_table(places, mixed.position)
        )

    def _entries(self, entry: TableEntry) -> list[int]:
        """The table entries that a reference reaches, in row-major order of its loops; 0 for any it never reaches."""
        counts = [range(loop.count) for loop, _ in entry.terms]
        tables, found = self.tables, []
        for iteration in product(*counts):
            position = entry.offset + sum(c * i for (_, c), i in zip(entry.terms, iteration))
            found.append(tables[position] if 0 <= position < len(tables) else 0)
        limit = 1 << 20  # entries out of range belong to neighbouring tables; they are never used, and kept small
        return [number if -limit < number < limit else 0 for number in found]

    def _new_table(self, entries: Sequence[int], like: TableEntry) -> TableEntry:
        offset = len(self.tables)
        self.tables.extend(entries)
        return TableEntry(offset, row_major([loop for loop, _ in like.terms])[0])


def lay_out(program: Program, memory: Memory) -> Layout:
    """Lay out the memory of a Program."""
    layout = Layout(tables=array("i", program.tables))
    layout.given = {one: place for place, one in enumerate(program.given)}
    number = program.precision.format
    for kind in (PARAMETER, GRADIENT, STATE, INPUT, OUTPUT):
        for position, (_, region) in enumerate(memory.regions[kind]):
            layout.slot_of.setdefault(region, len(layout.slots))
            if region.joined is not None:
                layout.slots_of.setdefault(region, []).append(len(layout.slots))
            one = position if region.joined is not None else region.region
            layout.slots.append(Slot(region.space, one, region.format if kind == INPUT else number))
    constants = len(layout.slots)
    layout.slots += [Slot("constant", 0, number), Slot("table", 0, "i"), Slot("scratch", 0, number)]
    layout.slots += [Slot("given", 0, "i")] if program.given else []
    rows = [] if program.row is None else program.row.nodes
    for nodes in (*(nodes for _, nodes in program.phases), rows):
        for statement in statements(nodes):
            for used in (*arrays_written(statement), *arrays_read(statement)):
                if used.space == "constant":
                    layout.slot_of[used] = constants
                elif used.space == "scratch" and used not in layout.offset_of:
                    if used.size >= _LINE:
                        layout.scratch_size = -(-layout.scratch_size // _LINE) * _LINE
                    layout.offset_of[used] = layout.scratch_size
                    layout.scratch_size += used.size
    layout.scratch_size += 1
    if program.rotation is not None:
        layout.second_scratch = -(-layout.scratch_size // _LINE) * _LINE
        layout.scratch_size += layout.second_scratch
    return layout
