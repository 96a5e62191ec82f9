"""The first result of steps over tensors, cold and warm: where the time goes, and how much code there is.

    python bench/tensor_first.py                                  all steps
    python bench/tensor_first.py mlp gru --mode fast --repeat 3   some of them, medians of three rounds
    python bench/tensor_first.py --widths                         trace and lowering at widths 64 and 4,096

1. Each measurement is a process of its own, which imports mgjit, makes the model, and calls its step once.  The import
   is not in it.  Cold is with an empty disk cache; at once is the next process, while what the first one has left to
   be built may still be under way; warm is one for which the best code is in the cache.  By default, that is with the
   options that mgjit.compile has by default, where the first calls may be plain, or of code that is built quickly; and
   with MGJIT_BACKGROUND=0, the first call waits for the best code.
2. The models are written over mgjit.tensor, with Adam, or of the layers of mgjit.nn, in float32; their data is random.
3. Processor seconds are those of all processes that have worked for this result until then; where /proc is missing, of
   those that have ended.
4. How long the parts of building the best code take is told of the cold process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import environment  # noqa: E402 - found through the line above

#: A step, and the arguments of a call.
Made = tuple[Callable[..., Any], tuple[Any, ...]]


class Adam:
    """As of PyTorch, with its default numbers.

    Args:
        parameters: tensors with gradients.
    """

    def __init__(self, parameters: Sequence[Any]) -> None:
        from mgjit import tensor as T

        self.parameters = list(parameters)
        self.means = [T.zeros_like(p) for p in self.parameters]
        self.squares = [T.zeros_like(p) for p in self.parameters]

    def zero_grad(self) -> None:
        """Gradients of zero."""
        for p in self.parameters:
            p.zero_grad()

    def step(self, rate: float, count: float) -> None:
        """Change the parameters."""
        import mgjit
        from mgjit import tensor as T

        with mgjit.no_grad():
            first, second = 1.0 - 0.9**count, 1.0 - 0.999**count
            for p, m, v in zip(self.parameters, self.means, self.squares):
                m[...] = 0.9 * m + 0.1 * p.grad
                v[...] = 0.999 * v + 0.001 * (p.grad * p.grad)
                p[...] = p - (rate / first) * m / (T.sqrt(v / second) + 1e-8)


def _draw() -> random.Random:
    return random.Random(1)


def _uniform(shape: tuple[int, ...], inputs: int, draw: random.Random) -> Any:
    from mgjit import tensor as T

    bound = 1.0 / math.sqrt(inputs)
    values = T.uniform(shape, -bound, bound, generator=draw)
    return T.asarray(values, dtype="float32", requires_grad=True)


def _compiled(mode: str, step: Callable[..., Any]) -> Any:
    import mgjit

    return mgjit.compile(step, dtype="float32", mode=mode)


def _loss(logits: Any, labels: Any, classes: int) -> Any:
    from mgjit import tensor as T

    return -(T.log_softmax(logits) * T.one_hot(labels, classes, dtype="float32")).sum() / float(logits.shape[0])


def mlp(mode: str, widths: Sequence[int] = (784, 1024, 1024, 10), batch: int = 128) -> Made:
    """Linear layers with relu in between."""
    from mgjit import tensor as T

    draw = _draw()
    layers = [(_uniform((n, m), n, draw), _uniform((m,), n, draw)) for n, m in zip(widths, widths[1:])]
    adam = Adam([p for layer in layers for p in layer])

    def step(x: Any, labels: Any, rate: float, count: float) -> Any:
        for k, (w, b) in enumerate(layers):
            x = x @ w + b
            if k < len(layers) - 1:
                x = T.relu(x)
        loss = _loss(x, labels, widths[-1])
        adam.zero_grad()
        loss.backward()
        adam.step(rate, count)
        return loss

    x = T.asarray(T.uniform((batch, widths[0]), 0.0, 1.0, generator=draw), dtype="float32")
    labels = T.asarray([draw.randrange(widths[-1]) for _ in range(batch)])
    return _compiled(mode, step), (x, labels, 0.001, 1.0)


def lenet(mode: str, channels: tuple[int, int] = (20, 50), batch: int = 128) -> Made:
    """Two convolutions 3 x 3 with relu and maximum of 2 x 2, and two linear layers."""
    from mgjit import tensor as T

    draw = _draw()
    first, second = channels
    sizes = [((first, 1, 3, 3), 9), ((first,), 9), ((second, first, 3, 3), 9 * first), ((second,), 9 * first),
             ((second * 25, 500), second * 25), ((500,), second * 25), ((500, 10), 500), ((10,), 500)]  # fmt: skip
    parameters = k1, c1, k2, c2, w1, b1, w2, b2 = [_uniform(shape, inputs, draw) for shape, inputs in sizes]
    adam = Adam(parameters)

    def convolved(x: Any, kernels: Any, bias: Any) -> Any:
        windows = x.unfold(2, 3, 1).unfold(3, 3, 1)
        x = T.einsum("nchwij,ocij->nohw", windows, kernels) + bias.reshape((-1, 1, 1))
        return T.relu(x).unfold(2, 2, 2).unfold(3, 2, 2).max(axis=(4, 5))

    def step(x: Any, labels: Any, rate: float, count: float) -> Any:
        x = convolved(convolved(x, k1, c1), k2, c2).reshape((batch, -1))
        loss = _loss(T.relu(x @ w1 + b1) @ w2 + b2, labels, 10)
        adam.zero_grad()
        loss.backward()
        adam.step(rate, count)
        return loss

    x = T.asarray(T.uniform((batch, 1, 28, 28), 0.0, 1.0, generator=draw), dtype="float32")
    labels = T.asarray([draw.randrange(10) for _ in range(batch)])
    return _compiled(mode, step), (x, labels, 0.001, 1.0)


def gru(mode: str, letters: int = 8, width: int = 64, batch: int = 32) -> Made:
    """A language model over letters: an embedding, gates, and the next letter at each position."""
    from mgjit import tensor as T

    draw, classes = _draw(), 27
    table = _uniform((classes, width), 1, draw)
    gates = [
        (_uniform((width, width), width, draw), _uniform((width, width), width, draw), _uniform((width,), width, draw))
        for _ in range(3)
    ]
    out, bias = _uniform((width, classes), width, draw), _uniform((classes,), width, draw)
    adam = Adam([table, *(p for gate in gates for p in gate), out, bias])

    def step(names: Any, targets: Any, rate: float, count: float) -> Any:
        (wr, ur, br), (wz, uz, bz), (wn, un, bn) = gates
        h = T.zeros((batch, width), dtype="float32")
        total = 0.0
        for t in range(letters):
            x = T.take(table, names[:, t])
            r = T.sigmoid(x @ wr + h @ ur + br)
            z = T.sigmoid(x @ wz + h @ uz + bz)
            n = T.tanh(x @ wn + r * (h @ un) + bn)
            h = (1.0 - z) * n + z * h
            total = total + _loss(h @ out + bias, targets[:, t], classes)
        loss = total / float(letters)
        adam.zero_grad()
        loss.backward()
        adam.step(rate, count)
        return loss

    names, targets = (
        T.asarray([[draw.randrange(classes) for _ in range(letters)] for _ in range(batch)]) for _ in range(2)
    )
    return _compiled(mode, step), (names, targets, 0.001, 1.0)


def _layered(mode: str, model: Any, loss_of: Callable[[Any, Any], Any], x: Any, wanted: Any) -> Made:
    """A step over layers, with Adam."""
    from mgjit import optim

    optimizer = optim.Adam(model.parameters(), lr=0.001)

    def step(x: Any, wanted: Any) -> Any:
        loss = loss_of(model(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return _compiled(mode, step), (x, wanted)


def _letters(model: Any, mode: str, length: int = 8, batch: int = 32) -> Made:
    """A step of a language model, which predicts the letter behind each."""
    from mgjit import nn
    from mgjit import tensor as T

    draw = _draw()
    x, wanted = (T.asarray([[draw.randrange(27) for _ in range(length)] for _ in range(batch)]) for _ in range(2))
    return _layered(
        mode, model, lambda found, labels: nn.functional.cross_entropy(found.swapaxes(1, 2), labels), x, wanted
    )


def lstm(mode: str) -> Made:
    """An embedding of 32, and an LSTM of 64."""
    from mgjit import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            options: dict[str, Any] = {"dtype": "float32", "generator": _draw()}
            self.embedding, self.head = nn.Embedding(27, 32, **options), nn.Linear(64, 27, **options)
            self.cells = nn.LSTM(32, 64, batch_first=True, **options)

        def forward(self, x: Any) -> Any:
            return self.head(self.cells(self.embedding(x))[0])

    return _letters(Recurrent(), mode)


def transformer(mode: str, width: int = 32, length: int = 8) -> Made:
    """One layer with four heads; each letter sees those before it."""
    from mgjit import nn

    options: dict[str, Any] = {"dtype": "float32", "generator": _draw()}

    class Transformer(nn.Module):
        def __init__(self) -> None:
            self.embedding, self.places = nn.Embedding(27, width, **options), nn.Embedding(length, width, **options)
            self.before = nn.LayerNorm(width, dtype="float32")
            self.attention = nn.MultiheadAttention(width, 4, batch_first=True, **options)
            self.perceptron = nn.Sequential(
                nn.LayerNorm(width, dtype="float32"), nn.Linear(width, 4 * width, **options), nn.ReLU(),
                nn.Linear(4 * width, width, **options),
            )  # fmt: skip
            self.head = nn.Linear(width, 27, **options)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x) + self.places.weight
            y = self.before(x)
            x = x + self.attention(y, y, y, need_weights=False, is_causal=True)[0]
            return self.head(x + self.perceptron(x))

    return _letters(Transformer(), mode)


def deep(mode: str, layers: int = 6, width: int = 64, batch: int = 32) -> Made:
    """Linear layers of one width with relu in between."""
    from mgjit import nn
    from mgjit import tensor as T

    draw = _draw()
    options: dict[str, Any] = {"dtype": "float32", "generator": draw}
    parts: list[Any] = []
    for inputs, outputs in zip([784, *[width] * (layers - 1)], [*[width] * (layers - 1), 10]):
        parts += [nn.Linear(inputs, outputs, **options), nn.ReLU()]
    x = T.asarray(T.uniform((batch, 784), 0.0, 1.0, generator=draw), dtype="float32")
    labels = T.asarray([draw.randrange(10) for _ in range(batch)])
    return _layered(mode, nn.Sequential(*parts[:-1]), nn.functional.cross_entropy, x, labels)


def regular(mode: str, batch: int = 32) -> Made:
    """Convolutions, LayerNorm, Dropout, AdamW with a cosine schedule, and gradients that are clipped."""
    import mgjit
    from mgjit import nn, optim
    from mgjit import tensor as T
    from mgjit.nn import functional as F

    draw = _draw()
    options: dict[str, Any] = {"dtype": "float32", "generator": draw}

    class Net(nn.Module):
        def __init__(self) -> None:
            self.convolutions = [nn.Conv2d(1, 8, 3, **options), nn.Conv2d(8, 16, 3, **options)]
            self.norm, self.dropout = nn.LayerNorm(16 * 25, dtype="float32"), nn.Dropout(0.1)
            self.head = nn.Linear(16 * 25, 10, **options)

        def forward(self, x: Any) -> Any:
            for layer in self.convolutions:
                x = F.max_pool2d(F.relu(layer(x)), 2)
            return self.head(self.dropout(self.norm(x.flatten(1))))

    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)

    def step(x: Any, labels: Any) -> Any:
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss

    random.seed(1)
    x = T.asarray(T.uniform((batch, 1, 28, 28), 0.0, 1.0, generator=draw), dtype="float32")
    labels = T.asarray([draw.randrange(10) for _ in range(batch)])
    return mgjit.compile(step, dtype="float32", mode=mode), (x, labels)


MODELS: dict[str, Callable[[str], Made]] = {
    "mlp": mlp,
    "lenet": lenet,
    "gru": gru,
    "image": lambda mode: mlp(mode, (784, 50, 10), 1),
    "images": lambda mode: mlp(mode, (784, 50, 10), 32),
    "policy": lambda mode: mlp(mode, (4, 64, 64, 2), 32),
    "mlp512": lambda mode: mlp(mode, (784, 512, 512, 10), 128),
    "regular": regular,
    "transformer": transformer,
    "lstm": lstm,
    "deep": deep,
}
TITLES = {
    "mlp": "784-1024-1024-10, batch 128",
    "lenet": "LeNet 20 and 50 channels, batch 128",
    "gru": "GRU of 64, 32 names of 8 letters",
    "image": "784-50-10, batch 1",
    "images": "784-50-10, batch 32",
    "policy": "4-64-64-2, batch 32",
    "mlp512": "784-512-512-10, batch 128",
    "regular": "two convolutions, LayerNorm, Dropout, AdamW, cosine, clipping, batch 32",
    "transformer": "one-layer Transformer of 32, 32 names of 8 letters",
    "lstm": "LSTM of 64, 32 names of 8 letters",
    "deep": "six linear layers of 64, batch 32",
}


# ---- in the child ------------------------------------------------------------------------------------------


def child(name: str, mode: str, stays: bool) -> dict[str, Any]:
    """The first result of a step.

    Args:
        stays: whether to go on until the best code is in the cache.
    """
    import mgjit.tensor  # noqa: F401
    from mgjit.runtime.stats import Stats

    facts: dict[str, Any] = {}
    note_code = Stats.note_code

    def noting(stats: Stats, found: dict[str, Any], *more: Any) -> None:
        if not facts:
            facts.update(found)
        note_code(stats, found, *more)

    Stats.note_code = noting  # type: ignore[method-assign]
    step, arguments = MODELS[name](mode)
    started, used = time.perf_counter(), _processor()
    result = float(step(*arguments))
    first, processor = time.perf_counter() - started, _processor() - used
    found = {**facts, "first": first, "processor": processor, "result": result.hex(), "trace": step.stats.trace_seconds}
    if stays:
        step.wait()
    return found


def _processor() -> float:
    """Processor seconds of this process and of those that it has started, also where they are not done yet."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            ticks[int(directory.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(directory.name))

    def together(process: int) -> int:
        return ticks.get(process, 0) + sum(map(together, children.get(process, [])))

    return together(os.getpid()) / os.sysconf("SC_CLK_TCK") if ticks else sum(os.times()[:4])


