"""Find chains that are reductions, and give them an accumulator instead of an array of partial results.

    for j:                                          r = x
        t[j] = op((x if j == 0 else t[j-1]), m)  ->  for j:
    ... t[n-1] ...                                      r = op(r, m)
                                                    ... r ...

1. Candidates are statements whose first operand (or second, where the operation commutes) is a Choice of
   their own loop between an initial value and their own result one iteration before.
2. Nothing else may read a partial result: all other reads are of the last iteration.  If the loop has a bound, which
   one that is depends on the loops around: it is looked up for every element that is read.
3. On a statement that a backward pass reaches, only sums qualify, because their derivative needs no partial
   result: the adjoint of every partial sum equals that of the total (it is never -0.0, so the `0.0 +` of each
   step is an identity).  Nothing in the loop may contribute to the memory of the initial value, because the
   engine adds the contribution of the initial value in the middle of those of the first iteration.
4. The initial value moves in front of the loop, as it is in the first iteration; nothing in the loop may write where
   it is read from, and there must be an iteration.

The order of the operations stays the same, and so does every bit of the result; but the loops around a reduction can
now be interchanged, and its adjoint is a broadcast.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...engine.operations import operations
from ...ir.dependence import ranges_apart
from ...ir.domain import bounding, fewest, iterations, value
from ...ir.nest import executions
from ...ir.program import (
    Array,
    Backward,
    Choice,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    arrays_written,
    leaf_operands,
    leaf_targets,
    statements,
    walk,
)
from ...ir.rewrite import map_operand, operand_arrays, rewrite_operands
from ...ir.substitute import Substitution
from ..lift.memory import Memory
from .mixed import as_table, entries_of

_COMMUTATIVE = operations(lambda one: one.commutes)
_SUMS = ("add", "subtract")
_REDUCTIONS = ("add", "subtract", "multiply", "maximum", "minimum")

#: Nests of more iterations than this are not executed to look for what they read.
_MOST_ITERATIONS = 1 << 14


def find_reductions(program: Program, memory: Memory) -> None:
    """Rewrite the chains of a Program that has not been differentiated yet, in place."""
    nodes = program.forward
    for statement in statements(nodes):
        statement.operands = tuple([_with_known_firsts(operand) for operand in statement.operands])
    reads = _reads(nodes)
    parents, around = _parents(nodes), dict(_loops_around(nodes))
    pinned = {result for result, _ in memory.adjoint_reads}
    replaced: dict[Array, tuple[Array, int]] = {}
    rows: dict[Load, Index] = {}
    for loop, statement in list(_in_loops(nodes)):
        chain = _chain(loop, statement)
        if chain is None:
            continue
        initial, term = chain
        assert isinstance(statement.target, Reference)
        result = statement.target.array
        if result in pinned or not _initial_can_move(loop, statement, initial):
            continue
        if loop.bound is None:
            legal = _only_last_is_read(reads[result], loop.count, result, program)
        else:
            found = _rows_of_lasts(reads[result], loop, around[loop], statement.target, program)
            legal = found is not None and fewest(loop, program.tables) > 0
            rows.update(found or {} if legal else {})
        if legal:
            total = Array(f"r{result.name[1:]}", "scratch", result.size // loop.count, shape=result.shape[:-1])
            replaced[result] = total, loop.count
            index = _without_loop(statement.target.index, loop)
            before = Statement(
                "copy", (initial,), Reference(total, index), passes=statement.passes, origin=statement.origin
            )
            body = parents[loop]
            body.insert(body.index(loop), before)
            statement.operands = (term,)
            statement.target = Reference(total, index)
            statement.update = True
    if replaced:
        _replace_reads(program, replaced, rows)


def _in_loops(nodes: Sequence[Node]) -> Iterator[tuple[Loop, Statement]]:
    for node in walk(nodes):
        if isinstance(node, Loop):
            for child in node.body:
                if isinstance(child, Statement):
                    yield node, child


def _with_known_firsts(operand: Operand) -> Operand:
    """The operand, whose alternatives for the first iteration of a loop do not depend on the loop."""
    if not isinstance(operand, Choice):
        return operand
    first = Substitution(operand.loop, None, 1, 0).operand(_with_known_firsts(operand.first))
    return Choice(operand.loop, first, _with_known_firsts(operand.rest))


def _chain(loop: Loop, statement: Statement) -> tuple[Operand, Operand] | None:
    """Initial value and term, if the statement is `op((initial if first else own previous result), term)`."""
    if statement.operation not in _REDUCTIONS or not isinstance(statement.target, Reference) or statement.update:
        return None
    if statement.passes and statement.operation not in _SUMS:
        return None
    index = statement.target.index
    previous = Load(statement.target._replace(index=index._replace(base=index.base - dict(index.terms).get(loop, 0))))
    first, second = statement.operands
    if isinstance(first, Choice) and first.loop is loop and first.rest == previous:
        return first.first, second
    carried = isinstance(second, Choice) and second.loop is loop and second.rest == previous
    if carried and statement.operation in _COMMUTATIVE:
        assert isinstance(second, Choice)
        return second.first, first
    return None


class _Read(NamedTuple):
    """An operand, or a part of one, that reads an array.

    Attributes:
        operand: a Load or Mixed.
        loops: the loops around, outermost first.
        first, rest: loops in whose first iteration, and in the others, it is taken: the Choices around it.
    """

    operand: Operand
    loops: tuple[Loop, ...]
    first: frozenset[Loop]
    rest: frozenset[Loop]


def _reads(nodes: Sequence[Node]) -> defaultdict[Array, list[_Read]]:
    """Every operand part that reads an array, by array."""
    found: defaultdict[Array, list[_Read]] = defaultdict(list)
    for node, loops in _loops_around(nodes):
        operands: list[Operand] = []
        if isinstance(node, Backward):
            operands.append(node.root)
        elif isinstance(node, Statement):
            operands += node.operands
            places = (place for place in leaf_targets(node.target) if isinstance(place, Reference))
            operands += (place.index.dynamic.operand for place in places if place.index.dynamic is not None)
        for operand in operands:
            for read in _parts(_Read(operand, loops, frozenset(), frozenset())):
                for array in _arrays_of(read.operand):
                    found[array].append(read)
    return found


def _loops_around(nodes: Sequence[Node], around: tuple[Loop, ...] = ()) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """Every node below, with the loops around it."""
    for node in nodes:
        yield node, around
        if isinstance(node, Loop):
            yield from _loops_around(node.body, (*around, node))


def _parts(read: _Read) -> Iterator[_Read]:
    operand = read.operand
    if isinstance(operand, Choice):
        yield from _parts(read._replace(operand=operand.first, first=read.first | {operand.loop}))
        yield from _parts(read._replace(operand=operand.rest, rest=read.rest | {operand.loop}))
    else:
        yield read
        if isinstance(operand, Load) and operand.reference.index.dynamic is not None:
            yield from _parts(read._replace(operand=operand.reference.index.dynamic.operand))


def _arrays_of(operand: Operand) -> Sequence[Array]:
    if isinstance(operand, Mixed):
        return operand.arrays
    return (operand.reference.array,) if isinstance(operand, Load) else ()


def _only_last_is_read(reads: Sequence[_Read], count: int, result: Array, program: Program) -> bool:
    """Whether all reads but one (the chain's own) are of the last iteration."""
    others = 0
    for operand, *_ in reads:
        if isinstance(operand, Mixed):
            places = entries_of(operand, program.tables).places
            if any(array is result and position % count != count - 1 for array, position in places):
                return False
            continue
        assert isinstance(operand, Load)
        index = operand.reference.index
        last = (
            index.table is None
            and index.dynamic is None
            and index.base % count == count - 1
            and all(coefficient % count == 0 for _, coefficient in index.terms)
        )
        others += not last
    return others == 1


def _rows_of_lasts(
    reads: Sequence[_Read], loop: Loop, around: tuple[Loop, ...], target: Reference, program: Program
) -> dict[Load, Index] | None:
    """Where the total is that each read needs, if all but one (the chain's own) read results of a last iteration.

    Args:
        reads: of the results.
        loop: the loop of the chain, which has a bound.
        around: the loops around it.
        target: where each result is written.
        program: with the index tables.
    """
    steps, tables = dict(target.index.terms), program.tables
    one_row_each = steps.pop(loop, 0) == 1 and not any(n % loop.count for n in (target.index.base, *steps.values()))
    executed = _iterations(around, {*steps, *bounding([loop])}, program)
    if not one_row_each or executed is None:
        return None
    assert loop.bound is not None
    base = target.index.base - 1
    lasts = {
        (
            base + sum(step * i[other] for other, step in steps.items()) + value(loop.bound, i, tables),
            *(i[number] for number in program.given),
        )
        for i in executed
    }
    found: dict[Load, Index] = {}
    others = 0
    for read in reads:
        if isinstance(read.operand, Mixed):
            places = entries_of(read.operand, tables).places
            known = not program.given  # otherwise, an element may be the last one of some of them only
            if any(array is target.array and not (known and (position,) in lasts) for array, position in places):
                return None
            continue
        assert isinstance(read.operand, Load)
        row = _row(read.operand.reference.index, read, loop.count, lasts, program)
        if row is None:
            others += 1
        elif found.setdefault(read.operand, row) != row:
            return None
    return found if others == 1 else None


def _row(index: Index, read: _Read, length: int, lasts: set[tuple[int, ...]], program: Program) -> Index | None:
    """The row of an element that is the last one of a row in all iterations; None if it is not.

    Args:
        lasts: these elements, each with the numbers that are given then.
    """
    steps = dict(index.terms)
    executed = _iterations(read.loops, set(steps), program)
    if executed is None or index.table is not None or index.dynamic is not None:
        return None
    rows = {other: (2 * step + length) // (2 * length) for other, step in steps.items()}  # rounded
    bases: set[int] = set()
    for i in executed:
        if any(i.get(one, 0) for one in read.first) or not all(i.get(one, 1) for one in read.rest):
            continue  # something else is chosen here
        element = index.base + sum(step * i[other] for other, step in steps.items())
        if (element, *(i[number] for number in program.given)) not in lasts:
            return None
        bases.add(element // length - sum(step * i[other] for other, step in rows.items()))
    return Index(bases.pop(), tuple((other, step) for other, step in rows.items() if step)) if len(bases) == 1 else None


def _iterations(loops: Sequence[Loop], needed: set[Loop], program: Program) -> Iterator[dict[Loop, int]] | None:
    """The iterations of the needed loops for all numbers that may be given; None if there are too many to look at."""
    for loop in reversed(loops):
        if loop in needed:
            needed = needed | bounding([loop])
    chosen = [*program.given, *(loop for loop in loops if loop in needed)]
    return iterations(chosen, program.tables) if executions(chosen) <= _MOST_ITERATIONS else None


def _initial_can_move(loop: Loop, statement: Statement, initial: Operand) -> bool:
    """Whether the initial value can be read, and differentiated, in front of the loop without a difference."""
    sources = set(operand_arrays(initial))
    if any(sources & set(arrays_written(other)) for other in statements(loop.body)):
        return False
    # Contributions to one place: the engine adds that of the initial value in the middle of those of the
    # first iteration, and would now add it after them.
    inside = {node for node in walk([loop]) if isinstance(node, Loop)}
    mine = [part for part in leaf_operands(initial) if isinstance(part, (Load, Mixed))]
    others = (part for s in statements(loop.body) if s.passes for o in s.operands for part in leaf_operands(o))
    return not statement.passes or not any(
        _may_meet(part, other, inside) for other in others for part in mine if other is not part
    )


def _may_meet(initial: Operand, other: Operand, inside: set[Loop]) -> bool:
    """Whether two operands may be the same element in one iteration of the loops around both."""
    if not set(operand_arrays(initial)) & set(operand_arrays(other)):
        return False
    if not isinstance(initial, Load) or not isinstance(other, Load):
        return True
    mine, theirs = initial.reference.index, other.reference.index
    plain = all(i.table is None and i.dynamic is None for i in (mine, theirs))
    if not plain or _outer_terms(mine, inside) != _outer_terms(theirs, inside):
        return True
    return not ranges_apart(mine, theirs, inside)


def _outer_terms(index: Index, inside: set[Loop]) -> set[tuple[Loop, int]]:
    return {(loop, coefficient) for loop, coefficient in index.terms if loop not in inside}


def _without_loop(index: Index, loop: Loop) -> Index:
    return Index(
        index.base // loop.count, tuple((other, c // loop.count) for other, c in index.terms if other is not loop)
    )


def _parents(nodes: list[Node]) -> dict[Loop, list[Node]]:
    """The body that each loop is in."""
    bodies = [nodes, *(node.body for node in walk(nodes) if isinstance(node, Loop))]
    return {node: body for body in bodies for node in body if isinstance(node, Loop)}


def _replace_reads(program: Program, replaced: dict[Array, tuple[Array, int]], rows: dict[Load, Index]) -> None:
    def total(array: Array, position: int) -> tuple[Array, int]:
        found = replaced.get(array)
        return (array, position) if found is None else (found[0], position // found[1])

    def replace(operand: Operand) -> Operand:
        if isinstance(operand, Load) and operand.reference.array in replaced:
            array, count = replaced[operand.reference.array]
            index = operand.reference.index
            row = Index(index.base // count, tuple((loop, c // count) for loop, c in index.terms))
            return Load(Reference(array, rows.get(operand, row)))
        if isinstance(operand, Mixed) and not replaced.keys().isdisjoint(operand.arrays):
            loops, places = entries_of(operand, program.tables)
            places = [total(*place) for place in places]
            arrays = tuple(total(array, 0)[0] for array in operand.arrays)
            selector = as_table([arrays.index(array) for array, _ in places], loops, program.tables)
            return Mixed(arrays, selector, as_table([position for _, position in places], loops, program.tables))
        return operand

    for node in walk(program.forward):
        if isinstance(node, Statement):
            rewrite_operands(node, replace)
        elif isinstance(node, Backward):
            node.root = map_operand(node.root, replace)
