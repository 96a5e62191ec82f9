"""The MNIST step, 784-50-10 and one image a step: what is built, how long that takes, how fast it runs.

    python bench/mnist.py --path DIR               three epochs on the IDX files in DIR, gz or not
    python bench/mnist.py --path DIR --epochs 1 --interpreted 30      on PyPy, which needs steps to warm up

1. The undecorated step runs on a copy of the network; so does PyPI's micrograd, where it is installed.
2. The step is compiled, into an empty cache, and its first call is taken apart.
3. It trains; the time of a step is the median over batches of calls, on one core where the system allows it.
4. The first losses and every parameter and gradient after them are compared, bit for bit, with those of 1.

Exits with 1 when 4 fails, never because of a time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from mgjit import data as datasets  # noqa: E402
from mgjit import nn  # noqa: E402
from mgjit.cli import demo  # noqa: E402
from mgjit.compiler.toolchain import compilers  # noqa: E402
from mgjit.errors import MgjitError  # noqa: E402

SIZES = (784, 50, 10)
SCALE = 255
BATCH = 20  # calls between two readings of the clock, so that reading it does not count

T = TypeVar("T")
Row = tuple[bytes, int]


def main() -> int:
    """Measure and print."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--path", type=Path, metavar="DIR", required=True, help="folder with the MNIST IDX files")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the images (default 3)")
    parser.add_argument("--interpreted", type=int, default=3, metavar="N", help="undecorated steps (default 3)")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")
    options = parser.parse_args()
    if options.interpreted < 1 or options.epochs < 1:
        parser.error("--epochs and --interpreted are 1 at least")
    try:
        data = datasets.mnist(options.path)
    except datasets.DatasetError as error:
        parser.error(str(error))
    if data.pixels != SIZES[0]:
        parser.error(f"the images have {data.pixels} pixels; this step is for {SIZES[0]}")
    for name in ("MGJIT_CC", "MGJIT_CFLAGS", "MGJIT_DISABLE"):
        os.environ.pop(name, None)
    core = pin_to_one_core()
    print(f"{interpreter()}, {platform.machine()}, {core}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MGJIT_CACHE_DIR"] = cache
        return _measure(data, options)


def _measure(data: datasets.Images, options: argparse.Namespace) -> int:
    rows = list(zip(data.train.images, data.train.labels))
    random.Random(0).shuffle(rows)
    first = rows[: options.interpreted]
    print(f"{len(rows):,} images to train, {len(data.test):,} to test; {'-'.join(map(str, SIZES))}, one image a step")

    copy = _network()
    plain_losses, plain_times = timed(demo.make_step(copy, SCALE), first, options.lr)
    interpreted = statistics.median(plain_times)
    print(f"\ninterpreted: {interpreted * 1e3:,.1f} ms a step (median of {len(first)})")
    micrograd = _micrograd(first, plain_losses, options.lr)

    model = _network()
    step = mgjit.compile(demo.make_step(model, SCALE), background=False)
    losses = _first_call(step, first, options.lr)
    more, _ = timed(step, first[1:], options.lr)
    losses += more
    same = demo.bits(losses) == demo.bits(plain_losses) and _state(model) == _state(copy)
    verdict = "equal bit for bit" if same else "NOT EQUAL"
    print(f"  {len(first)} losses, then {len(model.parameters()):,} parameters and gradients: {verdict}\n")

    times = _train(step, model, rows, data.test, options, done=len(first))
    each = statistics.median(times)
    print(f"\n{each * 1e6:.2f} us a step (median of {len(times):,} batches of {BATCH}; ", end="")
    print(f"fastest {min(times) * 1e6:.2f}, slowest {max(times) * 1e6:.2f})")
    print(f"{interpreted / each:,.0f} times the interpreted step")
    if micrograd is not None:
        print(f"{micrograd / each:,.0f} times micrograd")
    return 0 if same else 1


