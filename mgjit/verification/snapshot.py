"""Snapshots of everything with numbers that a step can reach, which can be read and restored.

This walk is deliberately not the survey from which traces and guards are made, since it has to notice what that one
overlooks.  It takes things apart in its own way, and follows what a program can reach, not what its code names:

1. Start at the step and at the arguments of the call.
2. Everything that can change becomes a *holder*: a list, a dict, the attributes or slots of an object, a variable, a
   buffer, the memory of a kernel, a generator of random numbers.
3. `read` returns the contents of all holders.  `restore` puts contents back; it may be repeated at any time.

Libraries, and mgjit itself, are not entered: what they keep for themselves is not part of the step.
"""

from __future__ import annotations

import functools
import random
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from ..draws.plan import restore_state, state_of
from ..engine.nn import Module
from ..engine.state import State
from ..engine.value import Value
from ..runtime.buffers import ParameterStorage
from ..runtime.live import Home
from ..world.code import codes
from ..world.ownership import is_module_of_user, is_of_user
from .detached import is_attached

#: Types that hold nothing else, and can be compared directly.
ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None)})
#: Stands for an entry that does not exist.
MISSING = object()
#: Classes of the standard library whose objects are plain collections of attributes.
_BAGS = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace"), ("_thread", "_local")})

#: The path to a thing: the path to where it was found, and its name there.
Path = tuple[Any, str]
Found = Iterator[tuple[Any, Any]]


class Holder:
    """Something that can change.

    Attributes:
        thing: the object. path: leads to it.
    """

    __slots__ = ("path", "thing")

    def __init__(self, thing: Any, path: Path) -> None:
        self.thing, self.path = thing, path

    def read(self) -> Any:
        """Its contents: a shallow copy."""
        raise NotImplementedError

    def write(self, contents: Any) -> None:
        """Restore contents that `read` has returned."""
        raise NotImplementedError

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        """The parts of contents, by name."""
        return contents  # type: ignore[no-any-return]

    def label(self, name: Any) -> str:
        """How an entry is written after the path."""
        return f"[{name!r}]"

    def describe(self, name: Any) -> str:
        """An entry, for messages."""
        return described((self.path, self.label(name)))


class Elements(Holder):
    """The elements of a list or deque."""

    __slots__ = ()

    def read(self) -> Any:
        return list(self.thing)

    def write(self, contents: Any) -> None:
        if len(self.thing) == len(contents) and all(map(_is, self.thing, contents)):
            return
        if isinstance(self.thing, list):
            self.thing[:] = contents
        else:
            self.thing.clear()
            self.thing.extend(contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(contents))


class Members(Holder):
    """The elements of a set, which are not compared."""

    __slots__ = ()

    def read(self) -> Any:
        return set(self.thing)

    def write(self, contents: Any) -> None:
        if self.thing != contents:
            self.thing.clear()
            self.thing.update(contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {}


class Entries(Holder):
    """The entries of a dict."""

    __slots__ = ()

    def read(self) -> Any:
        return dict(self.thing)

    def write(self, contents: Any) -> None:
        thing = self.thing
        methods: Any = OrderedDict if isinstance(thing, OrderedDict) else dict
        for name in [name for name in thing if name not in contents]:
            methods.__delitem__(thing, name)
        for name, content in contents.items():
            if name not in thing or thing[name] is not content:
                methods.__setitem__(thing, name, content)
        if list(thing) != list(contents):
            methods.clear(thing)
            methods.update(thing, contents)


class Attributes(Entries):
    """The attributes of an object that has a dict."""

    __slots__ = ()

    def label(self, name: Any) -> str:
        return f".{name}"


class Names(Holder):
    """Some of the variables of a module, or some attributes of a class."""

    __slots__ = ("_delete", "_namespace", "_write", "names")

    def __init__(self, thing: Any, path: Path, names: Iterable[str]) -> None:
        super().__init__(thing, path)
        self.names = list(names)
        if isinstance(thing, type):
            self._namespace: Any = vars(thing)
            self._write: Any = functools.partial(type.__setattr__, thing)
            self._delete: Any = functools.partial(type.__delattr__, thing)
        else:
            self._namespace, self._write, self._delete = thing, thing.__setitem__, thing.__delitem__

    def read(self) -> Any:
        return {name: self._namespace.get(name, MISSING) for name in self.names}

    def write(self, contents: Any) -> None:
        for name, content in contents.items():
            if self._namespace.get(name, MISSING) is content:
                continue
            if content is MISSING:
                self._delete(name)
            else:
                self._write(name, content)

    def label(self, name: Any) -> str:
        return f".{name}" if isinstance(self.thing, type) else str(name)


class Slots(Holder):
    """The slots of an object."""

    __slots__ = ("_members",)

    def __init__(self, thing: Any, path: Path, members: dict[str, Any]) -> None:
        super().__init__(thing, path)
        self._members = members

    def read(self) -> Any:
        return [_content(member, self.thing) for member in self._members.values()]

    def write(self, contents: Any) -> None:
        for member, content in zip(self._members.values(), contents):
            if _content(member, self.thing) is content:
                continue
            if content is MISSING:
                member.__delete__(self.thing)
            else:
                member.__set__(self.thing, content)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(zip(self._members, contents))

    def label(self, name: Any) -> str:
        return f".{name.lstrip('_') if isinstance(self.thing, Value) else name}"


class Variable(Holder):
    """A variable of an enclosing function."""

    __slots__ = ()

    def read(self) -> Any:
        try:
            return self.thing.cell_contents
        except ValueError:
            return MISSING

    def write(self, contents: Any) -> None:
        if contents is MISSING:
            del self.thing.cell_contents
        elif self.read() is not contents:
            self.thing.cell_contents = contents

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {"": contents}

    def label(self, name: Any) -> str:
        return ""


class Buffer(Holder):
    """An array, a bytearray, or whatever else has contiguous memory that can be written."""

    __slots__ = ("_format", "_view")

    def __init__(self, thing: Any, path: Path) -> None:
        super().__init__(thing, path)
        view = memoryview(thing)
        self._format, self._view = view.format, view.cast("B")

    def read(self) -> Any:
        return self._view.tobytes()

    def write(self, contents: Any) -> None:
        if self.read() != contents:
            self._view[:] = contents

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(memoryview(contents).cast(self._format)))  # type: ignore[call-overload]


