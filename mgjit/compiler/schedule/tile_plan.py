"""Decide whether a nest is executed in tiles (schedule/tiles.py), along which loops, and how large they are.

1. Candidates are all pairs of independent loops, one for the vectors and one for the rows of a tile; some loop below
   must be a sum.  Of a sum over several loops the first ones may be around everything, so that a block of what they
   read fits a cache; then the sums are kept in memory in between.
2. What the sum reads along the vectors, the same for all rows, is packed for each block of vectors, unless it lies so
   already, as padded rows of parameters may.  Other independent loops that it does not depend on are inside: a
   convolution packs its weights once, for all windows of all images.
3. The size of a tile is the one whose blocks cost least (schedule/register_block.py); of those that cost about as much,
   the one with the least code.
4. To that are added packing, what is not part of the sums, and that sums go through memory at the ends of a tile.
5. Other plans read the same elements again and again from where they are; what does not fit a cache costs more than
   such a plan says.  `memory_cost` is the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.dependence import plain
from ...ir.nest import Nest, Use, loops_of, work
from ...ir.program import Loop, Reference
from ..toolchain.target import Processor
from .pack import can_be_packed
from .plan import LOAD, PACKING, STRIDED, Plan, from_cache, operation_cost, pieces
from .register_block import RegisterBlock, steps_of, vector_access

#: The largest tile, in vectors and in rows.
_MOST_VECTORS, _MOST_ROWS = 4, 16
#: The share of the registers that sums may take.
_FOR_SUMS = 3 / 4
#: How much more a tile may cost than the best one, if its code is shorter.
_SLACK = 1.05
#: The most elements of a packed block.
_LARGEST_PANEL = 1 << 20
#: For less than this many rows nothing is packed that can be read as it is.
_FEW_ROWS = 6
#: How much longer than what is read of them rows may be that are read where they are.
_LITTLE = 4 / 3
#: What an element costs that is read into or written from a lane by itself: it has to be moved to or from its place.
_SCATTERED = 2.5
#: What a vector costs that is not handled side by side with others, but in loops over the vectors and rows of a tile.
_ROLLED = 1.0
#: Panels of more elements fit no cache.
_LARGE_PANEL = 128_000


def tiled_plan(nest: Nest, free: Sequence[Loop], processor: Processor) -> Plan | None:
    """The best plan with tiles; None if there is none.

    Args:
        nest: to be executed.
        free: those of its band that are independent.
        processor: to plan for.
    """
    if processor.lanes == 1 or len(free) < 2 or not _sums(nest, free) or _adds_elsewhere(nest, free):
        return None
    plans = (
        plan_along(nest, vector, rows, free, processor, around)
        for vector in free
        for rows in free
        if vector is not rows
        for around in range(max(1, len(_inside(nest.band, free))))
    )
    return min((plan for plan in plans if plan is not None), key=lambda plan: plan.cost, default=None)


def _sums(nest: Nest, free: Sequence[Loop]) -> list[Loop]:
    """The innermost loops that add to something that does not depend on them."""
    found: dict[Loop, None] = {}
    for use in nest.uses:
        if use.writes and use.statement.update:
            last = next((loop for loop in reversed(use.loops) if loop not in free), None)
            if last is not None and last not in loops_of(use.reference.index):
                found[last] = None
    return list(found)


def _adds_elsewhere(nest: Nest, free: Sequence[Loop]) -> bool:
    """Whether something is added to another element in each iteration of a sum: tiles keep what is added to."""
    return any(
        use.writes and use.statement.update and not loops_of(use.reference.index).isdisjoint(_inside(use.loops, free))
        for use in nest.uses
    )


def _inside(loops: Sequence[Loop], free: Sequence[Loop]) -> list[Loop]:
    return [loop for loop in loops if loop not in free]


def plan_along(
    nest: Nest, vector: Loop, rows: Loop, free: Sequence[Loop], processor: Processor, around: int = 0
) -> Plan | None:
    """The plan with tiles along two loops; None if a packed block would be too large.

    Args:
        nest, free, processor: as for `tiled_plan`.
        vector, rows: the two, among the free ones.
        around: how many loops of the band that are not free are around everything.
    """
    sums = _inside(nest.band, free)
    plan = Plan(0.0, [vector, rows, *sums[around:]], vector, 1, rows, 1, tiled=True)
    packed = {use.reference: use for use in _panels(nest, plan, free, processor.lanes)}
    plan.packed = list(packed)
    depends = {loop for reference in packed for loop in loops_of(reference.index)}
    others = [loop for loop in free if loop not in (vector, rows)]
    first = [*sums[:around], *(loop for loop in others if loop in depends or not packed)]
    plan.order = [*first, *(loop for loop in others if loop not in first), *plan.order]
    sizes = [work([loop for loop in _inside_of(use, vector) if loop not in first]) for use in packed.values()]
    if any(size * processor.lanes > _LARGEST_PANEL for size in sizes):
        return None
    _choose_size(nest, plan, free, processor, int(_LARGEST_PANEL / max([*sizes, 1.0]) / processor.lanes))
    plan.cost += sum(_packing(use, first, vector, processor) for use in packed.values())
    plan.cost += sum(_streaming(use, size, plan, processor) for use, size in zip(packed.values(), sizes))
    plan.cost += _rest(nest, plan, free, processor) * work(sums[:around])
    return plan


def _panels(nest: Nest, plan: Plan, free: Sequence[Loop], lanes: int) -> Iterator[Use]:
    """What the sums read along the vectors, the same for all rows, and is worth packing."""
    assert plan.vector is not None
    assert plan.rows is not None
    written = {use.reference.array for use in nest.uses if use.writes}
    for use in nest.uses:
        step = dict(use.reference.index.terms).get(plan.vector, 0)
        if use.writes or not step or not _inside(use.loops, free) or plan.rows in loops_of(use.reference.index):
            continue
        if _lies_packed(use, plan.vector, lanes):
            continue
        if (step != 1 or plan.rows.count >= _FEW_ROWS) and can_be_packed(use, nest, written):
            yield use


def _lies_packed(use: Use, vector: Loop, lanes: int) -> bool:
    """Whether a read finds whole vectors side by side, with little in between, in a single block of vectors."""
    groups = -(-vector.count // lanes)
    steps = dict(use.reference.index.terms)
    return (
        groups <= _MOST_VECTORS
        and steps.pop(vector, 0) == 1
        and groups * lanes <= min(map(abs, steps.values()), default=0) <= groups * lanes * _LITTLE
        and in_padded_row(use.reference, vector, groups * lanes)
    )


def in_padded_row(reference: Reference, column: Loop, width: int) -> bool:
    """Whether a row of an array, with its padding, has so many elements from where a loop begins to read it."""
    base, terms, _, _ = reference.index
    steps = dict(terms)
    if plain(reference.index) is None or steps.pop(column, 0) != 1:
        return False
    return any(
        0 <= base - rows.place < rows.pitch * rows.count
        and (base - rows.place) % rows.pitch + width <= rows.pitch
        and not any(step % rows.pitch for step in steps.values())
        for rows in reference.array.padded_rows
    )


def _inside_of(use: Use, vector: Loop) -> list[Loop]:
    depends = loops_of(use.reference.index)
    return [loop for loop in use.loops if loop in depends and loop is not vector]


def _packing(use: Use, first: Sequence[Loop], vector: Loop, processor: Processor) -> float:
    step = dict(use.reference.index.terms)[vector]
    loops = [vector, *_inside_of(use, vector), *(loop for loop in first if loop not in loops_of(use.reference.index))]
    return work(loops) * (PACKING / processor.lanes if step == 1 else PACKING)


def _streaming(use: Use, size: float, plan: Plan, processor: Processor) -> float:
    """What it costs that a panel, of so many elements for each of its vectors, fits no cache."""
    assert plan.rows is not None
    elements = size * plan.vectors * processor.lanes
    if elements <= _LARGE_PANEL:
        return 0.0
    times = work([loop for loop in use.loops if loop is not plan.rows]) / processor.lanes
    return from_cache(elements) * times * -(-plan.rows.count // plan.row_count)


def _choose_size(nest: Nest, plan: Plan, free: Sequence[Loop], processor: Processor, most: int) -> None:
    """The vectors, at most so many, and rows of a tile, and what the sums cost."""
    assert plan.vector is not None
    assert plan.rows is not None
    lasts: dict[Loop, float] = {}
    for loops in nest.around.values():
        if _inside(loops, free):
            last = _inside(loops, free)[-1]
            lasts[last] = work([loop for loop in loops if loop not in (plan.vector, plan.rows)])
    blocks = [(RegisterBlock(nest, plan, last, processor), times) for last, times in lasts.items()]
    groups, rows = -(-plan.vector.count // processor.lanes), plan.rows.count
    limit = max(1, int(processor.registers * _FOR_SUMS) // max(1, *(block.sums for block, _ in blocks)))
    found: list[tuple[int, float, int, int]] = []
    for vectors in range(1, min(groups, _MOST_VECTORS, limit, most) + 1):
        for row_count in range(1, min(rows, _MOST_ROWS, limit // vectors) + 1):
            sizes = [(v, m, r, n) for v, m in steps_of(groups, vectors) for r, n in steps_of(rows, row_count)]
            cost = sum(m * n * block.cost(v, r) * times for v, m, r, n in sizes for block, times in blocks if m and n)
            found.append((sum(v * r for v, m, r, n in sizes if m and n), cost, vectors, row_count))
    best = min(cost for _, cost, _, _ in found)
    _, plan.cost, plan.vectors, plan.row_count = min(one for one in found if one[1] <= best * _SLACK)
    if any(use.reference not in plan.packed and _in_sums_along(use, plan.vector, free) for use in nest.uses):
        # What is read from where it is has no room for whole vectors.
        plan.cost *= sum(count for _, count in pieces(plan.vector.count, processor.lanes)) / groups


def _in_sums_along(use: Use, vector: Loop, free: Sequence[Loop]) -> bool:
    """Whether a sum reads something along the vectors, not counting what it adds to."""
    depends = loops_of(use.reference.index)
    sums = _inside(use.loops, free)
    return not use.writes and vector in depends and not depends.isdisjoint(sums)


def _rest(nest: Nest, plan: Plan, free: Sequence[Loop], processor: Processor) -> float:
    """The cost of what is not part of the sums, and of keeping the sums in memory."""
    assert plan.vector is not None
    share = -(-plan.vector.count // processor.lanes) / plan.vector.count
    total = 0.0
    for statement, loops in nest.around.items():
        if not _inside(loops, free):
            total += share * work(loops) * (operation_cost(statement) + _ROLLED)
    for use in nest.uses:
        inside = bool(_inside(use.loops, free))
        if inside and not use.writes:
            continue
        # A sum is read before, written behind, and kept in the tile in between.
        times = work([loop for loop in use.loops if loop in free])
        access = vector_access(use.reference, plan.vector, processor)
        each = _SCATTERED if access == STRIDED else access * processor.lanes * share
        total += times * (2 * (each + (LOAD + _ROLLED) * share) if inside else each)
    return total


# ---- 5: memory ------------------------------------------------------------------------------------------------


def memory_cost(nest: Nest, plan: Plan | None, processor: Processor) -> float:
    """What a plan without tiles costs in addition, as the innermost sums read what is not in a cache any more."""
    rows = plan.rows if plan is not None else None
    side_by_side = plan.row_count if plan is not None else 1
    total = 0.0
    for reference, loops in _read_again(nest).items():
        depends = loops_of(reference.index)
        elements = work([loop for loop in loops if loop in depends])
        times = work(loops) / processor.lanes
        total += from_cache(elements) * times / (side_by_side if rows not in depends else 1)
    return total


def _read_again(nest: Nest) -> dict[Reference, tuple[Loop, ...]]:
    """What is read along with some loop and again for each iteration of another one that is around it."""
    found: dict[Reference, tuple[Loop, ...]] = {}
    for use in nest.uses:
        depends = loops_of(use.reference.index)
        depending = [position for position, loop in enumerate(use.loops) if loop in depends]
        if not use.writes and depending and any(loop not in depends for loop in use.loops[: depending[-1]]):
            found[use.reference] = use.loops
    return found
