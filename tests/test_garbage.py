"""Work without garbage collection leaves the collector as it found it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from mgjit.garbage import leave_out, without_garbage_collection


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

    class Node:
        """Refers to itself."""

        def __init__(self) -> None:
            self.itself = self

    garbage = weakref.ref(Node())
    kept = Node()
    seen = weakref.ref(kept)
    leave_out()
    try:
        assert garbage() is None
        assert not any(thing is kept for thing in gc.get_objects())
        del kept
        gc.collect()
        assert seen() is not None
        leave_out()
        assert seen() is None
    finally:
        gc.unfreeze()
