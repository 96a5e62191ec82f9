"""`Tensor`: an array of scalars with NumPy's broadcasting and PyTorch's autograd, whose operations are loop nests.

A tensor is a view (offset, shape, strides) of a memory (memory.py).  Reshaping, transposing and slicing give other
views of the same memory; nothing is copied, and an assignment to one is seen in the others.

Outside of a compiled step each operation runs at once.  Inside of one it is recorded as its nest, and everything
becomes one kernel, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, GradientError, ShapeError, described, user_location
from ..ir.bodies import COPY
from . import dtypes
from .apply import copy_into, elementwise, is_number, number_type, recording, tensor_of
from .autograd import backward
from .conversions import Conversions
from .memory import Memory
from .modes import gradients_are_on
from .operators import Operators
from .shapes import (
    Shape,
    Size,
    View,
    axes_from,
    axis_from,
    broadcast,
    broadcast_strides,
    indexed,
    reshaped,
    shape_from,
    size_of,
)


class Tensor(Operators, Conversions):
    """An array of scalars.  `mgjit.tensor.asarray` makes one from numbers.

    Attributes:
        shape: the extents of its axes.
        dtype: float64, float32, int64 or bool.
        requires_grad: whether gradients flow to it.
        grad: of a leaf, the gradient that backward passes have added up, a tensor; zeros at first.  None of others.

    Examples:
        >>> x = mgjit.tensor.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [[2.0, 4.0], [6.0, 8.0]]
    """

    __slots__ = ("__weakref__", "_detached", "_extremes_of", "_memory", "_view")
    _memory: Memory
    _view: View
    _detached: bool
    #: Of maxima or minima along an axis: what finds their indices (reductions.py).
    _extremes_of: tuple[Any, ...]

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        from .creation import asarray

        made = asarray(data, dtype=dtype, requires_grad=requires_grad, copy=True)
        self._memory, self._view, self._detached = made._memory, made._view, made._detached

    if not TYPE_CHECKING:  # mypy knows the attributes

        def __getattr__(self, name: str) -> Any:
            from .spellings import hint

            if name in ("values", "indices"):
                from .reductions import part_of_extremes

                found = part_of_extremes(self, name)
                if found is not None:
                    return found
            raise AttributeError(f"Tensor object has no attribute {name!r}.{hint(name, dir(Tensor))}")

    # ---- what it is ---------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The extents of the axes."""
        return self._view.shape

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return self._memory.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._view.shape)

    @property
    def size(self) -> Size:
        """The number of elements. `x.size()` is the shape, and `x.size(0)` one extent of it."""
        return Size.of(self._view.shape)

    @property
    def strides(self) -> Shape:
        """How far the next element of each axis is in memory, counted in elements."""
        return self._view.strides

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to it.  Can be set for a tensor that was not computed from others that do."""
        return not self._detached and self._memory.differentiates

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        memory = self._memory
        if wanted and not self.dtype.is_floating:
            raise GradientError(f"{user_location()}: a tensor of type {self.dtype} has no gradient.")
        if memory.made_by is None or memory.made_by or self._detached:
            raise GradientError(f"{user_location()}: requires_grad of a computed tensor; use detach() or copy().")
        if memory.trace is not None and wanted:
            memory.trace.make_leaf(memory)
        memory.become_leaf(bool(wanted))

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed from tensors that require gradients."""
        return self._detached or self._memory.is_leaf or not self._memory.differentiates

    @property
    def grad(self) -> Tensor | None:
        """The gradient of a leaf, in which backward passes add up; None of a tensor that is none."""
        memory = self._memory
        if not memory.is_leaf or self._detached:
            return None
        return tensor_of(memory.gradient(), self._view)

    @grad.setter
    def grad(self, gradient: Any) -> None:
        found = self.grad
        if found is None:
            raise GradientError(f"{user_location()}: only a leaf with requires_grad=True has a gradient.")
        found[...] = 0.0 if gradient is None else gradient

    def zero_grad(self) -> None:
        """Set the gradient to 0.0."""
        self.grad = None

    # ---- autograd -----------------------------------------------------------------------------------

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add the derivatives of this one number to `grad` of every leaf that it depends on.

        Args:
            gradient: of a tensor of several elements: what is differentiated is `(self * gradient).sum()`.
            retain_graph: whether backward() can go through the same operations again.
            create_graph: must not be true: gradients that depend on tensors are what `mgjit.grad` returns.

        Raises:
            GradientError: nothing requires gradients, the graph has been used or changed, or this is not one number.
            ShapeError: the gradient has another shape.
        """
        backward(self, gradient, retain_graph, create_graph)

    def detach(self) -> Tensor:
        """The same elements, through which no gradient flows."""
        return tensor_of(self._memory, self._view, True)

    def copy(self) -> Tensor:
        """A copy with memory of its own; gradients flow through it (`clone` in PyTorch)."""
        return elementwise("copy", COPY, (self,), self.dtype)

    clone = copy

    def astype(self, dtype: Any) -> Tensor:
        """See `mgjit.tensor.astype`."""
        from .elementwise import astype

        return astype(self, dtype)

    # ---- views --------------------------------------------------------------------------------------

    def _part(self, view: View) -> Tensor:
        return tensor_of(self._memory, view, self._detached)

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in row-major order in another shape; one extent may be -1.  A view where strides allow.

        Raises:
            ShapeError: the number of elements is another one.
        """
        given = shape[0] if len(shape) == 1 else shape
        view = reshaped(self._view, given)
        if view is None:
            made = self.copy()
            view = reshaped(made._view, given)
            assert view is not None
            return made._part(view)
        return self._part(view)

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """All axes from one on, up to and with another one, become one."""
        shape = self.shape
        first, last = (axis_from("flatten", axis, self.ndim) if shape else 0 for axis in (start, end))
        return self.reshape((*shape[:first], size_of(shape[first : last + 1]), *shape[last + 1 :]))

    def permute_dims(self, axes: Any) -> Tensor:
        """The axes in another order (`transpose` in NumPy, `permute` in PyTorch).

        Raises:
            ShapeError: not each axis is named once.
        """
        order = [axis_from("permute_dims", axis, self.ndim) for axis in axes]
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError(f"{user_location()}: permute_dims of shape {self.shape} needs each axis once, not {axes}.")
        view = self._view
        shape, strides = (tuple(one[k] for k in order) for one in (view.shape, view.strides))
        return self._part(View(view.offset, shape, strides))

    def swapaxes(self, first: int, second: int) -> Tensor:
        """Two axes exchanged (`transpose` in PyTorch)."""
        order = list(range(self.ndim))
        a, b = (axis_from("swapaxes", axis, self.ndim) for axis in (first, second))
        order[a], order[b] = b, a
        return self.permute_dims(order)

    def moveaxis(self, source: int, target: int) -> Tensor:
        """One axis moved to another place."""
        a, b = (axis_from("moveaxis", axis, self.ndim) for axis in (source, target))
        order = [k for k in range(self.ndim) if k != a]
        order.insert(b, a)
        return self.permute_dims(order)

    @property
    def mT(self) -> Tensor:
        """The matrices transposed: the last two axes exchanged."""
        if self.ndim < 2:
            raise ShapeError(f"{user_location()}: mT of shape {self.shape}: a matrix has at least two axes.")
        return self.swapaxes(-1, -2)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return self.permute_dims(range(self.ndim - 1, -1, -1))

    def expand_dims(self, axis: int) -> Tensor:
        """One more axis, of length 1 (`unsqueeze` in PyTorch)."""
        place = axis_from("expand_dims", axis, self.ndim + 1)
        view = self._view
        shape = (*view.shape[:place], 1, *view.shape[place:])
        return self._part(View(view.offset, shape, (*view.strides[:place], 0, *view.strides[place:])))

    def squeeze(self, axis: Any = None) -> Tensor:
        """Without axes of length 1: those named, or all.

        Raises:
            ShapeError: an axis that is named is longer.
        """
        view = self._view
        axes = axes_from("squeeze", axis, self.ndim)
        if axis is None:
            axes = tuple(k for k in axes if view.shape[k] == 1)
        if any(view.shape[k] != 1 for k in axes):
            raise ShapeError(f"{user_location()}: squeeze of shape {view.shape}: axis {axis} is not of length 1.")
        shape, strides = (tuple(x for k, x in enumerate(one) if k not in axes) for one in (view.shape, view.strides))
        return self._part(View(view.offset, shape, strides))

    def broadcast_to(self, shape: Any) -> Tensor:
        """Repeated along axes of length 1, and along new ones in front, without a copy; -1 leaves an extent as it is.

        Raises:
            ShapeError: the shapes do not go together.
        """
        given = shape if isinstance(shape, (tuple, list)) else (shape,)
        missing = len(given) - self.ndim
        own = (self.shape[k - missing] if extent == -1 and k >= missing else extent for k, extent in enumerate(given))
        wanted = shape_from(tuple(own), "broadcast_to")
        if broadcast("broadcast_to", self.shape, wanted) != wanted:
            raise ShapeError(f"{user_location()}: broadcast_to of shape {self.shape} to {wanted}.")
        return self._part(View(self._view.offset, wanted, broadcast_strides(self._view, wanted)))

    def flip(self, axis: Any = None) -> Tensor:
        """In reverse order along axes."""
        view = self._view
        offset, strides = view.offset, list(view.strides)
        for k in axes_from("flip", axis, self.ndim):
            offset += max(view.shape[k] - 1, 0) * strides[k]
            strides[k] = -strides[k]
        return self._part(View(offset, view.shape, tuple(strides)))

    def unfold(self, axis: int, size: int, step: int = 1) -> Tensor:
        """Windows of `size` elements along an axis, `step` apart, as a new last axis, without a copy.

        Raises:
            ShapeError: no window fits.
        """
        k, view = axis_from("unfold", axis, self.ndim), self._view
        if not 0 < size <= view.shape[k] or step < 1:
            raise ShapeError(
                f"{user_location()}: unfold of shape {view.shape}: windows of {size}, {step} apart, along axis {axis}."
            )
        count = (view.shape[k] - size) // step + 1
        shape = (*view.shape[:k], count, *view.shape[k + 1 :], size)
        strides = (*view.strides[:k], view.strides[k] * step, *view.strides[k + 1 :], view.strides[k])
        return self._part(View(view.offset, shape, strides))

    # ---- indexing -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        """A view for ints, slices, None and ...; a copy for tensors and lists of ints or bools (indexing.py)."""
        from .indexing import has_arrays, selection

        index = _without_tensors(index)
        if has_arrays(index):
            return selection(self, index).read(self)
        view, chosen = indexed(self._view, index)
        part = self._part(view)
        if not chosen:
            return part
        from .joining import take

        for axis, which in reversed(chosen):
            part = take(part, which, axis=axis)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign to elements, chosen as by reading: a tensor, which is broadcast, or a number.

        Raises:
            GradientError: gradients flow through this tensor, or would have to flow from the value.
        """
        from .indexing import assign, has_arrays

        index = _without_tensors(index)
        view, chosen = (self._view, [index]) if has_arrays(index) else indexed(self._view, index)
        if isinstance(value, Tensor) and value._memory is self._memory and value._view == view and not chosen:
            return  # as after `x[0] += y`
        if not chosen:
            self._assign(view, value)
            return
        value = self._require_assignable(value)
        if isinstance(value, Tensor) and value._memory is self._memory:
            value = value.detach().copy()  # as if all were read first
        assign(self, index, value)

    def _assign(self, view: View, value: Any) -> None:
        value = self._require_assignable(value)
        if isinstance(value, Tensor) and value._memory is self._memory and value._view != view:
            value = value.detach().copy()  # as if all were read first
        copy_into(self._memory, view, value, "assignment")

    def _require_assignable(self, value: Any) -> Any:
        """What is assigned, a tensor or a number, if it may be.

        Raises:
            GradientError, ArgumentError: it may not.
        """
        memory = self._memory
        if memory.made_by is None or memory.made_by or (memory.is_leaf and gradients_are_on() and not self._detached):
            raise GradientError(
                f"{user_location()}: an assignment to elements of a tensor that gradients flow through. Assign to a "
                "parameter inside of `with mgjit.no_grad():`; build other tensors with where, concat or stack."
            )
        if not (isinstance(value, Tensor) or is_number(value)):
            from .creation import asarray

            value = asarray(value, dtype=self.dtype)
        if isinstance(value, Tensor):
            if value.requires_grad and gradients_are_on():
                raise GradientError(
                    f"{user_location()}: the value that is assigned requires a gradient, which would be lost. Build "
                    "the tensor with where, concat or stack, or assign value.detach()."
                )
            if dtypes.common("assignment", (self.dtype, value.dtype)) != self.dtype:
                raise ArgumentError(
                    f"{user_location()}: {value.dtype} assigned to elements of type {self.dtype}: write astype()."
                )
        elif dtypes.common("assignment", (self.dtype,), (kind := number_type(value),)) != self.dtype:
            raise ArgumentError(f"{user_location()}: a {kind.__name__} assigned to elements of type {self.dtype}.")
        return value

    def __iter__(self) -> Iterator[Tensor]:
        return (self[k] for k in range(len(self)))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError(f"{user_location()}: a tensor of shape () has no length.")
        return self.shape[0]


def _without_tensors(index: Any) -> Any:
    """An index, in which tensors of one whole number that are known now are ints."""
    if isinstance(index, Tensor) and not index.shape and index._memory.trace is None and recording() is None:
        return int(index)
    return tuple(map(_without_tensors, index)) if isinstance(index, tuple) else index


def require(x: Any, name: str) -> Tensor:
    """`x`, if it is a tensor, or a tensor of the numbers of a numpy array, whose floats are those of the step.

    Raises:
        ArgumentError: it is none.
    """
    if isinstance(x, Tensor):
        return x
    from .creation import of_numpy
    from .spellings import array_of

    made = of_numpy(x)
    if made is None:
        whole = array_of(x) or "x"
        raise ArgumentError(
            f"{user_location()}: {name} needs a tensor, not the {described(x)}: mgjit.tensor.asarray({whole}) makes "
            "one."
        )
    return made


def add_methods(functions: dict[str, Any]) -> None:
    """Functions whose first operand is a tensor become methods of the same names."""
    for name, function in functions.items():
        setattr(Tensor, name, function)
