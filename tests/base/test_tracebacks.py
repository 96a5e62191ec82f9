"""Tracebacks of steps: the user's frames, and no more of this package than the entry."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.base.ffi import PYPY
from mgjit.base.tracebacks import with_short_tracebacks
from mgjit.errors import TraceError, VerificationError, is_package_file

model = nn.MLP(2, [2, 1])


def fails(x: Any) -> Any:
    raise ZeroDivisionError("of the user")


def branches(x: Any) -> Any:
    if x > 0:
        return x
    x = x + 1
    return x * 2


def inner(function: Callable[[Any], Any], x: Any) -> Any:
    return function(x)


@mgjit.compile
def failing(x: Any) -> Any:
    model.zero_grad()
    return inner(fails, x)


@mgjit.compile
def refused(x: Any) -> Any:
    while x > 1:
        x = x / 2
    return x


@mgjit.compile(lock=False)
def unlocked(x: Any) -> Any:
    return inner(fails, x)


@mgjit.compile
def outer(x: Any) -> Any:
    return failing(x) + 1


def frames(work: Callable[[], Any], kind: type[BaseException]) -> list[str]:
    """The names of the functions in the traceback of an error, in brackets where they are not the user's."""
    with pytest.raises(kind) as caught:
        work()
    found = traceback.extract_tb(caught.value.__traceback__)
    return [f"[{frame.name}]" if is_package_file(frame.filename) else frame.name for frame in found[2:]]


#: What stands between a call and the step.
ENTRY = ["[call]"] if PYPY else []

WAYS: dict[str, Callable[[], Any]] = {
    "call": lambda: failing(1.0),
    "forward": lambda: failing.forward(1.0),
    "loop": lambda: failing.loop([1.0, 2.0]),
    "lower": lambda: failing.lower(1.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_01_the_user_s_frames(way: str) -> None:
    """Of a call, nothing else; of what only mgjit has, the entry stands between the call and the step."""
    entry = ENTRY if way == "call" else ["[call]"]
    assert frames(WAYS[way], ZeroDivisionError) == [*entry, "failing", "inner", "fails"]


@pytest.mark.usefixtures("no_paths")
def test_02_errors_of_this_package_end_at_the_user_s_line() -> None:
    assert frames(lambda: refused(4.0), TraceError) == [*ENTRY, "refused"]
    assert frames(lambda: failing(1.0, 2.0), mgjit.errors.ArgumentError) == ENTRY  # type: ignore[call-arg]
    assert frames(lambda: failing.update(), mgjit.errors.PhaseError) == ["[call]"]  # noqa: PLW0108 - a frame


def test_03_steps_in_steps_and_threads() -> None:
    found = frames(lambda: outer(1.0), ZeroDivisionError)
    assert [name for name in found if "[" not in name] == ["outer", "failing", "inner", "fails"]
    assert len(found) == 4 + len(ENTRY)
    assert frames(lambda: unlocked(1.0), ZeroDivisionError) == [*ENTRY, "unlocked", "inner", "fails"]


def test_04_all_of_it_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With MGJIT_LOG=2."""
    monkeypatch.setenv("MGJIT_LOG", "2")
    found = frames(lambda: failing(1.0), ZeroDivisionError)
    assert len(found) > 10
    assert found[-3:] == ["failing", "inner", "fails"]


def test_05_undecorated_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    assert frames(lambda: failing(1.0), ZeroDivisionError) == [*ENTRY, "failing", "inner", "fails"]


def test_06_defects_are_shown_in_full() -> None:
    """Errors that no line of the user's has caused, and those of a failed verification."""

    def broken(*_: Any) -> Any:
        raise kind("a defect")

    # As if it were code of this package.
    code = broken.__code__.replace(co_filename=mgjit.__file__)
    broken.__code__ = code
    entry = with_short_tracebacks(broken)
    for kind, shown in ((AssertionError, 2), (VerificationError, 2), (TraceError, 1)):
        assert len(frames(lambda: entry(), kind)) == shown  # noqa: PLW0108 - a frame


def test_07_what_belongs_to_an_error_stays() -> None:
    """Its cause, its context and its notes."""

    def step(x: Any) -> Any:
        try:
            fails(x)
        except ZeroDivisionError as error:
            raise ValueError("the second") from error

    compiled = mgjit.compile(step)
    try:
        raise KeyError("around")
    except KeyError:
        with pytest.raises(ValueError, match="the second") as caught:
            compiled(1.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__suppress_context__
    assert isinstance(caught.value.__cause__.__context__, KeyError)


@pytest.mark.parametrize("calls", [1, 3, 20, 3000])
@pytest.mark.parametrize("options", [{"background": False}, {"background": True}, {"lock": False}], ids=str)
def test_07_after_so_many_calls(options: Any, calls: int) -> None:
    """Whether they wait, are compiled, or are given up."""
    weights = [0.5]

    @mgjit.compile(**options)
    def step(x: Any) -> Any:
        weights[0] *= 0.99
        return inner(fails, x) if type(x) is str else weights[0]

    for _ in range(calls):
        step(0.5)
    found = frames(lambda: step("text"), ZeroDivisionError)
    assert [name for name in found if "[" not in name] == ["step", "inner", "fails"]
    entry = found[:1] if step.stats.calls and "[" in found[0] else []  # compiled calls go in by a function of ours
    assert PYPY or len(found) == 3 + len(entry)


def test_08_what_an_exception_is_raised_in() -> None:
    """Its context is the user's, and StopIteration stays what it is."""

    @mgjit.compile
    def step(error: Any) -> Any:
        raise error

    for kind in (ValueError, StopIteration, GeneratorExit, KeyboardInterrupt):
        outer = KeyError("outer")
        try:
            raise outer
        except KeyError:
            with pytest.raises(kind) as caught:
                step(kind("inner"))
        assert caught.value.__context__ is outer
        assert caught.value.args == ("inner",)
