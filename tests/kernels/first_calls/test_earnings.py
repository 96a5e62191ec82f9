"""earnings.py: which structures of arguments have earned a trace, and a kernel."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.kernels.first_calls import earnings as module
from mgjit.kernels.first_calls.earnings import Earnings, Waiting


def earned(earnings: Earnings, key: str, compiled: int = 0) -> bool:
    try:
        earnings.require(key, compiled)
    except Waiting:
        return False
    return True


def test_01_the_first_structure_is_traced_at_once() -> None:
    """Others when they have taken as long as a trace, and compiled calls have saved what was spent."""
    earnings = Earnings()
    assert earned(earnings, "first")
    earnings.note_trace("first", 1.0)
    assert not earned(earnings, "second")
    earnings.note_plain("first", 0.5)
    earnings.note_plain("second", 0.75)
    assert not earned(earnings, "second", compiled=10)
    earnings.note_plain("second", 0.75)
    earnings.part = 1.0
    assert not earned(earnings, "second", compiled=3)
    assert earned(earnings, "second", compiled=6)  # which have saved half a second each
    assert not earned(earnings, "first", compiled=6)
    earnings.part = 0.5  # the other half is gained
    assert not earned(earnings, "second", compiled=6)
    assert earned(earnings, "second", compiled=10)
    earnings.note_spent("first", 1.0)
    assert not earned(earnings, "second", compiled=10)


def test_01_a_batch_of_several_lengths_is_traced_when_it_comes_again() -> None:
    """Or after some batches of ever new lengths; a function that is compiled by itself comes first."""
    earnings = Earnings()
    assert not earned_ragged(earnings, 0)
    for number in range(module.RAGGED_CALLS):
        earnings.note_call(number)
        assert not earned_ragged(earnings, number)
        earnings.note_plain(number, 0.5)
    earnings.note_call(0)
    assert earned_ragged(earnings, 0)
    earnings.note_call("another")
    assert not earned_ragged(earnings, "another")
    earnings.note_plain("another", 0.5)
    earnings.note_call("one more")
    assert earned_ragged(earnings, "one more")
    earnings.expect_trace(10.0)  # where that has been chosen
    assert not earned_ragged(earnings, "one more")


def earned_ragged(earnings: Earnings, key: Any) -> bool:
    try:
        earnings.require(key, 0, is_ragged=True)
    except Waiting:
        return False
    return True


def test_02_a_structure_that_is_met_late_has_to_earn_more() -> None:
    """Where calls are expected to go on for some time, a part of that is enough at first."""
    earnings = Earnings()
    earnings.patience, earnings.share, earnings.horizon = 0.125, 1e9, 100
    earnings.note_trace("first", 1.0)
    earnings.note_plain("second", 0.25)
    assert earned(earnings, "second")
    assert not earned(earnings, "second", compiled=50)
    earnings.note_plain("second", 0.5)
    assert earned(earnings, "second", compiled=50)
    assert not earned(earnings, "second", compiled=200)
    earnings.note_plain("second", 0.25)
    assert earned(earnings, "second", compiled=200)


def test_02_more_traces_of_one_structure_cost_more() -> None:
    """Each has to be earned by as many plain seconds as all before it."""
    earnings = Earnings()
    earnings.note_trace("first", 1.0)
    earnings.note_plain("first", 1.0)
    assert earned(earnings, "first")
    earnings.note_trace("first", 1.0)
    earnings.note_plain("first", 1.5)
    assert not earned(earnings, "first")
    earnings.note_plain("first", 0.5)
    assert earned(earnings, "first")


def test_02_a_structure_that_will_come_often_is_traced_early() -> None:
    """Where it is known how many calls are to come; not one that comes rarely, or for the first time."""
    earnings = Earnings()
    earnings.budget, earnings.all_calls = 10.0, 100
    earnings.note_trace("first", 1.0)
    for key in ("first", "often", "often", "rare", "often", "rare"):
        earnings.note_plain(key, 0.1)
    assert not earned(earnings, "often")  # nothing shows yet that kernels are of use
    assert earned(earnings, "often", compiled=1)  # 47 calls in 4.7 seconds
    assert not earned(earnings, "never", compiled=1)
    for _ in range(14):
        earnings.note_plain("rest", 0.01)
    assert not earned(earnings, "rare", compiled=1)  # 8 calls in a third of a second
    with pytest.raises(Waiting):
        earnings.require("often", 1, is_building=True)


def test_02_a_structure_is_traced_at_its_first_call_where_most_come_again() -> None:
    """Not where each call has another one."""
    usual, ragged = Earnings(), Earnings()
    for earnings, kinds in ((usual, 3), (ragged, 30)):
        earnings.budget, earnings.all_calls = 10.0, 1_000
        earnings.note_trace("first", 1.0)
        for number in range(30):
            earnings.note_plain(f"length {number % kinds}", 0.25)
    assert earned(usual, "length 3", compiled=1)
    assert not earned(ragged, "length 30", compiled=1)


def test_02_what_was_not_saved_is_a_tenth_at_most() -> None:
    """Of the time of plain calls, whatever each structure has earned; also where it will come often."""
    for calls in (0, 10_000):
        earnings = Earnings()
        earnings.all_calls = calls
        earnings.note_trace("first", 1.0)
        traced: list[str] = []
        for number in range(64):
            key = f"length {number % 8}"
            earnings.note_plain(key, 1.0)
            if key not in traced and earned(earnings, key):
                earnings.note_trace(key, 1.0)
                traced.append(key)
        assert len(traced) == 5


def test_02_what_is_saved_is_told_by_the_structures_that_were_traced() -> None:
    """They may be the short ones."""
    earnings = Earnings()
    earnings.note_trace("short", 1.0)
    earnings.note_plain("short", 0.25)
    earnings.note_plain("long", 4.0)
    assert earnings.are_repaid(5)
    assert not earnings.are_repaid(4)


def test_02_a_structure_whose_calls_take_longer_has_to_earn_a_longer_trace() -> None:
    """As the last trace to a call of its structure."""
    earnings = Earnings()
    earnings.note_trace("short", 1.0)
    earnings.note_plain("short", 0.25)
    earnings.note_plain("long", 1.0)
    earnings.note_plain("long", 1.0)
    assert not earned(earnings, "long", compiled=100)
    earnings.note_plain("long", 2.0)
    assert not earned(earnings, "long", compiled=100)  # 4 seconds now
    earnings.note_plain("long", 1.5)
    assert earned(earnings, "long", compiled=100)
    earnings.note_spent("short", 0.5)  # such as a comparison
    assert not earned(earnings, "long", compiled=100)


def test_03_the_first_trace_may_have_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a trace takes long, as on PyPy."""
    monkeypatch.setattr(module, "_BEFORE_FIRST", 2.0)
    earnings = Earnings()
    earnings.note_plain("first", 1.5)
    assert not earned(earnings, "first")
    earnings.note_plain("second", 0.5)
    assert earned(earnings, "first")


