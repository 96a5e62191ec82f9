"""Buffers inside a trace, and the elements of them that the step has assigned.

1. A buffer of one dimension is a `TracedArray` of numbers, one of more dimensions a `TracedArray` of rows.  It reads as
   the buffer does: `x[i]`, `x[i, j]`, `x[:, 0]`, `x[1:3]`, `len(x)`, `x.shape`, `x.tolist()`.
2. An assignment stores the number that the buffer would hold: a float in a buffer of floats, an int in one of ints.
   Each dimension is a separate list, so rows are views, as in numpy.
3. `Elements.assigned` compares with the original elements.  The numbers assigned are outputs of the kernel, and are
   written into the caller's buffer after each call (call/written.py).
4. Whatever else buffers do, such as rounding to float32, wrapping at 8 bits, growing, or assignments to memory that a
   slice also views, is left to Python: the call runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ...engine.leaks import PlainCall, is_traced_number
from ...engine.numeric import is_number, plain_number
from ...errors import TraceError, user_location
from ...tensor.tensor import Tensor
from .numpy_numbers import of_numpy

#: Struct codes of elements that hold every float, or every int, that a compiled step can compute.
_EXACT_FLOATS, _EXACT_INTEGERS = frozenset("d"), frozenset("q")
#: Ints beyond are not what a kernel computes with.
_MOST = 2**53
_NAMES = {"numpy": "a numpy array", "array": "an array.array"}


class Elements:
    """The elements of one buffer of the arguments, for one trace.

    Args:
        path: of the argument.
        type: of the buffer.
        kind: "numpy", "memoryview", "array", "bytearray" or "bytes".
        format: struct code of the elements, with "q" for all signed ones of 64 bits.
    """

    def __init__(self, path: str, type: type, kind: str, format: str) -> None:
        self.path, self.type, self.kind, self.format = path, type, kind, format
        self.root: Any = None
        self._initial: list[Any] = []
        self._has_views = False

    def hold(self, root: Any) -> Any:
        """Remember the buffer's elements before the step; returns it."""
        self.root = root
        self._initial = list(_numbers(root))
        return root

    def assigned(self) -> list[tuple[int, Any]]:
        """The elements that the step has assigned: position in the flat buffer, and the number."""
        pairs = enumerate(zip(_numbers(self.root), self._initial))
        return [(k, now) for k, (now, before) in pairs if now is not before]

    def plain(self, what: str) -> NoReturn:
        """Have the call run as plain Python.

        Raises:
            PlainCall: always.
        """
        name = _NAMES.get(self.kind, f"a {self.kind}")
        raise PlainCall(f"{user_location()}: the step {what} of argument {self.path}, {name}")

    def sliced(self, elements: Sequence[Any]) -> TracedArray:
        """The result of a slice: a view of the same memory, or a copy."""
        if elements and isinstance(elements[0], TracedArray):  # rows are views themselves
            return TracedArray(elements, self)
        made = Elements(self.path, self.type, self.kind, self.format)
        if self.kind in ("numpy", "memoryview"):
            made._has_views = self._has_views = True
        return TracedArray(elements, made)

    def converted(self, content: Any) -> Any:
        """The number that an element holds after `content` was assigned to it."""
        if self._has_views:
            self.plain("assigns an element where a slice is another view")
        if self.format in _EXACT_FLOATS:
            if is_traced_number(content):
                return content._as_numpys() if self.kind == "numpy" else content._as_float()
            if is_number(content) or isinstance(content, bool):
                try:
                    number = float(plain_number(content))
                    return of_numpy("float64")(number) if self.kind == "numpy" else number
                except OverflowError:
                    self.plain("assigns an int beyond all floats to an element")
        elif self.format in _EXACT_INTEGERS:
            if is_traced_number(content) and content.__class__ in (int, bool):
                return content._as_integer()  # type: ignore[attr-defined]
            if isinstance(content, int) and abs(content) <= _MOST:
                return int(content)
        return self.plain(f"assigns type {_name_of_type(content)} to an element (format {self.format!r})")


