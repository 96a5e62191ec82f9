"""Threads of mgjit, and whether the program has others."""

from __future__ import annotations

import threading

import pytest

from mgjit.base.threads import OwnThread, are_others


def test_threads_of_mgjit_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate()) - {threading.current_thread()}  # of other tests
    monkeypatch.setattr(threading, "enumerate", lambda of=threading.enumerate: [t for t in of() if t not in before])
    go_on = threading.Event()
    own = [OwnThread(go_on.wait, 20.0, name="test"), OwnThread(go_on.wait, 20.0, name="test", is_waited_for=True)]
    assert [(thread.name, thread.daemon, thread.is_alive()) for thread in own] == [
        ("mgjit test", True, True),
        ("mgjit test", False, True),
    ]
    assert not are_others()
    of_program = threading.Thread(target=go_on.wait, args=(20.0,))
    of_program.start()
    assert are_others()
    go_on.set()
    for thread in (*own, of_program):
        thread.join()
    assert not are_others()
