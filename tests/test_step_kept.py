"""Steps that keep what they were given, as hand-written networks do for their backward pass: the object itself."""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType, SimpleNamespace
from typing import Any, Callable

import pytest

import mgjit

Make = Callable[[], tuple[Any, Callable[..., Any]]]


def shown(*roots: Any) -> list[Any]:
    """What can be reached, with types, and with a number for each list, dict and object: equal numbers, one object."""
    numbers: dict[int, int] = {}
    found: list[Any] = []

    def walk(thing: Any) -> None:
        if thing is None or isinstance(thing, (int, float, str)):
            found.append((type(thing), repr(thing)))
            return
        found.append((type(thing), numbers.setdefault(id(thing), len(numbers))))
        if isinstance(thing, CellType):
            parts = [thing.cell_contents]
        elif isinstance(thing, (list, tuple)):
            parts = [*thing]
        else:
            parts = [*(thing if isinstance(thing, dict) else vars(thing)).values()]
        for part in parts:
            walk(part)

    for root in roots:
        walk(root)
    return found


def rows(count: int, width: int) -> list[list[float]]:
    """Other lists at each call of this function."""
    return [[(7 * k + j) % 5 / 4 - 0.5 for j in range(width)] for k in range(count)]


def linear(width: int = 3) -> tuple[Any, Callable[..., Any]]:
    """A layer that keeps its inputs and its outputs."""
    layer = SimpleNamespace(weights=[0.1 * k for k in range(width)], inputs=[0.0] * width, out=[0.0])

    def step(x: Any, target: Any) -> Any:
        layer.inputs = x
        layer.out = [sum(w * a for w, a in zip(layer.weights, layer.inputs))]
        error = layer.out[0] - target
        for k in range(len(layer.weights)):
            layer.weights[k] -= 0.1 * error * layer.inputs[k]
        return error

    return layer, step


def closure() -> tuple[Any, Callable[..., Any]]:
    """A variable of an enclosing function, which the next call reads."""
    weight, last = 0.5, [0.0, 0.0, 0.0]

    def step(x: Any, target: Any) -> Any:
        nonlocal weight, last
        error = weight * x[0] - target + last[1]
        last = x
        weight -= 0.1 * error * x[0]
        return error

    cells = dict(zip(step.__code__.co_freevars, step.__closure__ or ()))
    return cells, step


def in_a_dict() -> tuple[Any, Callable[..., Any]]:
    """An entry of a dict."""
    cache: dict[str, Any] = {"x": [0.0, 0.0, 0.0], "weight": 0.25}

    def step(x: Any, target: Any) -> Any:
        cache["x"] = x
        cache["weight"] -= 0.1 * (cache["weight"] * x[1] - target)
        return x, cache["weight"]

    return cache, step


def given_a_row() -> tuple[Any, Callable[..., Any]]:
    """A part of an argument, which is returned as well."""
    model = SimpleNamespace(weight=0.5, row=[0.0, 0.0, 0.0])

    def step(x: Any, target: Any) -> Any:
        batch = [x, x]
        model.row = batch[1]
        model.weight -= 0.1 * (model.weight * model.row[2] - target)
        return {"row": model.row, "weight": model.weight}

    return model, step


STEPS = [linear, lambda: linear(40), closure, in_a_dict, given_a_row]