class TracedArray:
    """A buffer, or one row of it, inside a trace."""

    __slots__ = ("_elements", "_parts")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, parts: Sequence[Any], elements: Elements) -> None:
        self._parts, self._elements = list(parts), elements

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what type() and isinstance() say of it
        return self._elements.type

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __repr__(self) -> str:
        return repr(self._parts)  # traced numbers are shown in messages only

    def __bool__(self) -> bool:
        return bool(self._refuse() if self.is_of_numpy else self._parts)

    @property
    def is_of_numpy(self) -> bool:
        """Whether it stands for an array of numpy."""
        return self._elements.kind == "numpy"

    @property
    def format(self) -> str:
        """The struct code of the elements."""
        return self._elements.format

    @property
    def flat(self) -> Iterator[Any]:
        """The elements, in row-major order."""
        return _numbers(self)

    # ---- reading ------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._elements.sliced(self._parts[index])
        if isinstance(index, tuple):
            return self._at(index)
        return self._parts[index]

    def _at(self, index: tuple[Any, ...]) -> Any:
        if not index:
            return self
        head, *rest = index
        if isinstance(head, slice):
            return self._elements.sliced([part._at(tuple(rest)) if rest else part for part in self[head]])
        if head is None or head is Ellipsis or isinstance(head, (list, tuple)):
            self._elements.plain(f"indexes with {type(head).__name__}")
        part = self._parts[head]
        return part._at(tuple(rest)) if rest else part

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array that was passed."""
        inner = self._parts[0].shape if self._parts and isinstance(self._parts[0], TracedArray) else ()
        return (len(self._parts), *inner)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def tolist(self) -> list[Any]:
        """As nested lists."""
        return [part.tolist() if isinstance(part, TracedArray) else part for part in self._parts]

    def refuse_to_return(self) -> NoReturn:
        """A slice is an array of numpy, or whatever the buffer makes of it.

        Raises:
            PlainCall: always.
        """
        self._elements.plain("returns a slice")

    # ---- assigning ----------------------------------------------------------------------------------

    def __setitem__(self, index: Any, content: Any) -> None:
        if isinstance(index, tuple) and index:
            target = self._at(index[:-1])
            if not isinstance(target, TracedArray) or any(not hasattr(part, "__index__") for part in index):
                self._elements.plain("assigns to a part")
            target[index[-1]] = content
            return
        if isinstance(index, slice):
            self._assign_all(range(len(self))[index], content)
            return
        part = self._parts[index]
        if isinstance(part, TracedArray):
            part._assign_all(range(len(part)), content)
        else:
            self._parts[index] = self._elements.converted(content)

    def _assign_all(self, positions: Sequence[int], content: Any) -> None:
        """Elements or rows at certain positions, as numpy does: what has fewer dimensions goes to each of them."""
        if self._elements.kind != "numpy" and not isinstance(content, TracedArray):
            self._elements.plain("assigns to a slice")
        shape = _shape(content)
        target = (len(positions), *self.shape[1:])
        if shape != target[len(target) - len(shape) :]:
            self._elements.plain("assigns something of another shape to a part")
        copy = _copied(content)  # as it is before the first assignment
        for k, position in enumerate(positions):
            self[position] = copy[k] if len(shape) == len(target) else copy

    # ---- what only Python does ------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse()

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._elements.plain("makes a numpy array")

    def _refuse(self, other: Any = None) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented  # which makes a tensor of it
        if self._elements.kind == "numpy":
            raise PlainCall(
                f"{user_location()}: it computes with a whole array, argument {self._elements.path}. mgjit compiles "
                "what is computed with single elements: [2 * x for x in row]; or pass a tensor, mgjit.tensor.asarray("
                f"{self._elements.path})"
            )
        raise TraceError(
            f"{user_location()}: arithmetic on a whole array is not traced. Loop over its elements: "
            "[2 * x for x in row]."
        )

    def _change(self, *_: Any, **__: Any) -> Any:
        if self._elements.kind == "numpy":
            return self._refuse()
        return self._elements.plain("changes the length")

    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __abs__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __iadd__ = __imul__ = __delitem__ = _change
    append = extend = insert = pop = remove = clear = sort = reverse = _change


def _numbers(root: Any) -> Iterator[Any]:
    for part in root:
        if isinstance(part, TracedArray):
            yield from _numbers(part)
        else:
            yield part


def _shape(content: Any) -> tuple[Any, ...]:
    """The shape of regularly nested lists and tuples; for irregular ones, something that no array's shape equals."""
    if not isinstance(content, (list, tuple, TracedArray)):
        return ()
    shapes = set(map(_shape, content))
    return (len(content), *shapes.pop()) if len(shapes) == 1 else (None,)


def _copied(content: Any) -> Any:
    return list(map(_copied, content)) if isinstance(content, (list, tuple, TracedArray)) else content


def _name_of_type(content: Any) -> str:
    if is_traced_number(content):
        return str(content.__class__.__name__)
    return type(content).__name__
