"""Bounds on the ints of a step, such that every int computed from them is exact in float64.

Python's ints are unbounded; float64 holds all ints only up to 2**53.  So the result of each int operation gets a bound:

1. Ints from outside (arguments, and places that are copied in) are assumed to be at most some limit.
2. The bound of each result follows from those of its operands, from the first operation to the last.
3. The largest limit for which no bound exceeds 2**53 is determined.  Each call compares the ints from outside with it,
   and runs as plain Python if one is greater.
4. So does that of each operation on tensors of whole numbers (record/whole_numbers.py), which are below 2**53, and in a
   float32 step at most 2**24, because it computes with such floats.
5. Ints that a step assigns may grow with each row of a loop; by how much is also determined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Union

from ...engine.precision import FLOAT64
from ...ir import opcodes as ops
from ...ir.trace import LATE
from .recorder import Recorder
from .whole_numbers import UNKNOWN, BoundOf, Elements, Read, Scalar, Written

EXACT = FLOAT64.largest_integer
_COMPARISONS = frozenset(code | ops.NUMBER for code in (ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL))
#: Operations that turn floats into ints.
_ROUNDED = frozenset(ops.LIBRARY_CODES[name] for name in ("floor", "ceil", "trunc", "rint"))
#: How many bisection steps the search for the limit takes.
_HALVINGS = 6

#: A bound, or how one follows from the limit and other formulas, and the numbers of those.
_Formula = tuple[Union[int, BoundOf, Callable[..., int]], tuple[int, ...]]


@dataclass(frozen=True)
class IntegerLimit:
    """The conditions under which the ints of a step are exact.

    Attributes:
        limit: how large the ints from outside may be; negative if not even zeros are exact.
        leaves: the leaves to which the limit applies.
        growth: by how much the largest int that the step assigns may grow in a call.
        least: how large such ints may be after a call in any case.
        reason: why not even zeros are exact.
    """

    limit: int = EXACT
    leaves: frozenset[int] = field(default_factory=frozenset)
    growth: int = 0
    least: int = 0
    reason: str = ""


def integer_limit(recorder: Recorder, bound_of_leaf: Callable[[int], int | None]) -> IntegerLimit:
    """The limit for what has been recorded.

    Args:
        bound_of_leaf: how large the int in a leaf can be; 0 if it does not hold one, None if nothing is known.
    """
    written = (noted for noted in recorder.whole_numbers if isinstance(noted, Written))
    has_numbers = bool(recorder.integer_results) and recorder.precision is FLOAT64
    if not has_numbers and not any(one.is_whole or one.is_exact for one in written):
        return IntegerLimit()
    bounds = _Bounds(recorder, bound_of_leaf)
    exact = recorder.precision.largest_integer

    def fits(limit: int) -> bool:
        return bounds.largest(limit) <= exact

    if fits(EXACT):
        limit = EXACT
    elif not fits(0):
        return IntegerLimit(-1, reason=bounds.too_large(exact))
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
        #: Of memory of tensors, by the leaf; and which formulas are those of results.
        self._memories: dict[int, int] = {}
        self._tensors: dict[int, Written] = {}
        self._is_double = recorder.precision is FLOAT64
        self._indices = {check.input_index: check.allowed for check in recorder.checks}
        noted: list[tuple[int, Any]] = [(result, None) for result in set(recorder.integer_results)]
        noted += [(of_tensor.record, of_tensor) for of_tensor in recorder.whole_numbers]
        self._ways: dict[tuple[int, int, int], int] = {}  # by opcode and the formulas of both operands
        self._number_of[ops.NO_OPERAND] = self._formula(0)
        for record, of_tensor in sorted(noted, key=itemgetter(0)):
            if of_tensor is None:
                number = self._number_of[record] = self._result(record)
                if self._is_double:
                    self._results.add(number)
            elif isinstance(of_tensor, Read):
                self._number_of[record] = self._elements(of_tensor.elements)
            else:
                self._write(of_tensor)
        self._assigned = {self._operand(operand) for operand in self._operands_assigned()}

    def largest(self, limit: int) -> int:
        """The largest bound of any result, or of what is assigned to leaves to which the limit applies."""
        bounds = self._of(limit)
        return max([bounds[number] for number in self._results | self._assigned], default=0)

    def too_large(self, exact: int) -> str:
        """Where the first result is that is too large in any case, for people; empty if it is no tensor."""
        bounds = self._of(0)
        found = next((written for number, written in self._tensors.items() if bounds[number] > exact), None)
        return (
            f"{found.location}: {found.name} may give whole numbers that are not exact, at which a compiled step does "
            "not look (floor, ceil, trunc and rint keep floats)"
            if found is not None
            else ""
        )

    def _write(self, written: Written) -> None:
        operands = list(map(self._elements, written.operands))
        number = self._formula(BoundOf(written.body, written.iterations), *operands)
        before = self._memories.get(written.leaf)
        self._memories[written.leaf] = number if before is None else self._formula(_largest, before, number)
        # Of 2**53 itself, eager operations do not know whether it was rounded.
        results = [self._formula(_sum, number, self._formula(1)) if self._is_double else number] * written.is_whole
        for result in (*results, *(operands if written.is_exact else ())):
            self._results.add(result)
            self._tensors.setdefault(result, written)

    def _elements(self, elements: int | Elements | Scalar) -> int:
        if isinstance(elements, int):
            return self._formula(elements)
        if isinstance(elements, Scalar):
            return self._operand(elements.operand)
        if ops.leaf_kind(elements.leaf) == ops.TENSOR:
            known = self._memories.get(elements.leaf)
            return self._formula(UNKNOWN) if known is None else known
        if elements.leaf not in self._memories:
            self._memories[elements.leaf] = self._input(elements)
        return self._memories[elements.leaf]

    def _input(self, elements: Elements) -> int:
        first = ops.leaf_index(elements.leaf)
        allowed = [self._indices.get(place) for place in range(first, first + elements.size)]
        known = [max(abs(among.start), abs(among.stop)) for among in allowed if among is not None]
        if allowed and len(known) == len(allowed):
            return self._formula(max(known))
        leaves = [elements.leaf - place for place in range(1 if elements.is_argument else elements.size)]
        return self._formula(_largest, self._formula(0), *map(self._operand, leaves))

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

    def _formula(self, combine: int | BoundOf | Callable[..., int], *parts: int) -> int:
        return self._numbers.setdefault((combine, parts), len(self._numbers))

    def _result(self, result: int) -> int:
        if result < 0:
            return self._operand(result)
        recorder, known = self._recorder, self._number_of
        code, a, b = recorder.op[result] & ~ops.NUMBER, recorder.a[result], recorder.b[result]
        if code >= ops.TAKE:
            return self._formula(_largest, *map(self._operand, recorder.elements(a, code)))
        if code in _ROUNDED:
            return self._formula(EXACT)
        way = code, known[a] if a in known else self._operand(a), known[b] if b in known else self._operand(b)
        if way not in self._ways:
            self._ways[way] = self._computed(*way)
        return self._ways[way]

    def _computed(self, code: int, a: int, b: int) -> int:
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
        kind = ops.leaf_kind(operand)
        if kind == ops.CONSTANT:
            number = abs(recorder.constants[ops.leaf_index(operand)])
            return self._formula(int(number) if number - number == 0.0 else 0)
        if kind == LATE:
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
