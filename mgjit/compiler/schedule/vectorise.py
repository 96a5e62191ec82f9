"""Execute nests by their plans: reorder the band, split the vector loop into lanes, and rows into blocks.

    for b: for j:                         for b in steps of 4: for j in steps of 16:
        r[b,j] = c[j]                         lanes: r[b+0,j+0..7] = c[j+0..7] ... r[b+3,j+8..15] = c[j+8..15]
        for i:                       ->       for i:
            r[b,j] += w[i,j] * x[b,i]             lanes: r[b+0,j+0..7] += w[i,j+0..7] * x[b+0,i] ...
        t[b,j] = relu(r[b,j])                 lanes: t[b+0,j+0..7] = relu(r[b+0,j+0..7]) ...

1. Each nest at the top of a phase gets a plan (schedule/cost.py), or, if it has none, each nest inside it does.  Where
   code is to be there soon, those that have next to none of the work stay as they are.  A nest may be cut in two
   (schedule/rests.py); in fast mode, sums may be split (schedule/partial_sums.py).
2. The arrays chosen by the plan are packed (schedule/pack.py).
3. The band is put in the order of the plan.  Independent loops may be anywhere in it.
4. The vector loop is split into steps of whole vectors, and a remainder of shorter ones; the lanes become the innermost
   loop around every stretch of statements that differ between lanes.  Statements that are the same for all lanes are
   executed once.  Registers that cross stretches become array elements.  What is added to at scattered places is kept
   in an array of its own (schedule/window.py).
5. The steps and the rows are executed in register blocks (schedule/in_blocks.py).
6. A plan with tiles is executed by schedule/tiles.py instead.

No sum changes its order but those that are split; only independent iterations change places.

Sources: R. Allen, K. Kennedy, "Optimizing Compilers for Modern Architectures", 2001, chapter 5; for vectorising an
outer loop, D. Nuzman, A. Zaks, "Outer-loop vectorization", PACT 2008.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import accumulate

from ...ir.builders import nested
from ...ir.nest import Nest, examine
from ...ir.program import Array, Block, Load, Loop, Node, Program, Statement, arrays_written, leaf_operands, statements
from ...ir.rewrite import with_surroundings
from ...ir.substitute import Substitution, copy_nodes
from ..toolchain.target import Processor
from .cost import Plan, Sharing, best_plan, cost_when_scheduled
from .expand import Arrays, crossing_registers, expand_registers
from .in_blocks import in_blocks
from .pack import Packer, pattern
from .partial_sums import PartialSums
from .report import Scheduled, describe
from .rests import without_rest
from .tiles import Tiles


def vectorise(program: Program, processor: Processor) -> list[Scheduled]:
    """Schedule every nest of a Program, in place; returns how each nest is executed."""
    held, tiles = Arrays("lane"), Arrays("tile")
    neglected = _neglected(program, processor.neglected)
    numbers = [0]  # the number of packed arrays, whose names must be unique in all functions
    report: list[Scheduled] = []
    for name, nodes in program.phases:
        scheduler = _Scheduler(processor, _sharing(nodes), held, tiles, neglected)
        nodes[:] = scheduler.nodes(nodes, Packer(processor.lanes, numbers))
        report += [replace(one, phase=name) for one in scheduler.report]
    return report


def _neglected(program: Program, part: float) -> set[Loop]:
    """The nests with the least work, which have no more than a part of that of the Program together."""
    if part == 0.0:
        return set()
    nests = [node for _, nodes in program.phases for node in nodes if isinstance(node, Loop)]
    cost = {nest: sum(cost_when_scheduled(*found) for found in with_surroundings([nest])) for nest in nests}
    nests.sort(key=cost.__getitem__)
    together = accumulate(map(cost.__getitem__, nests))
    return set(nests[: bisect_right(list(together), part * sum(cost.values()))])


def _sharing(nodes: Sequence[Node]) -> Sharing:
    """How many statements read the same elements in the same pattern."""
    return Counter(
        pattern(part.reference)
        for statement in statements(nodes)
        for operand in statement.operands
        for part in leaf_operands(operand)
        if isinstance(part, Load) and len(part.reference.index.terms) > 1
    )


class _Scheduler:
    def __init__(
        self, processor: Processor, sharing: Sharing, held: Arrays, tiles: Arrays, neglected: Set[Loop] = frozenset()
    ) -> None:
        self.processor, self.sharing, self.held, self.tiles = processor, sharing, held, tiles
        self.neglected = neglected
        self.report: list[Scheduled] = []

    def nodes(self, nodes: Sequence[Node], packer: Packer) -> list[Node]:
        done: list[Node] = []
        for node in nodes:
            if isinstance(node, Loop) and node not in self.neglected:
                done += self.nest(node, packer)
            else:
                if isinstance(node, Block):
                    node.body = self.nodes(node.body, packer)
                done.append(node)
            packer.forget(_written(node))
        return done

    def nest(self, loop: Loop, packer: Packer) -> list[Node]:
        _, plan = best_plan(loop, self.processor, self.sharing)
        nest = examine(loop)
        if plan is not None and plan.partial is not None:
            return self._in_partial_sums(plan.partial, packer)
        parts = without_rest(nest, plan, self.processor, self.sharing) if nest is not None and plan is not None else []
        if parts:
            return self.nodes(parts, packer)
        if plan is None and any(isinstance(node, Loop) for node in loop.body):  # the nests inside report
            return self._scheduled(loop, nest, plan, packer)
        self.report.append(describe(loop, nest, plan, self.processor))
        own = self.report[-1]
        nodes = self._scheduled(loop, nest, plan, packer)
        own.members = list(statements(nodes))
        return nodes

    def _in_partial_sums(self, partial: PartialSums, packer: Packer) -> list[Node]:
        """What becomes of a nest whose sums are split, each part by its own plan."""
        nodes = partial.nodes(self.held)
        assert nodes is not None
        inside = _Scheduler(replace(self.processor, is_fast=False), self.sharing, self.held, self.tiles)
        done = inside.nodes(nodes, packer)
        self.report += inside.report
        return done

    def _scheduled(self, loop: Loop, nest: Nest | None, plan: Plan | None, packer: Packer) -> list[Node]:
        if plan is not None:
            assert nest is not None
            if plan.tiled or plan.vector is None or self._keep_crossing(loop, nest, plan.vector):
                return self._execute(loop, nest, plan, packer)
        loop.body = self.nodes(loop.body, packer.inside(_written(loop)))
        return [loop]

    # ---- 2 to 5 -------------------------------------------------------------------------------------

    def _execute(self, loop: Loop, nest: Nest, plan: Plan, packer: Packer) -> list[Node]:
        if plan.tiled:
            return Tiles(nest, plan, self.processor.lanes, self.tiles).nodes()
        filling: list[Node] = []
        if plan.vector is not None and plan.packed:
            filling = packer.pack([loop], plan.vector, plan.packed)
        substitution = Substitution()
        copies = [substitution.loop_copy(one) for one in plan.order]
        nodes = copy_nodes(nest.body, substitution)
        copy_of = dict(zip(plan.order, copies))
        vector = copy_of[plan.vector] if plan.vector is not None else None
        if vector is not None and plan.padded:
            vector.count = -(-vector.count // self.processor.lanes) * self.processor.lanes
        for one in reversed(plan.order):
            if one is plan.rows or (one is plan.vector and plan.rows is None):
                rows = copy_of[one] if one is plan.rows else None
                before, behind = self._window(plan, nodes, substitution)
                nodes = in_blocks(nodes, rows, plan.row_count, vector, plan.vectors, self.processor.lanes)
                nodes = [*before, *nodes, *behind]
            elif one is not plan.vector:
                nodes = nested([copy_of[one]], nodes)
        return filling + nodes

    def _window(self, plan: Plan, nodes: list[Node], copied: Substitution) -> tuple[list[Node], list[Node]]:
        """Keep in its window what the plan says; the loops that copy it."""
        if plan.window is None:
            return [], []
        return plan.window.hold(nodes, plan.window.array(self.held), copied)

    def _keep_crossing(self, loop: Loop, nest: Nest, vector: Loop) -> bool:
        """Keep registers that cross stretches in arrays, with an element per lane; False if there are too many."""
        varying = nest.varying(vector)
        part_of = {s: number for number, run in enumerate(_runs(nest.body)) for s in run}
        crossing = crossing_registers([loop], part_of) & varying
        return not crossing or expand_registers([loop], (), part_of, crossing, self.held)


def _written(node: Node) -> set[Array]:
    return {array for statement in statements([node]) for array in arrays_written(statement)}


def _runs(nodes: Sequence[Node]) -> list[list[Statement]]:
    """All stretches of statements without a loop between them, below `nodes`."""
    runs: list[list[Statement]] = []
    current: list[Statement] = []
    for node in nodes:
        if isinstance(node, Loop):
            runs += [current, *_runs(node.body)]
            current = []
        elif isinstance(node, Statement):
            current.append(node)
    return [run for run in [*runs, current] if run]
