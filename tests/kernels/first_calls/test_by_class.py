"""A step that gets models of several classes, some of which are plain for good."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.base.ffi import PYPY
from mgjit.base.lookup import classes_of
from mgjit.kernels.first_calls.by_class import for_classes
from mgjit.kernels.first_calls.lives import lives_of


class Linear:
    """Compiles."""

    def __init__(self) -> None:
        self.w = [0.5, 0.25]

    def error(self, x: Any) -> Any:
        return self.w[0] * x + self.w[1]


class Branching(Linear):
    """Does not."""

    def error(self, x: Any) -> Any:
        error = self.w[0] * x + self.w[1]
        while error > 0.2:
            error = error * 0.5
        return error


class Printing(Branching):
    """Nor does this."""


def train(model: Any, x: Any) -> Any:
    error = model.error(x)
    model.w[0] -= 0.01 * error * x
    model.w[1] -= 0.01 * error
    return error


@pytest.fixture(autouse=True)
def refusals_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)


@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning")
@pytest.mark.parametrize("before", [5, 100] if PYPY else [5, 100, 700])  # there, it is the function after 512
def test_01_another_class_is_compiled_after_one_was_refused(before: int) -> None:
    step = mgjit.compile(train, background=False)
    plain, twin = Branching(), Branching()
    for k in range(before):
        assert step(plain, 0.01 * k) == train(twin, 0.01 * k)
    mine, theirs = Linear(), Linear()
    for k in range(before + 30):
        assert step(mine, 0.01 * k) == train(theirs, 0.01 * k)
    assert step.stats.calls >= 20
    assert (mine.w, plain.w) == (theirs.w, twin.w)


@pytest.mark.skipif(PYPY, reason="there, a step that is given up is the function")
def test_02_classes_that_are_given_up_take_turns() -> None:
    """Without a look at each call."""
    step = mgjit.compile(train, background=False)
    models = [Branching(), Printing()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models * 2:
            for _ in range(600):
                step(model, 0.5)
    traces, call = step.stats.traces, step.__call__
    for _ in range(300):
        for model in models:
            step(model, 0.5)
    assert step.__call__ is call
    assert step.stats.traces == traces
    mine, theirs = Linear(), Linear()
    for _ in range(10):
        assert step(mine, 0.5) == train(theirs, 0.5)
    assert step.stats.calls >= 8


@pytest.mark.skipif(PYPY, reason="there, a step that is given up is the function")
def test_03_what_a_call_takes() -> None:
    taken: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> str:
        taken.append((args, kwargs))
        return "known"

    def general(*args: Any, **kwargs: Any) -> str:
        return "general"

    a, b, n = Linear(), Branching(), 1.0
    one = for_classes({classes_of((a, n))}, call, general)
    assert [one(a, n), one(b, n), one(a, n, k=2), one(model=b), one(n, n)] == [
        "known",
        "general",
        "known",
        "known",
        "general",
    ]
    two = for_classes({classes_of((n, a, b)), classes_of((n, b, b))}, call, general)
    assert [two(n, a, b), two(n, b, b), two(n, b, a), two(n)] == ["known", "known", "general", "known"]
    assert for_classes({classes_of((n, n))}, call, general) is call
    assert for_classes({classes_of((a, n)), classes_of((n, a))}, call, general) is call
    many = {(type(f"K{k}", (), {}),) for k in range(8)}
    assert for_classes(many, call, general) is call


@pytest.mark.skipif(PYPY, reason="there, a step that is given up is the function")
def test_04_exceptions_are_the_user_s() -> None:
    def call(*args: Any) -> Any:
        raise KeyError("mine")

    known = for_classes({classes_of((Linear(),))}, call, call)
    for model in (Linear(), Branching()):
        with pytest.raises(KeyError, match="mine") as caught:
            known(model)
        assert [part.name for part in caught.traceback] == ["test_04_exceptions_are_the_user_s", "call"]


def test_05_what_is_known_of_a_code_is_known_by_class() -> None:
    """Of the object of a method, and of what a closure has."""

    def make(model: Any) -> Callable[[Any], Any]:
        def step(x: Any) -> Any:
            return model.error(x)

        return step

    assert lives_of(Linear().error, None) is lives_of(Linear().error, None)
    assert lives_of(make(Linear()), None) is lives_of(make(Linear()), None)
    assert lives_of(make(Linear()), None) is not lives_of(make(Branching()), None)
    for k in range(70):
        lives_of(make(type(f"K{k}", (Linear,), {})()), None)
    assert lives_of(make(type("K90", (), {})()), None) is lives_of(make(type("K91", (), {})()), None)
