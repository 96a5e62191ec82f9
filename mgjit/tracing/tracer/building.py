"""What a step builds and leaves in the user's objects for itself, such as what forward keeps for backward.

A kernel changes numbers where numbers are.  What a place gets that is new in each call, made of numbers of this call,
is made by Python behind the kernel (copies/built.py), if nobody looks at what the call before has left there:

1. A trace that finds something new at a place notes that (`learn`), and the call is traced again.
2. In that trace, what was there is out of sight (record/unread.py), and is not surveyed.
3. Behind the step, what lies there is described in the form of a result, whose numbers are stored in the State.
4. If what was there is read after all, the next trace puts containers of the same form there, with traced numbers in
   place of floats.  What the step leaves must have this form, too.
5. A tensor is so many numbers as well, which operations on tensors copy into the State and out of it.  Where several
   are left over one memory, this memory is stored, and each of them is a view of it.
6. To a list that has only grown (`losses.append(loss.data)`) the step may be appending, and do nothing else: then a Log
   lies there (record/log.py).  What it takes is part of the result of the trace, which extends the list.
7. Where any of this fails, the place is noted as one that is left alone, and the call is traced once more.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import is_
from typing import Any, NoReturn

from ...engine.leaks import NewStructure, PlainCall, is_traced, is_traced_number
from ...engine.value import Value
from ...errors import MgjitError
from ...memory.live import raw_attributes
from ...tensor.apply import recording, tensor_of
from ...tensor.shapes import View, row_major
from ...tensor.tensor import Tensor
from ..call.apart import fields_to_return, is_number_like, is_object, taken_apart
from ..call.given import GivenPath
from ..call.results import CompositeResult, Describer, ResultTree
from ..call.tensors import SharedMemory, TensorResult
from ..copies.built import Built, Carried, taking
from ..record.counters import Counted
from ..record.log import Log
from ..record.recorder import Recorder
from ..record.unread import Unread
from ..record.values import TracedTypes
from ..source.rewriting import notices_identity
from ..surroundings.before import Change
from ..surroundings.places import Attribute, Contents, Element, Entry, Part, Place, Variable
from ..surroundings.shapes import MISSING, attributes
from ..surroundings.survey import Survey
from .knowledge import Again, Knowledge
from .standing import ATOMS, DEPTH, Standing, is_of_form

#: What is not read as containers of floats.
_ALONE = (float, int, bool, str, bytes, complex, type(None))


class Building:
    """The places of one trace where the step leaves what it has built.

    Args:
        places: those that are known, with what lies there.
        knowledge: of earlier traces.
        knows: whether an object existed before the step.
    """

    def __init__(self, places: Iterable[Place], knowledge: Knowledge, knows: Callable[[Any], bool]) -> None:
        self._knowledge, self._knows = knowledge, knows
        found = [(place, place.read()) for place in places if not place.is_empty()]
        self._before = [one for one in found if one[0].key not in knowledge.logs]
        self._lists: list[tuple[Place, list[Any]]] = [one for one in found if one[0].key in knowledge.logs]
        self._logs: list[Log] = []  # what lies there during the trace
        self._instead: list[Any] = []  # what lies there during the trace
        self._standing: dict[int, Standing] = {}  # by the identity of a container
        self._parts: dict[int, Place] | None = None
        self._uses: Counter[int] = Counter()  # how many tensors are built over a memory, by its identity
        self._wholes: dict[int, CompositeResult] = {}  # what becomes of memories with several
        self._tensors: dict[int, tuple[Place, Tensor]] = {}  # that are built, by the identity of their memory
        self.built = Built()
        #: Elements of the State, and the operands that they become.
        self.stores: list[tuple[int, int]] = []

    @property
    def keys(self) -> set[Any]:
        """Those of the places."""
        return {place.key for place, _ in (*self._before, *self._lists)}

    @property
    def keys_of_built(self) -> set[Any]:
        """Those of the places that get something new in each call."""
        return {place.key for place, _ in self._before}

    @property
    def lists(self) -> list[list[Any]]:
        """These lists."""
        return [found for _, found in self._lists]

    def count(self) -> int:
        """How many elements the step has appended to them so far."""
        return sum(map(list.__len__, self._logs))

    def enter(self, types: TracedTypes, first: tuple[int, int]) -> None:
        """Let what lies there be out of sight, or have traced numbers.

        Args:
            first: the leaf of the first number in the State that is free, and its offset.

        Raises:
            Again: there is not enough room.
        """
        self._free = first
        for place, found in self._lists:
            if type(found) is not list or self._knows(found):
                self._leave(place.key)
            self._logs.append(Log(functools.partial(self._leave, place.key)))
            place.write(self._logs[-1])
        for place, before in self._before:
            if place.key in self._knowledge.carried:
                self._instead.append(self._stand(place, before, types))
                continue
            unread = Unread(functools.partial(self._read, place, before))
            self._instead.append(unread)
            place.write([unread] * len(before) if isinstance(place, Contents) else unread)
            if isinstance(place, Contents):
                self.built.lengths.append((place, len(before)))
        self._require_room(self._free[1] - first[1])

    def _stand(self, place: Place, before: Any, types: TracedTypes) -> Any:
        """Put containers of traced numbers there; returns them."""
        leaf, offset = self._free
        standing = Standing(place, before, types, leaf, self._knows, place.key in self._knowledge.linked)
        if standing.thing is None:
            self._leave(place.key)
        place.write(standing.thing)
        self._standing.update(dict.fromkeys(standing.identities, standing))
        self.built.carried.append(Carried(place, offset, standing.count, taking(before, self.built.written)))
        self._free = leaf - standing.count, offset + standing.count
        return standing.thing

    def _require_room(self, count: int) -> None:
        if count > self._knowledge.room:
            self._knowledge.room = count
            raise Again

    def _read(self, place: Place, before: Any) -> NoReturn:
        """What was there is used."""
        if before is None:
            raise NewStructure(f"{place.describe()} is None before the call, and what the step has built after it")
        if isinstance(place, Contents) or isinstance(before, _ALONE):
            self._leave(place.key)
        # Where one is read, those like it are read, too: otherwise there would be a trace for each.  When the step has
        # ended, those before it are known no more.
        alike = [one.key for one, there in self._before if _are_alike(one, place) and type(there) is type(before)]
        self._knowledge.carried.update(alike, [place.key])
        raise Again

    def put_back(self) -> None:
        """Put back what was there."""
        for (place, before), _ in zip(self._before, self._instead):
            place.write(before)
        self._before, self._instead = [], []
        for (place, found), _ in zip(self._lists, self._logs):
            place.write(found)

    def appended(self) -> list[list[Any]]:
        """What the step has appended to each list to which it only appends.

        Raises:
            Again: a list is another one now, or got something that cannot be made again.
        """
        found = []
        for (place, _), log in zip(self._lists, self._logs):
            found.append(log.taken())
            if place.is_empty() or place.read() is not log or not _can_be_appended(found[-1], self._knows):
                self._leave(place.key)
        return found

    def describe(
        self,
        recorder: Recorder,
        types: TracedTypes,
        number_of: Callable[[Counted], Any],
        path_of: Callable[[Any], GivenPath | None],
        kept_at: Callable[[Any], Place | None],
    ) -> None:
        """Describe what the step has left.

        Args:
            number_of, path_of, kept_at: as of describe_result.

        Raises:
            Again: something cannot be built, or needs more room.
        """
        sink = _Sink(recorder)

        def place_of(thing: Any) -> Place | None:
            return None if isinstance(thing, Tensor) else kept_at(thing)

        describe = Describer(sink, types, self._knows, number_of, path_of, place_of)  # type: ignore[arg-type]
        describe.tells_tuples = True
        describe.numbers_of = functools.partial(self._numbers_of, sink)
        self._parts = {}
        carried = {one.place.key: one for one in self.built.carried}
        entries = sorted(zip(self._before, self._instead), key=lambda entry: entry[0][0].key not in carried)
        for standing in self._standing.values():
            if standing.has_changed():
                self._leave(standing.place.key)
        first = self._free
        for place, _ in self._before:
            self._uses.update(id(x._memory) for x in (() if place.is_empty() else _tensors_in(place.read())))
        for (place, before), instead in entries:
            content = MISSING if place.is_empty() else place.read()
            if content is instead or (isinstance(place, Contents) and _is_untouched(content, before, instead)):
                continue
            self._refuse_standing(content)
            if content is MISSING or numbers_in(content, self._knows) is None:
                self._leave(place.key)
            one = carried.get(place.key)
            if one is not None and not is_of_form(content, before):
                if isinstance(before, Tensor) and isinstance(content, Tensor):
                    forms = (f"of shape {x.shape} and type {x.dtype}" for x in (before, content))
                    raise NewStructure(f"{place.describe()} is a tensor {' before the call, '.join(forms)} after it")
                self._leave(place.key)
            tensors = list(_tensors_in(content))
            if not all(recording().is_made(tensor) or path_of(tensor) is not None for tensor in tensors):
                self._leave(place.key)
            if one is not None and place.key not in self._knowledge.linked and any(x.requires_grad for x in tensors):
                self._knowledge.linked.add(place.key)
                raise Again
            leaf, offset = first if one is None else (self._leaf_of(one), one.offset)
            sink.begin(leaf, offset)
            try:
                self.built.add(place, describe.describe(content))
            except (PlainCall, MgjitError, ValueError):
                self._leave(place.key)
            if one is None:
                first = leaf - sink.count, offset + sink.count
            elif sink.count != one.count:
                self._leave(place.key)
            self._note_parts(place, (), content)
        self.built.is_shared |= describe.shares
        self.stores = sink.stores
        self._require_room(first[1] - self._free[1] + sum(one.count for one in self.built.carried))

    def _leaf_of(self, one: Carried) -> int:
        return self._free[0] + self._free[1] - one.offset

    def _refuse_standing(self, content: Any, depth: int = DEPTH) -> None:
        """Where something of the call before gets another place, it would have to be the same object."""
        self.refuse_identity(content)
        found = None if is_traced(content) or type(content) in ATOMS or not depth else taken_apart(content)
        for part in () if found is None else found[1]:
            self._refuse_standing(part, depth - 1)

    def refuse_identity(self, thing: Any) -> None:
        """The step asks which object something is.

        Raises:
            Again: it is one that stands for another.
        """
        for each in (thing, thing._memory) if isinstance(thing, Tensor) else (thing,):
            if id(each) in self._standing:
                self._leave(self._standing[id(each)].place.key)

    def _numbers_of(self, sink: _Sink, tensor: Tensor) -> ResultTree:
        """How the elements of a tensor are made: with its whole memory, if that has others as well."""
        memory = tensor._memory
        if self._uses[id(memory)] == 1:
            return TensorResult(sink.output_tensor(tensor), tensor.shape, tensor.dtype, tensor.size)
        if id(memory) not in self._wholes:
            whole = tensor_of(memory, View(0, (memory.size,), (1,)))
            numbers = TensorResult(sink.output_tensor(whole), whole.shape, whole.dtype, whole.size)
            self._wholes[id(memory)] = CompositeResult(_only, [numbers])
            self._wholes[id(memory)].is_shared = self.built.is_shared = True
        return CompositeResult(functools.partial(_part_of, tensor._view), [self._wholes[id(memory)]])

    def _leave(self, key: Any) -> NoReturn:
        """Leave a place alone from now on."""
        self._knowledge.built.discard(key)
        self._knowledge.carried.discard(key)
        self._knowledge.logs.discard(key)
        self._knowledge.unbuilt.add(key)
        raise Again

    def give_up(self) -> None:
        """The step has raised an error, perhaps because of what is out of sight.

        Raises:
            Again: something is.
        """
        if self._instead or self._logs:
            keys = self.keys
            self._knowledge.unbuilt |= keys
            self._knowledge.built -= keys
            self._knowledge.carried -= keys
            self._knowledge.logs -= keys
            raise Again

    def forget(self) -> None:
        """Let go of the traced numbers."""
        self._standing, self._tensors, self._wholes = {}, {}, {}
        self._lists, self._logs = [], []

    def place_of(self, thing: Any) -> Place | None:
        """Where a container that the step has built will lie; None for others.

        Raises:
            Again: it stands for one of the call before.
        """
        self.refuse_identity(thing)
        found = (self._parts or {}).get(id(thing))
        if found is not None or not isinstance(thing, Tensor) or id(thing._memory) not in self._tensors:
            return found
        place, tensor = self._tensors[id(thing._memory)]
        is_whole = tensor._view == View(0, tensor.shape, row_major(tensor.shape)) and tensor._memory.size == tensor.size
        if not is_whole and id(thing._memory) not in self._wholes:
            self._leave((place.holder if isinstance(place, Part) else place).key)
        return SharedMemory(place, thing._view)

    def _note_parts(self, place: Place, steps: tuple[tuple[bool, Any], ...], content: Any) -> None:
        parts = self._parts
        assert parts is not None
        if isinstance(content, (list, dict, tuple)) or is_object(content):
            parts.setdefault(id(content), Part(place, steps) if steps else place)
        if isinstance(content, Tensor):
            parts[id(content)] = found = Part(place, steps) if steps else place
            self._tensors[id(content._memory)] = found, content
            return
        if type(content) is dict:
            inside: Iterable[tuple[bool, Any, Any]] = ((False, name, part) for name, part in content.items())
        elif isinstance(content, (list, tuple)):
            inside = ((False, k, part) for k, part in enumerate(content))
        elif is_object(content):
            inside = ((True, name, part) for name, part in attributes(content).items())
        else:
            return
        for is_attribute, name, part in inside:
            if isinstance(part, Tensor) or not (is_traced(part) or type(part) in ATOMS):
                self._note_parts(place, (*steps, (is_attribute, name)), part)


class _Sink:
    """Takes the numbers of a description as elements of the State, where a recorder takes them as outputs."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.used_as_integers = recorder.used_as_integers
        self.stores: list[tuple[int, int]] = []

    def begin(self, leaf: int, offset: int) -> None:
        """Let the next numbers be stored from an element on."""
        self._leaf, self._offset, self.count = leaf, offset, 0

    @property
    def has_undefined_integers(self) -> bool:
        """As of the recorder."""
        return self._recorder.has_undefined_integers

    def output(self, operand: int) -> int:
        """A number that is stored; returns its place in the State."""
        self.stores.append((self._leaf - self.count, operand))
        self.count += 1
        return self._offset + self.count - 1

    def output_tensor(self, tensor: Tensor) -> int:
        """The elements of a tensor, which are stored at once; returns the place of the first."""
        recording().copy_out(tensor, self._leaf - self.count)
        self.count += tensor.size
        return self._offset + self.count - tensor.size


