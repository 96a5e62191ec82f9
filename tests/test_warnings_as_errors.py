"""Programs that want all warnings to be errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit
from mgjit.errors import DefectWarning, PlainWarning, RetraceWarning, SideEffectWarning


@pytest.fixture(autouse=True)
def warnings_are_errors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


#: A step over memory and a log, and the argument of call i.
Parts = tuple[Callable[..., Any], Callable[[int], Any]]


def branches(w: list[float], log: list[Any]) -> Parts:
    """Known to be refused before the call."""

    def step(x: Any) -> Any:
        log.append("called")
        w[0] -= 0.1 * x
        while w[0] * x > 0.2:
            w[0] -= 0.01
        return w[0]

    return step, lambda i: 0.5 + 0.1 * i


def formats(w: list[float], log: list[Any]) -> Parts:
    """Known after plain Python has made the call."""

    def step(x: Any) -> Any:
        w[0] -= 0.1 * x
        log.append("called")
        return int("%d" % x) + w[0]  # noqa: UP031 - which asks for a number

    return step, lambda i: 0.5 + 0.1 * i


def complex_numbers(w: list[float], log: list[Any]) -> Parts:
    def step(x: Any) -> Any:
        w[0] -= 0.1
        return x * w[0]

    return step, lambda i: complex(i, 1.0)


def inserts(w: list[float], log: list[Any]) -> Parts:
    def step(x: Any) -> Any:
        w[0] -= 0.1 * x
        log.insert(0, w[0])
        return w[0]

    return step, lambda i: 0.5 + 0.1 * i


def lengths(w: list[float], log: list[Any]) -> Parts:
    def step(xs: Any) -> Any:
        w[0] -= 0.1 * len(xs)
        return w[0]

    return step, lambda i: [0.5] * (i + 1)


def warns(w: list[float], log: list[Any]) -> Parts:
    """A warning of the program's own is raised where plain Python raises it."""

    def step(x: Any) -> Any:
        w[0] -= 0.1 * x
        warnings.warn("of the user", UserWarning, stacklevel=2)
        return w[0]

    return step, lambda i: 0.5


PROGRAMS = {
    branches: PlainWarning, formats: PlainWarning, complex_numbers: PlainWarning, inserts: SideEffectWarning,
    lengths: RetraceWarning, warns: UserWarning,
}  # fmt: skip


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("make", PROGRAMS)
def test_01_nothing_has_changed_and_the_next_call_works(make: Any, background: bool) -> None:
    w, log = [0.5], []  # type: ignore[var-annotated]
    expected_w, expected_log = [0.5], []  # type: ignore[var-annotated]
    function, argument = make(w, log)
    plain, _ = make(expected_w, expected_log)
    step, raised = mgjit.compile(function, background=background), []
    for i in range(30):
        before = list(w), list(log)
        try:
            result = step(argument(i))
        except (PlainWarning, SideEffectWarning, RetraceWarning) as error:
            raised.append(error)
            assert (w, log) == before
            result = step(argument(i))
        except UserWarning as error:
            raised.append(error)
            result = None
        try:
            assert result == plain(argument(i))
        except UserWarning:
            assert result is None
        assert (w, log) == (expected_w, expected_log)
    assert {type(error) for error in raised} <= {PROGRAMS[make]}
    assert not any(isinstance(error, DefectWarning) for error in raised)
    if make is not warns:
        assert len(raised) <= 1
    if PROGRAMS[make] in (PlainWarning, SideEffectWarning):
        assert "Nothing has changed" in str(raised[0])
