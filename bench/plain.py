"""What a call costs that runs as plain Python, in all the forms of it, beside the same call without the decorator.

    python bench/plain.py                     a table; on Linux pinned to one processor
    python bench/plain.py --only waiting      the forms whose names begin so

Bare and decorated calls take turns in one process, with data and code of their own; a figure is the median of the
rounds, in processor time.  `target` is what a decorated call may cost: 1.05 of the bare one and 0.3 us.

    given up     the step is never compiled: its code shows it, or traces have found it
    waiting      no kernel is there yet: before the first trace, and while code is built
    structure    arguments of this structure are known to be plain, while others have a kernel
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from bench.afresh import afresh
from mgjit.kernels.building.background import Job

#: Calls before measuring, of both, whose numbers then are alike; calls a round, and rounds.
BEFORE, CALLS, ROUNDS = 60_000, 500, 25


class Neuron:
    """Keeps the list that it is called with."""

    def __init__(self) -> None:
        self.w, self.inputs = [0.5, 0.25], []

    def out(self, inputs: Any) -> Any:
        self.inputs = inputs
        return sum(a * b for a, b in zip(self.w, inputs))


def telling(neurons: int) -> Callable[[Any, Any], Any]:
    """A step that makes a text of its error, so that it is plain Python for good: a longer one with more neurons."""
    net, told = [Neuron() for _ in range(neurons)], [""]

    def step(x: Any, y: Any) -> Any:
        for _ in range(neurons):
            xs = [n.out(x) for n in net]
        e = xs[0] - y
        told[0] = f"{e:.1f}"
        for n in net:
            for i in range(2):
                n.w[i] = 0.9 * n.w[i] + 0.01 * (e + 2.0) * n.inputs[i]
        return e

    return step


def short() -> Callable[[Any, Any], Any]:
    """A step of about a microsecond that can be compiled."""
    w = [0.1, 0.2]

    def step(x: Any, y: Any) -> Any:
        e = w[0] * x + w[1] - y
        w[0] = 0.9 * w[0] + 0.01 * (e + 2.0) * x
        w[1] = 0.9 * w[1] + 0.01 * (e + 2.0)
        return e

    return step


def longer() -> Callable[[Any, Any], Any]:
    """The same of some more."""
    w = [0.1 * k for k in range(20)]

    def step(x: Any, y: Any) -> Any:
        e = -y
        for k in range(20):
            e = e + w[k] * x
        for k in range(20):
            w[k] = 0.9 * w[k] + 0.001 * (e + 2.0) * x
        return e

    return step


def objects() -> Callable[[Any, Any], Any]:
    """A step over objects, whose numbers a kernel keeps; `y` as a text makes it plain Python."""

    class Weight:
        def __init__(self, data: float) -> None:
            self.data = data

    ws = [Weight(0.1 * k) for k in range(4)]
    texts: list[Any] = []

    def step(x: Any, y: Any) -> Any:
        if type(y) is str:
            texts.append(Neuron)
            y = float(y) if len(texts) % 2 else 0.3
        e = ws[0].data * x + ws[1].data * ws[2].data + ws[3].data - y
        for w in ws:
            w.data = 0.9 * w.data + 0.01 * (e + 2.0)
        return e

    return step


@dataclass
class Form:
    """A way to call a step as plain Python.

    Attributes:
        make: an undecorated step. arguments: of its calls. options: of the decorator.
        prepare: what comes first for the decorated one. decorated: how it is called then.
        around: within which all takes place.
    """

    make: Callable[[], Callable[..., Any]]
    arguments: tuple[Any, ...] = (0.5, 0.3)
    options: dict[str, Any] | None = None
    prepare: Callable[[Any], Any] = lambda step: None
    decorated: Callable[[Callable[..., Any], dict[str, Any]], Any] | None = None
    around: Callable[[], Any] = contextlib.nullcontext


@contextlib.contextmanager
def nothing_is_built() -> Iterator[None]:
    """Code never comes."""
    with mock.patch.object(Job, "has_ended", return_value=False):
        yield


@contextlib.contextmanager
def beside_a_thread(within: Callable[[], Any] = contextlib.nullcontext) -> Iterator[None]:
    """Another thread is there, as in a notebook or below a progress bar, and sleeps."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with within():
            yield
    finally:
        end.set()
        thread.join()


@contextlib.contextmanager
def nothing_is_traced() -> Iterator[None]:
    """No structure earns a trace."""
    from mgjit.kernels.first_calls.earnings import Earnings, Waiting

    def require(self: Any, key: Any, *_: Any, **__: Any) -> None:
        raise Waiting(key)

    with mock.patch.object(Earnings, "require", require):
        yield


