"""A small regression, over tensors or over scalars, for the tests of optimisers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import mgjit
from mgjit import optim
from mgjit import tensor as T

#: Every rule, with options that use all of its parts.
RULES: dict[str, tuple[type[optim.Optimizer], dict[str, Any]]] = {
    "SGD": (optim.SGD, {"lr": 0.1}),
    "SGD with momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    "SGD of Nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "Adagrad": (optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    "Adadelta": (optim.Adadelta, {"weight_decay": 0.01}),
    "RMSprop": (optim.RMSprop, {"weight_decay": 0.01}),
    "RMSprop with momentum": (optim.RMSprop, {"momentum": 0.9, "centered": True}),
    "Adam": (optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "Adam with amsgrad": (optim.Adam, {"lr": 0.01, "betas": (0.8, 0.99), "amsgrad": True}),
    "AdamW": (optim.AdamW, {"lr": 0.01}),
}
WIDTH = 3


class Outcome(NamedTuple):
    """What training leaves.

    Attributes:
        losses, parameters, remembered: numbers in hexadecimal digits.
        step: what was called.
    """

    losses: list[str]
    parameters: list[str]
    remembered: list[str]
    step: Any


def flat(optimizer: optim.Optimizer) -> tuple[list[str], list[str]]:
    """The parameters of an optimiser and what it remembers."""
    parameters: list[str] = []
    remembered: list[str] = []
    for group in optimizer.param_groups:
        parameters += [x.hex() for p in group.params for x in _numbers(p)]
        remembered += [x.hex() for each in group.state.values() for one in each for x in _numbers(one)]
        remembered += [float(x).hex() for x in group.counts]
    return parameters, remembered


def _numbers(thing: Any) -> list[float]:
    return thing.tolist_flat() if isinstance(thing, T.Tensor) else [getattr(thing, "data", thing)]


def train(
    make: Callable[[list[Any]], optim.Optimizer], compiled: bool, dtype: str = "float64", scalars: bool = False,
    between: Callable[[optim.Optimizer, int], object] = lambda optimizer, k: None, **options: Any,
) -> Outcome:  # fmt: skip
    """Train `w @ x + b` for six steps.

    Args:
        make: the optimiser of parameters.
        scalars: whether the parameters are `mgjit.Value`s.
        between: called after each step, with its number.
        options: of `mgjit.compile`.
    """
    draw = random.Random(1)
    weights = [draw.uniform(-1.0, 1.0) for _ in range(WIDTH)]
    w: Any = [mgjit.Value(x) for x in weights] if scalars else T.asarray(weights, dtype=dtype, requires_grad=True)
    b: Any = mgjit.Value(0.0) if scalars else T.zeros((), dtype=dtype, requires_grad=True)
    optimizer = make([*w, b] if scalars else [w, b])

    def step_of_tensors(x: Any, y: Any) -> Any:
        error = w @ x + b - y
        loss = error * error
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def step_of_scalars(x: Any, y: Any) -> Any:
        error = sum(wi * xi for wi, xi in zip(w, x)) + b - y
        loss = error * error
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step: Any = step_of_scalars if scalars else step_of_tensors
    if compiled:
        step = mgjit.compile(step, background=False, dtype=dtype, **options)
    losses = []
    for k in range(6):
        x = [draw.gauss(0.0, 1.0) for _ in range(WIDTH)]
        loss = step(x if scalars else T.asarray(x, dtype=dtype), draw.gauss(0.0, 1.0))
        losses.append(float(getattr(loss, "data", loss)).hex())
        between(optimizer, k)
    return Outcome(losses, *flat(optimizer), step)
