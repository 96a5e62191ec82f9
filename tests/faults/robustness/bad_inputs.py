"""Bad inputs, what is raised, and what it says: data for the test and for docs/robustness.md.

1. A case is a piece of code, the name of its error, and the message; `...` in a message is anything.
2. `fails(case)` runs the code after `PRELUDE`, as a file `user.py`, and says what differs from the case: the error, the
   message, a number that has changed, something of the process, or the result of the next good call.
3. `document()` is docs/robustness.md, made of the same cases.

    python -m tests.faults.robustness.bad_inputs --write     # writes docs/robustness.md
"""

from __future__ import annotations

import builtins
import contextlib
import io
import linecache
import os
import re
import struct
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mgjit
from mgjit import errors
from tests.faults.robustness.injection import process

DOCUMENT = Path(__file__).parents[3] / "docs" / "robustness.md"

PRELUDE = '''\
import array, collections, datetime, decimal, fractions, functools, math, os, pickle, random, tempfile, time

import mgjit
from mgjit import Value
from mgjit.cli.main import main

w = Value(2.0)
s = mgjit.state([1.0, 2.0])
model = mgjit.nn.MLP(2, [3, 1])
product = mgjit.compile(lambda x: w * x)
total = mgjit.compile(lambda xs: sum(w * x for x in xs))
kept = []
elsewhere = collections.deque()  # where no trace looks


def kept_from_a_trace():
    mgjit.compile(lambda x: elsewhere.append(w * x))(1.0)
    return elsewhere[0]


class Floaty:
    def __float__(self):
        return 2.0


def Odd(name):
    """An object with a method that fails."""

    def fail(self, *arguments):
        raise RuntimeError(name)

    return type("Odd", (), {name: fail})()


floaty = Floaty()
'''

_INTRODUCTION = """\
# Bad inputs

Each line is a mistake, and what mgjit says about it. The third column tells who reports it:

- **plain**: by default, plain Python makes the call, and one `PlainWarning` has this text. With `refuse="error"` or
  `MGJIT_REFUSE=error`, it is the error.
- **error**: it is always an error. Plain Python would raise one as well, or the mistake is in a call of mgjit itself.

After each error all parameters, gradients and state are as they were, and the next call is right. Each error is also
the standard exception that fits, so `except TypeError` works in code that does not know mgjit. Exceptions of your own
code pass through unchanged.

The page is made of tests, by `python -m tests.faults.robustness.bad_inputs --write`. `...` in a message stands for any
text. `user.py` is the file with the code, which begins with this:

```python
{prelude}```
"""


class Case(NamedTuple):
    """A bad input.

    Attributes:
        code: statements, or an expression.
        error: the name of the class that is raised, or of the category of a warning.
        message: the whole text.
        goes_on: whether that is so with `refuse="error"` only, and by default plain Python makes the call.
    """

    code: str
    error: str
    message: str
    goes_on: bool = False

    def needs_numpy(self) -> bool:
        """Whether it can only be tried with numpy."""
        return "np." in self.code


def load() -> dict[str, list[Case]]:
    """All cases, by chapter."""
    from tests.faults.robustness import cases

    return cases.CHAPTERS


# ---- 2: what happens -----------------------------------------------------------------------------------


def fails(case: Case) -> str:
    """What is not as it should be, or nothing."""
    space: dict[str, Any] = {"__name__": "user"}
    if case.needs_numpy():
        import numpy

        space["np"] = numpy
    _run(PRELUDE, "prelude.py", space)
    before, quiet = _numbers(space), process()
    kind, text = _outcome(case.code, space)
    if kind is None or kind.__name__ != case.error:
        return f"{case.error} was expected, not {kind}: {text}"
    if case.error in vars(errors) and not issubclass(kind, (*_STANDARD, Warning)):
        return f"{kind} is no standard exception"
    if not re.fullmatch(".*".join(map(re.escape, case.message.split("..."))), text, re.DOTALL):
        return f"the message was {text}"
    if _numbers(space) != before:
        return f"numbers have changed from {before} to {_numbers(space)}"
    if process() != quiet:
        return f"the process was {quiet}, is {process()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = [float(space["product"](3.0)), float(mgjit.compile(lambda x: space["w"] * x + 1.0)(3.0))]
    return "" if again == [6.0, 7.0] else f"the next calls gave {again}"


def _run(code: str, name: str, space: dict[str, Any]) -> None:
    """Run code as a file of this name, whose source is there as that of a file is."""
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
    exec(compile(code, name, "exec"), space)  # noqa: S102 - code of this file and of the cases


_STANDARD = (TypeError, ValueError, IndexError, RuntimeError, OSError, NotImplementedError)


