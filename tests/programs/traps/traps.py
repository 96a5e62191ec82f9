"""Every way a tracing JIT can surprise, and every form that a step may have: data for a test and for docs/traps.md.

1. A trap is a script with `mgjit.compile` in it, which calls steps, changes something in between, and tells `check`
   what there is to see.  `play` runs it, with the decorator or without.
2. `fails(trap)` says what differs: what was checked, or the error or warning.
3. `document()` is docs/traps.md, made of the same data.

    python -m tests.programs.traps.traps --write     # writes docs/traps.md
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mgjit import errors

PYPY = sys.implementation.name == "pypy"
DOCUMENT = Path(__file__).parents[3] / "docs" / "traps.md"

PRELUDE = '''\
from __future__ import annotations

import array, collections, copy, dataclasses, enum, functools, gc, itertools, math
import operator, pickle, statistics, threading, time, types, typing, weakref

import mgjit
from mgjit import Value, nn

w = Value(2.0)


class Node:
    """An autograd class as people write it."""

    def __init__(self, data, children=(), grads=()):
        self.data, self.grad, self._children, self._grads = data, 0.0, children, grads

    def __add__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, grad in zip(node._children, node._grads):
                child.grad += grad * node.grad


'''

_INTRODUCTION = """\
# Forms of a step, and traps

Each line is a small program that runs with the decorator and without. After several calls, everything that can be
observed is compared, bit for bit.

- **As Python**: both are equal. If something that the step depends on has changed, it is traced again.
- Every other outcome is a warning, or an error of `mgjit.errors`, with the line of your code and what to write instead.
- The errors are those of `refuse="error"`. By default, plain Python makes these calls: the numbers are as Python's, and
  a `PlainWarning` has the text of the error.
- `...` in a message stands for any text.

What lies around a step (parameters, methods, modules) is compared with what it was when the step was traced. Numbers
are compared at every call, and so is everything else where there is little of it. Long lists are compared at the first
calls, and later so rarely that it takes a fiftieth of the time. So a change in the middle of a fast loop may be noticed
some calls late, with a `RetraceWarning`. Call `step.clear()` after such a change.

The page is made of tests (`tests/test_footguns.py`), by `python -m tests.programs.traps.traps --write`.
"""


class Trap(NamedTuple):
    """A trap, or a supported form.

    Attributes:
        name: in words.
        code: the script.
        outcome: the name of the error that the script ends with, or of a warning; empty if everything is as in Python.
        message: its text; `...` at the end stands for any text.
    """

    name: str
    code: str
    outcome: str = ""
    message: str = ""


def load() -> dict[str, list[Trap]]:
    """All traps, by chapter."""
    from tests.programs.traps.cases import (
        arguments,
        conditions,
        containers,
        counters,
        forms,
        functions,
        messages,
        numbers,
        outside,
        parameters,
        references,
        types,
    )

    modules = (
        *(forms, arguments, numbers, types, conditions, containers, parameters, functions, references),
        *(counters, outside, messages),
    )
    return {str(module.__doc__).rstrip("."): module.CASES for module in modules}


class Played(NamedTuple):
    """What has become of a script: what it has checked, how it ended, our warnings, and what it has printed."""

    seen: list[Any]
    error: BaseException | None
    warned: Sequence[warnings.WarningMessage]
    printed: str


def play(code: str, folder: Path, name: str, decorated: bool, prelude: str = PRELUDE) -> Played:
    """Run a script as a module of this name."""
    file = folder / f"{name}.py"
    file.write_text(prelude + (code if decorated else code.replace("mgjit.compile", "undecorated")), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    seen: list[Any] = []
    module.check = lambda *things: seen.extend(map(_bits, things))
    module.undecorated = lambda function=None, **_: function if function is not None else lambda inner: inner
    sys.modules[name] = module
    error, printed = None, io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            spec.loader.exec_module(module)
        except Exception as raised:
            error = raised
        finally:
            del sys.modules[name]
    ours = [one for one in warned if one.category.__module__ == errors.__name__]
    return Played(seen, error, ours, printed.getvalue())


def _bits(thing: Any) -> Any:
    """Something that is equal only for what is equal to the last bit, and of the same kind."""
    if not isinstance(thing, memoryview) and hasattr(thing, "data"):
        return _bits(thing.data)
    if isinstance(thing, float):
        return "nan" if thing != thing else float(thing).hex()
    if isinstance(thing, (list, tuple)):
        return [type(thing).__name__, *map(_bits, thing)]
    if isinstance(thing, dict):
        return [(name, _bits(part)) for name, part in thing.items()]
    return type(thing).__name__, repr(thing)


def fails(trap: Trap, folder: Path) -> str:
    """What is not as it should be, or nothing."""
    wanted = play(trap.code, folder, "user_undecorated", decorated=False)
    got = play(trap.code, folder, "user_decorated", decorated=True)
    if wanted.error is not None:
        return f"undecorated, it ended with {wanted.error!r}"
    if got.seen != wanted.seen[: len(got.seen)]:
        return f"{got.seen} was seen, not {wanted.seen}"
    if got.error is None and len(got.seen) != len(wanted.seen):
        return "it ended early"
    outcome = got.error if got.error is not None else got.warned[0].message if got.warned else None
    kind, text = ("", "") if outcome is None else (type(outcome).__name__, str(outcome))
    if PYPY and issubclass(getattr(errors, trap.outcome, Warning), TypeError) and isinstance(outcome, TypeError):
        return ""  # PyPy replaces a TypeError by one of its own in some places
    if kind != trap.outcome or trap.message.removesuffix("...").strip() not in " ".join(text.split()):
        return f"the outcome was {kind}: {text}"
    return ""


def fails_by_default(trap: Trap, folder: Path) -> str:
    """What is not as in the undecorated script, where no errors were asked for; or nothing."""
    wanted = play(trap.code, folder, "user_undecorated", decorated=False)
    got = play(trap.code, folder, "user_decorated", decorated=True)
    if got.error is not None:
        return f"it ended with {got.error!r}"
    if got.seen != wanted.seen:
        return f"{got.seen} was seen, not {wanted.seen}"
    kinds = [warned.category.__name__ for warned in got.warned]
    return "" if kinds == ["PlainWarning"] else f"the warnings were {list(map(str, got.warned))}"


def is_refused(trap: Trap) -> bool:
    """Whether the script ends with an error where those are asked for."""
    kind = getattr(errors, trap.outcome, None)
    return kind is not None and not issubclass(kind, Warning)


def document() -> str:
    """The text of docs/traps.md."""
    parts = [_INTRODUCTION]
    for chapter, traps in load().items():
        parts.append(f"\n## {chapter}\n\n| what | outcome |\n|---|---|\n")
        for trap in traps:
            outcome = f"`{trap.outcome}`: {trap.message}" if trap.outcome else "as Python"
            parts.append(f"| {_cell(_capitalised(trap.name))} | {_cell(outcome)} |\n")
    return "".join(parts)


def _capitalised(name: str) -> str:
    """A name with a capital, unless it begins with code, such as `math.exp` or `float(x)`."""
    return name if re.match(r"[\w.]+[.(]", name) else name[0].upper() + name[1:]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.programs.traps.traps --write")
    DOCUMENT.write_text(document(), encoding="utf-8")
