"""Fields of the user's objects whose numbers live in a kernel's memory.

An object such as a parameter of a user's own `Value` class keeps its identity and its attributes.  Once a kernel works
on its numbers, they are in the kernel's arrays:

1. In place of the number, the object holds a `Home`: an array and an index.
2. The object's class becomes a subclass of its own class (same name, same layout), whose properties read and write
   through the homes.  So Python and the kernel always see the same number, and nothing is copied.
3. A copy or a pickle of such an object is an ordinary object of the user's class again, with its own numbers.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Callable

from ..errors import ArgumentError, user_location
from ..lookup import derived_unnoticed
from ..record.leaks import PlainCall, is_traced


class Home:
    """The place in a storage where the number of a field lives."""

    __slots__ = ("array", "index", "storage")

    def __init__(self, array: Any, index: int, storage: Any) -> None:
        self.array, self.index, self.storage = array, index, storage

    @property
    def number(self) -> float:
        """The number."""
        return self.array[self.index]  # type: ignore[no-any-return]


class Parameter:
    """One or two fields of an object, such as data and gradient, that are to live in a kernel's memory.

    Attributes:
        live: the names of all fields of the object that live there.
    """

    __slots__ = ("_leaf", "fields", "live", "owner")

    def __init__(self, owner: Any, fields: tuple[Field, ...], leaf: int, live: tuple[str, ...]) -> None:
        self.owner, self.fields, self._leaf, self.live = owner, fields, leaf, live

    def has_moved(self) -> bool:
        """Whether the numbers already live in some kernel's memory."""
        return any(type(field.read(self.owner)) is Home for field in self.fields)

    def home(self) -> tuple[Any, int]:
        """The storage that all of the numbers live in, and where; None and 0 if there is none."""
        homes = [field.read(self.owner) for field in self.fields]
        if any(type(home) is not Home for home in homes):
            return None, 0
        places = {(id(home.storage), home.index) for home in homes}
        return (homes[0].storage, homes[0].index) if len(places) == 1 else (None, 0)

    def copy(self, storage: Any, place: int) -> None:
        """Copy the numbers to `data` and `grad` of a storage."""
        for field, array in zip(self.fields, (storage.data, storage.grad)):
            number = field.read(self.owner)
            if number is not None:
                array[place] = number

    def moves(self, storage: Any, place: int) -> list[functools.partial[Any]]:
        """The calls that move the fields there: calls of C functions, which can be repeated."""
        homes = [Home(array, place, storage) for array in (storage.data, storage.grad)]
        made = [field.move(self.owner, home) for field, home in zip(self.fields, homes)]
        cls: Any = live_class(type(self.owner), self.live)  # type: ignore[arg-type]
        return [*made, functools.partial(set_class, self.owner, cls)]


_deletions: list[str] = []


def deletions() -> int:
    """How many attributes have been deleted whose numbers lived in a kernel's memory."""
    return len(_deletions)


class Field:
    """How the objects of a class store an attribute, bypassing any property of that name.

    Attributes:
        is_slot: whether it is a slot, rather than an entry of the object's `__dict__`.
    """

    __slots__ = ("is_slot", "name", "read", "write")

    def __init__(self, name: str, read: Callable[[Any], Any], write: Callable[[Any, Any], None], is_slot: bool) -> None:
        self.name, self.read, self.write, self.is_slot = name, read, write, is_slot

    def key(self, thing: Any) -> tuple[int, str]:
        """Identity key of an object's field: the id of what holds it, and the name."""
        return id(thing if self.is_slot else raw_attributes(thing)), self.name

    def reader(self, kind: type) -> Callable[[Any], Any]:
        """`read` for objects of exactly this class, quicker where nothing of the class comes in between."""
        reading: Any = kind.__getattribute__
        is_plain = not self.is_slot and reading is object.__getattribute__ and not hasattr(kind, "__getattr__")
        if is_plain and not hasattr(kind, self.name):
            return operator.attrgetter(self.name)
        return self.read

    def read_all(self, things: Sequence[Any]) -> Iterator[Any]:
        """`read` for many objects of one class, one after the other, by calls of C functions only."""
        if self.is_slot or not things:
            return map(self.read, things)
        return map(operator.getitem, map(self._entries(things[0]), things), repeat(self.name))

    def write_all(self, things: Sequence[Any], contents: Iterable[Any]) -> Iterator[None]:
        """`write` for many objects of one class, in the same way: for whoever runs through it."""
        if self.is_slot or not things:
            return map(self.write, things, contents)
        return map(operator.setitem, map(self._entries(things[0]), things), repeat(self.name), contents)

    def _entries(self, thing: Any) -> Callable[[Any], Any]:
        cls: Any = type(thing)
        return _dict_reader(cls) or vars

    def delete(self, thing: Any) -> None:
        """Let an object have no such attribute; AttributeError or KeyError where it has none."""
        if type(self.read(thing)) is Home:
            _deletions.append(self.name)
        if self.is_slot:
            slot(type(thing), self.name).__delete__(thing)
        else:
            del raw_attributes(thing)[self.name]

    def move(self, thing: Any, home: Home) -> functools.partial[Any]:
        """A call of a C function that puts a home into the field."""
        if self.is_slot:
            return functools.partial(self.write, thing, home)
        return functools.partial(dict.__setitem__, raw_attributes(thing), self.name, home)


