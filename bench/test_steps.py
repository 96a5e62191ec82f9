"""Five steps, each interpreted, compiled, as generated Python, and by micrograd and numpy where installed.

    python -m pytest bench/test_steps.py --benchmark-only

A group a step; `extra_info` of the JSON report (`--benchmark-json`) has how many times the interpreted step's
speed an entry is.  Before anything is timed, the losses of the first calls are compared with those of the
interpreted step: bit for bit for mgjit, within `TOLERANCE` for the peers, which add in another order.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import mgjit
from bench.mnist import in_deep_thread, micrograd_twin
from tests import shapes, training
from tests.workload import Instance

#: Relative difference of losses that a sum in another order may have, after a few steps.
TOLERANCE = 1e-9

COMPARED_CALLS = 3
SLOW = 0.1  # seconds of a call from which on five calls are timed, not calibrated rounds

Step = Callable[..., Any]
Peer = Callable[[list[mgjit.Value]], Step]

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(max_time=0.5, min_rounds=5, warmup=False)]


@dataclass(frozen=True)
class Workload:
    """A step of tests/training.py or tests/shapes.py, and the same mathematics elsewhere."""

    make: Callable[[], Instance]
    numpy: Peer
    micrograd: Peer | None
    why_not: str = ""


# ---- micrograd -----------------------------------------------------------------------------------------


def micrograd_xor(parameters: list[mgjit.Value]) -> Step:
    """XOR 2-4-1, four points a step."""
    model = micrograd_twin(parameters, (2, 4, 1))

    def step(xs: Any, ys: Any, lr: float) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return step


def micrograd_moons(parameters: list[mgjit.Value]) -> Step:
    """Two moons, batch of 100: hinge loss and L2."""
    model = micrograd_twin(parameters, (2, 16, 16, 1))

    def step(xs: Any, ys: Any, lr: float) -> Any:
        losses = [(1 + -y * model(x)).relu() for x, y in zip(xs, ys)]
        loss = sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return step


def micrograd_image(sizes: tuple[int, ...], scale: float) -> Peer:
    """An image a step: the step of mgjit, with micrograd's network in it."""
    return lambda parameters: training.image_step(micrograd_twin(parameters, sizes), scale)


# ---- numpy ---------------------------------------------------------------------------------------------


class NumpyMLP:
    """Weights as matrices; relu except after the last layer; rows are samples."""

    def __init__(self, parameters: list[mgjit.Value], sizes: tuple[int, ...]) -> None:
        import numpy as np

        self.weights, self.biases = [], []
        numbers = np.array([p.data for p in parameters])
        for inputs, outputs in zip(sizes, sizes[1:]):
            block, numbers = numbers[: outputs * (inputs + 1)], numbers[outputs * (inputs + 1) :]
            rows = block.reshape(outputs, inputs + 1)
            self.weights.append(rows[:, :-1].T.copy())
            self.biases.append(rows[:, -1].copy())

    def forward(self, x: Any) -> list[Any]:
        """The input and the output of every layer."""
        outputs = [x]
        last = len(self.weights) - 1
        for number, (w, b) in enumerate(zip(self.weights, self.biases)):
            x = x @ w
            x += b
            if number != last:
                x *= x > 0
            outputs.append(x)
        return outputs

    def descend(self, outputs: list[Any], d: Any, lr: float, decay: float = 0.0) -> None:
        """Backward from the gradient of the scores, and the update of each layer."""
        for number in range(len(self.weights) - 1, -1, -1):
            w, b, x = self.weights[number], self.biases[number], outputs[number]
            dw, db = x.T @ d, d.sum(axis=0)
            if number:
                d = (d @ w.T) * (x > 0)
            if decay:
                dw += decay * w
                db += decay * b
            w -= lr * dw
            b -= lr * db


def numpy_xor(parameters: list[mgjit.Value]) -> Step:
    """XOR 2-4-1, four points a step."""
    import numpy as np

    model = NumpyMLP(parameters, (2, 4, 1))

    def step(xs: Any, ys: Any, lr: float) -> float:
        outputs = model.forward(np.array(xs))
        difference = outputs[-1] - np.array(ys, dtype=float)[:, None]
        model.descend(outputs, 2.0 * difference, lr)
        return float((difference * difference).sum())

    return step


def numpy_moons(parameters: list[mgjit.Value]) -> Step:
    """Two moons, batch of 100: hinge loss and L2."""
    import numpy as np

    model = NumpyMLP(parameters, (2, 16, 16, 1))

    def step(xs: Any, ys: Any, lr: float) -> float:
        outputs = model.forward(np.array(xs))
        y = np.array(ys)[:, None]
        margins = 1.0 - y * outputs[-1]
        squares = sum(float((p * p).sum()) for p in [*model.weights, *model.biases])
        loss = float(np.maximum(margins, 0.0).sum()) / len(ys) + 1e-4 * squares
        model.descend(outputs, -y * (margins > 0) / len(ys), lr, decay=2e-4)
        return loss

    return step


def numpy_image(sizes: tuple[int, ...], scale: float) -> Peer:
    """An image a step: squared error against one-hot labels."""

    def make(parameters: list[mgjit.Value]) -> Step:
        import numpy as np

        model = NumpyMLP(parameters, sizes)

        def step(pixels: bytes, label: int, lr: float) -> float:
            outputs = model.forward(np.frombuffer(pixels, np.uint8)[None, :] / scale)
            difference = outputs[-1]
            difference[0, label] -= 1.0
            model.descend(outputs, 2.0 * difference, lr)
            return float((difference * difference).sum())

        return step

    return make


