"""What is measured of a first result, and the tables that are made of it; nothing is timed."""

from __future__ import annotations

from typing import Any

import pytest

from bench import first_results
from bench.first_results import Found
from bench.workloads import Sources


def run(wall: dict[int, float], results: tuple[str, ...] = ("0x1p0",)) -> Found:
    return {
        "wall": wall, "processor": wall, "results": list(results), "trace": 0.5, "passes": 0.25, "compiler": 0.125,
        "traced": 1, "compiler runs": 0, "cache": "hit",
    }  # fmt: skip


def test_marks_that_were_not_reached_are_proportional_to_the_last_one() -> None:
    runs = [run({1: 1.0, 3: 6.0}), run({1: 2.0, 3: 3.0}), run({1: 4.0})]
    assert first_results.seconds_until(1, runs, "wall") == (2.0, True)
    assert first_results.seconds_until(3, runs, "wall") == (6.0, False)
    assert first_results.seconds_until(100, runs[:1], "wall") == (200.0, False)


def test_a_table_compares_with_the_interpreted_step() -> None:
    found = {"interpreted": [run({1: 2.0})], "cold": [run({1: 3.0, 3: 3.0, 10: 4.0})]}
    lines = first_results.table("image", found, "wall")
    assert lines[2] == "| interpreted | 2.000 | ~6.000 | ~20.000 | ~200.000 |"
    assert lines[3] == "| cold | 3.000 (1.50 x) | 3.000 (0.50 x) | 4.000 (0.20 x) |  |"


def test_results_that_differ_are_named_unless_the_step_is_a_fast_one() -> None:
    found = {way: [run({1: 1.0})] for way in ("interpreted", "cold", "warm")}
    assert first_results.differing("moons", found) == []
    found["warm"] = [run({1: 1.0}, ("0x1p0", "0x1p1")), run({1: 1.0}, ("0x1p1",))]
    assert first_results.differing("moons", found) == ["moons 2-16-16-1, batch 100, warm: results differ"]
    assert first_results.differing("batch", found) == []


def test_microgpt_has_a_call_of_each_length_and_marks_to_the_last() -> None:
    instance, _ = first_results.instance_of("microgpt", Sources())
    assert [len(call[0]) for call in instance.calls] == list(range(2, 2 + first_results.BLOCK))
    assert first_results.marks_of("microgpt") == (1, 3, 10, 16)


@pytest.mark.parametrize("limit", [60.0, 0.0])
def test_a_child_tells_results_and_clocks_until_the_limit(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def step(x: float) -> float:
        calls.append(x)
        return 2.0 * x

    monkeypatch.setattr(first_results, "by_mgjit", lambda *_: (step, [(1.0,), (2.0,)], lambda: {"traced": 0}))
    found = first_results.child("image", "cold", None, limit)
    assert found["results"][:2] == [(2.0).hex(), (4.0).hex()][: len(calls)]
    assert sorted(found["wall"]) == sorted(found["processor"]) == ([1, 3, 10, 100] if limit else [1])
    assert found["traced"] == 0
