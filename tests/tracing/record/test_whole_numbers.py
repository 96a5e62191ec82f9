"""Whole numbers of tensors in a step: bounded, or left to plain Python, which raises the error of eager operations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.errors import BackendWarning
from mgjit.ir.bodies import ELEMENTWISE, REDUCTIONS
from mgjit.tracing.record.whole_numbers import UNKNOWN, bound_of, largest_of


def outcome(step: Callable[..., Any], call: Sequence[Any]) -> Any:
    """The numbers that a call returns, or the name of its error."""
    try:
        return [part.tolist() if isinstance(part, T.Tensor) else part for part in (step(*call),)]
    except Exception as error:
        return type(error).__name__


def compared(step: Callable[..., Any], *calls: Sequence[Any], **options: Any) -> Any:
    """Calls, compiled and not, end alike; returns the compiled step."""
    compiled: Any = mgjit.compile(background=False, **options)(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BackendWarning)
        assert [outcome(compiled, call) for call in calls] == [outcome(step, call) for call in calls]
    return compiled


def whole(*numbers: int) -> Any:
    """A tensor of them."""
    return T.asarray(list(numbers))


BIG = 2**52 + 3


@pytest.mark.parametrize(
    ("step", "large"),
    [
        (lambda a: (a + a) - a, whole(BIG, 3)),
        (lambda a: a.sum() * 2.0, whole(BIG, BIG)),
        (lambda a: T.prod(a) * 2.0, whole(2**27, 2**27)),
        (lambda a: (a @ a) * 2.0, whole(2**30, 2**26)),
        (lambda a: a.sum().item() * 3.0 + (a * a).sum().item() * 1.0, whole(2**27, 1)),
        (lambda a: T.max(a) + 1, whole(2**53 - 1, 1)),
        (lambda a: a[::-1].copy() + T.arange(2), whole(2**53 - 1, 2**53 - 1)),
        (lambda a: a * T.asarray(3), whole(BIG, -BIG)),
    ],
)
def test_01_a_number_in_the_middle_of_a_step(step: Any, large: Any) -> None:
    """Calls with small numbers before and after are compiled."""
    compiled = compared(step, (whole(1, 2),), (large,), (whole(-5, 2),), (large,), (whole(7, 1),))
    assert compiled.stats.plain_calls == 2
    assert compiled.stats.traces == 1


def test_02_state_is_as_plain_python_leaves_it() -> None:
    """The error is raised where the operation is: what comes later has not been assigned."""

    def run(wrap: Callable[[Any], Any]) -> Any:
        state = T.zeros(2)

        def step(x: Any, n: Any) -> Any:
            total = (n * n).sum()
            state[...] = state + x
            return total

        call = wrap(step)
        numbers = whole(1, 2), whole(3, 4), whole(2**30, 1), whole(5, 6)
        return [outcome(call, (T.ones(2), n)) for n in numbers], state.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BackendWarning)
        assert run(mgjit.compile(background=False)) == run(lambda step: step)


def test_03_indices_and_counts_are_known_to_be_small() -> None:
    """A step of a classifier is compiled whatever the labels, without a look at them that is not needed anyway."""
    w = T.randn((4, 3), requires_grad=True)

    def step(x: Any, labels: Any) -> Any:
        scores = x @ w
        loss = mgjit.nn.functional.cross_entropy(scores, labels)
        return loss + (scores.argmax(axis=1) == labels).sum() * 1.0 + (labels + 1).sum() * 1.0

    x = T.ones((2, 4))
    compiled = compared(step, (x, whole(1, 2)), (x, whole(0, 2)), (x, whole(0, 7)))
    assert [node.limit for node in compiled._kernels.all()[0].plan.buffers] == [2**53, 2**53]


def test_04_a_float32_step() -> None:
    """Its kernel computes with floats that hold whole numbers up to 2**24 only."""
    large = 2**24 + 1
    calls = (whole(1, 2),), (whole(large, 3),), (whole(3, 4),)
    compiled = compared(lambda a: (a + 1).astype("float32") * 1.0, *calls, dtype="float32")
    assert compiled.stats.plain_calls == 1
    compared(lambda a: a == large, *calls, dtype="float32")
    compared(lambda a: a + 1 - a, *calls, dtype="float32")
    compared(lambda a: a[::-1], *calls, dtype="float32")


def test_05_floats_that_become_whole_numbers() -> None:
    """Nobody knows how large they are: plain Python, with the reason; but not of what says yes or no."""
    x = T.asarray([1.5, 2.0])
    compiled = compared(lambda x: x.astype("int64") * 2, (x,), (x * 1e300,), (x,))
    assert "astype may give whole numbers that are not exact" in str(compiled.stats.plain_reasons)
    known = compared(lambda x: (x > 1.7).astype("float64").astype("int64").sum(), (x,), (x * 1e300,))
    assert known.stats.plain_calls == 0


def test_06_generated_calls_and_rows() -> None:
    """They look at the limit, too."""
    step = compared(lambda a: a * a, *[(whole(k, 2),) for k in range(40)], (whole(2**30, 1),))
    rows = [whole(1, 2), whole(2, 3), whole(4, -5)]
    assert step.loop(rows).tolist() == [[1, 4], [4, 9], [16, 25]]
    with pytest.raises(OverflowError):
        step.loop([*rows, whole(2**30, 1)])


def test_07_bounds() -> None:
    """Of what a body computes."""
    assert bound_of(ELEMENTWISE["add"], 1, [3, 4]) == 7
    assert bound_of(ELEMENTWISE["multiply"], 1, [3, 4]) == 12
    assert bound_of(ELEMENTWISE["where"], 1, [UNKNOWN, 3, 4]) == 4
    assert bound_of(ELEMENTWISE["less"], 1, [UNKNOWN, 4]) == 1
    assert bound_of(ELEMENTWISE["divide"], 1, [3, 4]) == UNKNOWN
    assert bound_of(REDUCTIONS["sum"], 10**9, [3]) == 3 * 10**9
    assert bound_of(REDUCTIONS["dot"], 10, [3, 4]) == 120
    assert bound_of(REDUCTIONS["prod"], 3, [5]) == 125
    assert bound_of(REDUCTIONS["max"], 10**6, [5]) == 5
    assert bound_of(REDUCTIONS["max"], 0, [5]) == UNKNOWN
    assert bound_of(REDUCTIONS["any"], 9, [UNKNOWN]) == 1
    assert bound_of(REDUCTIONS["argmax"], 9, [UNKNOWN]) == 9
    assert bound_of(REDUCTIONS["sum"], 2, [UNKNOWN]) == UNKNOWN
    assert [largest_of([1.5, -3.0]), largest_of([]), largest_of([math.inf])] == [3, 0, UNKNOWN]


def test_08_arrays_in_quick_calls() -> None:
    """The ints of an array have a limit in every kind of call."""
    from array import array

    small, large = array("q", [3, 4]), array("q", [2**40, 2**40])
    compared(lambda a: a[0] * a[1] * 1.0, *[(small,)] * 300, (large,), (small,), (large,))
