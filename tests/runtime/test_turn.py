"""Turns: one thread at a time, and a gate that is closed meanwhile."""

from __future__ import annotations

import threading

from mgjit.runtime.turn import Turn


def test_01_the_gate() -> None:
    """Closed in a turn, also in one inside of another; open afterwards, also after an error."""
    turn = Turn()
    assert turn.gate[0] == 0
    try:
        with turn:
            assert turn.gate[0] != 0
            with turn:
                pass
            assert turn.gate[0] != 0
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert turn.gate[0] == 0


def test_02_long_calls_close_it_for_good() -> None:
    """However often they are announced."""
    turn = Turn()
    for _ in range(2):
        with turn:
            turn.expect_long_calls()
        assert turn.has_long_calls
        assert turn.gate[0] == 1


def test_03_one_thread_at_a_time() -> None:
    """The others wait."""
    turn, inside, most = Turn(), [], []

    def work() -> None:
        for _ in range(50):
            with turn:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
