"""Functions that differentiate functions: `grad`, `value_and_grad`, `jacobian`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, GradientError, user_location
from .apply import fresh
from .joining import stack
from .modes import enable_grad
from .tensor import Tensor


def value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns `(value, gradient)`: what `function` returns, one number, and its gradient.

    Args:
        function: of tensors.
        argnums: the number of the argument that is differentiated by; with a tuple, there is a tuple of gradients.
    """

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        given, leaves = _with_leaves(arguments, argnums)
        with enable_grad():
            value = function(*given, **named)
            _require_result(value)
            if value.requires_grad:
                value.backward()
        gradients = tuple(_gradient(leaf) for leaf in leaves)
        return value.detach(), gradients[0] if isinstance(argnums, int) else gradients

    return found


def grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the gradient of `function`, which returns one number.

    Args:
        function, argnums: see `value_and_grad`.
    """
    both = value_and_grad(function, argnums)

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        return both(*arguments, **named)[1]

    return found


def jacobian(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns all derivatives of what `function` returns, of the shape result.shape + argument.shape.

    There is one backward pass for each element of the result.

    Args:
        function, argnums: see `value_and_grad`; the function may return any shape.
    """

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        given, leaves = _with_leaves(arguments, argnums)
        with enable_grad():
            result = function(*given, **named)
            _require_result(result)
            flat = result.reshape(-1)
            rows: list[list[Tensor]] = [[] for _ in leaves]
            for k in range(flat.size):
                if flat.requires_grad:
                    flat[k].backward(retain_graph=True)
                for leaf, of_leaf in zip(leaves, rows):
                    of_leaf.append(_gradient(leaf))
                    leaf.zero_grad()
        made = tuple(
            (stack(of_leaf) if of_leaf else fresh((0, *leaf.shape), leaf.dtype)).reshape((*result.shape, *leaf.shape))
            for leaf, of_leaf in zip(leaves, rows)
        )
        return made[0] if isinstance(argnums, int) else made

    return found


def _with_leaves(arguments: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[list[Any], list[Tensor]]:
    """The arguments, with leaves in place of those that are differentiated by."""
    given, leaves = list(arguments), []
    for number in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(given[number], Tensor):
            raise ArgumentError(
                f"{user_location()}: argument {number} is differentiated by and is a {type(given[number]).__name__}, "
                "not a tensor: mgjit.tensor.asarray makes one."
            )
        given[number] = given[number].detach().copy()
        given[number].requires_grad = True
        leaves.append(given[number])
    return given, leaves


def _gradient(leaf: Tensor) -> Tensor:
    found = leaf.grad
    assert found is not None
    return found.copy()


def _require_result(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise GradientError(f"{user_location()}: the function returns a {type(value).__name__}, not a tensor.")