def usual(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The function, decorated or not."""
    return function if options is BARE else mgjit.compile(function, **options)


def as_method(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A bound method of an object, looked up once."""
    return _holder(function, options).step


def as_attribute(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The method of an object, looked up at each call as programs do."""
    holder = _holder(function, options)
    return lambda x, y: holder.step(x, y)  # noqa: PLW0108 - which is the point


def _holder(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    def step(self: Any, x: Any, y: Any) -> Any:
        return function(x, y)

    return type("Holder", (), {"step": mgjit.compile(step, **options) if options is not BARE else step})()


def as_classmethod(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A classmethod."""

    def step(cls: Any, x: Any, y: Any) -> Any:
        return function(x, y)

    made = mgjit.compile(step, **options) if options is not BARE else step
    return type("Holder", (), {"step": classmethod(made)}).step  # type: ignore[attr-defined]


def in_turn(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Two calls: a compiled one, and one of a structure that is plain."""
    step: Any = function if options is BARE else mgjit.compile(function, **options)

    def both(x: Any, y: Any) -> Any:
        step(x, y)
        return step(x, "0.3")

    both.wait = getattr(step, "wait", None)  # type: ignore[attr-defined]
    return both


def compile_other(step: Any) -> None:
    """Let calls with numbers have a kernel."""
    for _ in range(300):
        step(0.5, 0.3)
    step.wait()
    for _ in range(300):
        step(0.5, 0.3)


BARE: dict[str, Any] = {"bare": True}
PLAIN = ([0.05, 0.1], 0.3)
FORMS = {
    "given up, 4 us": Form(lambda: telling(2), PLAIN),
    "given up, 40 us": Form(lambda: telling(8), PLAIN),
    "given up, background=False": Form(lambda: telling(2), PLAIN, {"background": False}),
    "given up, lock=False": Form(lambda: telling(2), PLAIN, {"lock": False}),
    "given up, bound method": Form(lambda: telling(2), PLAIN, None, decorated=as_method),
    "given up, object.method": Form(lambda: telling(2), PLAIN, None, decorated=as_attribute),
    "given up, classmethod": Form(lambda: telling(2), PLAIN, None, decorated=as_classmethod),
    "waiting for a trace, 1 us": Form(short, around=nothing_is_traced),
    "waiting for a trace, 2 us": Form(longer, around=nothing_is_traced),
    "waiting for code, 1 us": Form(short, options={"cache": False}, around=nothing_is_built),
    "waiting for code, 2 us": Form(longer, options={"cache": False}, around=nothing_is_built),
    "waiting for code, method": Form(short, options={"cache": False}, around=nothing_is_built, decorated=as_attribute),
    "structure, while others compile": Form(objects, (0.5, "0.3"), prepare=compile_other),
    "structure, background=False": Form(objects, (0.5, "0.3"), {"background": False}, compile_other),
    "structure, in turn with one compiled": Form(objects, decorated=in_turn, prepare=compile_other),
    "beside a thread, given up": Form(lambda: telling(2), PLAIN, around=beside_a_thread),
    "beside a thread, waiting": Form(short, options={"cache": False}, around=lambda: beside_a_thread(nothing_is_built)),
    "beside a thread, structure": Form(objects, (0.5, "0.3"), prepare=compile_other, around=beside_a_thread),
    "MGJIT_DISABLE=1": Form(short, around=lambda: mock.patch.dict(os.environ, MGJIT_DISABLE="1")),
}  # fmt: skip


def microseconds(call: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """Of a call, in processor time."""
    started = process_time()
    for _ in range(CALLS):
        call(*arguments)
    return (process_time() - started) / CALLS * 1e6


def measured(name: str) -> tuple[float, float]:
    """Microseconds of a bare and of a decorated call, each with code of its own (afresh.py)."""
    own, form = afresh(__file__), afresh(__file__).FORMS[name]
    bare = (own.FORMS[name].decorated or own.usual)(own.FORMS[name].make(), own.BARE)
    step = (form.decorated or usual)(form.make(), form.options or {})
    with form.around():
        form.prepare(step)
        for _ in range(BEFORE):
            bare(*form.arguments)
            step(*form.arguments)
        pairs = [(microseconds(bare, form.arguments), microseconds(step, form.arguments)) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="forms whose names begin so")
    wanted = parser.parse_args().only
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| form | bare us | decorated us | ratio | target us | |")
    print("|---|---:|---:|---:|---:|---|")
    for name in FORMS:
        if name.startswith(wanted):
            bare, decorated = measured(name)
            target = 1.05 * bare + 0.3
            told = "" if decorated <= target else "above"
            print(
                f"| {name} | {bare:.2f} | {decorated:.2f} | {decorated / bare:.2f} | {target:.2f} | {told} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