def both(make: Make, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Model and step, undecorated and compiled."""
    model, step = make()
    yield model, step
    model, step = make()
    yield model, mgjit.compile(background=False, **options)(step)


@pytest.mark.parametrize("verify", ["never", "always"])
@pytest.mark.parametrize("make", STEPS)
def test_a_kept_argument_is_the_callers(make: Make, verify: str) -> None:
    """After each call on each path; a change that the caller makes is seen there."""
    seen: list[Any] = []
    for model, step in both(make, verify=verify):
        data = rows(12, len(getattr(model, "inputs", "xyz")))
        seen.append([])
        for k, x in enumerate([*data, *data[:3], data[2]]):
            result = step(x, 0.5 * k)
            seen[-1].append(shown(model, x, result, data))
            x[0] += 1.0
            seen[-1].append(shown(model))
    assert step.stats.plain_calls == 0
    assert seen[0] == seen[1]


@pytest.mark.parametrize("lengths", [(3,), (3, 4, 3, 3, 4)])
def test_a_loop_keeps_what_the_last_row_was_given(lengths: tuple[int, ...]) -> None:
    """Also where rows take turns."""

    def make() -> tuple[Any, Callable[..., Any]]:
        model = SimpleNamespace(weight=0.5, first=[0.0, 0.0])

        def step(pair: Any, rest: Any) -> Any:
            model.first = pair
            model.weight -= 0.01 * (model.weight * sum(rest) - pair[0])
            return model.weight

        return model, step

    seen: list[Any] = []
    for model, step in both(make, verify="never"):
        pairs = rows(30, 2)
        rest = [[0.5 * j for j in range(lengths[k % len(lengths)])] for k in range(30)]
        for start in (0, 10, 20):
            given = pairs[start : start + 10], rest[start : start + 10]
            results = list(step.loop(*given) if hasattr(step, "loop") else map(step, *given))
            seen.append(shown(model, pairs, results))
    assert seen[:3] == seen[3:]


def test_what_is_kept_is_written_back_as_often_as_one_likes() -> None:
    """As after an exception between the code and the copying."""
    model, step = linear()
    step = mgjit.compile(background=False, verify="never")(step)
    data = rows(30, 3)
    for x in data[:25]:
        step(x, 0.5)
    kernel = step._kernels.last
    assert kernel.copies.fill()
    kernel.copies.keep([data[25], 0.5])
    for _ in range(2):
        model.inputs = [0.0, 0.0, 0.0]
        kernel.copies.show()
        assert model.inputs is data[25]


def test_without_a_word_about_the_arguments_a_copy_is_kept() -> None:
    """A call that knows only numbers, as those of an ensemble, keeps equal ones."""
    model, step = linear()
    step = mgjit.compile(background=False, verify="never")(step)
    x = [0.5, 0.25, 1.0]
    for _ in range(3):
        step(x, 0.5)
    copies = step._kernels.last.copies
    copies.copy_in()
    copies.show()
    assert model.inputs == x
    assert model.inputs is not x


def test_a_list_that_was_there_before_is_another_in_each_call() -> None:
    """It is returned, or compared, by plain Python."""

    def returned() -> tuple[Any, Callable[..., Any]]:
        model = SimpleNamespace(hidden=[0.0, 0.5], weight=0.5)

        def step(x: Any) -> Any:
            before = model.hidden
            model.hidden = [model.weight * a + b for a, b in zip(x, before)]
            model.weight -= 0.01
            return before

        return model, step

    def compared() -> tuple[Any, Callable[..., Any]]:
        model = SimpleNamespace(hidden=[0.0, 0.5], weight=0.5)

        def step(x: Any) -> Any:
            factor = 1.0 if model.hidden is x else 2.0
            model.hidden = x
            model.weight -= 0.01 * x[0]
            return factor * model.weight

        return model, step

    def changed() -> tuple[Any, Callable[..., Any]]:
        model = SimpleNamespace(hidden=[0.0, 0.5], weight=0.5)

        def step(x: Any) -> Any:
            model.hidden[0] = x[0] + 1.0
            model.hidden = x
            model.weight -= 0.01 * x[0]
            return model.weight

        return model, step

    for make in (returned, compared, changed):
        seen: list[Any] = []
        for model, step in both(make, verify="never", refuse="plain"):
            data = [x for x in rows(6, 2) for _ in range(2)]
            seen.append([shown(step(x), model, data) for x in data])
        assert seen[0] == seen[1]


def test_an_argument_that_the_step_changes_elsewhere_is_seen_to_change() -> None:
    """The program has put it where the step assigns elements, long after the trace."""

    def make() -> tuple[Any, Callable[..., Any]]:
        model = SimpleNamespace(weight=0.25, buffer=[0.0, 0.0])

        def step(x: Any) -> Any:
            model.buffer[0] = x[1] * 2
            model.weight -= 0.01 * x[0]
            return x[0] + model.weight

        return model, step

    seen: list[Any] = []
    for model, step in both(make, verify="never"):
        seen.append([])
        for k, x in enumerate(rows(40, 2)):
            if k in (15, 16, 30):
                model.buffer = x
            seen[-1].append(shown(step(x), model, x))
    assert seen[0] == seen[1]
