"""Decide how a nest is executed: which loop runs in vectors, which one is jammed, and by how much.

1. Only loops of independent iterations are considered: they can be moved anywhere in the band.
2. A plan puts the loops in the order: other independent ones, the jammed one, the vector loop, the others (sums).
   Its cost counts operations and accesses: a vector operation costs as much as a scalar one; what is read or
   written at consecutive places, or is the same in all lanes, is one access, anything else one for each lane.
3. An array that is only read, and read several times, may be packed first: copied so that it is consecutive.
4. What is added to at scattered places may be kept in an array of its own meanwhile (schedule/window.py).
5. Sums are chains of dependent additions, so several must be in flight at once, and they share what they read.  The
   numbers of vectors and rows side by side are those that cost least and still keep all sums in registers.
6. The alternatives are to leave the band alone and to plan the nests inside it, or, for long sums that read much again
   and again, to execute the nest in tiles (schedule/tile_plan.py).  In fast mode, another one is to split sums
   (schedule/partial_sums.py): the nests that come of it are planned by themselves, and cost what these plans cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...engine.library import FUNCTIONS as LIBRARY
from ...ir.dependence import independent_among, plain
from ...ir.nest import Nest, Use, examine, loops_of, work
from ...ir.program import Loop, Reference, Statement, reads, writes
from ..toolchain.target import Processor
from .expand import Arrays
from .pack import pattern
from .partial_sums import partial_sums
from .plan import (
    CONVERSION,
    LOAD,
    PACKING,
    SPECIAL,
    STRIDED,
    from_cache,
    operation_cost,
    pieces,
)
from .plan import Plan as Plan
from .plan import Sharing as Sharing
from .register_block import RegisterBlock, steps_of
from .tile_plan import memory_cost, tiled_plan
from .uses import Uses
from .window import Window, window_of

#: A plan must be better than the current order by this factor.
_GAIN = 0.9
#: Sums are not split in a nest that costs less than so many times what it would in whole vectors.
_NEARLY_BEST = 1.2
#: The most statements that a jammed body may have.
_LARGEST_BODY = 320
_MOST_SIDE_BY_SIDE = 16
#: A window of so many elements fits the nearest cache: 32 KB in float32.
_NEAR = 8_192
#: The most vectors of a window that are side by side: they share what is the same for all of them.
_MOST_IN_WINDOW = 4


def best_plan(
    loop: Loop, processor: Processor, sharing: Sharing | None = None, independent: Sequence[Loop] | None = None
) -> tuple[float, Plan | None]:
    """The cost of a nest, and the plan to execute it; None: each nest inside it is executed by its own plan.

    Args:
        loop: the outermost of the nest.
        processor: the processor to schedule for.
        sharing: for each pattern of reads, how many statements would share a packed copy.
        independent: the loops of its band whose iterations are independent, where they are known.
    """
    sharing = sharing or {}
    nest = examine(loop)
    inside = _cost_of_insides(loop, processor, sharing)
    if nest is None:
        return inside, None
    # A loop cannot be split into steps if anything but affine indices depends on it.
    free = [one for one in nest.band if one not in nest.fixed and one.count > 1]
    free = independent_among(free, [loop]) if independent is None else [one for one in free if one in independent]
    uses = Uses(nest, processor)
    plans = [_plan(uses, vector, free, processor, sharing) for vector in free] if processor.lanes > 1 else []
    plain = _plan(uses, None, free, processor, sharing)
    plan = min([plain, *plans], key=lambda one: one.cost)
    if plan is not plain and plan.cost > _GAIN * plain.cost:
        plan = plain
    if plan.vector is None and plan.rows is None:
        found: tuple[float, Plan | None] = min(inside, plan.cost), None
    else:
        found = (plan.cost, plan) if plan.cost < _GAIN * inside else (inside, None)
    tiled = tiled_plan(nest, free, processor)
    if tiled is not None and tiled.cost < _GAIN * (found[0] + memory_cost(nest, found[1], processor)):
        found = tiled.cost, tiled
    return _in_partial_sums(nest, free, processor, sharing, found) if processor.is_fast else found


def _in_partial_sums(
    nest: Nest, free: Sequence[Loop], processor: Processor, sharing: Sharing, found: tuple[float, Plan | None]
) -> tuple[float, Plan | None]:
    """The best way to split the sums of a nest, if it is better than what has been found."""
    if found[0] < _NEARLY_BEST * _in_whole_vectors(nest, processor):
        return found
    each = replace(processor, is_fast=False)  # what becomes of a sum is not split again
    limit = _GAIN * found[0]
    for partial in partial_sums(nest, free, processor.lanes):
        nodes = partial.nodes(Arrays("part"))
        cost = sum(best_plan(node, each, sharing)[0] for node in nodes or () if isinstance(node, Loop))
        if nodes is not None and cost < limit:
            limit, found = cost, (cost, Plan(cost, nest.band, partial=partial))
    return found


def _in_whole_vectors(nest: Nest, processor: Processor) -> float:
    """What a nest would cost whose operations and accesses are whole vectors, without waiting."""
    operations = sum(work(loops) * operation_cost(statement) for statement, loops in nest.around.items())
    return (operations + LOAD * sum(work(use.loops) for use in nest.uses)) / processor.lanes


def _cost_of_insides(loop: Loop, processor: Processor, sharing: Sharing) -> float:
    total = 0.0
    for node in loop.body:
        if isinstance(node, Loop):
            total += best_plan(node, processor, sharing)[0]
        elif isinstance(node, Statement):
            total += operation_cost(node) + 2 * LOAD
    return total * work([loop])


def cost_when_scheduled(statement: Statement, loops: Sequence[Loop]) -> float:
    """About what a statement costs where it is, in all iterations: in lanes, an operation is one for all of them.

    Args:
        loops: around it, outermost first.
    """
    lane = loops[-1] if loops and loops[-1].lanes else None
    around = loops[:-1] if lane is not None else loops
    lanes = 1 if lane is None else lane.count
    total = 0.0 if statement.operation == "copy" else operation_cost(statement)
    if statement.operation in LIBRARY:  # which has no vectors
        total *= lanes
    for array, index in (*reads(statement), *writes(statement)):
        if index is None:
            total += STRIDED * lanes
        elif not around or around[-1] in loops_of(index) or statement.operation == "copy":  # else it is in a register
            step = 0 if lane is None else dict(index.terms).get(lane, 0)
            total += (LOAD if step in (0, 1) else STRIDED * lanes) + (CONVERSION if array.format not in "df" else 0)
    return max(total, LOAD) * work(around)


# ---- 2 to 4: the cost of an order --------------------------------------------------------------------------


def _plan(uses: Uses, vector: Loop | None, free: Sequence[Loop], processor: Processor, sharing: Sharing) -> Plan:
    nest = uses.nest
    sums = [loop for loop in nest.band if loop not in free]
    best: Plan | None = None
    for rows in [None, *(loop for loop in free if loop is not vector)]:
        first = [loop for loop in free if loop not in (vector, rows)]
        order = [*first, *([rows] if rows else []), *([vector] if vector else []), *sums]
        if vector is None and rows is None:
            order = list(nest.band)
        windows: list[Window | None] = [None]
        if vector is not None and rows is None:
            window = window_of(nest, vector, [vector, *sums, *nest.inner], processor.lanes)
            windows += [window] if window is not None else []
        for window in windows:
            plan = _plan_in_order(uses, order, vector, rows, window, processor, sharing)
            if best is None or plan.cost < best.cost:
                best = plan
    assert best is not None
    return best


def _plan_in_order(
    uses: Uses,
    order: list[Loop],
    vector: Loop | None,
    rows: Loop | None,
    window: Window | None,
    processor: Processor,
    sharing: Sharing,
) -> Plan:
    nest, plan = uses.nest, Plan(0.0, order, vector, 1, rows, 1, window=window)
    times = uses.times(plan)
    plan.packed = _worth_packing(uses, times, plan, processor, sharing)
    plan.padded = (
        vector is not None
        and vector.count % processor.lanes > 0
        and all(
            use.reference in plan.packed or _held(use, plan) or _has_room(use, vector, processor.lanes)
            for use in nest.uses
        )
        and not any(statement.operation in SPECIAL for statement in nest.around)
    )
    plan.cost = _cost(uses, times, plan, processor, sharing)
    _side_by_side(nest, plan, processor)
    return plan


def _held(use: Use, plan: Plan) -> bool:
    """Whether an access is to the window."""
    return plan.window is not None and use.reference == plan.window.target


def vectors_of(plan: Plan, processor: Processor) -> tuple[tuple[int, int], ...]:
    """The vector loop as (lanes, how many such vectors)."""
    if plan.vector is None:
        return ()
    if plan.padded:
        return ((processor.lanes, -(-plan.vector.count // processor.lanes)),)
    return pieces(plan.vector.count, processor.lanes)


def _share(plan: Plan, processor: Processor) -> float:
    """Vector operations per scalar operation: how many vectors the loop takes, divided by its iterations."""
    if plan.vector is None:
        return 1.0
    return sum(count for _, count in vectors_of(plan, processor)) / plan.vector.count


def _has_room(use: Use, vector: Loop, lanes: int) -> bool:
    """Whether an access may go beyond the end of the vector loop, up to the end of its last vector."""
    index = use.reference.index
    if plain(index) is None:
        return False
    steps = dict(index.terms)
    step = steps.pop(vector, 0)
    if step == 0:
        return True
    end = -(-vector.count // lanes) * lanes
    return (
        step == 1
        and plain(index) is not None
        and any(
            rows.place <= index.base < rows.place + rows.pitch * rows.count
            and (index.base - rows.place) % rows.pitch == 0
            and vector.count == rows.used
            and end <= rows.pitch
            and not any(c % rows.pitch for c in steps.values())
            for rows in use.reference.array.padded_rows
        )
    )


def _worth_packing(
    uses: Uses, all_times: Sequence[float], plan: Plan, processor: Processor, sharing: Sharing
) -> list[Reference]:
    """Reads whose lanes are scattered or unaligned, and that cost less as reads of an aligned copy."""
    found: list[Reference] = []
    for number, (use, times, now) in enumerate(zip(uses.nest.uses, all_times, uses.costs(plan.vector))):
        if now > LOAD / processor.lanes and uses.packable[number]:
            copying = _copying(use, plan, processor, sharing)
            if times * LOAD / processor.lanes + copying < times * now:
                found.append(use.reference)
    return found


def _copying(use: Use, plan: Plan, processor: Processor, sharing: Sharing) -> float:
    """This nest's share of the cost of packing what an access reads."""
    steps, depends = dict(use.reference.index.terms), loops_of(use.reference.index)
    elements = work([loop for loop in use.loops if loop in depends])
    each = PACKING / processor.lanes if plan.vector and steps.get(plan.vector) == 1 else PACKING
    # A copy of what a loop around the nest chooses is made again in each of its iterations, for this nest alone.
    shared = sharing.get(pattern(use.reference), 1) if depends <= set(use.loops) else 1
    return elements * each / max(1, shared)


