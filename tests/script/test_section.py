"""When a part of a loop is tried as a step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from mgjit.script import step as script_step
from mgjit.script.rewrite import StepSource
from mgjit.script.section import Off, Reserve, Section, Trying, Watching, sections_of
from tests.script.running import both
from tests.script.test_run import written


def pair() -> tuple[Section, Section]:
    """A loop in reserve, and the one in it."""
    outer, inner = sections_of(
        [
            StepSource("", "outer", "x.py", 1, 2, 3, in_reserve=True),
            StepSource("", "inner", "x.py", 2, 3, 3, outer=0),
        ],
        {},
    )
    return outer, inner


def test_a_loop_in_reserve_waits_for_the_one_in_it() -> None:
    outer, inner = pair()
    assert not outer.ready
    assert type(outer) is Reserve
    assert not outer.is_ahead()
    assert type(inner) is Watching


@pytest.mark.parametrize(
    ("reason", "kind"), [("its iterations are too short to gain anything", Watching), ("it is refused", Off)]
)
def test_a_loop_in_reserve_is_for_iterations_that_are_too_short(reason: str, kind: type) -> None:
    outer, inner = pair()
    inner.end(reason)
    assert not outer.ready
    assert type(outer) is kind


BY_HAND = """
weights = [0.1, -0.2, 0.3]
data = [([k / 30, 1.0, k % 3], k / 10) for k in range(30)]
for epoch in range(60):
    total = 0.0
    for x, y in data:
        error = sum(w * v for w, v in zip(weights, x)) - y
        for k, v in enumerate(x):
            weights[k] -= 0.01 * error * v
        total += error * error
        if epoch == 50 and y > 2.8:
            print("late", x, total)
    if epoch % 20 == 0:
        print(epoch, total)
    if total < 1e-9:
        break
else:
    print("all", weights)
try:
    for epoch in range(60):
        for x, y in data:
            error = sum(w * v for w, v in zip(weights, x)) / (55 - epoch)
            for k, v in enumerate(x):
                weights[k] -= 0.01 * error * v
except ZeroDivisionError as problem:
    print(problem, epoch, weights, error)
"""


def test_short_iterations_by_hand(tmp_path: Path) -> None:
    both(tmp_path, written(tmp_path, BY_HAND))


def test_a_function_that_is_called_again_is_expected_to_be_called_as_often_again() -> None:
    (section,) = sections_of([StepSource("", "step", "x.py", 1, 2, 3)], {})
    section.entered(0, range(100))
    section.ticks = 41
    assert section.left_to_do(0) == 60
    section.ticks = 100
    section.entered(0, range(100))
    section.ticks = 141
    assert section.left_to_do(0) == 141


def test_the_first_iterations_on_a_busy_machine_tell_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """In half a second, the process has run for less than a twentieth: that says little about 10,000 iterations."""
    (section,) = sections_of([StepSource("", "step", "x.py", 1, 2, 3)], {})
    processor, wall = 5.0, 100.0
    monkeypatch.setattr("mgjit.script.section.process_time", lambda: processor)
    monkeypatch.setattr("mgjit.script.section.perf_counter", lambda: wall)
    section.entered(0, range(10_000))
    tried = [section.ready]
    while not tried[-1]:
        processor, wall = processor + 0.004, wall + 0.05
        tried.append(section.ready)
    assert len(tried) == 14


class Fruitless:
    """Stands for a step that never has a result, and that takes so many seconds to say so."""

    undone = 0

    def __init__(self, clock: list[float], seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.stats = SimpleNamespace(calls=0, plain_calls=0, plain_reasons=[])

    def attempt(self, arguments: tuple[object, ...], iteration: float) -> object:
        self._clock[0] += self._seconds
        return script_step.NOTHING

    def note_plain(self, seconds: float) -> None:
        """As of a step."""

    def release(self) -> None:
        pass


@pytest.mark.parametrize(("seconds", "calls"), [(1 / 1024, 256), (1.0, 128)], ids=["lookups", "traces"])
def test_a_loop_whose_calls_never_find_code_is_given_up(
    seconds: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a quarter of a second of looking for it; traces and comparisons have limits of their own."""
    clock = [0.0]
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(f"mgjit.script.section.{name}", lambda: clock[0])
    monkeypatch.setattr("mgjit.script.section._LOOKING", 0.25)
    (section,) = sections_of([StepSource("", "step", "x.py", 1, 2, 3)], {})
    section.__class__ = Trying  # type: ignore[assignment]
    section.allowed, section.iteration = 0.25, 1 / 128
    section.step = Fruitless(clock, seconds)  # type: ignore[assignment]
    asked = 0
    while isinstance(section, Trying):
        assert section.called() == ()
        clock[0] += 1 / 128
        asked += 1
    assert asked == calls + 1
    assert "differed in structure" in section.reason


def test_the_time_of_an_iteration_is_that_of_all_that_were_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one may be a short sequence; and each structure is known by its own iterations."""
    clock, noted = [0.0], []
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(f"mgjit.script.section.{name}", lambda: clock[0])
    monkeypatch.setattr(Fruitless, "note_plain", lambda self, seconds: noted.append(seconds))
    (section,) = sections_of([StepSource("", "step", "x.py", 1, 2, 3)], {})
    section.__class__ = Trying  # type: ignore[assignment]
    section.allowed, section.iteration, section.ticks = 1.0, 0.5, 1
    section.step = Fruitless(clock, 0.0)  # type: ignore[assignment]
    for seconds in (2.0, 3.5):
        assert section.called() == ()
        clock[0] += seconds
    section.left()
    clock[0] += 1.0
    section.left()
    assert (noted, section.iteration) == ([2.0, 3.5], 2.0)
