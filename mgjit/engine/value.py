"""`Value`: a scalar that remembers how it was computed and can differentiate the computation.

The algorithm of `backward()`:

1. Collect every node that the root depends on, with an explicit stack (no recursion: graphs of
   100,000 nodes in a row are ordinary).
2. Reset the gradients of the collected *interior* nodes to 0.0; leaves keep theirs, so that several
   backward calls accumulate.
3. Seed the root with 1.0 and visit the interior nodes in reverse creation order, each adding its
   contributions to its operands, first operand first.

Reverse creation order is a topological order that does not depend on hashing or on the shape of the
traversal; it is what the compiled backward pass reproduces bit for bit.
"""

from __future__ import annotations

import copyreg
from itertools import count
from operator import attrgetter
from threading import get_ident
from typing import Any, Callable, Union

from ..errors import ArgumentError, described, user_location
from . import arithmetic, hook

Operand = Union["Value", float, int]

_next_sequence = count(1).__next__
#: Leaves have their own numbering, so that the parameters of a model have consecutive numbers, however they are used.
_next_leaf_sequence = count(1).__next__
_creation_order = attrgetter("_sequence")


class Value:
    """A float `data` with its gradient `grad` (of the last `backward()` root with respect to it).

    Args:
        data: the number; stored as a float.

    Raises:
        TypeError: `data` is not a real number.

    Examples:
        >>> x = mgjit.Value(3.0)
        >>> y = x * x + 1.0
        >>> y.backward()
        >>> y.data, x.grad
        (10.0, 6.0)
    """

    __slots__ = (
        "__weakref__",
        "_backward",
        "_condition",
        "_data",
        "_grad",
        "_index",
        "_leaf",
        "_left",
        "_right",
        "_sequence",
        "_storage",
        "_trace",
    )

    _data: float
    _grad: float
    _backward: Callable[[Value], None] | None
    _left: Value
    _right: Value
    _condition: Any
    _sequence: int
    _storage: Any
    _index: int
    _trace: Any
    _leaf: int
    #: Whether the number lives in the memory of a kernel (memory/buffers.py).
    _is_bound = False

    def __init__(self, data: Any) -> None:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            recording.methods["__init__"](self, data)
            return
        self._data = data if type(data) is float else _as_float(data)
        self._grad = 0.0
        self._backward = None
        self._sequence = _next_leaf_sequence()
        self._trace = None

    @property
    def data(self) -> float:
        """The number."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["data"](self)
        return self._data

    @data.setter
    def data(self, number: Any) -> None:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            recording.methods["data ="](self, number)
        else:
            self._data = number if type(number) is float else _as_float(number)

    @property
    def grad(self) -> float:
        """The derivative of the last root of `backward()` with respect to this Value."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["grad"](self)
        return self._grad

    @grad.setter
    def grad(self, number: Any) -> None:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            recording.methods["grad ="](self, number)
        else:
            self._grad = number if type(number) is float else _as_float(number)

    # ---- arithmetic ---------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__add__"](self, other)
        other = other if isinstance(other, Value) else _constant(other)
        return _node(self._data + other._data, _add_backward, self, other)

    def __mul__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__mul__"](self, other)
        other = other if isinstance(other, Value) else _constant(other)
        return _node(self._data * other._data, _multiply_backward, self, other)

    def __sub__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__sub__"](self, other)
        other = other if isinstance(other, Value) else _constant(other)
        return _node(self._data - other._data, _subtract_backward, self, other)

    def __rsub__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__rsub__"](self, other)
        return _constant(other) - self

    def __radd__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__radd__"](self, other)
        return _constant(other) + self

    def __rmul__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__rmul__"](self, other)
        return _constant(other) * self

    def __truediv__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__truediv__"](self, other)
        # As micrograd: a / b is a * b**-1, which is not always the rounded quotient.
        return self * (other**-1 if isinstance(other, Value) else _reciprocal(other))

    def __rtruediv__(self, other: Operand) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__rtruediv__"](self, other)
        return other * self**-1

    def __pow__(self, exponent: Any) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__pow__"](self, exponent)
        if isinstance(exponent, Value):
            raise ArgumentError(f"{user_location()}: Value ** Value is not defined: write mgjit.exp(b * mgjit.log(a)).")
        exponent = _as_float(exponent)
        return _node(arithmetic.power(self._data, exponent), _power_backward, self, _constant(exponent))

    def __neg__(self) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__neg__"](self)
        return _unary(-self._data, _negate_backward, self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__abs__"](self)
        return _unary(abs(self._data), _absolute_backward, self)

    # ---- functions ----------------------------------------------------------------------------

    def relu(self) -> Value:
        """max(0, self); nan passes through."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["relu"](self)
        return _unary(arithmetic.relu(self._data), _relu_backward, self)

    def exp(self) -> Value:
        """e to the power of self."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["exp"](self)
        return _unary(arithmetic.exp(self._data), _exp_backward, self)

    def log(self) -> Value:
        """The natural logarithm; -inf at 0, nan below."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["log"](self)
        return _unary(arithmetic.log(self._data), _log_backward, self)

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["tanh"](self)
        return _unary(arithmetic.tanh(self._data), _tanh_backward, self)

    def sqrt(self) -> Value:
        """The square root; nan below 0."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["sqrt"](self)
        return _unary(arithmetic.sqrt(self._data), _sqrt_backward, self)

    def maximum(self, other: Operand) -> Value:
        """The greater of the two, self where they are equal; the gradient goes to the one that was taken."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["maximum"](self, other)
        other = other if isinstance(other, Value) else _constant(other)
        return _node(arithmetic.maximum(self._data, other._data), _maximum_backward, self, other)

    def minimum(self, other: Operand) -> Value:
        """The smaller of the two, self where they are equal; the gradient goes to the one that was taken."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["minimum"](self, other)
        other = other if isinstance(other, Value) else _constant(other)
        return _node(arithmetic.minimum(self._data, other._data), _minimum_backward, self, other)

    def _copied(self) -> Value:
        """A new node with the same number, as `mgjit.take` returns it."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["_copied"](self)
        return _unary(self._data, _copy_backward, self)

    def _linked(self, number: Any, derivative: Any) -> Value:
        """A node with this number, which depends on self with this derivative (elementary.py)."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["_linked"](self, number, derivative)
        return _node(number, _linked_backward, self, _constant(derivative))

    def _select(self, condition: Any, chosen: Any, other: Any) -> Any:
        """`mgjit.where` with at least one Value among its arguments."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["_select"](self, condition, chosen, other)
        if isinstance(condition, Value):
            condition = condition.data
        if isinstance(chosen, Value) or isinstance(other, Value):
            return select(condition, chosen, other)
        return chosen if condition else other

    @staticmethod
    def _lifted(number: Any) -> Value:
        """A constant leaf for a number, such as the 0.0 of `mgjit.maximum(0.0, value)`."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["_lifted"](number)
        return _constant(number)

    # ---- comparisons (of the data; == stays identity, so that Values can be dictionary keys) -----

    def __lt__(self, other: Operand) -> bool:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__lt__"](self, other)
        return self._data < (other._data if isinstance(other, Value) else other)

    def __le__(self, other: Operand) -> bool:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__le__"](self, other)
        return self._data <= (other._data if isinstance(other, Value) else other)

    def __gt__(self, other: Operand) -> bool:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__gt__"](self, other)
        return self._data > (other._data if isinstance(other, Value) else other)

    def __ge__(self, other: Operand) -> bool:
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            return recording.methods["__ge__"](self, other)
        return self._data >= (other._data if isinstance(other, Value) else other)

    # ---- differentiation ----------------------------------------------------------------------

    def backward(self) -> None:
        """Set `grad` of every interior node below, and add to `grad` of every leaf, d(self)/d(node)."""
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            recording.methods["backward"](self)
            return
        interior = self._interior_nodes()
        for node in interior:
            node._grad = 0.0
        self._grad = 1.0
        interior.sort(key=_creation_order, reverse=True)
        for node in interior:
            node._backward(node)  # type: ignore[misc]

    def _interior_nodes(self) -> list[Value]:
        if self._backward is None:
            return []
        seen = {self}
        stack = [self]
        found = []
        while stack:
            node = stack.pop()
            found.append(node)
            for operand in (node._left, node._right):
                if operand._backward is not None and operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
        return found

    # ---- housekeeping -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Value(data={self._data}, grad={self._grad})"

    def __format__(self, specification: str) -> str:
        return format(self.data, specification) if specification else str(self)

    def __reduce__(self) -> Any:
        # A copy or a pickle is a leaf: neither the graph nor the place in a kernel's memory is copied.
        cls = type(self)
        while cls._is_bound:
            cls = cls.__bases__[0]
        added = [name for name in copyreg._slotnames(cls) if name not in Value.__slots__]  # type: ignore[attr-defined]
        slots = {name: getattr(self, name) for name in added if hasattr(self, name)}
        own = getattr(self, "__dict__", None) or None
        return restore, (cls, self.data, self.grad), (own, slots) if slots else own


# ---- making nodes -----------------------------------------------------------------------------------


def _as_float(number: Any) -> float:
    if isinstance(number, (int, float)):
        return float(number)
    if hasattr(number, "_detached"):  # a tensor
        raise ArgumentError(
            f"{user_location()}: a Value and a tensor, whose gradient would be lost. Compute with tensors: "
            "mgjit.tensor.asarray(x, requires_grad=True); or pass tensor.item(), which has no gradient."
        )
    if isinstance(number, Value):
        raise ArgumentError(f"{user_location()}: a number is needed, not the Value {number._data}: pass its .data.")
    if hasattr(number, "__float__") and not isinstance(number, (str, bytes, complex)):  # complex has one before 3.10
        return float(number)
    raise ArgumentError(f"{user_location()}: a Value needs a real number, not {described(number)}.")


def _constant(number: Any) -> Value:
    leaf = Value.__new__(Value)
    leaf._data = number if type(number) is float else _as_float(number)
    leaf._grad = 0.0
    leaf._backward = None
    leaf._trace = None
    return leaf


def _reciprocal(number: Any) -> float:
    return arithmetic.power(_as_float(number), -1.0)


def _node(data: float, backward: Callable[[Value], None], left: Value, right: Value) -> Value:
    node = Value.__new__(Value)
    node._data = data
    node._grad = 0.0
    node._backward = backward
    node._left = left
    node._right = right
    node._sequence = _next_sequence()
    node._trace = None
    return node


def _unary(data: float, backward: Callable[[Value], None], operand: Value) -> Value:
    return _node(data, backward, operand, _ABSENT)


def select(condition: Any, chosen: Operand, other: Operand) -> Value:
    """`chosen` where `condition` holds, otherwise `other`, as one differentiable node."""
    left = chosen if isinstance(chosen, Value) else _constant(chosen)
    right = other if isinstance(other, Value) else _constant(other)
    node = _node(left._data if condition else right._data, _select_backward, left, right)
    node._condition = bool(condition)
    return node


def restore(cls: type[Value], data: Any, grad: Any) -> Value:
    """A leaf with these numbers, for copies and pickles."""
    leaf = cls.__new__(cls)  # without calling the __init__ of a user's subclass
    Value.__init__(leaf, data)
    leaf.grad = grad
    return leaf


#: Stands for the missing second operand of unary nodes: a leaf to which nothing is added.
_ABSENT = Value(0.0)


# ---- the derivative of each operation ----------------------------------------------------------------
# simplify/differentiate.py writes the same expressions, in the same order, over arrays.


def _add_backward(out: Value) -> None:
    out._left._grad += out._grad
    out._right._grad += out._grad


def _subtract_backward(out: Value) -> None:
    out._left._grad += out._grad
    out._right._grad += -out._grad


def _multiply_backward(out: Value) -> None:
    left, right = out._left, out._right
    left._grad += right._data * out._grad
    right._grad += left._data * out._grad


def _power_backward(out: Value) -> None:
    exponent = out._right._data
    out._left._grad += exponent * arithmetic.power(out._left._data, exponent - 1.0) * out._grad


def _negate_backward(out: Value) -> None:
    out._left._grad += -out._grad


def _absolute_backward(out: Value) -> None:
    data = out._left._data
    out._left._grad += ((data > 0.0) - (data < 0.0)) * out._grad


def _relu_backward(out: Value) -> None:
    out._left._grad += (out._data > 0.0) * out._grad


def _exp_backward(out: Value) -> None:
    out._left._grad += out._data * out._grad


def _log_backward(out: Value) -> None:
    out._left._grad += arithmetic.divide(out._grad, out._left._data)


def _tanh_backward(out: Value) -> None:
    out._left._grad += (1.0 - out._data * out._data) * out._grad


def _sqrt_backward(out: Value) -> None:
    out._left._grad += arithmetic.divide(out._grad, 2.0 * out._data)


def _maximum_backward(out: Value) -> None:
    left, right = out._left, out._right
    taken = right._data > left._data
    left._grad += 0.0 if taken else out._grad
    right._grad += out._grad if taken else 0.0


def _minimum_backward(out: Value) -> None:
    left, right = out._left, out._right
    taken = right._data < left._data
    left._grad += 0.0 if taken else out._grad
    right._grad += out._grad if taken else 0.0


def _copy_backward(out: Value) -> None:
    out._left._grad += out._grad


def _linked_backward(out: Value) -> None:
    out._left._grad += out._right._data * out._grad


def _select_backward(out: Value) -> None:
    out._left._grad += out._grad if out._condition else 0.0
    out._right._grad += 0.0 if out._condition else out._grad
