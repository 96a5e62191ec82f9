"""Paths: which kernel makes a call whose numbers decide the way, and when there is another one."""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import MgjitError, PlainWarning
from mgjit.kernels import paths
from mgjit.step import giving_up, leaving


def halved(x: float) -> tuple[float, int]:
    n = 0
    while x > 1.0:
        x, n = 0.5 * x, n + 1
    return x, n


class Tally:
    """What a step keeps, with a generator of its own."""

    def __init__(self) -> None:
        self.total, self.seen, self.table = 0.0, 0, [0.5, 0.25, 0.125]
        self.draw = random.Random(3)

    def step(self, x: float) -> Any:
        self.total += x
        self.seen += 1
        u = self.draw.random()
        for k, p in enumerate(self.table):
            u -= p
            if u < 0.0:
                self.table[k] *= 0.9
                break
        if self.total > 2.0:
            self.total = 0.0
            return "full"
        return k

    def shown(self) -> Any:
        return self.total, self.seen, self.table, self.draw.getstate()


@pytest.mark.parametrize("backend", ["c", "python"])
def test_1_each_call_takes_its_path(backend: str) -> None:
    """Also one for which others have been tried, which have left nothing behind."""
    plain, other = Tally(), Tally()
    step = mgjit.compile(background=False, backend=backend)(other.step)
    for k in range(60):
        x = 0.37 * (k % 4)
        assert (step(x), other.shown()) == (plain.step(x), plain.shown())
    assert step.stats.plain_calls == 0
    assert 4 <= len(step._kernels) <= 8


