"""base/cached.py: attributes that are computed once."""

from __future__ import annotations

import os
import threading

import pytest

from mgjit.base.cached import cached_property


class Sized:
    """With an attribute that waits."""

    def __init__(self) -> None:
        self.computed = 0
        self.begun, self.may_end = threading.Event(), threading.Event()

    @cached_property
    def size(self) -> int:
        """How often it has been computed."""
        self.computed += 1
        self.begun.set()
        self.may_end.wait(60)
        return self.computed


def test_it_is_computed_once() -> None:
    made = Sized()
    made.may_end.set()
    assert [made.size, made.size] == [1, 1]
    assert made.computed == 1
    assert Sized.__dict__["size"].func(made) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_that_is_forked_meanwhile_can_compute_it() -> None:
    slow, other = Sized(), Sized()
    other.may_end.set()
    thread = threading.Thread(target=lambda: slow.size)
    thread.start()
    assert slow.begun.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if other.size == 1 else 1)
    slow.may_end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
