"""When a part of a loop is tried as a step."""

from __future__ import annotations

import sys
from _thread import get_ident
from pathlib import Path
from types import SimpleNamespace

import pytest

from mgjit.script import step as script_step
from mgjit.script.purse import PURSE
from mgjit.script.rewrite import StepSource, rewritten
from mgjit.script.running import running
from mgjit.script.section import Off, Section
from mgjit.script.trying import Trying
from mgjit.script.watching import Reserve, Watching, sections_of
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
    ("reason", "kind"),
    [
        ("its iterations are too short to gain anything", Watching),
        ("compiled calls took longer than Python", Watching),
        ("it is refused", Off),
    ],
)
def test_a_loop_in_reserve_is_for_iterations_that_are_too_short(reason: str, kind: type) -> None:
    outer, inner = pair()
    inner.end(reason)
    assert not outer.ready
    assert type(outer) is kind


@pytest.mark.parametrize(
    ("inside", "whole", "kind"), [(20e-6, 80e-6, Watching), (200e-6, 800e-6, Reserve), (20e-6, 20e-3, Reserve)]
)
def test_a_loop_in_reserve_is_for_short_iterations_of_few(inside: float, whole: float, kind: type) -> None:
    """Where the calls would be much of an iteration of the loop in it, and its own are no long trace."""
    outer, inner = pair()
    outer.done, outer.iteration = 10, whole
    inner.done, inner.iteration = 40, inside
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


class Clock:
    """The processor time of the thread, which only the tests let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for name in ("section", "trying", "watching", "counted", "purse"):
            monkeypatch.setattr(f"mgjit.script.{name}.thread_time", lambda: self.now)
        PURSE.start()

    def goes_on(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    running.clear()
    monkeypatch.delitem(sys.modules, "mgjit.script.step")  # as if it had yet to be loaded
    return Clock(monkeypatch)


def alone(name: str = "step", function: str = "", levels: int = 0) -> Section:
    """A section without others around it."""
    (section,) = sections_of([StepSource("", name, "x.py", 1, 2, 3, function, levels=levels)], {})
    return section


def iterations(section: Section, clock: Clock, number: int, seconds: float) -> int:
    """Run iterations until a step is tried, at most so many; returns how many there were."""
    for k in range(number):
        if section.on and section.due() and section.ready:
            return k
        clock.goes_on(seconds)
    return number


def test_what_is_counted_is_what_ran(clock: Clock) -> None:
    """Most iterations do not ask, and what comes between two loops is not theirs."""
    section = alone()
    for _ in range(3):
        section.begins()
        section.entered(0, [0] * 700)
        assert iterations(section, clock, 700, 20e-6) == 700
        section.left()
        clock.goes_on(5.0)
    assert section.done == 2100
    assert section.iteration == pytest.approx(20e-6)


def test_loops_that_take_little_time_are_often_begun_without_being_counted(clock: Clock) -> None:
    section, counted = alone(), 0
    for _ in range(1000):
        if section.enters():
            counted += 1
            section.begins()
            iterations(section, clock, 3, 10e-6)
            section.left()
    assert 80 < counted < 120
    assert section.total() == pytest.approx(3000, rel=0.02)


def test_a_function_that_is_called_again_is_expected_to_be_called_as_often_again(clock: Clock) -> None:
    section = alone()
    section.begins()
    section.entered(0, range(100))
    iterations(section, clock, 41, 0.002)
    section.left()
    assert section.left_to_do() == 59
    section.begins()
    section.entered(0, range(100))
    iterations(section, clock, 100, 0.0001)
    section.left()
    assert section.left_to_do() == 141


@pytest.mark.parametrize(
    ("number", "seconds", "tried"),
    [(10_000, 1e-3, 50), (100, 4e-3, 100), (200, 0.01, 5), (400, 0.1, 1), (100_000, 10e-6, 100_000)],
    ids=["long", "not worth a try", "at once", "at the second iteration", "tiny"],
)
def test_when_a_loop_of_known_length_is_tried(number: int, seconds: float, tried: int, clock: Clock) -> None:
    section = alone()
    section.begins()
    section.entered(0, range(number))
    assert iterations(section, clock, number, seconds) == pytest.approx(tried, abs=1 if tried < 100 else 0)


def test_what_tries_have_cost_before_counts(clock: Clock) -> None:
    """A second loop is tried when the program has run for so long that the first one does not matter."""
    PURSE.note(-0.25)
    section = alone()
    section.begins()
    section.entered(0, iter([]))
    asked = iterations(section, clock, 10_000, 0.01)
    assert 4.0 < asked * 0.01 < 5.0


def nested(clock: Clock, outer_seconds: float, outer_length: int, inner_length: int) -> tuple[Section, Section, str]:
    """A loop whose iterations call a function with a loop: the sections of both, and which one is tried first."""
    outer, inner = alone("outer"), alone("inner", "f")
    outer.begins()
    outer.entered(0, range(outer_length))
    for _ in range(outer_length):
        if outer.on and outer.due() and outer.ready:
            return outer, inner, "outer"
        if inner.on:
            inner.begins()
            inner.entered(0, range(inner_length))
            if iterations(inner, clock, inner_length, outer_seconds / inner_length) < inner_length:
                return outer, inner, "inner"
            inner.left()
        else:
            clock.goes_on(outer_seconds)
    return outer, inner, ""


@pytest.mark.parametrize(
    ("seconds", "length", "inner_length", "first"),
    [(0.05, 400, 10, "outer"), (0.002, 10_000, 20, "outer"), (2.0, 400, 1000, "inner"), (0.2, 15, 1000, "inner")],
    ids=["a loop over layers", "short ones", "too long for one step", "too few for one step"],
)
def test_of_nested_loops_the_outermost_one_comes_first(
    seconds: float, length: int, inner_length: int, first: str, clock: Clock
) -> None:
    outer, inner, tried = nested(clock, seconds, length, inner_length)
    assert tried == first
    assert type(outer) is (Trying if first == "outer" else Off)
    assert type(inner) is (Watching if first == "outer" else Trying)


def test_the_loop_in_one_that_is_given_up_has_its_turn(clock: Clock) -> None:
    outer, inner, _ = nested(clock, 0.05, 400, 10)
    outer.end("it is refused")
    for _ in range(400):
        inner.begins()
        inner.entered(0, range(10))
        if iterations(inner, clock, 10, 0.005) < 10:
            break
        inner.left()
    assert type(inner) is Trying


def test_a_loop_of_tiny_iterations_is_given_up_also_behind_one_that_is_tried(clock: Clock) -> None:
    """Counting them would take a good part of their time, for as long as the other one finds no code."""
    _, inner, tried = nested(clock, 0.002, 10_000, 1000)
    assert tried == "outer"
    assert inner.reason == "its iterations are too short to gain anything"


def test_while_a_step_is_traced_sections_are_plain_code(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count nothing, and call nothing."""
    section = alone()
    section.__class__ = Trying  # type: ignore[assignment]
    section.step = Fruitless(clock, 1.0)  # type: ignore[assignment]
    monkeypatch.setattr("mgjit.script.running.inert", {get_ident()})
    section.begins()
    data = [1, 2]
    assert section.entered(0, data) is data
    assert section.called(1) == ()
    section.left()
    assert (clock.now, section.lengths, section.entries, running) == (100.0, {}, 0, [])


