"""Calls that plain Python makes as well: when, what they leave, and what happens when a kernel is wrong."""

from __future__ import annotations

import math
import random
import warnings
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.base import settings
from mgjit.compiler.build.options import Options, StepOptions
from mgjit.engine.precision import PRECISIONS
from mgjit.errors import ArgumentValueError, IndexRangeError, MismatchWarning, UnsupportedError
from mgjit.runtime.kernel import Kernel
from mgjit.tracing.call.results import Result
from mgjit.tracing.surroundings.guard import Guard
from mgjit.verification import trial
from mgjit.verification.comparison import differences, is_same
from mgjit.verification.holders import described
from mgjit.verification.snapshot import Snapshot
from mgjit.verification.trial import Trial, plain_seconds, reason_without_trial

pytestmark = pytest.mark.filterwarnings("default::mgjit.errors.MismatchWarning")


@pytest.fixture(autouse=True)
def verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_VERIFY", "always")


class Node:
    """Somebody's node, with its own backward()."""

    def __init__(self, data: float, children: tuple[Any, ...] = (), factors: tuple[float, ...] = ()) -> None:
        self.data, self.grad = data, 0.0
        self.children, self.factors = children, factors

    def __add__(self, other: Any) -> Node:
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Node:
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[Node] = []
        seen = set()

        def visit(node: Node) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, factor in zip(node.children, node.factors):
                child.grad += factor * node.grad


class Trainer:
    """A step over everything that a step may change, decorated or not."""

    def __init__(self, decorate: Callable[[Any], Any]) -> None:
        random.seed(5)
        self.model = nn.MLP(3, [4, 2])
        self.nodes = [Node(0.1 * k) for k in range(20)]
        self.single = Node(0.5)
        self.moments = [0.0] * 20
        self.state = mgjit.zeros(2)
        self.options = {"rate": 0.1}
        self.calls = 0
        self.step = decorate(self.plain)

    def plain(self, xs: list[float], target: float, extra: mgjit.Value) -> Any:
        self.calls += 1
        self.options["rate"] *= 0.99
        loss = sum((out - target) ** 2 for out in self.model(xs)) + extra * extra * random.random()
        self.model.zero_grad()
        extra.grad = 0.0
        loss.backward()
        for p in self.model.parameters():
            p.data -= self.options["rate"] * p.grad
        own = self.single
        for node, x in zip(self.nodes, xs * 6):
            own = own + node * Node(x)
        own.backward()
        for k, node in enumerate(self.nodes):
            self.moments[k] = 0.5 * self.moments[k] + node.grad
            node.data -= 0.01 * self.moments[k]
            node.grad = 0.0
        self.state[0] += own.data
        return {"loss": loss, "calls": self.calls, "own": own.data}

    def numbers(self) -> list[Any]:
        parameters = [(p.data, p.grad) for p in self.model.parameters()]
        nodes = [(node.data, node.grad) for node in [*self.nodes, self.single]]
        return [*parameters, *nodes, *self.moments, *self.state, self.options["rate"], self.calls, random.getstate()]


def trained(trainer: Trainer, calls: int) -> Iterator[list[Any]]:
    """What the trainer has after each call."""
    extras = [mgjit.Value(0.25) for _ in range(calls)]
    for k in range(calls):
        result = trainer.step([0.1 * k, 0.2, 0.3], 1.0, extras[k])
        loss = getattr(result["loss"], "data", result["loss"])
        yield [*trainer.numbers(), loss, result["calls"], result["own"], extras[k].data, extras[k].grad]


def run(decorate: Callable[[Any], Any], calls: int = 6) -> list[Any]:
    return list(trained(Trainer(decorate), calls))


# ---- when nothing is wrong ------------------------------------------------------------------------------


