"""CasADi: one function over matrix expressions, weights in and weights out."""

from __future__ import annotations

from typing import Any, Callable

import casadi as ca
import numpy as np

from bench.peers import models
from bench.peers.common import ADAM_EPSILON, L2, Form, Problem, Unsupported, per_call

PACKAGES = ("casadi", "numpy")


def version() -> str:
    """Of the library."""
    return f"casadi {ca.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step."""
    return {"casadi": lambda: _form(problem)}


def _form(problem: Problem) -> Form:
    if not problem.sizes:
        raise Unsupported("its matrices have two dimensions and its functions one shape")
    arrays = models.unflatten(problem)
    calls = [_columns(problem, *call) for call in models.arguments(problem)]
    parameters = [ca.MX.sym(f"p{k}", *_shape(a)) for k, a in enumerate(arrays)]
    moments = [ca.MX.sym(f"m{k}", *_shape(a)) for k, a in enumerate([*arrays, *arrays] if problem.adam else [])]
    arguments = [ca.MX.sym(f"a{k}", *np.shape(a)) if np.ndim(a) else ca.MX.sym(f"a{k}") for k, a in enumerate(calls[0])]
    loss = _loss(problem, parameters, *arguments[:2])
    grads = [ca.gradient(loss, p) for p in parameters]
    moved = _moved(problem, parameters, moments, grads, *arguments[2:])
    function = ca.Function("step", [*parameters, *moments, *arguments], [*moved, loss])
    state: list[Any] = [*map(ca.DM, arrays), *(ca.DM.zeros(*m.shape) for m in moments)]

    def step(*given: Any) -> Any:
        nonlocal state
        *state, result = function(*state, *given)
        return result

    return per_call(step, [tuple(map(ca.DM, call)) for call in calls])


def _shape(array: Any) -> tuple[int, int]:
    return array.shape if array.ndim == 2 else (array.shape[0], 1)


def _columns(problem: Problem, x: Any, y: Any, *rates: Any) -> tuple[Any, ...]:
    """A sample a column; labels as one-hot columns."""
    if problem.name in ("W3", "W4"):
        x, y = x / 255.0, np.eye(10)[y]
    return x.T.astype(float), y.T.astype(float), *map(float, rates)


def _loss(problem: Problem, p: Any, x: Any, y: Any) -> Any:
    count = x.shape[1]
    for k in range(0, len(p), 2):
        x = ca.mtimes(p[k], x) + ca.repmat(p[k + 1], 1, count)
        if k + 2 < len(p):
            x = ca.tanh(x) if problem.name == "W5" else ca.fmax(x, 0)
    if problem.name == "W2":
        return ca.sum2(ca.fmax(1 - y * x, 0)) / count + L2 * sum(ca.sumsqr(a) for a in p)
    if problem.name == "W4":  # without the subtraction of the greatest score, whose gradient is zero
        return ca.sum2(ca.log(ca.sum1(ca.exp(x))) - ca.sum1(x * y)) / count
    return ca.sumsqr(x - y) / (2 * count if problem.name == "W5" else 1)


def _moved(problem: Problem, p: Any, moments: Any, grads: Any, rate: Any, correction: Any = None) -> list[Any]:
    if problem.adam is None:
        return [a - rate * g for a, g in zip(p, grads)]
    beta1, beta2 = problem.adam
    m = [beta1 * a + (1 - beta1) * g for a, g in zip(moments, grads)]
    v = [beta2 * a + (1 - beta2) * g * g for a, g in zip(moments[len(p) :], grads)]
    moved = [a - rate * b / (ca.sqrt(c * correction) + ADAM_EPSILON) for a, b, c in zip(p, m, v)]
    return [*moved, *m, *v]
