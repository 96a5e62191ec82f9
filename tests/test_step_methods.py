"""Compiled methods: of classes, of base classes, and of objects that answer every question."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import mgjit


class Base:
    rate = 2.0

    def __init__(self) -> None:
        self.w = 1.5

    @classmethod
    @mgjit.compile
    def of_class(cls, x: float) -> Any:
        return x * cls.rate

    @staticmethod
    @mgjit.compile
    def static(x: float) -> Any:
        return x * 4.0

    @mgjit.compile
    def step(self, x: float) -> Any:
        self.w = self.w * 0.5
        return x * self.w


class Derived(Base):
    rate = 3.0

    @mgjit.compile
    def step(self, x: float) -> Any:
        return super().step(x) + 1.0


class Third(Derived):
    @mgjit.compile
    def step(self, x: float) -> Any:
        return super().step(x) * 2.0


class WithSuper(Base):
    """Its method is not compiled, and calls one that is."""

    def step(self, x: float) -> Any:
        return super().step(x) - 1.0


@pytest.fixture(params=[False, True], ids=["compiled", "disabled"])
def disabled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setenv("MGJIT_DISABLE", "1")


@pytest.mark.usefixtures("disabled")
def test_01_class_methods() -> None:
    """Each class has kernels of its own."""
    for _ in range(5):
        assert [Base.of_class(1.0), Derived.of_class(1.0), Base().of_class(2.0), Third().of_class(3.0)] == [2, 3, 4, 9]
        assert [Base.static(1.0), Derived().static(2.0)] == [4, 8]


@pytest.mark.usefixtures("disabled")
@pytest.mark.parametrize("kind", [Base, Derived, Third, WithSuper])
def test_02_super(kind: type[Base]) -> None:
    """As plain Python, for each class that adds something, and for copies in the middle."""
    expected, w = [], 1.5
    for k in range(8):
        w *= 0.5
        y = k * w
        expected.append({Base: y, Derived: y + 1.0, Third: (y + 1.0) * 2.0, WithSuper: y - 1.0}[kind])
    thing = kind()
    got = [thing.step(float(k)) for k in range(3)]
    for again in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):  # noqa: S301
        assert [again.step(float(k)) for k in range(3, 8)] == expected[3:]
    got += [thing.step(float(k)) for k in range(3, 8)]
    assert got == expected


def test_03_one_trace_for_each_method() -> None:
    """That of the base class becomes a part of the step that calls it."""
    thing = Third()
    for k in range(6):
        thing.step(float(k))
    assert thing.step.stats.traces == 1
    assert super(Third, thing).step is not thing.step
    assert super(Third, thing).step is super(Third, thing).step
    assert super(Third, thing).step.stats.traces == 0
    assert pickle.loads(pickle.dumps(super(Third, thing).step)).__qualname__ == "Derived.step"  # noqa: S301


class Entries(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__


class EveryName:
    lr = 0.5

    def __getattr__(self, name: str) -> Any:
        return lambda *_: name


class EveryText:
    def __init__(self) -> None:
        self.lr = 0.5

    def __getattr__(self, name: str) -> Any:
        return name


class NoName:
    lr = 0.5

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"there is no {name}")


THINGS: list[Callable[[], Any]] = [lambda: Entries(lr=0.5), EveryName, EveryText, NoName]


@pytest.mark.parametrize("make", THINGS)
def test_04_attributes_that_are_answered_by_a_method(make: Callable[[], Any]) -> None:
    """Captured, and as arguments."""
    thing = make()
    captured = mgjit.compile(lambda x: x * thing.lr)
    given = mgjit.compile(lambda thing, x: x * thing.lr)
    for _ in range(4):
        assert captured(3.0) == 1.5
        assert given(thing, 3.0) == 1.5
    assert list(given.loop(thing, [1.0, 2.0])) == [0.5, 1.0]


@pytest.mark.parametrize("make", THINGS)
def test_05_results_that_answer_every_name(make: Callable[[], Any]) -> None:
    """The objects themselves, also where kernels prove themselves."""
    thing = make()
    step = mgjit.compile(verify="always")(lambda x: (thing, x * 2.0))
    for _ in range(3):
        assert step(1.5)[1] == 3.0
        assert step(1.5)[0] is thing