def test_1_an_int_tells_the_path_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other kernel is tried."""
    rows = [[k + 0.5] for k in range(4)]
    step = mgjit.compile(background=False, backend="python")(lambda x: rows[int(x * x)] is rows[2])
    tried: list[int] = []
    other = paths.Paths.other_path

    def counting(self: Any, missed: Any, arguments: Any) -> Any:
        tried.append(len(missed))
        return other(self, missed, arguments)

    monkeypatch.setattr(paths.Paths, "other_path", counting)
    assert [step(x) for x in (0.0, 1.0, 1.5, 1.8, 1.5, 0.0)] == [False, False, True, False, True, False]
    assert set(tried) == {1}


def test_2_rows_of_a_loop() -> None:
    step = mgjit.compile(background=False, backend="python")(halved)
    columns = step.loop([0.5, 3.0, 12.0, 3.5])
    assert list(zip(*columns)) == [halved(x) for x in (0.5, 3.0, 12.0, 3.5)]


def test_2_an_infinity_is_for_plain_python() -> None:
    """Which may raise an error instead."""
    step = mgjit.compile(background=False, backend="python")(lambda x: 1.0 if 1.0 / x > 2.0 else 3.0)
    many = mgjit.compile(background=False, backend="python")(lambda x: halved(1.0 / x))
    assert step(0.25) == 1.0
    assert many(0.25) == halved(4.0)
    with pytest.raises(ZeroDivisionError):
        many(0.0)


def test_2_an_exception_of_the_path() -> None:
    @mgjit.compile(background=False, backend="python")
    def step(x: float) -> float:
        if x > 1.0:
            raise ValueError("too large")
        return 2.0 * x

    assert step(0.5) == 1.0
    for _ in range(3):
        with pytest.raises(ValueError, match="too large"):
            step(2.0)
    assert step(0.25) == 0.5


def test_3_paths_that_never_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is plain for good, which is said once."""
    monkeypatch.setattr(paths, "_FEW", 3)
    monkeypatch.setattr(paths, "_SHARE", 2.0)

    @mgjit.compile(background=False, backend="python")
    def step(xs: list[float]) -> int:
        n = 0
        for x in xs:
            if x > 0.5:
                n += 1
                print(end="")
        return n

    draw = random.Random(1)
    rows = [[draw.random() for _ in range(30)] for _ in range(9)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [step(xs) for xs in rows] == [sum(x > 0.5 for x in xs) for xs in rows]
    assert [w.category for w in caught if "another path" in str(w.message)] == [PlainWarning]
    assert len(step._kernels) == 0


def test_3_orders_that_never_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that sorts is traced three times, and plain for good; where two orders take turns, it is compiled."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)

    def median(xs: list[float]) -> float:
        ordered = sorted(xs)
        return 0.5 * (ordered[2] + ordered[3])

    draw = random.Random(7)
    rows = [[draw.random() for _ in range(6)] for _ in range(30)]
    step, other = (mgjit.compile(median, background=False, backend="python") for _ in range(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [step(xs) for xs in rows] == list(map(median, rows))
    assert (step.stats.traces, len(step._kernels), len(caught)) == (3, 0, 1)
    assert [other(rows[k % 2]) for k in range(8)] == [median(rows[k % 2]) for k in range(8)]
    assert other.stats.plain_calls == 0


def test_3_there_are_so_many_paths_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_MOST", 3)
    step = mgjit.compile(background=False, backend="python")(halved)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (0.5, 2.0, 4.0, 8.0, 16.0, 8.0, 0.75):
            assert step(x) == halved(x)
    assert (len(step._kernels), step.stats.plain_calls) == (3, 3)


def test_3_a_path_that_makes_those_of_others_useless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path puts a new list in the place of another one, so that the kernels of the others are of no use."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)

    def made() -> Any:
        centres = [[0.25 * k, 0.5] for k in range(3)]

        def step(x: float) -> Any:
            nearest = min(range(3), key=lambda k: (centres[k][0] - x) ** 2)
            centres[nearest] = [0.5 * (centres[nearest][0] + x), centres[nearest][1] * x]
            return nearest, [row[:] for row in centres]

        return step

    plain, step = made(), mgjit.compile(made(), background=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainWarning)
        for k in range(60):
            assert step(0.1 * (7 * k % 9)) == plain(0.1 * (7 * k % 9))
    assert step.stats.traces < 20
    assert "would be traced again" in step.stats.last.reason


class Sigmoid:
    """A unit whose activation handles an overflow, as people write it."""

    def __init__(self) -> None:
        self.weight, self.handled = 0.5, 0

    def step(self, x: float) -> float:
        z = self.weight * x
        try:
            y = 1.0 / (1.0 + math.exp(-z))
            slope = y * (1.0 - y) / x
        except OverflowError:
            y, slope = 0.0, 0.0
            self.handled += 1
        except ZeroDivisionError:
            slope = 0.25
        self.weight -= 0.01 * (y - 0.3) * slope
        return y


@pytest.mark.parametrize("backend", ["c", "python"])
def test_2_an_error_that_a_handler_takes(backend: str) -> None:
    """Calls in which nothing raises are compiled, and others are plain Python."""
    plain, other = Sigmoid(), Sigmoid()
    step = mgjit.compile(background=False, backend=backend, refuse="error")(other.step)
    for k in range(200):
        x = 0.0 if k == 70 else -1e5 if k == 150 else 0.37 * (k % 5) - 1.0
        assert (step(x), vars(other)) == (plain.step(x), vars(plain))
    assert step.stats.plain_calls + step.stats.waiting_calls == 2
    assert other.handled == 1


def test_3_errors_in_many_calls() -> None:
    """Then the step is plain Python."""
    plain, other = Sigmoid(), Sigmoid()
    step = mgjit.compile(background=False)(other.step)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(60):
            x = -1e5 if k % 3 == 2 else 0.5
            assert (step(x), vars(other)) == (plain.step(x), vars(plain))
    assert ["raises an error in many of its calls" in str(one.message) for one in told] == [True]
    assert step.stats.calls < 30


def test_3_paths_that_take_longer_to_find_than_plain_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once their calls have used up what compiled calls had saved."""
    monkeypatch.setattr(giving_up, "_FLAT", 1e-5)
    monkeypatch.setattr(leaving.Leaving, "_is_weighed", True)
    monkeypatch.setattr(paths, "_SHARE", 0.0)
    plain, other = Tally(), Tally()
    step = mgjit.compile(background=False, verify="never")(other.step)
    for k in range(400):
        x = 0.37 * (k % 4)
        assert (step(x), other.shown()) == (plain.step(x), plain.shown())
    assert not len(step._kernels)
    assert "to find it takes longer" in step.stats.last.reason


def test_4_what_has_no_paths_says_so() -> None:
    """Frozen steps, and phases that are run separately."""
    with pytest.raises(MgjitError):
        mgjit.freeze(halved, 3.0)
    with pytest.raises(MgjitError):
        mgjit.compile(background=False, backend="python")(halved).forward(3.0)


def test_the_tree_of_paths_that_explain_shows() -> None:
    """With the line of each branch, its answers, and how often calls that had left other paths came there."""
    step = mgjit.compile(background=False, backend="python", verify="never")(halved)
    for x in (0.5, 3.0, 0.5, 3.0, 12.0, 0.25):
        step(x)
    *_, start = (k for k, text in enumerate(step.lower(0.5).explain().splitlines()) if "asks for numbers" in text)
    line = f"test_paths.py:{halved.__code__.co_firstlineno + 2}"
    assert step.lower(0.5).explain().splitlines()[start : start + 5] == [
        "asks for numbers on its way: 3 paths have kernels; 5 times a call was left by one, 5 went to another one",
        f"    {line}: 0; kernel, 2 calls from others",
        f"    {line}: 1, 1",
        f"      {line}: 0; kernel, 2 calls from others",
        f"      {line}: 1, 1, 0; kernel, 1 call from others",
    ]


def test_the_tree_shows_ways_that_have_no_kernel() -> None:
    step = mgjit.compile(background=False, backend="python", verify="never")(lambda x: halved(1.0 / x))
    step(2.0)
    step(2.0)
    with pytest.raises(ZeroDivisionError):
        step(0.0)
    told = step.lower(2.0).explain()
    assert f"question 1, test_paths.py:{halved.__code__.co_firstlineno + 2}: a number is infinite or nan; " in told


def test_3_errors_of_plain_python_that_close_paths() -> None:
    """The call in which too many numbers have failed raises an error: later ones are plain nevertheless."""
    draw = random.Random(3)

    class Tuned:
        def __init__(self) -> None:
            self.weight, self.state = 0.5, random.Random(7)

        def step(self, x: float) -> Any:
            y = 1.0 / x
            while y > 2.0:
                y -= 1.0
            self.weight += 0.01 * y
            n = 0
            while self.state.random() > 0.4 and n < 4:
                n += 1
            return y, n

    def outcome(step: Any, x: float) -> Any:
        try:
            return step(x)
        except ZeroDivisionError as error:
            return str(error)

    plain, other = Tuned(), Tuned()
    step: Any = mgjit.compile(background=False, verify="never")(other.step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainWarning)
        for _ in range(200):
            x = draw.choice([0.0, 0.5, -0.5, draw.uniform(0.1, 1.0)])
            assert outcome(step, x) == outcome(plain.step, x)
            assert other.weight == plain.weight
            if "raises an error in many" in step.stats.last.reason:
                calls = step.stats.calls
                break
        for k in range(50):
            x = 0.5 + 0.01 * k
            assert (outcome(step, x), other.weight) == (outcome(plain.step, x), plain.weight)
    assert step.stats.calls == calls
