"""How every type is taken apart: what an object holds, how that is copied, and how it is put back.

1. `shape_of(kind)` chooses by the type: containers of Python, bags of attributes, functions, descriptors, what refers
   to one other object, and, for everything else, whatever `gc.get_referents` sees.
2. A shape gives the contents of an object, each with its place (places.py); a copy of them that can be compared by
   identity; and, where the object can be changed, what puts that copy back.
3. An object may have two: a list of a class of its own has elements and attributes.

What nothing can look into (on CPython the buffers of C libraries; on PyPy more) holds no object either.
"""

from __future__ import annotations

import functools
import gc
import io
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import chain
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    TracebackType,
)
from typing import Any, NamedTuple, TypeVar, cast

from ...base.lookup import entries
from ...engine.state import State
from ...engine.value import Value
from ...memory.live import Field, field_of, has_dict, raw_attributes
from ...nn.module import Module
from ...tensor.tensor import Tensor
from .ownership import is_of_user
from .places import Element, Entry, Place, Root, Variable

#: What leads nowhere.
_ATOMS = frozenset({
    float, int, bool, str, bytes, complex, type(None), range, slice, type(Ellipsis), type(NotImplemented), CodeType,
    FrameType, TracebackType, MemberDescriptorType, GetSetDescriptorType,
})  # fmt: skip
MISSING: Any = object()
#: The flag of classes that are made by a class statement, or look like it.

Contents = Iterable[tuple[Place, Any]]


Function = TypeVar("Function", bound=Callable[..., Any])


def for_each_class(function: Function) -> Function:
    """A function of a class that is asked once for each."""
    return cast(Function, functools.lru_cache(maxsize=8192)(function))


class Shape(NamedTuple):
    """One way to take objects apart.

    Attributes:
        contents: what an object that lies at a place holds, with the place of each part.
        copy: the contents, to be compared by identity; a list or dict.
        restore: puts a copy back; None where nothing can be assigned.
    """

    contents: Callable[[Any, Place], Contents]
    copy: Callable[[Any], Any]
    restore: Callable[[Any, Any], None] | None = None


@for_each_class
def leads_nowhere(kind: Any) -> bool:
    """Whether objects of a type hold no object that matters to a step.  The engine keeps account of its own."""
    if kind in _ATOMS or issubclass(kind, (State, Tensor)):
        return True
    if issubclass(kind, Value):
        return not _has_own_attributes(kind)
    return issubclass(kind, (float, int, str, bytes, complex)) and not has_dict(kind)


def _has_own_attributes(kind: type) -> bool:
    """Whether a class derived from Value has attributes besides those of the engine."""
    before = kind.__mro__[: kind.__mro__.index(Value)]
    return any("__dict__" in vars(base) or vars(base).get("__slots__") for base in before)


@for_each_class
def shape_of(kind: Any) -> Shape | None:
    """How the parts of a container, or of something that refers to others, are found; None for a bag of attributes."""
    for known, shape in _BY_TYPE.items():
        if kind is known:
            return shape
    for known, shape in _BY_BASE.items():
        if issubclass(kind, known):
            return shape
    if _is_array_of_objects(kind):
        return _ARRAY
    return None if _is_plain_class(kind) or issubclass(kind, _BAGS) else OPAQUE


#: Classes of Python's own whose objects hold attributes and nothing else.
_BAGS = (SimpleNamespace, threading.local)


def _is_plain_class(kind: type) -> bool:
    """Whether a class and its bases are made by class statements, so that attributes are all that there is."""
    return all(base is object or is_of_user(base) or issubclass(base, (Value, Module)) for base in kind.__mro__)


def is_bag(kind: type) -> bool:
    """Whether objects of a type have attributes of their own, in a dict or in slots."""
    return has_dict(kind) or bool(slots_of(kind))


@for_each_class
def slots_of(kind: Any) -> tuple[Field, ...]:
    """The slots of the objects of a class, except those of the engine."""
    found = {
        name: field_of(kind, name)
        for base in reversed(kind.__mro__)
        if base is not Value and "__slots__" in vars(base)
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }
    return tuple(found.values())


def is_buffer(thing: Any) -> bool:
    """Whether something is a block of numbers."""
    if isinstance(thing, (array, bytearray, memoryview)):
        return True
    return type(thing).__module__ == "numpy" and type(thing).__name__ == "ndarray"


def is_stream(thing: Any) -> bool:
    """Whether something is a file in memory."""
    return isinstance(thing, (io.StringIO, io.BytesIO))


def buffer_bytes(thing: Any) -> bytes:
    """What a block of numbers holds, or a file in memory with its position; of one that is closed, nothing."""
    if is_stream(thing):
        if thing.closed:
            return b""
        base = _stream_class(thing)
        held = base.getvalue(thing)
        text = held if isinstance(held, bytes) else held.encode("utf-8", "surrogatepass")
        return bytes(base.tell(thing).to_bytes(_POSITION, "little") + text)
    return memoryview(thing).tobytes() if getattr(getattr(thing, "dtype", None), "kind", "") != "O" else b""


