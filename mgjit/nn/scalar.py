"""Neural networks of `Value`s, as in micrograd: Neuron, Layer, MLP.

Each network draws its weights from its own generator, so that the same seed gives the same network in every process,
and the global random state is not touched.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from threading import get_ident
from typing import Any

from ..engine import hook
from ..engine.value import Value
from ..errors import ArgumentError, ArgumentValueError, described, user_location
from .module import Module, Parameters


def _require_count(name: str, count: Any, least: int) -> None:
    if type(count) is not int or count < least:
        raise ArgumentValueError(
            f"{user_location()}: {name} must be an int of at least {least}, not the {described(count)}."
        )


class Neuron(Module):
    """`relu(w . x + b)`, or without relu when `nonlin` is false.

    Args:
        nin: number of inputs.
        nonlin: whether to apply relu.
        generator: source of the initial weights, uniform in [-1, 1) / sqrt(nin).
    """

    def __init__(self, nin: int, nonlin: bool = True, generator: random.Random | None = None) -> None:
        _require_count("nin", nin, 0)
        generator = generator or random.Random(1337)
        scale = nin**-0.5 if nin else 1.0
        self.w = [Value(generator.uniform(-1.0, 1.0) * scale) for _ in range(nin)]
        self.b = Value(0.0)
        self.nonlin = nonlin

    def __call__(self, x: Sequence[Any]) -> Any:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            result = recording.methods["neuron"](self, x)
            if result is not None:
                return result
        if not hasattr(x, "__len__"):
            raise ArgumentError(f"{user_location()}: {self!r} needs a list of inputs, not the {described(x)}.")
        if len(x) != len(self.w):
            raise ArgumentValueError(f"{user_location()}: {self!r} got {len(x)} inputs; it takes {len(self.w)}.")
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.relu() if self.nonlin else act

    def parameters(self, recurse: bool = True) -> Parameters:
        return Parameters([*self.w, self.b])

    def __repr__(self) -> str:
        return f"{'ReLU' if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(Module):
    """`nout` neurons over the same `nin` inputs; a layer of one neuron returns its value, not a list."""

    def __init__(self, nin: int, nout: int, nonlin: bool = True, generator: random.Random | None = None) -> None:
        _require_count("nout", nout, 0)
        generator = generator or random.Random(1337)
        self.neurons = [Neuron(nin, nonlin, generator) for _ in range(nout)]

    def __call__(self, x: Sequence[Any]) -> Any:
        out = None
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            out = recording.methods["layer"](self, x)
        if out is None:
            out = [n(x) for n in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self, recurse: bool = True) -> Parameters:
        return Parameters(p for n in self.neurons for p in n.parameters())

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(str(n) for n in self.neurons)}]"


class MLP(Module):
    """A multi-layer perceptron: `nin` inputs, then layers of the sizes `nouts`, the last one linear.

    Args:
        nin: number of inputs.
        nouts: number of neurons of each layer.
        seed: of the initial weights.
    """

    def __init__(self, nin: int, nouts: Sequence[int], seed: int | str = 1337) -> None:
        if not hasattr(nouts, "__iter__"):
            raise ArgumentError(
                f"{user_location()}: nouts must be a list of the sizes of the layers, not the {described(nouts)}."
            )
        generator = random.Random(seed)
        sizes = [nin, *nouts]
        self.layers = [
            Layer(sizes[i], sizes[i + 1], nonlin=i != len(nouts) - 1, generator=generator) for i in range(len(nouts))
        ]

    def __call__(self, x: Sequence[Any]) -> Any:
        out: Any = x
        for index, layer in enumerate(self.layers):
            if index and not isinstance(out, (list, tuple)):
                out = [out]  # a hidden layer of one neuron
            out = layer(out)
        return out

    def parameters(self, recurse: bool = True) -> Parameters:
        return Parameters(p for layer in self.layers for p in layer.parameters())

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(str(layer) for layer in self.layers)}]"
