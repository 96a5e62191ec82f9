"""Steps over classes, lists and variables that know nothing of mgjit: as undecorated, bit for bit."""

from __future__ import annotations

import copy
import functools
import math
import struct
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import pytest

import mgjit

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


class Scalar:
    """An autograd class as people write it."""

    __slots__ = ("_children", "_local", "data", "grad")

    def __init__(self, data: Any, children: Any = (), local: Any = ()) -> None:
        self.data, self.grad, self._children, self._local = data, 0, children, local

    def __add__(self, other: Any) -> Scalar:
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Scalar:
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__

    def relu(self) -> Scalar:
        return Scalar(max(0, self.data), (self,), (float(self.data > 0),))

    def exp(self) -> Scalar:
        return Scalar(math.exp(self.data), (self,), (math.exp(self.data),))

    def backward(self) -> None:
        order: list[Scalar] = []
        seen = set()

        def visit(node: Scalar) -> None:
            if node not in seen:
                seen.add(node)
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            for child, local in zip(node._children, node._local):
                child.grad += local * node.grad


def bits(thing: Any) -> Any:
    if isinstance(thing, (list, tuple)):
        return [bits(part) for part in thing]
    number = thing.data if isinstance(thing, Scalar) else thing
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return b"nan" if number != number else struct.pack("<d", number)
    return number


def agree(make: Callable[[], tuple[Callable[..., Any], Callable[[], Any]]], *calls: Any, **options: Any) -> Any:
    """Undecorated and compiled, from equal beginnings; returns the compiled step."""
    plain, plain_state = make()
    function, state = make()
    step = mgjit.compile(**options)(function)
    for arguments in calls:
        assert bits(step(*arguments)) == bits(plain(*arguments))
        assert bits(state()) == bits(plain_state())
    return step


def network(n: int) -> tuple[Callable[..., Any], Callable[[], Any]]:
    weights = [Scalar(0.25 * (k % 7) - 0.5) for k in range(n)]
    m = [0.0] * n

    def step(x: float, lr: float) -> Any:
        loss = Scalar(0.0)
        for k, w in enumerate(weights):
            loss = loss + (w * (x + k)).relu() * 0.5 + (w * 0.01).exp()
        for w in weights:
            w.grad = 0
        loss.backward()
        for k, w in enumerate(weights):
            m[k] = 0.9 * m[k] + 0.1 * w.grad
            w.data -= lr * m[k]
        return loss

    return step, lambda: [[w.data for w in weights], [w.grad for w in weights], m]


@BACKENDS
@pytest.mark.parametrize("n", [3, 40])
def test_01_an_autograd_class_and_moments_in_a_list(n: int, backend: str) -> None:
    """Few parameters are copied, many live in the kernel's memory."""
    step = agree(lambda: network(n), (0.5, 0.1), (-0.25, 0.1), (1.5, 0.01), backend=backend)
    assert step.stats.traces == 1


def test_02_what_python_changes_in_between_counts() -> None:
    """Parameters and list elements can be read and assigned between calls."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        weights = [Scalar(0.5 + k) for k in range(20)]
        scale = [1.0, 2.0]

        def step(x: float) -> float:
            scale[0] = scale[0] * 0.5
            total = sum(w.data * x * scale[0] for w in weights)
            for w in weights:
                w.data = w.data + scale[1] * 0.125
            return total  # type: ignore[no-any-return]

        def change() -> Any:
            weights[3].data, scale[1] = weights[3].data * 2, scale[1] + 1
            return [[w.data for w in weights], scale]

        return step, change

    assert agree(make, (1.0,), (2.0,), (3.0,)).stats.traces == 1


def test_03_the_loss_that_a_step_returns() -> None:
    """Is an object of the user's class with its numbers, and without the graph."""
    function, _ = network(3)
    expected = network(3)[0](0.5, 0.1)
    for loss in (mgjit.compile(function)(0.5, 0.1),):
        assert type(loss) is Scalar
        assert (loss.data, loss.grad, loss._children) == (expected.data, 1, ())


class Optimiser:
    """State as attributes of an object."""

    def __init__(self, n: int) -> None:
        self.t = 0
        self.rate = 0.5
        self.average = None
        self.moments = [0.0] * n
        self.name = "sgd"

    def update(self, x: float) -> float:
        self.t += 1
        self.rate *= 0.9
        self.moments = [0.9 * m + x for m in self.moments]
        return sum(self.moments) * self.rate / self.t


