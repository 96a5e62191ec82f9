"""What the step has left where its numbers lie: what a compiled call has to store, and what it has to read.

After the step has run, and before what was there is put back:

1. A field in memory, or a copied number, that holds another traced number than before was assigned: a store.  Lists may
   have been replaced by others, of as many numbers.
2. Numbers that were fixed for the trace must be what they were.

After it has been put back:

3. All stores are recorded, at the end of the trace.
4. What the step neither reads nor assigns becomes no memory of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from operator import is_
from typing import Any, NoReturn

from ...engine.kinds import is_float64, is_numpy_integer
from ...engine.leaks import NewStructure, PlainCall, holds_traced, is_traced, is_traced_number
from ...engine.numeric import is_number
from ...errors import LeakError, TraceError
from ...ir import opcodes as ops
from ...memory.live import Home
from ...tensor.tensor import Tensor
from ..call.given import GivenPath
from ..call.plan import ArgumentPlan
from ..copies.copies import Copied
from ..record.counters import Counted
from ..record.numpy_numbers import as_result, has_float64
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..source.leaving import line_that_fills
from ..surroundings.places import ALL, Attribute, Place
from ..surroundings.roles import Roles
from ..surroundings.survey import Survey
from . import number_kinds
from .aftermath import are_numbers
from .building import Building, learn_log, learn_of
from .entered import Entered
from .indexed import IndexedAssignments, tables_of
from .knowledge import Again, HeapPlan, Knowledge


@dataclass
class Settling:
    """What one trace has left.

    Attributes:
        recorder, types, arguments: of the trace.
        entered, building, indexed: the traced numbers that were in the user's objects, what is built, and assignments
            at indices known at run time only.
        survey, roles, knowledge: of what surrounds the step.
        reached: leaves of gradients that backward passes add to.
        location: `file:line` of the step, for messages.
        give_up: of a `backward()` that is taken symbolically; None if there is none.
    """

    recorder: Recorder
    types: TracedTypes
    arguments: ArgumentPlan
    entered: Entered
    building: Building
    indexed: IndexedAssignments
    survey: Survey
    roles: Roles
    knowledge: Knowledge
    reached: set[int]
    location: str
    give_up: Callable[[str], NoReturn] | None
    _stores: list[tuple[int, Any]] = field(default_factory=list)  # leaves, and the numbers that they become
    _left: dict[int, Any] = field(default_factory=dict)  # what is at the places of copied numbers, by the place
    _keys: list[Any] = field(default_factory=list)  # of the fields in memory

    # ---- before what was there is put back --------------------------------------------------------

    def look_at_numbers(self, plan: HeapPlan, path_of: Callable[[Any], GivenPath | None]) -> None:
        """Find what the step has assigned.

        Args:
            plan: notes it.
            path_of: where the container lies among the arguments for which an object stands; None for others.

        Raises:
            LeakError: it left something behind that a kernel cannot repeat.
            NewStructure: it changed something besides numbers.
            Again: it assigned numbers in places that were not known to change.
        """
        fields, copies = self.entered.fields, self.entered.copied
        now = self._contents_of_fields()
        number_kinds.note_moved_integers(fields, now, copies, self.recorder, self.types)
        self._look_at_fields(now, plan)
        number_kinds.learn_whole(fields, now, self.knowledge)
        for entry in copies:
            copied = entry[0]
            self._left[id(copied.place)] = copied.place.read() if copied.place.lost() is None else None
            self._look_at_copied(*entry, plan)
            copied.given = path_of(copied.place.read()) if copied.replaced else None
        new = [copied.place.read() for copied, *_ in copies if copied.replaced]
        if len(set(map(id, new))) < len(new):
            self._build(*(copied.place for copied, *_ in copies if copied.replaced))
            raise PlainCall("two names become one new list")

    def look_at_kinds(self) -> None:
        """Find places where ints and floats take turns.

        Raises:
            Again: there is one that was not known.
        """
        for place in number_kinds.see(self.entered.copied, self._stores, self.recorder, self.types, self.arguments):
            self._make_mixed(place)

    def _look_at_fields(self, now: list[Any], plan: HeapPlan) -> None:
        as_integers = self.recorder.leaves_used_as_integers()
        is_current, usual = self.types.is_current, {self.types.number, float}
        fields = self.entered.fields
        self._keys = [f.key(thing) for f, thing, _, _, _ in fields]
        for new, (holder, _), (f, thing, content, number, leaf) in zip(now, self._keys, fields):
            if new is not number or leaf in self.reached:
                plan.assigned.add(holder)
                if not is_current(new, leaf):
                    stored = new if type(new) in usual else self._number(new, Attribute(thing, f))
                    self._stores.append((leaf, stored))
                    plan.valid_once |= content is None
            plan.valid_once |= isinstance(content, int) and leaf in as_integers

    def _contents_of_fields(self) -> list[Any]:
        """What the fields hold now.

        Raises:
            NewStructure: there is nothing any more in one of them, or where a number was that is copied.
        """
        empty = [copied.place for copied, *_ in self.entered.copied if copied.place.is_empty()]
        try:
            now = [f.read(thing) for f, thing, *_ in self.entered.fields]
        except (AttributeError, LookupError):
            empty += [place for f, thing, *_ in self.entered.fields if (place := Attribute(thing, f)).is_empty()]
        if empty:
            raise NewStructure(f"the step deletes {empty[0].describe()}, where a number was", self.entered.live())
        return now

    def _contents_of_copied(self, copied: Copied, numbers: list[Any]) -> list[Any]:
        """The numbers that are at a place now; notes whether it has become another list.

        Raises:
            PlainCall, NewStructure: it has, and a compiled call could not do that.
        """
        lost = copied.place.lost()
        if lost is not None:
            raise self.leak(lost, lost.read())
        content = copied.place.read()
        if not copied.size:
            return [content]
        if type(content) is not list or len(content) != copied.size:
            is_same = type(content) is list and content is self.roles.identity(copied.place)
            if is_same and learn_log(copied.place, content, numbers, self.knowledge, self.survey):
                raise Again
            raise self.leak(copied.place, content)
        original = self.roles.identity(copied.place)
        copied.replaced = content is not original
        if copied.replaced and (id(original) in self.survey.shared or self.survey.knows(content)):
            self._build(copied.place)
            raise PlainCall(f"{copied.place.describe()} becomes another list, and the old one has other names")
        if copied.replaced:
            self.building.refuse_identity(content)
        if copied.replaced and not (len(original) == len(numbers) and all(map(is_, original, numbers))):
            self._build(copied.place)
            raise PlainCall(f"{copied.place.describe()} becomes another list after the step has changed the old one")
        return content

    def _look_at_copied(
        self, copied: Copied, contents: list[Any], numbers: list[Any], leaf: int, plan: HeapPlan
    ) -> None:
        now = self._contents_of_copied(copied, numbers)
        is_current, usual, pairs = self.types.is_current, self.types.number, enumerate(zip(now, numbers))
        changed = [(k, new) for k, (new, old) in pairs if new is not old and not is_current(new, leaf - k)]
        unusual = [new for _, new in changed if type(new) is not usual]
        assigned = {k for k, _ in changed}
        self._look_at_numpys(copied, contents, changed)
        if self.indexed.leaves:
            assigned.update(k for k in range(copied.count) if leaf - k in self.indexed.leaves)
        copied.assigned = bool(assigned) or copied.replaced
        if copied.size and not copied.replaced and not copied.mixed and len(assigned) < copied.size:
            copied.positions = tuple(sorted(assigned))
        given = {k for k, old in enumerate(contents) if isinstance(old, int)}
        copied.given_integers = frozenset(copied.offset + k for k in given if isinstance(now[k], int))
        if copied.mixed:
            copied.given_integers = frozenset()
            code_of, first = self.types.mixed.code, leaf - copied.count
            self._stores += [(first - k, code_of(self._number(new, copied.place))) for k, new in changed]
        elif any(hasattr(type(x), "_kind") or isinstance(x, bool) for x in unusual):
            self._make_mixed(copied.place)
        if copied.assigned and not copied.mixed:
            kinds = enumerate(map(type, now))
            copied.integers = frozenset(
                copied.offset + k for k, kind in kinds if kind is not usual and isinstance(now[k], int)
            )
        self._stores += [
            (leaf - k, new if type(new) is usual else self._number(new, copied.place)) for k, new in changed
        ]
        as_integers = self.recorder.used_as_integers
        plan.valid_once |= any(
            isinstance(contents[k], int) and not isinstance(new, int) and leaf - k in as_integers for k, new in changed
        )

    def _look_at_numpys(self, copied: Copied, contents: list[Any], changed: list[tuple[int, Any]]) -> None:
        """Which of the numbers are numpy's, before the step and after it.

        Raises:
            NewStructure: others than before; the next call finds them so.
        """
        before = {k for k, old in enumerate(contents) if type(old) is not float and is_float64(type(old))}
        copied.numpy_floats = frozenset(copied.offset + k for k in before)
        usual = self.types.number
        after = {k for k, new in changed if type(new) is not usual and has_float64(type(new))}
        if copied.mixed and (before or after):
            raise PlainCall(f"ints and numbers of numpy's take turns in {copied.place.describe()}")
        for k, new in changed:
            if k in after:
                as_result(new)
        if after != before & {k for k, _ in changed}:
            what = "of numpy's type float64" if after - before else "that is not numpy's"
            raise NewStructure(f"the step leaves a number {what} in {copied.place.describe()}", self.entered.live())

    def _make_mixed(self, place: Place) -> NoReturn:
        """Whether an int or a float lies at a place is known at run time only.

        Raises:
            Again: always.
        """
        self.knowledge.mixed.add(place.key)
        raise Again

    def _number(self, content: Any, place: Place) -> Any:
        if type(content) is Counted:
            return self.entered.number_of(content)
        if is_number(content) or (is_traced(content) and isinstance(content, (int, float))):
            return content
        if is_traced_number(content) and as_result(content):
            raise PlainCall(f"the step leaves a comparison of numpy's in {place.describe()}")
        if type(content) is bool and place.key in self.knowledge.mixed:
            return content
        raise self.leak(place, content)

    def _build(self, *places: Place) -> None:
        """Let what the step has left at places be built at each call, if it can be.

        Raises:
            Again: it can, perhaps.
        """
        found = [learn_of(place, self._left[id(place)], self.knowledge, self.survey) for place in places]
        if any(found):
            raise Again

    def leak(self, place: Place, content: Any) -> LeakError | NewStructure:
        """The error that says what the step has left at a place where a compiled call cannot leave it.

        Raises:
            Again: it can, perhaps, in another trace.
        """
        if learn_of(place, content, self.knowledge, self.survey):
            raise Again
        if self.give_up is not None:
            self.give_up(f"it may leave gradients in {place.describe()}")
        made = set(map(id, self.recorder.local_values))
        if not holds_traced(content, self.survey.knows, made) or are_numbers(content):  # which Python can keep there
            kind = "number" if is_traced_number(content) else type(content).__name__
            if content is not None and (other := _of_another_class(place)):
                return NewStructure(f"{self._line(place)}: {other}", self.entered.live())
            what = "None" if content is None else f"a {kind}"
            reason = (
                f"{self._line(place)}: the step leaves {what} in {place.describe()}. A compiled call can change "
                "numbers that are there, also in lists, but it adds no elements and assigns no other objects. Return "
                "it, and keep it outside of the step"
            )
            return NewStructure(reason, self.entered.live())
        if isinstance(content, Tensor):
            return LeakError(
                f"{self._line(place)}: the step leaves a tensor in {place.describe()} that a compiled call cannot make "
                "anew: a part of one from outside, or one of the call before. Keep x.copy(); or assign to the elements "
                "of a tensor that is there: `x[...] = y`, inside of `with mgjit.no_grad():`."
            )
        what = "a traced value" if is_traced(content) else f"a {type(content).__name__} with traced values"
        return LeakError(
            f"{self._line(place)}: the step leaves {what} in {place.describe()}, and a compiled call has no such "
            "objects. Return the number and keep it outside of the step; if this is a list that the step fills anew in "
            "each call, such as a tape, empty it at the end of the step: tape.clear()."
        )

    def _line(self, place: Place) -> str:
        """`file:line` of what has put something at a place, or of the step."""
        names = re.findall(r"\w+", place.describe())
        return line_that_fills(names[-1], self.survey.functions) or self.location

    def look_at_fixed(self, plan: HeapPlan, fixed: list[tuple[Place, Any]]) -> None:
        """Numbers that were fixed for the trace are what they were.

        Args:
            plan: notes what must stay.
            fixed: their places, with what was there.

        Raises:
            Again: one is not, and no test needs it to be fixed.
            TraceError: one is not.
        """
        for place, before in fixed:
            if place.read() is not before:
                if place.kind not in self.knowledge.needed:  # a test asked for it, and can be told so
                    self.knowledge.fixed.discard(place.kind)
                    self.knowledge.changing.add(place.kind)
                    raise Again
                raise TraceError(
                    f"{self.location}: {place.describe()} is used as a length, an index or a key, and the step also "
                    "changes it, so that each call would be another step. Count outside of the step, and pass the "
                    "number as an argument; or use it in arithmetic only."
                )
        places = [copied.place for copied, *_ in self.entered.copied if copied.size]
        lists = [(place, self.roles.identity(place)) for place in places]
        shared = [(place, found) for place, found in lists if id(found) in self.survey.shared]
        plan.fixed = [*fixed, *shared]  # a list that other names mean as well must stay where it is

    # ---- after it has been put back ----------------------------------------------------------------

    def record(self, plan: HeapPlan, built: Collection[tuple[int, Any]]) -> None:
        """Record all stores, and note what the kernel reads.

        Args:
            plan: notes it.
            built: the keys of places where the step has put what it has built.

        Raises:
            Again: there are lists that need not be copied in.
        """
        self._build_unread()
        usual: Any = self.types.number
        operand_of = self.types.number_operand
        stores = [
            (leaf, number._leaf if type(number) is usual else operand_of(number)) for leaf, number in self._stores
        ]
        self.recorder.store_all(stores + self.building.stores)
        self._drop_unused(plan)
        plan.looked_after |= {(key[0], None) if key[1] is ALL else key for key in built}
        places = [copied.place for copied in plan.copied if copied.replaced and copied.place.container is not None]
        plan.replaced = {key for key in (*built, *(place.key for place in places)) if type(key[1]) is int}

    def _build_unread(self) -> None:
        """Lists that the step replaces, and whose numbers it has not read, need not be copied in.

        Raises:
            Again: there are such lists, which can be built.
        """
        replaced = [entry for entry in self.entered.copied if entry[0].replaced and not entry[0].mixed]
        if not replaced:
            return
        recorder = self.recorder
        read = recorder.leaves_in(recorder.a) | recorder.leaves_in(recorder.b) | recorder.read_late()
        read.update(recorder.third.values())
        read.update(self.types.number_operand(number) for _, number in self._stores)
        read.update(operand for _, operand in self.building.stores)
        self._build(*(
            copied.place
            for copied, _, numbers, leaf in replaced
            if not any(leaf - k in read for k in range(len(numbers)))
        ))  # fmt: skip

    def _drop_unused(self, plan: HeapPlan) -> None:
        """Only what the step uses becomes memory of the kernel."""
        recorder = self.recorder
        used: set[int] = set()
        look_ups: list[int] = []
        if self.entered.parameters or self.entered.copied:
            look_ups = recorder.look_ups()
            used = recorder.leaves_in(recorder.a) | recorder.leaves_in(recorder.b) | recorder.read_late()
            used.update(recorder.third.values())
            used.update(*(recorder.elements(*table) for table in {(recorder.a[k], recorder.op[k]) for k in look_ups}))
        shift = 1 << ops.KIND_SHIFT
        recorder.new_parameters += [p for p in self.entered.parameters if p._leaf in used or p._leaf - shift in used]
        plan.looked_after = {
            key
            for key, (_, _, content, _, leaf) in zip(self._keys, self.entered.fields)
            if content is not None or leaf in used or leaf in self.reached
        }  # of all others, the guard sees that they are still None
        self._refuse_numpy_integers(used)
        plan.bound = list({id(f[1]): f[1] for f in self.entered.fields if type(f[2]) is Home}.values())
        plan.looked_after |= {copied.place.key for copied, *_ in self.entered.copied}
        plan.looked_after |= {(id(content), None) for _, content in self.roles.lists}
        plan.copied = [
            copied
            for copied, _, numbers, leaf in self.entered.copied
            if copied.assigned or any(leaf - k in used for k in range(len(numbers)))
        ]
        copied_places = {copied.place.key for copied in plan.copied}
        plan.unread = [one.place for one, *_ in self.entered.copied if one.place.key not in copied_places]
        if look_ups and self.entered.state is not None:
            plan.tables = tables_of(
                recorder, look_ups, plan.copied, self.entered.state._leaf, self.arguments.packed_size
            )

    def _refuse_numpy_integers(self, used: Collection[int]) -> None:
        """Numbers that change are Python's in compiled calls, and would come back as those.

        Args:
            used: the leaves that the step reads.

        Raises:
            PlainCall: it reads or assigns one of numpy's ints where numbers change.
        """
        fields = ((Attribute(thing, f), [x], leaf, False) for f, thing, x, _, leaf in self.entered.fields)
        copies = ((one.place, contents, leaf, one.assigned) for one, contents, _, leaf in self.entered.copied)
        for place, contents, leaf, is_assigned in (*fields, *copies):
            for k, kind in enumerate(map(type, contents)):
                if kind is not float and is_numpy_integer(kind) and (is_assigned or leaf - k in used):
                    raise PlainCall(
                        f"{self.location}: the step uses a numpy.{kind.__name__} in {place.describe()}, and a compiled "
                        "call would leave one of Python's there. Keep int(x)"
                    )


def _of_another_class(place: Place) -> str:
    """What is said of a step that changes elements of a list or dict of another class; empty if none lies there."""
    holder = None if place.is_empty() else type(place.read())
    if holder in (None, list, dict) or not issubclass(holder, (list, dict)):
        return ""
    base = "list" if issubclass(holder, list) else "dict"
    return (
        f"the step changes elements of {place.describe()}, a {holder.__name__}. Of a {base} of another class it is not "
        f"known what that does. Use a {base}, which an object may keep in an attribute"
    )
