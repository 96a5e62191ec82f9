"""Plain calls that do not look: as if each had."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import PlainCall, is_traced
from mgjit.engine.progress import NO_THREAD, tracing_threads
from mgjit.runtime.turn import Turn
from mgjit.step.between import LOOK, Path, looks_like


class Weight:
    def __init__(self, data: float) -> None:
        self.data = data


class World:
    """Weights, a constant, and a step that is plain Python for some of its arguments."""

    def __init__(self) -> None:
        self.weights = [Weight(0.25 * k - 0.5) for k in range(4)]
        self.scale = 0.5
        self.inner_calls = 0

    def train(self, x: Any, kind: Any) -> Any:
        if kind == "plain" and is_traced(x):
            raise PlainCall("it is a test")
        error = sum(w.data * x for w in self.weights) * self.scale - 0.25
        for w in self.weights:
            w.data -= 0.01 * error * x
        return error

    def numbers(self) -> list[float]:
        return [w.data for w in self.weights]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled
@pytest.mark.parametrize("background", ["0", "1"])
@pytest.mark.parametrize("seed", range(6))
def test_calls_of_all_kinds_in_random_order(seed: int, background: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, waiting, plain, by keyword, in a loop; with changes of weights and constants in between."""
    monkeypatch.setenv("MGJIT_BACKGROUND", background)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 1e-4)
    random_, mine, other = random.Random(seed), World(), World()
    step: Any = mgjit.compile(mine.train)
    evaluate: Any = mgjit.compile(lambda x: sum(w.data * x for w in mine.weights))
    for _ in range(40):
        what, x, times = random_.randrange(8), random_.uniform(-1.0, 1.0), random_.choice((1, 2, 30))
        kind = random_.choice(("a", "plain", "b", True))
        for k in range(times):
            if what < 4:
                assert step(x + k, kind) == other.train(x + k, kind)
            elif what == 4:
                assert step(x + k, kind=kind) == other.train(x + k, kind)
            elif what == 5:
                assert evaluate(x + k) == sum(w.data * (x + k) for w in other.weights)
        if what == 5:
            assert step.loop([x, -x], kind).tolist() == [other.train(x, kind), other.train(-x, kind)]
        elif what == 6:
            mine.scale = other.scale = random_.uniform(-1.0, 1.0)
        elif what == 7:
            place = random_.randrange(4)
            if random_.random() < 0.5:
                mine.weights[place].data = other.weights[place].data = x
            else:
                mine.weights[place], other.weights[place] = Weight(x), Weight(x)
            step.wait()
        assert mine.numbers() == other.numbers()


def test_a_constant_that_a_plain_call_changes_is_noticed_by_the_next_compiled_one() -> None:
    state = Weight(1.0)
    state.table = {"rate": 0.5}  # type: ignore[attr-defined]

    def function(x: Any, kind: Any) -> Any:
        if kind == "plain":
            if is_traced(x):
                raise PlainCall("it is a test")
            state.table["rate"] *= 2.0  # type: ignore[attr-defined]
            return 0.0
        state.data = state.data * 0.5 + state.table["rate"] * x  # type: ignore[attr-defined]
        return state.data

    step: Any = mgjit.compile(function)
    expected, rate = 1.0, 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(300):
            if k % 3 < 2:
                expected = expected * 0.5 + rate * 0.25
                assert step(0.25, "compiled") == expected
            else:
                step(0.25, "plain")
                rate = state.table["rate"] = rate if k % 2 else 1.0 + k  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
def test_counts_are_exact_until_the_step_is_given_up() -> None:
    def function(x: Any) -> Any:
        if is_traced(x):
            raise PlainCall("it is a test")
        return x

    step: Any = mgjit.compile(function)
    for k in range(512):
        assert step(1.0) == 1.0
        assert step.stats.plain_calls == k + 1
    step(1.0)
    assert step.__call__ is function
    assert step.stats.last.reason == "it is a test"
    step.clear()
    assert step.__call__ is not function


