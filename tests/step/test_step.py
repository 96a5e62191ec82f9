"""CompiledStep: options, results, phases, threads."""

from __future__ import annotations

import dataclasses
import struct
import threading
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import ArgumentError, PhaseError, UnsupportedError

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


@pytest.fixture
def w() -> Value:
    return Value(2.0)


def bits(number: Any) -> bytes:
    return struct.pack("<d", float(getattr(number, "data", number)))


class Pair(NamedTuple):
    """Two inputs."""

    left: Any
    right: Any


@dataclasses.dataclass
class Batch:
    """Inputs and a static field."""

    xs: Any
    scale: float
    name: str = "train"


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


# ---- options ------------------------------------------------------------


def test_01_options(w: Value) -> None:
    """Bare and with arguments; wrong ones are refused when decorating."""
    assert mgjit.compile()(lambda x: w * x)(1.5) == 3.0
    assert mgjit.compile(mode="fast", grads=False, background=True, cache=False)(lambda x: w * x)(1.5) == 3.0
    assert mgjit.compile(dtype="float32")(lambda x: x)(0.1) == 0.10000000149011612
    for options in ({"dtype": "float16"}, {"mode": "loose"}, {"backend": "java"}):
        with pytest.raises(ValueError, match="must be one of"):
            mgjit.compile(**options)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="names no parameter"):
        mgjit.compile(static="m")(lambda x: w * x)
    for wrong in (3, staticmethod(len)):
        with pytest.raises(ArgumentError):
            mgjit.compile(wrong)  # type: ignore[call-overload]


def test_02_looks_like_the_function() -> None:
    """Name, docstring, signature and repr are those of the function."""

    @mgjit.compile
    def my_step(x: float) -> float:
        """My words."""
        return x

    assert (my_step.__name__, my_step.__doc__) == ("my_step", "My words.")
    assert "my_step" in repr(my_step)
    assert isinstance(my_step, mgjit.CompiledStep)


@BACKENDS
def test_03_stats_and_clear(w: Value, backend: str) -> None:
    """What `.stats` counts; `clear` forgets kernels, not parameters."""
    step = mgjit.compile(backend=backend)(lambda x: sum(w * k for k in x))
    step([1.0] * 50)
    step([2.0] * 50)
    stats = step.stats
    assert (stats.traces, stats.calls, stats.retraces, len(stats.kernels)) == (1, 2, [], 1)
    assert stats.records >= 100
    assert 0 < stats.statements < 20
    assert stats.loops >= 1
    assert stats.backend == ("python" if backend == "python" else stats.backend)
    assert "50 numbers" in stats.kernels[0]
    step([1.0] * 60)
    first, second = stats.members
    assert (first.records, second.records) == (stats.members[0].records, stats.records)
    assert "50 numbers" in first.signature
    assert "60 numbers" in second.signature
    assert first.structure != second.structure
    assert [line.split()[0] for line in stats.table().split("\n")] == ["arguments", "(x:", "(x:"]
    w.data = 3.0
    step.clear()
    assert (step.stats.traces, step.stats.calls) == (0, 0)
    assert step([1.0] * 50) == 150.0


# ---- results ------------------------------------------------------------


@BACKENDS
def test_60_result_trees(w: Value, backend: str) -> None:
    """Any tree of numbers and Values comes back as the same tree of floats; Values also have `.data`."""

    def plain(x: float) -> Any:
        y = w * x
        return {
            "value": y, "number": x * 2.0, "list": [y, x, 1.0, "text", None], "tuple": (y, (x,)),
            "named": Pair(y, x), "class": Batch([y], x, "out"), "data": y.data, "parameter": w, "constant": 3,
        }  # fmt: skip

    step = mgjit.compile(backend=backend)(plain)
    for x in (1.5, -2.0):
        got = step(x)
        assert got["list"] == [2.0 * x, x, 1.0, "text", None]
        assert got["tuple"] == (2.0 * x, (x,))
        assert got["named"] == Pair(2.0 * x, x)
        assert got["class"] == Batch([2.0 * x], x, "out")
        assert (got["value"].data, got["value"], got["number"], got["data"]) == (2.0 * x, 2.0 * x, 2.0 * x, 2.0 * x)
        assert (got["parameter"], got["parameter"].data, got["constant"]) == (2.0, 2.0, 3)
        assert type(got["constant"]) is int
    assert type(got["number"]) is float


def test_61_results_are_copies(w: Value) -> None:
    """A later call does not change the result of an earlier one."""
    step = mgjit.compile(lambda x: [w * x, w])
    first = step(1.0)
    w.data = 9.0
    step(5.0)
    assert first == [2.0, 2.0]


def test_62_none_and_parameters(w: Value) -> None:
    """A step may return nothing at all."""

    @mgjit.compile
    def step(x: float) -> None:
        w.data = w.data * x

    assert step(3.0) is None
    assert w.data == 6.0


# ---- phases ------------------------------------------------------------


