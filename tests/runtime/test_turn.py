"""Turns: one thread at a time, and a gate that is closed meanwhile."""

from __future__ import annotations

import threading

import pytest

from mgjit.runtime.turn import Turn


def test_01_the_gate() -> None:
    """Closed in a turn, also in one inside another and after that; open afterwards, also after an error."""
    turn = Turn()
    assert turn.gate[0] == 0

    def inner() -> int:
        return turn.gate[0]

    def outer() -> None:
        assert turn.run(inner) != 0
        assert turn.gate[0] != 0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        turn.run(outer)
    assert turn.gate[0] == 0
    assert turn.run(lambda a, b: (a, b), 1, b=2) == (1, 2)


def test_02_long_calls_close_it_for_good() -> None:
    """However often they are announced."""
    turn = Turn()
    for _ in range(2):
        turn.run(turn.expect_long_calls)
        assert turn.has_long_calls
        assert turn.gate[0] == 1


def test_03_one_thread_at_a_time() -> None:
    """The others wait."""
    turn, inside, most = Turn(), [], []

    def alone() -> None:
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    def work() -> None:
        for _ in range(50):
            turn.run(alone)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_04_a_gate_that_was_left_closed() -> None:
    """The next turn opens it again."""
    turn = Turn()
    turn.gate[0] = 1
    turn.run(lambda: None)
    assert turn.gate[0] == 0
