"""Causes for which a step would be traced again at nearly every call."""

from __future__ import annotations

import collections
import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import PlainCall
from mgjit.errors import PlainWarning
from mgjit.kernels.first_calls.causes import _MOST, Causes, cause_of
from mgjit.tensor.memory import Memory


@pytest.fixture(autouse=True)
def no_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are any, a plain step is a function around its own, which refuses those of another precision."""
    monkeypatch.setattr(Memory, "exists", False)


class Weight:
    def __init__(self, data: float) -> None:
        self.data = data


#: Of a program: what makes the step, the arguments of call i, and what the program does after it.
Parts = tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]], Callable[[int], Any]]


def counter() -> Parts:
    w = [0.1, 0.2]

    def step(counts: Any, x: float) -> float:
        error = counts["a"] * w[0] + x
        w[0] -= 0.01 * error
        return error

    return step, lambda i: (collections.Counter({"a": i, "b": 1}), 0.5), lambda i: None


def context_variable() -> Parts:
    w, rate = [0.1], contextvars.ContextVar("rate", default=0.1)

    def step(x: float) -> float:
        w[0] -= rate.get() * x
        return w[0]

    return step, lambda i: (0.5,), lambda i: rate.set(0.1 / (i + 1))


def history() -> Parts:
    w: list[float] = [0.1]
    losses: list[float] = []

    def step(x: float) -> float:
        w[0] -= 0.01 * x * len(losses)
        return w[0]

    return step, lambda i: (0.5,), lambda i: losses.append(0.5 * i)


def rotated() -> Parts:
    w, rates = [0.1], collections.deque([0.1, 0.2, 0.3])

    def step(x: float) -> float:
        w[0] -= rates[0] * x
        return w[0]

    return step, lambda i: (0.5,), lambda i: rates.rotate(1)


def replaced() -> Parts:
    weights = [Weight(0.1 * k) for k in range(4)]

    def step(x: float) -> float:
        total = sum([w.data * x for w in weights])
        for w in weights:
            w.data -= 0.01 * total
        return total

    return step, lambda i: (0.5,), lambda i: weights.__setitem__(i % 4, Weight(0.3 + 0.1 * i))


def sorted_by_number() -> Parts:
    weights = [Weight(0.1 * k) for k in range(4)]

    def step(x: float) -> float:
        total = 0.0
        for k, w in enumerate(weights):
            total = total + k * w.data * x
        for w in weights:
            w.data = 0.3 - w.data * 0.7
        return total

    return step, lambda i: (0.5,), lambda i: weights.sort(key=lambda w: w.data)


def texts() -> Parts:
    w = [0.1]

    def step(name: str, x: float) -> float:
        w[0] -= 0.01 * x * len(name)
        return w[0]

    return step, lambda i: (f"line {i * i}", 0.5), lambda i: None


def keys() -> Parts:
    w = [0.1]

    def step(features: Any) -> float:
        for value in features.values():
            w[0] -= 0.01 * value
        return w[0]

    return step, lambda i: ({f"word {i}": 1.0},), lambda i: None


PROGRAMS = [counter, context_variable, history, rotated, replaced, sorted_by_number, texts, keys]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("make", PROGRAMS)
def test_01_few_traces_and_one_sentence(
    make: Callable[[], Parts], background: bool, recwarn: pytest.WarningsRecorder
) -> None:
    def played(decorate: Callable[[Any], Any]) -> tuple[list[Any], Any]:
        step, arguments, then = make()
        call, results = decorate(step), []
        for i in range(100):
            results.append(call(*arguments(i)))
            then(i)
        return results, call

    expected, _ = played(lambda step: step)
    got, step = played(lambda step: mgjit.compile(step, background=background))
    assert got == expected
    assert step.stats.traces <= 16
    if not background:
        assert step.stats.plain_calls >= 80
        said = [str(one.message) for one in recwarn if one.category is PlainWarning]
        assert len(said) == 1
        assert "nearly each call would be another trace, since " in said[0]
        assert "Pass what changes" in said[0]


def test_02_what_changes_a_few_times_is_traced_anew(recwarn: pytest.WarningsRecorder) -> None:
    """Each kernel makes enough calls to be worth its trace."""
    weights = [Weight(0.1 * k) for k in range(4)]

    def step(x: float) -> float:
        total = sum([w.data * x for w in weights])
        for w in weights:
            w.data -= 0.01 * total
        return total

    compiled = mgjit.compile(step, background=False)
    for _ in range(5):
        for _ in range(1001):
            compiled(0.5)
        weights[2] = Weight(0.25)
    assert compiled.stats.plain_calls == 0
    assert compiled.stats.traces == 5
    assert not [one for one in recwarn if one.category is PlainWarning]


def test_03_a_few_texts_take_turns() -> None:
    """Those that come again are compiled in the end."""
    w = [0.5]

    @mgjit.compile(background=False)
    def step(mode: str, x: float) -> float:
        return w[0] * x * len(mode)

    def many() -> None:
        for i in range(1200):
            mode = "m" * (1 + i % 12)
            assert step(mode, 0.5) == 0.5 * 0.5 * len(mode)

    with pytest.warns(PlainWarning, match="since mode was 'm', is 'mm'"):
        many()
    calls, plain = step.stats.calls, step.stats.plain_calls
    for i in range(120):
        step("m" * (1 + i % 12), 0.5)
    assert (step.stats.calls, step.stats.plain_calls) == (calls + 120, plain)


def test_04_the_account_of_a_cause() -> None:
    causes = Causes()
    for _ in range(_MOST):
        causes.require("the captured w was 1, is 2", 3, is_structure=False, may_end=False, is_outdated=False)
    with pytest.raises(PlainCall, match="since the captured w was 1, is 2"):
        causes.require("the captured w was 2, is 3", 5, is_structure=False, may_end=False, is_outdated=False)
    causes.require("the captured w was 3, is 4", 5, is_structure=False, may_end=False, is_outdated=False)
    with pytest.raises(PlainCall):
        causes.require("the captured w was 4, is 5", 900, is_structure=False, may_end=False, is_outdated=False)
    causes.require("the captured v was 1, is 2", 900, is_structure=False, may_end=False, is_outdated=False)
    for _ in range(_MOST):  # after a kernel that was worth it
        causes.require("the captured w was 5, is 6", 1900, is_structure=False, may_end=False, is_outdated=False)


def test_05_the_name_of_a_cause() -> None:
    assert cause_of("x was 'a', is 'b'") == cause_of("x was 'b', is 'c'") == "x"
    assert cause_of("the captured h's length has changed") == "the captured h's length has changed"


def test_06_entries_of_dicts_of_all_kinds_are_memory() -> None:
    """What a kernel writes there itself is no cause."""
    tables: list[dict[str, float]] = [collections.OrderedDict(m=0.0), collections.defaultdict(float, m=0.0)]
    for table in tables:

        def step(x: float, table: dict[str, float] = table) -> float:
            table["m"] = table["m"] * 0.5 + x
            return table["m"]

        compiled = mgjit.compile(step, background=False)
        for _ in range(50):
            compiled(1.0)
        assert compiled.stats.traces <= 2
        assert compiled.stats.plain_calls == 0


def test_07_parameters_are_ordinary_objects_again() -> None:
    """All of them, whichever kernel had moved them, so that plain Python is as quick as before."""
    weights = [Weight(0.1 * k) for k in range(30)]

    @mgjit.compile(background=False)
    def step(x: float) -> float:
        total = sum([w.data * x for w in weights])
        for w in weights:
            w.data -= 0.01 * total
        return total

    for i in range(700):
        step(0.5)
        weights[i % 3] = Weight(0.3)
    assert step.__call__ is step.__wrapped__
    assert all(type(w) is Weight for w in weights)


def test_08_what_changes_before_there_is_a_kernel_is_tried_again_once() -> None:
    """Whatever has changed that time."""
    causes = Causes()
    for k in range(4):
        with contextlib.suppress(PlainCall):
            causes.require(f"the captured w was {k}", 0, is_structure=False, may_end=False, is_outdated=True)
    assert not causes.are_hopeless()
    with pytest.raises(PlainCall):
        causes.require("the captured v was 1", 0, is_structure=False, may_end=True, is_outdated=True)
    assert causes.are_hopeless()
    causes.require("the captured v was 2", 5_000, is_structure=False, may_end=True, is_outdated=True)
    assert not causes.are_hopeless()
