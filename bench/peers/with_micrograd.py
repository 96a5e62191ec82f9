"""micrograd from PyPI: the same text, with its Values."""

from __future__ import annotations

import importlib.metadata
from typing import Any, Callable

from micrograd.nn import MLP

from bench.peers.common import L2, Form, Problem, Unsupported, per_call

PACKAGES = ("micrograd",)


def version() -> str:
    """Of the library."""
    return f"micrograd {importlib.metadata.version('micrograd')}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step."""
    return {"micrograd": lambda: _form(problem)}


def _form(problem: Problem) -> Form:
    if problem.name not in _LOSSES:
        raise Unsupported("it has no exp, log or tanh")
    model = MLP(problem.sizes[0], list(problem.sizes[1:]))
    for p, number in zip(model.parameters(), problem.parameters):
        p.data = number
    loss_of = _LOSSES[problem.name]

    def step(x: Any, y: Any, rate: float) -> float:
        loss = loss_of(model, x, y)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return float(loss.data)

    return per_call(step, problem.calls)


def _xor(model: Any, x: Any, y: Any) -> Any:
    return (model(x) - y) ** 2


def _moons(model: Any, xs: Any, ys: Any) -> Any:
    losses = [(1 + -y * model(xs[2 * k : 2 * k + 2])).relu() for k, y in enumerate(ys)]
    return sum(losses) * (1.0 / len(losses)) + L2 * sum(p * p for p in model.parameters())


def _image(model: Any, pixels: bytes, label: int) -> Any:
    scores = model([pixel / 255.0 for pixel in pixels])
    return sum((s - (k == label)) ** 2 for k, s in enumerate(scores))


_LOSSES: dict[str, Callable[..., Any]] = {"W1": _xor, "W2": _moons, "W3": _image}