def _cost(uses: Uses, all_times: Sequence[float], plan: Plan, processor: Processor, sharing: Sharing) -> float:
    share = _share(plan, processor)
    total = sum(work(loops) * share * operation_cost(s) for s, loops in uses.nest.around.items())
    for use, times, access in zip(uses.nest.uses, all_times, uses.costs(plan.vector)):
        conversion = CONVERSION if use.reference.array.format not in "df" else 0.0
        if use.reference in plan.packed:
            total += times * share * LOAD + _copying(use, plan, processor, sharing)
        elif plan.window is not None and _held(use, plan):
            total += times * share * (LOAD + _from_window(plan.window)) + _holding(use, plan, plan.window)
        elif access == STRIDED:
            total += times * (STRIDED + conversion)
        else:
            total += times * share * (access * processor.lanes + conversion)
    return total


def _from_window(window: Window) -> float:
    """What an access to a window costs beside the load: one that fits the nearest cache stays there."""
    return 0.0 if window.elements <= _NEAR else from_cache(window.elements)


def _holding(use: Use, plan: Plan, window: Window) -> float:
    """What copying the window costs, before the nest for what reads and behind it for what writes."""
    around = [loop for loop in plan.order[: plan.order.index(window.vector)] if loop in use.loops]
    return PACKING * window.places * window.vector.count * work(around)