class Storage(Holder):
    """The memory of parameters.

    Attributes:
        known: the positions of numbers that are visible to the user, with their paths; the others are padding.
    """

    __slots__ = ("known", "with_gradients")

    def __init__(self, thing: ParameterStorage, path: Path, with_gradients: bool) -> None:
        super().__init__(thing, path)
        self.known: dict[tuple[int, bool], Path] = {}
        self.with_gradients = with_gradients

    def read(self) -> Any:
        return self.thing.data.tobytes(), self.thing.grad.tobytes()

    def write(self, contents: Any) -> None:
        for memory, numbers in zip((self.thing.data, self.thing.grad), contents):
            if memory.tobytes() != numbers:
                memory.cast("B")[:] = numbers

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        code = self.thing.precision.format
        data, gradients = (memoryview(numbers).cast(code) for numbers in contents)
        return {
            (index, is_gradient): gradients[index] if is_gradient else data[index]
            for index, is_gradient in self.known
            if self.with_gradients or not is_gradient
        }

    def describe(self, name: Any) -> str:
        return described(self.known[name])


class Generator(Holder):
    """A generator of random numbers, compared by its state."""

    __slots__ = ()

    def read(self) -> Any:
        return state_of(self.thing)

    def write(self, contents: Any) -> None:
        restore_state(self.thing, contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {"the state of the generator": repr(contents)}

    def label(self, name: Any) -> str:
        return f": {name}"


class Copy(Holder):
    """A place from which a kernel copies numbers, and to which it copies them back; `thing` is the place."""

    __slots__ = ()

    def read(self) -> Any:
        content = self.thing.read()
        return content, list(content) if type(content) is list else [content]

    def write(self, contents: Any) -> None:
        content, numbers = contents
        if type(content) is list and not (len(content) == len(numbers) and all(map(_is, content, numbers))):
            content[:] = numbers
        if self.thing.read() is not content:
            self.thing.write(content)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(contents[1]))

    def describe(self, name: Any) -> str:
        return str(self.thing.describe())


