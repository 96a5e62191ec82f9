"""Cut long straight-line bodies into blocks, each a separate function in the generated code.

Compile time grows faster than linearly with the length of a function: one of 10,000 statements takes gcc half a
minute, fifty of 200 take seconds.

1. A body is cut where no register is in use, or when a block becomes too long; blocks of blocks likewise.
2. Registers that are used in a later block are kept in memory (schedule/expand.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import Array, Block, Index, Loop, Node, Program, Reference, Statement, count_statements, statements
from ...ir.rewrite import registers_used
from .expand import Arrays, crossing_registers, expand_registers

#: Approximate number of statements per block.
BLOCK_SIZE = 200


def cut_blocks(program: Program) -> None:
    """Cut every body of more than two blocks' worth of statements, in place."""
    elements = _Elements("between")
    for _, nodes in program.phases:
        nodes[:] = _cut(nodes, elements)


class _Elements(Arrays):
    """Makes arrays of one element for each register that crosses from one block of a body to another."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self.begin()

    def begin(self) -> None:
        """Begin the next body."""
        self.count += 1
        self.array = Array(f"{self.prefix}{self.count}", "scratch", 0)

    def over(self, loops: Sequence[Loop]) -> Reference:
        """The next element; registers that cross blocks are not inside loops, so there is one element for each."""
        self.array.size += 1
        return Reference(self.array, Index(self.array.size - 1))


def _cut(nodes: Sequence[Node], elements: _Elements) -> list[Node]:
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _cut(node.body, elements)
    if len(nodes) <= 2 * BLOCK_SIZE:
        return list(nodes)
    blocks: list[Node] = []
    current: list[Node] = []
    size = open_until = 0
    last_use = _last_uses(nodes)
    for position, node in enumerate(nodes):
        current.append(node)
        size += count_statements([node])
        if isinstance(node, Statement):
            open_until = max(open_until, last_use.get(node, 0))
        if size >= 2 * BLOCK_SIZE or (size >= BLOCK_SIZE and open_until <= position):
            blocks.append(Block(current))
            current, size = [], 0
    if current:
        blocks.append(Block(current))
    _keep_crossing(blocks, elements)
    return _cut(blocks, elements) if len(blocks) < len(nodes) else blocks


def _keep_crossing(blocks: list[Node], elements: _Elements) -> None:
    part_of = {s: number for number, block in enumerate(blocks) for s in statements([block])}
    crossing = crossing_registers(blocks, part_of)
    if crossing:
        elements.begin()
        expand_registers(blocks, (), part_of, crossing, elements)


def _last_uses(nodes: Sequence[Node]) -> dict[Statement, int]:
    """The position in `nodes` where each statement is last used as a register."""
    found: dict[Statement, int] = {}
    for position, node in enumerate(nodes):
        for statement in statements([node]):
            found.update(dict.fromkeys(registers_used(statement), position))
    return found
