"""What a call costs besides the numbers: guards of what a step captures, and numbers that are copied around it.

    python -m pytest bench/test_overhead.py --benchmark-only --benchmark-columns=min,median

The steps compute next to nothing.  `extra_info` of the JSON report (`--benchmark-json`) has how many captured things or
copied numbers a call has; the difference from the step without any, divided by that, is what one of them costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(max_time=0.3, min_rounds=20, warmup=True)]

WARM = 10  # calls, after which a step has its own path


class Settings:
    """Holds attributes."""


def numbers(count: int) -> dict[str, Any]:
    """Global floats."""
    return {f"name{k}": 0.5 + k for k in range(count)}


def functions(count: int) -> dict[str, Any]:
    """Global functions."""
    return {f"name{k}": lambda x: x for k in range(count)}


def lists(count: int) -> dict[str, Any]:
    """Global lists of ten floats."""
    return {f"name{k}": [0.5 + k + j for j in range(10)] for k in range(count)}


def labels(count: int) -> dict[str, Any]:
    """Global lists of ten whole numbers."""
    return {f"name{k}": [1.0, -1.0] * 5 for k in range(count)}


def typical(count: int) -> dict[str, Any]:
    """Functions, numbers and lists: `count` names and half as many lists."""
    half = count // 2
    shifted = {f"list{k}": content for k, content in enumerate(lists(half).values())}
    return {**functions(half), **{f"other{k}": number for k, number in enumerate(numbers(half).values())}, **shifted}


def attributes(count: int) -> dict[str, Any]:
    """Attributes of one object."""
    settings = Settings()
    vars(settings).update(numbers(count))
    return {"settings": settings}


def step_that_names(captured: dict[str, Any]) -> Callable[[float], Any]:
    """A step whose code names all of it."""
    names = list(captured)
    if "settings" in captured:
        names = [f"settings.{name}" for name in vars(captured["settings"])]
    body = "".join(f"    {name}\n" for name in names)
    namespace = {"__name__": __name__, **captured}
    exec(f"def step(x):\n{body}    return x * 2.0\n", namespace)  # noqa: S102 - the names are the parameter
    return namespace["step"]  # type: ignore[no-any-return]


def timed(benchmark: Any, step: Callable[..., Any], *arguments: Any) -> None:
    """A hundred calls a round: one is too short for the clock."""
    for _ in range(WARM):
        step(*arguments)

    def calls() -> None:
        for _ in range(100):
            step(*arguments)

    benchmark(calls)


@pytest.mark.parametrize("count", [0, 10, 20, 100, 1000])
@pytest.mark.parametrize("captured", [numbers, functions, attributes, lists, labels, typical])
def test_guards(benchmark: Any, captured: Callable[[int], dict[str, Any]], count: int) -> None:
    """A step that captures so many things."""
    benchmark.group = captured.__name__
    benchmark.extra_info["captured"] = count
    step = mgjit.compile(step_that_names(captured(count)), background=False)
    timed(benchmark, step, 1.0)
    assert step.stats.traces == 1


@pytest.mark.parametrize("count", [1, 10, 100, 1000, 10_000])
@pytest.mark.parametrize("changed", [True, False])
def test_lists(benchmark: Any, count: int, changed: bool) -> None:
    """Steps whose state is one list of so many numbers, all of which change, or none."""
    benchmark.group = "lists, changed" if changed else "lists, assigned what they were"
    benchmark.extra_info["copied"] = count
    moments = [0.5 + k for k in range(count)]

    def step(x: float) -> Any:
        for k in range(len(moments)):
            moments[k] = moments[k] * x
        return x * 2.0

    timed(benchmark, mgjit.compile(step, background=False), -1.0 if changed else 1.0)


@pytest.mark.parametrize("count", [1, 10, 100])
def test_fields(benchmark: Any, count: int) -> None:
    """A step whose state is so many attributes of one object."""
    benchmark.group = "attributes, changed"
    benchmark.extra_info["copied"] = count
    settings = Settings()
    vars(settings).update(numbers(count))
    body = "".join(f"    settings.name{k} = settings.name{k} * x\n" for k in range(count))
    namespace: dict[str, Any] = {"__name__": __name__, "settings": settings}
    exec(f"def step(x):\n{body}    return x * 2.0\n", namespace)  # noqa: S102 - the names are the parameter
    timed(benchmark, mgjit.compile(namespace["step"], background=False), -1.0)
