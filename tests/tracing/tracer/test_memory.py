"""Numbers in the user's objects: what becomes memory, what is fixed, and what a step changes in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.errors import BackendWarning, RetraceWarning, TraceError
from tests.tracing.autograd import nodes


def compiled(step: Callable[..., Any]) -> Any:
    return mgjit.compile(step, backend="python")


class Layer:
    """A size that `__init__` assigns, beside numbers that the step assigns."""

    def __init__(self, size: int, rate: float) -> None:
        self.size, self.rate = size, rate
        self.weights = [0.5 * k for k in range(size)]
        self.calls = 0

    def step(self, x: float) -> float:
        total = 0.0
        for k in range(self.size):
            total += self.weights[k] * x
        for k in range(self.size):
            self.weights[k] -= self.rate * total * x
        self.calls += 1
        return total


class Node:
    """Three fields that a step assigns; the gradient is None at first."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.grad: Any = None
        self.velocity = 0.0


def test_01_sizes_in_attributes_are_fixed() -> None:
    """What is used as a length is no run-time number; when it changes, the step is traced again."""
    mine, theirs = Layer(4, 0.1), Layer(4, 0.1)
    step = compiled(theirs.step)
    for size in (4, 4, 2, 2, 3):
        mine.size = theirs.size = size
        assert step(0.5) == mine.step(0.5)
        assert vars(theirs) == vars(mine)
    assert step.stats.traces == 3
    assert "Layer.size was 4, is 2" in step.stats.retraces[0] or ".size" in step.stats.retraces[0]


@pytest.mark.parametrize("shape", [range, lambda n: range(n + 1), lambda n: [0.5] * n, lambda n: "abc"[:n]])
def test_02_arguments_that_are_lengths_are_fixed(shape: Callable[[int], Any]) -> None:
    """A kernel for each value, without being told."""

    def step(x: float, n: int) -> float:
        for _ in shape(n):
            x = x * 1.5
        return x

    decorated = compiled(step)
    for x, n in ((1.0, 2), (2.0, 2), (3.0, 3), (4.0, 2)):
        assert decorated(x, n) == step(x, n)
    assert decorated.stats.traces == 2
    assert decorated(1.0, n=2) == step(1.0, 2)
    assert decorated.lower(1.0, 2) is not None


def test_03_a_counter_cannot_be_a_key() -> None:
    """It would be another step in each call: said at once."""
    layer = Layer(4, 0.1)

    def step(x: float) -> float:
        layer.calls += 1
        return {0: x, 1: 2.0}[layer.calls - 1]

    with pytest.raises(TraceError, match=r"Layer\.calls is used as a length, an index or a key"):
        compiled(step)(1.0)
    assert layer.calls == 0


