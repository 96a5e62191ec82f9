"""JAX: `jax.jit` of a whole step, called from Python, and the same step in `lax.scan`."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from bench.peers import models
from bench.peers.common import ADAM_EPSILON, Form, Problem, Unsupported, in_loop, per_call

PACKAGES = ("jax", "numpy")


def version() -> str:
    """Of the library."""
    return f"jax {jax.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step, and many in a scan."""
    jax.config.update("jax_enable_x64", not problem.single)
    return {"jax jit": lambda: _per_call(problem), "jax scan": lambda: _scan(problem)}


def _namespace(problem: Problem) -> Any:
    return SimpleNamespace(
        exp=jnp.exp, log=jnp.log, tanh=jnp.tanh, maximum=jnp.maximum, where=jnp.where, arange=jnp.arange,
        max_of=lambda x: jax.lax.stop_gradient(x.max(-1, keepdims=True)),
        one_hot=lambda labels, n: jax.nn.one_hot(labels, n, dtype=problem.dtype),
        number=lambda x: x.astype(problem.dtype),
    )  # fmt: skip


def _step(problem: Problem) -> Any:
    """(weights and moments, arguments) -> (weights and moments, loss)."""
    gradient = jax.value_and_grad(models.loss_of(problem, _namespace(problem)))

    def descend(state: Any, x: Any, y: Any, rate: Any) -> Any:
        loss, grads = gradient(state, x, y)
        return [p - rate * g for p, g in zip(state, grads)], loss

    def adam(state: Any, x: Any, y: Any, rate: Any, correction: Any) -> Any:
        parameters, m, v = state
        beta1, beta2 = problem.adam or (0.0, 0.0)
        loss, grads = gradient(parameters, x, y)
        m = [beta1 * a + (1 - beta1) * g for a, g in zip(m, grads)]
        v = [beta2 * a + (1 - beta2) * (g * g) for a, g in zip(v, grads)]
        moved = [p - rate * a / (jnp.sqrt(b * correction) + ADAM_EPSILON) for p, a, b in zip(parameters, m, v)]
        return (moved, m, v), loss

    return adam if problem.adam else descend


def _state(problem: Problem) -> Any:
    parameters = [jnp.asarray(a) for a in models.unflatten(problem)]
    if not problem.adam:
        return parameters
    return parameters, [jnp.zeros_like(p) for p in parameters], [jnp.zeros_like(p) for p in parameters]


def _per_call(problem: Problem) -> Form:
    compiled = jax.jit(_step(problem), donate_argnums=0)
    state = _state(problem)

    def step(*arguments: Any) -> Any:
        nonlocal state
        state, loss = compiled(state, *arguments)
        return loss

    return per_call(step, [tuple(map(jnp.asarray, call)) for call in models.arguments(problem)])


def _scan(problem: Problem) -> Form:
    step = _step(problem)
    state = _state(problem)
    calls = models.arguments(problem)
    if len({call[0].shape for call in calls}) > 1:
        raise Unsupported("lax.scan needs rows of one shape")

    @functools.lru_cache(maxsize=8)
    def compiled_for(count: int) -> Any:
        columns = tuple(jnp.asarray(np.stack(column)) for column in zip(*(calls[0] for _ in range(count))))
        return scan.lower(state, columns).compile()

    @functools.partial(jax.jit, donate_argnums=0)
    def scan(state: Any, columns: Any) -> Any:
        return jax.lax.scan(lambda carry, row: step(carry, *row), state, columns)

    def loop(rows: list[tuple[Any, ...]]) -> Any:
        nonlocal state
        columns = jax.block_until_ready(tuple(jnp.asarray(np.stack(column)) for column in zip(*rows)))
        compiled = compiled_for(len(rows))

        def run() -> Any:
            nonlocal state
            state, losses = compiled(state, columns)
            return np.asarray(losses)  # indexing the array of the library would compile something

        return run

    return in_loop(loop, calls)
