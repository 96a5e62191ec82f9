"""Put an array behind the one that holds what precedes its first row, so that a loop over both reads one array.

    for i: for j in 0 .. i:                                        for i: for j in 0 .. i:
        s[i,j] = q[i] * (first[0] if j == 0 else k[j - 1])    ->       s[i,j] = q[i] * k[j]

The first position of a sequence is often code of its own, since it has nothing to attend to.  What it computes is in
arrays of its own then, and every loop over the positions makes an exception of the first one: it runs in no lanes, and
neither does its gradient.

1. A Choice tells that one array continues another, if its index, in the first iteration, is that of the other one
   minus the size of that one.
2. Arrays that continue each other become one array; if a Choice tells otherwise, it stays.
3. A Choice of which both alternatives are then the same function of the loops becomes a load.

Only Programs with growing loops are changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...ir.dependence import plain
from ...ir.domain import has_bounds
from ...ir.program import Array, Choice, Index, Load, Node, Operand, Program, statements
from ...ir.substitute import Substitution

#: Moves the elements of arrays: to which array, and by how much.
Places = dict[Array, tuple[Array, int]]


def follow_each_other(program: Program, kept: set[Array], move: Callable[[Places], None]) -> None:
    """Merge arrays of a Program that has not been differentiated yet, in place.

    Args:
        program: changed in place.
        kept: arrays that stay as they are.
        move: does so.
    """
    if not has_bounds(program.forward):
        return
    places = in_one(_chains(program.forward, kept), _shape)
    if places:
        move(places)
    for statement in statements(program.forward):
        statement.operands = tuple([_without_exceptions(operand) for operand in statement.operands])


def in_one(groups: Sequence[Sequence[Array]], shape: Callable[[Sequence[Array]], tuple[int, ...]]) -> Places:
    """Where the elements of each group of arrays are in one array of this shape, one behind the other."""
    places: Places = {}
    for group in groups:
        merged = Array(group[0].name, "scratch", sum(array.size for array in group), shape=shape(group))
        start = 0
        for array in group:
            places[array] = merged, start
            start += array.size
    return places


class _Succession(NamedTuple):
    """That `array` continues `before`."""

    before: Array
    array: Array


def _successions(nodes: Sequence[Node]) -> Iterator[_Succession]:
    for statement in statements(nodes):
        for operand in statement.operands:
            yield from _of_operand(operand)


def _of_operand(operand: Operand) -> Iterator[_Succession]:
    if not isinstance(operand, Choice):
        return
    yield from _of_operand(operand.first)
    yield from _of_operand(operand.rest)
    indices = _in_first_iteration(operand)
    if indices is not None and isinstance(operand.first, Load) and isinstance(operand.rest, Load):
        one, other = operand.first.reference.array, operand.rest.reference.array
        scratch = one is not other and one.space == other.space == "scratch"
        first, rest = indices
        if scratch and set(first.terms) == set(rest.terms) and first.base - rest.base == one.size:
            yield _Succession(one, other)


def _in_first_iteration(choice: Choice) -> tuple[Index, Index] | None:
    """The two indices of a choice of loads in the first iteration of its loop; None if they are not affine."""
    if not isinstance(choice.first, Load) or not isinstance(choice.rest, Load):
        return None
    first, rest = choice.first.reference.index, choice.rest.reference.index
    if plain(first) is None or plain(rest) is None:
        return None
    known = Substitution(choice.loop, None, 1, 0)
    return known.index(first), known.index(rest)


def _chains(nodes: Sequence[Node], kept: set[Array]) -> list[list[Array]]:
    """Arrays that continue each other; an array with several before or behind it belongs to none of them."""
    found = {succession for succession in _successions(nodes) if kept.isdisjoint(succession)}
    behind = {array: [s.array for s in found if s.before is array] for array, _ in found}
    before = {array: [s.before for s in found if s.array is array] for _, array in found}
    chains = []
    for array in dict.fromkeys(s.before for s in _successions(nodes)):
        chain = [array] if array in behind and array not in before else []
        while chain and len(behind.get(chain[-1], ())) == 1 and len(before[behind[chain[-1]][0]]) == 1:
            chain += behind[chain[-1]]
        if len(chain) > 1:
            chains.append(chain)
    return chains


def _shape(chain: Sequence[Array]) -> tuple[int, ...]:
    """Rows as those of the last array, if there are whole rows in all of them."""
    row = chain[-1].shape[1:]
    size = math.prod(row)
    whole = size > 1 and not any(array.size % size for array in chain)
    total = sum(array.size for array in chain)
    return (total // size, *row) if whole else (total,)


def _without_exceptions(operand: Operand) -> Operand:
    if not isinstance(operand, Choice):
        return operand
    choice = Choice(operand.loop, _without_exceptions(operand.first), _without_exceptions(operand.rest))
    indices = _in_first_iteration(choice)
    if indices is not None and isinstance(choice.first, Load) and isinstance(choice.rest, Load):
        first, rest = indices
        same = choice.first.reference.array is choice.rest.reference.array
        if same and first.base == rest.base and set(first.terms) == set(rest.terms):
            return choice.rest
    return choice