def _are_alike(one: Place, other: Place) -> bool:
    """Whether two places mean the same: elements of one container, or an attribute of objects of one class."""
    if isinstance(one, Entry) and isinstance(other, Entry):
        return one.holder is other.holder
    return bool(one.kind == other.kind)


def _is_untouched(content: list[Any], before: list[Any], unread: Any) -> bool:
    return len(content) == len(before) and all(part is unread for part in content)


def learn(changes: Iterable[Change], knowledge: Knowledge, survey: Survey) -> bool:
    """Note the places among those that have changed where a step leaves what it has built; whether there are new ones.

    The numbers around the step have been put back.
    """
    changes = list(changes)
    grown = [change for change in changes if change.is_growth and type(change.holder) is list]
    logs = [c for c in grown if learn_log(c.place, c.holder, c.before, knowledge, survey)]
    places = [(change, _place_of(change)) for change in changes if change not in logs]
    found = [
        learn_of(place, place.read() if isinstance(place, Contents) else change.now, knowledge, survey)
        for change, place in places
        if place is not None
    ]
    return any(found) or bool(logs)


def learn_log(place: Place, now: list[Any], before: Sequence[Any], knowledge: Knowledge, survey: Survey) -> bool:
    """Note the place of a list that has only grown, if all that has come to it can be made again; whether it is new."""
    place, count = _entry(place), len(before)
    is_grown = count < len(now) and all(map(is_, before, now))
    if not (is_grown and isinstance(place, (Attribute, Entry, Variable))):
        return False
    is_alone = place.has(now) and id(now) not in survey.shared
    is_known = place.key in knowledge.unbuilt or place.key in knowledge.built
    if knowledge.every_float or is_known or not is_alone or "type" in survey.names:
        return False
    if not (_can_be_appended(now[count:], survey.knows) and notices_identity(survey.functions)):
        return False
    knowledge.built.add(place.key)
    knowledge.logs.add(place.key)
    if isinstance(place, Attribute):
        knowledge.holders.append(raw_attributes(place.holder))
    return True


