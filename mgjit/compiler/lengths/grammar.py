"""Parse a trace by the loops of another one, which differs in the lengths of sequences.

Two such traces need not roll alike: of 1 to 3 iterations there is perhaps no loop, and another first iteration is left
outside.  So the loops of the longer trace are the grammar of both, and only counts are to be found.

1. Each record has a shape: its operation, the kinds of its operands, and the backward passes that reach it, as one
   character.  The shapes of a body follow from the first time that the known trace executes it.
2. Walk along both traces.  Where the other one meets a loop for the first time, see how often it repeats there.  Of
   the last few numbers of iterations, take the one behind which the other trace goes on most like the known one.
3. So is the count known wherever the loop is met again: it grows along the loops around as that of the known trace.

What is found may be wrong, as any guess about other traces: whoever founds a family proves it (lengths/family.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ...ir.trace import Trace
from ..roll.forest import Fold, Item, sampled
from ..roll.growing import Rolled
from ..roll.iterations import separate
from ..roll.known_loops import operand_kinds
from ..roll.reach import Reach
from ..roll.roll import Shapes
from .lengths import Count, Unlike

#: So many numbers of iterations are tried, and so many records behind each are compared.
_CANDIDATES, _COMPARED = 4, 1 << 14
#: The shape of what comes behind the last record.
_END = "\0"


@dataclass(eq=False)
class Repeated:
    """A loop of both traces.

    Attributes:
        known, other: how often each trace executes it, as a function of the growing loops around; that of the other
            one is None as long as it is not known.
        body: loops, and places of the known trace.
        grows: whether counts of loops inside depend on the iteration of this one.
    """

    known: Count
    body: list[Rule]
    grows: bool
    other: Count | None = None

    def inner(self, point: tuple[int, ...], iteration: int) -> tuple[int, ...]:
        return (*point, iteration) if self.grows else point


Rule = Union[int, Repeated]


def parsed(rolled: Rolled, known: tuple[Trace, Reach], other: tuple[Trace, Reach]) -> list[Rule]:
    """The loops of two traces.

    Args:
        rolled: the forest of the known trace, which may be padded.
        known, other: the traces without holes.

    Raises:
        Unlike: the other trace does not consist of these loops.
    """
    rules = [_rule(item, 0) for item in rolled.forest]
    table, names = Shapes(), {frozenset[int](): 0}
    found = _Parser(rules, *(_shapes(*pair, table, names) for pair in (known, other)))
    found.parse()
    return rules


def _rule(item: Item, depth: int) -> Rule:
    if not isinstance(item, Fold):
        return item
    points = dict(sampled(item.count if item.counts is None else item.counts, depth))
    steps, rest = separate(list(points), list(points.values()))
    if None in steps:
        raise Unlike("the lengths of their loops follow no progression")
    length = Count(next(iter(rest.values())), 0, tuple(step or 0 for step in steps))
    return Repeated(length, [_rule(one, depth + item.grows) for one in item.body], item.grows)


def _shapes(trace: Trace, reach: Reach, table: Shapes, names: dict[frozenset[int], int]) -> str:
    """The shapes of all records of a trace, and another one for its end."""
    columns: list[Sequence[int]] = [trace.op, operand_kinds(trace.a), operand_kinds(trace.b)]
    own = [names.setdefault(meaning, len(names)) for meaning in reach.meanings]
    columns.append(bytes(len(trace)) if reach.marks is None else array("i", map(own.__getitem__, reach.marks)))
    return "".join(map(table.__getitem__, zip(*columns))) + _END


class _Parser:
    """Finds how often another trace executes the loops of a known one.

    Args:
        rules: the loops of the known trace.
        known, other: the shapes of the records of both.
    """

    def __init__(self, rules: list[Rule], known: str, other: str) -> None:
        self._rules, self._known, self._other = rules, known, other
        self._shapes: dict[int, str] = {}  # of the places of the known trace
        self._counted: list[Repeated] = []  # the loops whose counts are known, in the order in which they were met
        self._texts: dict[tuple[Repeated, tuple[int, ...]], str] = {}  # of iterations in which all counts are known
        self._note_shapes(rules, (), 0)

    def parse(self) -> None:
        if self._sequence(self._rules, (), 0, 0) != len(self._other) - 1:
            raise Unlike("one of them goes on where the other one ends")

    def _note_shapes(self, rules: Sequence[Rule], point: tuple[int, ...], place: int) -> int:
        """Note the shapes of places that are executed from a record on; returns the record behind them."""
        for rule in rules:
            if not isinstance(rule, Repeated):
                self._shapes.setdefault(rule, self._known[place])
                place += 1
                continue
            count = rule.known.at(0, point)
            if rule.grows:
                for k in range(count):
                    place = self._note_shapes(rule.body, (*point, k), place)
            elif count > 0:
                place += count * (self._note_shapes(rule.body, point, place) - place)
        return place

    # ---- 2: walk along both ---------------------------------------------------------------------------

    def _sequence(self, rules: Sequence[Rule], point: tuple[int, ...], place: int, known: int) -> int:
        """Parse from a record on.

        Args:
            point: the iterations of the growing loops around.
            place, known: the record of the other trace, and that of the known one in the same iteration.

        Returns:
            The record of the other trace that comes next.
        """
        for rule in rules:
            if isinstance(rule, Repeated):
                if rule.other is None:
                    self._count(rule, point, place, known)
                place = self._repeated(rule, point, place, known)
                known += self._records(rule, point)
            elif self._other[place : place + 1] == self._shapes[rule]:
                place, known = place + 1, known + 1
            else:
                raise Unlike("they have other loops")
        return place

    def _repeated(self, rule: Repeated, point: tuple[int, ...], place: int, known: int) -> int:
        """Parse a loop whose count is known."""
        assert rule.other is not None
        mine, count = rule.known.at(0, point), rule.other.at(0, point)
        if count < 0:
            raise Unlike("they have other loops")
        for k in range(count):
            place = self._iteration(rule, rule.inner(point, k), place, known)
            if k < mine - 1:
                known += self._records_of(rule.body, rule.inner(point, k))
        return place

    def _iteration(self, rule: Repeated, point: tuple[int, ...], place: int, known: int) -> int:
        text = self._text(rule, point)
        if text is None:
            return self._sequence(rule.body, point, place, known)
        if not self._other.startswith(text, place):
            raise Unlike("they have other loops")
        return place + len(text)

    # ---- 3: counts ------------------------------------------------------------------------------------

    def _count(self, rule: Repeated, point: tuple[int, ...], place: int, known: int) -> None:
        """Find the count of a loop where it is met for the first time."""
        mine, after = rule.known.at(0, point), known + self._records(rule, point)
        ends, counted = [place], [len(self._counted)]
        while True:
            k = len(ends) - 1
            try:
                end = self._iteration(rule, rule.inner(point, k), ends[-1], known)
            except Unlike:
                break
            if end == ends[-1]:
                break
            ends.append(end)
            counted.append(len(self._counted))
            if k < mine - 1:
                known += self._records_of(rule.body, rule.inner(point, k))
        most = len(ends) - 1
        counts = {most, *range(max(0, most - _CANDIDATES), most), *([mine] if 0 <= mine < most else [])}
        found = max(counts, key=lambda count: (self._alike(ends[count], after), count == mine, count))
        self._forget(counted[found])
        self._counted.append(rule)
        rule.other = rule.known._replace(base=rule.known.base + found - mine)

    def _forget(self, counted: int) -> None:
        """Take back what was found in iterations that are none."""
        if counted < len(self._counted):
            for rule in self._counted[counted:]:
                rule.other = None
            del self._counted[counted:]
            self._texts.clear()

    def _alike(self, place: int, known: int) -> int:
        """How many records from here on are the same in both traces."""
        low, high = 0, min(_COMPARED, len(self._other) - place, len(self._known) - known)
        while low < high:
            middle = (low + high + 1) // 2
            if self._other[place + low : place + middle] == self._known[known + low : known + middle]:
                low = middle
            else:
                high = middle - 1
        return low

    # ---- records --------------------------------------------------------------------------------------

    def _text(self, rule: Repeated, point: tuple[int, ...]) -> str | None:
        """The shapes of an iteration; None if a count is not known."""
        found = self._texts.get((rule, point))
        if found is None:
            parts = []
            for one in rule.body:
                part = self._shapes[one] if not isinstance(one, Repeated) else self._text_of(one, point)
                if part is None:
                    return None
                parts.append(part)
            found = self._texts[rule, point] = "".join(parts)
        return found

    def _text_of(self, rule: Repeated, point: tuple[int, ...]) -> str | None:
        """The shapes of a loop; None if a count is not known."""
        if rule.other is None:
            return None
        count = rule.other.at(0, point)
        if count < 0:
            raise Unlike("they have other loops")
        if not rule.grows:
            text = self._text(rule, point)
            return None if text is None else text * count
        texts = [self._text(rule, (*point, k)) for k in range(count)]
        return None if None in texts else "".join(filter(None, texts))

    def _records(self, rule: Repeated, point: tuple[int, ...]) -> int:
        """The number of records of a loop of the known trace."""
        count = rule.known.at(0, point)
        if rule.grows:
            return sum(self._records_of(rule.body, (*point, k)) for k in range(count))
        return max(count, 0) * self._records_of(rule.body, point)

    def _records_of(self, rules: Sequence[Rule], point: tuple[int, ...]) -> int:
        """The number of records of an iteration of the known trace."""
        return sum(self._records(rule, point) if isinstance(rule, Repeated) else 1 for rule in rules)
