"""`try` around traced operations."""

from __future__ import annotations

import ast
import threading
import warnings

import pytest

import mgjit
from mgjit.tracing.source.handlers import Attempt, goes_on, takes_all


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise", False),
        ("raise OSError() from None", False),
        ("x = 1\n    raise", False),
        ("pass", True),
        ("return 1", True),
        ("if x: return 1\n    raise", True),
        ("x = 1", True),
    ],
)
def test_a_handler_that_only_raises_does_not_go_on(body: str, expected: bool) -> None:
    tree = ast.parse(f"def f():\n  try: x\n  except E:\n    {body}")
    handler = next(node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    assert goes_on(handler) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1", True),
        ("if x: return", True),
        ("continue", True),
        ("pass", False),
        ("def g(): return 1", False),
        ("while x: break", False),
        ("for y in x:\n     if y: return", True),
    ],
)
def test_a_finally_that_is_left_takes_all_exceptions(body: str, expected: bool) -> None:
    tree = ast.parse(
        f"for x in y:\n  try: x\n  finally:\n    {body}"
        if "return" not in body
        else f"def f():\n  try: x\n  finally:\n    {body}"
    )
    statement = next(node for node in ast.walk(tree) if isinstance(node, ast.Try))
    assert takes_all(statement.finalbody) is expected


def test_a_finally_that_returns_does_not_take_the_end_of_a_trace() -> None:
    @mgjit.compile
    def step(x: float, n: int) -> float:
        total = 0.0
        try:
            total = sum([x] * n)
        except KeyError:
            total = 1.0
        else:
            total = total + 1.0
        finally:
            return total * 2.0  # noqa: B012 - as people write it

    assert [step(0.5, n) for n in (1, 2, 3, 1)] == [3.0, 4.0, 5.0, 3.0]


def test_outside_of_a_trace_nothing_is_watched() -> None:
    with pytest.raises(ZeroDivisionError), Attempt(lambda: (ValueError,)):
        1 / 0  # noqa: B018 - what it raises is what is tested


def test_a_handler_of_arithmetic_is_for_plain_python() -> None:
    @mgjit.compile(background=False)
    def step(a: float, b: float) -> float:
        try:
            return a / b
        except (KeyError, ZeroDivisionError):
            return -1.0

    assert [step(1.0, b) for b in (2.0, 0.0, 4.0, 0.0)] == [0.5, -1.0, 0.25, -1.0]
    assert (step.stats.calls, step.stats.plain_calls + step.stats.waiting_calls) == (2, 2)


def test_where_nothing_can_be_assumed_all_calls_are_plain(no_paths: None) -> None:
    @mgjit.compile(background=False)
    def step(a: float, b: float) -> float:
        try:
            return a / b
        except ZeroDivisionError:
            return -1.0

    with pytest.warns(mgjit.errors.BackendWarning, match="handles ZeroDivisionError"):
        assert step(1.0, 2.0) == 0.5
    assert [step(1.0, b) for b in (0.0, 4.0, 0.0)] == [-1.0, 0.25, -1.0]


def test_a_handler_of_something_else_is_compiled() -> None:
    @mgjit.compile
    def step(a: float, b: float) -> float:
        try:
            return a / b
        except (KeyError, Missing):  # type: ignore[name-defined]  # noqa: F821 - asked for when there is an exception
            return -1.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [step(1.0, b) for b in (2.0, 4.0, 8.0)] == [0.5, 0.25, 0.125]
    assert (step.stats.plain_calls, step.stats.traces) == (0, 1)


def test_a_bare_except_does_not_take_the_end_of_a_trace() -> None:
    @mgjit.compile
    def step(x: float, n: int) -> float:
        try:
            total = sum([x] * n)
        except:  # noqa: E722 - as people write it
            total = -1.0
        return total

    assert [step(0.5, n) for n in (1, 2, 3, 1)] == [0.5, 1.0, 1.5, 0.5]


def test_other_threads_are_not_watched_while_a_step_is_traced() -> None:
    results: list[float] = []

    def divide(a: float, b: float) -> float:
        try:
            return a / b
        except ZeroDivisionError:
            return -1.0

    @mgjit.compile
    def step(x: float) -> float:
        thread = threading.Thread(target=lambda: results.append(divide(1.0, 0.0)))
        thread.start()
        thread.join()
        divide(1.0, 0.0)  # of constants: nothing is recorded
        return x * 2.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(1.0)
    assert results[0] == -1.0