@pytest.mark.filterwarnings("ignore")
def test_a_step_that_is_given_up_may_be_called_in_others() -> None:
    """As a part of their traces, and of their plain calls."""
    weight = mgjit.Value(0.5)

    def inner(x: Any) -> Any:
        if tracing_threads and is_traced(x) and len(names) < 600:
            names.append("traced")
            raise PlainCall("it is a test")
        names.append("")
        return weight * x

    names: list[str] = []
    step: Any = mgjit.compile(inner)
    for _ in range(700):
        step(2.0)

    @mgjit.compile
    def outer(x: Any) -> Any:
        loss = step(x) * 2.0
        loss.backward()
        weight.data -= 0.0
        return loss.data

    weight.grad = 0.0
    assert outer(3.0) == 3.0
    assert outer(3.0) == 3.0
    assert weight.grad == 12.0


@pytest.mark.filterwarnings("ignore")
def test_what_raises_is_raised_and_leaves_nothing_behind() -> None:
    def function(x: Any) -> Any:
        if is_traced(x):
            raise PlainCall("it is a test")
        return 1.0 / x

    step, other = mgjit.compile(function), mgjit.compile(lambda x: 2.0 * x)
    for k in range(100):
        if k % 7 == 3:
            with pytest.raises(ZeroDivisionError):
                step(0.0)
        else:
            step(1.0)
        assert not {thread for thread in tracing_threads if thread != NO_THREAD}
    assert other(2.0) == 4.0


@pytest.mark.filterwarnings("ignore")
def test_threads_take_turns() -> None:
    """So that no addition is lost, while the step is not given up."""
    total = Weight(0.0)

    def function(x: Any) -> Any:
        if is_traced(x):
            raise PlainCall("it is a test")
        before = total.data
        for _ in range(20):
            pass
        total.data = before + x

    step: Any = mgjit.compile(function)
    for _ in range(100):
        step(1.0)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: [step(1.0) for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert total.data == 500.0
    assert step.stats.plain_calls == 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_fork_while_another_thread_makes_a_plain_call() -> None:
    """In the child, no thread is in a plain call, and the gate is open."""
    begun, end = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        end.wait()

    other, turn = mgjit.compile(lambda x: x), Turn()
    path = Path(wait, other, other, 9, 0, turn, None, other._options.precision)
    thread = threading.Thread(target=path.call)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        os._exit(turn.gate[0] + len(tracing_threads))
    assert (turn.gate[0], len(tracing_threads)) == (1, 1)
    assert os.waitpid(child, 0)[1] == 0
    end.set()
    thread.join()
    assert (turn.gate[0], len(tracing_threads), path.done()) == (0, 0, 1)


def made(looks: Any, calls: int) -> Path:
    kernels: Any = Weight(0.0)
    general, in_turn = (lambda *args, **kwargs: LOOK), (lambda args, kwargs: "in turn")
    plain = lambda *args, **kwargs: "plain"  # noqa: E731
    return Path(plain, general, in_turn, calls, 1, Turn(), looks, None, kernels, ("", False), int)


@pytest.mark.usefixtures("only_thread")
def test_a_path_takes_so_many_calls() -> None:
    path = made(None, 3)
    assert [path.call(1, a=2), path.slowly((), {}), path.call(), path.call(), path.slowly((), {})] == [
        "plain", "in turn", "plain", LOOK, LOOK,
    ]  # fmt: skip
    assert path.done() == 3


@pytest.mark.usefixtures("only_thread")
@pytest.mark.parametrize("arguments", [(), (1.0,), (1.0, "a"), ([1.0, 2.0], True), ([[1.0], [2.0]], None, b"ab")])
def test_a_path_takes_arguments_that_look_alike(arguments: Any) -> None:
    others: list[tuple[Any, ...]] = [
        (), (1,), (2.0,), (1.0, "b"), (1.0, "a"), ([1.0], True), ([3.0, 2.0], False), ([3.0, 2.0], True), (True, "a"),
        ([[1.0, 2.0], [2.0]], None, b"ab"), ([[3.0], [4.0]], None, b"xy"), ([[3.0], [4.0]], None, b"x"), ([[]], None),
    ]  # fmt: skip
    path = made(looks_like(arguments, {}), 1000)
    for other in others:
        is_alike = looks_like(other, {}) == looks_like(arguments, {}) and list(map(type, other)) == list(
            map(type, arguments)
        )
        assert (path.call(*other) == "plain") is is_alike
    assert path.call(*arguments, more=1) is LOOK