def _first_call(step: Any, rows: Sequence[Row], lr: float) -> list[float]:
    """The first, compiling call, taken apart."""
    started = time.perf_counter()
    try:
        compiler = compilers.find(None)
    except MgjitError:
        compiler = None
    finding = time.perf_counter() - started
    losses, (total,) = timed(step, rows[:1], lr)
    stats = step.stats
    rest = total - stats.trace_seconds - stats.roll_seconds - stats.compile_seconds
    python = total - stats.compile_seconds
    again = mgjit.compile(demo.make_step(_network(), SCALE)).lower(*rows[0], lr)
    source = again.c_source
    stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in again.lowered.seconds.items())
    print(f"\ncompiled: first call {total:.3f} s, cache {stats.cache}, {stats.compiler or stats.backend}")
    print(f"  trace                          {stats.trace_seconds:.3f} s")
    print(f"  passes and code generation     {stats.roll_seconds:.3f} s")
    print(f"  hash, cache, binding, running  {rest:.3f} s")
    print(f"  all of that                    {python:.3f} s")
    print(f"  C compiler                     {stats.compile_seconds:.3f} s")
    print(f"  before: finding and probing {compiler.command if compiler else 'no compiler'} {finding:.3f} s")
    print(f"  a second time, warm: trace {again.trace_seconds:.3f} s; {stages}")
    print(f"  {stats.records:,} records -> {stats.loops} loops, {stats.statements} statements; ", end="")
    print(f"{len(source):,} bytes, {source.count(chr(10)):,} lines of C")
    return losses


def _train(
    step: Any, model: nn.MLP, rows: list[Row], test: datasets.Split, options: argparse.Namespace, done: int
) -> list[float]:
    """Seconds a step, of every batch; the first `done` images have been seen."""
    predict = mgjit.compile(demo.make_predict(model, SCALE), background=False)
    lr = options.lr
    times = []
    for epoch in range(options.epochs):
        order = rows[done:] if epoch == 0 else random.Random(epoch).sample(rows, len(rows))
        for begin in range(0, len(order), BATCH):
            batch = order[begin : begin + BATCH]
            started = time.perf_counter()
            for pixels, label in batch:
                step(pixels, label, lr)
            times.append((time.perf_counter() - started) / len(batch))
        print(f"epoch {epoch + 1}: test accuracy {demo.accuracy(predict, test):.2%}", flush=True)
    return times


# ---- what is used by the other measurements as well ----------------------------------------------------


def timed(step: Callable[..., Any], rows: Sequence[Row], lr: float) -> tuple[list[float], list[float]]:
    """The loss and the seconds of each step."""
    losses, seconds = [], []
    for pixels, label in rows:
        started = time.perf_counter()
        loss = step(pixels, label, lr)
        seconds.append(time.perf_counter() - started)
        losses.append(float(loss.data))
    return losses, seconds


def interpreter() -> str:
    """Which Python this is."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def pin_to_one_core() -> str:
    """Stay on the last of the cores allowed, where the system has such a call; says what was done."""
    try:
        core = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
    except (AttributeError, OSError):
        return "not pinned to a core"
    return f"pinned to core {core}"


def in_deep_thread(work: Callable[[], T]) -> T:
    """The result of `work`, which may recurse some 100,000 calls deep (micrograd does)."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(512 << 20)
    sys.setrecursionlimit(200_000)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if errors:
        raise errors[0]
    return results[0]


def micrograd_twin(parameters: Sequence[mgjit.Value], sizes: Sequence[int]) -> Any:
    """The micrograd MLP of these sizes with the same weights."""
    from micrograd.nn import MLP  # not installed everywhere

    twin = MLP(sizes[0], list(sizes[1:]))
    for theirs, ours in zip(twin.parameters(), parameters):
        theirs.data = ours.data
    return twin


def _micrograd(rows: Sequence[Row], losses: Sequence[float], lr: float) -> float | None:
    """Seconds of a step of PyPI's micrograd, or None without it."""
    if importlib.util.find_spec("micrograd") is None:
        print("micrograd: not installed")
        return None
    step = demo.make_step(micrograd_twin(_network().parameters(), SIZES), SCALE)
    theirs, times = in_deep_thread(lambda: timed(step, rows, lr))
    worst = max(abs(a - b) / abs(b) for a, b in zip(theirs, losses))
    each = statistics.median(times)
    agreement = f"losses within {worst:.1e} of these, relative" if worst else "the same losses"
    print(f"micrograd: {each * 1e3:,.1f} ms a step (median of {len(rows)}); {agreement}")
    return each


def _network() -> nn.MLP:
    return nn.MLP(SIZES[0], SIZES[1:])


def _state(model: nn.MLP) -> list[str]:
    return demo.bits(number for p in model.parameters() for number in (p.data, p.grad))


if __name__ == "__main__":
    sys.exit(main())