@BACKENDS
def test_04_attributes(backend: str) -> None:
    """Counters stay ints; a list that is replaced by a new one is a new one."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        optimiser = Optimiser(4)
        return optimiser.update, lambda: [optimiser.t, optimiser.rate, optimiser.moments, type(optimiser.t).__name__]

    assert agree(make, (1.0,), (2.0,), (0.5,), backend=backend).stats.traces == 1


COUNT = 0
TOTAL = 0.0


@BACKENDS
def test_05_global_variables(backend: str) -> None:
    """Are read and left as Python would."""
    global COUNT, TOTAL

    def step(x: float) -> float:
        global COUNT, TOTAL
        COUNT += 1
        TOTAL = TOTAL * 0.5 + x
        return TOTAL * COUNT

    results = []
    for function in (step, mgjit.compile(backend=backend)(step)):
        COUNT, TOTAL = 0, 0.0
        results.append([(function(x), COUNT, TOTAL, type(COUNT)) for x in (1.5, 2.0, 0.25)])
    assert results[0] == results[1]


def test_06_variables_of_enclosing_functions() -> None:
    """`nonlocal` variables, several steps over the same one."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        total, calls = 1.0, 0

        def step(x: float) -> float:
            nonlocal total, calls
            total, calls = total * x, calls + 1
            return total - calls

        return step, lambda: [total, calls]

    agree(make, (1.5,), (2.0,), (0.25,))


def test_07_swaps_and_rotations() -> None:
    """All assignments take effect together, after everything has been read."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        window = [1.0, 2.0, 3.0]
        pair = {"a": 1.5, "b": 2.5}

        def step(x: float) -> float:
            old = window[0]
            window[0], window[1], window[2] = window[1], window[2], x
            pair["a"], pair["b"] = pair["b"], pair["a"]
            return old + pair["a"]

        return step, lambda: [window, pair["a"], pair["b"]]

    agree(make, (5.0,), (6.0,), (7.0,))


def test_08_a_list_that_is_assigned_where_it_does_not_show() -> None:
    """By a function that has it under another name: found by a second trace."""

    def add(target: list[float], x: float) -> None:
        for k in range(len(target)):
            target[k] += x

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        hidden = [1.0, 2.0]
        return lambda x: add(hidden, x), lambda: hidden

    agree(make, (1.5,), (2.5,))


def test_09_nested_lists_and_dicts() -> None:
    """Matrices as lists of lists, parameters in dicts, hand-written gradients."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        matrix = [[0.5 * i - 0.25 * j for j in range(3)] for i in range(2)]
        state = {"bias": [0.0, 0.5], "rate": 0.25}

        def step(x: list[float], y: list[float]) -> float:
            out = [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(matrix, state["bias"])]
            error = [a - b for a, b in zip(out, y)]
            for i, e in enumerate(error):
                for j in range(3):
                    matrix[i][j] -= state["rate"] * e * x[j]
                state["bias"][i] -= state["rate"] * e
            state["rate"] *= 0.99
            return sum(e * e for e in error)

        return step, lambda: [matrix, state["bias"], state["rate"]]

    step = agree(make, ([1.0, 2.0, 3.0], [0.5, 0.25]), ([0.0, 1.0, -1.0], [1.0, 0.0]), ([1.0, 1.0, 1.0], [0.0, 0.0]))
    assert step.stats.traces == 1


@dataclass
class Point:
    """A dataclass whose fields a step assigns."""

    x: float
    v: float


def test_10_dataclasses_and_partials() -> None:
    """As arguments of a functools.partial."""

    def advance(point: Point, dt: float) -> float:
        point.v -= point.x * dt
        point.x += point.v * dt
        return 0.5 * (point.x**2 + point.v**2)

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        point = Point(1.0, 0.0)
        return functools.partial(advance, point), lambda: [point.x, point.v]

    plain, plain_state = make()
    function, state = make()

    @mgjit.compile
    def step(dt: float) -> Any:
        return function(dt)

    for dt in (0.1, 0.2, 0.05):
        assert bits(step(dt)) == bits(plain(dt))
        assert bits(state()) == bits(plain_state())


def test_11_two_steps_over_the_same_parameters() -> None:
    """Training and prediction share what lives in memory."""
    weights = [Scalar(0.5 * k) for k in range(20)]
    expected = copy.deepcopy(weights)

    def forward(parameters: list[Scalar], x: float) -> Any:
        total = Scalar(0.0)
        for w in parameters:
            total = total + w * x
        return total

    def make(parameters: list[Scalar]) -> tuple[Callable[..., Any], Callable[..., Any]]:
        def train(x: float) -> Any:
            loss = forward(parameters, x)
            for w in parameters:
                w.grad = 0
            loss.backward()
            for w in parameters:
                w.data -= 0.01 * w.grad
            return loss.data

        return train, lambda x: forward(parameters, x).data

    train, predict = map(mgjit.compile, make(weights))
    plain_train, plain_predict = make(expected)
    for x in (0.5, 1.5, -1.0):
        assert train(x) == plain_train(x)
        assert predict(x) == plain_predict(x)
    assert [w.data for w in weights] == [w.data for w in expected]
    other = copy.deepcopy(weights)
    train(2.0)
    assert [w.data for w in other] == [w.data for w in expected]


