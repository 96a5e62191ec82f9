"""Copies and pickles of models, of steps and of what they work on."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import PrecisionError

RATE = 0.1


class Model:
    """Parameters, state, a compiled method, and one that is compiled for each instance."""

    def __init__(self) -> None:
        self.rate = 0.1
        self.w = [Value(0.5), Value(-0.25)]
        self.velocity = mgjit.zeros(2)
        self.evaluate = mgjit.compile(self.score)

    def score(self, xs: Any) -> Any:
        """Undecorated."""
        return sum(w * x for w, x in zip(self.w, xs))

    @mgjit.compile
    def step(self, xs: Any) -> Any:
        """Train."""
        return self.plain(xs)

    def plain(self, xs: Any) -> Any:
        """The same, undecorated."""
        loss = (self.score(xs) - 1.0) ** 2
        for w in self.w:
            w.grad = 0.0
        loss.backward()
        for k, w in enumerate(self.w):
            self.velocity[k] = 0.9 * self.velocity[k] + w.grad
            w.data = w.data - self.rate * self.velocity[k]
        return loss

    def numbers(self) -> list[float]:
        """Everything."""
        return [w.data for w in self.w] + [w.grad for w in self.w] + list(self.velocity)


def through_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - what the test is about


COPIES = pytest.mark.parametrize("clone", [copy.deepcopy, through_pickle], ids=["deepcopy", "pickle"])


@COPIES
def test_01_a_model(clone: Callable[[Any], Any]) -> None:
    """The copy of a compiled model is independent, and both go on as the undecorated one."""
    model, plain = Model(), Model()
    for _ in range(4):
        model.step([1.0, 2.0])
        plain.plain([1.0, 2.0])
    model.evaluate([1.0, 2.0])
    other = clone(model)
    assert other.numbers() == model.numbers()
    for _ in range(3):
        assert other.step([0.5, -1.0]) == plain.plain([0.5, -1.0]).data
        assert other.numbers() == plain.numbers()
    assert other.numbers() != model.numbers()
    assert other.evaluate([1.0, 2.0]) == other.score([1.0, 2.0]).data
    assert model.evaluate([1.0, 2.0]) == model.score([1.0, 2.0]).data
    assert isinstance(other.evaluate, mgjit.CompiledStep)
    assert isinstance(other.step, mgjit.CompiledStep)


def test_02_a_shallow_copy() -> None:
    """Its method works on the copy, not on the original: here, with its rate."""
    model, plain = Model(), Model()
    model.step([1.0, 2.0])
    plain.plain([1.0, 2.0])
    other, other_plain = copy.copy(model), copy.copy(plain)
    other.rate = other_plain.rate = 0.5
    for one, two in ((other, other_plain), (model, plain), (other, other_plain)):
        assert one.step([1.0, 2.0]) == two.plain([1.0, 2.0]).data
        assert one.numbers() == two.numbers()
    assert other.step is other.step
    assert other.step is not model.step


@mgjit.compile
def by_path(x: Any) -> Any:
    """A step of this module."""
    return x * RATE


def undecorated(x: Any, factor: Any) -> Any:
    """A function of this module."""
    return x * factor * RATE


elsewhere = mgjit.compile(dtype="float32")(undecorated)


def test_03_a_step_by_its_import_path() -> None:
    """Is the same step again."""
    for again in (through_pickle(by_path), copy.copy(by_path), copy.deepcopy(by_path)):
        assert again is by_path


def test_04_a_step_under_another_name() -> None:
    """Its name leads to the function: it is compiled again with the same options."""
    assert elsewhere(3.0, 0.1) != undecorated(3.0, 0.1)
    again = through_pickle(elsewhere)
    assert isinstance(again, mgjit.CompiledStep)
    assert again(3.0, 0.1) == elsewhere(3.0, 0.1)
    assert copy.deepcopy(elsewhere) is elsewhere


def test_05_a_local_step() -> None:
    """Copies are the step itself, as of functions; a pickle cannot name it."""
    step = mgjit.compile(lambda x: x + 1.0)
    assert copy.deepcopy([step])[0] is step
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(step)


def test_06_partials_and_objects() -> None:
    """A partial and an object with `__call__` are steps, are watched, copied and pickled."""
    global RATE

    factor = Value(2.0)
    for function in (functools.partial(undecorated, factor=factor), Caller(factor)):
        step = mgjit.compile(function)
        assert step(3.0) == 3.0 * 2.0 * 0.1
        try:
            RATE = 0.3
            assert step(3.0) == 3.0 * 2.0 * 0.3
        finally:
            RATE = 0.1
        for again in (copy.deepcopy(step), through_pickle(step)):
            factor.data = 5.0
            assert again(3.0) == 3.0 * 2.0 * 0.1
            factor.data = 2.0


class Caller:
    """An object that is called, as its base class says."""

    def __init__(self, factor: Value) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor * RATE


def test_07_in_a_step() -> None:
    """A copy that is made inside of a step has the numbers of the moment, not those of the trace."""
    w = Value(2.0)

    def plain(x: Any) -> Any:
        other = copy.deepcopy(w)
        loss = other * w * x
        loss.backward()
        w.data = w.data + other.grad
        return loss, other.data, copy.copy(w).data

    twin = [Value(2.0)]
    step = mgjit.compile(plain)
    got = [tuple(map(float, step(x))) for x in (1.0, 2.0, 0.5, 3.0)]
    w.data, w.grad = twin[0].data, 0.0
    expected = [tuple(float(getattr(y, "data", y)) for y in plain(x)) for x in (1.0, 2.0, 0.5, 3.0)]
    assert got == expected


def test_08_a_step_of_another_precision_inside() -> None:
    """It would get the numbers of the outer one: refused."""
    inner = mgjit.compile(dtype="float32")(lambda x: x * 0.1)
    outer = mgjit.compile(lambda x: inner(x) + 1.0)
    for _ in range(2):
        with pytest.raises(PrecisionError, match=r"test_step_copies\.py:\d+: .*float32 step, is called in a float64"):
            outer(2.0)
    same = mgjit.compile(dtype="float32")(lambda x: inner(x) + 1.0)
    assert same(2.0) == mgjit.compile(dtype="float32")(lambda x: x * 0.1 + 1.0)(2.0)


def use(step: Any, model: Any, queue: Any) -> None:
    """In another process."""
    queue.put((float(step(2.0)), float(model.step([1.0, 2.0])), model.numbers()))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_09_other_processes(method: str) -> None:
    """Steps and models as arguments of a process, after they have been compiled here."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {method}")
    model, plain = Model(), Model()
    for _ in range(3):
        model.step([1.0, 2.0])
        plain.plain([1.0, 2.0])
    by_path(1.0)
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=use, args=(by_path, model, queue))
    process.start()
    result = queue.get(timeout=60)
    process.join()
    loss = plain.plain([1.0, 2.0]).data
    assert result == (2.0 * 0.1, loss, plain.numbers())
    assert model.step([1.0, 2.0]) == loss
    assert model.numbers() == plain.numbers()


