"""Steps that begin later: of objects that live for a few calls, and of functions that are decorated again."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.base.ffi import PYPY
from mgjit.step.step import CompiledStep, LaterStep
from mgjit.tensor.memory import Memory

pytestmark = [
    pytest.mark.skipif(PYPY, reason="there, what is known of other steps decides nothing"),
    pytest.mark.usefixtures("only_thread"),
]


class Net:
    """With a step."""

    def __init__(self) -> None:
        self.w = [0.5, 0.25]

    @mgjit.compile
    def step(self, x: float, y: float) -> float:
        """One step."""
        error = self.w[0] * x + self.w[1] - y
        self.w[0] -= 0.01 * error * x
        self.w[1] -= 0.01 * error
        return error


def bare(net: Net, x: float, y: float) -> float:
    return Net.step._function(net, x, y)  # type: ignore[attr-defined,no-any-return]


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have each step traced at its first call."""
    monkeypatch.delenv("MGJIT_BACKGROUND", raising=False)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.1)
    monkeypatch.setattr(Memory, "exists", False)  # tensors of other tests


@pytest.fixture
def short_lives() -> None:
    """Some objects have come and gone."""
    for _ in range(5):
        made = Net()
        for _ in range(3):
            made.step(0.5, 0.3)


def later_net() -> Net:
    """One of those whose steps begin later, which most do."""
    return next(made for made in (Net() for _ in range(3)) if type(made.step) is LaterStep)


def test_01_few_calls_need_no_step(short_lives: None) -> None:
    """Results, attributes and what `vars` shows are those of the function."""
    begun = 0
    for k in range(200):
        mine, theirs = Net(), Net()
        for n in range(3):
            assert mine.step(0.1 * k, 0.3 * n) == bare(theirs, 0.1 * k, 0.3 * n)
        assert vars(mine) == vars(theirs)
        assert isinstance(mine.step, CompiledStep)
        begun += type(mine.step) is not LaterStep
    assert 1 <= begun <= 10


def test_02_more_calls_begin_it(short_lives: None) -> None:
    mine, theirs = later_net(), Net()
    for n in range(2000):
        assert mine.step(0.01 * n, 0.5) == bare(theirs, 0.01 * n, 0.5)
    assert type(mine.step) is CompiledStep
    assert mine.step.stats.all_calls == 2000
    mine.step.wait()
    assert mine.step(1.0, 0.5) == bare(theirs, 1.0, 0.5)
    assert mine.w == theirs.w


@pytest.mark.parametrize(
    "use",
    [
        lambda step: step.stats.all_calls == 2,
        lambda step: step.loop([0.5], [0.25]) is not None,
        lambda step: step.wait() is True,
        lambda step: "compiled step" in repr(step),
        lambda step: copy.copy(step) is step,
        lambda step: copy.deepcopy(step)(0.5, 0.25) is not None,
        lambda step: pickle.loads(pickle.dumps(step))(0.5, 0.25) is not None,  # noqa: S301
        lambda step: step.__wrapped__.__name__ == "step",
        lambda step: not hasattr(step, "nothing"),
    ],
)
def test_03_anything_else_begins_it(short_lives: None, use: Callable[[Any], bool]) -> None:
    net = later_net()
    for _ in range(2):
        net.step(0.5, 0.25)
    step: Any = net.step
    assert (step.__name__, step.__qualname__, step.__doc__) == ("step", "Net.step", "One step.")
    assert use(step)
    assert net.step is step


def test_04_other_threads(short_lives: None) -> None:
    """Then calls take turns, as those of all steps."""
    net, end = later_net(), threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    net.step(0.5, 0.25)
    end.set()
    other.join()
    assert type(net.step) is CompiledStep


def test_05_steps_in_such_steps_are_a_part_of_them() -> None:
    """What an inner one returns has its graph, whichever of them begin later."""

    class Layer:
        def __init__(self) -> None:
            self.w = Value(0.5)

        @mgjit.compile
        def forward(self, x: Any) -> Any:
            return self.w * x

    class Model:
        def __init__(self) -> None:
            self.layers = [Layer(), Layer()]

        @mgjit.compile
        def step(self, x: float) -> float:
            out: Any = x
            for layer in self.layers:
                out = layer.forward(out)
            out.backward()
            return out.data  # type: ignore[no-any-return]

    for k in range(150):
        model = Model()
        for n in range(1, 3):
            assert model.step(0.5 + k) == 0.25 * (0.5 + k)
            assert [layer.w.grad for layer in model.layers] == [0.5 * n * (0.5 + k)] * 2
        layer = Layer()
        assert float(layer.forward(2.0)) == 1.0


def test_06_functions_that_are_decorated_again() -> None:
    def train(rate: float) -> tuple[float, Any]:
        w = [0.5]

        @mgjit.compile
        def step(x: float) -> float:
            w[0] -= rate * x
            return w[0]

        for n in range(4):
            step(0.1 * n)
        return w[0], step

    steps = [train(0.1 * k) for k in range(60)]
    for k, (weight, _) in enumerate(steps):
        expected = 0.5
        for n in range(4):
            expected -= 0.1 * k * (0.1 * n)
        assert weight == expected
    assert sum(type(step) is LaterStep for _, step in steps) >= 50
    with pytest.raises(mgjit.errors.ArgumentError):
        mgjit.compile(static="nothing")(steps[-1][1].__wrapped__)