def _can_be_appended(things: list[Any], knows: Callable[[Any], bool]) -> bool:
    """Whether some objects can be made again by each call: numbers, and containers of those."""
    return not any(isinstance(thing, (Tensor, Value)) or numbers_in(thing, knows) is None for thing in things)


def _entry(place: Place) -> Place:
    return Entry(place.holder.read(), place.name, "", place.holder) if isinstance(place, Element) else place


def learn_of(place: Place, content: Any, knowledge: Knowledge, survey: Survey) -> bool:
    """Note one place, at which the step leaves something; whether it is new, and that can be built."""
    place = _entry(place)
    is_known = place.key in knowledge.unbuilt or place.key in knowledge.built
    if knowledge.every_float or is_known or not isinstance(place, _KINDS):
        return False
    count = numbers_in(content, survey.knows)
    if count is None or not notices_identity(survey.functions):
        return False
    knowledge.built.add(place.key)
    if isinstance(place, Attribute):
        knowledge.holders.append(raw_attributes(place.holder))
    knowledge.room += count or 1
    return True


#: What kinds of places there are.
_KINDS = (Attribute, Entry, Variable, Contents)


def _place_of(change: Change) -> Place | None:
    """The place that gets something in each call; None if it is of another kind."""
    place = change.place
    if change.is_growth:  # of an empty list, the next call shows whether it begins anew
        return Contents(change.holder, place) if type(change.holder) is list and change.before else None
    if change.before is MISSING or change.now is MISSING:
        return None
    return Entry(change.holder, place.name, "", place) if type(change.holder) is list else place


