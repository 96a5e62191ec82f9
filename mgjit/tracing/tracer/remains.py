"""What a trace leaves behind where the survey does not reach: found by looking at what is alive, and taken out.

The survey puts back all that it knows.  Beyond it are objects that nothing in Python can look into from where the step
begins, such as a queue of a C library.  So when everything has been put back, no instance of the classes of the trace
may be alive:

1. On CPython each instance holds its class, so counting references to the classes tells at once; what is left may be
   garbage in cycles, which a collection of the youngest objects removes.
2. What is still there is looked for among all objects.  Whoever refers to it gets the number back that it stood for, or
   None, and a LeakError says where.

PyPy counts no references: there, the survey has to do.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from types import CellType, FrameType, FunctionType
from typing import Any

from ...base.ffi import PYPY
from ...base.lookup import package_of
from ...errors import LeakError


def family(*classes: type) -> list[type]:
    """Classes with all that are derived from them."""
    return [cls for base in classes for cls in (base, *family(*base.__subclasses__()))]


def references(classes: list[type]) -> list[int]:
    """How many references there are to each class, its instances among them; empty on PyPy."""
    return [] if PYPY else [sys.getrefcount(cls) for cls in classes]


def refuse_remains(classes: list[type], before: list[int], numbers: Mapping[int, Any], location: str) -> None:
    """Raise a LeakError when an instance of these classes is alive; it is taken out where it was found.

    Args:
        before: what `references` said when there were none.
        numbers: by leaf, what was there before the trace.
        location: of the step, for the message.
    """
    if not before or _none_alive(classes, before):
        return
    gc.collect(0)
    if _none_alive(classes, before):
        return
    gc.collect()
    found = [thing for thing in gc.get_objects() if type(thing) in classes]
    places = [text for thing in found for text in _taken_out(thing, found, numbers)]
    if places:
        raise LeakError(
            f"{location}: the step leaves a traced value in {', '.join(dict.fromkeys(places[:3]))}, which cannot be "
            "looked into and put back. Values of a trace live only while the step is being traced: return the number "
            "and keep it outside of the step."
        )


def _none_alive(classes: list[type], before: list[int]) -> bool:
    return all(now <= then for now, then in zip(references(classes), before))


def _taken_out(thing: Any, found: list[Any], numbers: Mapping[int, Any]) -> list[str]:
    """Replace an object wherever it is referred to; returns where that was, in words."""
    leaf = getattr(thing, "_operand", None)
    number = numbers.get(leaf if isinstance(leaf, int) else getattr(thing, "_leaf", 0))
    places = []
    for holder in gc.get_referrers(thing):
        if holder is found or isinstance(holder, FrameType) or _is_ours(holder):
            continue
        if isinstance(holder, dict):
            places += _taken_out_of_dict(holder, thing, number)
        elif isinstance(holder, list):
            _take_out_of_list(holder, thing, number)
            places.append("a list")
        elif isinstance(holder, set):
            holder.discard(thing)
            places.append("a set")
        elif isinstance(holder, CellType):
            holder.cell_contents = number
            places.append("a variable of an enclosing function")
        else:
            places.append(f"a {type(holder).__name__}")
    return places


# No function here has an inner one that names `thing`: its variable would be one more place where it is found.


def _taken_out_of_dict(entries: dict[Any, Any], thing: Any, number: Any) -> list[str]:
    names = []
    for name, content in dict.copy(entries).items():
        if content is thing:
            names.append(f"an entry {name!r}")
            if number is None:
                del entries[name]
            else:
                entries[name] = number
    return names


def _take_out_of_list(parts: list[Any], thing: Any, number: Any) -> None:
    for index in range(len(parts)):  # which keeps its length: it may be a part of an object of C
        if parts[index] is thing:
            parts[index] = number


def _is_ours(holder: Any) -> bool:
    """Whether something belongs to the recording itself."""
    return package_of(holder if isinstance(holder, FunctionType) else type(holder)) == "mgjit"
