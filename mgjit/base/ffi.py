"""Calling C: a small interface over ctypes (CPython) and cffi's backend (PyPy).

Every entry point of a generated library has the signature `int name(void *const *m)`, so this module needs
one function type and one kind of argument, with one exception at the end:

1. `load(path)` opens a shared object once;
2. `PointerBlock(n)` allocates the argument, an array of n pointers, once;
3. `block.set(i, buffer)` stores the address of a buffer and keeps the buffer alive;
4. `library.function(name)(block)` calls; `library.bind(name, block)()` is the same with less overhead per call.

Measured on one machine, in nanoseconds, on CPython 3.9 / 3.11 / 3.13 / PyPy 3.9: a bound call 96 / 94 / 142
/ 9, `set` of bytes 196 / 115 / 109 / 7 (on PyPy 40 for bytes not seen before), of an `array.array` 184 / 95 /
127 / 7, of a numpy array 409 / 309 / 317, of a read-only view or numpy array 800 to 1700.  PyPy's ctypes and
CPython's cffi are slower, which is why there are two.  On PyPy the backend module is used directly, because
`cffi.FFI().cdef(...)` spends 75 ms on importing and running a C parser for one constant signature.

`library.caller(name, ...)` is for the few functions that take their inputs as arguments (codegen/entries.py), on
CPython only: an argument costs 20 to 35 ns, a double as result 15, and a call that keeps the GIL 20 less.

Other C calls release the GIL on both interpreters.  A block therefore belongs to one thread at a time, and a
buffer must not be resized by another thread during a call.
"""

from __future__ import annotations

import functools
import os
import sys
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mgjit.base import scratch, settings
from mgjit.errors import ArgumentError, CompilerError

PYPY = sys.implementation.name == "pypy"

if PYPY and not TYPE_CHECKING:
    import _cffi_backend as _cffi
else:
    import ctypes

    _address = ctypes.addressof
    _writable = ctypes.c_char.from_buffer
    _PyBuffer = ctypes.c_void_p * 16  # a Py_buffer is 10 or 11 words long, and starts with the address
    # Indexing, unlike attribute access, makes new function objects, which nobody else can configure.
    _export = ctypes.pythonapi["PyObject_GetBuffer"]
    _export.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _release = ctypes.pythonapi["PyBuffer_Release"]
    _release.argtypes, _release.restype = (ctypes.c_void_p,), None

_LIBM = ("libm.so.6", "libm.so")


class PointerBlock:
    """An array of `count` pointers, the only argument of a C entry point."""

    __slots__ = ("_addresses", "_kept", "_texts", "pointer")

    def __init__(self, count: int) -> None:
        length = max(count, 1)
        self._addresses = (ctypes.c_void_p * length)()
        # The same memory seen as `char *`: assigning bytes there is the only documented way to get the address of a
        # bytes object without a copy in less than a microsecond.
        self._texts = (ctypes.c_char_p * length).from_buffer(self._addresses)
        self._kept: list[Any] = [None] * length
        self.pointer: Any = ctypes.byref(self._addresses)

    def __len__(self) -> int:
        return len(self._kept)

    def set(self, index: int, buffer: Any) -> None:
        """Point entry `index` at the first byte of `buffer`, which stays alive until the entry changes."""
        kind = type(buffer)
        if kind is bytes:
            self._texts[index] = buffer
        elif kind is array:
            self._addresses[index] = buffer.buffer_info()[0]
        else:
            self._addresses[index] = address_of(buffer)
        self._kept[index] = buffer

    def set_block(self, index: int, block: PointerBlock) -> None:
        """Point entry `index` at the first entry of another block, which stays alive as well."""
        self._addresses[index] = block.location()
        self._kept[index] = block

    def set_function(self, index: int, library: Library, name: str) -> None:
        """Point entry `index` at a C function, whose library stays open as well."""
        self._addresses[index] = ctypes.cast(library._entry(name), ctypes.c_void_p).value
        self._kept[index] = library

    def address(self, index: int) -> int:
        """The address stored in entry `index`; 0 for none."""
        return self._addresses[index] or 0

    def location(self) -> int:
        """The address of the block itself."""
        return _address(self._addresses)


class Library:
    """An open shared object; its functions keep it open."""

    def __init__(self, path: str, handle: Any) -> None:
        self.path = path
        self._handle = handle

    def _entry(self, name: str) -> Any:
        """The raw foreign function; it accepts the `pointer` of a block."""
        try:
            return self._handle[name]
        except AttributeError as reason:
            raise CompilerError(f"{self.path} has no function {name!r}: {reason}") from None

    def function(self, name: str) -> Callable[[PointerBlock], int]:
        """The C function `int name(void *const *m)` as a Python function of a block."""
        entry = self._entry(name)

        def call(block: PointerBlock) -> int:
            result: int = entry(block.pointer)
            return result

        call.__name__ = name
        call.library = self  # type: ignore[attr-defined]  # PyPy closes a library that nothing refers to
        return call

    def bind(self, name: str, block: PointerBlock) -> Callable[[], int]:
        """`function(name)` for one block: no Python frame a call."""
        bound = functools.partial(self._entry(name), block.pointer)
        bound.owners = (self, block)  # type: ignore[attr-defined]  # what the call reads must outlive it
        return bound

    def caller(self, name: str, holds_gil: bool) -> Callable[..., float] | None:
        """The C function `double name(...)` of pointers, each bytes or None; None on PyPy, which calls `bind` as fast.

        Other Python threads wait if it holds the GIL.
        """
        opened = ctypes.PyDLL(self.path, handle=self._handle._handle) if holds_gil else self._handle
        entry: Any = opened[name]
        entry.restype = ctypes.c_double
        entry.library = self  # the library must outlive the function
        call: Callable[..., float] = entry
        return call


