"""Which integers a run-time index can be, as far as its operations tell.

1. Constants, draws, and inputs and kept ints that an earlier look-up requires to be in a range, are in a known range.
2. Sums, differences, products, negations and choices of these are in the range of their extremes; so are their
   quotients by a constant.
3. Remainders by a constant are in a range that follows from it, also of ints about which nothing is known.
4. An index that is `factor * n + offset`, of one input `n` about which nothing is known, can be required of `n`.

Everything else has no range, and is no index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...ir.opcodes import (
    ADD,
    CONSTANT,
    COPY,
    INPUT,
    MULTIPLY,
    NEGATE,
    NUMBER,
    SELECT,
    STATE,
    SUBTRACT,
    leaf_index,
    leaf_kind,
)

if TYPE_CHECKING:
    from .recorder import Recorder

#: An index is computed by no more operations, one on the result of the other.
_DEEPEST = 40


class Affine(NamedTuple):
    """`factor * input + offset`; a constant has no factor, and no input."""

    input_index: int
    factor: int
    offset: int


def range_of(recorder: Recorder, operand: int, depth: int = 0) -> range | None:
    """A range that an integer operand is known to be in; None if there is none."""
    known = recorder.known_integers.get(operand)
    if known is not None:
        return known if len(known) else None
    if operand < 0:
        operand = recorder.read_at_last(operand)
        if leaf_kind(operand) == CONSTANT:
            number = recorder.constants[leaf_index(operand)]
            return range(int(number), int(number) + 1) if number.is_integer() else None
        checks = {INPUT: recorder.checks, STATE: recorder.kept_indices}.get(leaf_kind(operand), ())
        required = [check.allowed for check in checks if check.input_index == leaf_index(operand)]
        return next(filter(None, [intersection(required)]), None) if required else None
    if depth == _DEEPEST:
        return None
    code = recorder.op[operand]
    operands = (recorder.a[operand],) if code in _OF_ONE else (recorder.a[operand], recorder.b[operand])
    if code not in _OF_ONE and code not in _OF_TWO and code != _CHOICE:
        return None
    found = [range_of(recorder, one, depth + 1) for one in operands]
    ends = [(one[0], one[-1]) for one in found if one is not None]
    if len(ends) < len(found):
        return None
    if code == _CHOICE:
        results = [x for pair in ends for x in pair]
    elif len(ends) == 1:
        results = [x if code == COPY | NUMBER else -x for x in ends[0]]
    else:
        results = [_computed(code, x, y) for x in ends[0] for y in ends[1]]
    return range(min(results), max(results) + 1)


def range_of_remainder(recorder: Recorder, a: int, b: int) -> range | None:
    """The range that `a % b` is in; None if `b` is no constant, or `a` may be no int when the step runs (`1 // 0`)."""
    divisor = _constant(recorder, b)
    if not divisor or not _is_int(recorder, a):
        return None
    return range(divisor) if divisor > 0 else range(divisor + 1, 1)


def range_of_quotient(recorder: Recorder, a: int, b: int) -> range | None:
    """The range that `a // b` is in; None if `b` is no constant, or nothing is known of `a`."""
    divisor, known = _constant(recorder, b), range_of(recorder, a)
    if not divisor or known is None:
        return None
    ends = (known[0] // divisor, known[-1] // divisor)
    return range(min(ends), max(ends) + 1)


def _constant(recorder: Recorder, operand: int) -> int | None:
    known = range_of(recorder, operand)
    return known[0] if known is not None and len(known) == 1 else None


def _is_int(recorder: Recorder, operand: int, depth: int = 0) -> bool:
    """Whether an operand that is an int in the trace is one whenever the step runs: no division by zero has made it."""
    if operand in recorder.known_integers:
        return True
    if operand < 0:
        return leaf_kind(recorder.read_at_last(operand)) in (CONSTANT, INPUT, STATE)
    code = recorder.op[operand]
    if depth == _DEEPEST or (code not in _OF_ONE and code not in _OF_TWO):
        return False
    operands = (recorder.a[operand],) if code in _OF_ONE else (recorder.a[operand], recorder.b[operand])
    return all(_is_int(recorder, one, depth + 1) for one in operands)


def affine_of_input(recorder: Recorder, operand: int, depth: int = 0) -> Affine | None:
    """An integer operand as a function of one input; None if it is none."""
    if operand < 0:
        if leaf_kind(operand) == INPUT:
            return Affine(leaf_index(operand), 1, 0)
        known = range_of(recorder, operand)
        return Affine(-1, 0, known[0]) if known is not None and len(known) == 1 else None
    code = recorder.op[operand]
    if code not in _OF_TWO or depth == _DEEPEST:
        return None
    one, other = (affine_of_input(recorder, x, depth + 1) for x in (recorder.a[operand], recorder.b[operand]))
    if one is None or other is None:
        return None
    if code == MULTIPLY | NUMBER:
        if one.factor and other.factor:
            return None
        factor, of = (one.offset, other) if other.factor else (other.offset, one)
        return Affine(of.input_index, of.factor * factor, of.offset * factor)
    if one.factor and other.factor and one.input_index != other.input_index:
        return None
    index = one.input_index if one.factor else other.input_index
    return Affine(index, _computed(code, one.factor, other.factor), _computed(code, one.offset, other.offset))


def inputs_in(affine: Affine, count: int) -> range:
    """The inputs for which an affine index with a factor is in `range(count)`; they may be none."""
    _, factor, offset = affine
    ends = (-offset, count - 1 - offset) if factor > 0 else (count - 1 - offset, -offset)
    return range(-(-ends[0] // factor), ends[1] // factor + 1)


def intersection(ranges: list[range]) -> range:
    """The integers in all of these ranges, of which there is at least one."""
    return range(max(one.start for one in ranges), min(one.stop for one in ranges))


_CHOICE = SELECT | NUMBER
_OF_ONE = frozenset({COPY | NUMBER, NEGATE | NUMBER})
_OF_TWO = frozenset({ADD | NUMBER, SUBTRACT | NUMBER, MULTIPLY | NUMBER})


def _computed(code: int, x: int, y: int) -> int:
    if code == ADD | NUMBER:
        return x + y
    return x - y if code == SUBTRACT | NUMBER else x * y
