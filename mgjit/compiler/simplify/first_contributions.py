"""Define a gradient by its first contribution, instead of clearing it and adding to zeros.

    for i: d[i] = 0.0                     for i: d[i] = 0.0 + c[i]
    for i: d[i] = d[i] + c[i]        ->
    ...                                   ...

1. Take each statement that clears elements of an adjoint or gradient array, and the first statement after it
   that touches any of them.
2. When that is an addition that visits exactly the same elements, each once, and nothing else in its loops
   touches them earlier than it does, it can define them.
3. `0.0 + c` differs from `c` when c is -0.0, so it stays, unless c is itself an adjoint, which never is -0.0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

from ...ir.dependence import injective, parts, plain
from ...ir.domain import full_range
from ...ir.program import (
    Array,
    Constant,
    Given,
    Index,
    Load,
    Loop,
    Program,
    Reference,
    Statement,
    arrays_written,
    writes,
)
from ...ir.rewrite import operand_arrays, with_surroundings
from .common import bound_key
from .simplify import without

#: Arrays with more accesses than this are skipped, because the cost grows quadratically.
_MOST_ACCESSES = 1000


class _Access(NamedTuple):
    """A statement that accesses an array; `place` is None if it is not a plain affine access."""

    statement: Statement
    loops: tuple[Loop, ...]
    place: Index | None
    writes: bool


def merge_first_contributions(program: Program) -> None:
    """Rewrite a Program in place."""
    accesses = _accesses(program)
    dead: set[Statement] = set()
    for found in accesses.values():
        if len(found) > _MOST_ACCESSES:
            continue
        for position, access in enumerate(found):
            if _clears(access):
                partner = _first_contribution(found, position)
                if partner is not None:
                    dead.add(access.statement)
                    _define(partner, accesses)
    if dead:
        for _, nodes in program.phases:
            nodes[:] = without(nodes, dead)


def _accesses(program: Program) -> dict[Array, list[_Access]]:
    found: defaultdict[Array, list[_Access]] = defaultdict(list)
    for _, nodes in program.phases:
        for statement, loops in with_surroundings(nodes):
            places = _places(statement)
            written = set(arrays_written(statement))
            for array, indices in places.items():
                if array.space in ("scratch", "gradient"):
                    place = next(iter(indices)) if len(indices) == 1 else None
                    found[array].append(_Access(statement, loops, place, array in written))
    return found


def _places(statement: Statement) -> dict[Array, set[Index | None]]:
    """The indices by which a statement accesses each array; None for an access that is not plain and affine."""
    places: defaultdict[Array, set[Index | None]] = defaultdict(set)

    chosen = not isinstance(statement.target, Reference)
    for array, index in writes(statement):
        places[array].add(None if chosen else plain(index))
    for part in parts(statement):
        if isinstance(part, Load):
            places[part.reference.array].add(plain(part.reference.index))
        else:
            for array in operand_arrays(part):
                places[array].add(None)
    return places


def _clears(access: _Access) -> bool:
    statement = access.statement
    return (
        access.writes
        and access.place is not None
        and not statement.update
        and statement.operation == "copy"
        and statement.operands == (Constant(0.0),)
        and str(statement.operands[0]) == str(Constant(0.0))
    )


def _first_contribution(found: list[_Access], position: int) -> _Access | None:
    """The access that can define what `found[position]` clears, or None."""
    clear = found[position]
    assert clear.place is not None
    low, high = full_range(clear.place)
    for later in found[position + 1 :]:
        if later.place is not None:
            other_low, other_high = full_range(later.place)
            if other_high < low or high < other_low:
                continue
        if not _visits_the_same(clear, later):
            return None
        return later if _alone_in_its_loops(found, clear, later, (low, high)) else None
    return None


def _visits_the_same(clear: _Access, later: _Access) -> bool:
    statement = later.statement
    if later.place is None or not (later.writes and statement.update and statement.operation == "add"):
        return False
    if any(array in arrays_written(statement) for operand in statement.operands for array in operand_arrays(operand)):
        return False  # it reads what was cleared
    shared = [a for a, b in zip(clear.loops, later.loops) if a is b]
    mine, theirs = _shape(clear, shared), _shape(later, shared)
    return mine == theirs and mine is not None


def _shape(access: _Access, shared: list[Loop]) -> tuple[object, ...] | None:
    """The set of elements an access visits, if it visits each of them once."""
    assert access.place is not None
    steps = dict(access.place.terms)
    loops = [loop for loop in access.loops if loop not in shared and (loop.count > 1 or loop.bound is not None)]
    own = sorted((steps.get(loop, 0), loop.count) for loop in loops)
    if not injective(own) or len(set(own)) < len(own):
        return None
    names: dict[object, Hashable] = {loop: (steps.get(loop, 0), loop.count) for loop in loops}
    return (
        access.place.base,
        tuple(own),
        frozenset((names[loop], bound_key(loop.bound, names)) for loop in loops if loop.bound is not None),
        frozenset((loop, c) for loop, c in steps.items() if loop in shared or isinstance(loop, Given)),
    )


def _alone_in_its_loops(found: list[_Access], clear: _Access, later: _Access, span: tuple[int, int]) -> bool:
    shared = [a for a, b in zip(clear.loops, later.loops) if a is b]
    own = [loop for loop in later.loops if loop not in shared]
    if not own:
        return True
    for other in found:
        if other.statement is later.statement or own[0] not in other.loops:
            continue
        if other.place is not None:
            low, high = full_range(other.place)
            if high < span[0] or span[1] < low:
                continue
        around = other.loops[: len(later.loops)] == later.loops
        after = around and found.index(other) > found.index(later)
        if other.writes or other.place != later.place or not after:
            return False
    return True


def _define(access: _Access, accesses: dict[Array, list[_Access]]) -> None:
    statement = access.statement
    statement.update = False
    if _is_adjoint(statement, accesses):
        statement.operation = "copy"
    else:
        statement.operands = (Constant(0.0), *statement.operands)


def _is_adjoint(statement: Statement, accesses: dict[Array, list[_Access]]) -> bool:
    """Whether the contribution is read from an array of 1.0 and of sums that began with 0.0."""
    operand = statement.operands[0]
    if not isinstance(operand, Load) or operand.reference.array.space != "scratch":
        return False
    writers = [a.statement for a in accesses[operand.reference.array] if a.writes]
    return any(not s.update for s in writers) and all(_begins_or_adds(s) for s in writers)


def _begins_or_adds(statement: Statement) -> bool:
    if statement.update:
        return statement.operation == "add"
    first = statement.operands[0]
    begins = isinstance(first, Constant) and str(first.value) in ("0.0", "1.0")
    return begins and statement.operation in ("copy", "add")
