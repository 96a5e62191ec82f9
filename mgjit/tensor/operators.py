"""The operators of tensors: arithmetic and comparisons of each element, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir.bodies import COPY, ELEMENTWISE
from .apply import add_into, elementwise, is_computed, is_number

if TYPE_CHECKING:
    from .tensor import Tensor


class Operators:
    """The operators of `Tensor`."""

    __slots__ = ()
    #: NumPy's arrays leave operators with a tensor to the tensor.
    __array_ufunc__ = None
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Tensor]:
            """The functions that are methods as well (tensor/__init__.py)."""

    def __neg__(self) -> Tensor:
        return elementwise("negate", ELEMENTWISE["negate"], (self,))

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]

    def __abs__(self) -> Tensor:
        return elementwise("absolute", ELEMENTWISE["absolute"], (self,))

    def __invert__(self) -> Tensor:
        return elementwise("logical_not", ELEMENTWISE["logical_not"], (self,))

    def __add__(self, other: Any) -> Tensor:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _binary("divide", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _divided("remainder", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _binary("remainder", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _divided("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _binary("floor_divide", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _binary("less", other, self)

    def __ge__(self, other: Any) -> Tensor:
        return _binary("less_equal", other, self)

    def __and__(self, other: Any) -> Tensor:
        return _binary("logical_and", self, other)

    def __or__(self, other: Any) -> Tensor:
        return _binary("logical_or", self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _binary("not_equal", self, other)

    __hash__ = object.__hash__

    def __iadd__(self, other: Any) -> Tensor:
        return _in_place("add", self, other)

    def __isub__(self, other: Any) -> Tensor:
        return _in_place("subtract", self, other)

    def __imul__(self, other: Any) -> Tensor:
        return _in_place("multiply", self, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return _in_place("divide", self, other)


#: What is added to elements in place, through which gradients flow: the old elements are an operand of nothing.
_ADDED = {"add": COPY, "subtract": ELEMENTWISE["negate"]}


def _operand(x: Any) -> Any:
    """A tensor or number for an operand; NotImplemented for what is neither."""
    from .creation import asarray, is_array
    from .tensor import Tensor

    if isinstance(x, Tensor) or is_number(x):
        return x
    return asarray(x) if is_array(x) else NotImplemented


def _binary(name: str, x: Any, y: Any) -> Tensor:
    operands = _operand(x), _operand(y)
    if any(operand is NotImplemented for operand in operands):
        return NotImplemented  # type: ignore[no-any-return]
    return elementwise(name, ELEMENTWISE[name], operands)


def _divided(name: str, x: Any, y: Any) -> Tensor:
    from . import elementwise

    operand = _operand(y)
    if operand is NotImplemented:
        return NotImplemented  # type: ignore[no-any-return]
    made: Tensor = getattr(elementwise, name)(x, operand)
    return made


def _in_place(name: str, x: Any, y: Any) -> Tensor:
    operand = _operand(y) if name in _ADDED and is_computed(x) else NotImplemented
    if operand is not NotImplemented:
        add_into(x, name, _ADDED[name], operand)
        return x  # type: ignore[no-any-return]
    made = _binary(name, x, y)
    if made is not NotImplemented:
        x._assign(x._view, made)
        made = x
    return made
