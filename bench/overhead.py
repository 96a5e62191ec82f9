"""What a trace costs, in interpreted steps, and where its time goes.

    python bench/overhead.py                                 the workloads and the scripts of bench/scripts
    python bench/overhead.py --rounds 5 --only W3 char_rnn   two of them, the quickest of five rounds

Every round makes a step anew and traces its first call, as a program does that has just been started, and then another
call, where what is known of its functions is used again.  Of all rounds, the quickest counts; all times are processor
time of one thread.

    step       the undecorated step
    first      the first trace, and how many times the step that is
    later      another trace (of a later length, where the script has several)
    run        of the later trace, the step itself, running on traced numbers
    survey     what it can reach, and which role each number has
    memory     putting traced numbers into the user's objects, recording what was assigned, putting all back
    rewriting  of the functions
    backward   of an autograd class, taken symbolically (part of `run`)
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import runpy
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import workloads  # noqa: E402
from bench.scripts import SCRIPTS  # noqa: E402
from mgjit.kernels import factory  # noqa: E402
from mgjit.kernels.factory import Maker  # noqa: E402
from mgjit.tracing.autograd.symbolic import SymbolicBackward  # noqa: E402
from mgjit.tracing.source import installed  # noqa: E402
from mgjit.tracing.tracer.memory import Heap  # noqa: E402

PARTS = ("run", "survey", "memory", "rewriting", "backward")
HEADER = " | ".join(
    ["| step", "records", "step ms", "first ms", "first / step", "later ms", *(f"{part} ms" for part in PARTS), ""]
).rstrip()

#: The parts of a trace: where the function is that does it.
_PLACES: tuple[tuple[str, Any, str], ...] = (
    ("run", Maker, "undecorated"),
    ("survey", factory, "Survey"),
    ("survey", Heap, "__init__"),
    ("memory", Heap, "enter"),
    ("memory", Heap, "settle"),
    ("memory", Heap, "restore"),
    ("rewriting", installed, "rewritten"),
    ("backward", SymbolicBackward, "record"),
)

#: A step, undecorated, and the arguments of two calls.
Made = tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]


def of_workload(name: str) -> Made:
    """The step of a workload."""
    instance = workloads.WORKLOADS[name].make(workloads.Sources())
    return instance.step, instance.calls[0], instance.calls[min(1, len(instance.calls) - 1)]


def of_script(name: str) -> Made:
    """The first step that a script compiles, as it is at its first call."""
    calls: list[tuple[Any, ...]] = []
    found: list[Callable[..., Any]] = []

    def compiled(function: Any = None, **_: Any) -> Any:
        if function is None:
            return compiled
        found.append(function)
        number = len(found)

        def call(*arguments: Any) -> Any:
            if number == 1:
                calls.append(arguments)
                if len(calls) > 1 and _lengths(arguments) != _lengths(calls[0]):
                    raise _Enough
            return function(*arguments)

        return call

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(mgjit, "compile", compiled))
        stack.enter_context(mock.patch.dict(os.environ, STEPS="12"))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.suppress(_Enough))
        runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    return found[0], calls[0], calls[-1]


class _Enough(BaseException):
    """Two calls of different lengths are known."""


def _lengths(arguments: tuple[Any, ...]) -> list[int]:
    return [len(one) for one in arguments if hasattr(one, "__len__")]


class Clock:
    """Adds up the time that functions take."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While it watches the parts of traces."""
        with ExitStack() as stack:
            for part, owner, name in _PLACES:
                stack.enter_context(mock.patch.object(owner, name, self.timed(part, getattr(owner, name))))
            yield

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts as a part."""

        def call(*positional: Any, **named: Any) -> Any:
            started = process_time()
            try:
                return work(*positional, **named)
            finally:
                self.seconds[part] += process_time() - started

        return call


def measured(make: Callable[[], Made]) -> dict[str, float]:
    """One round."""
    function, first, later = make()
    step: Any = mgjit.compile(function, background=False)
    gc.collect()
    found = {"first": _trace(step, first)[0]}
    clock = Clock()
    with clock.watching():
        found["later"], found["records"] = _trace(step, later)
    found.update(clock.seconds)
    started = process_time()
    function(*first)
    found["step"] = process_time() - started
    return found


def _trace(step: Any, arguments: tuple[Any, ...]) -> tuple[float, float]:
    """The seconds and the records of a trace."""
    maker = step._kernels.maker
    while True:
        plan = maker.plan(arguments)
        started = process_time()
        try:
            prepared = maker.prepared(plan, "", True)
        except factory.Again:
            continue
        return process_time() - started, float(len(prepared.traced.trace))


def row(name: str, rounds: int) -> str:
    """One row of the table."""
    make = of_workload if name in workloads.WORKLOADS else of_script
    all_found = [measured(lambda: make(name)) for _ in range(rounds)]
    least = {key: min(found.get(key, 0.0) for found in all_found) for key in ("step", "first", "later", *PARTS)}
    times = " | ".join(f"{1e3 * least[part]:.1f}" for part in PARTS)
    return (
        f"| {name} | {all_found[0]['records']:,.0f} | {1e3 * least['step']:.1f} | {1e3 * least['first']:.1f} | "
        f"{least['first'] / max(least['step'], 1e-9):.1f} | {1e3 * least['later']:.1f} | {times} |"
    )


def main() -> None:
    """The command line."""
    names = ["W2", "W3", "W5", "W6", *sorted(path.stem for path in SCRIPTS.glob("*.py"))]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is traced; the quickest counts")
    parser.add_argument("--only", nargs="+", choices=[*names, *workloads.WORKLOADS], default=names, metavar="NAME")
    options = parser.parse_args()
    print(HEADER)
    print("|---|" + "---:|" * (HEADER.count("|") - 2))
    for name in options.only:
        print(row(name, options.rounds), flush=True)


if __name__ == "__main__":
    main()
