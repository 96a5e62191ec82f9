"""The steps that the scenarios run: small, quick to compile, and as many different ones as are asked for.

`results(number)` runs step `number` undecorated, `results(number, mgjit.compile)` compiled.  Both return every loss,
parameter, gradient and state element as hexadecimal text, so that equal lists mean equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mgjit
from mgjit import Value, nn

CALLS = 3


def plain(function: Any) -> Any:
    """The decorator that does nothing."""
    return function


def results(number: int, decorate: Callable[[Any], Any] = plain, calls: int = CALLS) -> list[str]:
    """Run a step on fresh parameters and return all numbers that it leaves."""
    step, everything = make(number, decorate)
    losses = [step(0.5 + 0.25 * call) for call in range(calls)]
    losses = [getattr(loss, "data", loss) for loss in losses]  # a Value where nothing was compiled
    return [number.hex() for number in [*losses, *everything()]]


def make(number: int, decorate: Callable[[Any], Any]) -> tuple[Any, Callable[[], list[float]]]:
    """Step `number` and a function that reads its memory.

    The kind of step goes by the remainder; a constant, which is part of the code, tells steps of a kind apart.
    """
    return _KINDS[number % len(_KINDS)](1.0 + number / 64, decorate)


def _regression(constant: float, decorate: Any) -> tuple[Any, Any]:
    weights = [Value(0.5 * place) for place in range(4)]

    @decorate
    def step(x: Any) -> Any:
        loss = sum((w * x - constant) ** 2 for w in weights)
        _descend(loss, weights)
        return loss

    return step, _memory(weights)


def _perceptron(constant: float, decorate: Any) -> tuple[Any, Any]:
    model = nn.MLP(2, [3, 1])

    @decorate
    def step(x: Any) -> Any:
        loss = (model([x, x * constant]) - 1.0) ** 2
        _descend(loss, model.parameters())
        return loss

    return step, _memory(model.parameters())


def _momentum(constant: float, decorate: Any) -> tuple[Any, Any]:
    weights = [Value(0.25 * place - 0.3) for place in range(3)]
    speed = mgjit.zeros(len(weights))

    @decorate
    def step(x: Any) -> Any:
        loss = sum(((w * x).exp() - constant) ** 2 for w in weights)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        for place, w in enumerate(weights):
            speed[place] = 0.9 * speed[place] + w.grad
            w.data -= 0.01 * speed[place]
        return loss

    return step, _memory(weights, speed)


def _softmax(constant: float, decorate: Any) -> tuple[Any, Any]:
    weights = [Value(0.125 * place - 0.25) for place in range(5)]

    @decorate
    def step(x: Any) -> Any:
        scores = [(w * x * constant).exp() for w in weights]
        loss = -(scores[2] / sum(scores)).log()
        _descend(loss, weights)
        return loss

    return step, _memory(weights)


def _recurrence(constant: float, decorate: Any) -> tuple[Any, Any]:
    weights = [Value(0.7), Value(-0.2)]

    @decorate
    def step(x: Any) -> Any:
        hidden = weights[1] * x
        for _ in range(6):
            hidden = (weights[0] * hidden + x * constant).tanh()
        loss = hidden * hidden
        _descend(loss, weights)
        return loss

    return step, _memory(weights)


_KINDS = (_regression, _perceptron, _momentum, _softmax, _recurrence)


def _descend(loss: Any, weights: list[Value]) -> None:
    for w in weights:
        w.grad = 0.0
    loss.backward()
    for w in weights:
        w.data -= 0.01 * w.grad


def _memory(weights: list[Value], state: Any = ()) -> Callable[[], list[float]]:
    def everything() -> list[float]:
        return [*(w.data for w in weights), *(w.grad for w in weights), *state]

    return everything
