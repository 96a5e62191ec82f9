"""Train a small network on handwritten digits, first interpreted, then compiled.

The training step is plain scalar Python (see `make_step`).  A few steps run undecorated, on a copy of the network,
and are timed; then the same step runs compiled, from the same initial state, and every loss, parameter and gradient
of these steps is compared bit for bit.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Callable

from tqdm import tqdm

import mgjit
from mgjit import data as datasets
from mgjit import nn
from mgjit.base import settings
from mgjit.cli import curve
from mgjit.cli.text import program
from mgjit.errors import MgjitError

SUMMARY = "train a digits classifier, interpreted and compiled, and compare"

# (interpreted steps, epochs) unless the command line says otherwise: seconds of waiting either way.
_SIZES = {"digits": (5, 20), "mnist": (2, 3)}
_REPORT_EVERY = 50  # images between two updates of the progress bar

Step = Callable[[bytes, int, float], Any]


class DemoError(MgjitError, RuntimeError):
    """The demo cannot show what it is for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.epilog = f"example: {program()} demo --epochs 5 --plot loss.png"
    parser.add_argument("--data", choices=sorted(_SIZES), default="digits", help="what to train on (default: digits)")
    parser.add_argument("--path", type=Path, metavar="DIR", help="the folder with the MNIST IDX files, .gz or not")
    parser.add_argument("--epochs", type=_positive_int, help="passes over the images (default: 20; mnist: 3)")
    parser.add_argument("--lr", type=_positive_float, default=0.01, help="learning rate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1337, help="of weights and image order (default: %(default)s)")
    parser.add_argument("--compiler", metavar="CC", help="the C compiler to use, by name or path (default: the best)")
    parser.add_argument("--backend", choices=("auto", "c", "python"), default="auto", help="(default: %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also save the loss curve (needs matplotlib)")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; returns 1 if a compiled number differs from an interpreted one."""
    if settings.disabled():
        raise DemoError("MGJIT_DISABLE is set, so nothing would be compiled; unset it to see the demo")
    if arguments.plot is not None:
        curve.check_png(arguments.plot)
    data = _load(arguments)
    interpreted_steps, default_epochs = _SIZES[data.name]
    epochs: int = arguments.epochs or default_epochs
    sizes = [data.pixels, 50, 10]
    first = min(interpreted_steps, len(data.train))

    def network() -> nn.MLP:
        return nn.MLP(sizes[0], sizes[1:], seed=arguments.seed)

    model, copy = network(), network()
    options: dict[str, Any] = {"backend": arguments.backend, "compiler": arguments.compiler, "background": False}
    step = mgjit.compile(make_step(model, data.scale), **options)
    predict = mgjit.compile(make_predict(model, data.scale), **options)

    counts = f"{len(data.train):,} images to train, {len(data.test):,} to test"
    print(f"{data.name}: {counts}, {data.pixels} pixels each")
    print(f"network {'-'.join(map(str, sizes))}, {len(model.parameters()):,} parameters, one image a step")

    rows = _rows(data.train, _order(len(data.train), arguments.seed, 0)[:first])
    plain_losses, plain_seconds = _timed(make_step(copy, data.scale), rows, arguments.lr)
    interpreted = min(plain_seconds)
    print(f"\ninterpreted: {_duration(interpreted)} an image (the fastest of {first})")

    losses, seconds = _timed(step, rows, arguments.lr)
    print(f"compiled: first call {_duration(seconds[0])}")
    print(describe(step.stats))
    same = bits(plain_losses) == bits(losses) and _state(copy) == _state(model)
    verdict = "equal bit for bit" if same else "NOT EQUAL"
    print(f"  the first {first} losses, then every parameter and gradient: {verdict}")

    print()
    training = _train(step, predict, data, losses, epochs, arguments)

    print("\nloss of each image, mean over stretches")
    print(curve.render(losses, encoding=sys.stdout.encoding))
    print(f"\ntest accuracy {accuracy(predict, data.test):.1%}")
    timed = len(losses) - first
    if timed and training > 0:
        each = training / timed
        print(f"{_duration(each)} an image, {interpreted / each:,.0f} times interpreted Python")
    if arguments.plot is not None:
        title = f"mgjit demo: {data.name}, {'-'.join(map(str, sizes))}"
        curve.save_png(arguments.plot, losses, title=title, xlabel="image", ylabel="loss")
        print(f"loss curve saved to {arguments.plot}")
    return 0 if same else 1


def make_step(model: nn.MLP, scale: int) -> Step:
    """The training step that the demo compiles, written as a user would write it."""

    def train_step(pixels: bytes, label: int, lr: float) -> Any:
        scores = model([p / scale for p in pixels])
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return train_step


def make_predict(model: nn.MLP, scale: int) -> Callable[[bytes], Any]:
    """The scores of the network for one image: a step without `backward`."""

    def predict(pixels: bytes) -> Any:
        return model([p / scale for p in pixels])

    return predict


def accuracy(predict: Callable[[bytes], Any], split: datasets.Split) -> float:
    """The fraction of images whose label has the highest score."""
    right = 0
    for pixels, label in zip(split.images, split.labels):
        scores = [score.data for score in predict(pixels)]
        right += scores.index(max(scores)) == label
    return right / len(split)


def bits(numbers: Iterable[float]) -> list[str]:
    """The numbers as text that is equal only for identical floats (-0.0 is not 0.0)."""
    return [float(number).hex() for number in numbers]


def describe(stats: Any) -> str:
    """What was built, in a few aligned lines."""
    seconds = (stats.trace_seconds, stats.roll_seconds, stats.compile_seconds)
    rows = [
        ("records traced", f"{stats.records:,}"),
        ("rolled into", f"{stats.loops} loops, {stats.statements:,} statements, {stats.lines:,} lines of C"),
        ("seconds", "trace {:.3f}, roll {:.3f}, C compiler {:.3f}".format(*seconds)),
        ("cache", str(stats.cache)),
        ("backend", f"{stats.backend} ({stats.compiler})" if stats.compiler else str(stats.backend)),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)


def _load(arguments: argparse.Namespace) -> datasets.Images:
    if arguments.data == "digits":
        if arguments.path is not None:
            raise datasets.DatasetError("--path is for --data mnist; the digits are part of the package")
        return datasets.digits()
    if arguments.path is None:
        raise datasets.DatasetError("--data mnist needs --path DIR, the folder with the IDX files")
    return datasets.mnist(arguments.path)


def _order(count: int, seed: int, epoch: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


def _rows(split: datasets.Split, indices: Sequence[int]) -> list[tuple[bytes, int]]:
    return [(split.images[i], split.labels[i]) for i in indices]


def _train(
    step: Step,
    predict: Callable[[bytes], Any],
    data: datasets.Images,
    losses: list[float],
    epochs: int,
    arguments: argparse.Namespace,
) -> float:
    """Train, add the loss of each image to `losses`, and return the seconds spent in steps.

    `losses` already holds those of the first images of the first epoch, whose steps were run before.
    """
    count, done, seconds = len(data.train), len(losses), 0.0
    bar = tqdm(total=epochs * count, initial=done, unit=" images", ascii=not _unicode(sys.stderr), disable=None)
    with bar:
        for epoch in range(epochs):
            order = _order(count, arguments.seed, epoch)[done if epoch == 0 else 0 :]
            for begin in range(0, len(order), _REPORT_EVERY):
                rows = _rows(data.train, order[begin : begin + _REPORT_EVERY])
                start = time.perf_counter()
                results = [step(pixels, label, arguments.lr) for pixels, label in rows]
                seconds += time.perf_counter() - start
                losses += map(float, results)
                bar.update(len(rows))
            if _reports(epoch, epochs):
                mean = sum(losses[epoch * count :]) / count
                bar.write(
                    f"epoch {epoch + 1:>{len(str(epochs))}}/{epochs}  "
                    f"mean loss {mean:.4f}  test accuracy {accuracy(predict, data.test):.1%}",
                    file=sys.stdout,
                )
    return seconds


def _timed(step: Step, rows: Sequence[tuple[bytes, int]], lr: float) -> tuple[list[float], list[float]]:
    """Run a step for each row; returns the loss and the seconds of each."""
    losses, seconds = [], []
    for pixels, label in rows:
        start = time.perf_counter()
        loss = step(pixels, label, lr)
        seconds.append(time.perf_counter() - start)
        losses.append(float(loss.data))
    return losses, seconds


def _state(model: nn.MLP) -> list[str]:
    return bits(number for p in model.parameters() for number in (p.data, p.grad))


def _reports(epoch: int, epochs: int) -> bool:
    """Whether to print a line for this epoch: about five lines in all, the last epoch among them."""
    every = -(-epochs // 5)
    return (epochs - 1 - epoch) % every == 0


def _duration(seconds: float) -> str:
    micro = "µs" if _unicode(sys.stdout) else "us"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} {micro}"


def _unicode(stream: Any) -> bool:
    return curve.can_print("µ█", getattr(stream, "encoding", None))


def _positive_int(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _positive_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
