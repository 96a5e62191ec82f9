"""Train the models of examples/images.py and examples/names.py by mgjit and by PyTorch, side by side.

    python bench/tensor_training.py --path MNIST_DIR --names names.txt [--models mlp,lenet,rnn,lstm,gru,transformer]

1. Each model is written once, and built from the layers of either library.  PyTorch's gets the weights of mgjit's.
2. Both see the same batches in the same order, with Adam, in float32, on one thread.
3. Compared are the mean loss of the last tenth of the steps (within 2 %), or, for images, the share of the test images
   that are read as they should be (within 1 %): a loss near 0 shows every rounding.  Beside them: seconds to the first
   result, and milliseconds of processor time a step, taken in turn.

Without files, the digits that come with the package and made-up names are used.  Needs torch.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench.workloads import Sources  # noqa: E402
from mgjit import data as datasets  # noqa: E402
from mgjit import nn, optim  # noqa: E402
from mgjit import tensor as T  # noqa: E402

LENGTH = 8
SYMBOLS = 27
#: Relative difference of losses, difference of shares of test images.
CLOSE, CLOSE_SHARE = 0.02, 0.01


class Sizes(NamedTuple):
    """Of the images: pixels in a row, and the channels of LeNet."""

    side: int
    channels: tuple[int, int]


# ---- 1: the models, in the names that both libraries have -------------------------------------------------


def perceptron(lib: Any, sizes: Sizes) -> Any:
    """784-256-128-10 with LayerNorm."""
    return lib.Sequential(
        lib.Flatten(),
        lib.Linear(sizes.side**2, 256), lib.LayerNorm(256), lib.ReLU(),
        lib.Linear(256, 128), lib.LayerNorm(128), lib.ReLU(),
        lib.Linear(128, 10),
    )  # fmt: skip


def lenet(lib: Any, sizes: Sizes) -> Any:
    """Two convolutions, two linear layers."""
    first, second = sizes.channels
    return lib.Sequential(
        lib.Conv2d(1, first, 3, padding=1), lib.ReLU(), lib.MaxPool2d(2),
        lib.Conv2d(first, second, 3, padding=1), lib.ReLU(), lib.MaxPool2d(2),
        lib.Flatten(), lib.Linear(second * (sizes.side // 4) ** 2, 64), lib.ReLU(),
        lib.Linear(64, 10),
    )  # fmt: skip


def recurrent(lib: Any, cells: str) -> Any:
    """Letters in, letters out, with 64 hidden units."""

    class Recurrent(lib.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = lib.Embedding(SYMBOLS, 32)
            self.cells = getattr(lib, cells)(32, 64, batch_first=True)
            self.head = lib.Linear(64, SYMBOLS)

        def forward(self, x: Any) -> Any:
            return self.head(self.cells(self.embedding(x))[0])

    return Recurrent()


def transformer(lib: Any, mask: Any) -> Any:
    """One layer with four heads; each letter sees those before it."""

    class Transformer(lib.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.places = lib.Embedding(SYMBOLS, 32), lib.Embedding(LENGTH, 32)
            self.before, self.attention = lib.LayerNorm(32), lib.MultiheadAttention(32, 4, batch_first=True)
            self.perceptron = lib.Sequential(lib.LayerNorm(32), lib.Linear(32, 128), lib.ReLU(), lib.Linear(128, 32))
            self.head = lib.Linear(32, SYMBOLS)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x) + self.places.weight
            y = self.before(x)
            x = x + self.attention(y, y, y, need_weights=False, attn_mask=mask, is_causal=True)[0]
            return self.head(x + self.perceptron(x))

    return Transformer()


def build(name: str, lib: Any, sizes: Sizes) -> Any:
    """A model of one of the libraries."""
    if name == "transformer":
        return transformer(lib, torch.ones(LENGTH, LENGTH).triu(1).bool() if lib is torch.nn else None)
    if name in ("mlp", "lenet"):
        return {"mlp": perceptron, "lenet": lenet}[name](lib, sizes)
    return recurrent(lib, name.upper())


# ---- 2: the same batches ----------------------------------------------------------------------------------

Batch = tuple[list[Any], list[Any]]


def images(data: datasets.Images, split: datasets.Split) -> Batch:
    """Rows of pixels from 0.0 to 1.0, and labels."""
    return [[pixel / data.scale for pixel in image] for image in split.images], split.labels


def names(found: list[str]) -> Batch:
    """Rows of letters as numbers, and those that follow."""
    rows = [[" abcdefghijklmnopqrstuvwxyz".index(c) for c in f" {name}{' ' * LENGTH}"[: LENGTH + 1]] for name in found]
    return [row[:-1] for row in rows], [row[1:] for row in rows]


def batches(everything: Batch, size: int, steps: int) -> Iterator[Batch]:
    """Batches in the order of a shuffle for each pass."""
    draw = random.Random(1)
    order: list[int] = []
    for _ in range(steps):
        if len(order) < size:
            order = draw.sample(range(len(everything[0])), len(everything[0]))
        chosen, order = order[:size], order[size:]
        yield [everything[0][k] for k in chosen], [everything[1][k] for k in chosen]


# ---- 3: both libraries ------------------------------------------------------------------------------------


class Trained(NamedTuple):
    """What one library makes of a model.

    Attributes:
        tensors: makes a batch what a step takes.
        step: takes one, and returns the loss.
        right: the share of a batch that is read as it should be.
    """

    tensors: Callable[[Batch], tuple[Any, Any]]
    step: Callable[[Any, Any], Any]
    right: Callable[[Batch], float]


def by_mgjit(model: Any, shape: tuple[int, ...], rate: float, mode: str) -> Trained:
    optimizer = optim.Adam(model.parameters(), lr=rate)

    @mgjit.compile(dtype="float32", mode=mode, background=False)
    def train_step(x: Any, wanted: Any) -> Any:
        found = model(x)
        loss = nn.functional.cross_entropy(found if found.ndim == 2 else found.swapaxes(1, 2), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def tensors(batch: Batch) -> tuple[Any, Any]:
        x = T.asarray(batch[0], dtype="float32").reshape(-1, *shape) if shape else T.asarray(batch[0])
        return x, T.asarray(batch[1])

    def right(batch: Batch) -> float:
        x, wanted = tensors(batch)
        with mgjit.no_grad():
            found = [k for at in range(0, len(x), 128) for k in model(x[at : at + 128]).argmax(axis=1).tolist()]
        return sum(a == b for a, b in zip(found, wanted.tolist())) / len(found)

    return Trained(tensors, train_step, right)


def by_torch(model: Any, shape: tuple[int, ...], rate: float) -> Trained:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def tensors(batch: Batch) -> tuple[Any, Any]:
        x = torch.tensor(batch[0], dtype=torch.float32).reshape(-1, *shape) if shape else torch.tensor(batch[0])
        return x, torch.tensor(batch[1])

    def step(x: Any, wanted: Any) -> Any:
        found = model(x)
        loss = torch.nn.functional.cross_entropy(found if found.ndim == 2 else found.swapaxes(1, 2), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def right(batch: Batch) -> float:
        x, wanted = tensors(batch)
        with torch.no_grad():
            return float((model(x).argmax(1) == wanted).float().mean())

    return Trained(tensors, step, right)


def compare(name: str, options: argparse.Namespace, data: datasets.Images, documents: list[str]) -> bool:
    """Train both and print a line; returns whether they agree."""
    is_image = name in ("mlp", "lenet")
    sizes = Sizes(int(data.pixels**0.5), (options.channels[0], options.channels[1]))
    shape = (1, sizes.side, sizes.side) if is_image else ()
    everything = images(data, data.train) if is_image else names(documents)
    random.seed(1)
    ours = build(name, nn, sizes).float()
    theirs = build(name, torch.nn, sizes)
    theirs.load_state_dict({key: torch.tensor(part.tolist()) for key, part in ours.state_dict().items()})
    one, other = by_mgjit(ours, shape, options.rate, options.mode), by_torch(theirs, shape, options.rate)
    losses: list[tuple[float, float]] = []
    seconds: list[tuple[float, float]] = []
    first = time.perf_counter()
    for batch in batches(everything, 128 if is_image else 32, options.steps):
        given, their_given = one.tensors(batch), other.tensors(batch)
        start = time.process_time()
        found = one.step(*given)
        if not losses:
            first = time.perf_counter() - first
        middle = time.process_time()
        wanted = other.step(*their_given)
        seconds.append((middle - start, time.process_time() - middle))
        losses.append((float(found), float(wanted)))
    last = losses[-max(1, len(losses) // 10) :]
    mean, wanted = (statistics.fmean(column) for column in zip(*last))
    each, their_each = (1000 * statistics.median(column) for column in zip(*seconds[1:]))
    accuracy, agree = "", abs(mean / wanted - 1) <= CLOSE
    if is_image:
        shares = [each.right(images(data, data.test)) for each in (one, other)]
        accuracy, agree = "".join(f"{share:8.1%} " for share in shares), abs(shares[0] - shares[1]) <= CLOSE_SHARE
    print(
        f"{name:12} {losses[0][0]:8.4f} {mean:8.4f} {wanted:8.4f} {mean / wanted - 1:8.2%} {accuracy:18}"
        f"{first:8.1f} {each:8.2f} {their_each:8.2f} {each / their_each:6.2f}",
        flush=True,
    )
    return agree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, metavar="DIR", help="folder with the MNIST IDX files")
    parser.add_argument("--names", type=Path, metavar="FILE", help="one name a line")
    parser.add_argument("--models", default="mlp,lenet,rnn,lstm,gru,transformer")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--channels", type=int, nargs=2, default=(8, 16), help="of LeNet (default 8 16)")
    parser.add_argument("--mode", choices=["strict", "fast"], default="strict")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = datasets.mnist(options.path) if options.path else datasets.digits()
    documents = Sources(names=options.names).documents()
    print(f"{options.steps} steps, {options.mode}, float32; {data.name}")
    print(
        f"{'':12} {'first':>8} {'last':>8} {'torch':>8} {'':>8} {'right':>8} {'torch':>8} "
        f"{'first s':>8} {'ms':>8} {'torch':>8} {'ratio':>6}"
    )
    agree = [compare(name, options, data, documents) for name in options.models.split(",")]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
