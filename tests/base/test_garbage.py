"""Work without garbage collection leaves the collector as it found it."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from mgjit.base import garbage
from mgjit.base.garbage import leave_out, with_few_collections, without_garbage_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is on at first and again at the end."""
    gc.enable()
    yield
    gc.enable()


def test_01_off_inside_on_again() -> None:
    """In work, and in work inside of it."""

    def work() -> bool:
        inner = without_garbage_collection(gc.isenabled)
        return inner or gc.isenabled()

    assert not without_garbage_collection(work)
    assert gc.isenabled()


def test_02_after_an_error() -> None:
    """The error passes through."""

    def fail() -> None:
        assert not gc.isenabled()
        raise KeyError("inside")

    with pytest.raises(KeyError):
        without_garbage_collection(fail)
    assert gc.isenabled()


def test_03_off_stays_off() -> None:
    """A program that switched it off does not get it back."""
    gc.disable()
    without_garbage_collection(lambda: None)
    assert not gc.isenabled()


@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="nothing can be left out")
def test_04_what_is_left_out_is_collected_the_next_time() -> None:
    """Garbage is not left out; what becomes garbage later is not kept for ever."""
    unused = weakref.ref(Node())
    kept = Node()
    seen = weakref.ref(kept)
    leave_out()
    try:
        assert unused() is None
        assert not any(thing is kept for thing in gc.get_objects())
        del kept
        gc.collect()
        assert seen() is not None
        leave_out()
        assert seen() is None
    finally:
        gc.unfreeze()


needs_thresholds = pytest.mark.skipif(not hasattr(gc, "get_threshold"), reason="this Python has no thresholds")


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """The thresholds of CPython, which are there again at the end."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield 700, 10, 10
    gc.set_threshold(*before)


class Node:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@needs_thresholds
def test_05_few_collections_inside_as_many_as_before_again(usual: tuple[int, int, int]) -> None:
    """Also in work inside of it, and after an error, which passes through."""

    def fail() -> None:
        assert gc.get_threshold() == garbage._IN_A_CALL
        assert with_few_collections(gc.get_threshold) == garbage._IN_A_CALL
        assert gc.get_threshold() == garbage._IN_A_CALL
        raise KeyError("inside")

    with pytest.raises(KeyError):
        with_few_collections(fail)
    assert gc.get_threshold() == usual


@needs_thresholds
def test_06_a_policy_of_the_program_stays(usual: tuple[int, int, int]) -> None:
    """Other thresholds, or a collector that is switched off; also if that is done inside."""
    with_few_collections(lambda: gc.set_threshold(5000, 5, 5))
    assert gc.get_threshold() == (5000, 5, 5)
    assert with_few_collections(gc.get_threshold) == (5000, 5, 5)
    gc.set_threshold(*usual)
    gc.disable()
    assert with_few_collections(gc.get_threshold) == usual
    assert not with_few_collections(gc.isenabled)


@needs_thresholds
def test_07_what_calls_leave_is_found_when_it_is_much(
    usual: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though each call leaves little."""
    left = garbage._Left()
    monkeypatch.setattr(garbage, "_left", left)
    monkeypatch.setattr(garbage, "_LEAST", 1000)
    left.limit = 1000
    seen: list[Any] = []

    def leave() -> None:
        nodes = [Node() for _ in range(300)]
        seen.append(weakref.ref(nodes[0]))

    for _ in range(40):
        with_few_collections(leave)
    assert sum(node() is not None for node in seen) <= 20


@needs_thresholds
@pytest.mark.parametrize(
    ("found", "took", "expected"),
    [(200, 0.1, [2, 1, 1, 1]), (10, 0.1, [8, 8, 8, 8]), (200, 1.1, [8, 8, 8, 8])],
    ids=["much soon", "little", "much, but it takes long"],
)
def test_08_it_is_looked_for_less_often_where_that_is_not_worth_it(
    monkeypatch: pytest.MonkeyPatch, found: int, took: float, expected: list[int]
) -> None:
    """With a limit; and more often again where it is."""
    now, collected = iter(x * took for x in range(100)), itertools.count(0, 1000)
    monkeypatch.setattr(garbage, "_LEAST", 1000)
    monkeypatch.setattr(garbage, "_MOST", 8000)
    monkeypatch.setattr(garbage, "perf_counter", lambda: next(now))
    monkeypatch.setattr(garbage, "_collected", lambda: next(collected))
    left = garbage._Left()
    left._collected = -1000
    left.limit = 4000
    limits = []
    for _ in expected:
        monkeypatch.setattr(gc, "collect", lambda: left.limit * found // 1000)
        left.add(left.limit - 1, 0.5)
        left.add(1, 0.5)
        limits.append(left.limit // 1000)
    assert limits == expected


@needs_thresholds
def test_09_graphs_without_cycles_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the collections tell that CPython makes anyhow; and from the first garbage that they find on they are."""
    found, looked = [0], []
    monkeypatch.setattr(garbage, "_LEAST", 1000)
    monkeypatch.setattr(garbage, "_MOST", 4000)
    monkeypatch.setattr(garbage, "_collected", lambda: found[0])
    monkeypatch.setattr(gc, "collect", lambda: looked.append(1) or 4000)
    left = garbage._Left()
    left.limit = 1000
    for _ in range(100):
        left.add(500, 0.1)
    assert left.limit == 4000
    assert not looked
    found[0] = 100
    while not looked:
        left.add(500, 10.0)
    assert left.limit == 2000
