"""What the arguments of layers have to be, and the errors that say so."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, ShapeError, described, user_location
from ..tensor.tensor import Tensor, require


def count(name: str, given: Any, least: int = 1) -> int:
    """An int that is not below `least`.

    Raises:
        ArgumentValueError: it is none.
    """
    try:
        found = operator.index(given)
    except TypeError:
        found = least - 1
    if found < least or isinstance(given, bool):
        raise ArgumentValueError(
            f"{user_location()}: {name} must be an int of at least {least}, not the {described(given)}."
        )
    return found


def probability(name: str, given: Any) -> float:
    """A number from 0 to 1.

    Raises:
        ArgumentValueError: it is none.
    """
    if not isinstance(given, (int, float)) or not 0.0 <= given <= 1.0:
        raise ArgumentValueError(f"{user_location()}: {name} must be a number from 0 to 1, not {given!r}.")
    return float(given)


def named(layer: Any) -> str:
    """A layer in one line, for messages."""
    return f"{type(layer).__name__}({layer.extra_repr()})"


def last_extent(x: Any, extent: int, layer: Any) -> Tensor:
    """A tensor whose last axis has as many elements as a layer takes.

    Raises:
        ShapeError: it has not.
    """
    found = require(x, type(layer).__name__)
    if not found.ndim or found.shape[-1] != extent:
        raise ShapeError(f"{user_location()}: {named(layer)} of shape {found.shape}: the last extent must be {extent}.")
    return found


def same_shape(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of one shape: broadcasting a loss hides mistakes.

    Raises:
        ShapeError: they have different ones.
    """
    first, second = require(x, name), require(y, name)
    if first.shape != second.shape:
        raise ShapeError(
            f"{user_location()}: {name} of shapes {first.shape} and {second.shape}, which must be equal. "
            "reshape() or broadcast_to() one of them."
        )
    return first, second


def pair(name: str, given: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """One int for each of some axes: an int stands for all of them.

    Raises:
        ArgumentValueError, ArgumentError: it is neither an int nor so many.
    """
    parts = tuple(given) if isinstance(given, (tuple, list)) else (given,) * axes
    if len(parts) != axes:
        raise ArgumentError(f"{user_location()}: {name} must be an int or {axes} of them, not {described(given)}.")
    return tuple(count(name, one, least) for one in parts)
