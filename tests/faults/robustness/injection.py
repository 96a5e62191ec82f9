"""Exceptions at every point of a call: raised at the n-th line that mgjit executes, for many n.

1. A scenario makes a `World`: parameters, state, an argument Value, a compiled step, and one call to be interrupted.
2. Run it once in peace and count the lines of mgjit (and of the step) that it executes.
3. For each chosen n make the world anew and raise at the n-th line.  All numbers must be those of a whole number of
   steps, the number that `stats.calls` tells; the process must be as before (garbage collector, hooks, locks).
4. Make the call again: it must have the result and the effects that it has in peace.

The line of a `with` at which its block is left does not count: a trace function can raise there, a signal cannot.
Real signals, at random times, are the other way to interrupt.

    python -m tests.faults.robustness.injection --every 10      # the long form: every tenth line; 1 for all of them
    python -m tests.faults.robustness.injection --signals 200   # so many signals for each scenario
"""

from __future__ import annotations

import argparse
import builtins
import gc
import linecache
import os
import random
import signal
import struct
import sys
import threading
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Callable

import mgjit
from mgjit import Value
from mgjit.base import interruption
from mgjit.engine import hook
from mgjit.memory import buffers
from mgjit.runtime import fastcall
from mgjit.tracing.tracer import tracer

PACKAGE = os.path.dirname(os.path.abspath(mgjit.__file__)) + os.sep
HERE = os.path.abspath(__file__)


class Injected(Exception):
    """An error that nobody expects."""


KINDS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError, Injected)


# ---- 1: worlds ---------------------------------------------------------------------------------------


@dataclass
class World:
    """What a step works on, and the call that is interrupted.

    Attributes:
        calls: how many steps the call makes; 0 for one that makes none.
        result: of the call.
    """

    options: dict[str, Any]
    weights: list[Value] = field(default_factory=lambda: [Value(0.37 - 0.1 * k) for k in range(4)])
    moments: Any = field(default_factory=lambda: mgjit.state([0.3] * 4))
    scales: list[Value] = field(default_factory=lambda: [Value(0.7), Value(0.9)])
    call: Callable[[], Any] = lambda: None
    step: Any = None

    def __post_init__(self) -> None:
        self.decay = 0.9
        weights, moments = self.weights, self.moments

        def step(xs: Any, rate: float, scale: Value) -> Any:
            loss = (sum(w * x for w, x in zip(weights, xs)) * scale - 1.1) ** 2
            for w in weights:
                w.grad = 0.0
            loss.backward()
            for k, w in enumerate(weights):
                moments[k] = self.decay * moments[k] + w.grad
                w.data = w.data - rate * moments[k]
            scale.data = scale.data * 1.01
            return loss

        self.step = mgjit.compile(**self.options)(step)

    def numbers(self) -> list[bytes]:
        """Everything that a step may change, bit for bit."""
        values = [*self.weights, *self.scales]
        found = [x for value in values for x in (value.data, value.grad)] + list(self.moments)
        return [struct.pack("<d", x) for x in found]


XS = [0.3, 0.1, -0.7, 0.2]


def _first(world: World) -> None:
    world.call = lambda: world.step(XS, 0.1, world.scales[0])


def _later(world: World) -> None:
    """The general path, with a Value that is copied in and out."""
    for k in range(4):
        world.step(XS, 0.1, world.scales[k % 2])
    world.call = lambda: world.step(XS, 0.1, world.scales[0])


def _fast(world: World) -> None:
    """The path that is generated for the kernel, as far as there is one."""
    for _ in range(5):
        world.step(XS, 0.1, world.scales[0])
    world.call = lambda: world.step(XS, 0.1, world.scales[0])


def _other_structure(world: World) -> None:
    world.step(XS, 0.1, world.scales[0])
    world.call = lambda: world.step(XS[:3], 0.1, world.scales[0])


def _guard(world: World) -> None:
    world.step(XS, 0.1, world.scales[0])
    world.decay = 0.8
    world.call = lambda: world.step(XS, 0.1, world.scales[0])