def address_of(buffer: Any) -> int:
    """The address of the first byte of anything with a contiguous buffer, writable or not.

    The caller keeps the object alive, and does not resize it, for as long as it uses the address.  PyPy moves
    immutable objects and passes copies of them: there, only `PointerBlock.set` is right for those.
    """
    if type(buffer) is not memoryview or not buffer.readonly:
        try:
            return _address(_writable(buffer))
        except (TypeError, ValueError, BufferError):  # read-only, empty, or no buffer at all
            pass
    return _address_of_readonly(buffer)


def _address_of_readonly(buffer: Any) -> int:
    """CPython's general way: export the buffer, read its address, release it."""
    view = _PyBuffer()
    reference = ctypes.byref(view)
    try:
        _export(buffer, reference, 0)
    except (TypeError, ValueError, BufferError) as reason:
        raise _not_a_buffer(buffer, reason) from None
    address: int | None = view[0]
    _release(reference)
    return address or 0


def _not_a_buffer(buffer: Any, reason: Exception) -> ArgumentError:
    return ArgumentError(
        f"an object of type {type(buffer).__name__} has no contiguous memory to pass to C: {reason}. "
        "Pass bytes, bytearray, array.array, a contiguous memoryview or a C-contiguous numpy array."
    )


def _open(path: str) -> Any:
    return ctypes.CDLL(path)


def _open_globally(name: str) -> Any:
    return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)


if PYPY and not TYPE_CHECKING:
    _char_pointer = _cffi.new_pointer_type(_cffi.new_primitive_type("char"))
    _char_array = _cffi.new_array_type(_char_pointer, None)
    _pointer_array = _cffi.new_array_type(_cffi.new_pointer_type(_char_pointer), None)
    _function = _cffi.new_function_type(
        (_cffi.new_pointer_type(_char_pointer),), _cffi.new_primitive_type("int"), False
    )
    _size = _cffi.new_primitive_type("uintptr_t")

    def _view(buffer):
        """A cdata that points at the buffer and keeps it alive (cffi itself ignores strides)."""
        if type(buffer) is memoryview and not buffer.c_contiguous:
            raise _not_a_buffer(buffer, BufferError("the memoryview is not contiguous"))
        try:
            return _cffi.from_buffer(_char_array, buffer)
        except (TypeError, ValueError, BufferError) as reason:
            raise _not_a_buffer(buffer, reason) from None

    class PointerBlock:  # the same class for the other interpreter
        """An array of `count` pointers, the only argument of a C entry point."""

        __slots__ = ("_kept", "pointer")

        def __init__(self, count):
            self.pointer = _cffi.newp(_pointer_array, max(count, 1))
            self._kept = [None] * max(count, 1)

        def __len__(self):
            return len(self._kept)

        def set(self, index, buffer):
            """Point entry `index` at the first byte of `buffer`, and keep that alive."""
            self._kept[index] = self.pointer[index] = _view(buffer)

        def set_block(self, index, block):
            """Point entry `index` at the first entry of another block, which stays alive as well."""
            self.pointer[index] = _cffi.cast(_char_pointer, block.pointer)
            self._kept[index] = block

        def set_function(self, index, library, name):
            """Point entry `index` at a C function, whose library stays open as well."""
            self.pointer[index] = _cffi.cast(_char_pointer, library._entry(name))
            self._kept[index] = library

        def address(self, index):
            """The address stored in entry `index`; 0 for none."""
            return int(_cffi.cast(_size, self.pointer[index]))

    class _Handle:
        """A library of cffi that is indexed like one of ctypes."""

        def __init__(self, path, flags):
            self.library = _cffi.load_library(path, flags)

        def __getitem__(self, name):
            try:
                return self.library.load_function(_function, name)
            except KeyError as reason:
                raise AttributeError(str(reason)) from None

    def _no_caller(self, name, holds_gil):
        return None

    Library.caller = _no_caller

    def address_of(buffer):
        """The address of the first byte of anything with a contiguous buffer, writable or not."""
        return int(_cffi.cast(_size, _view(buffer)))

    def _open(path):
        return _Handle(path, _cffi.RTLD_NOW)

    def _open_globally(name):
        return _Handle(name, _cffi.RTLD_NOW | _cffi.RTLD_GLOBAL)


@functools.cache
def _share_libm() -> tuple[Any, ...]:
    """Make libm visible to libraries that were not linked with it."""
    found = []
    for name in _LIBM:
        try:
            found.append(_open_globally(name))
        except OSError:
            continue
    return tuple(found)


def load(path: str | os.PathLike[str]) -> Library:
    """Open a shared object.  Raises a CompilerError with the loader's message if that fails."""
    name = os.path.abspath(os.fspath(path))
    try:
        return Library(name, _open(name))
    except OSError as reason:
        # Without C development files, a library is linked with nothing, and finds `exp` in the process, unless the
        # interpreter keeps its own copy of libm private.
        if "undefined symbol" not in str(reason) and "symbol not found" not in str(reason):
            raise CompilerError(f"the compiled library {name} does not load: {reason}") from None
    _share_libm()
    try:
        return Library(name, _open(name))
    except OSError as reason:
        raise CompilerError(f"the compiled library {name} does not load: {reason}") from None


def load_bytes(binary: bytes) -> Library:
    """Open a shared object from bytes, through a private file that is removed before this returns."""
    reasons: list[str] = []
    for place in settings.scratch_directories():
        try:
            with scratch.directory(place) as directory:
                path = os.path.join(directory, "step.so")
                with open(path, "wb") as file:
                    file.write(binary)
                return load(path)
        except (OSError, CompilerError) as reason:
            reasons.append(str(reason))
    raise CompilerError("; ".join(reasons) or "there is no directory for temporary files")
