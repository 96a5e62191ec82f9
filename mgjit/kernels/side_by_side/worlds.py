"""Worlds: what everything that a step can reach contains, for each member of an ensemble.

There is one set of objects, the user's.  A member is what they contain:

1. `save` reads the contents of everything that can be reached (verification/snapshot.py), while the numbers of
   parameters are in the objects themselves and not in the memory of kernels.
2. `load` puts contents back: then the user's objects are those of that member.
3. Where a step, or a function that prepares a member, has put new objects in the place of others, such as a list of
   moments or another model, `on` maps them to the objects of another member, if both are built in the same way.  So
   members have the same objects with other contents, and the kernel of one fits them all.

Libraries are not entered, as in verification: what they keep for themselves is the same for all members.
"""

from __future__ import annotations

import functools
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...base.lookup import has
from ...runtime.detached import Detached
from ...runtime.kernel import Kernel
from ...tracing.call.known import KnownNode, StaticNode, ValueNode
from ...tracing.call.node import Node
from ...tracing.call.plan import ArgumentPlan
from ...tracing.surroundings.shapes import MISSING
from ...verification.holders import ATOMS, Attributes, Holder, Path, described
from ...verification.snapshot import Found, Snapshot

T = TypeVar("T")


class _Floats(Holder):
    """The numbers of a State, whose memory a kernel may exchange for one of another precision."""

    __slots__ = ()

    def read(self) -> Any:
        return self.thing._buffer[:]

    def write(self, contents: Any) -> None:
        buffer = self.thing._buffer
        if buffer.typecode == contents.typecode:
            buffer[:] = contents
        else:
            for index, number in enumerate(contents):
                buffer[index] = number

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(contents))


