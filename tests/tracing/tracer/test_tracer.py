"""Tracing one call: what surrounds it."""

from __future__ import annotations

import gc
import random
import threading
import warnings
import weakref
from types import FunctionType
from typing import Any

import pytest

import mgjit
from mgjit.engine.progress import is_tracing
from mgjit.errors import RandomnessError
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call
from tests.lowering import Example


@pytest.mark.parametrize("enabled", [True, False])
def test_01_the_garbage_collector(enabled: bool) -> None:
    """Is off while tracing and afterwards as it was, also after an exception."""
    seen: list[bool] = []
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        Example(lambda x: seen.append(gc.isenabled()), 1.0)
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError):
            Example(lambda x: 1 // 0, 1.0)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False]


def test_02_is_tracing() -> None:
    """In the tracing thread only."""
    seen: list[bool] = []

    def step(x: Any) -> None:
        thread = threading.Thread(target=lambda: seen.append(is_tracing()))
        thread.start()
        thread.join()
        seen.append(is_tracing())

    Example(step, 1.0)
    assert seen == [False, True]
    assert not is_tracing()


def test_03_random_numbers() -> None:
    """What a step draws is noted, and nothing is drawn; a step that seeds the generator is refused."""
    state = random.getstate()
    plan = plan_arguments(["x"], (1.5,), frozenset())
    assert trace_call(lambda given: given[0] * random.random(), plan, None).draws.size == 1
    with pytest.raises(RandomnessError):
        Example(lambda x: (x, random.seed(4))[0], 1.0)
    assert random.getstate() == state


def test_04_a_trace_has_no_numbers() -> None:
    """Two models and inputs of other values, equal traces."""

    def columns(seed: int, x: float) -> Any:
        model = mgjit.nn.MLP(2, [3, 1], seed=seed)

        def step(xs: Any) -> Any:
            loss = model(xs) ** 2
            loss.backward()
            return loss

        trace = Example(step, [x, 2.0 * x]).trace
        return trace.op, trace.a, trace.b, trace.c, trace.constants

    assert columns(1, 0.5) == columns(2, -7.0)


def test_05_traces_of_two_threads() -> None:
    """One after the other; neither sees the other's records."""
    lengths: dict[int, int] = {}

    def work(count: int) -> None:
        w = mgjit.Value(1.0)
        lengths[count] = len(Example(lambda x: [w * x for _ in range(count)], 1.0).trace)

    threads = [threading.Thread(target=work, args=(count,)) for count in (100, 200, 300, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == {count: 2 * count for count in (100, 200, 300, 400)}


class Stop(Exception):
    """An exception of the user's."""


@pytest.mark.parametrize("background", [False, True])
def test_06_an_exception_with_numbers_of_the_step(background: bool) -> None:
    """Has the numbers that plain Python would have, never traced ones, and so has everything that it follows from."""
    count = 0

    def plain(x: float) -> float:
        nonlocal count
        count += 1
        if limits[0] < 0.0:
            raise Stop("too low", x * 2.0, count)
        return x * count

    limits = [-1.0]
    step = mgjit.compile(background=background, backend="python")(plain)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for limits[0] in (-1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0):
            try:
                found.append(step(1.5))
            except Stop as error:
                found.append(error.args)
    assert found == [("too low", 3.0, 1), 3.0, 4.5, 6.0, ("too low", 3.0, 5), ("too low", 3.0, 6), 10.5]


def test_07_a_trace_keeps_nothing_that_the_step_does_not_use() -> None:
    """Such as the graph of an earlier plain call, in a variable of the module: while it is traced, these are copied."""
    total = [0.0]

    def step(x: float) -> float:
        total[0] += x
        return total[0] * 2.0

    variables: dict[str, Any] = {"__name__": "script", "graph": lambda: None}
    moved = FunctionType(step.__code__, variables, closure=step.__closure__)
    maker = mgjit.compile(moved, background=False)._kernels.maker  # type: ignore[attr-defined]
    kept = weakref.ref(variables["graph"])
    prepared = maker.prepared(maker.plan((1.0,)), "", True)
    del variables["graph"]
    gc.collect()
    assert prepared.traced.trace.states
    assert kept() is None