def test_01_the_numbers_are_those_of_the_undecorated_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it changes, and random numbers as well; of each kernel the second call, and a later one."""
    monkeypatch.setattr(trial, "_EARLIEST", 8)
    monkeypatch.setattr(trial, "_LATEST", 10)
    made = []

    def decorate(step: Any) -> Any:
        made.append(mgjit.compile(step))
        return made[0]

    wanted = run(lambda step: step, 30)
    assert run(decorate, 30) == wanted
    stats = made[0].stats
    assert stats.traces == 2  # the second for other argument Values, and for all further calls
    assert stats.compared_calls == 2
    assert stats.calls == 30
    assert not stats.mismatches


def test_02_a_result_is_that_of_a_compiled_step() -> None:
    """A float with `.data`, not a Value."""
    p = mgjit.Value(2.0)

    @mgjit.compile
    def step(x: float) -> Any:
        return p * x, [p.data, 3], {"a": p + x}

    results = [step(x) for x in (1.0, 2.0, 3.0)]
    types = [[type(a), type(b), type(c), type(d["a"])] for a, (b, c), d in results]
    assert types == [[Result, float, int, Result]] * 3
    assert step.stats.compared_calls == 1


def test_03_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, and by the variable, which wins."""
    monkeypatch.delenv("MGJIT_VERIFY")

    def step(x: float) -> float:
        return x + 1.0

    never = mgjit.compile(step, verify="never")
    for k in range(20):
        never(float(k))
    assert never.stats.compared_calls == 0
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    always = mgjit.compile(step, verify="never")
    for k in range(20):
        always(float(k))
    assert always.stats.compared_calls >= 1
    monkeypatch.setenv("MGJIT_VERIFY", "sometimes")
    with pytest.raises(ArgumentValueError, match="MGJIT_VERIFY='sometimes' is none of auto, always, never"):
        mgjit.compile(step)(1.0)
    with pytest.raises(ArgumentValueError, match="verify must be one of"):
        mgjit.compile(verify="sometimes")


def test_04_where_it_is_not_compared() -> None:
    """Where Python has other numbers, where other threads write, and where plain Python takes too long."""
    options = StepOptions(verify="always")
    assert reason_without_trial(options, 1e6) == ""
    assert "float32" in reason_without_trial(replace(options, precision=PRECISIONS["float32"]), 0.1)
    assert "fast" in reason_without_trial(replace(options, code=Options(mode="fast")), 0.1)
    assert "lock" in reason_without_trial(replace(options, lock=False), 0.1)


def test_05_auto_depends_on_the_time_of_a_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is estimated from the trace."""
    monkeypatch.delenv("MGJIT_VERIFY")
    assert settings.verify("auto") == "auto"
    assert reason_without_trial(StepOptions(), 0.9) == ""
    assert plain_seconds(10.0, 100_000) < 1.0 < plain_seconds(1.0, 1_000_000)
    assert plain_seconds(0.4, 1_000_000) < 1.0 < plain_seconds(0.4, 1_000, in_nests=10**10)
    assert "may take 1000.0 s" in reason_without_trial(StepOptions(), 1000.0)


def test_06_the_later_call_cannot_be_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies between the 8th and the 1000th after the first comparison, and uses no generator of the user's."""
    monkeypatch.setattr(trial, "_EARLIEST", 8)
    random.seed(3)
    before = random.getstate()
    lefts = set()
    for _ in range(50):
        made = Trial()
        assert made.is_due()
        made.passed()
        assert 8 <= made.left <= 1000
        lefts.add(made.left)
    assert len(lefts) > 10
    assert random.getstate() == before


def test_07_division_by_zero_is_as_in_every_other_call() -> None:
    """Plain Python raises; compiled arithmetic goes on with inf, in the call that is compared as well."""
    p = mgjit.Value(1.0)

    @mgjit.compile
    def step(x: float) -> Any:
        p.data = p.data + 1.0
        return 1.0 / x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(1.0)
    assert [step(0.0), step(0.0)] == [float("inf")] * 2
    assert p.data == 4.0
    assert step.stats.compared_calls == 0
    assert step(2.0) == 0.5
    assert step.stats.compared_calls == 1


def test_08_a_refused_call_does_nothing() -> None:
    """An index out of range, at the call that would be compared."""
    table = [mgjit.Value(float(k)) for k in range(4)]

    @mgjit.compile
    def step(k: int) -> Any:
        return table[k] * 2.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert step(1) == 2.0
    with pytest.raises(IndexRangeError):
        step(7)
    assert step.stats.calls == 1
    assert step(3) == 6.0
    assert step.stats.compared_calls == 1


