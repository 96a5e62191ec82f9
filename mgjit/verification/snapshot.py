"""Snapshots of everything with numbers that a step can reach, which can be read and restored.

This walk is deliberately not the survey from which traces and guards are made, since it has to notice what that one
overlooks.  It takes things apart in its own way, and follows what a program can reach, not what its code names:

1. Start at the step and at the arguments of the call.
2. Each thing that can change becomes a *holder* (holders.py): a list, a dict, the attributes or slots of an object, a
   variable, a buffer, the memory of a kernel, a generator of random numbers.
3. `read` returns the contents of all holders.  `restore` puts contents back; it may be repeated at any time.

Libraries, and mgjit itself, are not entered: what they keep for themselves is not part of the step.
"""

from __future__ import annotations

import contextlib
import functools
import random
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from types import BuiltinMethodType, CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..base.lookup import package_of, receiver
from ..engine.state import State
from ..engine.value import Value
from ..memory.buffers import ParameterStorage
from ..memory.live import Home, original_class, raw_attributes
from ..nn.module import Module
from ..tensor.tensor import Tensor
from ..tracing.surroundings.code import codes
from ..tracing.surroundings.ownership import is_module_of_user, is_of_user
from .holders import (
    ATOMS,
    Attributes,
    Buffer,
    Copy,
    Elements,
    Entries,
    Generator,
    Hidden,
    Holder,
    LaidOutNumbers,
    Members,
    Names,
    Path,
    Slots,
    Storage,
    TensorMemory,
    Variable,
    described,
)

#: Classes of the standard library whose objects are plain collections of attributes.
_BAGS = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace"), ("_thread", "_local")})


class _Form(NamedTuple):
    """How the objects of a class keep what they have.

    Attributes:
        is_step: whether they are compiled steps. is_known: whether they are looked into.
        is_attached, is_bound: whether their numbers live in the memory of a kernel; whether they are such Values.
        has_dict, members: whether they have a dict, and which slots.
    """

    is_step: bool
    is_known: bool
    is_attached: bool
    is_bound: bool
    has_dict: bool
    members: dict[str, Any]


