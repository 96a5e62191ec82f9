"""Tensors: products in GFLOP/s and training steps in ms, beside numpy, torch, jax and pydynet where they are installed.

`python -m bench.tensors [products|mlp|small|policy|gru|lenet ...] [--seconds S] [--peers mgjit,torch,...]`

Everything runs on one thread in one process; figures are medians of processor time.  A line says how long the first two
steps took, compilation included.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import mgjit  # noqa: E402
from mgjit import nn, optim  # noqa: E402
from mgjit import tensor as T  # noqa: E402

Step = Callable[[], Any]
#: Rows, inner extent and columns of the products.
PRODUCT = (128, 1024, 1024)


def measure(step: Step, seconds: float) -> tuple[float, float]:
    """The seconds of the first two calls, and the median of processor time of later ones."""
    start = time.perf_counter()
    step()
    step()
    first = time.perf_counter() - start
    times: list[float] = []
    while sum(times) < seconds or len(times) < 5:
        begin = time.process_time()
        step()
        times.append(time.process_time() - begin)
    return first, statistics.median(times)


def compiled(mode: str) -> Callable[[Any], Any]:
    """The decorator for steps that are measured."""
    return mgjit.compile(mode=mode, dtype="float32", background=False, verify="never")


def has(name: str) -> bool:
    """Whether a peer is installed."""
    return importlib.util.find_spec(name) is not None


# ---- products -----------------------------------------------------------------------------------------------


def products(peers: Sequence[str]) -> dict[str, Step]:
    """x @ w, x.mT @ g and g @ w.mT, each into memory that is there."""
    n, k, m = PRODUCT
    found: dict[str, Step] = {}
    if "mgjit" in peers:
        x, w, g = (T.randn(shape, dtype="float32") for shape in ((n, k), (k, m), (n, m)))
        y, dw, dx = (T.zeros(shape, dtype="float32") for shape in ((n, m), (k, m), (n, k)))

        def forward() -> None:
            y[...] = x @ w

        def weights() -> None:
            dw[...] = x.mT @ g

        def inputs() -> None:
            dx[...] = g @ w.mT

        for mode in ("strict", "fast"):
            for name, step in (("x @ w", forward), ("x.mT @ g", weights), ("g @ w.mT", inputs)):
                found[f"mgjit {mode} {name}"] = compiled(mode)(step)
    for peer in ("numpy", "torch"):
        if peer in peers and has(peer):
            found.update(_products_of(peer, n, k, m))
    return found


def _products_of(peer: str, n: int, k: int, m: int) -> dict[str, Step]:
    import numpy as np

    arrays: list[Any] = [np.random.randn(*shape).astype("float32") for shape in ((n, k), (k, m), (n, m))]
    if peer == "torch":
        import torch

        torch.set_num_threads(1)
        arrays = [torch.from_numpy(one) for one in arrays]
    x, w, g = arrays
    return {
        f"{peer} x @ w": lambda: x @ w, f"{peer} x.mT @ g": lambda: x.T @ g, f"{peer} g @ w.mT": lambda: g @ w.T,
    }  # fmt: skip


# ---- models of mgjit ----------------------------------------------------------------------------------------


class Dense(nn.Module):
    """Linear layers with an activation between them."""

    def __init__(self, sizes: Sequence[int], activation: Callable[[Any], Any] = T.relu) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b, dtype="float32") for a, b in zip(sizes, sizes[1:])])
        self.activation = activation

    def forward(self, x: Any) -> Any:
        for number, layer in enumerate(self.layers):
            x = layer(x) if number == 0 else layer(self.activation(x))
        return x


class LeNet(nn.Module):
    """Two convolutions of 20 and 50 channels with pooling, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 20, 3, padding=1, dtype="float32")
        self.second = nn.Conv2d(20, 50, 3, padding=1, dtype="float32")
        self.dense = Dense([2450, 500, 10])

    def forward(self, x: Any) -> Any:
        x = nn.functional.max_pool2d(T.relu(self.first(x)), 2)
        x = nn.functional.max_pool2d(T.relu(self.second(x)), 2)
        return self.dense(x.reshape((x.shape[0], 2450)))


