"""Work that is settled whatever happens, locks that survive a fork."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from mgjit.interruption import new_lock, settled

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def test_01_in_order() -> None:
    """The result is that of the work; settled once, afterwards."""
    order: list[str] = []

    def work() -> int:
        order.append("work")
        return 3

    assert settled(work, lambda: order.append("settle")) == 3
    assert order == ["work", "settle"]


def test_02_after_an_exception() -> None:
    """Which passes through, an error or not."""
    for kind in (KeyError, KeyboardInterrupt, SystemExit):
        settlements: list[int] = []

        def work(kind: type[BaseException] = kind) -> None:
            raise kind("the user's")

        with pytest.raises(kind):
            settled(work, lambda done=settlements: done.append(1))
        assert settlements


def test_03_interrupted_while_it_settles() -> None:
    """It settles again."""
    settlements: list[int] = []

    def settle() -> None:
        settlements.append(1)
        if len(settlements) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        settled(lambda: None, settle)
    assert len(settlements) == 2


def in_child(work: Any) -> int:
    """The exit code of a fork that runs `work`; 124 when it hangs."""
    child = os.fork()
    if child == 0:
        threading.Timer(20.0, os._exit, (124,)).start()
        os._exit(0 if work() else 1)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


@FORKS
def test_04_fork() -> None:
    """The child settles what another thread has under way and opens its lock; what the forking thread has stays."""
    lock, own = new_lock(), new_lock()
    inside, over = threading.Event(), threading.Event()
    here: list[str] = []

    def elsewhere() -> None:
        inside.set()
        over.wait()

    def holding() -> None:
        with lock:
            settled(elsewhere, lambda: here.append("other"))

    def after_fork() -> bool:
        with lock:
            return here == ["other"] and own._is_owned()

    thread = threading.Thread(target=holding)
    thread.start()
    inside.wait()
    with own:
        code = settled(lambda: in_child(after_fork), lambda: here.append("own"))
    assert here == ["own"]
    over.set()
    thread.join()
    assert code == 0
    assert here == ["own", "other"]