@BACKENDS
def test_70_phases(backend: str) -> None:
    """Each phase changes what belongs to it, in order, and again."""
    trainer, plain = Trainer(5), Trainer(5)
    step = mgjit.compile(backend=backend)(lambda x, y: Trainer.plain(trainer, x, y))
    for k in range(3):
        before = trainer.numbers()
        loss = step.forward([1.0, 0.5 * k], 1.0)
        assert trainer.numbers() == before
        assert bits(loss) == bits(plain.plain([1.0, 0.5 * k], 1.0))
        step.backward()
        assert trainer.numbers()[:-1] == before[:-1]
        assert [p.grad for p in trainer.model.parameters()] == [p.grad for p in plain.model.parameters()]
        step.update()
        assert trainer.numbers() == plain.numbers()


def test_71_phases_out_of_order(w: Value) -> None:
    """backward and update continue what came just before, or say so."""
    step = mgjit.compile(lambda x: w * x)
    for phase in (step.backward, step.update):
        with pytest.raises(PhaseError, match=r"test_step\.py:\d+"):
            phase()
    step.forward(1.0)
    with pytest.raises(PhaseError):
        step.update()
    step.backward()
    step.update()
    with pytest.raises(PhaseError):
        step.update()
    step.forward(1.0)
    step(2.0)
    with pytest.raises(PhaseError):
        step.backward()


@BACKENDS
@pytest.mark.parametrize("first", ["step", "phases"])
def test_72_phases_and_steps_alternate(first: str, backend: str) -> None:
    """They have kernels of their own, over the same parameters and state, whichever is made first."""
    trainer, plain = Trainer(5), Trainer(5)
    step = mgjit.compile(backend=backend)(lambda x, y: Trainer.plain(trainer, x, y))
    assert repr(step).endswith("0 kernels>")
    for k in range(6):
        assert k != 1 or repr(step).endswith("1 kernel>")
        x = [1.0, 0.5 * k]
        if k % 2 == (first == "phases"):
            loss = step(x, 1.0)
        else:
            loss = step.forward(x, 1.0)
            step.backward()
            step.update()
        assert bits(loss) == bits(plain.plain(x, 1.0))
        assert trainer.numbers() == plain.numbers()
    assert (step.stats.traces, step.stats.calls) == (2, 6)  # three phases are one call
    assert repr(step).endswith("2 kernels>")


# ---- looking inside ------------------------------------------------------------


def test_80_lower() -> None:
    """graph, C and explanation, without building or running anything."""
    trainer = Trainer(6)
    before = trainer.numbers()
    lowering = trainer.step.lower([1.0, 2.0], 0.5)
    assert trainer.numbers() == before
    assert trainer.step.stats.traces == 0
    assert {"forward:", "backward:"} <= set(lowering.graph.split())
    assert "mgjit_step(" in lowering.c_source
    assert "records traced" in lowering.explain()


# ---- threads ------------------------------------------------------------


def test_90_threads_make_the_first_call_at_once() -> None:
    """Eight threads, one step: one trace, and every result right."""
    w = Value(2.0)
    step = mgjit.compile(lambda x: sum(w * x[k] for k in range(20)))
    start, results = threading.Barrier(8), {}

    def work(number: int) -> None:
        start.wait()
        results[number] = [float(step([float(number + k)] * 20)) for k in range(50)]

    _run([threading.Thread(target=work, args=(number,)) for number in range(8)])
    assert results == {number: [40.0 * (number + k) for k in range(50)] for number in range(8)}
    assert (step.stats.traces, step.stats.calls) == (1, 400)


def test_91_threads_with_models_of_their_own() -> None:
    """Eight trainers, traced and run at once, while another thread computes undecorated."""
    trainers, plains = [Trainer(k) for k in range(8)], [Trainer(k) for k in range(8)]
    start, failures, stop = threading.Barrier(9), [], threading.Event()

    def work(number: int) -> None:
        start.wait()
        for k in range(20):
            trainers[number].step([0.1 * k, 1.0], 0.5)

    def undecorated() -> None:
        start.wait()
        while not stop.is_set():
            a = Value(3.0)
            y = mgjit.maximum(a * 2.0 - a / 4.0, 0.0) ** 2
            y.backward()
            if (y.data, a.grad) != (27.5625, 18.375) or sum([0.5, 0.25]) != 0.75:
                failures.append((y.data, a.grad))

    other = threading.Thread(target=undecorated)
    other.start()
    _run([threading.Thread(target=work, args=(number,)) for number in range(8)])
    stop.set()
    other.join()
    for plain in plains:
        for k in range(20):
            plain.plain([0.1 * k, 1.0], 0.5)
    assert failures == []
    assert [t.numbers() for t in trainers] == [p.numbers() for p in plains]


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_forward_part_that_cannot_be_told_apart_is_refused() -> None:
    """Without a backward pass, all of a step is its forward part: it must not change what is to be trained."""
    weights, value = [0.5, 0.25], Value(0.5)

    def by_hand(x: float) -> float:
        out = weights[0] * x + weights[1]
        weights[0] -= 0.1 * out * x
        return out

    def without_backward(x: float) -> Value:
        out = value * x
        value.data -= 0.1 * x
        return out

    for function in (by_hand, without_backward):
        step = mgjit.compile(function)
        for _ in range(2):
            with pytest.raises(UnsupportedError, match=r"test_step\.py:\d+: .* cannot run its forward part alone"):
                step.forward(1.0)
        assert (weights, value.data) == ([0.5, 0.25], 0.5)
