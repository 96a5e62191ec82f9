"""Guess the trace of the longest member of a family, as two known members suggest it.

1. An operand at a place that both execute changes with the number as it does from one of them to the other.
2. A loop of more iterations goes on: each operand changes from the iteration before as it did there.  Where that one
   was shorter, the loops inside go on in the same way.  A loop that has some iterations more in each member is compared
   with itself so many iterations before.

Nothing relies on the guess: it is proved like any other trace.  When it is a member, all others need only be compared
with it (lengths/precedent.py), also those that are longer than the two.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress, count
from typing import TYPE_CHECKING, NamedTuple

from ...ir.opcodes import CONSTANT, NO_OPERAND, leaf, leaf_kind
from ...ir.trace import InputRegion, Trace
from ..roll.forest import count_at
from ..roll.holes import Grown, size_of, stretches
from .lengths import Count, Part, Shape
from .numbers import bits_of

if TYPE_CHECKING:
    from .family import Boxed


class Scale(NamedTuple):
    """What is known for the numbers 0 and `unit` is wanted for `number`."""

    unit: int
    number: int

    def at(self, one: int, other: int) -> int:
        """What grows with the number; the latter, if it does not."""
        step, rest = divmod(other - one, self.unit)
        return other if rest else one + step * self.number


Executed = Sequence[tuple[int, int]]


def longest_trace(
    one: Boxed, other: Boxed, scale: Scale, parts: Sequence[Part], whole: Grown, numbers: Sequence[int]
) -> Trace | None:
    """The padded trace of another member; None if the two do not suggest one.

    Args:
        one, other: the numbers 0 and `unit`.
        parts: the loops of all members.
        whole: those of the other member, in one that is executed once.
        numbers: the statement at each place.
    """
    mine, theirs = one.trace, other.trace
    if one.reach.backwards != other.reach.backwards or mine.adjoint_reads != theirs.adjoint_reads:
        return None
    names = _names(mine, theirs)
    pairs = [(mine.a, theirs.a), (mine.b, theirs.b)]
    if mine.c is not None and theirs.c is not None:
        pairs.append((mine.c, theirs.c))
    guess = _Guess(len(theirs), other.stretches, stretches(whole))
    changing = set[int]()
    try:
        for x, y in pairs:
            own = array("i", map(names.get, x, x)) if names else x
            column, changed = _scaled(own, y, one.stretches, scale)
            guess.columns.append(column)
            changing.update(map(numbers.__getitem__, changed))
        if changing:
            guess.forget(_places(len(theirs), one.stretches), map(changing.__contains__, numbers))
        guess.fill(Shape(Count(1, 0, ()), (*parts,), False), whole, 0, ())
    except OverflowError:
        return None
    if 1 in guess.missing:
        return None
    a, b, *c = guess.columns
    outputs, locals_ = (scale.at(*sizes) for sizes in ((mine.outputs, theirs.outputs), (mine.locals, theirs.locals)))
    return replace(theirs, a=a, b=b, c=c[0] if c else theirs.c, outputs=outputs, locals=locals_)


def longest_inputs(one: Sequence[InputRegion], other: Sequence[InputRegion], scale: Scale) -> list[InputRegion]:
    """The memory of its arguments."""
    return [
        replace(theirs, start=scale.at(mine.start, theirs.start), size=scale.at(mine.size, theirs.size))
        for mine, theirs in zip(one, other)
    ]


def _names(one: Trace, other: Trace) -> dict[int, int]:
    """What constants of a trace are called in another one, where that is not the same."""
    known = {bits_of(x): index for index, x in enumerate(other.constants)}
    found = ((index, known.get(bits_of(x), index)) for index, x in enumerate(one.constants))
    return {leaf(CONSTANT, index): leaf(CONSTANT, name) for index, name in found if index != name}


def _places(size: int, executed: Executed) -> bytearray:
    """A byte for each place: whether it is executed."""
    found = bytearray(size)
    for start, end in executed:
        found[start:end] = b"\1" * (end - start)
    return found


def _scaled(one: array[int], other: array[int], executed: Executed, scale: Scale) -> tuple[array[int], list[int]]:
    """A column as far as it is known (step 1), and the places that change with the number."""
    found, changed = other[:], list[int]()
    for start, end in executed:
        if one[start:end] != other[start:end]:
            for place in range(start, end):
                x, y = one[place], other[place]
                if x != y and y != NO_OPERAND and leaf_kind(x) == leaf_kind(y) != CONSTANT:
                    found[place] = scale.at(x, y)
                    changed.append(place)
    return found, changed


class _Guess:
    """The columns of a trace that is not known everywhere (step 2).

    Args:
        size: how many places there are.
        known, executed: which are.

    Attributes:
        columns: to be filled in.
        missing: whether a place is executed and not known.
    """

    def __init__(self, size: int, known: Executed, executed: Executed) -> None:
        self.columns: list[array[int]] = []
        self._known, self._executed = _places(size, known), _places(size, executed)
        self.missing = self._executed[:]
        for start, end in known:
            self.missing[start:end] = bytes(end - start)

    def forget(self, told: Sequence[int], changes: Iterable[bool]) -> None:
        """How far it is known what happens at places where operands change is told by both members."""
        for place in compress(count(), changes):
            if self._known[place] and not told[place]:
                self._known[place], self.missing[place] = 0, self._executed[place]

    def fill(self, shape: Shape, loop: Grown, start: int, point: tuple[int, ...]) -> None:
        """Fill in what is missing in a loop.

        Args:
            shape: of the loop in all members.
            start: its first place.
            point: the iterations of the growing loops around.
        """
        more = max(abs(shape.length.given), 1)
        for k in range(loop.count if loop.counts is None else count_at(loop.counts, point)):
            place = start + k * loop.size
            inner = (*point, k) if loop.grows else point
            if self._known.find(1, place, place + loop.size) >= 0:
                self._fill_iteration(shape, loop, place, inner)
            if k >= 3:  # the first iteration is often unlike the others
                self._go_on(place, loop.size, more if k > 2 * more else 1)
            self._fill_iteration(shape, loop, place, inner)

    def _fill_iteration(self, shape: Shape, loop: Grown, place: int, point: tuple[int, ...]) -> None:
        """Fill in what is missing in an iteration, by the loops in it."""
        if self.missing.find(1, place, place + loop.size) >= 0:
            for part, inner in zip(loop.body, shape.body):
                if not isinstance(part, int) and not isinstance(inner, int):
                    self.fill(inner, part, place, point)
                place += size_of(part)

    def _go_on(self, first: int, size: int, period: int) -> None:
        """Fill in what is missing in an iteration from those one and two periods before, where both are known."""
        if self.missing.find(1, first, first + size) < 0:
            return
        starts = (first - 2 * period * size, first - period * size, first)
        before, last, here = (slice(start, start + size) for start in starts)
        told = bytes(x & y & z for x, y, z in zip(self._known[before], self._known[last], self.missing[here]))
        for column in self.columns:
            values = zip(column[before], column[last], column[here], told)
            column[here] = array("i", [2 * y - x if is_told else z for x, y, z, is_told in values])
        self._known[here] = bytes(x | y for x, y in zip(self._known[here], told))
        self.missing[here] = bytes(x ^ y for x, y in zip(self.missing[here], told))
