"""What mgjit refuses runs as plain Python, with one warning; the error comes back with `refuse="error"`."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit
from mgjit.errors import ArgumentError, DefectWarning, LeakError, MgjitError, PlainWarning, TraceError
from mgjit.kernels.first_calls.refusals import refusal, without_our_names


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of users, as opposed to that of the other tests."""
    monkeypatch.delenv("MGJIT_REFUSE")


@pytest.fixture
def caught() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def branching(x: float) -> float:
    while x > 4.0:
        x = 0.5 * x
    return float(f"{x:.1f}")


class Keeper:
    """Keeps what a call has computed, as a Value."""

    def __init__(self) -> None:
        self.weight = 1.0
        self.kept: list[Any] = []

    def step(self, x: float) -> float:
        self.weight += x
        self.kept = [{"all": mgjit.Value(self.weight * x)}]
        return self.weight


def test_1_a_refused_call_is_plain_and_says_so_once(caught: list[warnings.WarningMessage]) -> None:
    step = mgjit.compile(branching)
    assert [step(x) for x in (0.5, 5.0, 12.0)] == [0.5, 2.5, 3.0]
    assert [w.category for w in caught] == [PlainWarning]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert f"{__file__}:{branching.__code__.co_firstlineno + 3}: a traced value has no digits" in text
    assert "Return it from the step" in text
    assert step.stats.plain_calls == 3
    assert len(step.stats.plain_reasons) == 1


@pytest.mark.parametrize("by_option", [True, False])
def test_1_the_errors_come_back_on_request(by_option: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not by_option:
        monkeypatch.setenv("MGJIT_REFUSE", "error")
    with pytest.raises(TraceError):
        (mgjit.compile(refuse="error") if by_option else mgjit.compile)(branching)(0.5)


def test_1_what_was_assigned_in_the_trace_is_put_back(caught: list[warnings.WarningMessage]) -> None:
    one, other = Keeper(), Keeper()
    step = mgjit.compile(one.step)
    for x in (1.0, 2.0, 0.25):
        assert step(x) == other.step(x)
        assert (one.weight, one.kept[0]["all"].data) == (other.weight, other.kept[0]["all"].data)
        assert type(one.kept[0]["all"].data) is float
    assert [w.category for w in caught] == [PlainWarning]
    with pytest.raises(LeakError):
        mgjit.compile(refuse="error")(Keeper().step)(1.0)


def test_2_an_exception_of_the_users_own_is_the_one_of_plain_python(caught: list[warnings.WarningMessage]) -> None:
    def failing(x: float) -> float:
        raise KeyError("mine")

    step = mgjit.compile(failing)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine") as raised:
            step(1.0)
        assert raised.value.__context__ is None
        assert raised.value.__cause__ is None
    assert caught == []


def test_2_arguments_that_do_not_fit_are_an_error_of_python(caught: list[warnings.WarningMessage]) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument") as raised:
        mgjit.compile(branching)()  # type: ignore[call-arg]
    assert not isinstance(raised.value, MgjitError)
    assert caught == []


def test_3_what_only_a_stand_in_raises_is_a_refusal(caught: list[warnings.WarningMessage]) -> None:
    def step(x: float) -> float:
        return (x.hex(), 2.0 * x)[1] + sys.float_info.max.__trunc__() * 0 + float.fromhex(float.hex(x))

    assert mgjit.compile(step)(1.5) == step(1.5)
    assert [w.category for w in caught] == [PlainWarning]
    assert "Traced" not in str(caught[0].message)


def test_3_arguments_without_a_plan_are_plain_and_known_to_be(caught: list[warnings.WarningMessage]) -> None:
    step = mgjit.compile(lambda x, what: (2.0 * x, what))
    thing = 1.0 + 2.0j
    for x in (1.0, 2.0, 3.0):
        assert step(x, thing) == (2.0 * x, thing)
    with pytest.raises(ArgumentError):
        mgjit.compile(refuse="error")(lambda x, what: 2.0 * x)(1.0, thing)
    assert len(caught) == 1


def test_3_a_defect_is_said_and_the_program_goes_on(
    caught: list[warnings.WarningMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        return list(arguments)[9]

    monkeypatch.setattr("mgjit.tracing.tracer.memory.Heap.settle", _of_the_package(fail))
    step = mgjit.compile(lambda x: 2.0 * x)
    assert [step(x) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert [w.category for w in caught] == [DefectWarning]
    assert "please report it" in str(caught[0].message)


def _of_the_package(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, as if it were one of the package."""
    code = function.__code__.replace(co_filename=mgjit.kernels.first_calls.refusals.__file__)  # type: ignore[attr-defined]
    return type(function)(code, function.__globals__)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a system without timers")
def test_4_an_exception_of_a_signal_handler_passes_through(caught: list[warnings.WarningMessage]) -> None:
    def handler(*_: Any) -> None:
        raise TimeoutError("the time is over")

    def step(x: float) -> float:
        for _ in range(3_000_000):  # for longer than until the alarm
            x = x + 1.0
        return x

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeoutError, match="the time is over"):
            handler()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="the time is over"):
            mgjit.compile(step)(1.0)
        try:
            handler()
        except TimeoutError as error:
            with pytest.raises(TimeoutError):
                refusal(error, "here:1")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught == []


def test_the_rows_of_a_loop_that_are_refused_are_plain(caught: list[warnings.WarningMessage]) -> None:
    step = mgjit.compile(branching)
    assert step.loop([0.5, 5.0, 12.0]).tolist() == [0.5, 2.5, 3.0]
    assert [w.category for w in caught] == [PlainWarning]


def test_what_rows_of_a_loop_are_refused_for_is_said_once(caught: list[warnings.WarningMessage]) -> None:
    kept: list[str] = []

    @mgjit.compile(background=False)
    def step(x: float) -> float:
        kept.append(f"{x:.1f}")
        return x * len(kept)

    assert step.loop([1.0] * 10).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert [w.category for w in caught] == [PlainWarning]


@pytest.mark.parametrize("way", ["forward", "lower"])
def test_what_needs_a_kernel_raises_the_error(way: str) -> None:
    with pytest.raises(TraceError):
        getattr(mgjit.compile(branching), way)(0.5)


def test_texts_of_python_do_not_name_our_classes() -> None:
    text = without_our_names("argument 0 of type mgjit.tracing.record.numbers.TracedNumber, and 'TracedValue'")
    assert text == "argument 0 of type number, and 'number'"
