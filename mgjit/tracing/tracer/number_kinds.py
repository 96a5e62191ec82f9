"""Ints and floats among the numbers around a trace: which of them can be seen, and how large ints may be.

A kernel's memory holds floats.  That is exact for ints up to a limit, and cannot be told from outside as long as an int
is given back as an int.  So for each copied number it is found out

1. whether it is a number in all objects, so that it can live in memory;
2. whether its kind can be seen at all, in a result or in the user's objects (record/visible.py): then the number must
   have the same kind in every call, or is one of two kinds at run time (record/mixed.py);
3. how large an int may be for all that is computed from it to be exact (record/integers.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...engine.leaks import is_traced
from ...engine.numeric import is_number
from ...ir import opcodes as ops
from ...memory.live import Field, Home, original_class
from ..autograd.node_class import node_class, was_tried
from ..call.plan import ArgumentPlan
from ..copies.copies import Copied
from ..record.integers import IntegerLimit
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..record.visible import visible_types
from ..surroundings.places import Attribute, Place
from ..surroundings.shapes import contents_of
from .knowledge import Again, Knowledge

#: A field in the kernel's memory: how it is read, its object, what was there, the traced number, and its leaf.
EnteredField = tuple[Field, Any, Any, Any, int]
#: A copied number or list: what was there, the traced numbers, and the leaf of the first.
EnteredCopy = tuple[Copied, list[Any], list[Any], int]


def pairs(things: list[Any], fields: list[Field]) -> list[tuple[Field, ...]]:
    """Fields that can live in memory, two by two: data and gradient, then others that hold numbers in all objects."""
    numbers = [f for f in fields[2:] if all(map(_is_number_or_home, contents_of(f, things)))]
    fields[2:] = [*numbers, *(f for f in fields[2:] if f not in numbers)]
    live = [*fields[:2], *numbers]
    return [tuple(live[k : k + 2]) for k in range(0, len(live), 2)]


def _is_number_or_home(content: Any) -> bool:
    return is_number(content) or type(content) is Home


def see(
    copies: Sequence[EnteredCopy],
    stores: Sequence[tuple[int, Any]],
    recorder: Recorder,
    types: TracedTypes,
    plan: ArgumentPlan,
) -> Iterator[Place]:
    """Note where an int in place of a float would be seen; yields places where ints and floats take turns."""
    kinds = {
        leaf - k: None if copied.mixed else int if isinstance(content, int) else float
        for copied, contents, _, leaf in copies
        for k, content in enumerate(contents)
    }
    if not any(kind is float for kind in kinds.values()):
        return

    def may_be_integer(leaf: int) -> bool:
        if ops.leaf_kind(leaf) == ops.INPUT:
            return plan.bound_of_input(ops.leaf_index(leaf)) != 0
        return leaf in kinds

    seen = [*recorder.returned, *recorder.asked_types]
    seen += [types.number_operand(number) for leaf, number in stores if leaf in kinds]
    has_puts = max(recorder.op, default=0) >= ops.PUT
    puts = [k for k, code in enumerate(recorder.op) if code >= ops.PUT] if has_puts else []
    # Afterwards, there is what was there, or what was put.
    seen += [recorder.b[k] for k in puts]
    for first, code in {(recorder.a[k], recorder.op[k]) for k in puts}:
        seen += recorder.elements(first, code)
    if puts:  # there may be stores in front of them
        seen += [b for code, a, b in zip(recorder.op, recorder.a, recorder.b) if code == ops.STORE and a in kinds]
    visible = visible_types(recorder, seen, may_be_integer)
    if not visible:
        return
    for copied, contents, _, leaf in copies:
        floats, integers = (
            {copied.offset + k for k in range(len(contents)) if leaf - k in visible and kinds[leaf - k] is kind}
            for kind in (float, int)
        )
        copied.given_floats = frozenset(floats)
        if copied.assigned and (floats & copied.integers or integers - copied.integers):
            yield copied.place


def bounds(fields: Sequence[EnteredField], copies: Sequence[EnteredCopy]) -> dict[int, int | None]:
    """By leaf, how large the int in it can be; None where its limit decides.  Leaves without an int are left out."""
    found: dict[int, int | None] = {leaf: abs(x) for _, _, x, _, leaf in fields if isinstance(x, int)}
    for copied, contents, _, start in copies:
        found.update((start - k, None) for k, x in enumerate(contents) if copied.mixed or isinstance(x, int))
    return found


def limit(copies: Sequence[EnteredCopy], integers: IntegerLimit) -> None:
    """Note how large the ints may be that are copied in."""
    for copied, contents, _, leaf in copies:
        if not integers.leaves.isdisjoint(range(leaf - len(contents) + 1, leaf + 1)):
            copied.limit = min(copied.limit, integers.limit)


def learn_whole(fields: Sequence[EnteredField], contents: Sequence[Any], knowledge: Knowledge) -> None:
    """Ints that stay ints are copied in and out; only what becomes a float, or is the data of a node, is memory.

    Args:
        contents: what the fields hold now.

    Raises:
        Again: there are such ints, in fields of which that was not known.
    """
    found: set[Any] = set()
    for (f, thing, content, _, _), new in zip(fields, contents):
        if isinstance(content, int):
            (found if isinstance(new, int) else knowledge.floats).add(Attribute(thing, f).kind)
    for kind in {original_class(type(thing)) for _, thing, *_ in fields} if found else ():
        known = node_class(kind) if was_tried(kind) else None
        found -= set() if known is None else {(kind, known.data.name), (kind, known.gradient.name)}
    if not found <= knowledge.whole:
        knowledge.whole |= found
        raise Again


def note_moved_integers(
    fields: Sequence[EnteredField],
    contents: Sequence[Any],
    copies: Sequence[EnteredCopy],
    recorder: Recorder,
    types: TracedTypes,
) -> None:
    """An int that is assigned to another place, as it is, makes that an int: `self.before = self.now`.

    Args:
        contents: what the fields hold now.
    """
    changed = [new for new, (_, _, _, number, _) in zip(contents, fields) if new is not number]
    for copied, _, numbers, _ in copies:
        content = copied.place.read()
        elements = content if copied.size and type(content) is list else [content]
        changed += [new for new, number in zip(elements, numbers) if new is not number]
    unusual = (new for new in changed if type(new) is not types.number)  # of others it is known that they are no ints
    moved = [new for new in unusual if is_traced(new) and isinstance(new, int)]
    recorder.used_as_integers.update(map(types.number_operand, moved))