class Gru(nn.Module):
    """A GRU of 64 over 8 letters of 27, and a layer for the next letter; gates as in PyTorch."""

    def __init__(self, width: int = 64, letters: int = 27) -> None:
        super().__init__()
        self.width = width
        self.inputs, self.hidden = (nn.Linear(n, 3 * width, dtype="float32") for n in (letters, width))
        self.last = nn.Linear(width, letters, dtype="float32")

    def forward(self, x: Any) -> Any:
        n = self.width
        h, found = T.zeros((x.shape[0], n), dtype="float32"), []
        for k in range(x.shape[1]):
            a, b = self.inputs(x[:, k]), self.hidden(h)
            reset, update = T.sigmoid(a[:, :n] + b[:, :n]), T.sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
            new = T.tanh(a[:, 2 * n :] + reset * b[:, 2 * n :])
            h = (1.0 - update) * new + update * h
            found.append(self.last(h))
        return T.stack(found, axis=1).reshape((-1, found[0].shape[-1]))


def trained(model: Any, x: Any, labels: Any, mode: str) -> Step:
    """A step of Adam by cross-entropy."""
    adam = optim.Adam(model.parameters(), lr=1e-3)

    @compiled(mode)
    def step(x: Any, labels: Any) -> Any:
        loss = nn.functional.cross_entropy(model(x), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss

    return lambda: step(x, labels)


# ---- the same models elsewhere --------------------------------------------------------------------------------


def _torch_model(kind: str, sizes: Sequence[int]) -> Any:
    import torch
    from torch import nn as tn

    torch.set_num_threads(1)
    if kind == "dense":
        between = tn.Tanh if sizes[0] == 4 else tn.ReLU
        layers: list[Any] = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [tn.Linear(a, b), between()]
        return tn.Sequential(*layers[:-1])
    if kind == "lenet":
        convolutions = [tn.Conv2d(1, 20, 3, 1, 1), tn.ReLU(), tn.MaxPool2d(2), tn.Conv2d(20, 50, 3, 1, 1), tn.ReLU()]
        linear = [tn.Linear(2450, 500), tn.ReLU(), tn.Linear(500, 10)]
        return tn.Sequential(*convolutions, tn.MaxPool2d(2), tn.Flatten(), *linear)

    class Letters(tn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.last = tn.GRU(27, 64, batch_first=True), tn.Linear(64, 27)

        def forward(self, x: Any) -> Any:
            return self.last(self.gru(x)[0]).reshape(-1, 27)

    return Letters()


def torch_step(kind: str, sizes: Sequence[int], x: Any, labels: Any, compile_it: bool) -> Step:
    """The step in PyTorch, eager or compiled (the model with its loss; Adam is the fused one there)."""
    import torch

    model = _torch_model(kind, sizes)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True if compile_it else None)
    xs, ys = torch.tensor(x), torch.tensor(labels)

    def loss_of(x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(x), y)

    forward = torch.compile(loss_of) if compile_it else loss_of

    def step() -> None:
        adam.zero_grad()
        forward(xs, ys).backward()
        adam.step()

    return step


def jax_step(sizes: Sequence[int], x: Any, labels: Any) -> Step:
    """The dense model in jax, compiled as one step with Adam."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    between = jnp.tanh if sizes[0] == 4 else jax.nn.relu
    weights = [jnp.asarray(np.random.randn(a, b).astype("float32") / a**0.5) for a, b in zip(sizes, sizes[1:])]
    parameters = [*weights, *(jnp.zeros(b, jnp.float32) for b in sizes[1:])]
    xs, ys = jnp.asarray(np.array(x, "float32")), jnp.asarray(labels)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        count = len(sizes) - 1
        for k in range(count):
            x = (x if k == 0 else between(x)) @ parameters[k] + parameters[count + k]
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    def update(p: Any, m: Any, v: Any, t: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, xs, ys)
        m = [0.9 * a + 0.1 * g for a, g in zip(m, grads)]
        v = [0.999 * a + 0.001 * g * g for a, g in zip(v, grads)]
        size = [jnp.sqrt(b / (1 - 0.999**t)) + 1e-8 for b in v]
        return value, [a - 1e-3 * b / (1 - 0.9**t) / s for a, b, s in zip(p, m, size)], m, v, t + 1.0

    fast = jax.jit(update, donate_argnums=(0, 1, 2))
    zeros = [jnp.zeros_like(one) for one in parameters]
    state = [parameters, zeros, [jnp.zeros_like(one) for one in parameters], 1.0]

    def step() -> None:
        value, *rest = fast(*state)
        state[:] = rest
        value.block_until_ready()

    return step


def pydynet_step(sizes: Sequence[int], x: Any, labels: Any) -> Step:
    """The dense model in PyDyNet."""
    import numpy as np
    import pydynet as pdn
    from pydynet import nn as pn
    from pydynet.nn import functional
    from pydynet.optim import Adam

    layers = [pn.Linear(a, b, dtype=np.float32) for a, b in zip(sizes, sizes[1:])]
    adam = Adam([p for layer in layers for p in layer.parameters()], lr=1e-3)
    loss_of = pn.CrossEntropyLoss()
    xs, ys = pdn.Tensor(np.array(x, "float32"), dtype=np.float32), pdn.Tensor(np.array(labels))

    def step() -> None:
        found = xs
        for number, layer in enumerate(layers):
            found = layer(found) if number == 0 else layer(functional.relu(found))
        loss = loss_of(found, ys)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


# ---- all of them ---------------------------------------------------------------------------------------------

#: Kind, widths, and shape of the inputs.
MODELS: dict[str, tuple[str, list[int], tuple[int, ...]]] = {
    "mlp": ("dense", [784, 1024, 1024, 10], (128, 784)),
    "small": ("dense", [784, 50, 10], (32, 784)),
    "one": ("dense", [784, 50, 10], (1, 784)),
    "policy": ("dense", [4, 64, 64, 2], (32, 4)),
    "gru": ("gru", [27], (32, 8, 27)),
    "lenet": ("lenet", [10], (128, 1, 28, 28)),
}


def model_steps(name: str, peers: Sequence[str]) -> dict[str, Callable[[], Step]]:
    """How to make the step of a model for each peer that is installed."""
    kind, sizes, shape = MODELS[name]
    draw = random.Random(1)
    data = T.randn(shape, dtype="float32")
    labels = [draw.randrange(sizes[-1]) for _ in range(shape[0] * (shape[1] if kind == "gru" else 1))]
    x = data.tolist()

    def own(mode: str) -> Step:
        activation = T.tanh if sizes[0] == 4 else T.relu
        model = {"dense": lambda: Dense(sizes, activation), "gru": Gru, "lenet": LeNet}[kind]()
        return trained(model, data, T.asarray(labels), mode)

    found: dict[str, Callable[[], Step]] = {}
    if "mgjit" in peers:
        found.update({"mgjit strict": lambda: own("strict"), "mgjit fast": lambda: own("fast")})
    if "torch" in peers and has("torch"):
        found["torch"] = lambda: torch_step(kind, sizes, x, labels, False)
    if "compile" in peers and has("torch"):
        found["torch.compile"] = lambda: torch_step(kind, sizes, x, labels, True)
    if "jax" in peers and has("jax") and kind == "dense":
        found["jax"] = lambda: jax_step(sizes, x, labels)
    if "pydynet" in peers and has("pydynet") and kind == "dense" and sizes[0] != 4:
        found["pydynet"] = lambda: pydynet_step(sizes, x, labels)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["products", *MODELS])
    parser.add_argument("--seconds", type=float, default=0.5, help="of processor time for each figure")
    parser.add_argument("--peers", default="mgjit,numpy,torch,jax,pydynet", help="and: compile, torch.compile")
    chosen = parser.parse_args()
    peers = chosen.peers.split(",")
    for what in chosen.what:
        if what == "products":
            n, k, m = PRODUCT
            for name, step in products(peers).items():
                first, each = measure(step, chosen.seconds)
                flops = 2 * n * k * m / each / 1e9
                print(f"product {n} x {k} x {m}  {name:24} {1e3 * each:9.3f} ms {flops:7.1f} GFLOP/s", flush=True)
            continue
        for name, make in model_steps(what, peers).items():
            try:
                first, each = measure(make(), chosen.seconds)
            except Exception as reason:  # a peer that does not run here
                print(f"{what:8} {name:16} does not run: {type(reason).__name__}: {str(reason).splitlines()[0][:90]}")
                continue
            print(f"{what:8} {name:16} {1e3 * each:9.3f} ms a step, first two {first:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
