"""How large the whole numbers of tensors can be, as far as a trace tells.

An operation on int64 tensors raises an error where a result is not below 2**53 (tensor/dtypes.py).  A compiled step
does not look at what it computes, so that it must know that no result is so large, or leave the call to plain Python:

1. Each operation on tensors, and each element that becomes a number, is noted while the step is traced.
2. The bound of a result follows from those of the operands (`bound_of`), in the order of the trace; that of a memory is
   the largest one of what is written there.
3. Inputs are bounded where they are indices.  Of all others the limit is looked for with that of other ints
   (record/integers.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...engine.operations import COMPARISONS, operations

if TYPE_CHECKING:
    from ...ir.bodies import Body, Source, Step

#: Stands for what may be any number, also infinite or nan.
UNKNOWN = 1 << 64
#: Reductions that are no sums are followed through so many iterations.
_MOST_ITERATIONS = 64

_SAME = operations(lambda one: one.keeps_whole)


class Elements(NamedTuple):
    """A memory of a trace.

    Attributes:
        leaf: its first element. size: how many there are.
        is_argument: whether it is a tensor among the arguments.
    """

    leaf: int
    size: int
    is_argument: bool = False


class Scalar(NamedTuple):
    """An int of the step among the operands."""

    operand: int


class Written(NamedTuple):
    """An operation on tensors.

    Attributes:
        record: of the trace.
        leaf: of the memory that it writes.
        is_whole: whether that is of whole numbers.
        is_exact: whether all operands are, so that a float32 step has to hold them as well as float64 does.
        name: of the operation.
        body, iterations: what an iteration of the inner loops does, and how many there are.
        operands: the bounds of the operands, or what they follow from.
        location: the line that asks for it.
    """

    record: int
    leaf: int
    is_whole: bool
    is_exact: bool
    name: str
    body: Body
    iterations: int
    operands: tuple[int | Elements | Scalar, ...]
    location: str


class Read(NamedTuple):
    """A whole number of a tensor that becomes one of the step: a record, and what its bound follows from."""

    record: int
    elements: int | Elements


class BoundOf(NamedTuple):
    """The bound of a result as a function of a limit and the bounds of the operands."""

    body: Body
    iterations: int

    def __call__(self, _: int, *operands: int) -> int:
        return bound_of(self.body, self.iterations, operands)


def largest_of(numbers: Sequence[float]) -> int:
    """The bound of these numbers."""
    largest = max(map(abs, numbers), default=0.0)
    return math.ceil(largest) if all(number - number == 0.0 for number in numbers) else UNKNOWN


def bound_of(body: Body, count: int, operands: Sequence[int]) -> int:
    """The bound of what `count` iterations compute of operands with these bounds."""
    from ...ir.bodies import REDUCTIONS

    carried: list[int | None] = [largest_of([number]) if abs(number) < math.inf else None for number in body.initial]
    if not carried:
        found = _after(body.steps, carried, operands)[-1]
        return UNKNOWN if found is None else found
    if body in (REDUCTIONS["argmax"], REDUCTIONS["argmin"]):
        return count
    if body.is_sum:
        _, term = body.steps[-1].operands
        terms = _of_source(term, _after(body.steps[:-1], carried, operands), carried, operands)
        start = carried[0]
        return UNKNOWN if terms is None or start is None or terms >= UNKNOWN else min(start + count * terms, UNKNOWN)
    for number in range(count):
        results = _after(body.steps, carried, operands)
        after = [results[step] for step in body.carried]
        if after == carried:
            break
        if number == _MOST_ITERATIONS:
            return UNKNOWN
        carried = after
    result = carried[body.result]
    return UNKNOWN if result is None else result


def _after(steps: Sequence[Step], carried: Sequence[int | None], operands: Sequence[int]) -> list[int | None]:
    """The bounds of the results of some steps; None stands for one infinity, the beginning of a maximum."""
    results: list[int | None] = []
    for step in steps:
        parts = [_of_source(one, results, carried, operands) for one in step.operands]
        if step.operation in ("fmod", "divide") and isinstance(by := step.operands[1], float):
            results.append(_of_quotient(step.operation, parts[0], abs(by)))
        elif step.operation in ("copysign", "link"):  # the first operand, with another sign or derivative
            results.append(UNKNOWN if parts[0] is None else parts[0])
        else:
            results.append(_of_step(step.operation, parts))
    return results


def _of_quotient(operation: str, part: int | None, by: float) -> int | None:
    """The bound of a quotient or remainder by one number."""
    if part is None or part >= UNKNOWN or not 1.0 <= by < math.inf:
        return UNKNOWN
    return min(part, math.ceil(by)) if operation == "fmod" else part


def _of_source(
    source: Source, results: Sequence[int | None], carried: Sequence[int | None], operands: Sequence[int]
) -> int | None:
    if isinstance(source, float):
        return largest_of([source]) if abs(source) < math.inf else None
    found = {"element": operands, "result": results, "carried": carried}[source.kind]
    return found[source.number]


def _of_step(operation: str, parts: Sequence[int | None]) -> int | None:
    if operation in COMPARISONS:
        return 1
    if operation == "select":
        parts = parts[1:]
    known = [part for part in parts if part is not None]
    if operation in ("maximum", "minimum", "select"):
        return max(known, default=None)
    if len(known) < len(parts) or max(known) >= UNKNOWN:
        return UNKNOWN
    if operation in _SAME:
        return known[0]
    if operation in ("add", "subtract"):
        return min(known[0] + known[1], UNKNOWN)
    return min(known[0] * known[1], UNKNOWN) if operation == "multiply" else UNKNOWN
