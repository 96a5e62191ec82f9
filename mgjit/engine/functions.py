"""Functions over numbers and Values: `exp, log, tanh, sqrt, maximum, minimum, where, one_hot, take, dot`.

Each takes plain numbers as well as Values, so that the same code runs undecorated.  A traced number
(record/values.py) answers to the same method names, so nothing here knows about tracing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, IndexRangeError, described, user_location
from . import arithmetic
from .value import Value


def exp(x: Any) -> Any:
    """e**x; inf where it overflows."""
    return arithmetic.exp(x) if _is_plain(x) else _method(x, "exp")()


def log(x: Any) -> Any:
    """Natural logarithm; -inf at 0 and nan below."""
    return arithmetic.log(x) if _is_plain(x) else _method(x, "log")()


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return arithmetic.tanh(x) if _is_plain(x) else _method(x, "tanh")()


def sqrt(x: Any) -> Any:
    """Square root; nan below 0."""
    return arithmetic.sqrt(x) if _is_plain(x) else _method(x, "sqrt")()


def relu(x: Any) -> Any:
    """max(0, x)."""
    return arithmetic.relu(x) if _is_plain(x) else _method(x, "relu")()


def maximum(x: Any, y: Any) -> Any:
    """The greater of two; `x` where they are equal.  Gradient to the one that was taken."""
    if _is_plain(x):
        if _is_plain(y):
            return arithmetic.maximum(x, y)
        return _method(y, "_lifted", "maximum")(x).maximum(y)
    return _method(x, "maximum")(y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two; `x` where they are equal.  Gradient to the one that was taken."""
    if _is_plain(x):
        if _is_plain(y):
            return arithmetic.minimum(x, y)
        return _method(y, "_lifted", "minimum")(x).minimum(y)
    return _method(x, "minimum")(y)


def where(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` where `condition` holds, otherwise `other`: an `if` that can depend on traced values.

    Both branches are computed; the gradient goes to the one that was taken.

    Examples:
        >>> mgjit.where(3.0 > 2.0, "greater", "less")
        'greater'
    """
    # A traced operand decides first: it knows what to do with Values, but not the other way round.
    operands = [operand for operand in (condition, chosen, other) if hasattr(operand, "_select")]
    if not operands:
        return chosen if condition else other
    traced = next((operand for operand in operands if type(operand) is not Value), operands[0])
    return traced._select(condition, chosen, other)


def one_hot(index: Any, n: int) -> list[Any]:
    """A list of `n` floats, 1.0 at `index` and 0.0 elsewhere.

    Raises:
        IndexError: `index` is not in 0 .. n-1.

    Examples:
        >>> mgjit.one_hot(2, 4)
        [0.0, 0.0, 1.0, 0.0]
    """
    if type(n) is not int or n < 1:
        raise ArgumentValueError(f"{user_location()}: one_hot needs a length of at least 1, not the {described(n)}.")
    if hasattr(index, "_one_hot"):
        return index._one_hot(n)  # type: ignore[no-any-return]
    position = _position(index, n, "one_hot")
    return [1.0 if k == position else 0.0 for k in range(n)]


def take(table: Any, index: Any) -> Any:
    """`table[index]` where `index` may be a run-time input: an embedding look-up.

    A Value, or each Value of a row, is returned as a new node, which passes its whole gradient on to the table.

    Raises:
        IndexError: `index` is not in 0 .. len(table)-1 (negative indices are not allowed).

    Examples:
        >>> table = [[mgjit.Value(0.1), mgjit.Value(0.2)], [mgjit.Value(0.3), mgjit.Value(0.4)]]
        >>> [x.data for x in mgjit.take(table, 1)]
        [0.3, 0.4]
    """
    if isinstance(table, Mapping) or not (hasattr(table, "__getitem__") and hasattr(table, "__len__")):
        raise ArgumentError(f"{user_location()}: take needs a list or tuple to take from, not the {described(table)}.")
    if hasattr(index, "_take"):
        return index._take(table)
    found = table[_position(index, len(table), "take")]
    if isinstance(found, (list, tuple)):
        return [x._copied() if isinstance(x, Value) else x for x in found]
    return found._copied() if isinstance(found, Value) else found


def dot(a: Any, b: Any) -> Any:
    """The sum of products `a[0]*b[0] + a[1]*b[1] + ...`, added from left to right, starting from 0.

    Raises:
        ValueError: the lengths differ.

    Examples:
        >>> mgjit.dot([1.0, 2.0], [3.0, 4.0])
        11.0
    """
    for operand in (a, b):
        if not hasattr(operand, "__len__"):
            raise ArgumentError(f"{user_location()}: dot needs two lists, not the {described(operand)}.")
    if len(a) != len(b):
        raise ArgumentValueError(
            f"{user_location()}: dot of {len(a)} and {len(b)} elements: give it two lists of equal lengths."
        )
    total: Any = 0.0
    for x, y in zip(a, b):
        total = total + x * y
    return total


def _is_plain(x: Any) -> bool:
    # isinstance is also true for a number that is being traced.
    return issubclass(type(x), (int, float))


def _method(operand: Any, name: str, function: str = "") -> Any:
    """A method of a Value or traced number; a TypeError for anything else."""
    method = getattr(operand, name, None)
    if method is None:
        raise ArgumentError(
            f"{user_location()}: {function or name} needs a number or a Value, not the {described(operand)}."
        )
    return method


def _position(index: Any, n: int, name: str) -> int:
    if isinstance(index, float):
        if not index.is_integer():
            raise IndexRangeError(f"{user_location()}: {name}: the index {index} is not an integer.")
        index = int(index)
    if not hasattr(index, "__index__"):
        raise ArgumentError(f"{user_location()}: {name}: the index must be an integer, not the {described(index)}.")
    position: int = index.__index__()
    if not 0 <= position < n:
        raise IndexRangeError(f"{user_location()}: {name}: the index {position} is not in range({n}).")
    return position
