"""Gradients that are too large: `clip_grad_norm_` and `clip_grad_value_`, to be called before `optimizer.step()`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..engine.functions import maximum, minimum, sqrt
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Scale all gradients by the same number, so that their norm, as if they were one vector, is at most `max_norm`.

    Args:
        parameters: tensors, or objects with the numbers `data` and `grad`; of tensors, those that have a gradient
            count.
        norm_type: 2.0 for the root of the sum of squares, 1.0 for the sum of sizes, infinity for the greatest size, p
            for the p-th root of the sum of p-th powers.

    Returns:
        The norm before: a tensor of shape (), or a number.
    """
    with no_grad():
        given = _listed(parameters)
        gradients = [g for g in [p.grad for p in given] if g is not None]
        total: Any = 0.0
        for g in gradients:
            total = _joined(total, g, norm_type)
        if norm_type == 2.0:
            total = sqrt(total)
        elif norm_type not in (1.0, float("inf")):
            total = total ** (1.0 / norm_type)
        scale = minimum(max_norm / (total + 1e-6), 1.0)
        _assign(given, [g * scale for g in gradients])
        return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit each element of the gradients to `-clip_value` ... `clip_value`."""
    with no_grad():
        given = _listed(parameters)
        gradients = [g for g in [p.grad for p in given] if g is not None]
        _assign(given, [minimum(maximum(g, -clip_value), clip_value) for g in gradients])


def _listed(parameters: Any) -> list[Any]:
    return list(parameters) if isinstance(parameters, Iterable) and not isinstance(parameters, Tensor) else [parameters]


def _joined(total: Any, g: Any, norm_type: float) -> Any:
    """A sum, or a maximum, together with what the elements of a gradient contribute."""
    if norm_type == 2.0:
        part = g * g
    elif norm_type in (1.0, float("inf")):
        part = abs(g)
    else:
        part = abs(g) ** norm_type
    if norm_type == float("inf"):
        return maximum(part.max() if isinstance(g, Tensor) else part, total)
    return total + (part.sum() if isinstance(g, Tensor) else part)


def _assign(parameters: list[Any], gradients: list[Any]) -> None:
    """Assign the gradients of those parameters that have any."""
    following = iter(gradients)
    for p in parameters:
        if not isinstance(p, Tensor):
            p.grad = next(following)
        elif p.grad is not None:
            p.grad[...] = next(following)