class Fruitless:
    """Stands for a step that never has a result, and that takes so many seconds to say so."""

    nothing = script_step.NOTHING
    undone = kernels = waiting = 0

    def __init__(self, clock: Clock, seconds: float, traces: bool = False) -> None:
        self._clock, self._seconds = clock, seconds
        self.has_traced, self.fruitless, self.is_given_up = traces, 0, False
        self.noted: list[tuple[float, int]] = []
        self.stats = SimpleNamespace(calls=0, plain_calls=0, plain_reasons=[], retraces=["x was 1, is 2"])

    def attempt(self, arguments: tuple[object, ...], iteration: float, allowed: float) -> object:
        self._clock.goes_on(self._seconds)
        self.fruitless += self.has_traced
        return script_step.NOTHING

    def note_plain(self, seconds: float, calls: int) -> None:
        self.noted.append((seconds, calls))

    def release(self) -> None:
        """As of a step."""

    def give_up(self) -> None:
        self.is_given_up = True


def tried(step: Fruitless, clock: Clock, iteration: float, number: int = 10_000) -> tuple[Section, int, float]:
    """A loop that tries a step until it gives up: its section, how often it has asked, and how long that took."""
    section = alone()
    section.begins()
    section.iteration, section.done, section.start, section.calls_to_come = iteration, 10, 10, float(number)
    section.__class__ = Trying  # type: ignore[assignment]
    section.step = step  # type: ignore[assignment]
    asked, started = 0, clock.now
    for k in range(number):
        if not section.on:
            return section, asked, clock.now - started - k * iteration
        if section.due() and section.ready:
            asked += 1
            assert section.called() == ()
        clock.goes_on(iteration)
    return section, asked, clock.now - started - number * iteration


