"""Cut a nest with tiles in two, where what is left behind its whole vectors does better along another loop.

    for i < 784: for j < 50:                  for i < 784: for j < 48: for n: g[i,j] += x[n,i] * d[n,j]
        for n: g[i,j] += x[n,i] * d[n,j]  ->  for i < 784: for j < 2: for n: g[i,j+48] += x[n,i] * d[n,j+48]

With vectors of 16, the nest computes 64 lanes for 50 columns.  In two, the second nest has its vectors along the rows,
which cost next to nothing for two columns, even if they are written to distant places.

The vector loop is independent, so that its last iterations may come after all others.
"""

from __future__ import annotations

from ...ir.builders import nested
from ...ir.nest import Nest
from ...ir.program import Loop, Node
from ...ir.substitute import Substitution, copy_nodes
from ..toolchain.target import Processor
from .cost import Plan, Sharing, best_plan

#: What both nests may cost at most, beside the whole one: there is more code.
_WORTH = 0.9


def without_rest(nest: Nest, plan: Plan, processor: Processor, sharing: Sharing) -> list[Node]:
    """The two nests that take the place of a nest; empty if it stays whole.

    Args:
        nest, plan: the nest and its plan.
        processor: to plan for.
        sharing: as for `best_plan`.
    """
    if not plan.tiled or plan.vector is None:
        return []
    rest = plan.vector.count % processor.lanes
    whole = plan.vector.count - rest
    if not rest or not whole:
        return []
    behind = _part(nest, plan.vector, whole, rest)
    cost, along = best_plan(behind, processor, sharing)
    if along is None or cost > _WORTH * plan.cost:
        return []
    before = _part(nest, plan.vector, 0, whole)
    return [before, behind] if best_plan(before, processor, sharing)[0] + cost < _WORTH * plan.cost else []


def _part(nest: Nest, cut: Loop, start: int, count: int) -> Loop:
    """The nest, for some iterations of one loop of its band."""
    part = Loop(count, [])
    substitution = Substitution(cut, None, 1, start, lane=part)
    band = [part if loop is cut else substitution.loop_copy(loop) for loop in nest.band]
    (outermost,) = nested(band, copy_nodes(nest.body, substitution))
    assert isinstance(outermost, Loop)
    return outermost
