"""Threads and forks: one step in many threads, many steps over one model, steps without a lock."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.engine.leaks import PlainCall
from tests.base.test_interruption import FORKS, in_child


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(number)` in so many threads that start at once."""
    start, results, errors = threading.Barrier(count), {}, []

    def run(number: int) -> None:
        try:
            start.wait()
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return [results[number] for number in range(count)]


def test_01_different_structures_at_once() -> None:
    """Each is traced once."""
    w = Value(2.0)
    step = mgjit.compile(lambda xs: sum(w * x for x in xs))
    results = together(6, lambda number: [float(step([1.0] * (1 + number % 2))) for _ in range(30)])
    assert results == [[2.0] * 30, [4.0] * 30] * 3
    assert (step.stats.traces, step.stats.calls) == (2, 180)


def test_01_plain_calls_take_turns_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait for code, or have none: otherwise two threads would assign the same numbers at once."""
    inside, most = [], [0]

    def work(x: float) -> float:
        inside.append(x)
        most[0] = max(most[0], len(inside))
        time.sleep(0.001)
        inside.pop()
        return x

    def fitting(*_: Any, **__: Any) -> Any:
        raise PlainCall("it is so here")

    step = mgjit.compile(work)
    monkeypatch.setattr(step._kernels, "fitting", fitting)
    assert together(3, lambda number: [step(float(number)) for _ in range(3)]) == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert (most, step.stats.plain_calls) == ([1], 9)


def test_02_many_steps_over_one_model() -> None:
    """First calls of different steps at once: all of them work on the same parameters afterwards."""
    for _ in range(10):
        weights = [Value(0.5 * k) for k in range(6)]
        steps = [mgjit.compile(lambda x, k=k, ws=weights: sum(w * (x + k) for w in ws), static="k") for k in range(4)]
        together(4, lambda number, steps=steps: steps[number](1.0))
        for w in weights:
            w.data = 1.0
        assert [float(step(1.0)) for step in steps] == [6.0 * (1.0 + k) for k in range(4)]


def test_03_one_instance_in_many_threads() -> None:
    """A method has one step an instance, whoever asks for it first."""

    class Model:
        def __init__(self) -> None:
            self.w = Value(3.0)

        @mgjit.compile
        def step(self, x: Any) -> Any:
            """A product."""
            return self.w * x

    model = Model()
    steps = together(8, lambda number: (model.step(float(number)), model.step)[1])
    assert len(set(map(id, steps))) == 1
    assert model.step.stats.traces == 1


def test_04_without_a_lock() -> None:
    """Every thread has its own inputs and results; parameters are the same for all."""
    weights = [Value(0.1 * k) for k in range(50)]

    def score(xs: Any, scale: Value) -> Any:
        return [sum(w * x for w, x in zip(weights, xs)) * scale, xs[0]]

    step = mgjit.compile(lock=False)(score)
    inputs = [[float(number + k) for k in range(50)] for number in range(6)]
    scales = [[Value(1.0 + number), Value(2.0 + number)] for number in range(6)]

    def work(number: int) -> list[Any]:
        found = [step(inputs[number], scales[number][k % 2]) for k in range(60)]
        assert step.stats.calls == 60
        return found

    for number, results in enumerate(together(6, work)):
        for k, result in enumerate(results):
            assert result == [
                x.data if isinstance(x, Value) else x for x in score(inputs[number], scales[number][k % 2])
            ]
    weights[1].data = 7.0
    assert step(inputs[0], scales[0][0])[0] == score(inputs[0], scales[0][0])[0].data  # type: ignore[index]


def test_05_without_a_lock_everything_else_is_the_same() -> None:
    """Phases, loops, methods, `clear`, nested steps."""
    w = Value(0.5)

    def plain(x: Any) -> Any:
        w.grad = 0.0
        loss = (w * x - 1.0) ** 2
        loss.backward()
        w.data = w.data - 0.1 * w.grad
        return loss

    step, locked = mgjit.compile(lock=False)(plain), mgjit.compile(plain)
    for call in (
        lambda s: s(2.0),
        lambda s: list(s.loop([1.0, 2.0, 3.0])),
        lambda s: (s.forward(2.0), s.backward(), s.update()),
        lambda s: s.clear(),
        lambda s: s(2.0),
        lambda s: s.lower(2.0).graph,
        lambda s: mgjit.compile(lambda x: s(x) + 1.0)(2.0),
    ):
        before = w.data
        first = call(step)
        after, w.data = w.data, before
        assert repr(call(locked)) == repr(first)
        assert w.data == after

    class Model:
        def __init__(self, weight: float) -> None:
            self.w = Value(weight)

        @mgjit.compile(lock=False)
        def score(self, x: Any) -> Any:
            """A product."""
            return self.w * x

    models = [Model(2.0), Model(3.0)]
    assert together(2, lambda number: [float(models[k].score(4.0)) for k in (0, 1)]) == [[8.0, 12.0]] * 2
    assert "without a lock" in repr(step)


@FORKS
def test_06_fork_while_another_thread_has_the_turn() -> None:
    """The child calls the step, traces another one, collects garbage, draws numbers and computes undecorated."""
    import gc
    import random

    w = Value(2.0)
    inside, over = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        inside.set()
        over.wait(60)
        return w * x

    step = mgjit.compile(slow)
    thread = threading.Thread(target=step, args=(3.0,))
    thread.start()
    assert inside.wait(30)

    def in_the_child() -> bool:
        over.set()
        results = [float(step(x)) for x in (3.0, 4.0)] + [float(mgjit.compile(lambda x: w * x)(5.0))]
        y = w * 3.0
        y.backward()
        random.Random().random()
        return results == [6.0, 8.0, 10.0] and gc.isenabled() and (y.data, w.grad) == (6.0, 3.0)

    code = in_child(in_the_child)
    over.set()
    thread.join()
    assert code == 0
    assert step(4.0) == 8.0


@FORKS
def test_07_fork_while_another_thread_is_in_c() -> None:
    """During a long loop: the child does not wait for it, and both go on."""
    w = Value(1.0)
    step = mgjit.compile(lambda x: (w * x).tanh())
    step(1.0)
    stop: list[bool] = []

    def work() -> None:
        while not stop:
            step.loop([0.5] * 20_000)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    codes = [in_child(lambda: step(0.0) == 0.0 and len(step.loop([0.0, 0.0])) == 2) for _ in range(5)]
    stop.append(True)
    thread.join()
    assert codes == [0] * 5
    assert step(0.0) == 0.0


def test_08_the_engine_beside_traces() -> None:
    """A thread that computes undecorated never sees a trace begin or end in between."""
    stop: list[bool] = []

    def compute() -> int:
        a, count = Value(3.0), 0
        while not stop:
            y = (a * 2.0 - 1.0).relu() + a.data
            assert y.data == 8.0
            count += 1
        return count

    def trace() -> None:
        try:
            for k in range(30):
                w = Value(float(k))
                assert mgjit.compile(backend="python")(lambda x, w=w: w * x)(2.0, w) == 2.0 * k
        finally:
            stop.append(True)

    together(2, lambda number: (compute, trace)[number]())
