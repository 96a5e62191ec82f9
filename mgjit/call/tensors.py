"""Tensors among the arguments and results of a step.

A tensor that requires no gradient is an input, passed by address where its elements lie one after the other; a later
call may pass any other of that shape and type.  One that requires a gradient is a parameter, known by its identity.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor.apply import fresh, recording, tensor_of
from ..tensor.creation import from_flat
from ..tensor.dtypes import DType, bool_
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

    def contiguous(self, argument: Any) -> Any:
        if not isinstance(argument, Tensor) or argument.requires_grad or argument._memory.data is None:
            return None
        if argument.dtype is not self.element or argument.shape != self.shape:
            return None
        if argument.strides != row_major(self.shape) and argument.size:
            argument = argument.detach().copy()
        first = argument._view.offset
        return argument._memory.data[first : first + self.size]

    def traced(self, make: MakeNumber) -> Any:
        memory = recording().input(self.place, self.size, self.element)
        return tensor_of(memory, View(0, self.shape, row_major(self.shape)))

    def describe(self) -> str:
        return f"a tensor of shape {self.shape} and type {self.element}"


class TensorResult(ResultTree):
    """A tensor whose elements are outputs that follow each other."""

    def __init__(self, index: int, shape: Shape, dtype: DType, size: int) -> None:
        self.index, self.shape, self.dtype, self.size = index, shape, dtype, size

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self.make(outputs[self.index : self.index + self.size])

    def make(self, numbers: Any) -> Tensor:
        """The tensor of these numbers."""
        if isinstance(numbers, array) and numbers.typecode == self.dtype.format:
            made = fresh(self.shape, self.dtype)
            if self.size:
                made._memory.data.cast("B")[:] = memoryview(numbers).cast("B")
            return made
        return from_flat(numbers, self.shape, self.dtype)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(self.make)}({outputs}[{self.index}:{self.index + self.size}])"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        starts = range(self.index, self.index + rows * width, width)
        numbers = [number for start in starts for number in outputs[start : start + self.size]]
        return from_flat(numbers, (rows, *self.shape), self.dtype)


def _format(dtype: DType) -> str:
    return "B" if dtype is bool_ else dtype.format
