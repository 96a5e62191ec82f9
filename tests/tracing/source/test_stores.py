"""What sides of conditions assign to attributes, elements and memory: compiled as what is selected, or plain."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit

total = 0.5


class Parameter:
    def __init__(self, data: float) -> None:
        self.data, self.grad = data, 0.0

    def scale(self, by: float) -> None:
        self.grad = self.grad * by


class Slots:
    __slots__ = ("calls", "level")

    def __init__(self) -> None:
        self.level, self.calls = 0.5, 1


class Careful:
    """Whose attributes are assigned by functions."""

    def __init__(self) -> None:
        self.own, self.half = 0.5, 0.5

    @property
    def level(self) -> float:
        return self.own

    @level.setter
    def level(self, level: float) -> None:
        self.own = level * 0.5

    def __setattr__(self, name: str, content: Any) -> None:
        object.__setattr__(self, name, content)


class Around:
    """What the steps change."""

    least = 9.0

    def __init__(self) -> None:
        global total
        total = 0.5
        Around.least = 9.0
        self.parameters = [Parameter(k * 0.1 - 1.0) for k in range(20)]
        self.best, self.skipped, self.found = 9.0, 0, 0.5
        self.nothing: Any = None
        self.row, self.table = [0.5, 1.5, 2.5], {"a": 1.0, "n": 2}
        self.slots, self.careful = Slots(), Careful()
        self.value, self.state = mgjit.Value(0.25), mgjit.State([0.5, 1.5])

    def seen(self) -> str:
        """Everything, bit for bit and type for type."""
        numbers = [(p.data, p.grad) for p in self.parameters]
        kept = self.best, self.skipped, self.found, self.nothing, self.row, self.table, total, Around.least
        slots = self.slots.level, self.slots.calls, self.careful.own, self.careful.half
        return repr((numbers, kept, slots, self.value.data, self.value.grad, *self.state))

    def scale_all(self, by: float) -> None:
        for p in self.parameters:
            p.grad *= by


def clips_by_the_norm(around: Around, x: float) -> Any:
    for k, p in enumerate(around.parameters):
        p.grad = p.data * x + k * 0.1
    norm = math.sqrt(sum(p.grad * p.grad for p in around.parameters))
    if norm > 4.0:
        for p in around.parameters:
            p.grad *= 4.0 / norm
    for p in around.parameters:
        p.data -= 0.1 * p.grad
    return norm


def clips_each(around: Around, x: float) -> Any:
    for p in around.parameters:
        p.grad = p.data * x
        if p.grad > 0.1:
            p.grad = 0.1
        elif p.grad < -0.1:
            p.grad = -0.1
        if p.data < 0.0:
            continue
        p.data -= p.grad
    return around.parameters[0].data


def skips_an_update(around: Around, x: float) -> Any:
    around.scale_all(0.5 + x)
    if x < 0.5:
        around.scale_all(x)
        around.parameters[0].scale(0.5)
    else:
        around.skipped += 1
    return around.skipped


def keeps_the_best(around: Around, x: float) -> Any:
    if x < around.best:
        around.best = x
        around.row[0], around.row[-1] = around.row[1], x
        around.table["a"] += x
    elif x > 0.9:
        around.table["n"] = 0
        around.slots.level, around.slots.calls = x, around.slots.calls + 1
        if around.best < 0.0:
            around.best *= 0.5
    return around.best, around.row


def assigns_memory(around: Around, x: float) -> Any:
    value, state = around.value, around.state
    if x > 0.2:
        value.data = value.data * 0.5 + x
        state[0] = state[1] + value.data
    else:
        state[1] += 0.25
    loss = value * x
    value.grad = 0.0
    loss.backward()
    if value.grad > 0.5:
        value.grad = 0.5
    value.data -= 0.1 * value.grad
    return loss


def assigns_variables(around: Around, x: float) -> Any:
    global total
    calls = 0

    def counted() -> float:
        nonlocal calls
        calls += 1
        return x

    if x > 0.1:
        total += counted()
        Around.least = min(Around.least, x)
    return total, calls


def assigns_what_is_not_taken(around: Around, x: float) -> Any:
    """Of which Python would raise an error."""
    if x > 0.0:
        around.found = math.log(x) + 1.0 / x
    if x < 0.5:
        around.row[:2] = [math.exp(x * 1400.0), around.found]
    return around.found


COMPILED = [
    clips_by_the_norm, clips_each, skips_an_update, keeps_the_best, assigns_memory, assigns_variables,
    assigns_what_is_not_taken,
]  # fmt: skip


def runs_a_setter(around: Around, x: float) -> Any:
    if x > 0.0:
        around.careful.level = x
    return x


def runs_a_function_for_each(around: Around, x: float) -> Any:
    if x > 0.0:
        around.careful.half = x
    return x


def makes_an_attribute(around: Around, x: float) -> Any:
    if x > 2.0:
        around.new = x  # type: ignore[attr-defined]
    return x


def makes_an_entry(around: Around, x: float) -> Any:
    if x > 2.0:
        around.table["b"] = x
    return x


def keeps_a_list(around: Around, x: float) -> Any:
    if x > 0.0:
        around.row = [x, x, x]
    return around.row


def adds_in_place(around: Around, x: float) -> Any:
    if x > 0.0:
        around.row += [x]
    return len(around.row)


def begins_with_none(around: Around, x: float) -> Any:
    if x > 0.0:
        around.nothing = x
    return x


def shortens(around: Around, x: float) -> Any:
    if x > 0.0:
        around.row[:2] = [x]
    return len(around.row)


PLAIN = [
    runs_a_setter, runs_a_function_for_each, makes_an_attribute, makes_an_entry, keeps_a_list, adds_in_place,
    begins_with_none, shortens,
]  # fmt: skip


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def outcomes(make: Callable[[Any], Any], function: Callable[[Around, float], Any]) -> list[str]:
    """What calls return and leave behind."""
    around, draw, found = Around(), random.Random(7), []

    def step(x: float) -> Any:
        return function(around, x)

    made = make(step)
    for _ in range(40):
        returned = made(draw.choice([draw.uniform(-1.0, 1.0), 0.0, -0.0, draw.uniform(-0.1, 1.2)]))
        found.append(repr(getattr(returned, "data", returned)) + around.seen())
    return found


@pytest.mark.parametrize("backend", ["python", "c"])
@pytest.mark.parametrize("function", COMPILED)
def test_01_numbers_are_selected(function: Callable[[Around, float], Any], backend: str) -> None:
    """In place of numbers that are there, whoever assigns them."""
    steps: list[Any] = []

    def compiled(step: Any) -> Any:
        steps.append(mgjit.compile(step, backend=backend, background=False, verify="never"))
        return steps[0]

    assert outcomes(compiled, function) == outcomes(lambda step: step, function)
    assert steps[0].stats.last.made_by == "kernel"
    assert not steps[0].stats.plain_calls


@pytest.mark.parametrize("function", PLAIN)
def test_02_anything_else_is_plain(function: Callable[[Around, float], Any]) -> None:
    """And the same is left behind as without."""

    def compiled(step: Any) -> Any:
        return mgjit.compile(step, backend="python", background=False, verify="never")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcomes(compiled, function) == outcomes(lambda step: step, function)


def test_03_sides_inside_of_sides_of_functions() -> None:
    """What a function assigns before a condition inside of it does is not lost."""

    def step(x: float) -> Any:
        calls = 0

        def count() -> None:
            nonlocal calls
            calls += 1

        if x > -0.5:
            count()
            if x < 0.5:
                count()
        elif x < -0.8:
            calls = 7
        return calls

    compiled: Any = mgjit.compile(step, background=False, verify="never")
    numbers = [-0.9, 0.0, 0.7, -0.6, 0.4, -1.0]
    assert list(map(compiled, numbers)) == list(map(step, numbers)) == [7, 2, 1, 0, 2, 7]
    assert compiled.stats.last.made_by == "kernel"


def test_04_explain_names_the_lines() -> None:
    """Those of `if` statements whose sides are both computed."""
    around = Around()

    def step(x: float) -> Any:
        return keeps_the_best(around, x)

    text = mgjit.compile(step).lower(0.5).explain()
    first = keeps_the_best.__code__.co_firstlineno
    lines = f"{first + 1}, {first + 5}, {first + 8}"
    assert f"both sides are computed, and numbers selected: test_stores.py:{lines}" in text


class Made:
    def __init__(self, data: float, parts: tuple[float, ...] = ()) -> None:
        self.data = data
        if parts:
            self.parts = parts


def made(x: float) -> float:
    return Made(x, (1.0,)).data


def test_05_a_function_may_make_objects() -> None:
    """Whose attributes it assigns under conditions of its own."""

    def step(x: float) -> Any:
        y = made(x) * 2.0 if x > 0.0 else 0.5
        if x > 0.3:
            y = made(y)
        return y

    compiled: Any = mgjit.compile(step, background=False, verify="never")
    assert list(map(compiled, [0.1, -0.2, 0.5])) == list(map(step, [0.1, -0.2, 0.5]))
    assert compiled.stats.last.made_by == "kernel"


class Node:
    """Of an autograd engine whose derivative of relu is a statement."""

    def __init__(self, data: float, parts: tuple[Node, ...] = ()) -> None:
        self.data, self.grad, self.parts = data, 0.0, parts
        self.spread: Callable[[], None] = lambda: None

    def times(self, factor: float) -> Node:
        out = Node(self.data * factor, (self,))

        def spread() -> None:
            self.grad += factor * out.grad

        out.spread = spread
        return out

    def relu(self) -> Node:
        out = Node(self.data if self.data > 0.0 else 0.0, (self,))

        def spread() -> None:
            if out.data > 0.0:
                self.grad += out.grad

        out.spread = spread
        return out

    def backward(self) -> None:
        nodes = [self]
        for node in nodes:
            nodes.extend(node.parts)
        self.grad = 1.0
        for node in nodes:
            node.spread()


def test_06_gradients_under_conditions() -> None:
    """The backward pass is recorded operation by operation, and compiled."""

    def played(make: Callable[[Any], Any]) -> tuple[list[Any], Any]:
        nodes = [Node(0.5), Node(-0.25)]

        def step(x: float) -> Any:
            for node in nodes:
                node.grad = 0.0
                node.times(x).relu().backward()
            for node in nodes:
                node.data -= 0.5 * node.grad
            return [(node.data, node.grad) for node in nodes]

        made = make(step)
        return [made(x) for x in (0.5, -0.5, 1.0, -1.5, 0.25, 0.0)], made

    wanted, _ = played(lambda step: step)
    found, compiled = played(lambda step: mgjit.compile(step, background=False, verify="never"))
    assert repr(found) == repr(wanted)
    assert compiled.stats.last.made_by == "kernel"
