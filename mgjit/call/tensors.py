"""Tensors among the arguments and results of a step.

A tensor that requires no gradient is an input, passed by address where its elements lie one after the other; a later
call may pass any other of that shape and type.  One that requires a gradient is a parameter, known by its identity.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor.apply import recording, tensor_of
from ..tensor.creation import from_flat
from ..tensor.dtypes import INTEGERS_END, DType, bool_, int64, refuse_overflow
from ..tensor.memory import Memory
from ..tensor.shapes import Shape, View, row_major
from ..tensor.tensor import Tensor
from .inputs import EXACT_INTEGERS, BufferNode
from .node import MakeNumber
from .results import ResultTree


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

    def traced(self, make: MakeNumber) -> Any:
        memory = recording().input(self.place, self.size, self.element)
        return tensor_of(memory, View(0, self.shape, row_major(self.shape)))

    def describe(self) -> str:
        return f"a tensor of shape {self.shape} and type {self.element}"


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
        if self.dtype is int64 and not all(-INTEGERS_END < number < INTEGERS_END for number in numbers):
            refuse_overflow("the step")
        return from_flat(numbers, shape, self.dtype)


def _format(dtype: DType) -> str:
    return "B" if dtype is bool_ else dtype.format
