"""Fields of the user's objects whose numbers live in a kernel's memory.

An object such as a parameter of a user's own `Value` class keeps its identity and its attributes.  Once a kernel works
on its numbers, they are in the kernel's arrays:

1. In place of the number, the object holds a `Home`: an array and an index.
2. The object's class becomes a subclass of its own class (same name, same layout), whose properties read and write
   through the homes.  So Python and the kernel always see the same number, and nothing is copied.
3. Memory has no types. Where plain Python leaves numpy's float64, a home knows it from a number that was moved there or
   assigned by code that is not compiled, and code that is not compiled reads it so.
4. What the program assigns that is no number is held by the home in place of it (`Instead`). Before a kernel needs its
   memory, None in place of a gradient becomes 0.0; while anything else is held, steps are plain (`require_numbers`).
5. A copy or a pickle of such an object is an ordinary object of the user's class again, with its own numbers.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Callable
from weakref import WeakSet

from ..base.lookup import derived_unnoticed
from ..engine.kinds import is_float64
from ..engine.leaks import PlainCall, is_traced
from ..engine.numeric import counts_as_number
from ..engine.precision import FLOAT64
from ..engine.progress import NO_THREAD, tracing_threads
from ..errors import described

#: Where attributes that have been asked for as a dict are read more slowly than those of a dict made by itself.
_IS_SLOW_WITH_DICTS = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 13)
#: To a dict of one object alone: that of the object, of a variable, and of a call.
_REFERENCES = 3


class Instead:
    """What is no number, and was assigned in place of one.

    Attributes:
        content: the object. where: the class and attribute. kind: of the home before.
        is_gradient: whether it is None in place of a gradient that a backward pass adds to: for it that is 0.0.
    """

    __slots__ = ("content", "is_gradient", "kind", "where")

    def __init__(self, content: Any, owner: type, name: str, kind: Any) -> None:
        self.content, self.where, self.kind = content, f"{owner.__name__}.{name}", kind
        self.is_gradient = content is None and hasattr(owner, "backward")


class Home:
    """The place in a storage where the number of a field lives.

    Attributes:
        kind: numpy's float64, if plain Python leaves such a number there, as has been seen; an `Instead`; otherwise
            None.
        given: what the program itself has assigned since then that is none.
    """

    __slots__ = ("__weakref__", "array", "given", "index", "kind", "storage")

    def __init__(self, array: Any, index: int, storage: Any) -> None:
        self.array, self.index, self.storage = array, index, storage
        self.kind: Any = None
        self.given: Any = None

    @property
    def number(self) -> float:
        """The number."""
        return self.array[self.index]  # type: ignore[no-any-return]

    def read(self) -> Any:
        """The number, of the type that it has in plain Python."""
        if type(self.kind) is Instead:
            return self.kind.content
        number = self.array[self.index]
        return number if self.kind is None or self.given == number else self.kind(number)

    def put(self, content: Any, owner: type, name: str) -> None:
        """Let this be what the program has assigned to an attribute of an object of class `owner`."""
        if counts_as_number(type(content)):
            try:
                self.array[self.index] = content
            except (TypeError, ValueError, OverflowError):  # large ints, and what numpy has that is no number
                self._hold(content, owner, name)
            else:
                self.see(content)
        else:
            self._hold(content, owner, name)

    def _hold(self, content: Any, owner: type, name: str) -> None:
        kind = self.kind.kind if type(self.kind) is Instead else self.kind
        self.array[self.index] = 0.0
        self.kind = Instead(content, owner, name, kind)
        _without_number.add(self)
        tracing_threads[NO_THREAD] = FLOAT64  # of no meaning here

    def has_number(self) -> bool:
        """Whether there is a number: None is 0.0 for a backward pass, if this is the place of a gradient."""
        held: Any = self.kind
        if type(held) is Instead:
            if not held.is_gradient or self.array is not self.storage.grad:
                return False
            self.kind = held.kind
        _without_number.discard(self)
        return True

    def see(self, number: Any) -> None:
        """Note the type of a number that plain Python leaves here."""
        if type(self.kind) is Instead:
            self.kind = self.kind.kind
        if is_float64(type(number)):
            self.kind, self.given = type(number), None
        elif self.kind is not None:
            self.given = number


#: The homes that hold something else, and perhaps some that did.
_without_number: WeakSet[Home] = WeakSet()


def holds_others() -> bool:
    """Whether something else than a number may be in place of one that lives in a kernel's memory."""
    return bool(_without_number)


