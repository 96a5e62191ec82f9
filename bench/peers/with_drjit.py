"""Dr.Jit: its LLVM backend, gradients by its own reverse mode.

A layer is written as sums over its inputs, a lane a sample; every step is traced again, and its kernel found by hash.
"""

from __future__ import annotations

from typing import Any, Callable

import drjit as dr
import numpy as np

from bench.peers import models
from bench.peers.common import L2, Form, Problem, Unsupported, per_call

PACKAGES = ("drjit", "numpy")


def version() -> str:
    """Of the library."""
    return f"drjit {dr.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step."""
    return {"drjit": lambda: _form(problem)}


def _form(problem: Problem) -> Form:
    if problem.name not in ("W1", "W2"):
        raise Unsupported("its kernels are over one flat dimension; products of larger matrices are not what it is for")
    from drjit.llvm.ad import Float64, UInt32

    arrays = models.unflatten(problem)
    parameters = [Float64(a.ravel()) for a in arrays]
    shapes = [a.shape for a in arrays]
    samples = len(problem.calls[0][1]) if problem.name == "W2" else 1

    def relu(x: Any) -> Any:
        return dr.select(x > 0.0, x, 0.0)  # some versions of LLVM have no maximum of doubles

    def layer(w: Any, b: Any, x: list[Any], shape: tuple[int, int], top: bool) -> list[Any]:
        made = []
        for j in range(shape[0]):
            total = dr.gather(Float64, b, UInt32(j))
            for i in range(shape[1]):
                total = total + dr.gather(Float64, w, UInt32(j * shape[1] + i)) * x[i]
            made.append(total if top else relu(total))
        return made

    def loss_of(x: list[Any], y: Any) -> Any:
        for k in range(0, len(parameters), 2):
            x = layer(parameters[k], parameters[k + 1], x, shapes[k], k + 2 == len(parameters))
        if problem.name == "W1":
            return dr.square(x[0] - y)
        squares = sum((dr.sum(dr.square(p)) for p in parameters), Float64(0.0))
        return dr.sum(relu(1.0 - y * x[0])) / samples + L2 * squares

    def step(x: list[Any], y: Any, rate: Any) -> Any:
        for k, p in enumerate(parameters):
            parameters[k] = dr.detach(p)
            dr.enable_grad(parameters[k])
        loss = loss_of(x, y)
        dr.backward(loss)
        for k, p in enumerate(parameters):
            parameters[k] = dr.detach(p) - rate * dr.grad(p)
        loss = dr.detach(loss)
        dr.eval(loss, parameters)
        return loss[0]

    calls = [
        ([Float64(np.ascontiguousarray(column)) for column in x.T], Float64(y.ravel()), Float64(float(rate)))
        for x, y, rate in models.arguments(problem)
    ]
    return per_call(step, calls)
