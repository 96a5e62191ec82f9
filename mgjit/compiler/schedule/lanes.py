"""Split a loop into lanes: whole vectors side by side, and a remainder of shorter ones.

1. A step has some vectors side by side; each node of the body is executed for all of them before the next node.
2. The lanes become the innermost loop around every stretch of statements that differ between lanes.  Statements that
   are the same for all lanes are executed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.nest import Nest
from ...ir.program import Loop, Node, Statement, statements
from ...ir.substitute import Substitution
from .jam import side_by_side


def step(body: Sequence[Node], vectors: Sequence[tuple[int, int, Loop | None]], loop: Loop) -> list[Node]:
    """The body for some vectors, node by node.

    Args:
        vectors: given as (lanes, first iteration, the loop over such vectors, if there are several).
        loop: the loop in whose place they are.
    """
    lanes = [Loop(width, [], lanes=True) if width > 1 else None for width, _, _ in vectors]
    iterations = [
        Substitution(loop, outer, width, start, lane=lane) for (width, start, outer), lane in zip(vectors, lanes)
    ]
    lane_of: dict[Statement, Loop] = {}
    nodes = side_by_side(body, iterations)
    nest = Nest([], [], [], set(), dict.fromkeys(statements(nodes), ()))
    for lane in lanes:
        if lane is not None:
            lane_of.update(dict.fromkeys(nest.varying(lane), lane))
    return _lanes_innermost(nodes, lane_of)


def _lanes_innermost(nodes: Sequence[Node], lane_of: Mapping[Statement, Loop]) -> list[Node]:
    """The nodes with a loop over the lanes around every stretch of statements that differ between lanes."""
    done: list[Node] = []
    run: list[Statement] = []

    def close() -> None:
        done.extend(_around(part, lane_of[part[0]]) for part in _by_lane(run, lane_of))
        run.clear()

    for node in nodes:
        if isinstance(node, Loop):
            close()
            node.body = _lanes_innermost(node.body, lane_of)
            done.append(node)
        elif isinstance(node, Statement) and node in lane_of:
            run.append(node)
        else:
            done.append(node)
    close()
    return done


def _by_lane(run: Sequence[Statement], lane_of: Mapping[Statement, Loop]) -> list[list[Statement]]:
    """A stretch split by vector, which is possible because different vectors are independent."""
    parts: dict[Loop, list[Statement]] = {}
    for statement in run:
        parts.setdefault(lane_of[statement], []).append(statement)
    return list(parts.values())


def _around(run: Sequence[Statement], lane: Loop) -> Loop:
    copy = lane.empty_copy()
    substitution = Substitution(copies={lane: copy})
    for statement in run:
        statement.operands = tuple([substitution.operand(operand) for operand in statement.operands])
        statement.target = substitution.target(statement.target)
    copy.body = list(run)
    return copy
