"""Bounds on the ints of a step, such that every int computed from them is exact in float64.

Python's ints are unbounded; float64 holds all ints only up to 2**53.  So the result of each int operation gets a bound:

1. Ints from outside (arguments, and places that are copied in) are assumed to be at most some limit.
2. The bound of each result follows from those of its operands, from the first operation to the last.
3. The largest limit for which no bound exceeds 2**53 is determined.  Each call compares the ints from outside with it,
   and runs as plain Python if one is greater.
4. Ints that a step assigns may grow with each row of a loop; by how much is also determined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..engine.precision import FLOAT64
from . import opcodes as ops
from .recorder import Recorder

EXACT = FLOAT64.largest_integer
_COMPARISONS = frozenset(code | ops.NUMBER for code in (ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL))
#: Operations that turn floats into ints.
_ROUNDED = frozenset(ops.LIBRARY_CODES[name] for name in ("floor", "ceil", "trunc", "rint"))
#: How many bisection steps the search for the limit takes.
_HALVINGS = 6


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
    assigned = bounds.assigned()
    growth = max((bounds.of(limit)[operand] - limit for operand in assigned), default=0)
    least = max((bounds.of(0)[operand] for operand in assigned), default=0)
    return IntegerLimit(limit, frozenset(bounds.leaves), max(growth, 0), least)


class _Bounds:
    """The bounds of the results, for a limit."""

    def __init__(self, recorder: Recorder, bound_of_leaf: Callable[[int], int | None]) -> None:
        self._recorder, self._bound_of_leaf = recorder, bound_of_leaf
        self._results = sorted(set(recorder.integer_results))
        self._known: dict[int, Mapping[int, int]] = {}
        self.leaves: set[int] = set()

    def largest(self, limit: int) -> int:
        """The largest bound of any result."""
        return max(self.of(limit).values(), default=0)

    def of(self, limit: int) -> Mapping[int, int]:
        """The bounds, by operand."""
        known = self._known.get(limit)
        if known is None:
            bounds: dict[int, int] = {}
            for result in self._results:
                bounds[result] = self._of_result(result, bounds, limit)
            for operand in self.assigned():
                bounds[operand] = self._of_operand(operand, bounds, limit)
            known = self._known[limit] = bounds
        return known

    def assigned(self) -> list[int]:
        """The operands that are assigned to leaves to which the limit applies."""
        recorder = self._recorder
        return [
            recorder.b[position]
            for target, position in recorder.last_store.items()
            if target in self.leaves and ops.leaf_kind(target) == ops.STATE
        ]

    def _of_result(self, result: int, bounds: dict[int, int], limit: int) -> int:
        if result < 0:
            return self._of_operand(result, bounds, limit)
        recorder = self._recorder
        code = recorder.op[result] & ~ops.NUMBER
        if code >= ops.TAKE:
            layout = recorder.layouts[code - ops.TAKE]
            elements = [recorder.a[result] - layout.stride * k for k in range(layout.count)]
            return max(self._of_operand(element, bounds, limit) for element in elements)
        if code in _ROUNDED:
            return EXACT
        a = self._of_operand(recorder.a[result], bounds, limit)
        b = self._of_operand(recorder.b[result], bounds, limit) if recorder.b[result] != ops.NO_OPERAND else 0
        if code in (ops.ADD, ops.SUBTRACT):
            return a + b
        if code == ops.LIBRARY_CODES["fmod"]:
            return b
        return a * b if code == ops.MULTIPLY else max(a, b)

    def _of_operand(self, operand: int, bounds: dict[int, int], limit: int) -> int:
        recorder = self._recorder
        known = bounds.get(operand)
        if known is not None:
            return known
        among = recorder.known_integers.get(operand)
        if among is not None:
            return max(abs(among[0]), abs(among[-1])) if len(among) else 0
        if operand >= 0:  # what is no int here is none when the step runs, if the result is one
            return 1 if recorder.op[operand] in _COMPARISONS else 0
        if ops.leaf_kind(operand) == ops.CONSTANT:
            number = abs(recorder.constants[ops.leaf_index(operand)])
            return int(number) if number - number == 0.0 else 0
        operand = recorder.read_at_last(operand)
        of_leaf = self._bound_of_leaf(operand)
        if of_leaf is not None:
            return of_leaf
        self.leaves.add(operand)
        return limit