def field_of(cls: type, name: str) -> Field:
    """The field `name` of a class: a slot, or an entry of each object's `__dict__`."""
    member = slot(cls, name)
    if member is not None:
        return Field(name, member.__get__, member.__set__, is_slot=True)

    return entry_of(cls, name)


def entry_of(cls: type, name: str) -> Field:
    """The field that is an entry of the dict of each object of a class."""
    raw = _dict_reader(cls) or vars

    def read(thing: Any) -> Any:
        return raw(thing)[name]

    def write(thing: Any, content: Any) -> None:
        raw(thing)[name] = content

    return Field(name, read, write, is_slot=False)


def raw_attributes(thing: Any) -> Any:
    """The dict in which an object itself keeps its attributes, whatever its class answers; None where it has none."""
    cls: Any = type(thing)
    reader = _dict_reader(cls)
    try:
        return None if reader is None else reader(thing)
    except (AttributeError, TypeError):
        return None


def has_dict(cls: type) -> bool:
    """Whether objects of a class have a dict of their own."""
    return _dict_reader(cls) is not None


@functools.lru_cache(maxsize=4096)
def _dict_reader(cls: Any) -> Callable[[Any], Any] | None:
    if issubclass(cls, threading.local):  # whose dict is another one in each thread
        return operator.attrgetter("__dict__")
    for base in cls.__mro__:
        member = base.__dict__.get("__dict__")
        if isinstance(member, (GetSetDescriptorType, MemberDescriptorType)):
            return member.__get__
    return None


def slot(cls: type, name: str) -> Any:
    """The descriptor of a slot of a class; None if there is no such slot."""
    for base in cls.__mro__:
        member = base.__dict__.get(name)
        if isinstance(member, MemberDescriptorType):
            return member
    return None


def original_class(cls: type) -> type:
    """The user's class of objects that live in a kernel's memory, or that stand for one of several."""
    for base in cls.__mro__:
        if "_mgjit_original" in base.__dict__:
            return base.__dict__["_mgjit_original"]  # type: ignore[no-any-return]
    return cls


#: Gives an object another class, bypassing a property `__class__` of the class that it has.
set_class: Callable[[Any, type], None] = object.__dict__["__class__"].__set__

_classes: dict[tuple[type, tuple[str, ...]], type] = {}


@functools.lru_cache(maxsize=4096)
def live_class(cls: type, names: tuple[str, ...]) -> type:
    """The subclass of `cls` for objects whose fields `names` have homes."""
    original = original_class(cls)
    names = tuple(sorted({*names, *getattr(cls, "_mgjit_fields", ())}))
    made = _classes.get((original, names))
    if made is None:
        members: dict[str, Any] = {name: _property(original, field_of(original, name)) for name in names}
        members.update(
            __class__=_class_of(original, tuple(field_of(original, name) for name in names)),
            __module__=original.__module__,
            __qualname__=original.__qualname__,
            __doc__=original.__doc__,
            __reduce_ex__=_reduce,
            **({} if _dict_reader(original) is None else {"__dict__": _ATTRIBUTES}),
            _mgjit_original=original,
            _mgjit_fields=names,
        )
        made = _classes[original, names] = derived_unnoticed(original, members)
    return made


