"""Cut long straight-line bodies into blocks, each a function of its own in the generated code.

Compilers need time that grows faster than linearly with the length of a function: one of 10,000 statements
takes gcc half a minute, fifty of 200 take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Block, Loop, Node, Program, Register, Statement, count_statements, leaf_operands, statements

#: Statements in a block, about.
BLOCK_SIZE = 200


def cut_blocks(program: Program) -> None:
    """Cut every body of more than two blocks' worth of statements, in place."""
    for _, nodes in program.functions:
        nodes[:] = _cut(nodes)


def _cut(nodes: Sequence[Node]) -> list[Node]:
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _cut(node.body)
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
        if size >= BLOCK_SIZE and open_until <= position:
            blocks.append(Block(current))
            current, size = [], 0
    if current:
        blocks.append(Block(current))
    return _cut(blocks) if len(blocks) < len(nodes) else blocks


def _last_uses(nodes: Sequence[Node]) -> dict[Statement, int]:
    """The position in `nodes` where each statement is last used as a register."""
    found: dict[Statement, int] = {}
    for position, node in enumerate(nodes):
        for statement in statements([node]):
            for operand in statement.operands:
                for part in leaf_operands(operand):
                    if isinstance(part, Register):
                        found[part.statement] = position
    return found