def test_10_a_step_of_main(tmp_path: Path) -> None:
    """Pickled by a script that is `__main__`."""
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, mgjit\n"
        "@mgjit.compile\n"
        "def step(x):\n"
        "    return x * 3.0\n"
        "if __name__ == '__main__':\n"
        "    assert pickle.loads(pickle.dumps(step)) is step\n"
        "    print(step(2.0))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "6.0\n"


class Optional:
    """An object that may have a gradient."""

    def __init__(self) -> None:
        self.data = 1.0
        self.grad: Any = None


@pytest.mark.parametrize("count", [3, 40])
def test_11_none_stays_none_unless_the_step_puts_a_number_there(count: int) -> None:
    """However many objects there are."""

    def training() -> tuple[list[Any], Any]:
        things = [Optional() for _ in range(count)]

        def step(xs: list[float]) -> float:
            for p in things:
                p.data += sum(xs) if p.grad is None else p.grad
            return float(things[1].data)

        return things, step

    (mine, step), (other, undecorated) = training(), training()
    compiled = mgjit.compile(step)
    for number, xs in enumerate([[1.0], [1.0, 2.0], [1.0], [0.5], [1.0, 2.0], [0.25]]):
        if number == 3:
            mine[1].grad = other[1].grad = 4.0
        assert compiled(xs) == undecorated(xs)
        assert [vars(p) for p in mine] == [vars(p) for p in other]