def widths() -> dict[str, Any]:
    """Trace and lowering at two widths, in turn."""
    import mgjit.tensor  # noqa: F401

    found: dict[str, list[tuple[float, float, float]]] = {"64": [], "4096": []}
    for _ in range(6):
        for width in (64, 4096):
            step, arguments = mlp("strict", (784, width, width, 10), 128)
            started = time.process_time()
            lowered = step.lower(*arguments)
            used = time.process_time() - started
            found[str(width)].append((lowered.trace_seconds, sum(lowered.lowered.seconds.values()), used))
            print(f"width {width}: {lowered.lowered.statements} statements", file=sys.stderr)
    return found


# ---- in the parent -----------------------------------------------------------------------------------------


def run(arguments: Sequence[str], directory: str, is_patient: bool) -> dict[str, Any]:
    """What a child prints."""
    settings = environment(Path(directory), MGJIT_BACKGROUND="0" if is_patient else "1")
    command = [sys.executable, str(Path(__file__)), *arguments]
    done = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(name: str, mode: str, repeat: int) -> None:
    """Print the rows of a model."""
    rounds: list[list[dict[str, Any]]] = []
    for _ in range(repeat):
        found = []
        for is_patient, processes in (False, ([], ["--stay"], [])), (True, ([], [])):
            directory = tempfile.mkdtemp()
            try:
                found += [run(["--child", name, "--mode", mode, *more], directory, is_patient) for more in processes]
            finally:
                shutil.rmtree(directory, ignore_errors=True)
        rounds.append(found)

    def median(which: int, key: str) -> float:
        return statistics.median(one[which].get(key) or 0.0 for one in rounds)

    def seconds(which: int) -> str:
        return f"{median(which, 'first'):6.2f} s (processor {median(which, 'processor'):.2f})"

    cold = rounds[0][3]
    same = mode == "fast" or len({one["result"] for found in rounds for one in found}) == 1
    print(f"{TITLES[name]} ({mode}){'' if same else ': RESULTS DIFFER'}")
    print(f"  first result by default:  cold {seconds(0)}, at once {seconds(1)}, warm {seconds(2)}")
    print(f"  waiting for the best code: cold {seconds(3)}, warm {seconds(4)}")
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in cold.get("stages", {}).items())
    print(f"  trace {median(3, 'trace'):.2f}, passes {median(3, 'lower_seconds'):.2f} ({stages}), "
          f"{cold.get('compiler')} {median(3, 'compile_seconds'):.2f} s")  # fmt: skip
    print(f"  {cold.get('records')} records, {cold.get('loops')} loops, {cold.get('statements')} statements, "
          f"{cold.get('lines')} lines of C, {cold.get('bytes')} bytes", flush=True)  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=" ".join(MODELS))
    parser.add_argument("--mode", default="strict", choices=("strict", "fast"))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--widths", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--stay", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(child(asked.child, asked.mode, asked.stay)))
    elif asked.widths:
        found = widths()
        for part, title in enumerate(("trace", "lowering", "both, processor")):
            narrow, wide = (statistics.median(one[part] for one in found[width]) for width in ("64", "4096"))
            print(f"{title}: width 64 {narrow:.3f} s, width 4,096 {wide:.3f} s, {wide / narrow:.2f} x")
    else:
        for name in asked.models:
            measure(name, asked.mode, asked.repeat)


if __name__ == "__main__":
    main()
