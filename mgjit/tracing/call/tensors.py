"""Tensors among the arguments and results of a step.

1. A tensor that requires no gradient is an input, passed by address where its elements lie one after the other; a later
   call may pass any other of that shape and type.
2. One that requires a gradient is a parameter, known by its identity.
3. So is one in whose memory the step assigns, a parameter or its own state (`AssignedNode`): as an input, it would be
   read as it was before the call.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...ir import opcodes as ops
from ...ir.trace import Trace
from ...tensor.apply import recording, tensor_of
from ...tensor.creation import from_flat
from ...tensor.dtypes import DType, bool_
from ...tensor.memory import Memory
from ...tensor.shapes import Shape, View, row_major
from ...tensor.tensor import Tensor
from ..surroundings.places import Place
from .appended import AppendingResult
from .inputs import EXACT_INTEGERS, BufferNode, root_of
from .node import MakeNumber
from .results import CompositeResult, KnownResult, ObjectResult, ResultTree


class TensorNode(BufferNode):
    """A tensor: a buffer of its elements in row-major order."""

    def __init__(self, region: int, place: int, argument: Tensor, path: str) -> None:
        self.region, self.place, self.path = region, place, path
        self.type, self.dtype, self.element = Tensor, None, argument.dtype
        self.format, self.shape, self.size = _format(argument.dtype), argument.shape, argument.size
        self.limit = EXACT_INTEGERS
        self.key = "tensor", argument.dtype.name, argument.shape
        self.elements = None
        self._strides = row_major(self.shape)

    def contiguous(self, argument: Any) -> Any:
        if not isinstance(argument, Tensor) or argument.requires_grad:
            return None
        memory, (first, shape, strides) = argument._memory, argument._view
        if memory.dtype is not self.element or shape != self.shape or memory.data is None:
            return None
        if strides != self._strides and self.size:
            return argument.detach().copy()._memory.data
        return memory.data if memory.size == self.size else memory.data[first : first + self.size]

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument._memory), self.path

    def traced(self, make: MakeNumber) -> Any:
        memory = recording().input(self.place, self.size, self.element)
        return tensor_of(memory, View(0, self.shape, row_major(self.shape)))

    def describe(self) -> str:
        return f"a tensor of shape {self.shape} and type {self.element}"


def assigned_memories(trace: Trace) -> frozenset[int]:
    """The identities of the memories of tensors that a step may write: those it assigns, parameters and gradients.

    With those of what holds their numbers, which arrays may share.
    """
    known = [(base, memory) for base, memory in trace.bound_storages if isinstance(memory, Memory)]
    bases = [base for base, _ in known]
    written = [part for _, memory in known if memory.is_leaf for part in (memory, memory.gradient())]
    for nest in trace.nests:
        kind = ops.leaf_kind(nest.target.leaf)
        if kind in (ops.PARAMETER, ops.GRADIENT):
            number = bisect_right(bases, ops.leaf_index(nest.target.leaf)) - 1
            memory = known[number][1]
            written.append(memory if kind == ops.PARAMETER else memory.gradient())
    return frozenset({*map(id, written), *(id(root_of(memory.data)) for memory in written)})


class TensorResult(ResultTree):
    """A tensor whose elements are outputs that follow each other."""

    def __init__(self, index: int, shape: Shape, dtype: DType, size: int) -> None:
        self.index, self.shape, self.dtype, self.size = index, shape, dtype, size
        self.view = View(0, shape, row_major(shape))

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self.make(outputs[self.index : self.index + self.size])

    def make(self, numbers: Any) -> Tensor:
        """The tensor of these numbers, an array that nobody else has."""
        if isinstance(numbers, array) and numbers.typecode == self.dtype.format:
            return tensor_of(Memory(self.size, self.dtype, memoryview(numbers)), self.view)
        return self._of(numbers, self.shape)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(self.make)}({outputs}[{self.index}:{self.index + self.size}])"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        starts = range(self.index, self.index + rows * width, width)
        numbers = [number for start in starts for number in outputs[start : start + self.size]]
        return self._of(numbers, (rows, *self.shape))

    def _of(self, numbers: Sequence[float], shape: Shape) -> Tensor:
        return from_flat(numbers, shape, self.dtype)


class ViewResult(ObjectResult):
    """A view, made by the step, of a tensor that existed before.

    Args:
        numbers: the result that its elements would be, for the columns of many calls.
    """

    def __init__(self, returned: Tensor, numbers: TensorResult) -> None:
        self._parts = returned._memory, returned._view, returned._detached
        self.parts = numbers

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return tensor_of(*self._parts)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(tensor_of)}(*{name_of(self._parts)})"


class SharedMemory(Place):
    """A view, which is returned, of the memory of a tensor that the step leaves at a place."""

    __slots__ = ()
    holder: Place
    name: View

    def read(self) -> Any:
        return tensor_of(self.holder.read()._memory, self.name)

    def expression(self, name_of: Callable[[Any], str]) -> str:
        return f"{name_of(tensor_of)}({self.holder.expression(name_of)}._memory, {name_of(self.name)})"


def as_numbers(result: ResultTree) -> ResultTree:
    """The result with copies in place of tensors that existed before the step."""
    if isinstance(result, AppendingResult):
        return AppendingResult(as_numbers(result.result), result.tails)
    if isinstance(result, CompositeResult):
        return CompositeResult(result.make, list(map(as_numbers, result.parts)))
    if isinstance(result, ViewResult) or (isinstance(result, KnownResult) and isinstance(result.returned, Tensor)):
        return result.parts
    return result


def _format(dtype: DType) -> str:
    return "B" if dtype is bool_ else dtype.format
