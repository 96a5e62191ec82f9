"""Choose the places of new parameters in memory, and of state, so that what is computed together lies together.

A strict sum keeps its order, so a processor's vectors can only work on several sums at once; they need the
parameters of neighbouring sums next to each other.  A matrix that a step walks as `w[j][i]`, summing over i,
is therefore stored with j fastest.

1. Candidates are the two-dimensional reads of parameters in reductions of a first, provisional Program: rows belong to
   different sums, columns are summed over.  The largest are chosen first; candidates that overlap them are dropped.
2. Each chosen block is stored transposed, with its rows padded to whole cache lines; what is between the rows (biases)
   becomes a separate block, and so does the remainder.  A look-up table, whose elements must stay at equal distances,
   lies in one block; those that the same record looks up must have the same distance.
3. State that loops visit together with parameters, one element for one parameter (momentum, the moments of Adam), is
   stored as these parameters are.
4. Loops over the parameters in their natural order (`for p in model.parameters()`) are cut at the block boundaries
   into nests over rows and columns, which visit the parameters in the same order.

Parameters that already live in the storage of another kernel keep their places.  A trace knows them by their numbers in
the natural order of that storage, whose layout then applies to this kernel as well.  Loops are cut where they go from
one storage to another, or leave parameters out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import sub
from typing import NamedTuple

from ...ir.opcodes import GRADIENT, NUMBER, PARAMETER, STATE, TAKE, TableLayout, leaf_index, leaf_kind
from ...ir.parameters import ParameterBlock, ParameterLayout
from ...ir.program import Array, Load, Loop, Node, Program, Reference, Statement, walk
from ...ir.rewrite import operand_arrays
from ...ir.trace import Trace
from ..roll.forest import Fold, Item

#: Kinds of leaves that lie alike.
Kinds = tuple[int, ...]
OF_PARAMETERS, OF_STATE = (PARAMETER, GRADIENT), (STATE,)
#: Bytes per cache line; rows of transposed blocks start at multiples of it.
_LINE = 64
#: Blocks of fewer rows or columns are not worth transposing.
_FEWEST_ROWS, _FEWEST_COLUMNS = 4, 2
#: A loop is cut at gaps between parameters if there are so many iterations for each.
_FEWEST_BETWEEN = 8


# ---- 1 and 2: the blocks ------------------------------------------------------------------------------


class LookUps(NamedTuple):
    """The look-up tables with the same layout in a trace.

    Attributes:
        firsts: the first elements of the tables: numbers of parameters, counted from the first new one.
        layout: the distance of their elements, and how many they have.
    """

    firsts: frozenset[int]
    layout: TableLayout


def look_ups(trace: Trace) -> list[LookUps]:
    """The tables of new parameters that a trace looks up by run-time indices."""
    first, last = trace.new_parameters[0][0], trace.new_parameters[-1][0]
    found: dict[int, set[int]] = {}
    for code, a in zip(trace.op, trace.a) if trace.layouts else ():
        number = (code & (NUMBER - 1)) - TAKE
        if number >= 0 and leaf_kind(a) in (PARAMETER, GRADIENT) and first <= leaf_index(a) <= last:
            found.setdefault(number, set()).add(leaf_index(a) - first)
    return [LookUps(frozenset(firsts), trace.layouts[number]) for number, firsts in found.items()]


def choose_layout(program: Program, parameters: Array, tables: Sequence[LookUps] = ()) -> ParameterLayout | None:
    """The layout for the new parameters of a Program; None if their natural order is as good.

    Args:
        program: reads them.
        parameters: their memory.
        tables: of parameters, whose elements must stay at equal distances.
    """
    candidates = [block for block in _candidates(program, parameters) if _keeps_tables(block, tables)]
    layout = _chosen(candidates, program, parameters)
    if layout is not None and not all(len(_distances(layout, one)) <= 1 for one in tables):
        layout = _chosen([block for block in candidates if not _meets_tables(block, tables)], program, parameters)
    return layout


def _spans(one: LookUps) -> Iterator[tuple[int, int]]:
    """The first and the last element of each table."""
    stride, count = one.layout
    return ((min(first, end), max(first, end)) for first in one.firsts for end in (first + stride * (count - 1),))


def _keeps_tables(block: ParameterBlock, tables: Sequence[LookUps]) -> bool:
    """Whether no table lies partly in a block, or in its gaps; of those inside, all elements are in one column."""
    low, high = block.base, block.base + block.rows * block.row_step
    return all(
        last < low or first >= high or (low <= first and last < high and one.layout.stride % block.row_step == 0)
        for one in tables
        for first, last in _spans(one)
    ) and (block.columns == block.row_step or not _meets_tables(block, tables))


def _meets_tables(block: ParameterBlock, tables: Sequence[LookUps]) -> bool:
    low, high = block.base, block.base + block.rows * block.row_step
    return any(low <= last and first < high for one in tables for first, last in _spans(one))


def _distances(layout: ParameterLayout, one: LookUps) -> set[int]:
    """The distances in memory at which tables of one layout have their elements."""
    stride, count = one.layout
    return {layout.position(first + stride) - layout.position(first) for first in one.firsts if count > 1}


def _chosen(found: Iterable[ParameterBlock], program: Program, parameters: Array) -> ParameterLayout | None:
    chosen = _apart(sorted(found, key=lambda b: (-b.rows * b.columns, b.base)), parameters.size)
    return _placed(sorted(chosen), parameters.size, _LINE // program.precision.size) if chosen else None


def _apart(candidates: Iterable[ParameterBlock], size: int) -> list[ParameterBlock]:
    """Of some blocks in a memory of this size, those that do not overlap one before."""
    chosen: list[ParameterBlock] = []
    for block in candidates:
        last = block.base + block.rows * block.row_step
        if last - (block.row_step - block.columns) <= size and all(
            last <= other.base or other.base + other.rows * other.row_step <= block.base for other in chosen
        ):
            chosen.append(block)
    return chosen


def _candidates(program: Program, parameters: Array) -> set[ParameterBlock]:
    found = set()
    for outer, inner in _reduction_nests(program.forward):
        for node in inner.body:
            for reference in _references(node, parameters):
                steps = dict(reference.index.terms)
                row_step = steps.pop(outer, 0)
                plain = steps == {inner: 1} and reference.index.table is None and reference.index.dynamic is None
                if plain and row_step >= inner.count and outer.count >= _FEWEST_ROWS and inner.count >= _FEWEST_COLUMNS:
                    base = reference.index.base
                    found.add(ParameterBlock(base, outer.count, row_step, inner.count, 0, 0, 0))
    return found


def _reduction_nests(nodes: Sequence[Node]) -> Iterator[tuple[Loop, Loop]]:
    """Pairs of loops where the inner one accumulates into something that depends only on the outer one."""
    for outer in walk(nodes):
        for inner in outer.body if isinstance(outer, Loop) else ():
            if not isinstance(inner, Loop) or not isinstance(outer, Loop):
                continue
            if any(_sums(node, outer, inner) for node in inner.body):
                yield outer, inner


def _sums(node: Node, outer: Loop, inner: Loop) -> bool:
    if not isinstance(node, Statement) or not node.update or not isinstance(node.target, Reference):
        return False
    steps = dict(node.target.index.terms)
    return inner not in steps and outer in steps


def _references(node: Node, array: Array) -> Iterator[Reference]:
    if isinstance(node, Statement):
        for operand in node.operands:
            if isinstance(operand, Load) and array in operand_arrays(operand):
                yield operand.reference


def _placed(chosen: Sequence[ParameterBlock], size: int, line: int) -> ParameterLayout:
    """The layout with these blocks transposed; `line` is the number of elements per cache line."""
    blocks: list[ParameterBlock] = []
    place = position = 0

    def keep(base: int, rows: int, row_step: int, columns: int) -> None:
        nonlocal place
        if rows and columns > 0:
            blocks.append(ParameterBlock(base, rows, row_step, columns, place, columns, 1))
            place += -(-rows * columns // line) * line

    for block in chosen:
        keep(position, 1, block.base - position or 1, block.base - position)
        pitch = -(-block.rows // line) * line
        blocks.append(block._replace(place=place, row_stride=1, column_stride=pitch))
        place += pitch * block.columns
        gap = block.row_step - block.columns
        end = block.base + block.rows * block.row_step
        whole = end <= size  # the last row may be without a gap behind it
        keep(block.base + block.columns, block.rows - (not whole), block.row_step, gap)
        position = min(end, size) if whole else block.base + (block.rows - 1) * block.row_step + block.columns
    keep(position, 1, size - position or 1, size - position)
    return ParameterLayout(tuple(blocks), place)


# ---- 3: state beside parameters -------------------------------------------------------------------------


class Walk(NamedTuple):
    """Elements of a State that loops visit together with parameters, one for one.

    Attributes:
        start: the first element, a number among all states.
        parameter: the number of the parameter that belongs to it.
        count: how many there are.
    """

    start: int
    parameter: int
    count: int  # type: ignore[assignment]


def walks(forest: Sequence[Item], trace: Trace, start: int, size: int) -> list[Walk]:
    """The elements of states that loops over consecutive parameters of a storage visit with them.

    Args:
        start, size: the numbers of the parameters.
    """
    found: list[Walk] = []
    for item in forest:
        first = _first_element(item, trace, start, size, OF_PARAMETERS)
        if first is None or not isinstance(item, Fold):
            continue
        for operand, last in _ends(item, trace):
            if leaf_kind(operand) == STATE and operand - last == item.count - 1:
                found.append(Walk(leaf_index(operand), first, item.count))
    return _joined(found)


def _joined(found: Iterable[Walk]) -> list[Walk]:
    """The walks in order, with those in one that continue each other; of those that overlap, the first."""
    joined: list[Walk] = []
    for walk_ in sorted(set(found)):
        start, parameter, count = joined[-1] if joined else (0, 0, 0)
        if joined and (walk_.start, walk_.parameter) == (start + count, parameter + count):
            joined[-1] = Walk(start, parameter, count + walk_.count)
        elif not joined or walk_.start >= start + count:
            joined.append(walk_)
    return joined


def walks_settled_state(found: Iterable[Walk], trace: Trace) -> bool:
    """Whether some of this state cannot get a layout: then parameters are better left in the same order as it."""
    settled = [range(start, start + len(state)) for start, state in trace.states if not state._is_new]
    return any(walk_.start in places for walk_ in found for places in settled)


def layouts_beside(
    forest: Sequence[Item], trace: Trace, storages: Iterable[tuple[int, int, ParameterLayout | None]]
) -> dict[int, ParameterLayout]:
    """The layouts of new states, in which elements lie as the parameters do that loops visit with them.

    Args:
        forest: loops in natural order.
        storages: the first number of each storage of parameters, how many there are, and their layout.

    Returns:
        The layouts by the number of the state's region; states in which something is looked up stay as they are.
    """
    blocks: list[ParameterBlock] = []  # whose base is an element of a state
    for start, size, layout in storages:
        if layout is None:
            continue
        for place, parameter, count in walks(forest, trace, start, size):
            moved = ((block, block.base - (parameter - start)) for block in layout.blocks if block.column_stride > 1)
            blocks += [b._replace(base=place + low) for b, low in moved if low >= 0 and low + _extent(b) <= count]
    tables = (
        {leaf_index(a) for code, a in zip(trace.op, trace.a) if code & (NUMBER - 1) >= TAKE} if trace.layouts else ()
    )
    found = {}
    for region, (start, state) in enumerate(trace.states):
        end = start + len(state)
        here = [b._replace(base=b.base - start) for b in blocks if start <= b.base and b.base + _extent(b) <= end]
        chosen = _apart(sorted(here), len(state))
        if chosen and state._is_new and not any(start <= table < end for table in tables):
            found[region] = _placed(chosen, len(state), _LINE // trace.precision.size)
    return found


def _extent(block: ParameterBlock) -> int:
    """The number of elements from the first to the last one of a block, with what is between its rows."""
    return (block.rows - 1) * block.row_step + block.columns


# ---- 4: loops in natural order --------------------------------------------------------------------------


def cut_at_gaps(forest: Sequence[Item], trace: Trace) -> list[Item]:
    """Cut loops over parameters where they go from one storage to another, or leave some out, if that is rare."""
    starts = sorted([*(number for number, _ in trace.new_parameters[:1]), *(base for base, _ in trace.bound_storages)])
    done: list[Item] = []
    for item in forest:
        cuts = _gaps(item, trace, starts) if isinstance(item, Fold) and item.counts is None else []
        if isinstance(item, Fold) and cuts and len(cuts) * _FEWEST_BETWEEN <= item.count:
            for begin, end in zip([0, *cuts], [*cuts, item.count]):
                done += _stretch(item, begin, end - begin)
        else:
            done.append(item)
    return done


def _gaps(fold: Fold, trace: Trace, starts: Sequence[int]) -> list[int]:
    """The iterations of a loop whose parameters do not follow those of the iteration before."""
    found: set[int] = set()
    for position in fold.body:
        if not isinstance(position, int):
            return []
        for column in (trace.a, trace.b):
            operands = column[position : position + (fold.count - 1) * fold.period + 1 : fold.period]
            kinds = leaf_kind(operands[0]), leaf_kind(operands[-1])
            if kinds in ((PARAMETER, PARAMETER), (GRADIENT, GRADIENT)) and not _are_together(operands, starts):
                regions = [bisect_right(starts, leaf_index(operand)) for operand in operands]
                steps = list(map(sub, operands[1:], operands))
                usual = Counter(steps).most_common(1)[0][0]
                found.update(k for k, step in enumerate(steps, 1) if step != usual or regions[k - 1] != regions[k])
    return sorted(found)


def _are_together(operands: array[int], starts: Sequence[int]) -> bool:
    """Whether leaves follow each other in one storage, which is told quickly."""
    first, last = operands[0], operands[-1]
    inside = bisect_right(starts, leaf_index(first)) == bisect_right(starts, leaf_index(last))
    return inside and operands == array("i", range(first, last - 1, -1))


def cut_at_blocks(
    forest: Sequence[Item], trace: Trace, layout: ParameterLayout, start: int, size: int, kinds: Kinds = OF_PARAMETERS
) -> list[Item]:
    """Rewrite loops over consecutive elements of a memory as nests over rows and columns of the blocks.

    Args:
        start, size: the indices of the elements.
        kinds: of their leaves.
    """
    done: list[Item] = []
    for item in forest:
        first = _first_element(item, trace, start, size, kinds)
        done += _cut(item, first - start, layout) if isinstance(item, Fold) and first is not None else [item]
    return done


def _first_element(item: Item, trace: Trace, start: int, size: int, kinds: Kinds) -> int | None:
    """The element in the first iteration, if a loop visits consecutive elements of a memory."""
    if not isinstance(item, Fold) or item.counts is not None or not all(isinstance(part, int) for part in item.body):
        return None
    first = None
    for operand, last in _ends(item, trace):
        if leaf_kind(operand) not in kinds or not start <= leaf_index(operand) < start + size:
            continue
        if operand - last != item.count - 1 or first not in (None, leaf_index(operand)):
            return None
        first = leaf_index(operand)
    return first if first is not None and first + item.count <= start + size else None


def _ends(fold: Fold, trace: Trace) -> Iterator[tuple[int, int]]:
    """The operands of the records of a loop in its first and in its last iteration."""
    for position in fold.body:
        assert isinstance(position, int)
        for column in (trace.a, trace.b):
            yield column[position], column[position + (fold.count - 1) * fold.period]


def _cut(fold: Fold, first: int, layout: ParameterLayout) -> list[Item]:
    done: list[Item] = []
    index, end = first, first + fold.count
    while index < end:
        block, row, column = layout.find(index)
        rows = min(block.rows - row, (end - index) // block.row_step)
        if column == 0 and block.columns < block.row_step and rows > 1:
            done.append(_nest(fold, index - first, rows, block.row_step, block.columns))
            index += rows * block.row_step
        else:
            width = block.columns if block.columns == block.row_step and block.rows > 1 else 0
            count = min(end - index, block.columns - column)
            if column == 0 and width and rows > 1:
                done.append(_nest(fold, index - first, rows, width, width))
                count = rows * width
            else:
                done += _stretch(fold, index - first, count)
            index += count
    return done


def _nest(fold: Fold, offset: int, rows: int, row_step: int, columns: int) -> Fold:
    body = [*_stretch(fold, offset, columns), *_stretch(fold, offset + columns, row_step - columns)]
    return Fold(fold.start + offset * fold.period, rows, row_step * fold.period, tuple(body))


def _stretch(fold: Fold, offset: int, count: int) -> list[Item]:
    """`count` iterations of a loop from iteration `offset` on."""
    shift = offset * fold.period
    body = tuple(part + shift for part in fold.body if isinstance(part, int))
    if count <= 1:
        return list(body) if count else []
    return [Fold(fold.start + shift, count, fold.period, body)]