def _loop(world: World) -> None:
    world.step(XS, 0.1, world.scales[0])
    world.call = lambda: world.step.loop([XS, XS[::-1], XS], 0.1, world.scales[0])


def _first_loop(world: World) -> None:
    world.call = lambda: world.step.loop([XS, XS[::-1], XS], 0.1, world.scales[0])


def _loop_of_values(world: World) -> None:
    """Rows that are calls of their own."""
    world.call = lambda: world.step.loop([XS, XS[::-1], XS], 0.1, [*world.scales, world.scales[0]])


def _forward(world: World) -> None:
    world.call = lambda: world.step.forward(XS, 0.1, world.scales[0])


def _backward(world: World) -> None:
    def call() -> None:
        world.step.forward(XS, 0.1, world.scales[0])
        world.step.backward()

    world.call = call


def _clear(world: World) -> None:
    world.step(XS, 0.1, world.scales[0])
    world.call = world.step.clear


def _lower(world: World) -> None:
    world.call = lambda: world.step.lower(XS, 0.1, world.scales[0]).explain() and None


def _copy(world: World) -> None:
    import copy

    world.step(XS, 0.1, world.scales[0])
    world.call = lambda: [v.data for v in copy.deepcopy(world.weights)] + list(copy.deepcopy(world.moments))


@dataclass(frozen=True)
class Scenario:
    """A situation.

    Attributes:
        prepare: brings a new world there.
        options: of the step.
        steps: how many steps the call makes.
        forget: what is forgotten first: "" nothing, "process" the code of this process, "disk" also that on disk.
        lists: whether the moments are a list of Python, which is copied.
    """

    prepare: Callable[[World], None]
    options: dict[str, Any]
    steps: int = 1
    forget: str = ""
    lists: bool = False


C32 = {"dtype": "float32"}
PYTHON = {"backend": "python"}
PYTHON32 = {"backend": "python", "dtype": "float32"}

SCENARIOS = {
    "first call": Scenario(_first, C32),
    "first call, from disk": Scenario(_first, {}, forget="process"),
    "first call, compiled": Scenario(_first, C32, forget="disk"),
    "first call, Python": Scenario(_first, PYTHON32),
    "later call, Values copied": Scenario(_later, {}),
    "later call, Values copied, float32": Scenario(_later, C32),
    "later call, fast": Scenario(_fast, {}),
    "first call, lists": Scenario(_first, C32, lists=True),
    "later call, lists and Values": Scenario(_later, {}, lists=True),
    "later call, lists, fast": Scenario(_fast, {}, lists=True),
    "later call, lists, Python": Scenario(_later, PYTHON, lists=True),
    "loop, lists": Scenario(_loop, {}, steps=3, lists=True),
    "later call, Python": Scenario(_later, PYTHON),
    "another structure": Scenario(_other_structure, C32),
    "a guard": Scenario(_guard, {}),
    "loop": Scenario(_loop, {}, steps=3),
    "first loop": Scenario(_first_loop, C32, steps=3),
    "first loop, Python": Scenario(_first_loop, PYTHON32, steps=3),
    "loop over Values": Scenario(_loop_of_values, C32, steps=3),
    "forward": Scenario(_forward, C32, steps=0),
    "backward": Scenario(_backward, {}, steps=0),
    "backward, Python": Scenario(_backward, PYTHON, steps=0),
    "clear": Scenario(_clear, {}, steps=0),
    "lower": Scenario(_lower, C32, steps=0),
    "copy": Scenario(_copy, C32, steps=0),
}


def make(scenario: Scenario) -> World:
    """A world just before the call."""
    from mgjit.compiler.build import build

    world = World(scenario.options)
    if scenario.lists:
        world = World(scenario.options, moments=[0.3] * 20)
    scenario.prepare(world)
    if scenario.forget:
        build._shared.clear()
    if scenario.forget == "disk":
        forget_disk()
    return world


def forget_disk() -> None:
    """Delete the entries of the cache directory."""
    import shutil

    from mgjit.base import settings

    shutil.rmtree(settings.cache_directory(), ignore_errors=True)