def test_12_a_failed_trace_leaves_everything_as_it_was() -> None:
    """Numbers, lists, counters and variables, whatever raised."""
    weights = [Scalar(float(k)) for k in range(20)]
    log: list[str] = []
    count = 0

    def step(x: float) -> Any:
        nonlocal count
        count += 1
        log.append("called")
        for w in weights:
            w.data = w.data * x
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        mgjit.compile(step)(2.0)
    assert [w.data for w in weights] == [float(k) for k in range(20)]
    assert (count, log) == (0, [])
    assert all(type(w) is Scalar for w in weights)


def test_13_what_is_not_repeated_is_said() -> None:
    """What a step puts in front of a log is Python's to put; after some calls a warning says what that costs."""
    log: list[str] = []

    def step(x: float) -> float:
        log.insert(0, "called")
        return x * 2

    compiled = mgjit.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [compiled(1.0), compiled(2.0)] == [2.0, 4.0]
    with pytest.warns(mgjit.errors.SideEffectWarning, match="log"):
        assert compiled(3.0) == 6.0
    assert compiled(4.0) == 8.0
    assert log == ["called"] * 4


def test_14_gradients_that_are_none_at_first() -> None:
    """From the second call on they are numbers: the first one is plain Python, the next one is traced."""

    class Node:
        def __init__(self, data: float) -> None:
            self.data = data
            self.grad: Any = None

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        nodes = [Node(0.5 * k) for k in range(20)]

        def step(x: float) -> float:
            for node in nodes:
                node.grad = node.data * x if node.grad is None else node.grad * 0.5 + x
                node.data -= 0.1 * node.grad
            return sum(node.data for node in nodes)

        return step, lambda: [[node.data, node.grad] for node in nodes]

    step = agree(make, (1.5,), (2.5,), (0.5,), (0.25,))
    assert (step.stats.traces, step.stats.plain_calls) == (1, 1)


def test_15_in_loop() -> None:
    """Copied numbers are copied once around all rows."""
    plain, plain_state = network(3)
    function, state = network(3)
    step = mgjit.compile(lambda x, lr: function(x, lr).data)
    xs = [0.5, -0.25, 1.5, 0.125]
    assert list(step.loop(xs, 0.1)) == [plain(x, 0.1).data for x in xs]
    assert bits(state()) == bits(plain_state())


@pytest.mark.parametrize("rows", [2, 40])
def test_16_numbers_in_lists_that_a_step_only_reads(rows: int) -> None:
    """Few are watched, and are memory once they have changed; many are copied in at each call."""
    matrix = [[0.1 * j + i for j in range(30)] for i in range(rows)]

    def predict(x: float) -> float:
        return sum(v * x for row in matrix for v in row)

    step = mgjit.compile(predict)
    for change in (0.5, 0.25, -3.0, 1.5):
        assert step(1.5) == predict(1.5)
        matrix[1][3] = change
        matrix[0][0] += change
    assert step(1.5) == predict(1.5)
    assert step.stats.traces <= 3  # a list is memory from when it has changed


def test_17_sizes_that_an_object_keeps() -> None:
    """An int in an attribute that only shapes the step, by `//` or `range`, is fixed for the trace."""

    class Model:
        def __init__(self, heads: int) -> None:
            self.heads = heads

        def parts(self, xs: list[float]) -> list[float]:
            size = len(xs) // self.heads
            return [sum(xs[k * size : (k + 1) * size]) for k in range(self.heads)]

    model = Model(2)
    step = mgjit.compile(model.parts)
    for heads in (2, 3, 2):
        model.heads = heads
        assert step([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == model.parts([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


@BACKENDS
def test_18_in_loop_with_gradients_that_are_none_at_first(backend: Any) -> None:
    """The first row finds None where all others find numbers, to which they add."""

    def made() -> tuple[list[Any], Callable[..., Any]]:
        weights = [Scalar(0.5), Scalar(-0.25)]
        for w in weights:
            w.grad = None

        def step(x: float) -> float:
            loss = weights[0] * x + weights[1]
            for w, share in zip(weights, (x, 1.0)):
                w.grad = share if w.grad is None else w.grad + share
            return loss.data  # type: ignore[no-any-return]

        return weights, step

    ours, step = made()
    theirs, plain = made()
    xs = [0.5, 0.25, -1.5]
    compiled = mgjit.compile(step, backend=backend)
    assert list(compiled.loop(xs)) == [plain(x) for x in xs]
    assert [w.grad for w in ours] == [w.grad for w in theirs]
    assert list(compiled.loop(xs)) == [plain(x) for x in xs]
    assert [w.grad for w in ours] == [w.grad for w in theirs]
