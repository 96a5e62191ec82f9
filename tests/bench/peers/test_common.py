"""Forms: which calls they run, and in what portions."""

from __future__ import annotations

from typing import Any

from bench.peers.common import in_loop, per_call


def test_a_call_a_step_goes_round_the_calls_and_carries_on() -> None:
    seen: list[str] = []

    def step(x: str, y: float) -> float:
        seen.append(x)
        return y

    form = per_call(step, [("a", 1.0), ("b", 2.0)])
    assert form.losses(3) == [1.0, 2.0, 1.0]
    assert form.seconds(2) > 0.0
    assert seen == ["a", "b", "a", "b", "a"]


def test_a_loop_gets_all_rows_at_once_before_the_clock() -> None:
    got: list[Any] = []

    def loop(rows: list[tuple[Any, ...]]) -> Any:
        got.append([row[0] for row in rows])
        return lambda: [row[1] for row in rows]

    form = in_loop(loop, [("a", 1.0), ("b", 2.0)])
    form.seconds(3)
    assert form.losses(1) == [2.0]
    assert got == [["a", "b", "a"], ["b"]]


def test_calls_of_different_sizes_are_run_in_whole_rounds() -> None:
    def step(x: Any) -> float:
        return 0.0

    assert per_call(step, [([1],), ([2],)]).round_to == 1
    assert per_call(step, [([1],), ([2, 3],)]).round_to == 2
