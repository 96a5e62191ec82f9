"""The memory behind tensors, and what it knows about gradients.

A `Memory` is a block of numbers of one type.  Several tensors can be views of it; what differentiates is the memory, so
a gradient written through one view is seen through all.

1. Outside of a trace it has `data`, and `grad` once that is asked for.  Floats lie in a `ParameterStorage`, so that a
   compiled step works in that very memory, and nothing is copied.
2. Inside a trace, what is computed has no data but a place among the leaves of the trace (record/nests.py).
3. A *leaf* requires gradients and was not computed: gradients are added up in its `grad`.  What is computed from such
   remembers the nests that wrote it, `made_by`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..memory.buffers import ParameterStorage, aligned_zeros
from .dtypes import DType

if TYPE_CHECKING:
    from .nests import Nest


class Memory(ParameterStorage):
    """`size` numbers of one type.

    Attributes:
        dtype: their type.
        data: a buffer; None in a trace.
        trace: what records, for memory that exists in a trace only; None otherwise.
        leaf: its first element there.
        is_leaf: whether gradients are added up here.
        made_by: the nests that wrote it, and through which gradients flow; None after a backward pass has used them.
        version: counts assignments: derivatives need the operands that the operation has seen.
        limit: whole numbers are known to be in `range(limit)`; None where nothing is known.
        gradient_of: the memory whose gradients these are, or None.
        is_exported: whether there is a buffer or an array over the same memory, outside of tensors.
    """

    __slots__ = (
        "_grad",
        "_gradients",
        "dtype",
        "gradient_of",
        "is_exported",
        "is_leaf",
        "leaf",
        "limit",
        "made_by",
        "trace",
        "version",
    )

    data: Any
    trace: Any
    made_by: list[Nest] | None
    #: How often any memory has become a leaf, or has ceased to be one.
    switched = 0
    #: Whether there has been any.
    exists = False

    def __init__(self, size: int, dtype: DType, data: Any = None) -> None:
        # Not that of the base class, which would make a gradient for everything.
        self.precision, self.size, self.layout = dtype.precision, size, None
        self._numbers, self._user, self.is_shared, self.late = {}, None, False, None
        self.dtype, self.is_leaf, self.trace, self.leaf = dtype, False, None, 0
        self.made_by: list[Nest] | None = []
        self.version = 0
        self.limit: int | None = None
        self.gradient_of: Memory | None = None
        self.is_exported = False
        self._gradients: Memory | None = None
        self._grad: Any = None
        self.data = zeros(size, dtype) if data is None else data
        if not Memory.exists:
            Memory.exists = True

    @classmethod
    def traced(cls, size: int, dtype: DType, trace: Any, leaf: int) -> Memory:
        """Memory of a trace."""
        made = cls(size, dtype, ())
        made.data, made.trace, made.leaf = None, trace, leaf
        return made

    @property
    def grad(self) -> Any:
        """The gradients, a buffer of the same layout: zeros at first."""
        if self._grad is None:
            self._grad = aligned_zeros(self.size, self.precision)
        return self._grad

    @property
    def has_gradient(self) -> bool:
        """Whether the gradients have been asked for: otherwise they are zeros."""
        return self._grad is not None

    def gradient(self) -> Memory:
        """The gradients as a memory of their own."""
        if self._gradients is None:
            if self.trace is None:
                self._gradients = _Gradients(self.size, self.dtype, ())
            else:
                self._gradients = Memory.traced(self.size, self.dtype, self.trace, self.trace.gradient_leaf(self.leaf))
            self._gradients.gradient_of = self
        return self._gradients

    def become_leaf(self, wanted: bool) -> None:
        """Require gradients, or no longer."""
        if wanted != self.is_leaf:
            self.is_leaf = wanted
            Memory.switched += 1

    @property
    def differentiates(self) -> bool:
        """Whether gradients flow to it."""
        return self.is_leaf or self.made_by is None or bool(self.made_by)


class _Gradients(Memory):
    """Gradients from outside of a trace, which does not ask for their numbers: they are made when somebody does."""

    __slots__ = ()

    @property
    def data(self) -> Any:
        """Those of the memory whose gradients they are."""
        assert self.gradient_of is not None
        return self.gradient_of.grad

    @data.setter
    def data(self, data: Any) -> None:
        """There are no others."""


class NumbersOf:
    """What shows whether numbers in these memories are others than before: how often there were assignments.

    Where something else may write, such as a NumPy array over the same memory, it is the numbers themselves.
    """

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = list(memories)

    def __call__(self) -> list[Any]:
        return [(one.version, bytes(one.data) if one.is_exported else b"") for one in self._memories]


class LeavesAsBefore:
    """Whether these memories require gradients where they did."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = [(memory, memory.is_leaf) for memory in memories]
        self._switched = Memory.switched

    def __call__(self) -> bool:
        if self._switched != Memory.switched:
            if any(memory.is_leaf is not was for memory, was in self._memories):
                return False
            self._switched = Memory.switched
        return True


def zeros(size: int, dtype: DType) -> Any:
    """A buffer of zeros."""
    if dtype.is_floating:
        return aligned_zeros(size, dtype.precision)
    code = "B" if dtype.format == "?" else dtype.format
    return memoryview(array(code, bytes(size * dtype.size)))