def put_back_buffer(thing: Any, before: bytes) -> None:
    """Let a block of numbers or a file in memory hold what it held; what has grown is cut."""
    if is_stream(thing):
        _put_back_stream(thing, before)
    elif isinstance(thing, (array, bytearray)) and len(memoryview(thing).tobytes()) != len(before):
        del thing[:]
        (thing.frombytes if isinstance(thing, array) else thing.extend)(before)
    elif isinstance(thing, (array, bytearray, memoryview)):
        memoryview(thing).cast("B")[:] = before
    else:
        make: Any = type(thing)
        thing[...] = make(thing.shape, thing.dtype, before)


#: Bytes in front of what a file in memory holds, for the position in it.
_POSITION = 8


def _stream_class(thing: Any) -> Any:
    """The class whose methods read and write a file in memory, whatever a derived one makes of them."""
    return io.StringIO if isinstance(thing, io.StringIO) else io.BytesIO


def _put_back_stream(thing: Any, before: bytes) -> None:
    if thing.closed or not before:
        return
    base: Any = _stream_class(thing)
    text, position = before[_POSITION:], int.from_bytes(before[:_POSITION], "little")
    # Not by `write`, which translates the ends of lines once more.
    if isinstance(thing, io.StringIO):
        newline = base.__getstate__(thing)[1]
        base.__setstate__(thing, (text.decode("utf-8", "surrogatepass"), newline, position, None))
    else:
        base.__setstate__(thing, (text, position, None))


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes that an object has by itself, in its dict and its slots, past any property."""
    found = dict(raw_attributes(thing) or {})
    for slot in slots_of(type(thing)):
        content = content_of(slot, thing)
        if content is not MISSING:
            found[slot.name] = content
    return found


def content_of(field: Field, thing: Any) -> Any:
    """What a field of an object holds; MISSING when there is nothing."""
    try:
        return field.read(thing)
    except (AttributeError, KeyError):
        return MISSING


def contents_of(field: Field, things: Sequence[Any]) -> list[Any]:
    """The same of many objects of one class, at the speed of C where all of them have it."""
    try:
        return list(field.read_all(things))
    except (AttributeError, KeyError):
        return [content_of(field, thing) for thing in things]


def is_same(now: Any, before: Any) -> bool:
    """Whether two copies hold the same objects, in the same order."""
    if type(before) is dict:
        return len(now) == len(before) and all(map(is_, now, before)) and all(map(is_, now.values(), before.values()))
    return len(now) == len(before) and all(map(is_, now, before))


def cell_content(cell: CellType) -> Any:
    """What a variable of an enclosing function holds; MISSING when it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


# ---- containers -------------------------------------------------------------------------------------------------


def _elements(thing: Any, place: Place) -> Contents:
    parts = list(_library_class(type(thing)).__iter__(thing))
    if all(map(leads_nowhere, set(map(type, parts)))):
        return ()
    return [(Element(place, thing, index), part) for index, part in enumerate(parts)]


def _members(thing: Any, place: Place) -> Contents:
    parts = list(_library_class(type(thing)).__iter__(thing))
    return [(Root(part, f"an element of {place.describe()}"), part) for part in parts]


def _entries(thing: Any, place: Place) -> Contents:
    return chain.from_iterable(
        ((Root(key, "a key"), key), (Entry(thing, key, "", place), part)) for key, part in _copy_entries(thing).items()
    )


def _copy_entries(thing: Any) -> dict[Any, Any]:
    kind = _library_class(type(thing))
    return dict(kind.items(thing))


@for_each_class
def _library_class(kind: Any) -> Any:
    """The nearest class of Python's own: the methods of a derived class of the user's may do anything."""
    return next(base for base in kind.__mro__ if not is_of_user(base))


def _put_back_elements(thing: Any, copied: Any) -> None:
    list.__setitem__(thing, slice(None), copied)


def _put_back_deque(thing: Any, copied: Any) -> None:
    deque.clear(thing)
    deque.extend(thing, copied)


def _put_back_members(thing: Any, copied: Any) -> None:
    set.clear(thing)
    set.update(thing, copied)


def _put_back_entries(thing: Any, copied: Any) -> None:
    kind = _library_class(type(thing))
    if list(kind.keys(thing)) != list(copied):  # the order, too
        kind.clear(thing)
    for name, content in copied.items():
        kind.__setitem__(thing, name, content)


# ---- what refers to others ----------------------------------------------------------------------------------------


def _referents(thing: Any, place: Place) -> Contents:
    return [(Root(part, f"something in {place.describe()}"), part) for part in _seen_by_collector(thing)]


def _seen_by_collector(thing: Any) -> list[Any]:
    own = raw_attributes(thing)
    return [part for part in gc.get_referents(thing) if part is not own and not isinstance(part, (type, ModuleType))]


