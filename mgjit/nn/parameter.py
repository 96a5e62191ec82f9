"""Tensors that belong to a module: those that are trained, and those that are only kept."""

from __future__ import annotations

from typing import Any

from ..tensor.creation import from_flat
from ..tensor.tensor import Tensor


class Parameter(Tensor):
    """A tensor that is trained: an attribute of a module that `Module.parameters()` finds.

    Args:
        data: a tensor, or anything that `mgjit.tensor.asarray` takes; it is copied.
        requires_grad: False for one that is not trained for now.
        dtype: see `mgjit.tensor.asarray`.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True, *, dtype: Any = None) -> None:
        super().__init__(data.detach() if isinstance(data, Tensor) else data, dtype, requires_grad)

    def __reduce__(self: Any) -> Any:
        return _restored, (type(self), self.tolist_flat(), self.shape, self.dtype, self.requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that a module keeps and does not train, such as a running mean; it is part of `state_dict()`.

    Args:
        data: a tensor, or anything that `mgjit.tensor.asarray` takes; it is copied.
        dtype: see `mgjit.tensor.asarray`.
    """

    __slots__ = ()

    def __init__(self, data: Any, *, dtype: Any = None) -> None:
        super().__init__(data.detach() if isinstance(data, Tensor) else data, dtype)

    def __reduce__(self: Any) -> Any:
        return _restored, (type(self), self.tolist_flat(), self.shape, self.dtype, False)


def _restored(kind: type[Tensor], flat: list[Any], shape: tuple[int, ...], dtype: Any, requires_grad: bool) -> Tensor:
    """A copy, for pickles."""
    made = object.__new__(kind)
    whole = from_flat(flat, shape, dtype)
    made._memory, made._view, made._detached = whole._memory, whole._view, False
    made.requires_grad = requires_grad
    return made
