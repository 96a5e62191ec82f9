"""Find the first difference, bit for bit, between what plain Python and a kernel leave behind.

1. Holders are compared entry by entry.  Entries that exist after only one of the two runs are a change of structure,
   which the guards of the next call notice.
2. Numbers are equal if their types and bits are; a nan equals a nan.  A `Result` or a Value counts as the float that it
   holds, and numpy's numbers count as plain ones.
3. Containers and objects that were replaced are compared by their contents.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ..base.lookup import has
from ..engine.value import Value
from ..memory.live import original_class
from ..tensor.tensor import Tensor
from ..tracing.surroundings.shapes import MISSING, attributes
from .holders import ATOMS, Holder


class Difference(NamedTuple):
    """A number that differs."""

    place: str
    plain: Any
    compiled: Any

    def __str__(self) -> str:
        return f"{self.place} is {shown(self.plain)} in plain Python, and {shown(self.compiled)} in the compiled step"


def shown(number: Any) -> str:
    """A number in decimal and hexadecimal."""
    return f"{number!r} ({float(number).hex()})" if type(number) is float else f"{number!r:.200}"


def first_difference(
    holders: Sequence[Holder],
    plain: Sequence[Any],
    compiled: Sequence[Any],
    before: Sequence[Any] = (),
    are_chosen: bool = False,
) -> Difference | None:
    """The first number that differs between what plain Python and the kernel have left.

    Args:
        before: what was there before the call.
        are_chosen: whether an int may be the float of the same value, because a test decides between the two; not
            where an int was before.
    """
    for holder, ours, theirs, old in zip_longest(holders, plain, compiled, before):
        if _are_identical(ours, theirs):
            continue  # as most often
        now = holder.entries(theirs)
        then = holder.entries(old) if are_chosen and old is not None else {}
        for name, content in holder.entries(ours).items():
            other = now.get(name, MISSING)
            if other is not content and other is not MISSING and content is not MISSING:
                found = next(differences(content, other, are_chosen and type(then.get(name)) is not int), None)
                if found is not None:
                    return Difference(holder.describe(name) + found.place, found.plain, found.compiled)
    return None


def _are_identical(ours: Any, theirs: Any) -> bool:
    if type(ours) in (list, tuple) and len(ours) == len(theirs) and all(map(operator.is_, ours, theirs)):
        return True
    is_memory = type(ours) is bytes or (type(ours) is tuple and {*map(type, ours)} <= {bytes})
    return is_memory and bool(ours == theirs)


def differences(
    plain: Any, compiled: Any, are_chosen: bool = False, place: str = "", is_result: bool = False
) -> Iterator[Difference]:
    """The differences between two things that are meant to be the same.

    Args:
        place: their name, for messages.
        is_result: whether lengths and keys are compared as well.
    """
    pending = [(plain, compiled, place)]
    seen: set[tuple[int, int]] = set()
    while pending:
        plain, compiled, place = pending.pop()
        one, other = _atom(plain), _atom(compiled)
        if one is not MISSING and other is not MISSING:
            if not is_same(one, other) and not (are_chosen and type(one) is int and one == other):
                yield Difference(place, one, other)
        elif plain is not compiled and (id(plain), id(compiled)) not in seen:
            seen.add((id(plain), id(compiled)))
            if is_result and _outline(plain) != _outline(compiled):
                yield Difference(place, *map(_outline, (plain, compiled)))
            pending += reversed(list(_parts(plain, compiled, place)))


def _parts(plain: Any, compiled: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """The parts of containers, or of objects of one class, side by side."""
    if isinstance(plain, (list, tuple)) and isinstance(compiled, (list, tuple)):
        if len(plain) == len(compiled):
            yield from ((one, other, f"{place}[{k}]") for k, (one, other) in enumerate(zip(plain, compiled)))
    elif isinstance(plain, Tensor) and isinstance(compiled, Tensor):
        for part in ("shape", "dtype", "tolist"):
            ours, theirs = getattr(plain, part), getattr(compiled, part)
            yield (ours(), theirs(), place) if part == "tolist" else (str(ours), str(theirs), f"{place}.{part}")
    elif isinstance(plain, dict) and isinstance(compiled, dict):
        yield from ((plain[key], compiled[key], f"{place}[{key!r}]") for key in plain if key in compiled)
    elif _kind(plain) is _kind(compiled):
        ours, theirs = attributes(plain), attributes(compiled)
        for name in ours:
            # References in a result are empty, because the graph exists only during the call.
            if name in theirs and (_atom(theirs[name]) is not MISSING or theirs[name]):
                yield ours[name], theirs[name], f"{place}.{name}"


def _outline(thing: Any) -> Any:
    """The type and size of a container, or the name of a class."""
    if isinstance(thing, (list, tuple)):
        return f"a sequence of length {len(thing)}"
    return f"a dict with keys {list(thing)!r:.200}" if isinstance(thing, dict) else f"a {_kind(thing).__name__}"


def _kind(thing: Any) -> type:
    return original_class(type(thing))


def _atom(thing: Any) -> Any:
    """A thing that can be compared directly (as a plain number if it is one); MISSING for anything else."""
    if type(thing) in ATOMS:
        return thing
    if isinstance(thing, Value):
        return thing.data
    if isinstance(thing, float):
        return float(thing)
    if isinstance(thing, int):
        return int(thing)
    if has(thing, "shape") and has(thing, "item") and thing.shape == ():
        return thing.item()
    return MISSING


def is_same(one: Any, other: Any) -> bool:
    """Whether two atoms are the same, bit for bit."""
    if type(one) is complex and type(other) is float:  # of a negative number to a power: a nan in compiled arithmetic
        return other != other
    if type(one) is not type(other):
        return False
    if type(one) is float:
        return struct.pack("<d", one) == struct.pack("<d", other) or (one != one and other != other)
    return bool(one == other)