def _numbers(space: dict[str, Any]) -> list[bytes]:
    values = [space["w"], *space["model"].parameters()]
    numbers = [x for value in values for x in (value.data, value.grad)] + list(space["s"])
    return [struct.pack("<d", x) for x in numbers]


def _outcome(code: str, space: dict[str, Any]) -> tuple[type[BaseException] | None, str]:
    """What is raised, or else the first warning."""
    printed = io.StringIO()
    with _environment(), warnings.catch_warnings(record=True) as warned, contextlib.redirect_stderr(printed):
        warnings.simplefilter("always")
        try:
            _run(code, "user.py", space)
        except SystemExit as error:
            return type(error), printed.getvalue() or str(error)
        except BaseException as error:
            return type(error), str(error)
    ours = [w for w in warned if issubclass(w.category, (errors.RetraceWarning, errors.BackendWarning))]
    return (ours[0].category, str(ours[0].message)) if ours else (None, "nothing")


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Environment variables that are set inside are gone afterwards."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def fails_by_default(case: Case) -> str:
    """What is not as the undecorated program has it, where errors were not asked for; or nothing."""
    plain = _played(case, False)
    got = _played(case, True)
    if not case.goes_on:  # an error of Python's, or of mgjit's own functions and options
        same = got.kind is plain.kind or (got.kind is not None and got.kind.__name__ == case.error)
        return "" if same else f"{got.kind} was raised: {got.text}; in plain Python {plain.kind}"
    if got.kind is not None or plain.kind is not None:
        return f"{got.kind} was raised: {got.text}; in plain Python {plain.kind}"
    if got.numbers != plain.numbers:
        return f"the numbers are {got.numbers}, not {plain.numbers}"
    wanted = [case.error if case.error == "RetraceWarning" else "PlainWarning"]
    names = [warned.category.__name__ for warned in got.warned]
    is_right = names == wanted * _steps_in(case) or (case.error == "ColumnError" and not names)  # calls of their own
    return "" if is_right else f"the warnings were {list(map(str, got.warned))}"


def _steps_in(case: Case) -> int:
    """How many steps are plain in a case."""
    return 2 if "kept_from_a_trace" in case.code else 1


class _Undecorated:
    """A function with the methods of a compiled step that plain Python could have."""

    def __init__(self, function: Any) -> None:
        self.forward = self.lower = self.function = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def loop(self, *columns: Any) -> list[Any]:
        return [self.function(*row) for row in zip(*columns)]


def _undecorated(function: Any = None, **_: Any) -> Any:
    return _undecorated if function is None else _Undecorated(function)


class _Played(NamedTuple):
    """How a case ended that has been run with the decorator or without it."""

    kind: type[BaseException] | None
    text: str
    numbers: list[bytes]
    warned: list[warnings.WarningMessage]


def _played(case: Case, decorated: bool) -> _Played:
    space: dict[str, Any] = {"__name__": "user", "undecorated": _undecorated}
    if case.needs_numpy():
        import numpy

        space["np"] = numpy
    prelude, code = (
        text if decorated else text.replace("mgjit.compile(", "undecorated(") for text in (PRELUDE, case.code)
    )
    _run(prelude, "prelude.py", space)
    kind, text = None, ""
    quiet = contextlib.redirect_stderr(io.StringIO())
    with _environment(), warnings.catch_warnings(record=True) as warned, quiet:
        os.environ.pop("MGJIT_REFUSE", None)
        warnings.simplefilter("always")
        try:
            _run(code, "user.py", space)
        except BaseException as error:
            kind, text = type(error), str(error)
    ours = [one for one in warned if one.category.__module__ == errors.__name__]
    return _Played(kind, text, _numbers(space), ours)


# ---- 3: the document -----------------------------------------------------------------------------------


def document() -> str:
    """The text of docs/robustness.md."""
    parts = [_INTRODUCTION.format(prelude=PRELUDE)]
    for chapter, found in load().items():
        parts.append(f"\n## {chapter}\n\n| input | error | by default | message |\n|---|---|---|---|\n")
        parts += [
            f"| {_code(case.code)} | `{case.error}`{_standard(case.error)} | {'plain' if case.goes_on else 'error'} | "
            f"{_cell(case.message)} |\n"
            for case in found
        ]
    return "".join(parts)


def _standard(name: str) -> str:
    kind = getattr(errors, name, getattr(builtins, name, None))
    standard = [base.__name__ for base in (kind.__mro__ if kind else ()) if base in _STANDARD]
    return f" ({standard[0]})" if standard and standard[0] != name else ""


def _code(code: str) -> str:
    return "<br>".join(f"`{line}`" for line in _cell(code).split("<br>"))


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|").replace("\n", "<br>")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(document(), encoding="utf-8")
    else:
        print(document())