def test_03_the_first_trace_comes_at_once_where_somebody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BEFORE_FIRST", 2.0)
    earnings = Earnings()
    earnings.note_plain("first", 0.1)
    earnings.begins_at_once = earnings.is_asked = True
    assert earned(earnings, "first")


def test_03_calls_that_are_short_or_never_alike_have_to_wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first trace costs a tenth of a second, or more, and nobody knows how many calls are to come."""
    monkeypatch.setattr(module, "_FIRST_SECONDS", 0.1)
    earnings = Earnings()
    assert not earned(earnings, "first")
    earnings.note_plain("first", 0.01)
    assert earned(earnings, "first")  # 100 of them take a second
    short = Earnings()
    short.note_plain("first", 0.0005)
    assert not earned(short, "first")
    short.note_plain("first", 0.0005, calls=300)
    assert earned(short, "first")  # as many again
    rare = Earnings()
    for number in range(50):
        rare.note_plain(number, 0.004)
    rare.note_plain("twice", 0.004, calls=2)
    assert not earned(rare, "twice")
    rare.begins_at_once = True
    assert earned(rare, "twice")


def test_03_structures_that_are_known_to_pay_are_traced_at_once_within_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one, and others as soon as all traces are a fifth of the time of plain calls."""
    monkeypatch.setattr(module, "_FIRST_SECONDS", 0.1)
    earnings = Earnings()
    earnings.require("first", 0, is_sure=True)
    earnings.note_trace("first", 0.2)
    with pytest.raises(Waiting):
        earnings.require("second", 0, is_sure=True)
    earnings.note_plain("first", 2.5)
    earnings.require("second", 0, is_sure=True)
    assert not earned(earnings, "second")  # of which nothing is known