# ---- 5: side by side ------------------------------------------------------------------------------------------


def _side_by_side(nest: Nest, plan: Plan, processor: Processor) -> None:
    """Choose how many vectors and rows of a sum are computed side by side, and adjust the cost."""
    inner = _innermost_sum(nest, plan)
    if inner is None:
        plan.rows = None  # there is no sum: nothing is shared, and nothing waits
        if plan.window is not None:
            plan.vectors = min(_MOST_IN_WINDOW, -(-plan.window.vector.count // processor.lanes))
        return
    block = RegisterBlock(nest, plan, inner, processor)
    rows = 1 if plan.rows is None else plan.rows.count
    groups = max(1, sum(count for lanes, count in vectors_of(plan, processor) if lanes == processor.lanes))
    best = float("inf")
    found: list[tuple[int, float, int, int]] = []
    for row_count in range(1, min(rows, _MOST_SIDE_BY_SIDE) + 1):
        for vectors in range(1, min(groups, _MOST_SIDE_BY_SIDE) + 1):
            if not block.fits(vectors, row_count):
                break
            if len(nest.around) * vectors * row_count > _LARGEST_BODY and vectors * row_count > 1:
                continue
            blocks = [
                (v * r, m * n * block.cost(v, r))
                for v, m in steps_of(groups, vectors)
                for r, n in steps_of(rows, row_count)
            ]
            total = sum(cost for _, cost in blocks)
            found.append((sum(size for size, _ in blocks), total, vectors, row_count))
            if total < best * 0.999:
                best, plan.vectors, plan.row_count = total, vectors, row_count
    if processor.slack > 1.0:
        _, best, plan.vectors, plan.row_count = min(one for one in found if one[1] <= best * processor.slack)
    # The rest of the nest keeps its cost; the innermost loop now costs what the block costs.
    iterations = work([loop for loop in _around(nest, inner) if loop not in (plan.rows, plan.vector)])
    plan.cost = max(0.0, plan.cost - block.counted * rows * groups * iterations) + best * iterations
    if plan.row_count == 1:
        plan.rows = None


def _around(nest: Nest, inner: Loop) -> tuple[Loop, ...]:
    return next(loops for loops in nest.around.values() if inner in loops)


def _innermost_sum(nest: Nest, plan: Plan) -> Loop | None:
    """The innermost loop with the most iterations that accumulates into something that does not depend on it."""
    found: dict[Loop, float] = {}
    for use in nest.uses:
        if not (use.writes and use.statement.update):
            continue
        loops = [*plan.order, *(loop for loop in use.loops if loop not in plan.order)]
        last = loops[-1]
        if last not in (plan.vector, plan.rows) and last not in dict(use.reference.index.terms):
            found[last] = work(use.loops)
    return max(found, key=lambda loop: found[loop]) if found else None