# ---- 2: lines ----------------------------------------------------------------------------------------


class Lines:
    """Counts the lines of mgjit that this thread executes, and raises at one of them.

    Args:
        at: the number of the line; 0 for none.
        kind: what is raised.
    """

    __module__ = "trace"  # as a tool that measures: what is called under a debugger is plain Python

    def __init__(self, at: int = 0, kind: type[BaseException] = Injected) -> None:
        self.at, self.kind = at, kind
        self.count = 0
        self.where = ""

    def run(self, work: Callable[[], Any]) -> Any:
        """`work()`, watched."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return work()
        finally:
            sys.settrace(before)

    def _enter(self, frame: Any, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) and not (name == HERE and frame.f_code.co_name == "step"):
            return None
        entered: set[int] = set()

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event != "line" or self._leaves_a_block(frame, entered):
                return line
            self.count += 1
            if self.count == self.at:
                self.where = f"{name[len(PACKAGE) :] if name.startswith(PACKAGE) else 'the step'}:{frame.f_lineno}"
                raise self.kind(f"injected at {self.where}")
            return line

        return line

    @staticmethod
    def _leaves_a_block(frame: Any, entered: set[int]) -> bool:
        number = frame.f_lineno
        if frame.f_code.co_filename == fastcall._FILE:  # has no loops
            again = number in entered
            entered.add(number)
            return again
        if not linecache.getline(frame.f_code.co_filename, number).lstrip().startswith("with "):
            return False
        again = number in entered
        entered.add(number)
        return again


class Signal:
    """A real signal, whose handler raises, at some moment of the work.

    Args:
        delay: in seconds.
        kind: what is raised.
    """

    def __init__(self, delay: float, kind: type[BaseException]) -> None:
        self.delay, self.kind = delay, kind
        self.where = ""

    def run(self, work: Callable[[], Any]) -> Any:
        """`work()`, with the signal on its way."""
        before = signal.signal(signal.SIGALRM, self._handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, self.delay)
            return work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    def _handle(self, number: int, frame: Any) -> None:
        self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise self.kind(f"a signal at {self.where}")


# ---- 3 and 4: what must hold -----------------------------------------------------------------------------


def process() -> dict[str, Any]:
    """What a call may change in the process for a while."""
    free: list[bool] = []
    locks = [tracer._trace_lock, buffers.moving]

    def look() -> None:
        for lock in locks:
            free.append(lock.acquire(blocking=False))
            if free[-1]:
                lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return {
        "collector": gc.isenabled(),
        "recording": hook.recording,
        "sum": builtins.sum,
        "random": (random.random, os.urandom, random.Random.random, random.Random.seed.__code__, random.gauss.__code__),
        "tracing": set(tracer.tracing_threads),
        "locks": free,
        "under way": dict(interruption._under_way),
    }


@dataclass
class Next:
    """How the call goes that follows in peace: the numbers before it, its result, the numbers after it."""

    before: list[bytes]
    result: Any
    after: list[bytes]


@dataclass
class Peace:
    """How a scenario goes undisturbed, and the numbers before and after it.

    Attributes:
        following: the next call, by how many steps were made before it, and whether a phase was.
    """

    lines: int
    seconds: float
    before: list[bytes]
    after: list[bytes]
    following: dict[tuple[int, bool], Next] = field(default_factory=dict)


def in_peace(scenario: Scenario) -> Peace:
    """Run it."""
    world = make(scenario)
    before = world.numbers()
    lines = Lines()
    lines.run(world.call)
    after = world.numbers()
    world = make(scenario)
    started = perf_counter()
    world.call()
    return Peace(lines.count, perf_counter() - started, before, after)


def _plain(result: Any) -> Any:
    return list(result) if hasattr(result, "tolist") else result


def interrupted(scenario: Scenario, peace: Peace, by: Lines | Signal) -> str:
    """Interrupt the call; returns what is wrong afterwards, or nothing."""
    world = make(scenario)
    quiet = process()
    made = world.step.stats.calls
    try:
        by.run(world.call)
        raised = False
    except (KeyboardInterrupt, MemoryError, Injected):
        raised = True
    where = f"{by.kind.__name__} at {by.where}: "
    now = process()
    if now != quiet:
        return where + f"the process was {quiet}, is {now}"
    done = world.step.stats.calls - made if scenario.steps else 0
    expected = _numbers_after(scenario, peace, done, raised)
    if expected is not None and world.numbers() not in expected:
        return where + f"{done} steps are counted, and the numbers are others"
    if done not in range(scenario.steps + 1) or (not raised and done != scenario.steps):
        return where + f"{done} steps are counted"
    return where + "the next call went wrong" if _next_call_is_wrong(world, scenario, peace, done) else ""


def _numbers_after(scenario: Scenario, peace: Peace, done: int, raised: bool) -> list[list[bytes]] | None:
    if not raised or done == scenario.steps > 0:
        return [peace.after]
    if scenario.steps == 0:
        return [peace.before, peace.after]  # a phase is not counted; forward moves parameters, which rounds them
    if done == 0:
        return [peace.before]
    return None  # the middle of a loop; the next call tells


def _next_call_is_wrong(world: World, scenario: Scenario, peace: Peace, done: int) -> bool:
    """Against a world in which as many steps were made as calls of their own, in peace."""
    numbers = world.numbers()
    expected = _following(scenario, peace, done, False)
    if scenario.steps > 1 and done and numbers != expected.before:
        return True
    if scenario.steps == 0 and numbers != expected.before:
        expected = _following(scenario, peace, done, True)
    return _plain(world.call()) != expected.result or world.numbers() != expected.after


def _following(scenario: Scenario, peace: Peace, done: int, is_phase_done: bool) -> Next:
    """The call after so many steps, or after a phase; it is played once."""
    if (done, is_phase_done) not in peace.following:
        other = make(scenario)
        rows = [(XS, other.scales[0]), (XS[::-1], other.scales[0]), (XS, other.scales[0])]
        if scenario.prepare is _loop_of_values:
            rows[1] = (XS[::-1], other.scales[1])
        if is_phase_done or scenario.steps == 1 == done:
            other.call()
        else:
            for xs, scale in rows[:done]:
                other.step(xs, 0.1, scale)
        before = other.numbers()
        peace.following[done, is_phase_done] = Next(before, _plain(other.call()), other.numbers())
    return peace.following[done, is_phase_done]


def failures(name: str, every: int = 0, samples: int = 0, signals: int = 0) -> tuple[int, int, list[str]]:
    """Interrupt a scenario at every so-manieth line, or so many times; (lines, interruptions, what went wrong)."""
    scenario = SCENARIOS[name]
    in_peace(scenario)  # what is done once in a process is done
    peace = in_peace(scenario)
    generator = random.Random(name)
    ways: list[Lines | Signal]
    if signals:
        ways = [Signal(generator.uniform(1e-6, 1.1 * peace.seconds), KINDS[k % len(KINDS)]) for k in range(signals)]
        found = [interrupted(scenario, peace, way) for way in ways]
        return peace.lines, sum(bool(way.where) for way in ways), [text for text in found if text]
    if samples:
        points = sorted({generator.randint(1, peace.lines) for _ in range(samples)} | {1, peace.lines})
    else:
        points = list(range(1, peace.lines + 1, every))
    ways = [Lines(at, KINDS[k % len(KINDS)]) for k, at in enumerate(points)]
    found = [interrupted(scenario, peace, way) for way in ways]
    return peace.lines, len(points), [text for text in found if text]


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=10, help="every so-manieth line")
    parser.add_argument("--signals", type=int, default=0, help="so many real signals instead")
    parser.add_argument("names", nargs="*", default=list(SCENARIOS))
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.names:
        lines, points, found = failures(name, every=arguments.every, signals=arguments.signals)
        wrong += len(found)
        print(f"{name:38} {lines:8} lines {points:7} interruptions {len(found):5} failures", flush=True)
        for text in found[:20]:
            print(f"    {text}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