def test_04_the_first_kernel_comes_when_it_is_worth_it() -> None:
    """Plain calls over parameters in the memory of kernels are slower: a quarter of the calls must have a kernel."""
    earnings = Earnings()
    for key in ("first", "second", "second", "third", "fourth"):
        earnings.note_call(key)
    assert not earnings.are_worth_it({"first"})
    assert earnings.are_worth_it({"second"})
    assert earnings.are_worth_it({"first", "third"})
    earnings.note_call("fifth")
    earnings.note_plain("first", 0.008)
    assert not earnings.are_worth_it({"first"}, 1_000)  # to detach so many takes a fifth of a call and of that
    earnings.note_plain("first", 0.032)
    assert earnings.are_worth_it({"first"}, 1_000)  # a tenth
    assert not earnings.are_worth_it({"first"}, 100_000)  # which would not be detached


def test_04_accounts_of_ever_new_structures_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as texts, or lists that the step changes in place: what was traced keeps its account."""
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._MOST_ACCOUNTS", 10)
    earnings = Earnings()
    earnings.note_trace("first", 1.0)
    earnings.note_call("first")
    for k in range(100):
        earnings.note_call(k)
        assert len(earnings._accounts) <= 10
    assert not earnings.are_worth_it({"first"})
    for _ in range(50):
        earnings.note_call("first")
    assert earnings.are_worth_it({"first"})


def test_04_better_code_is_built_where_it_pays() -> None:
    """Two traces' worth of time is saved by calls that are to come, which the kernels share; or nobody knows."""
    earnings = Earnings()
    assert earnings.better_code_pays(1, 1, 1e-6, 1.0)
    assert not earnings.better_code_pays(700, 1, 1e-3, 1.0, 0.1)  # the program waits for it
    assert earnings.better_code_pays(900, 1, 1e-3, 1.0, 0.1)
    earnings.all_calls = 2_000.0
    assert earnings.better_code_pays(4, 1, 2e-3, 1.0)
    assert not earnings.better_code_pays(4, 2, 2e-3, 1.0)
    assert not earnings.better_code_pays(1_996, 1, 1e-4, 1.0)
    assert earnings.better_code_pays(20_000, 1, 1e-4, 1.0)  # more than were expected: as many more, then


def test_05_how_many_calls_look_for_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there have been; but no more than take fifty times as long as a look; none where calls are long."""
    monkeypatch.setattr(module, "_MOST_UNLOOKED", 10_000)
    monkeypatch.setattr(module, "seconds_of_clock", lambda: 0.0)
    assert [module.unlooked(calls, 1e-4, 1e-6) for calls in (1, 2, 4, 8, 5_001, 9_999)] == [0, 1, 3, 7, 5_000, 5_000]
    assert [module.unlooked(1_000_000, 1e-4, plain) for plain in (1e-2, 1e-3, 1e-6, 0.0)] == [0, 5, 5_000, 10_000]


@pytest.mark.parametrize(("structures", "are_new"), [(64, True), (60, True), (20, False)])
def test_a_sample_tells_whether_each_call_has_another_structure(structures: int, are_new: bool) -> None:
    earnings = Earnings()
    assert not earnings.are_ever_new("before any sample")
    earnings.begin_sample()
    found = [earnings.are_ever_new(k % structures) for k in range(64)]
    assert not any(found[:-1])
    assert not earnings.is_sampling
    assert found[-1] == earnings.are_ever_new("after it") == are_new


def test_a_step_whose_ints_are_others_at_each_call_says_so_once() -> None:
    w = [0.5]

    @mgjit.compile(background=True)
    def step(x: Any, number: Any) -> Any:
        for _ in range(15_000):  # so long that a trace is expected to pay
            w[0] -= 0.001 * (w[0] * x - 1.0) * x
        return w[0] + len(bin(number))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for number in range(1000, 1250):
            step(0.1, number)
    assert [one.category for one in seen] == [PlainWarning]
    assert "nearly each call would be another trace, since number was" in str(seen[0].message)
    assert "mgjit.one_hot" in str(seen[0].message)
    assert "nearly each call" in str(step.stats.last)
