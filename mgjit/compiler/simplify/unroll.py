"""Unroll short loops whose first iteration differs, which removes the Choices in them.

    for i in 0 .. 1: t[16 i + j] = (x[j] if i == 0 else t[16 i + j - 16]) * s[i]

                          ->    t[j] = x[j] * s[0];  t[16 + j] = t[j] * s[1]

A loop of two or three iterations with Choices by its own variable is better unrolled, because these Choices would keep
everything inside it from being rearranged.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import Backward, Choice, Loop, Node, Program, Statement, TargetChoice, walk
from ...ir.substitute import Substitution, copy_nodes

#: Loops with more iterations than this are not unrolled.
_MOST_ITERATIONS = 3


def unroll(program: Program) -> None:
    """Unroll the short loops of a Program that has not been differentiated yet, in place."""
    program.forward = _unroll(program.forward)


def _unroll(nodes: Sequence[Node]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _unroll(node.body)
            if node.count <= _MOST_ITERATIONS and node.bound is None and _chooses(node):
                for iteration in reversed(range(node.count)) if node.reverse else range(node.count):
                    done += copy_nodes(node.body, Substitution(node, None, 1, iteration))
                continue
        done.append(node)
    return done


def _chooses(loop: Loop) -> bool:
    below = list(walk(loop.body))
    if any(isinstance(node, Backward) for node in below):
        return False
    return any(
        isinstance(part, (Choice, TargetChoice)) and part.loop is loop
        for node in below
        if isinstance(node, Statement)
        for part in (*node.operands, node.target)
    )
