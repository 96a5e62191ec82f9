"""Limits of ints: what is computed from ints within the limit is exact, and the limit is not needlessly small."""

from __future__ import annotations

from typing import Any, Callable

import pytest

import mgjit
from mgjit.errors import BackendWarning
from mgjit.ir import opcodes as ops
from mgjit.tracing.record.integers import EXACT, integer_limit
from mgjit.tracing.record.recorder import Recorder

INPUT = [ops.leaf(ops.INPUT, k) for k in range(3)]


def recorded(*records: tuple[int, int, int]) -> Recorder:
    """Operations on ints; operands from 0 on are results of earlier ones."""
    recorder = Recorder()
    for code, a, b in records:
        recorder.integer_results.append(recorder.emit(code | ops.NUMBER, a, b))
    return recorder


@pytest.mark.parametrize(
    ("records", "bound"),
    [
        ([(ops.ADD, INPUT[0], INPUT[1])], lambda n: 2 * n),
        ([(ops.MULTIPLY, INPUT[0], INPUT[1]), (ops.SUBTRACT, 0, INPUT[2])], lambda n: n * n + n),
        ([(ops.MULTIPLY, INPUT[0], INPUT[0]), (ops.MULTIPLY, 0, 0), (ops.MULTIPLY, 1, 0)], lambda n: n**6),
        ([(ops.NEGATE, INPUT[0], ops.NO_OPERAND), (ops.MAXIMUM, 0, INPUT[1])], lambda n: n),
    ],
)
def test_01_the_largest_limit(records: Any, bound: Callable[[int], int]) -> None:
    """All is exact up to the limit, and not for one that is a little larger."""
    found = integer_limit(recorded(*records), lambda leaf: None)
    assert bound(found.limit) <= EXACT
    assert bound(found.limit + found.limit // 50 + 2) > EXACT or found.limit == EXACT
    assert found.leaves <= set(INPUT)


def test_02_inputs_with_bounds_of_their_own() -> None:
    """Such as bytes need no limit."""
    found = integer_limit(recorded((ops.MULTIPLY, INPUT[0], INPUT[1])), lambda leaf: 255)
    assert (found.limit, found.leaves) == (EXACT, frozenset())


def test_03_growth() -> None:
    """Of an int that is counted is known; one that doubles can grow by as much as it is."""
    for other, growth in ((3, lambda limit: 3), (None, lambda limit: limit)):
        recorder, leaf = Recorder(), ops.leaf(ops.STATE, 0)
        result = recorder.emit(ops.ADD | ops.NUMBER, leaf, leaf if other is None else recorder.constant(other))
        recorder.integer_results.append(result)
        recorder.store(leaf, result)
        found = integer_limit(recorder, lambda leaf: None)
        assert found.growth == growth(found.limit)


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_04_calls_beyond_the_limit(backend: Any) -> None:
    """Are plain Python, also rows of a loop and quick calls; the others are not."""

    def step(a: int, b: int) -> Any:
        return a * b + 1, (a - b) * 0.5

    compiled = mgjit.compile(step, backend=backend)
    for _ in range(20):
        assert compiled(10**6, 7) == step(10**6, 7)
    with pytest.warns(BackendWarning, match="ints above 2\\*\\*53 may be computed"):
        assert compiled(10**9, 10**9 + 7) == step(10**9, 10**9 + 7)
    assert compiled(3, 4) == step(3, 4)
    assert (compiled.stats.calls, compiled.stats.plain_calls, compiled.stats.traces) == (21, 1, 1)
    column = compiled.loop([1, 10**9, 2], [3, 10**9 + 7, 4])[0]
    assert list(column) == [float(step(a, b)[0]) for a, b in ((1, 3), (10**9, 10**9 + 7), (2, 4))]
    assert compiled.stats.plain_calls == 2


class Fibonacci:
    """Two ints that grow."""

    def __init__(self) -> None:
        self.a, self.b = 0, 1

    def step(self, x: float) -> float:
        self.a, self.b = self.b, self.a + self.b
        return self.a * x


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
@pytest.mark.parametrize("loop", [True, False])
def test_05_state_that_grows_beyond_the_limit(loop: bool) -> None:
    """Exact at all times."""
    mine, plain = Fibonacci(), Fibonacci()
    compiled = mgjit.compile(mine.step)
    if loop:
        assert list(compiled.loop([0.5] * 120)) == [plain.step(0.5) for _ in range(120)]
    else:
        for _ in range(120):
            assert compiled(0.5) == plain.step(0.5)
            assert (mine.a, mine.b) == (plain.a, plain.b)
    assert (mine.a, mine.b) == (plain.a, plain.b)
    assert compiled.stats.calls > 60
