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
from types import MemberDescriptorType
from typing import Any, Callable

from ..errors import ArgumentError, user_location


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
        cls = live_class(type(self.owner), self.live)
        return [*made, functools.partial(object.__setattr__, self.owner, "__class__", cls)]


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
        return id(thing if self.is_slot else thing.__dict__), self.name

    def move(self, thing: Any, home: Home) -> functools.partial[Any]:
        """A call of a C function that puts a home into the field."""
        if self.is_slot:
            return functools.partial(self.write, thing, home)
        return functools.partial(thing.__dict__.__setitem__, self.name, home)


def field_of(cls: type, name: str) -> Field:
    """The field `name` of a class: a slot, or an entry of each object's `__dict__`."""
    member = slot(cls, name)
    if member is not None:
        return Field(name, member.__get__, member.__set__, is_slot=True)

    def read(thing: Any) -> Any:
        return thing.__dict__[name]

    def write(thing: Any, content: Any) -> None:
        thing.__dict__[name] = content

    return Field(name, read, write, is_slot=False)


def slot(cls: type, name: str) -> Any:
    """The descriptor of a slot of a class; None if there is no such slot."""
    for base in cls.__mro__:
        member = base.__dict__.get(name)
        if isinstance(member, MemberDescriptorType):
            return member
    return None


_classes: dict[tuple[type, tuple[str, ...]], type] = {}


def live_class(cls: type, names: tuple[str, ...]) -> type:
    """The subclass of `cls` for objects whose fields `names` have homes."""
    original = getattr(cls, "_mgjit_original", cls)
    names = tuple(sorted({*names, *getattr(cls, "_mgjit_fields", ())}))
    made = _classes.get((original, names))
    if made is None:
        members: dict[str, Any] = {name: _property(field_of(original, name)) for name in names}
        members.update(
            __slots__=(),
            __module__=original.__module__,
            __qualname__=original.__qualname__,
            __doc__=original.__doc__,
            __reduce_ex__=_reduce,
            _mgjit_original=original,
            _mgjit_fields=names,
        )
        made = _classes[original, names] = type(original)(original.__name__, (original,), members)
    return made


def _property(field: Field) -> property:
    read, write, name = field.read, field.write, field.name

    def get(self: Any) -> Any:
        try:
            raw = read(self)
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
            raise ArgumentError(
                f"{user_location()}: {type(self).__name__}.{name} lives in the memory of a compiled step and holds a "
                f"number, not {type(number).__name__} {number!r:.40}. Assign a number, such as 0.0."
            ) from None

    return property(get, set_)


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