def _of_method(thing: Any, place: Place) -> Contents:
    yield Root(thing.__self__, "self"), thing.__self__
    function = getattr(thing, "__func__", None)
    if function is not None:
        yield Root(function, "a method"), function


def _of_partial(thing: Any, place: Place) -> Contents:
    parts = (thing.func, *thing.args, thing.keywords)
    yield from ((Root(part, "an argument"), part) for part in parts)


def _of_descriptor(thing: Any, place: Place) -> Contents:
    for name in ("fget", "fset", "fdel", "__func__", "func"):
        part = getattr(thing, name, None)
        if part is not None:
            yield Root(part, place.describe()), part


def _of_cell(thing: Any, place: Place) -> Contents:
    content = cell_content(thing)
    return () if content is MISSING else [(Variable(thing, "of an enclosing function"), content)]


def _set_cell(thing: Any, copied: Any) -> None:
    if copied:
        thing.cell_contents = copied[0]


def _of_context(thing: Any, place: Place) -> Contents:
    content = thing.get(MISSING)
    return () if content is MISSING else [(Root(content, f"the context variable {thing.name}"), content)]


def _set_context(thing: Any, copied: Any) -> None:
    if copied:
        thing.set(copied[0])


def _target(thing: Any) -> Any:
    """What a weak reference or proxy refers to; MISSING when that is gone."""
    if isinstance(thing, weakref.ref):
        found = thing()
        return MISSING if found is None else found
    try:
        return thing.__init__.__self__  # the method is the target's
    except (ReferenceError, AttributeError):
        return MISSING


def _of_reference(thing: Any, place: Place) -> Contents:
    target = _target(thing)
    return () if target is MISSING else [(Root(target, f"what {place.describe()} refers to"), target)]


def _of_array(thing: Any, place: Place) -> Contents:
    if thing.dtype.kind != "O":
        return ()
    return [(Root(part, f"an element of {place.describe()}"), part) for part in thing.flat]


def _put_back_array(thing: Any, copied: Any) -> None:
    if copied:
        thing.flat[:] = copied if len(copied) != 1 else copied[0]


def _copy_array(thing: Any) -> list[Any]:
    return list(thing.flat) if thing.dtype.kind == "O" else []


def _is_array_of_objects(kind: Any) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "ndarray" for base in kind.__mro__[:-1])


def _nothing(thing: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    return iter(())


#: What stands for the object it refers to.
PROXIES = (weakref.ProxyType, weakref.CallableProxyType)
#: What refers to an object without keeping it.
REFERENCES = (weakref.ref, *PROXIES)


def is_iterator(kind: type) -> bool:
    """Whether objects of a class are iterators whose state is out of sight."""
    is_one = any("__next__" in entries(base) for base in kind.__mro__)
    return is_one and not is_of_user(kind) and not issubclass(kind, (*PROXIES, list))


_REFERENCE = Shape(_of_reference, lambda thing: [_target(thing)])
_ARRAY = Shape(_of_array, _copy_array, _put_back_array)
OPAQUE = Shape(_referents, _seen_by_collector)
_METHOD = Shape(_of_method, lambda thing: [thing.__self__])
_DESCRIPTOR = Shape(_of_descriptor, lambda thing: [])
_BY_TYPE: dict[type, Shape] = {
    list: Shape(_elements, list, _put_back_elements),
    tuple: Shape(_elements, lambda thing: []),
    dict: Shape(_entries, dict, _put_back_entries),
    MethodType: _METHOD,
    BuiltinFunctionType: _METHOD,
    type([].__len__): _METHOD,
    functools.partial: Shape(_of_partial, lambda thing: []),
    CellType: Shape(_of_cell, lambda thing: [c for c in [cell_content(thing)] if c is not MISSING], _set_cell),
    property: _DESCRIPTOR,
    staticmethod: _DESCRIPTOR,
    classmethod: _DESCRIPTOR,
    functools.cached_property: _DESCRIPTOR,
    MappingProxyType: Shape(_entries, _copy_entries),
    weakref.ProxyType: _REFERENCE,
    weakref.CallableProxyType: _REFERENCE,
}
_BY_BASE: dict[type, Shape] = {
    list: Shape(_elements, lambda thing: list(list.__iter__(thing)), _put_back_elements),
    tuple: Shape(_elements, lambda thing: []),
    dict: Shape(_entries, _copy_entries, _put_back_entries),
    set: Shape(_members, lambda thing: list(set.__iter__(thing)), _put_back_members),
    frozenset: Shape(_members, lambda thing: []),
    deque: Shape(_elements, lambda thing: list(deque.__iter__(thing)), _put_back_deque),
    ContextVar: Shape(_of_context, lambda thing: [c for c in [thing.get(MISSING)] if c is not MISSING], _set_context),
    weakref.ref: _REFERENCE,
    FunctionType: Shape(_nothing, lambda thing: []),
}