class Walk(Snapshot):
    """The holders that can be reached.

    Attributes:
        objects: those that may have numbers in the memory of kernels.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.objects: list[Any] = []
        self._paths: dict[int, Path] = {}
        #: Of each thing, how many holders there were before it was taken apart.
        self._counts: list[int] = []
        super().__init__(roots)

    def _reader(self, kind: Any) -> Callable[[Snapshot, Any, Path], Found]:
        self._counts.append(len(self.holders))
        return super()._reader(kind)

    def _object(self, thing: Any, path: Path) -> Found:
        self.objects.append(thing)
        self._paths[id(thing)] = path
        return super()._object(thing, path)

    def _find_in_object(self, holder: Holder, path: Path, found: list[tuple[Any, Any]]) -> None:
        kind: Any = type(self._kept[-1])
        if type(holder) is Attributes and _has_steps(kind):
            holder = _AttributesBesidesSteps(holder.thing, path)
        super()._find_in_object(holder, path, found)

    def _state(self, thing: Any, path: Path) -> Found:
        self.holders.append(_Floats(thing, path))
        self._paths[id(thing)] = path
        return iter(())

    def path(self, thing: Any) -> str:
        """What leads to an object or a State, as it is written in Python."""
        return described(self._paths[id(thing)]) if id(thing) in self._paths else f"a {type(thing).__name__}"

    def things(self) -> list[tuple[Any, bool]]:
        """Everything that was met, in order, and whether it has a holder of its own."""
        counts = [*self._counts, len(self.holders)]
        return [(thing, counts[k] < counts[k + 1]) for k, thing in enumerate(self._kept)]


class _Ordinary:
    """Lets objects be ordinary ones for a time, with their numbers in themselves and not in the memory of kernels."""

    def __init__(self) -> None:
        self._names: list[int] = []
        self._kinds: list[type] = []
        self._detached = Detached(())

    def during(self, things: list[Any], work: Callable[[], T]) -> T:
        """Return `work()`, run while these are ordinary."""
        names, kinds = list(map(id, things)), list(map(type, things))
        if names != self._names or kinds != self._kinds:  # other ones, or kernels have moved numbers since
            self._names, self._kinds, self._detached = names, kinds, Detached(things)
        return self._detached.during(work)


class Contents:
    """What everything contains that a step can reach.

    Args:
        walk: what can be reached, while it is ordinary. contents: of its holders.
        ordinary: makes it so.
    """

    def __init__(self, walk: Walk, contents: list[Any], ordinary: _Ordinary) -> None:
        self._walk, self._contents, self._ordinary = walk, contents, ordinary

    @classmethod
    def saved(cls, roots: Sequence[tuple[str, Any]], known: Sequence[Any], ordinary: _Ordinary) -> Contents:
        """The present contents.

        Args:
            roots: where to begin. known: objects that may have numbers in the memory of kernels.
        """

        def read() -> Contents:
            walk = Walk(roots)
            return Contents(walk, walk.read(), ordinary)

        things = list(known)
        while True:
            found = ordinary.during(things, read)
            if not found._walk.parameters:
                return found
            things += found._walk.parameters

    def load(self) -> None:
        """Put everything back; may be repeated."""
        self._ordinary.during(self._walk.objects, lambda: self._walk.restore(self._contents))

    @property
    def objects(self) -> list[Any]:
        """The objects that may have numbers in the memory of kernels."""
        return self._walk.objects

    def on(self, other: Contents) -> Contents:
        """The same contents in the objects of another member, or these where they are not built in the same way."""
        mine, theirs = self._walk.things(), other._walk.things()
        if len(mine) != len(theirs) or len(self._walk.holders) != len(other._walk.holders):
            return self
        instead: dict[int, Any] = {}
        for (thing, is_held), (counterpart, _) in zip(mine, theirs):
            if thing is counterpart:
                continue
            if type(thing) is not type(counterpart):
                return self
            if is_held:
                instead[id(thing)] = counterpart
        if not instead:
            return self
        if any(type(one) is not type(two) for one, two in zip(self._walk.holders, other._walk.holders)):
            return self
        contents = [_replaced(content, instead) for content in self._contents]
        return Contents(other._walk, contents, self._ordinary)


def _replaced(content: Any, instead: Mapping[int, Any]) -> Any:
    """Contents with objects replaced, also in tuples."""
    kind = type(content)
    if kind is list:
        return [_one(part, instead) for part in content]
    if kind is dict:
        return {_one(key, instead): _one(part, instead) for key, part in content.items()}
    if kind is set:
        return {_one(part, instead) for part in content}
    return _one(content, instead)


def _one(thing: Any, instead: Mapping[int, Any]) -> Any:
    if type(thing) in ATOMS or thing is MISSING:
        return thing
    found = instead.get(id(thing), thing)
    if found is thing and isinstance(thing, tuple):
        parts = [_one(part, instead) for part in tuple.__iter__(thing)]
        if any(part is not before for part, before in zip(parts, thing)):
            return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return found


class _AttributesBesidesSteps(Attributes):
    """The attributes of an object that also keeps its compiled methods, which are the same for all members."""

    __slots__ = ()

    def read(self) -> Any:
        return {name: content for name, content in super().read().items() if not _is_step(content)}

    def write(self, contents: Any) -> None:
        steps = {name: content for name, content in super().read().items() if _is_step(content)}
        super().write({**contents, **steps})


def _is_step(thing: Any) -> bool:
    return hasattr(type(thing), "_choose_call")


@functools.lru_cache(maxsize=4096)
def _has_steps(kind: Any) -> bool:
    return any(_is_step(member) for base in kind.__mro__ for member in vars(base).values())


class World:
    """The objects that members have in common.

    Args:
        functions: what can reach them.

    Attributes:
        prototype: contents on whose objects other contents are mapped.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        generator = random.seed.__self__  # type: ignore[attr-defined]
        self._roots: list[tuple[str, Any]] = [*(("", function) for function in functions), ("random", generator)]
        self.prototype: Contents | None = None
        self._met: list[Kernel] = []
        self._ordinary = _Ordinary()

    def save(self) -> Contents:
        """The present contents of everything."""
        known = [] if self.prototype is None else self.prototype.objects
        return Contents.saved(self._roots, known, self._ordinary)

    def save_member(self) -> Contents:
        """The same, in the objects that members have in common."""
        found = self.save()
        return found if self.prototype is None else found.on(self.prototype)

    def add(self, plan: ArgumentPlan) -> bool:
        """Let the objects among arguments be reached as well; returns whether there are new ones."""
        known = {id(thing) for _, thing in self._roots}
        found = {id(thing): (name, thing) for name, node in zip(plan.names, plan.nodes) for thing in objects_in(node)}
        new = [root for key, root in found.items() if key not in known]
        self._roots += new
        return bool(new)

    def meets(self, kernel: Kernel) -> bool:
        """Whether a kernel is met for the first time."""
        if any(kernel is known for known in self._met):
            return False
        self._met.append(kernel)
        return True


def objects_in(node: Node) -> Iterator[Any]:
    """The objects with a life of their own in an argument, such as a model; everything else is data."""
    if isinstance(node, KnownNode):
        if not is_data(node.container):
            yield node.container
    elif isinstance(node, ValueNode):
        yield node.value
    elif isinstance(node, StaticNode):
        if not node.by_value and not is_data(node.argument):
            yield node.argument
    else:
        for _, part in node.children():
            yield from objects_in(part)


def is_data(thing: Any) -> bool:
    """Whether something consists of numbers and text, in containers of Python's own and in arrays."""
    kind = type(thing)
    if kind in (list, tuple, dict):
        parts = thing.values() if kind is dict else thing
        return ATOMS.issuperset(map(type, parts)) or all(map(is_data, parts))
    return kind in ATOMS or kind in (array, bytearray, memoryview) or has(thing, "dtype")


def containers_of(thing: Any) -> Iterator[int]:
    """The identities of the containers in data."""
    if type(thing) in (list, tuple, dict):
        yield id(thing)
        for part in thing.values() if type(thing) is dict else thing:
            if type(part) not in ATOMS:
                yield from containers_of(part)
