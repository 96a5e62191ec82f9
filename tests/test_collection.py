"""Blocks without garbage collection leave the collector as they found it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from mgjit.collection import no_garbage_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is on at first and again at the end."""
    gc.enable()
    yield
    gc.enable()


def test_01_off_inside_on_again() -> None:
    """In a block, and in one inside another."""
    with no_garbage_collection():
        assert not gc.isenabled()
        with no_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_02_after_an_error() -> None:
    """The error passes through."""
    with pytest.raises(KeyError), no_garbage_collection():
        raise KeyError("inside")
    assert gc.isenabled()


def test_03_off_stays_off() -> None:
    """A program that switched it off does not get it back."""
    gc.disable()
    with no_garbage_collection():
        pass
    assert not gc.isenabled()
