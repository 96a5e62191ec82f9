"""record/ranges.py: ranges of integers that are computed, and what an input must be for an index to be in range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.engine.precision import FLOAT64
from mgjit.errors import IndexRangeError, TraceError
from mgjit.ir import opcodes as ops
from mgjit.tracing.record.ranges import (
    Affine,
    affine_of_input,
    inputs_in,
    intersection,
    range_of,
    range_of_quotient,
    range_of_remainder,
)
from mgjit.tracing.record.recorder import Recorder

TABLE = [0.5 * k - 3.0 for k in range(40)]
SHORT = TABLE[:5]


def _recorder() -> tuple[Recorder, int, int]:
    """A recorder with two inputs, of which one is known to be in range(3, 6)."""
    recorder = Recorder(FLOAT64)
    known, unknown = ops.leaf(ops.INPUT, 0), ops.leaf(ops.INPUT, 1)
    recorder.known_integers[known] = range(3, 6)
    return recorder, known, unknown


def _apply(recorder: Recorder, code: int, a: int, b: int | float) -> int:
    return recorder.emit(code | ops.NUMBER, a, recorder.constant(b) if isinstance(b, float) else b)


def test_01_ranges_of_sums_and_products() -> None:
    """Of extremes, also with negative factors; nothing is known of what is computed otherwise."""
    recorder, known, unknown = _recorder()
    less = _apply(recorder, ops.SUBTRACT, known, 7.0)  # -4 .. -2
    assert range_of(recorder, less) == range(-4, -1)
    assert range_of(recorder, _apply(recorder, ops.MULTIPLY, less, less)) == range(4, 17)
    assert range_of(recorder, _apply(recorder, ops.MULTIPLY, known, -2.0)) == range(-10, -5)
    assert range_of(recorder, recorder.emit(ops.NEGATE | ops.NUMBER, less, ops.NO_OPERAND)) == range(2, 5)
    for operand in (
        unknown,
        _apply(recorder, ops.ADD, known, unknown),
        _apply(recorder, ops.ADD, known, 0.5),
        _apply(recorder, ops.DIVIDE, known, 1.0),
    ):
        assert range_of(recorder, operand) is None


def test_02_inputs_of_affine_indices() -> None:
    """Those for which an index is in range, and no others."""
    recorder, _, unknown = _recorder()
    scaled = _apply(recorder, ops.ADD, _apply(recorder, ops.MULTIPLY, unknown, -3.0), 20.0)
    assert affine_of_input(recorder, scaled) == Affine(1, -3, 20)
    assert affine_of_input(recorder, _apply(recorder, ops.MULTIPLY, unknown, unknown)) is None
    twice = _apply(recorder, ops.SUBTRACT, _apply(recorder, ops.ADD, unknown, unknown), unknown)
    assert affine_of_input(recorder, twice) == Affine(1, 1, 0)
    for factor in (-5, -3, -1, 1, 2, 7):
        for offset in (-9, -1, 0, 4, 30):
            for count in (1, 3, 16):
                allowed = inputs_in(Affine(0, factor, offset), count)
                assert list(allowed) == [n for n in range(-100, 100) if 0 <= factor * n + offset < count]
    assert intersection([range(2, 9), range(-1, 5)]) == range(2, 5)


def _place(i: int, x: float) -> tuple[Any, ...]:
    return TABLE[3 * i + 1] + x, TABLE[2 * (i - 1) * 2], TABLE[i]


@pytest.mark.parametrize("backend", ["c", "python"])
def test_03_computed_indices_are_checked_before_anything_runs(backend: str) -> None:
    """Each look-up restricts the argument; in `.loop`, too; after the fast path has been taken as well."""
    state = mgjit.zeros(32)

    def step(i: int, x: float) -> Any:
        for k in range(4):
            state[4 * i + k] = x + k
        return _place(i, x)

    compiled = mgjit.compile(background=False, verify="never", backend=backend)(step)
    for i in (1, 2, 3, 4, 5, 6, 7):
        found = compiled(i, 0.25), list(state)
        assert found == (step(i, 0.25), list(state))
    for i in (0, 8, -1, 100):
        before = list(state)
        with pytest.raises(IndexRangeError, match="is computed from"):
            compiled(i, 0.25)
        with pytest.raises(IndexRangeError, match="in row 1"):
            compiled.loop([1, i], 0.25)
        assert list(state) == before
    columns = compiled.loop([1, 3, 7], 0.25)
    assert list(zip(*columns)) == [step(i, 0.25) for i in (1, 3, 7)]


def _longer_first(i: int) -> float:
    return TABLE[i] + SHORT[i]


def _shorter_first(i: int) -> float:
    return SHORT[i] + TABLE[i]


@pytest.mark.parametrize("step", [_longer_first, _shorter_first])
def test_04_the_shortest_of_several_tables_counts(step: Callable[[int], float]) -> None:
    """Whichever of them is looked up first."""
    compiled = mgjit.compile(background=False, verify="never")(step)
    assert [compiled(k) for k in range(5)] == [step(k) for k in range(5)]
    with pytest.raises(IndexRangeError):
        compiled(7)


def _squared(i: int) -> float:
    return TABLE[i * i]


def _halved(i: int) -> float:
    return TABLE[int(i * 0.5)]


def _of_two(i: int, j: int) -> float:
    return mgjit.take([1.0, 2.0], i) + SHORT[j] + TABLE[i * 8 + j]


def test_05_what_has_no_range_is_no_index() -> None:
    """Neither a product of arguments, nor a number that is computed from floats."""
    for step in (_squared, _halved):
        with pytest.raises(TraceError, match="computed in another way"):
            mgjit.freeze(step, 2)
    compiled = mgjit.compile(background=False)(_of_two)
    assert compiled(1, 2) == 2.0 + SHORT[2] + TABLE[10]  # both are known to be in range


class Ring:
    """The last numbers that were given."""

    def __init__(self) -> None:
        self.numbers, self.t = [0.0] * 4, 0

    def add(self, x: float, n: int) -> tuple[Any, ...]:
        self.numbers[self.t % 4] = x
        self.t += 1
        kept = self.numbers[(self.t - 3) % 4] if self.t > 2 else 0.0
        return kept, TABLE[n % 7] + TABLE[39 - n % 40], SHORT[-n % 5], TABLE[n % 40 // 4], SHORT[n % -5 + 4]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", ["c", "python"])
def test_06_remainders_by_constants_are_indices(backend: str, dtype: str) -> None:
    """Also of ints that the step counts up, and of negative ones; quotients of what is in a known range, too."""
    plain, other = Ring(), Ring()
    compiled = mgjit.compile(background=False, verify="never", backend=backend, dtype=dtype)(other.add)
    calls = [(0.25 * k, n) for k, n in enumerate([0, 1, 6, 7, 39, 40, 41, -1, -7, -40, 123456])]
    for x, n in calls:
        assert compiled(x, n) == plain.add(x, n)
    columns = compiled.loop([x for x, _ in calls], [n for _, n in calls])
    assert list(zip(*columns)) == [plain.add(x, n) for x, n in calls]
    assert vars(plain) == vars(other)
    assert compiled.stats.traces <= 2


def test_07_ranges_of_remainders_and_quotients() -> None:
    """Of every int by a constant, but not of what a division by zero may have made, which is no int then."""
    recorder, known, unknown = _recorder()
    four, below, zero = recorder.constant(4.0), recorder.constant(-3.0), recorder.constant(0.0)
    moved = _apply(recorder, ops.ADD, unknown, 2.0)
    for operand in (known, unknown, moved, _apply(recorder, ops.MULTIPLY, moved, moved)):
        assert range_of_remainder(recorder, operand, four) == range(4)
        assert range_of_remainder(recorder, operand, below) == range(-2, 1)
    divided = _apply(recorder, ops.DIVIDE, known, unknown)
    for operand, by in (
        (divided, four),
        (_apply(recorder, ops.ADD, divided, 1.0), four),
        (known, zero),
        (known, known),
    ):
        assert range_of_remainder(recorder, operand, by) is None
    assert range_of_quotient(recorder, known, four) == range(2)
    assert range_of_quotient(recorder, known, below) == range(-2, 0)
    assert range_of_quotient(recorder, unknown, four) is range_of_quotient(recorder, known, zero) is None


def test_08_a_remainder_that_is_no_index_is_refused() -> None:
    """Where it may be larger than the table, or a division by zero may have made it."""
    local = TABLE[:5]
    with pytest.raises(TraceError, match="the index is an int from 0 to 5, and the table has 5 elements"):
        mgjit.freeze(lambda n: local[n % 6], 1)
    with pytest.raises(TraceError, match="computed in another way"):
        mgjit.freeze(lambda n: local[(6 // n) % 5], 1)
