"""What of a tensor leaves it: Python numbers, lists, NumPy arrays, text, pickles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ArgumentError, ShapeError, TraceError, is_describing, user_location
from . import dtypes
from .apply import recording
from .shapes import row_major, size_of

if TYPE_CHECKING:
    from .tensor import Tensor


class Conversions:
    """The methods of `Tensor` that take elements out of it."""

    __slots__ = ()

    def item(self: Any) -> Any:
        """The only element as a Python number; inside a step, a number of the step.

        Raises:
            ShapeError: there are more or none.
        """
        if self.size != 1:
            raise ShapeError(f"{user_location()}: item() of shape {self.shape}: a tensor of one element is needed.")
        taking = recording()
        if taking is not None:
            return taking.number(self)
        return self.tolist_flat()[0]

    def tolist_flat(self: Any) -> list[Any]:
        """The elements in row-major order, as Python numbers."""
        self._require_elements("list of its elements")
        view = self._view
        places = [view.offset]
        for extent, stride in zip(view.shape, view.strides):
            places = [place + k * stride for place in places for k in range(extent)]
        data = self._memory.data
        found = [data[place] for place in places]
        return list(map(bool, found)) if self.dtype is dtypes.bool_ else found

    def tolist(self: Any) -> Any:
        """The elements as nested lists of Python numbers; of a tensor without axes, the number."""
        flat: Any = self.tolist_flat()
        for k in range(self.ndim - 1, 0, -1):
            extent = self.shape[k]
            flat = [flat[row * extent : (row + 1) * extent] for row in range(size_of(self.shape[:k]))]
        return flat if self.shape else flat[0]

    def __float__(self: Any) -> float:
        return float(self._known("float()"))

    def __int__(self: Any) -> int:
        return int(self._known("int()"))

    def __index__(self: Any) -> int:
        if self.dtype is not dtypes.int64:
            raise ArgumentError(f"{user_location()}: an index is an int, not a tensor of type {self.dtype}.")
        return int(self._known("an index"))

    def __bool__(self: Any) -> bool:
        return bool(self._known("bool()"))

    def _known(self: Any, what: str) -> Any:
        if recording() is not None:
            _refuse(what)
        return self.item()

    def _require_elements(self: Any, what: str) -> None:
        """Also of a tensor from outside: what is taken from it while a step is traced would be the same ever after."""
        if self._memory.data is None or (recording() is not None and not is_describing()):
            _refuse(what)

    def numpy(self: Any) -> Any:
        """The elements as a NumPy array over the same memory."""
        import numpy

        self._require_elements("NumPy array")
        self._memory.is_exported = True
        kind = numpy.dtype(self.dtype.name)
        view = self._view
        whole = numpy.frombuffer(self._memory.data, dtype=kind) if self._memory.size else numpy.zeros(0, kind)
        steps = [stride * kind.itemsize for stride in view.strides]
        return numpy.lib.stride_tricks.as_strided(whole[view.offset :], view.shape, steps)

    def __buffer__(self: Any, flags: int) -> Any:
        """The elements as a buffer, from Python 3.12 on: over the same memory where they lie one after the other."""
        self._require_elements("buffer")
        view = self._view
        laid = self if view.strides == row_major(view.shape) else self.detach().copy()
        first = laid._view.offset
        laid._memory.is_exported = True
        flat = laid._memory.data[first : first + laid.size].cast("B").cast(self.dtype.format)
        return flat.cast("B").cast(self.dtype.format, view.shape) if view.shape and self.size else flat

    def __array__(self: Any, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        return found.copy() if copy else found if dtype is None else found.astype(dtype)

    def __format__(self: Any, form: str) -> str:
        """As text; with a form such as `.4f`, of a tensor of one element, that of its number."""
        return format(self._known("text"), form) if form else str(self)

    def __repr__(self: Any) -> str:
        if recording() is not None and not is_describing():
            _refuse("text")
        if self._memory.data is None:
            return f"<a tensor of shape {self.shape} and type {self.dtype} in a step that is being traced>"
        shown = f"{self.tolist()}" if self.size <= 1000 else f"<{self.size} elements>"
        more = "" if self.dtype is dtypes.float64 else f", dtype='{self.dtype}'"
        return f"tensor({shown}{more}{', requires_grad=True' if self.requires_grad else ''})"

    def __reduce__(self: Any) -> Any:
        from .creation import restored

        return restored, (self.tolist_flat(), self.shape, self.dtype, self.requires_grad and self.is_leaf)

    def __copy__(self: Any) -> Tensor:
        function, arguments = self.__reduce__()
        return function(*arguments)  # type: ignore[no-any-return]

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Tensor:
        return self.__copy__()  # type: ignore[no-any-return]


def _refuse(what: str) -> NoReturn:
    raise TraceError(
        f"{user_location()}: {what} of a tensor inside a compiled step, where its numbers are not known yet. Return "
        "the tensor and look at it outside; in place of `if`, write mgjit.tensor.where(condition, x, y)."
    )