def test_after_three_traces_that_came_to_nothing_a_loop_is_plain_for_good(clock: Clock) -> None:
    step = Fruitless(clock, 0.02, traces=True)
    section, asked, _ = tried(step, clock, 0.01)
    assert (asked, type(section), step.is_given_up) == (3, Off, True)


def test_a_trace_that_is_dearer_than_expected_is_the_last_one(clock: Clock) -> None:
    _, asked, seconds = tried(Fruitless(clock, 0.5, traces=True), clock, 0.01, 1000)
    assert (asked, seconds) == (1, pytest.approx(0.5))


def test_where_much_is_to_come_three_traces_are_made_all_the_same(clock: Clock) -> None:
    """Those of a second each cost less than 3 % of a hundred seconds and a quarter of one."""
    section, asked, seconds = tried(Fruitless(clock, 1.0, traces=True), clock, 0.01, 10_000)
    assert (asked, seconds, type(section)) == (3, pytest.approx(3.0), Off)
    _, asked, seconds = tried(Fruitless(clock, 2.0, traces=True), clock, 0.01, 10_000)
    assert (asked, seconds) == (1, pytest.approx(2.0))


class Parameter:
    """An object whose numbers live in the memory of a kernel until they are released; any call needs them there."""

    is_attached = True


def test_what_is_given_up_leaves_ordinary_objects(clock: Clock) -> None:
    step = Fruitless(clock, 0.0)
    parameter = Parameter()
    step.release = lambda: setattr(parameter, "is_attached", False)  # type: ignore[method-assign]
    step.give_up = lambda: setattr(parameter, "is_attached", True)  # type: ignore[method-assign]
    section = alone()
    section.step = step  # type: ignore[assignment]
    section.end("it is a test")
    assert not parameter.is_attached


def test_while_there_is_no_code_asking_takes_little(clock: Clock) -> None:
    """Of 10,000 iterations of 50 us, 30 us each."""
    step = Fruitless(clock, 30e-6)
    step.waiting = 1
    section, asked, seconds = tried(step, clock, 50e-6)
    assert type(section) is Trying
    assert seconds < 0.02 * 10_000 * 50e-6
    assert sum(calls for _, calls in step.noted) == pytest.approx(10_000, abs=100)
    assert asked > 100


def test_a_loop_whose_calls_never_find_code_is_given_up(clock: Clock) -> None:
    """Where there is code for other iterations."""
    step = Fruitless(clock, 1e-3)
    step.kernels = 1
    section, _, seconds = tried(step, clock, 0.01)
    assert type(section) is Off
    assert seconds < 0.05 + 0.05 * 1.0
    assert "the last one was made because x was 1, is 2" in section.reason


def test_the_time_of_an_iteration_is_that_of_all_that_were_plain(clock: Clock) -> None:
    """The first one may be a short sequence; and each structure is known by its own iterations."""
    section, step = alone(), Fruitless(clock, 0.0)
    section.begins()
    section.__class__ = Trying  # type: ignore[assignment]
    section.iteration, section.done, section.start, section.calls_to_come = 0.5, 1, 1, 100.0
    section.step = step  # type: ignore[assignment]
    for seconds in (2.0, 3.5):
        assert section.called() == ()
        clock.goes_on(seconds)
    section.left()
    clock.goes_on(1.0)
    section.left()
    assert (step.noted, section.iteration) == ([(2.0, 1), (3.5, 1)], 2.0)


def test_a_loop_that_is_given_up_is_the_one_that_was_there() -> None:
    """No question is asked from its next beginning on, and both versions do the same."""
    text = "for k in range(3):\n    w -= 0.1 * w * sum([k])\n    seen.append(w)\n"
    made = rewritten(text, "<test>")
    assert made is not None

    class Silent:
        """Fails if anything but `on` is asked for."""

        on = False

    seen: list[float] = []
    exec(made.with_sections([Silent()]), {"w": 1.0, "seen": seen})  # noqa: S102 - the code of the test
    (section,) = sections_of(made.steps, {})
    again: list[float] = []
    exec(made.with_sections([section]), {"w": 1.0, "seen": again})  # noqa: S102
    assert seen == again
    assert len(seen) == 3


def test_a_loop_that_a_return_has_ended_is_around_nothing(clock: Clock) -> None:
    """Otherwise the others would wait for it for ever."""
    ended, other = alone("ended", "search"), alone("other", "train")

    def search() -> None:
        ended.begins()
        ended.entered(0, iter([]))
        iterations(ended, clock, 3, 0.001)

    def train() -> int:
        other.begins()
        other.entered(0, range(1000))
        return iterations(other, clock, 1000, 0.01)

    search()
    assert train() < 1000
    assert not ended.within
