"""`try` around traced operations, whose handlers compiled calls would never run.

Compiled arithmetic goes on where Python raises, so a handler of `ZeroDivisionError` would be lost; and while a step is
traced, a handler may catch what is not meant for it.  The body of each `try` that has handlers is therefore watched:

1. If operations that may raise in Python have been recorded in it, and a handler would take the exception and go on,
   the trace assumes that none has raised: a call in which one may have is made by plain Python (record/answers.py).
   Where nothing can be assumed, all calls run as plain Python.
2. If a handler is about to take an error of mgjit, such as a TraceError, the call runs as plain Python as well.
3. A bare `except:` takes even that.  Then the end of the trace is what raises it.
4. A `finally` that returns, or ends a turn of a loop, takes everything as well.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...base.lookup import package_of
from ...engine.leaks import PlainCall, Symbol
from ...errors import user_location
from ...ir import opcodes as ops
from ..record.current import current_recorder

#: What may raise one of these in Python: an operation on numbers, or a backward pass, which is made of them.
_ERRORS = (ZeroDivisionError, OverflowError, ValueError)
_AS_A_WHOLE = frozenset({ops.LINK_DIVIDED, ops.BACKWARD})  # of which nothing can be assumed
_MAY_RAISE = _AS_A_WHOLE | ops.opcodes(lambda one: one.raises)


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether the function goes on after a handler, and does not merely raise something in turn."""
    leaves = (ast.Return, ast.Break, ast.Continue)
    is_left = any(isinstance(part, leaves) for statement in handler.body for part in ast.walk(statement))
    return is_left or not isinstance(handler.body[-1], ast.Raise)


def takes_all(last: list[ast.stmt]) -> bool:
    """Whether the statements of a `finally` leave it, and with that any exception behind."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in last]
    while pending:
        part, in_loop = pending.pop()
        if isinstance(part, ast.Return) or (isinstance(part, (ast.Break, ast.Continue)) and not in_loop):
            return True
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            inside = in_loop or isinstance(part, (ast.For, ast.While))
            pending += [(child, inside) for child in ast.iter_child_nodes(part)]
    return False


class Attempt:
    """A context around the body of a `try`.

    Args:
        kinds: returns the classes of exceptions that the handlers take, after which the function goes on.
    """

    def __init__(self, kinds: Callable[[], tuple[Any, ...]]) -> None:
        self._kinds, self._recorder = kinds, current_recorder()

    def __enter__(self) -> None:
        if self._recorder is not None:
            self._records, self._checks = len(self._recorder.op), len(self._recorder.checks)
            self._divisions = Symbol.divisions

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None = None
    ) -> None:
        recorder = self._recorder
        if recorder is None or recorder is not current_recorder():
            return
        reason = ""
        if error is None or not _is_ours(error):
            handled = next(filter(self._handles, self._lost()), None)
            if handled is not None and not self._may_assume():
                reason = f"{user_location()}: the step handles {handled.__name__}, which compiled calls do not raise"
        elif isinstance(error, Exception) and self._handles(type(error)):
            reason = f"{user_location()}: the step handles an error of mgjit: {error}"
        plain = PlainCall(reason) if reason else None
        error = plain or error
        if error is not None and _is_ours(error) and self._handles(type(error)):
            recorder.interrupted = recorder.interrupted or error
        if plain is not None:
            raise plain from None

    def _may_assume(self) -> bool:
        """Whether the trace now assumes that nothing has raised in the body."""
        assert self._recorder is not None
        answers, is_checked = self._recorder.answers, len(self._recorder.checks) > self._checks
        if answers is None or is_checked or Symbol.divisions > self._divisions:
            return False
        codes = {code & (ops.NUMBER - 1) for code in self._recorder.op[self._records :]}
        return not codes & _AS_A_WHOLE and answers.nothing_raised(self._records)

    def _lost(self) -> list[type[Exception]]:
        """The errors that may be raised in Python by what was recorded in the body."""
        assert self._recorder is not None
        codes = {code & (ops.NUMBER - 1) for code in set(self._recorder.op[self._records :])}
        lost: list[type[Exception]] = [IndexError] if len(self._recorder.checks) > self._checks else []
        return [*lost, *_ERRORS] if codes & _MAY_RAISE or Symbol.divisions > self._divisions else lost

    def _handles(self, error: type[BaseException]) -> bool:
        """Whether a handler takes this."""
        try:
            return any(issubclass(error, part) for part in _flat(self._kinds()))
        except Exception:  # as a name that is not defined: Python asks for it only when there is an exception
            return False


class Suppressing(contextlib.suppress):
    """`contextlib.suppress(...)`, which is a `try` as well."""

    def __init__(self, *kinds: Any) -> None:
        super().__init__(*kinds)
        self._attempt = Attempt(lambda: kinds)

    def __enter__(self) -> None:
        self._attempt.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self._attempt.__exit__(kind, error)
        return bool(super().__exit__(kind, error, traceback))


def _flat(kind: Any) -> tuple[Any, ...]:
    return tuple(part for inner in kind for part in _flat(inner)) if isinstance(kind, tuple) else (kind,)


def _is_ours(error: BaseException) -> bool:
    return package_of(type(error)) == "mgjit"