def numbers_in(thing: Any, knows: Callable[[Any], bool], depth: int = DEPTH) -> int | None:
    """How many numbers there are in something that a step has built; None if that cannot be made again."""
    if type(thing) in ATOMS:
        return 0
    if type(thing) is Counted:
        return 1
    if is_traced_number(thing):
        return 1 + hasattr(type(thing), "_kind")
    if isinstance(thing, Tensor):
        return int(thing.size) if isinstance(thing, recording().kind) and thing._memory.trace is not None else None
    if depth == 0 or isinstance(thing, Unread):
        return None
    if knows(thing):
        return 0
    found = None if is_traced(thing) or is_number_like(thing) else taken_apart(thing)
    if found is not None:
        parts = found[1]
    elif is_object(thing):
        parts = list(attributes(thing).values())
        if not all(one is other for one, other in zip(parts, fields_to_return(thing).values())):
            return None
    else:
        return None
    counts = [numbers_in(part, knows, depth - 1) for part in parts]
    return None if None in counts else sum(counts)  # type: ignore[arg-type]


def _only(parts: list[Any]) -> Any:
    return parts[0]


def _part_of(view: View, parts: list[Tensor]) -> Tensor:
    return tensor_of(parts[0]._memory, view)


def _tensors_in(thing: Any, depth: int = DEPTH) -> Iterator[Tensor]:
    """The tensors in something that a step has built."""
    if isinstance(thing, Tensor):
        yield thing
    elif depth and not is_traced(thing) and type(thing) not in ATOMS:
        found = None if is_number_like(thing) else taken_apart(thing)
        parts = found[1] if found is not None else list(attributes(thing).values()) if is_object(thing) else []
        for part in parts:
            yield from _tensors_in(part, depth - 1)
