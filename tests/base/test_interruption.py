"""Work that is cleaned up after whatever happens, locks that survive a fork."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from mgjit.base.interruption import new_lock, with_cleanup

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def test_01_in_order() -> None:
    """The result is that of the work; the cleanup runs once, afterwards."""
    order: list[str] = []

    def work() -> int:
        order.append("work")
        return 3

    assert with_cleanup(work, lambda: order.append("clean up")) == 3
    assert order == ["work", "clean up"]


def test_02_after_an_exception() -> None:
    """Which passes through, an error or not."""
    for kind in (KeyError, KeyboardInterrupt, SystemExit):
        cleanups: list[int] = []

        def work(kind: type[BaseException] = kind) -> None:
            raise kind("the user's")

        with pytest.raises(kind):
            with_cleanup(work, lambda done=cleanups: done.append(1))
        assert cleanups


def test_03_interrupted_while_cleaning_up() -> None:
    """The cleanup runs again."""
    cleanups: list[int] = []

    def clean_up() -> None:
        cleanups.append(1)
        if len(cleanups) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_cleanup(lambda: None, clean_up)
    assert len(cleanups) == 2


def in_child(work: Any) -> int:
    """The exit code of a fork that runs `work`; 124 when it hangs."""
    child = os.fork()
    if child == 0:
        threading.Timer(20.0, os._exit, (124,)).start()
        os._exit(0 if work() else 1)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


@FORKS
def test_04_fork() -> None:
    """The child cleans up for other threads and opens their locks; those of the forking thread stay."""
    lock, own = new_lock(), new_lock()
    inside, over = threading.Event(), threading.Event()
    here: list[str] = []

    def elsewhere() -> None:
        inside.set()
        over.wait()

    def holding() -> None:
        with lock:
            with_cleanup(elsewhere, lambda: here.append("other"))

    def after_fork() -> bool:
        with lock:
            return here == ["other"] and own._is_owned()

    thread = threading.Thread(target=holding)
    thread.start()
    inside.wait()
    with own:
        code = with_cleanup(lambda: in_child(after_fork), lambda: here.append("own"))
    assert here == ["own"]
    over.set()
    thread.join()
    assert code == 0
    assert here == ["own", "other"]