Found = Iterable[tuple[Any, Any]]


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
        self._readers: dict[type, Callable[[Snapshot, Any, Path], Found]] = {}
        self._forms: dict[type, _Form] = {}
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
            inside = list(self._reader(kind)(self, thing, path))
            pending += [(part, (path, label)) for part, label in reversed(inside) if type(part) not in ATOMS]

    def add_memory(self, things: Iterable[Any]) -> None:
        """Add buffers and storages, which are restored, and compared as far as the walk has found them."""
        known = {id(holder.thing) for holder in self.holders}
        for thing in things:
            if id(thing) not in known:
                made = self._storage(thing, (None, "")) if isinstance(thing, ParameterStorage) else Hidden(thing)
                if made not in self.holders:
                    self.holders.append(made)

    def add_places(self, places: Iterable[Any]) -> None:
        """Add places from which a kernel copies numbers, and to which it copies them back.

        Some of these numbers may live in the memory of another kernel by now.
        """
        copies = [Copy(place, (None, "")) for place in places]
        self.holders += copies
        homes = [number for copy in copies for number in copy.read()[1] if type(number) is Home]
        self.add_memory({id(home.storage): home.storage for home in homes}.values())

    def read(self) -> list[Any]:
        """Return the contents of all holders."""
        return [holder.read() for holder in self.holders]

    def restore(self, contents: list[Any]) -> None:
        """Restore the contents of all holders."""
        for holder, content in zip(self.holders, contents):
            holder.write(content)

    # ---- 2: taking things apart ---------------------------------------------------------------------

    def _reader(self, kind: Any) -> Callable[[Snapshot, Any, Path], Found]:
        """What takes things of a class apart, and makes their holders."""
        known = self._readers.get(kind)
        if known is None:
            found = next((name for cls, name in _READERS if issubclass(kind, cls)), "_object")
            if (kind.__module__, kind.__name__) in _ARRAYS:
                found = "_buffer"
            known = self._readers[kind] = getattr(type(self), found)
        return known

    def _list(self, thing: Any, path: Path) -> Found:
        yield from self._held(Elements(thing, path))
        yield from self._attributes_besides(thing, path)

    def _tuple(self, thing: Any, path: Path) -> Found:
        kind: Any = tuple if isinstance(thing, tuple) else frozenset
        yield from ((part, f"[{k}]") for k, part in enumerate(kind.__iter__(thing)))
        yield from self._attributes_besides(thing, path)

    def _set(self, thing: Any, path: Path) -> Found:
        members = Members(thing, path)
        self.holders.append(members)
        yield from ((part, "{...}") for part in members.read())
        yield from self._attributes_besides(thing, path)

    def _dict(self, thing: Any, path: Path) -> Found:
        yield from self._held(Entries(thing, path))
        yield from ((key, "{key}") for key in dict.__iter__(thing))
        yield from self._attributes_besides(thing, path)

    def _attributes_besides(self, thing: Any, path: Path) -> Found:
        """Those of a container of a class of the user's."""
        if type(thing).__module__ != "builtins":
            yield from self._object(thing, path)

    def _variable(self, thing: Any, path: Path) -> Found:
        yield from self._held(Variable(thing, path))

    def _method(self, thing: Any, path: Path) -> Found:
        yield from ((thing.__self__, "" if described(path) else "self"), (thing.__func__, ""))

    def _partial(self, thing: Any, path: Path) -> Found:
        yield from ((thing.func, ""), (thing.args, ".args"), (thing.keywords, ".keywords"))

    def _descriptor(self, thing: Any, path: Path) -> Found:
        found = (getattr(thing, name, None) for name in ("__func__", "fget", "fset"))
        yield from ((method, "") for method in found if method is not None)

    def _method_in_c(self, thing: Any, path: Path) -> Found:
        if isinstance(receiver(thing), random.Random):
            yield thing.__self__, ""

    def _generator(self, thing: Any, path: Path) -> Found:
        if not isinstance(thing, random.SystemRandom):
            self.holders.append(Generator(thing, path))
        return iter(())

    def _state(self, thing: Any, path: Path) -> Found:
        if thing._layout is None:
            return self._buffer(thing._buffer, path)
        self.holders.append(LaidOutNumbers(thing._buffer, path))
        return iter(())

    def _tensor(self, thing: Any, path: Path) -> Found:
        self.holders.append(TensorMemory(thing._memory, path, self._with_gradients))
        return iter(())

    def _module(self, thing: Any, path: Path) -> Found:
        return iter(())

    def _held(self, holder: Holder) -> Found:
        self.holders.append(holder)
        if isinstance(holder, Elements) and ATOMS.issuperset(map(type, holder.read())):
            return iter(())  # long lists of numbers
        contents = holder.entries(holder.read())
        return ((part, holder.label(name)) for name, part in contents.items())

    def _function(self, function: FunctionType, path: Path) -> Found:
        code = getattr(function, "__code__", None)
        if not hasattr(code, "co_names") or package_of(function) == "mgjit":
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
        original = original_class(cls)
        for base in original.__mro__:
            if self._is_of_user(base):
                self.classes.add(base)
                members = {name: part for name, part in vars(base).items() if not _is_special(name, part)}
                yield from self._held(Names(base, (None, base.__name__), members))

    def _object(self, thing: Any, path: Path) -> Found:
        # This runs for every parameter, which is why it makes lists.
        kind = type(thing)
        known_form = self._forms.get(kind)
        form = known_form or self._forms.setdefault(kind, self._form(kind))
        found: list[tuple[Any, Any]] = []
        if form.is_step:  # that this one calls
            found.append((thing._function, ""))
        if not form.is_known:
            return found
        if known_form is None:
            found.append((kind, ""))
        if form.is_attached:
            self.parameters.append(thing)
        if form.is_bound:
            known = self._storage(thing._storage, path).known
            known[thing._index, False] = (path, ".data")
            known[thing._index, True] = (path, ".grad")
        own = raw_attributes(thing) if form.has_dict else None
        if own is not None:
            self._find_in_object(Attributes(own, path), path, found)
        if form.members:
            self._find_in_object(Slots(thing, path, form.members), path, found)
        return found

    def _find_in_object(self, holder: Holder, path: Path, found: list[tuple[Any, Any]]) -> None:
        self.holders.append(holder)
        contents = holder.read()
        if ATOMS.issuperset(map(type, contents.values() if type(contents) is dict else contents)):
            return
        for name, content in holder.entries(contents).items():
            if type(content) is Home:
                storage = self._storage(content.storage, path)
                storage.known[content.index, content.array is content.storage.grad] = (path, holder.label(name))
            elif type(content) not in ATOMS:
                found.append((content, holder.label(name)))

    def _form(self, kind: Any) -> _Form:
        """How the objects of a class keep what they have; of a Value, its numbers count."""
        is_bag = (kind.__module__, kind.__name__) in _BAGS
        is_value = issubclass(kind, Value)
        members = {
            name: member
            for base in reversed(kind.__mro__)
            for name, member in vars(base).items()
            if isinstance(member, MemberDescriptorType) and (base is not Value or name in ("_data", "_grad"))
        }
        is_bound = is_value and kind._is_bound
        if is_bound:
            members = {name: member for name, member in members.items() if name not in ("_data", "_grad")}
        elif is_value and not self._with_gradients:
            del members["_grad"]
        return _Form(
            is_step=hasattr(kind, "_choose_call"),
            is_known=is_value or is_bag or issubclass(kind, Module) or self._is_of_user(kind),
            is_attached=is_bound or hasattr(kind, "_mgjit_original"),
            is_bound=is_bound,
            has_dict=is_bag or any("__dict__" in vars(base) for base in kind.__mro__),
            members=members,
        )

    def _storage(self, storage: ParameterStorage, path: Path) -> Storage:
        known = self._storages.get(id(storage))
        if known is None:
            known = self._storages[id(storage)] = Storage(storage, path, self._with_gradients)
            self.holders.append(known)
        return known

    def _buffer(self, thing: Any, path: Path) -> Found:
        with contextlib.suppress(TypeError, ValueError, BufferError):  # of objects, or not contiguous
            if Buffer.is_possible(thing):
                self.holders.append(Buffer(thing, path))
        return iter(())

    def _is_of_user(self, kind: type) -> bool:
        known = self._are_of_user.get(kind)
        if known is None:
            known = self._are_of_user[kind] = is_of_user(original_class(kind))
        return known


def _is_special(name: str, part: Any) -> bool:
    """Whether an attribute of a class belongs to Python; methods of operators belong to the user."""
    return name.startswith("__") and name.endswith("__") and not isinstance(part, FunctionType)


#: The arrays of numpy, which need not be installed.
_ARRAYS = frozenset({("numpy", "ndarray"), ("numpy", "memmap")})
_READERS: list[tuple[type, str]] = [
    (list, "_list"),
    (deque, "_list"),
    (tuple, "_tuple"),
    (frozenset, "_tuple"),
    (set, "_set"),
    (dict, "_dict"),
    (CellType, "_variable"),
    (FunctionType, "_function"),
    (MethodType, "_method"),
    (functools.partial, "_partial"),
    (staticmethod, "_descriptor"),
    (classmethod, "_descriptor"),
    (property, "_descriptor"),
    (random.Random, "_generator"),
    (BuiltinMethodType, "_method_in_c"),
    (type, "_class"),
    (State, "_state"),
    (Tensor, "_tensor"),
    (array, "_buffer"),
    (bytearray, "_buffer"),
    (memoryview, "_buffer"),
    (ModuleType, "_module"),
]
