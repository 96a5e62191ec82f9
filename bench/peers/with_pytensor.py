"""PyTensor: one function with the weights as shared variables and their updates, in its default mode."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

import numpy as np
import pytensor
import pytensor.tensor as pt

from bench.peers import models
from bench.peers.common import ADAM_EPSILON, Form, Problem, per_call

PACKAGES = ("pytensor", "numba", "numpy")


def version() -> str:
    """Of the library."""
    return f"pytensor {pytensor.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step."""
    pytensor.config.floatX = problem.dtype
    return {"pytensor": lambda: _compiled(problem)}


def _namespace(problem: Problem) -> Any:
    def maximum(x: Any, y: float) -> Any:
        return pt.maximum(x, np.asarray(y, problem.dtype))

    def where(condition: Any, x: Any, y: float) -> Any:
        return pt.switch(condition, x, np.asarray(y, problem.dtype))

    return SimpleNamespace(
        exp=pt.exp, log=pt.log, tanh=pt.tanh, maximum=maximum, where=where, arange=pt.arange,
        max_of=lambda x: pytensor.gradient.disconnected_grad(x.max(-1, keepdims=True)),
        one_hot=lambda labels, n: pt.eq(labels[..., None], pt.arange(n)).astype(problem.dtype),
        number=lambda x: x.astype(problem.dtype),
    )  # fmt: skip


def _compiled(problem: Problem) -> Form:
    calls = models.arguments(problem)
    arguments = [pt.tensor(dtype=part.dtype, shape=(None,) * part.ndim) for part in calls[0]]
    x, y, rate = arguments[:3]
    parameters = [pytensor.shared(a) for a in models.unflatten(problem)]
    loss = models.loss_of(problem, _namespace(problem))(parameters, x, y)
    grads = pytensor.grad(loss, parameters)
    updates: list[tuple[Any, Any]] = []
    if problem.adam is None:
        updates = [(p, p - rate * g) for p, g in zip(parameters, grads)]
    else:
        beta1, beta2 = (np.asarray(beta, problem.dtype) for beta in problem.adam)
        one, epsilon = np.asarray(1.0, problem.dtype), np.asarray(ADAM_EPSILON, problem.dtype)
        for p, g in zip(parameters, grads):
            m, v = (pytensor.shared(np.zeros_like(p.get_value())) for _ in range(2))
            a, b = beta1 * m + (one - beta1) * g, beta2 * v + (one - beta2) * (g * g)
            updates += [(m, a), (v, b), (p, p - rate * a / (pt.sqrt(b * arguments[3]) + epsilon))]
    updates = [(variable, value.astype(problem.dtype)) for variable, value in updates]
    function = pytensor.function(arguments, loss, updates=updates)
    function.trust_input = True
    return per_call(function, calls)