class Snapshot:
    """The holders that a step can reach.

    Args:
        roots: the step and its arguments, with their names.
        with_gradients: whether gradients are to be compared.

    Attributes:
        holders: all holders. classes: the classes of the objects found. parameters: the objects whose numbers live in
            the memory of kernels.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]], with_gradients: bool = True) -> None:
        self.holders: list[Holder] = []
        self.classes: set[type] = set()
        self.parameters: list[Any] = []
        self._with_gradients = with_gradients
        self._storages: dict[int, Storage] = {}
        self._members: dict[type, dict[str, Any]] = {}
        self._are_of_user: dict[type, bool] = {}
        self._kept: list[Any] = []  # kept alive, so that no id is reused
        seen: set[int] = set()
        pending: list[tuple[Any, Path]] = [(thing, (None, name)) for name, thing in roots][::-1]
        while pending:
            thing, path = pending.pop()
            kind = type(thing)
            if kind in ATOMS or id(thing) in seen:
                continue
            seen.add(id(thing))
            self._kept.append(thing)
            inside = list(self._taken_apart(thing, kind, path))
            pending += [(part, (path, label)) for part, label in reversed(inside) if type(part) not in ATOMS]

    def add_memory(self, things: Iterable[Any]) -> None:
        """Add buffers and storages, which are restored, and compared as far as the walk has found them."""
        known = {id(holder.thing) for holder in self.holders}
        for thing in things:
            if id(thing) not in known:
                made = self._storage(thing, (None, "")) if isinstance(thing, ParameterStorage) else _Hidden(thing)
                if made not in self.holders:
                    self.holders.append(made)

    def add_places(self, places: Iterable[Any]) -> None:
        """Add places from which a kernel copies numbers, and to which it copies them back."""
        self.holders += [Copy(place, (None, "")) for place in places]

    def read(self) -> list[Any]:
        """Return the contents of all holders."""
        return [holder.read() for holder in self.holders]

    def restore(self, contents: list[Any]) -> None:
        """Restore the contents of all holders."""
        for holder, content in zip(self.holders, contents):
            holder.write(content)

    # ---- 2: taking things apart ---------------------------------------------------------------------

    def _taken_apart(self, thing: Any, kind: Any, path: Path) -> Found:
        """Make the holder of a thing; returns what is in it, with labels."""
        if kind is list or isinstance(thing, (list, deque)):
            yield from self._held(Elements(thing, path))
        elif isinstance(thing, (tuple, frozenset)):
            yield from ((part, f"[{k}]") for k, part in enumerate(thing))
        elif isinstance(thing, set):
            self.holders.append(Members(thing, path))
            yield from ((part, "{...}") for part in thing)
        elif isinstance(thing, dict):
            yield from self._held(Entries(thing, path))
            yield from ((key, "{key}") for key in thing)
        elif kind is CellType:
            yield from self._held(Variable(thing, path))
        elif isinstance(thing, FunctionType):
            yield from self._function(thing)
        elif isinstance(thing, MethodType):
            yield from ((thing.__self__, ""), (thing.__func__, ""))
        elif isinstance(thing, functools.partial):
            yield from ((thing.func, ""), (thing.args, ".args"), (thing.keywords, ".keywords"))
        elif isinstance(thing, (staticmethod, classmethod)):
            yield thing.__func__, ""
        elif isinstance(thing, property):
            yield from ((method, "") for method in (thing.fget, thing.fset) if method is not None)
        elif isinstance(thing, random.Random):
            if not isinstance(thing, random.SystemRandom):
                self.holders.append(Generator(thing, path))
        elif isinstance(getattr(thing, "__self__", None), random.Random):  # one of its methods that are written in C
            yield thing.__self__, ""
        elif isinstance(thing, type):
            yield from self._class(thing, path)
        elif isinstance(thing, State):
            self._buffer(thing._buffer, path)
        elif _is_buffer(thing):
            self._buffer(thing, path)
        elif not isinstance(thing, ModuleType):
            yield from self._object(thing, kind, path)
        if isinstance(thing, (list, dict, tuple, set, frozenset)) and kind.__module__ != "builtins":
            yield from self._object(thing, kind, path)  # it may also have attributes

    def _held(self, holder: Holder) -> Found:
        self.holders.append(holder)
        if isinstance(holder, Elements) and ATOMS.issuperset(map(type, holder.thing)):
            return iter(())  # long lists of numbers
        contents = holder.entries(holder.read())
        return ((part, holder.label(name)) for name, part in contents.items())

    def _function(self, function: FunctionType) -> Found:
        code = getattr(function, "__code__", None)
        if not hasattr(code, "co_names") or (function.__module__ or "").partition(".")[0] == "mgjit":
            return
        if hasattr(function, "__wrapped__"):
            yield function.__wrapped__, ""
        if not is_of_user(function):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            yield cell, f"the variable {name}"
        named = {name for inner in codes(function.__code__) for name in inner.co_names}
        namespace = function.__globals__
        yield from self._variables(namespace, named, "the variable ")
        for name in sorted(named & namespace.keys()):
            if isinstance(namespace[name], ModuleType) and is_module_of_user(namespace[name]):
                yield from self._variables(vars(namespace[name]), named, f"{name}.")
        yield from ((part, "a default") for part in function.__defaults__ or ())
        yield from ((part, f"the default of {name}") for name, part in (function.__kwdefaults__ or {}).items())
        if function.__dict__:
            yield from self._held(Attributes(function.__dict__, (None, function.__name__)))

    def _variables(self, namespace: dict[str, Any], named: set[str], prefix: str) -> Found:
        names = sorted(name for name in named & namespace.keys() if not isinstance(namespace[name], ModuleType))
        if names:
            yield from self._held(Names(namespace, (None, prefix), names))

    def _class(self, cls: type, path: Path) -> Found:
        original = getattr(cls, "_mgjit_original", cls)
        for base in original.__mro__:
            if self._is_of_user(base):
                self.classes.add(base)
                members = {name: part for name, part in vars(base).items() if not _is_special(name, part)}
                yield from self._held(Names(base, (None, base.__name__), members))

    def _object(self, thing: Any, kind: type, path: Path) -> Found:
        if hasattr(thing, "_kernels") and hasattr(thing, "_function"):  # a compiled step that this one calls
            yield thing._function, ""
            return
        is_value = isinstance(thing, Value)
        if not is_value and not self._is_of_user(kind) and not isinstance(thing, Module):
            if (kind.__module__, kind.__name__) in _BAGS:
                yield from self._held(Attributes(vars(thing), path))
            return
        yield kind, ""
        if is_attached(thing):
            self.parameters.append(thing)
        if is_value and thing._is_bound:
            storage = self._storage(thing._storage, path)
            storage.known[thing._index, False] = (path, ".data")
            storage.known[thing._index, True] = (path, ".grad")
        own = getattr(thing, "__dict__", None)
        if own:
            yield from self._found_in_object(Attributes(own, path), path)
        members = self._slots(kind)
        if members:
            yield from self._found_in_object(Slots(thing, path, members), path)

    def _found_in_object(self, holder: Holder, path: Path) -> Found:
        for content, label in self._held(holder):
            if type(content) is Home:
                storage = self._storage(content.storage, path)
                storage.known[content.index, content.array is content.storage.grad] = (path, label)
            else:
                yield content, label

    def _slots(self, kind: type) -> dict[str, Any]:
        """The slots of the objects of a class; for Values, those of their numbers."""
        known = self._members.get(kind)
        if known is None:
            known = {
                name: member
                for base in reversed(kind.__mro__)
                for name, member in vars(base).items()
                if isinstance(member, MemberDescriptorType) and (base is not Value or name in ("_data", "_grad"))
            }
            if issubclass(kind, Value) and kind._is_bound:
                known = {name: member for name, member in known.items() if name not in ("_data", "_grad")}
            elif issubclass(kind, Value) and not self._with_gradients:
                known.pop("_grad", None)
            self._members[kind] = known
        return known

    def _storage(self, storage: ParameterStorage, path: Path) -> Storage:
        known = self._storages.get(id(storage))
        if known is None:
            known = self._storages[id(storage)] = Storage(storage, path, self._with_gradients)
            self.holders.append(known)
        return known

    def _buffer(self, thing: Any, path: Path) -> None:
        try:
            if not memoryview(thing).readonly:
                self.holders.append(Buffer(thing, path))
        except (TypeError, ValueError, BufferError):  # of objects, or not contiguous
            return

    def _is_of_user(self, kind: type) -> bool:
        known = self._are_of_user.get(kind)
        if known is None:
            known = self._are_of_user[kind] = is_of_user(getattr(kind, "_mgjit_original", kind))
        return known


class _Hidden(Buffer):
    """Memory that is not visible to the user: it is restored, but not compared."""

    __slots__ = ()

    def __init__(self, thing: Any) -> None:
        super().__init__(thing, (None, ""))

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {}


def described(path: Any) -> str:
    """A path as it is written in Python."""
    parts: list[str] = []
    while path is not None:
        path, label = path
        parts.append(label)
    return "".join(reversed(parts))


def _content(member: Any, thing: Any) -> Any:
    try:
        return member.__get__(thing)
    except AttributeError:
        return MISSING


def _is(one: Any, other: Any) -> bool:
    return one is other


def _is_special(name: str, part: Any) -> bool:
    """Whether an attribute of a class belongs to Python; methods of operators belong to the user."""
    return name.startswith("__") and name.endswith("__") and not isinstance(part, FunctionType)


def _is_buffer(thing: Any) -> bool:
    if isinstance(thing, (array, bytearray, memoryview)):
        return True
    return type(thing).__module__ == "numpy" and type(thing).__name__ in ("ndarray", "memmap")