def test_04_ints_in_dicts_and_lists_count() -> None:
    """They are found to change by the trace."""

    def make() -> Any:
        counts, sizes, log = {"calls": 0, "size": 3}, [0, 0], {"inner": {"best": 9.0, "n": 0}}

        def step(x: float) -> Any:
            counts["calls"] += 1
            sizes[1] += 2
            log["inner"]["n"] += 1
            log["inner"]["best"] = min(log["inner"]["best"], x)
            return sum(x for _ in range(counts["size"])) * counts["calls"]

        return step, (counts, sizes, log)

    (mine, mine_state), (theirs, their_state) = make(), make()
    step = compiled(theirs)
    for x in (3.0, 1.0, 2.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert step(x) == mine(x)
        assert repr(their_state) == repr(mine_state)
    assert step.stats.traces == 1


def test_05_arguments_are_changed_in_place() -> None:
    """As in Python, and not in a copy; for another list the step is traced again."""

    def step(weights: list[float], rows: Any, x: float) -> float:
        weights[0] -= x
        rows["a"][1] *= x
        return weights[0] + rows["a"][1]

    decorated = compiled(step)
    mine, theirs = ([1.0, 2.0], {"a": [3.0, 4.0]}), ([1.0, 2.0], {"a": [3.0, 4.0]})
    for x in (0.5, 2.0, 3.0):
        assert decorated(*theirs, x) == step(*mine, x)
        assert theirs == mine
    assert decorated.stats.traces == 1
    other = ([5.0, 6.0], {"a": [7.0, 8.0]})
    assert decorated(*other, 2.0) == 3.0 + 16.0
    assert other == ([3.0, 6.0], {"a": [7.0, 16.0]})


def test_06_an_argument_under_two_names() -> None:
    """What is assigned under one is read under the other."""

    def step(a: list[float], b: list[float], x: float) -> float:
        a[0] += x
        return b[0]

    numbers = [1.0]
    decorated = compiled(step)
    assert [decorated(numbers, numbers, x) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert numbers == [4.0]


def test_07_new_lists_for_a_step_that_changes_them() -> None:
    """Right, and slow: the warning about traces comes."""

    def step(a: list[float]) -> float:
        a.append(a[0] * 2.0)
        return a[1]

    def step_in_place(a: list[float]) -> float:
        a[0] *= 2.0
        return a[0]

    decorated = mgjit.compile(step_in_place, backend="python", warn_after=3)
    with pytest.warns(RetraceWarning):
        assert [decorated([float(k)]) for k in range(6)] == [2.0 * k for k in range(6)]
    grown = [1.0]
    with pytest.warns(BackendWarning, match="adds elements to argument a"):
        assert compiled(step)(grown) == 2.0
    assert grown == [1.0, 2.0]


@pytest.mark.parametrize("count", [3, 20])
def test_08_three_fields_and_a_gradient_that_is_none(count: int) -> None:
    """The gradient lives in the kernel's memory, as soon as there is one."""

    def make() -> Any:
        nodes = [Node(0.5 * k) for k in range(count)]

        def step(x: float) -> float:
            for node in nodes:
                node.grad = None
            for node in nodes:
                node.grad = node.value * x if node.grad is None else node.grad + node.value * x
            for node in nodes:
                node.velocity = 0.9 * node.velocity - 0.1 * node.grad
                node.value += node.velocity
            return sum(node.value for node in nodes)

        return step, lambda: [(node.value, node.grad, node.velocity) for node in nodes]

    (mine, mine_state), (theirs, their_state) = make(), make()
    step = compiled(theirs)
    for x in (1.0, 2.0, 3.0):
        assert step(x) == mine(x)
        assert their_state() == mine_state()


def test_09_none_in_place_of_a_number() -> None:
    """Gradients that the step sets to None at its end: plain Python does that, until None is there before as well."""

    def make() -> tuple[Callable[[float], float], list[nodes.Closures]]:
        weights = [nodes.Closures(0.5), nodes.Closures(0.25)]

        def step(x: float) -> float:
            out = weights[0] * weights[1] * x
            out.backward()
            for w in weights:
                w.data -= 0.1 * w.grad
                w.grad = None
            return out.data

        return step, weights

    (mine, my_weights), (theirs, their_weights) = make(), make()
    step = compiled(theirs)
    assert step(1.0) == mine(1.0)
    assert step.stats.plain_calls == 1
    assert [(w.data, w.grad) for w in their_weights] == [(w.data, w.grad) for w in my_weights]


@pytest.mark.filterwarnings("ignore::mgjit.errors.SideEffectWarning")
@pytest.mark.parametrize("others", [(2.0, 3.0, None), ([1.0], [2.0], None), ([1.0], [2.0], [3.0, 4.0])])
def test_09_what_the_step_only_asks_about(others: tuple[Any, ...]) -> None:
    """Numbers that change and are not read: whether there are some, and how many, is looked at before each call."""

    def run(compiles: bool) -> list[float]:
        model = SimpleNamespace(w=1.0, kept=others[0])

        def step(x: float) -> float:
            model.w += 0.1 * x
            kept = model.kept
            return model.w + (0.5 if kept is None else len(kept) if isinstance(kept, list) else 0.25)

        step = mgjit.compile(step, backend="python") if compiles else step
        found = []
        for number in range(24):
            if number % 4 == 3:
                model.kept = others[number // 4 % 3]
            found.append(step(float(number)))
        return found

    assert run(True) == run(False)


def test_09_a_list_of_another_class_in_place_of_one() -> None:
    """Python leaves it there; the next call finds it."""

    class Row(list):  # type: ignore[type-arg]
        pass

    def make() -> Any:
        optimiser = SimpleNamespace(m=[0.0, 0.0], w=[1.0, 2.0])

        def step(x: float) -> float:
            optimiser.m = Row(0.9 * m + 0.1 * x * w for m, w in zip(optimiser.m, optimiser.w))
            for k, m in enumerate(optimiser.m):
                optimiser.w[k] -= 0.1 * m
            return sum(optimiser.w)

        return step, optimiser

    (mine, my_optimiser), (theirs, their_optimiser) = make(), make()
    step = compiled(theirs)
    for x in (1.0, 2.0, 3.0):
        assert step(x) == mine(x)
        assert their_optimiser == my_optimiser
        assert type(their_optimiser.m) is Row


@pytest.mark.usefixtures("only_thread")
@pytest.mark.filterwarnings("ignore::mgjit.errors.SideEffectWarning")
def test_09_none_that_another_kernel_makes_a_number() -> None:
    """A gradient is None until another structure of arguments gives it a number: kernels notice that at once."""

    def make() -> tuple[Callable[[float, bool], int], list[nodes.Closures]]:
        weights = [nodes.Closures(0.5 * k + 0.5) for k in range(3)]
        for w in weights:
            w.grad = None

        def step(x: float, all_of_them: bool) -> int:
            for w in weights:
                w.grad = None
            used = weights if all_of_them else weights[:2]
            for w in used:
                w.grad = w.data * x
            given = [w for w in weights if w.grad is not None]
            for w in given:
                w.data -= 0.1 * w.grad
            return len(given)

        return step, weights

    (mine, my_weights), (theirs, their_weights) = make(), make()
    step = compiled(theirs)
    for number in range(12):
        arguments = 1.0 + number, number in (5, 6, 9)
        assert step(*arguments) == mine(*arguments)
        assert [w.data for w in their_weights] == [w.data for w in my_weights]
        # In the memory of a kernel, no gradient is 0.0.
        assert [w.grad or 0.0 for w in their_weights] == [w.grad or 0.0 for w in my_weights]


class Frozen:
    """Has a gradient, or None."""

    def __init__(self, data: float, grad: float | None) -> None:
        self.data, self.grad = data, grad


@pytest.mark.parametrize("count", [4, 40])
def test_14_of_many_objects_some_have_no_gradient(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is None, in these and in those that get it later."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    mine, other = ([Frozen(0.1 * k, None if k % 3 else 0.0) for k in range(count)] for _ in range(2))

    def training(things: list[Frozen]) -> Callable[[float], float]:
        def step(x: float) -> float:
            for p in things:
                if p.grad is not None:
                    p.grad += x * p.data
                p.data -= 0.01 * x
            return things[1].data

        return step

    step, plain = compiled(training(mine)), training(other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(9):
            if number > 4:
                mine[3].grad = other[3].grad = None if number % 2 else 0.25
            assert step(0.1 * number) == plain(0.1 * number)
            assert [(p.data, p.grad) for p in mine] == [(p.data, p.grad) for p in other]
    assert step.stats.calls >= 5
