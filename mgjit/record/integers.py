"""Bounds on the ints of a step, such that every int computed from them is exact in float64.

Python's ints are unbounded; float64 holds all ints only up to 2**53.  So the result of each int operation gets a bound:

1. Ints from outside (arguments, and places that are copied in) are assumed to be at most some limit.
2. The bound of each result follows from those of its operands, from the first operation to the last.
3. The largest limit for which no bound exceeds 2**53 is determined.  Each call compares the ints from outside with it,
   and runs as plain Python if one is greater.
4. Ints that a step assigns may grow with each row of a loop; by how much is also determined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Union

from ..engine.precision import FLOAT64
from . import opcodes as ops
from .recorder import Recorder

EXACT = FLOAT64.largest_integer
_COMPARISONS = frozenset(code | ops.NUMBER for code in (ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL))
#: Operations that turn floats into ints.
_ROUNDED = frozenset(ops.LIBRARY_CODES[name] for name in ("floor", "ceil", "trunc", "rint"))
#: How many bisection steps the search for the limit takes.
_HALVINGS = 6

#: A bound, or how one follows from the limit and other formulas, and the numbers of those.
_Formula = tuple[Union[int, Callable[..., int]], tuple[int, ...]]


@dataclass(frozen=True)
class IntegerLimit:
    """The conditions under which the ints of a step are exact.

    Attributes:
        limit: how large the ints from outside may be; negative if not even zeros are exact.
        leaves: the leaves to which the limit applies.
        growth: by how much the largest int that the step assigns may grow in a call.
        least: how large such ints may be after a call in any case.
    """

    limit: int = EXACT
    leaves: frozenset[int] = field(default_factory=frozenset)
    growth: int = 0
    least: int = 0


def integer_limit(recorder: Recorder, bound_of_leaf: Callable[[int], int | None]) -> IntegerLimit:
    """The limit for what has been recorded.

    Args:
        bound_of_leaf: how large the int in a leaf can be; 0 if it does not hold one, None if nothing is known.
    """
    if not recorder.integer_results or recorder.precision is not FLOAT64:
        return IntegerLimit()
    bounds = _Bounds(recorder, bound_of_leaf)

    def fits(limit: int) -> bool:
        return bounds.largest(limit) <= EXACT

    if fits(EXACT):
        limit = EXACT
    elif not fits(0):
        limit = -1
    else:
        exponent = next((k for k in range(52, -1, -1) if fits(1 << k)), -1)
        limit, too_large = (1 << exponent, 2 << exponent) if exponent >= 0 else (0, 1)
        for _ in range(_HALVINGS):
            middle = (limit + too_large) // 2
            limit, too_large = (middle, too_large) if fits(middle) else (limit, middle)
    growth = max((bound - limit for bound in bounds.assigned(limit)), default=0)
    least = max(bounds.assigned(0), default=0)
    return IntegerLimit(limit, frozenset(bounds.leaves), max(growth, 0), least)


class _Bounds:
    """The bounds of the results, for a limit.

    Results that are computed in the same way have the same bound, and steps compute many of those (`step + 1` for each
    parameter): each way is a formula, an operation and the numbers of the formulas that it takes.
    """

    def __init__(self, recorder: Recorder, bound_of_leaf: Callable[[int], int | None]) -> None:
        self._recorder, self._bound_of_leaf = recorder, bound_of_leaf
        self._numbers: dict[_Formula, int] = {}
        self._number_of: dict[int, int] = {}  # by operand, results first to last
        self._known: dict[int, list[int]] = {}
        self.leaves: set[int] = set()
        self._results: set[int] = set()  # a constant among the operands may be larger than any of them
        for result in sorted(set(recorder.integer_results)):
            self._number_of[result] = self._result(result)
            self._results.add(self._number_of[result])
        self._assigned = {self._operand(operand) for operand in self._operands_assigned()}

    def largest(self, limit: int) -> int:
        """The largest bound of any result, or of what is assigned to leaves to which the limit applies."""
        bounds = self._of(limit)
        return max([bounds[number] for number in self._results | self._assigned], default=0)

    def assigned(self, limit: int) -> list[int]:
        """The bounds of what is assigned to leaves to which the limit applies."""
        bounds = self._of(limit)
        return [bounds[number] for number in self._assigned]

    def _of(self, limit: int) -> list[int]:
        """The bounds, by number of the formula."""
        known = self._known.get(limit)
        if known is None:
            known = self._known[limit] = []
            for combine, parts in self._numbers:
                known.append(combine(limit, *[known[part] for part in parts]) if callable(combine) else combine)
        return known

    def _operands_assigned(self) -> list[int]:
        recorder = self._recorder
        return [
            recorder.b[position]
            for target, position in recorder.last_store.items()
            if target in self.leaves and ops.leaf_kind(target) == ops.STATE
        ]

    def _formula(self, combine: int | Callable[..., int], *parts: int) -> int:
        return self._numbers.setdefault((combine, parts), len(self._numbers))

    def _result(self, result: int) -> int:
        if result < 0:
            return self._operand(result)
        recorder = self._recorder
        code = recorder.op[result] & ~ops.NUMBER
        if code >= ops.TAKE:
            return self._formula(_largest, *map(self._operand, recorder.elements(recorder.a[result], code)))
        if code in _ROUNDED:
            return self._formula(EXACT)
        a = self._operand(recorder.a[result])
        b = self._operand(recorder.b[result]) if recorder.b[result] != ops.NO_OPERAND else self._formula(0)
        if code in (ops.ADD, ops.SUBTRACT):
            return self._formula(_sum, a, b)
        if code == ops.LIBRARY_CODES["fmod"]:
            return b
        return self._formula(_product if code == ops.MULTIPLY else _largest, a, b)

    def _operand(self, operand: int) -> int:
        known = self._number_of.get(operand)
        if known is None:
            known = self._number_of[operand] = self._other(operand)
        return known

    def _other(self, operand: int) -> int:
        """The formula of an operand that is no result."""
        recorder = self._recorder
        among = recorder.known_integers.get(operand)
        if among is not None:
            return self._formula(max(abs(among[0]), abs(among[-1])) if len(among) else 0)
        if operand >= 0:  # what is no int here is none when the step runs, if the result is one
            return self._formula(1 if recorder.op[operand] in _COMPARISONS else 0)
        if ops.leaf_kind(operand) == ops.CONSTANT:
            number = abs(recorder.constants[ops.leaf_index(operand)])
            return self._formula(int(number) if number - number == 0.0 else 0)
        operand = recorder.read_at_last(operand)
        of_leaf = self._bound_of_leaf(operand)
        if of_leaf is not None:
            return self._formula(of_leaf)
        self.leaves.add(operand)
        return self._formula(_limit)


def _limit(limit: int) -> int:
    return limit


def _sum(_: int, a: int, b: int) -> int:
    return a + b


def _product(_: int, a: int, b: int) -> int:
    return a * b


def _largest(_: int, *parts: int) -> int:
    return max(parts)
