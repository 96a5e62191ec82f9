"""Where the parameters of one storage lie, and the state beside them.

That is in blocks of rows and columns, chosen by passes/layout.py.

Code that comes from the disk cache brings its layout along, and needs no Program; so this does not import any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .program import PaddedRows

#: Fewer elements are no block of rows and columns.
FEWEST_LAID_OUT = 8


class ParameterBlock(NamedTuple):
    """Parameters `base + row * row_step + column`, stored at `place + row * row_stride + column * column_stride`."""

    base: int
    rows: int
    row_step: int
    columns: int
    place: int
    row_stride: int
    column_stride: int

    def locate(self, index: int) -> tuple[int, int] | None:
        """Row and column of a parameter; None if it is not in the block."""
        row, column = divmod(index - self.base, self.row_step)
        return (row, column) if 0 <= row < self.rows and column < self.columns else None

    def position(self, row: int, column: int) -> int:
        """The place of an element in the storage."""
        return self.place + row * self.row_stride + column * self.column_stride


@dataclass(frozen=True)
class ParameterLayout:
    """The blocks of one storage; indices count from its first parameter."""

    blocks: tuple[ParameterBlock, ...]
    size: int

    def find(self, index: int) -> tuple[ParameterBlock, int, int]:
        """Block, row and column of a parameter."""
        for block in self.blocks:
            found = block.locate(index)
            if found is not None:
                return block, *found
        raise KeyError(index)

    def position(self, index: int) -> int:
        """The place of a parameter in the storage."""
        block, row, column = self.find(index)
        return block.position(row, column)

    def padded_rows(self) -> tuple[PaddedRows, ...]:
        """The rows of the storage; a block that is not transposed counts as one row."""
        from .program import PaddedRows

        if all(block.column_stride == 1 for block in self.blocks):  # the natural order, in which blocks may alternate
            return ()
        found = []
        for block, end in zip(self.blocks, (*(block.place for block in self.blocks[1:]), self.size)):
            if block.column_stride > 1:
                found.append(PaddedRows(block.place, block.rows, block.column_stride, block.columns))
            else:
                found.append(PaddedRows(block.place, block.rows * block.columns, end - block.place, 1))
        return tuple(found)

    def natural(self) -> ParameterLayout:
        """The same blocks, with each parameter in the place of its number."""
        blocks = [b._replace(place=b.base, row_stride=b.row_step, column_stride=1) for b in self.blocks]
        return ParameterLayout(tuple(blocks), max(b.position(b.rows - 1, b.columns) for b in blocks))

    def to_json(self) -> list[Any]:
        """As lists of numbers."""
        return [self.size, [list(block) for block in self.blocks]]

    @classmethod
    def of_json(cls, stored: Any) -> ParameterLayout:
        """The layout written by `to_json`."""
        size, blocks = stored
        return cls(tuple(ParameterBlock(*block) for block in blocks), size)

    def positions(self, indices: Sequence[int]) -> list[int]:
        """The places of many parameters."""
        table: dict[int, int] = {}
        for block in self.blocks:
            for row in range(block.rows):
                start = block.base + row * block.row_step
                places = range(block.position(row, 0), block.position(row, block.columns), block.column_stride)
                table.update(zip(range(start, start + block.columns), places))
        return [table[index] for index in indices]


class Layouts(NamedTuple):
    """What a kernel lays out in its memory that no kernel has laid out before; all else lies in its natural order.

    Attributes:
        parameters: of the new parameters; None for their natural order.
        states: of those that do not lie in their natural order, by the number of their region.
    """

    parameters: ParameterLayout | None = None
    states: Mapping[int, ParameterLayout] = {}

    def __bool__(self) -> bool:
        return self.parameters is not None or bool(self.states)

    def natural(self) -> Layouts:
        """The same blocks, with each element in the place of its number."""
        parameters = None if self.parameters is None else self.parameters.natural()
        return Layouts(parameters, {region: layout.natural() for region, layout in self.states.items()})

    def to_json(self) -> list[Any]:
        """As lists of numbers."""
        parameters = None if self.parameters is None else self.parameters.to_json()
        return [parameters, [[region, layout.to_json()] for region, layout in self.states.items()]]

    @classmethod
    def of_json(cls, stored: Any) -> Layouts:
        """The layouts written by `to_json`."""
        parameters, states = stored
        return cls(
            None if parameters is None else ParameterLayout.of_json(parameters),
            {region: ParameterLayout.of_json(layout) for region, layout in states},
        )


#: Everything lies in its natural order.
NATURAL = Layouts()
