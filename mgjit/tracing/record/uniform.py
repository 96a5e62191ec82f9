"""Records a loop that does the same to each of many objects: its body runs once, for all of them but the last.

1. Look whether the contents of the names that the body uses are as usual: parameters, objects of one class whose
   attributes are plain, lists of traced numbers, no object twice.  Otherwise the loop runs as it is written.
2. Run the body with stand-ins.  What it reads from them is an operand of the kind EACH: a column, with one operand for
   each object.  What it assigns is kept.
3. Repeat the records for each of the objects, with the operands from the columns, and assign what was kept.  The
   records are those that the loop would have appended, in the same order.
4. Run the body once more with the last object, as it is, so that all names have the contents that they have in Python.
5. Where numbers of different kinds lie one after the other, the objects of each kind are a loop of their own.

Where the records turn out to be of another form, they are taken back, and the loop runs as it is written.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from ...engine.state import State
from ...engine.value import Value
from ...ir import opcodes as ops
from ...ir.sites import repeat_sites
from ...memory.live import original_class
from .blocks import is_sequence
from .recorder import Recorder
from .values import TracedTypes

if TYPE_CHECKING:
    from .blocks import Blocks
    from .uniform_loops import Use

#: The kind of operands that stand for one of each object, until the records are repeated.
EACH = 30
#: Loops over fewer objects run as they are written.
_FEWEST = 12
_FIRST, _LAST = ops.leaf(EACH, 0), ops.leaf(EACH, ops.INDEX_MASK)
_leaf_of = attrgetter("_leaf")
_VALUE_FIELDS = {name: Value.__dict__[name] for name in ("data", "grad")}


class Unusual(Exception):
    """Something is not as it usually is."""


class Uneven(Unusual):
    """The numbers of some objects are of other kinds than those of others.

    Attributes:
        cuts: where another kind begins, also at the first object, and the end.
    """

    def __init__(self, cuts: list[int]) -> None:
        self.cuts = cuts


class UniformLoops:
    """Records uniform loops of one trace.

    Args:
        blocks: registers parameters.
    """

    def __init__(self, recorder: Recorder, types: TracedTypes, blocks: Blocks) -> None:
        self.recorder, self.types, self.blocks = recorder, types, blocks
        self.leaf_class = type(types.leaf_number(ops.leaf(EACH, 0)))

    def items(
        self, how: str, iterables: Sequence[Any], use: Use, captured: Sequence[Callable[[], Any]]
    ) -> Iterable[Any] | None:
        """What the loop runs through; None if it has to run as it is written."""
        try:
            loop = _Loop(self, how, iterables, use, captured)
        except Uneven as found:
            return self._one_by_one(found.cuts, how, iterables, use, captured)
        except Unusual:
            return None
        return loop.items()

    def _one_by_one(
        self, cuts: list[int], how: str, iterables: Sequence[Any], use: Use, captured: Sequence[Callable[[], Any]]
    ) -> Iterator[Any]:
        """The same where it is several loops, one after the other."""
        for first, last in zip(cuts, cuts[1:]):
            try:
                loop = _Loop(self, how, iterables, use, captured, (first, last))
            except Unusual as found:
                finer = found.cuts if isinstance(found, Uneven) else []
                if len(finer) > 2:
                    yield from self._one_by_one([first + cut for cut in finer], how, iterables, use, captured)
                else:
                    rows = rows_of(how, iterables, first, last)
                    yield from rows[0] if len(rows) == 1 else zip(*rows)
            else:
                yield from loop.items()


def rows_of(how: str, iterables: Sequence[Any], first: int, last: int | None) -> list[Sequence[Any]]:
    """What each name of a loop runs through.

    Args:
        first, last: the first object, and the end.

    Raises:
        Unusual: that cannot be told before.
    """
    if how == "range":
        if type(iterables[0]) is not int:
            raise Unusual
        return [range(iterables[0])[first:last]]
    if not all(is_sequence(type(one)) for one in iterables):
        raise Unusual
    iterables = [one if type(one) in (list, tuple) else list(one) for one in iterables]
    end = min(map(len, iterables)) if last is None else last
    rows = [one if not first and len(one) == end else one[first:end] for one in iterables]
    return [range(first, end), *rows] if how == "enumerate" else rows


class Each:
    """Stands for one of each object: an attribute that is read is a column, and what is assigned is kept."""

    __slots__ = ("_places",)

    def __init__(self, places: dict[str, _Memory | _Kept]) -> None:
        object.__setattr__(self, "_places", places)

    def __getattr__(self, name: str) -> Any:
        return self._places[name].get()

    def __setattr__(self, name: str, content: Any) -> None:
        self._places[name].set(content)


class EachIndex:
    """Stands for the index of each object."""

    __slots__ = ("_places",)

    def __init__(self, places: dict[int, _Memory | _Kept]) -> None:
        self._places = places

    def element(self, container: Any) -> Any:
        """The element of a list."""
        return self._places[id(container)].get()

    def assign(self, container: Any, content: Any) -> None:
        """Assign it."""
        self._places[id(container)].set(content)


class _Memory:
    """One place of the kernel's memory for each object: what is assigned is recorded.

    Args:
        operand: stands for one of each.
    """

    def __init__(self, loops: UniformLoops, operand: int) -> None:
        self._loops, self._operand = loops, operand

    def get(self) -> Any:
        return self._loops.types.leaf_number(self._operand)

    def set(self, content: Any) -> None:
        self._loops.recorder.store(self._operand, self._loops.types.number_operand(content))


class _Kept:
    """One place in the user's objects for each of them, which holds a traced number.

    Args:
        content: stands for one of each; None if they are not read.
        assign: puts numbers there.
    """

    def __init__(self, content: Any, assign: Callable[[Iterable[Any]], object]) -> None:
        self._first = self.content = content
        self.assign = assign

    def get(self) -> Any:
        return self.content

    def set(self, content: Any) -> None:
        self.content = content

    @property
    def has_changed(self) -> bool:
        """Whether something was assigned."""
        return self.content is not self._first


class _Loop:
    """One loop.

    Args:
        part: the first object and the end; None for all objects.

    Raises:
        Unusual: it has to run as it is written.
    """

    def __init__(
        self,
        loops: UniformLoops,
        how: str,
        iterables: Sequence[Any],
        use: Use,
        captured: Sequence[Callable[[], Any]],
        part: tuple[int, int | None] = (0, None),
    ) -> None:
        self._loops, self._recorder, self._types, self._blocks = loops, loops.recorder, loops.types, loops.blocks
        self._numbers = frozenset({loops.types.number, loops.leaf_class})
        self._use = use
        self._all = rows_of(how, iterables, *part)
        if len(self._all[0]) < _FEWEST:
            raise Unusual
        self._count = len(self._all[0]) - 1
        self._first = part[0]
        self._columns: list[array[int]] = []
        self._kept: list[_Kept] = []
        self._captured = self._contents(captured)
        self._check_objects()
        self._check_lists()
        self._stand_ins = tuple(map(self._stand_in, range(len(use.roles))))

    # ---- 1: is everything as usual? -----------------------------------------------------------------

    def _contents(self, captured: Sequence[Callable[[], Any]]) -> list[Any]:
        try:
            found = [read() for read in captured]
        except NameError:
            raise Unusual from None
        known = {float, int, self._types.integer, *self._numbers}
        for number in self._use.numbers:
            if type(found[number]) not in known:
                raise Unusual
        for number, names in self._use.paths:
            thing = found[number]
            for name in names:
                if not has_plain(type(thing), name):
                    raise Unusual
                thing = getattr(thing, name, None)
            if type(thing) not in known:
                raise Unusual
        return found

    def _check_objects(self) -> None:
        """No object may be there twice, where one is changed."""
        rows = [row for row, role in zip(self._all, self._use.roles) if role == "object"]
        leaves = self._blocks.leaves_before(rows[0]) if len(rows) == 1 else None
        found: set[int] = set(map(id, chain.from_iterable(rows))) if leaves is None else set(leaves)
        if len(found) != sum(map(len, rows)):
            raise Unusual

    def _check_lists(self) -> None:
        lists = [self._captured[number] for number, _, _ in self._use.elements]
        if len({id(one) for one in lists}) != len(lists):
            raise Unusual
        if any(type(one) not in (list, State) or len(one) <= self._first + self._count for one in lists):
            raise Unusual

    # ---- 2: stand-ins -----------------------------------------------------------------------------------

    def _stand_in(self, position: int) -> Any:
        role, row = self._use.roles[position], self._all[position]
        if role == "index":
            return EachIndex({id(self._captured[e[0]]): self._element(*e) for e in self._use.elements})
        if role == "number":
            return self._number(row[: self._count])
        if role == "object":
            things = row[: self._count]
            return Each({name: self._attribute(things, name, *how) for at, name, *how in self._use.attributes
                         if at == position})  # fmt: skip
        return None

    def _column(self, operands: Iterable[int]) -> int:
        """The operand that stands for one of each of these."""
        self._columns.append(array("i", operands))
        return ops.leaf(EACH, len(self._columns) - 1)

    def _number(self, numbers: Sequence[Any]) -> Any:
        """A number that stands for one of each."""
        if not self._numbers.issuperset(map(type, numbers)):
            kinds = [type(number) in self._numbers for number in numbers]
            cuts = [k for k, (one, other) in enumerate(zip(kinds, kinds[1:]), 1) if one is not other]
            if len(cuts) > len(kinds) // _FEWEST or not any(kinds):
                raise Unusual
            raise Uneven([0, *cuts, len(kinds) + 1])
        return self._types.number_at(self._column(map(_leaf_of, numbers)), False)

    def _attribute(self, things: Sequence[Any], name: str, is_read: bool, is_written: bool) -> _Memory | _Kept:
        leaves = self._blocks.leaves_before(things, name == "grad")
        kinds = set(map(type, things)) if leaves is None else set()
        if kinds <= self._blocks.parameters:
            return self._of_parameters(things, name, leaves)
        if len(kinds) > 1 or not has_plain(kinds.pop(), name):
            raise Unusual
        try:
            numbers = list(map(attrgetter(name), things)) if is_read else []
        except AttributeError:
            raise Unusual from None
        return self._keep(numbers, is_read, lambda new: deque(map(setattr, things, repeat(name), new), maxlen=0))

    def _of_parameters(self, things: Sequence[Any], name: str, leaves: array[int] | None) -> _Memory:
        if name not in _VALUE_FIELDS or Value.__dict__[name] is not _VALUE_FIELDS[name]:
            raise Unusual
        if leaves is None:
            if not self._blocks.are_registered(things):
                if self._use.roles.count("object") > 1 or not self._blocks.are_parameters(things):
                    raise Unusual  # they would be registered in another order
                self._recorder.parameters(things)
            leaves = array("i", map(_leaf_of, things))
            leaves = self._recorder.gradient_leaves(leaves) if name == "grad" else leaves
        return self._memory(leaves)

    def _element(self, number: int, is_read: bool, is_written: bool) -> _Memory | _Kept:
        container = self._captured[number]
        if type(container) is State:
            leaf = self._recorder.state(container) - self._first
            return self._memory(range(leaf, leaf - self._count, -1))
        first, last = self._first, self._first + self._count
        numbers = container[first:last] if is_read else []

        def assign(new: Iterable[Any]) -> None:
            container[first:last] = new

        return self._keep(numbers, is_read, assign)

    def _memory(self, leaves: Iterable[int]) -> _Memory:
        return _Memory(self._loops, self._column(leaves))

    def _keep(self, numbers: Sequence[Any], is_read: bool, assign: Callable[[Iterable[Any]], object]) -> _Kept:
        self._kept.append(_Kept(self._number(numbers) if is_read else None, assign))
        return self._kept[-1]

    # ---- 3: records ---------------------------------------------------------------------------------

    def items(self) -> Iterator[Any]:
        """What the loop runs through."""
        recorder = self._recorder
        before = _Marks(recorder)
        yield self._stand_ins if len(self._stand_ins) > 1 else self._stand_ins[0]
        changed = [kept for kept in self._kept if kept.has_changed]
        known = {float, int, self._types.number}
        if len(recorder.late) == before.late and all(type(kept.content) in known for kept in changed):
            self._repeat(before)
            for kept in changed:
                kept.assign(self._for_each(kept.content, before))
            first = self._count
        else:
            before.take_back(recorder)
            first = 0
        rest = [row[first:] for row in self._all]
        yield from rest[0] if len(rest) == 1 else zip(*rest)

    def _for_each(self, content: Any, before: _Marks) -> list[Any]:
        """What is assigned to each of the objects."""
        if type(content) in (float, int):
            return [content] * self._count
        return [self._types.number_at(operand, False) for operand in self._operands(content._leaf, before)]

    def _operands(self, operand: int, before: _Marks) -> array[int]:
        """What an operand of the body is for each of the objects."""
        if _LAST <= operand <= _FIRST:
            return self._columns[ops.leaf_index(operand)]
        if operand < before.records:
            return array("i", [operand]) * self._count
        return self._blocks.consecutive(operand, before.period * self._count)[:: before.period]

    def _repeat(self, before: _Marks) -> None:
        """Append the records of all objects but the first one, and give all of them their operands."""
        recorder, count, start = self._recorder, self._count, before.records
        before.period = period = len(recorder.op) - start
        if not period:
            return
        stores = [k for k in range(start, start + period) if recorder.op[k] == ops.STORE]
        for k in stores:
            target = recorder.a[k]
            recorder.last_store.pop(target, None)
            recorder.last_store.update(zip(self._operands(target, before), range(k, k + period * count, period)))
        recorder.op.extend(recorder.op[start:] * (count - 1))
        for column in (recorder.a, recorder.b):
            template = column[start:]
            every = array("i", bytes(4 * period * count))
            for k, operand in enumerate(template):
                every[k::period] = self._operands(operand, before)
            del column[start:]
            column.extend(every)
        for k in [k for k in range(start, start + period) if k in recorder.third]:
            recorder.third.update(zip(range(k, k + period * count, period), self._operands(recorder.third[k], before)))
        if recorder.sites is not None:
            repeat_sites(recorder.sites, start, period, count)
        before.repeat_integers(recorder, count, lambda operand: self._operands(operand, before))


class _Marks:
    """What has been recorded before a loop.

    Attributes:
        records, late: how many there are.
        period: how many records an object has, when that is known.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.records, self.late, self.period = len(recorder.op), len(recorder.late), 0
        self._integers, self._used = len(recorder.integer_results), len(recorder.used_as_integers)

    def take_back(self, recorder: Recorder) -> None:
        """Forget what has been recorded since."""
        start = self.records
        for k in range(start, len(recorder.op)):
            recorder.third.pop(k, None)
            recorder.known_integers.pop(k, None)
            if recorder.op[k] == ops.STORE:
                recorder.last_store.pop(recorder.a[k], None)
        for column in (recorder.op, recorder.a, recorder.b):
            del column[start:]
        del recorder.late[self.late :]
        del recorder.integer_results[self._integers :]
        recorder.used_as_integers.difference_update(self._new_integers(recorder))

    def repeat_integers(self, recorder: Recorder, count: int, operands: Callable[[int], Iterable[int]]) -> None:
        """Note of each object what is noted of the integers of the first one, unless it is the same for all of them."""
        results = recorder.integer_results[self._integers :]
        alike = self._alike(recorder, count, results)
        own = [result for result in results if result not in alike]
        recorder.integer_results[self._integers :] = [*alike, *(x for each in zip(*map(operands, own)) for x in each)]
        for operand in self._new_integers(recorder):
            if operand < 0:  # of results, nobody asks
                recorder.used_as_integers.update(operands(operand))
                recorder.used_as_integers.discard(operand)
        for k in [k for k in range(self.records, self.records + self.period) if k in recorder.known_integers]:
            recorder.known_integers.update(zip(operands(k), repeat(recorder.known_integers[k])))

    def _alike(self, recorder: Recorder, count: int, results: Sequence[int]) -> dict[int, None]:
        """Results of the first object that are computed from what all objects share, and are not assigned."""
        body = range(self.records, self.records + self.period)
        assigned = {recorder.b[k] for k in body if recorder.op[k] == ops.STORE}
        found: dict[int, None] = {}
        for k in results:
            if k in body and k not in assigned and k not in recorder.third:
                columns = [column[k : k + self.period * count : self.period] for column in (recorder.a, recorder.b)]
                if all(column[0] in found or len(set(column)) == 1 for column in columns):
                    found[k] = None
        return found

    def _new_integers(self, recorder: Recorder) -> list[int]:
        if len(recorder.used_as_integers) == self._used:
            return []
        return [x for x in recorder.used_as_integers if x >= self.records or _LAST <= x <= _FIRST]


def has_plain(kind: type, name: str) -> bool:
    """Whether reading and assigning an attribute of objects of a class does nothing else."""
    original: Any = original_class(kind)
    if original.__getattribute__ is not object.__getattribute__ or original.__setattr__ is not object.__setattr__:
        return False
    if hasattr(original, "__getattr__"):
        return False
    found = next((base.__dict__[name] for base in original.__mro__ if name in base.__dict__), None)
    return type(found) is MemberDescriptorType or not hasattr(type(found), "__get__")
