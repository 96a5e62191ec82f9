"""CompiledStep: methods, copies, pickles, steps that share a model."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import copy
import pickle
import struct
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import RetraceWarning

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


@pytest.fixture
def w() -> Value:
    return Value(2.0)


def bits(number: Any) -> bytes:
    return struct.pack("<d", float(getattr(number, "data", number)))


# ---- methods, copies, pickles ------------------------------------------------------------


class Trainer:
    """A model with a compiled method."""

    def __init__(self, seed: int) -> None:
        self.model = nn.MLP(2, [3, 1], seed=seed)
        self.moment = mgjit.zeros(1)

    def plain(self, x: Any, y: Any) -> Any:
        """One step."""
        loss = (self.model(x) - y) ** 2
        self.model.zero_grad()
        loss.backward()
        for p in self.model.parameters():
            p.data -= 0.1 * p.grad
        self.moment[0] = 0.9 * self.moment[0] + loss.data
        return loss

    step = mgjit.compile(plain)

    def numbers(self) -> list[bytes]:
        """Everything that the step changes."""
        return [bits(p.data) for p in self.model.parameters()] + [bits(self.moment[0])]


@mgjit.compile
def module_step(x: float) -> float:
    """A step that pickle finds by name."""
    return x * 2.0


def test_40_two_instances() -> None:
    """Kernels of their own, one shared binary, and no mixing of parameters."""
    steppers = [(Trainer(1), Trainer(1)), (Trainer(2), Trainer(2))]
    for k in range(4):
        for compiled, plain in steppers:
            assert bits(compiled.step([0.5, k], 1.0)) == bits(plain.plain([0.5, k], 1.0))
            assert compiled.numbers() == plain.numbers()
    first, second = steppers[0][0].step, steppers[1][0].step
    assert first is not second
    assert first.stats.kernels == second.stats.kernels
    assert first._kernels.last is not None
    assert second._kernels.last is not None
    assert first._kernels.last.code is second._kernels.last.code


def test_41_the_step_on_the_class(w: Value) -> None:
    """`Trainer.step` without an instance is the step itself and takes the instance as an argument."""
    assert isinstance(Trainer.step, mgjit.CompiledStep)
    trainer, plain = Trainer(3), Trainer(3)
    assert bits(Trainer.step(trainer, [1.0, 2.0], 0.5)) == bits(plain.plain([1.0, 2.0], 0.5))


def test_42_slots_and_static_methods(w: Value) -> None:
    """An instance without a __dict__ works; static methods are decorated below."""

    class Slotted:
        __slots__ = ("p",)

        def __init__(self) -> None:
            self.p = Value(3.0)

        @mgjit.compile
        def step(self, x: float) -> Any:
            return self.p * x

        @staticmethod
        @mgjit.compile
        def twice(x: float) -> Any:
            return w * x

    instance = Slotted()
    with pytest.warns(RetraceWarning, match=r"test_step_models\.py:\d+: step is a method of a Slotted, .*__slots__"):
        assert float(instance.step(2.0)) == 6.0
    with pytest.warns(RetraceWarning):
        assert float(instance.step(3.0)) == 9.0
    assert float(instance.twice(4.0)) == 8.0


@pytest.mark.parametrize(
    "clone",
    [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],  # noqa: S301
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize("called", [False, True])
def test_43_copies_of_a_model_with_a_compiled_method(clone: Callable[[Any], Any], called: bool) -> None:
    """A copy has parameters of its own and continues from the same numbers; the original goes on by itself."""
    compiled, plain = Trainer(4), Trainer(4)
    if called:
        compiled.step([1.0, -1.0], 0.5)
        plain.plain([1.0, -1.0], 0.5)
    copied, plain_copy = clone(compiled), copy.deepcopy(plain)
    assert copied.numbers() == plain_copy.numbers()
    copied.step([0.3, 0.4], 1.0)
    plain_copy.plain([0.3, 0.4], 1.0)
    assert copied.numbers() == plain_copy.numbers()
    assert compiled.numbers() == plain.numbers()
    compiled.step([2.0, 0.1], -1.0)
    plain.plain([2.0, 0.1], -1.0)
    assert compiled.numbers() == plain.numbers()
    assert copied.numbers() == plain_copy.numbers()


def test_44_copies_of_a_step() -> None:
    """A step at module level is copied and pickled by name, as functions are."""
    assert module_step(1.5) == 3.0
    assert pickle.loads(pickle.dumps(module_step)) is module_step  # noqa: S301
    assert copy.deepcopy(module_step) is module_step
    assert copy.copy(module_step)(2.0) == 4.0


# ---- shared memory ------------------------------------------------------------


@BACKENDS
def test_50_two_steps_share_a_model(backend: str) -> None:
    """A training step and an evaluation step, compiled apart, see each other's parameters."""
    model, plain_model = nn.MLP(2, [4, 1]), nn.MLP(2, [4, 1])

    def make(m: nn.MLP) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
        def step(x: Any, y: Any) -> Any:
            loss = (m(x) - y) ** 2
            m.zero_grad()
            loss.backward()
            for p in m.parameters():
                p.data -= 0.1 * p.grad
            return loss

        return step, lambda x: m(x), lambda: m.layers[0].neurons[1].b.data * 2.0

    plain = make(plain_model)
    steps = [mgjit.compile(backend=backend)(function) for function in make(model)]
    for k in range(3):
        assert bits(steps[2]()) == bits(plain[2]())
        assert bits(steps[0]([0.2 * k, 1.0], 0.5)) == bits(plain[0]([0.2 * k, 1.0], 0.5))
        assert bits(steps[1]([0.2 * k, 1.0])) == bits(plain[1]([0.2 * k, 1.0]))
    assert [bits(p.data) for p in model.parameters()] == [bits(p.data) for p in plain_model.parameters()]


@BACKENDS
def test_51_changed_from_python(w: Value, backend: str) -> None:
    """Data, gradients and state assigned between calls are what the next call starts from."""
    s = mgjit.state([1.0, 2.0])

    def plain(x: float) -> Any:
        loss = w * x + s[1]
        loss.backward()
        s[0] = s[0] + 1.0
        return loss

    step = mgjit.compile(backend=backend)(plain)
    assert step(1.0) == 4.0
    w.data, w.grad, s[1], s[0] = -3.0, 10.0, 0.5, 7.0
    assert step(2.0) == -5.5
    assert (w.grad, s[0]) == (12.0, 8.0)
    y = w * w  # undecorated use of a bound parameter
    y.backward()
    assert (y.data, w.grad) == (9.0, 6.0)
    assert step(1.0) == -2.5
    assert step.stats.traces == 1


def test_52_order_of_first_use_does_not_matter() -> None:
    """Parameters that a second, wider step meets later and in another order."""
    values = [Value(0.1 * (k + 1)) for k in range(6)]
    first = mgjit.compile(lambda x: values[4] * x + values[1])
    second = mgjit.compile(lambda x: sum(v * x for v in reversed(values)))
    assert bits(first(0.7)) == bits(values[4].data * 0.7 + values[1].data)
    expected = 0.0
    for v in reversed(values):
        expected = expected + v.data * 0.7
    assert bits(second(0.7)) == bits(expected)