def numpy_rnn(parameters: list[mgjit.Value]) -> Step:
    """Ten time steps of six tanh units, a scalar in and a scalar out."""
    import numpy as np

    n = 6
    numbers = np.array([p.data for p in parameters])
    into, bias, out = numbers[:n].copy(), numbers[n : 2 * n].copy(), numbers[2 * n : 3 * n].copy()
    back = numbers[3 * n :].reshape(n, n).copy()

    def step(xs: Any, target: float, lr: float) -> float:
        states = [np.zeros(n)]
        for x in xs:
            states.append(np.tanh(into * x + back @ states[-1] + bias))
        difference = float(out @ states[-1]) - target
        d = 2.0 * difference * out
        d_out = 2.0 * difference * states[-1]
        d_into, d_bias, d_back = np.zeros(n), np.zeros(n), np.zeros((n, n))
        for t in range(len(xs) - 1, -1, -1):
            d = d * (1.0 - states[t + 1] ** 2)
            d_into += d * xs[t]
            d_bias += d
            d_back += np.outer(d, states[t])
            d = back.T @ d
        for p, g in ((into, d_into), (bias, d_bias), (out, d_out), (back, d_back)):
            p[...] -= lr * g
        return difference**2

    return step


WORKLOADS = {
    "XOR 2-4-1, 4 points": Workload(training.xor, numpy_xor, micrograd_xor),
    "moons 2-16-16-1, batch 100": Workload(training.moons, numpy_moons, micrograd_moons),
    "digits 64-50-10": Workload(training.digits, numpy_image((64, 50, 10), 16.0), micrograd_image((64, 50, 10), 16.0)),
    "random pixels 784-50-10": Workload(
        training.mnist, numpy_image((784, 50, 10), 255.0), micrograd_image((784, 50, 10), 255.0)
    ),
    "RNN, 10 time steps": Workload(shapes.recurrent, numpy_rnn, None, "micrograd has no tanh"),
}
each_workload = pytest.mark.parametrize("name", WORKLOADS)


# ---- the entries, interpreted first --------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        for variable in ("MGJIT_CC", "MGJIT_CFLAGS", "MGJIT_DISABLE"):
            patch.delenv(variable, raising=False)
        yield


@each_workload
def test_interpreted(name: str, benchmark: Any) -> None:
    instance = WORKLOADS[name].make()
    measure(name, "interpreted", benchmark, instance.step, instance)


@each_workload
@pytest.mark.parametrize("backend", ["c", "python"])
def test_mgjit(name: str, backend: str, benchmark: Any) -> None:
    instance = WORKLOADS[name].make()
    step = mgjit.compile(instance.step, backend=backend, background=False)
    losses = [loss_of(step(*arguments)) for arguments in instance.calls[:COMPARED_CALLS]]
    assert [loss.hex() for loss in losses] == [loss.hex() for loss in interpreted_losses(name)]
    measure(name, f"mgjit, {backend}", benchmark, step, instance)


@each_workload
def test_micrograd(name: str, benchmark: Any) -> None:
    make = WORKLOADS[name].micrograd
    if importlib.util.find_spec("micrograd") is None:
        pytest.skip("micrograd is not installed")
    if make is None:
        pytest.skip(WORKLOADS[name].why_not)
    in_deep_thread(lambda: compare_and_measure(name, "micrograd", benchmark, make))


@each_workload
def test_numpy(name: str, benchmark: Any) -> None:
    if importlib.util.find_spec("numpy") is None:
        pytest.skip("numpy is not installed")
    compare_and_measure(name, "numpy", benchmark, WORKLOADS[name].numpy)


def compare_and_measure(name: str, entry: str, benchmark: Any, make: Peer) -> None:
    """A peer: its losses are nearly those of the interpreted step; then its time."""
    instance = WORKLOADS[name].make()
    step = make(instance.parameters)
    losses = [loss_of(step(*arguments)) for arguments in instance.calls[:COMPARED_CALLS]]
    assert losses == pytest.approx(interpreted_losses(name), rel=TOLERANCE, abs=0.0)
    measure(name, entry, benchmark, step, instance)


def measure(name: str, entry: str, benchmark: Any, step: Step, instance: Instance) -> None:
    """Time calls with the arguments of the first one."""
    arguments = instance.calls[0]
    benchmark.group, benchmark.name = name, entry
    started = time.perf_counter()
    step(*arguments)
    if time.perf_counter() - started > SLOW:
        result = benchmark.pedantic(step, arguments, rounds=5)
    else:
        result = benchmark(step, *arguments)
    assert math.isfinite(loss_of(result))
    if benchmark.stats is None:  # --benchmark-disable
        return
    median = benchmark.stats.stats.median
    if entry == "interpreted":
        _interpreted[name] = median
    benchmark.extra_info["times interpreted"] = interpreted_seconds(name) / median


_interpreted: dict[str, float] = {}


def interpreted_seconds(name: str) -> float:
    """Median of an interpreted step: of its own entry, or of three calls when that was deselected."""
    if name not in _interpreted:
        instance = WORKLOADS[name].make()
        times = []
        for _ in range(3):
            started = time.perf_counter()
            instance.step(*instance.calls[0])
            times.append(time.perf_counter() - started)
        _interpreted[name] = statistics.median(times)
    return _interpreted[name]


@functools.cache
def interpreted_losses(name: str) -> list[float]:
    """Losses of the first calls, undecorated."""
    instance = WORKLOADS[name].make()
    return [loss_of(instance.step(*arguments)) for arguments in instance.calls[:COMPARED_CALLS]]


def loss_of(result: Any) -> float:
    """The loss in a result: itself or its first element, a number or a Value of either engine."""
    loss = result[0] if isinstance(result, tuple) else result
    return loss if type(loss) is float else float(loss.data)