def require_numbers() -> None:
    """Return if there are numbers in the memory of kernels, as these need it.

    Raises:
        PlainCall: the call runs as plain Python, because there is something else in place of a number.
    """
    others = [home for home in list(_without_number) if not home.has_number()]
    if others:
        found = others[0].kind
        raise PlainCall(
            f"{found.where} is {described(found.content)}, where a kernel has a number. Put a number there before the "
            "next call"
        )


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


def dicts_of(things: Sequence[Any]) -> list[Any]:
    """The same of objects of one class, at the speed of C where all of them have one."""
    kind: Any = type(things[0])
    reader = _dict_reader(kind)
    try:
        return list(map(reader, things)) if reader is not None else [None] * len(things)
    except (AttributeError, TypeError):
        return list(map(raw_attributes, things))


def keep_quick(things: Sequence[Any]) -> None:
    """Let objects of one class be as quick to read as before anybody has asked for their dicts.

    CPython 3.11 and 3.12 keep attributes outside of a dict until then, and afterwards read them more slowly than from a
    dict that was made by itself: a copy of it takes its place, unless the program holds it.
    """
    member = _dict_member(type(things[0])) if _IS_SLOW_WITH_DICTS and things else None
    if not isinstance(member, GetSetDescriptorType):  # that of a class in C, such as SimpleNamespace, cannot be written
        return
    for thing in things:
        own = raw_attributes(thing)
        # One that shares its keys with others has another size than a copy.
        if type(own) is dict and own.__sizeof__() != dict(own).__sizeof__() and sys.getrefcount(own) == _REFERENCES:
            # By one call into C: no other thread puts anything into the dict between the copy and its use.
            deque(map(member.__set__, (thing,), map(dict, (own,))), maxlen=0)


def has_dict(cls: type) -> bool:
    """Whether objects of a class have a dict of their own."""
    return _dict_reader(cls) is not None


@functools.lru_cache(maxsize=4096)
def _dict_reader(cls: Any) -> Callable[[Any], Any] | None:
    if issubclass(cls, threading.local):  # whose dict is another one in each thread
        return operator.attrgetter("__dict__")
    member = _dict_member(cls)
    return None if member is None else member.__get__


def _dict_member(cls: Any) -> Any:
    """The descriptor that reads and writes the dict of objects of a class; None if they have none."""
    members = (base.__dict__.get("__dict__") for base in cls.__mro__)
    kinds = (GetSetDescriptorType, MemberDescriptorType)
    return next((member for member in members if isinstance(member, kinds)), None)


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
                field.write(self, content.read())
        set_class(self, cls)

    return property(lambda self: original, set_)


def _property(cls: type, field: Field) -> property:
    read, write, name = field.read, field.write, field.name
    entries = _dict_reader(cls) or vars

    def get_slot(self: Any) -> Any:
        raw = read(self)
        return raw if type(raw) is not Home else raw.array[raw.index] if raw.kind is None else raw.read()

    def get_entry(self: Any) -> Any:  # without a call of `read`, which is written in Python
        try:
            raw = entries(self)[name]
        except KeyError:
            raise AttributeError(name) from None
        return raw if type(raw) is not Home else raw.array[raw.index] if raw.kind is None else raw.read()

    def set_(self: Any, number: Any) -> None:
        try:
            raw = read(self)
        except (KeyError, AttributeError):
            raw = None
        if type(raw) is not Home:
            write(self, number)
            return
        if type(number) is float and raw.kind is None:
            raw.array[raw.index] = number
        elif is_traced(number):  # others of these objects have no such number
            raise PlainCall(f"only some objects have {type(self).__name__}.{name}")
        else:
            raw.put(number, cls, name)

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
        return {name: part.read() if type(part) is Home else part for name, part in state.items()}
    return state
