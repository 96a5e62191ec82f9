"""Make tensors by nests: choose the type, the shape and the strides, then run the nest or record it.

Inside a trace the recording takes the nest (record/nests.py); outside of one it runs at once (eager.py).
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..engine import hook
from ..engine.leaks import is_traced_number, leaked
from ..engine.value import Value
from ..errors import ArgumentError, GradientError, ShapeError, described, user_location
from ..ir.bodies import COPY, Body
from . import eager
from .dtypes import DType, bool_, common, float64, int64, require_type
from .memory import Memory
from .modes import floats_of_step, gradients_are_on
from .nests import Access, Nest
from .shapes import Shape, View, broadcast, broadcast_strides, row_major, size_of

if TYPE_CHECKING:
    from .tensor import Tensor

#: Operations whose results say yes or no.
YES_OR_NO = frozenset({
    "less", "less_equal", "equal", "not_equal", "logical_not", "logical_and", "logical_or", "as_bool", "isnan", "isinf",
    "isfinite",
})  # fmt: skip
#: Operations whose results are whole if their operands are.
_WHOLE = frozenset({
    "add", "subtract", "multiply", "negate", "absolute", "maximum", "minimum", "relu", "square", "where", "floor",
    "ceil", "trunc", "rint", "sign", "remainder", "fmod", "floor_divide",
})  # fmt: skip
#: Operations whose derivatives are computed from their results (ir/derivatives.py).
_NEEDED = frozenset({"divide", "relu", "exp", "tanh", "sqrt"})


def recording() -> Any:
    """What takes nests in place of running them, while this thread is traced; None otherwise."""
    found = hook.recording
    return found.tensors if found is not None and found.thread == get_ident() else None


def is_number(thing: Any) -> bool:
    """Whether something is a number: of Python, of NumPy, or traced."""
    return isinstance(thing, (int, float, numbers.Real)) or is_traced_number(thing)


def number_type(number: Any) -> type:
    """float, int or bool."""
    return bool if isinstance(number, bool) else int if isinstance(number, (int, numbers.Integral)) else float


def plain(number: Any) -> Any:
    """A number as a float; a traced one as it is."""
    return number if is_traced_number(number) else float(number)


def new_memory(size: int, dtype: DType) -> Memory:
    """Memory for a result."""
    taking = recording()
    own = floats_of_step()
    if taking is None and own is not None:
        require_type(dtype, own)
    return Memory(size, dtype) if taking is None else taking.memory(size, dtype)


def tensor_of(memory: Memory, view: View, detached: bool = False) -> Tensor:
    """A tensor over a memory: inside a trace one of the class that does not outlive it."""
    from .tensor import Tensor

    taking = recording()
    made: Tensor = object.__new__(Tensor if taking is None else taking.kind)
    made._memory, made._view, made._detached = memory, view, detached
    return made


def fresh(shape: Shape, dtype: DType) -> Tensor:
    """A tensor for a result."""
    return tensor_of(new_memory(size_of(shape), dtype), View(0, shape, row_major(shape)))


def perform(nest: Nest) -> None:
    """Run or record a nest, whose target remembers it if gradients flow through it."""
    target = nest.target.memory
    assert target is not None
    target.version += 1
    target.limit = None
    if nest.flows:
        assert target.made_by is not None
        target.made_by.append(nest)
    taking = recording()
    if taking is not None:
        taking.append(nest)
    else:
        eager.run(nest)


def access(name: str, operand: Any, strides: tuple[int, ...] | None, shape: Shape, differentiates: bool) -> Access:
    """How a nest reads an operand.

    Args:
        strides: for each loop; None broadcasts it to `shape`.
        differentiates: whether gradients may flow through the operation.

    Raises:
        ArgumentError: it is neither a tensor nor a number.
    """
    from .tensor import Tensor

    if isinstance(operand, Tensor):
        view, memory = operand._view, operand._memory
        if memory.trace is not None and memory.trace is not recording():
            leaked()
        flows = (
            differentiates
            and gradients_are_on()
            and memory.dtype.is_floating
            and not operand._detached
            and memory.differentiates
        )
        return Access(memory, view.offset, broadcast_strides(view, shape) if strides is None else strides, flows)
    if isinstance(operand, Value):
        raise ArgumentError(
            f"{user_location()}: {name} of a tensor and a Value, whose gradient would be lost. Keep the number in a "
            "tensor: mgjit.tensor.asarray(x, requires_grad=True); or pass value.data, which has no gradient."
        )
    if not is_number(operand):
        raise ArgumentError(f"{user_location()}: {name} needs tensors or numbers, not the {described(operand)}.")
    return Access(None, 0, (0,) * len(shape if strides is None else strides), number=plain(operand))


def elementwise(name: str, body: Body, operands: Sequence[Any], dtype: DType | None = None) -> Tensor:
    """An operation on each element of tensors and numbers that are broadcast together.

    Raises:
        ShapeError, PrecisionError, ArgumentError: they do not go together.
    """
    from .tensor import Tensor

    shape = broadcast(name, *(one.shape for one in operands if isinstance(one, Tensor)))
    dtype = result_type(name, operands) if dtype is None else dtype
    return elementwise_nest(
        name, body, [access(name, one, None, shape, dtype.is_floating) for one in operands], shape, dtype
    )


def elementwise_nest(name: str, body: Body, operands: Sequence[Access], shape: Shape, dtype: DType) -> Tensor:
    """An operation on each of the elements that operands are read at."""
    made = fresh(shape, dtype)
    perform(Nest(name, body, shape, (), tuple(operands), Access(made._memory, 0, made._view.strides)))
    return made


def result_type(name: str, operands: Sequence[Any]) -> DType:
    """The type of the result of an operation.

    Raises:
        PrecisionError: operands of both precisions.
    """
    from .tensor import Tensor

    counted = operands[1:] if name == "where" else operands
    tensors = [one.dtype for one in counted if isinstance(one, Tensor)]
    numbers_ = [number_type(one) for one in counted if not isinstance(one, Tensor)]
    found = common(name, tensors, numbers_)
    if name in YES_OR_NO:
        return bool_
    if name in _WHOLE:
        return int64 if found is bool_ and name != "where" else found
    return found if found.is_floating else float64


def copy_into(target: Memory, view: View, source: Any, name: str = "copy", differentiates: bool = False) -> None:
    """Assign to the elements of a view; a tensor is broadcast.

    Raises:
        ShapeError: it cannot be.
    """
    from .tensor import Tensor

    if isinstance(source, Tensor):
        further = len(source.shape) - len(view.shape)
        if further > 0 and source.shape[:further] == (1,) * further:  # which say nothing
            source = source.reshape(source.shape[further:])
    if isinstance(source, Tensor) and broadcast(name, source.shape, view.shape) != view.shape:
        raise ShapeError(f"{user_location()}: {name} of shape {source.shape} to elements of shape {view.shape}.")
    perform(
        Nest(name, COPY, view.shape, (), (access(name, source, None, view.shape, differentiates),),
             Access(target, view.offset, view.strides))
    )  # fmt: skip


def is_computed(x: Tensor) -> bool:
    """Whether gradients flow through a tensor, from operations of this trace if there is one, to what they were of."""
    memory = x._memory
    is_one = bool(memory.made_by) and not memory.is_leaf and not x._detached
    return is_one and memory.trace is recording() and gradients_are_on()


def add_into(x: Tensor, name: str, body: Body, operand: Any) -> None:
    """Add an operation on an operand, which is broadcast, to the elements of a tensor; gradients flow to both.

    Raises:
        ShapeError, PrecisionError: they do not go together.
        GradientError: the derivative of what wrote the tensor is computed from the elements as they are.
    """
    from .tensor import Tensor

    for nest in x._memory.made_by or ():
        if nest.is_custom or nest.body.is_sum:
            continue
        if nest.body.initial or nest.body.steps[-1].operation in _NEEDED:
            raise GradientError(
                f"{user_location()}: {name} to the result of {nest.name} in place, which its derivative needs. Write "
                "x = x + y in place of x += y."
            )
    if isinstance(operand, Tensor):
        if broadcast(name, operand.shape, x.shape) != x.shape:
            raise ShapeError(f"{user_location()}: {name} of shape {operand.shape} to elements of shape {x.shape}.")
        common(name, (x.dtype, operand.dtype))
        if operand._memory is x._memory:
            operand = operand.copy()  # as if all were read first
    reading = access(name, operand, None, x.shape, x.dtype.is_floating)
    perform(Nest(name, body, x.shape, (), (reading,), Access(x._memory, x._view.offset, x._view.strides), adds=True))


def reduction(
    name: str, body: Body, operands: Sequence[tuple[Any, tuple[int, ...]]], outer: Shape, inner: Shape, dtype: DType
) -> Tensor:
    """A reduction.

    Args:
        operands: tensors, each with its strides for all loops.
    """
    made = fresh(outer, dtype)
    differentiates = dtype.is_floating
    accesses = tuple(access(name, one, strides, outer + inner, differentiates) for one, strides in operands)
    perform(Nest(name, body, outer, inner, accesses, Access(made._memory, 0, made._view.strides)))
    return made