def _class_of(original: type, fields: tuple[Field, ...]) -> property:
    """`p.__class__` is the user's class, as `==` of dataclasses asks; only `type(p)` tells the difference."""

    def set_(self: Any, cls: type) -> None:
        for field in fields:
            content = field.read(self)
            if type(content) is Home:  # another class does not know them
                field.write(self, content.number)
        set_class(self, cls)

    return property(lambda self: original, set_)


def _property(cls: type, field: Field) -> property:
    read, write, name = field.read, field.write, field.name
    entries = _dict_reader(cls) or vars

    def get_slot(self: Any) -> Any:
        raw = read(self)
        return raw.array[raw.index] if type(raw) is Home else raw

    def get_entry(self: Any) -> Any:  # without a call of `read`, which is written in Python
        try:
            raw = entries(self)[name]
        except KeyError:
            raise AttributeError(name) from None
        return raw.array[raw.index] if type(raw) is Home else raw

    def set_(self: Any, number: Any) -> None:
        try:
            raw = read(self)
        except (KeyError, AttributeError):
            raw = None
        if type(raw) is not Home:
            write(self, number)
            return
        try:
            raw.array[raw.index] = number
        except TypeError:
            if is_traced(number):  # others of these objects have no such number
                raise PlainCall(f"only some objects have {type(self).__name__}.{name}") from None
            raise ArgumentError(
                f"{user_location()}: {type(self).__name__}.{name} lives in the memory of a compiled step and holds a "
                f"number, not {type(number).__name__} {number!r:.40}. Assign a number, such as 0.0."
            ) from None

    def delete(self: Any) -> None:
        try:
            field.delete(self)
        except KeyError:
            raise AttributeError(name) from None

    return property(get_slot if field.is_slot else get_entry, set_, delete)


class LiveAttributes(dict):  # type: ignore[type-arg]
    """What `vars(p)` is for an object with fields in a kernel's memory: its attributes, with numbers and not homes.

    It is made when it is asked for; what is assigned to it goes to the object.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        super().__init__(_with_numbers(raw_attributes(owner)))
        self._owner = owner

    def __setitem__(self, name: Any, content: Any) -> None:
        if name in type(self._owner)._mgjit_fields:
            setattr(self._owner, name, content)
        else:
            raw_attributes(self._owner)[name] = content
        super().__setitem__(name, content)

    def __delitem__(self, name: Any) -> None:
        super().__delitem__(name)
        entry_of(type(self._owner), name).delete(self._owner)

    def __ior__(self, others: Any) -> Any:  # type: ignore[misc]
        self.update(others)
        return self

    def update(self, *others: Any, **named: Any) -> None:
        """As of a dict."""
        for name, content in dict(*others, **named).items():
            self[name] = content

    def setdefault(self, name: Any, content: Any = None) -> Any:
        """As of a dict."""
        if name not in self:
            self[name] = content
        return self[name]

    def pop(self, name: Any, *default: Any) -> Any:
        """As of a dict."""
        if name in self:
            content = self[name]
            del self[name]
            return content
        return super().pop(name, *default)

    def popitem(self) -> Any:
        """As of a dict."""
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """As of a dict."""
        for name in list(self):
            del self[name]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def _replace_attributes(thing: Any, attributes: Any) -> None:
    """`p.__dict__ = attributes`"""
    present = LiveAttributes(thing)
    for name in present.keys() - attributes.keys():
        del present[name]
    present.update(attributes)


_ATTRIBUTES = property(LiveAttributes, _replace_attributes)


def _reduce(self: Any, protocol: Any) -> Any:
    """Copy or pickle as an object of the user's class, with numbers instead of homes."""
    original = type(self)._mgjit_original
    function, arguments, *rest = original.__reduce_ex__(self, protocol)
    arguments = tuple(original if argument is type(self) else argument for argument in arguments)
    if function is copyreg.__newobj__:  # type: ignore[attr-defined]  # pickle insists that it makes type(self)
        function = original.__new__
    if rest and rest[0] is not None:
        rest[0] = _with_numbers(rest[0])
    return (function, arguments, *rest)


def _with_numbers(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(map(_with_numbers, state))
    if isinstance(state, dict):
        return {name: part.number if type(part) is Home else part for name, part in state.items()}
    return state