def test_09_an_interruption_leaves_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in plain Python, and Ctrl-C in the kernel."""
    p = mgjit.Value(1.0)
    stop = [False]

    @mgjit.compile
    def step(x: float) -> Any:
        p.data = p.data + x
        if stop[0]:
            stop[0] = False
            raise KeyboardInterrupt
        return p * x

    step(1.0)
    stop[0] = True
    with monkeypatch.context() as patch:
        patch.setattr(Guard, "difference", lambda self: "")  # which would notice that it is to be stopped
        with pytest.raises(KeyboardInterrupt):
            step(1.0)
    assert (p.data, step.stats.calls) == (2.0, 1)
    stop[0] = False

    def interrupted(self: Kernel, *arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "perform", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(1.0)
    assert (p.data, step.stats.calls) == (2.0, 1)
    assert (step(1.0), p.data, step.stats.calls) == (3.0, 3.0, 2)


def test_13_fast_calls_are_fast_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the last comparison is made, calls begin with the generated function itself."""
    monkeypatch.setattr(trial, "_EARLIEST", 8)
    monkeypatch.setattr(trial, "_LATEST", 8)

    @mgjit.compile
    def step(x: float) -> float:
        return x * 3.0

    for k in range(20):
        assert step(float(k)) == 3.0 * k
    assert step.stats.compared_calls == 2
    assert step.stats.calls == 20
    assert step.__call__.__code__.co_filename.endswith("<generated call>")


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_14_rows_of_a_loop(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second row of the first loop is compared; the columns are as ever, in every kind of result."""
    data = [array("d", [0.1 * k, 1.0 - k]) for k in range(9)]
    flat = memoryview(array("d", [number for row in data for number in row])).cast("B").cast("d", [9, 2])

    def trained(decorate: Callable[[Any], Any], xs: Any, verify: str) -> Any:
        monkeypatch.setenv("MGJIT_VERIFY", verify)
        random.seed(1)
        p = mgjit.Value(0.5)

        def step(x: Any, k: int, rate: float) -> Any:
            loss = (p * x[0] + x[1] * random.random()) ** 2
            p.grad = 0.0
            loss.backward()
            p.data -= rate * p.grad
            return {"loss": loss, "k": k, "name": "step"}

        compiled = decorate(step)
        found = compiled.loop(xs, list(range(9)), 0.1)
        return found, p.data, p.grad, random.getstate(), compiled

    def decorate(step: Any) -> Any:
        return mgjit.compile(step, backend=backend)

    for xs in (data, flat):
        *wanted, step = trained(decorate, xs, "never")
        assert step.stats.compared_calls == 0
        *found, step = trained(decorate, xs, "always")
        assert found == wanted
        assert step.stats.compared_calls == 1
        assert step.stats.calls == 9


@pytest.mark.parametrize("length", [1, 2, 3])
def test_15_short_loops(length: int) -> None:
    """Also of steps that return no numbers."""
    p = mgjit.Value(0.0)

    @mgjit.compile
    def step(x: float) -> None:
        p.data = p.data + x

    for _ in range(3):
        step.loop([1.0] * length)
    assert p.data == 3.0 * length
    assert step.stats.calls == 3 * length
    assert step.stats.compared_calls == 1


@pytest.mark.parametrize("count", [3, 20])
def test_17_plain_python_sees_ordinary_objects(count: int) -> None:
    """Also of parameters in the memory of the kernel: their class, and gradients that are None in between."""
    nodes = [Node(0.1 * k) for k in range(count)]
    values = [mgjit.Value(0.1 * k) for k in range(count)]

    @mgjit.compile
    def step(x: float) -> Any:
        for node in nodes:
            node.grad = None
        if type(nodes[0]) is not Node or any(type(value) is not mgjit.Value for value in values):
            raise TypeError("these are no ordinary objects")
        for node, value in zip(nodes, values):
            if node.grad is None:
                node.grad = 0.0
            node.grad += x
            node.data -= 0.1 * node.grad * value.data
            value.data += 1.0
        return len(nodes)

    for k in range(3):
        step(float(k))
    assert step.stats.compared_calls == 1
    assert [node.grad for node in nodes] == [2.0] * count
    assert type(values[0]) is not mgjit.Value


# ---- when a kernel is wrong -----------------------------------------------------------------------------


def broken(monkeypatch: pytest.MonkeyPatch, parameter: mgjit.Value) -> None:
    """Let all kernels add something to a parameter."""
    perform = Kernel.perform

    def wrong(self: Kernel, *arguments: Any) -> None:
        perform(self, *arguments)
        parameter.data = parameter.data + 2.0**-40

    monkeypatch.setattr(Kernel, "perform", wrong)


def test_10_a_difference_is_said_and_the_step_is_plain_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the place and both numbers."""
    p = mgjit.Value(1.0)

    @mgjit.compile
    def step(x: float) -> Any:
        p.data = p.data + x
        return p * x

    step(1.0)
    broken(monkeypatch, p)
    with pytest.warns(MismatchWarning, match=r"kernel of step is wrong: the variable p\.data is 3\.0 \(0x1.8.*plain"):
        result = step(1.0)
    assert type(result).__name__ == "Result"
    assert (result, p.data) == (3.0, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            step(1.0)
    assert p.data == 23.0
    assert step.stats.plain_calls == 20
    assert "plain Python" in step.stats.plain_reasons[0]


def test_11_other_structures_keep_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the structure whose kernel was wrong is plain."""
    p = mgjit.Value(1.0)

    @mgjit.compile
    def step(xs: list[float]) -> Any:
        p.data = p.data + sum(xs)
        return p * 1.0

    step([1.0])
    with monkeypatch.context() as patch:
        broken(patch, p)
        with pytest.warns(MismatchWarning):
            step([1.0])
    calls = step.stats.calls
    assert [step([1.0, 2.0]) for _ in range(3)] == [6.0, 9.0, 12.0]
    assert step.stats.calls == calls + 3
    assert step([1.0]) == 13.0
    assert step.stats.plain_calls == 1


def test_11_phases_of_a_wrong_kernel_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong to the same trace: not even those that have been built."""
    p = mgjit.Value(1.0)

    @mgjit.compile
    def step(x: float) -> Any:
        p.grad = 0.0
        (p * x).backward()
        p.data = p.data + p.grad
        return p * 1.0

    step.forward(1.0)
    step(1.0)
    with monkeypatch.context() as patch:
        broken(patch, p)
        with pytest.warns(MismatchWarning):
            step(1.0)
    with pytest.raises(UnsupportedError, match="its kernel is wrong"):
        step.forward(1.0)


def test_12_an_exception_of_plain_python_alone_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel goes on where the step raises: the caller gets the exception, and nothing has changed."""
    p = mgjit.Value(1.0)
    stop = [False]

    @mgjit.compile
    def step(x: float) -> Any:
        p.data = p.data + x
        if stop[0]:
            raise ValueError("stopped")
        return p * x

    assert step(1.0) == 2.0
    stop[0] = True
    monkeypatch.setattr(Guard, "difference", lambda self: "")  # which would notice that it is to be stopped
    message = "plain Python raises ValueError: stopped, and the compiled step does not"
    with pytest.warns(MismatchWarning, match=message), pytest.raises(ValueError, match="stopped"):
        step(1.0)
    assert p.data == 2.0
    stop[0] = False
    assert step(1.0) == 3.0
    assert step.stats.plain_calls == 1


def test_16_a_loop_with_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows after the one that shows it are plain."""
    p = mgjit.Value(1.0)

    @mgjit.compile
    def step(x: float) -> Any:
        p.data = p.data + x
        return p * 1.0

    step(1.0)
    broken(monkeypatch, p)
    with pytest.warns(MismatchWarning):
        assert list(step.loop([1.0, 2.0, 3.0])) == [3.0, 5.0, 8.0]
    assert p.data == 8.0
    assert step.stats.plain_calls == 2


def test_18_a_step_stays_plain_with_gradients_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects live in the memory of a kernel that is not used any more, and other steps use it."""
    nodes = [Node(1.0) for _ in range(20)]
    other = mgjit.Value(0.0)

    @mgjit.compile
    def step(x: float) -> Any:
        for node in nodes:
            node.grad = None
        for node in nodes:
            if node.grad is None:
                node.grad = x
            node.data += node.grad
        other.data += 1.0
        return x

    @mgjit.compile
    def total(x: float) -> Any:
        return sum([node.data for node in nodes]) * x

    step(1.0)
    with monkeypatch.context() as patch:
        broken(patch, other)
        with pytest.warns(MismatchWarning, match="variable other"):
            step(1.0)
    assert total(1.0) == 60.0
    assert step(1.0) == 1.0
    assert step.stats.plain_calls == 1
    assert [node.data for node in nodes] == [4.0] * 20
    assert total(1.0) == 80.0


def test_19_containers_of_a_result_have_to_agree() -> None:
    """Keys and lengths."""
    assert [str(found) for found in differences({1: 2.0}, {2: 2.0}, place="the result", is_result=True)]
    assert not list(differences({1: 2.0}, {2: 2.0}))
    assert [found.place for found in differences([1.0, [2.0]], [1.0, [3.0]])] == ["[1][0]"]


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (0.0, -0.0, False),
        (math.nan, -math.nan, True),
        (1, 1.0, False),
        (True, 1, False),
        (None, 0.0, False),
        (2, 2, True),
    ],
)
def test_20_what_is_the_same(one: Any, other: Any, are_same: bool) -> None:
    """Types and bits."""
    assert is_same(one, other) is are_same
    assert is_same(other, one) is are_same


def test_a_variable_of_an_inner_function_is_named_by_itself() -> None:
    """Not behind the name of the function."""

    def outer() -> Any:
        kept = [1.0]

        def inner() -> float:
            return kept[0]

        return inner

    found = Snapshot([("step", outer())])
    assert "the variable kept" in {described(holder.path) for holder in found.holders}
