"""A loop whose whole body is a step: calls make all iterations that are known to come, but for the last one.

1. The step gets the variables of the loop as columns (rows.py), and everything else as it is.  What an iteration takes
   over from the one before, such as sums, is in a list that the step changes: numbers, or lists.
2. What only the variables of the loop decide about, such as `if epoch % 100 == 0: print(loss)`, is Python: a call ends
   in front of such an iteration.
3. The first calls are single ones: until there is code, and where it is compared with plain Python.  Then calls make
   more and more iterations; only single ones again after some calls in vain.
4. Times and counts are those of iterations, as of other loops (trying.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from .rows import columns, lists_of, skip, to_come
from .running import is_inert
from .trying import FRUITLESS, Trying

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource
    from .step import OutlinedStep

_KEPT = frozenset({int, float, list})
#: How many iterations a call makes at first; how many times as many the next one does; calls in vain, at most.
_FIRST_ROWS, _GROWTH, _IN_VAIN = 256, 8, 8


def _alike(found: dict[str, list[Any]], head: Callable[..., Any], tail: Callable[..., Any]) -> int:
    """How many iterations there are until the first one in which one of these is true; one, if that is the first."""
    rows = list(zip(*(found[name] for name in sorted(found))))
    if tail(*rows[0]):
        return 1
    return next((k for k, row in enumerate(rows) if k and (head(*row) or tail(*row))), len(rows))


class TryingEach(Trying):
    """A step is tried in each iteration, although the loop gives what is needed for many."""

    __slots__ = ()

    def called(self, *arguments: Any) -> Sequence[Any]:
        has_tests = self.source.rows is not None and self.source.rows.has_tests
        return super().called(*(arguments[:-2] if has_tests else arguments))


class TryingRows(Trying):
    """A step is tried for many iterations at once."""

    __slots__ = ()

    def called(self, *arguments: Any) -> Sequence[Any]:
        if self.step is None and not set(map(type, self._kept(arguments))) <= _KEPT:
            self._go_one_by_one()
            return self.called(*arguments)
        if self.rows is None or not to_come(self.rows):
            self.is_inside = False
            return ()
        if self._begins_otherwise(arguments) and not is_inert():
            self._note_plain()
            self._goes_plain(True)
            return ()
        found = self._measured(arguments)
        self.each = self.compiled / self.window if self.window else self.each  # there may be few calls
        return found

    def _go_one_by_one(self) -> None:
        """Try the step of single iterations instead."""
        self.rows, self.may_have_rows, self.step = None, False, None
        self.__class__ = TryingEach  # type: ignore[assignment]

    def _was_plain(self, step: OutlinedStep, seconds: float) -> None:
        if step.fruitless >= FRUITLESS and not (step.kernels or step.waiting):
            step.give_up()
            self._go_one_by_one()
        else:
            super()._was_plain(step, seconds)

    def _begins_otherwise(self, arguments: Sequence[Any]) -> bool:
        """Whether this is the first iteration, and a sum is an int as it is in no later one, such as `total = 0`."""
        kinds, is_first, self.is_entered = list(map(type, self._kept(arguments))), self.is_entered, False
        if not is_first:
            self.kinds = kinds
        return is_first and any(kind is int and kind is not later for kind, later in zip_longest(kinds, self.kinds))

    def _kept(self, arguments: Sequence[Any]) -> list[Any]:
        """What is taken over from one iteration to another; 0.0 stands for what has no value yet."""
        assert self.source.rows is not None
        given = dict(zip(self.source.rows.arguments, arguments))
        return [given.get(name, 0.0) for name in self.source.rows.kept]

    def _attempt(self, step: OutlinedStep, arguments: Sequence[Any], allowed: float) -> Any:
        layout, kept = self.source.rows, self._kept(arguments)
        assert layout is not None
        if not set(map(type, kept)) <= _KEPT:
            return step.nothing
        self.kept[:], self.made = kept, 1
        given = {name: one for name, one in zip(layout.arguments, arguments) if name not in layout.kept}
        first = [*given.values(), *([self.kept] if kept else [])]
        count = min(to_come(self.rows), self.most_rows)
        if step.kernels and count > 1 and self.rows_in_vain < _IN_VAIN:
            found = columns(self.rows, count, layout.pattern)
            count = 0 if found is None else count
            if found and layout.has_tests:
                count = _alike(found, *arguments[-2:])
            made = 0
            if found is not None and count > 1:
                by_place = {place: found[name][:count] for place, name in enumerate(given) if name in found}
                made = step.attempt_rows(first, by_place, count, lists_of(self.rows))
            if made:
                skip(self.rows, made - 1)  # type: ignore[arg-type]
                self.made, self.rows_in_vain, self.most_rows = made, 0, self.most_rows * _GROWTH
                return tuple(self.kept)
            if count != 1:
                self.rows_in_vain, self.most_rows = self.rows_in_vain + 1, _FIRST_ROWS
        return step.nothing if step.attempt(first, self.iteration, allowed) is step.nothing else tuple(self.kept)

    def _function(self) -> StepSource:
        assert self.source.rows is not None
        return self.source.rows.step

    def _judge(self) -> None:
        super()._judge()
        self.unmeasured = 0
