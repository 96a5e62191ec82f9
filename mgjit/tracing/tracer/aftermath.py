"""What a step has done besides computing: everything around it is compared with what it was before the trace.

1. A module that was loaded is forgotten: the next trace finds it in the survey.
2. A number in place of another one is memory after all, and so is a traced number in place of None: trace again.
3. A traced object where something else was, or added to a container, cannot be repeated by a kernel: a LeakError.
4. Anything else (a new attribute, a flag, a log) is Python's to do: the call runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.leaks import NewStructure, holds_traced, is_traced_number
from ...engine.numeric import is_number
from ...memory.live import original_class
from ..autograd.node_class import node_class, was_tried
from ..record.recorder import Recorder
from ..surroundings.before import Change
from ..surroundings.places import Attribute, Place
from ..surroundings.shapes import MISSING
from ..surroundings.survey import Survey
from .building import learn
from .knowledge import Again, Knowledge

#: So many places are named in a message.
_MOST_NAMED = 4


def look_around(
    survey: Survey,
    knowledge: Knowledge,
    recorder: Recorder,
    advanced: Sequence[Place],
    leak: Callable[[Place, Any], BaseException],
) -> None:
    """Compare everything that the survey has met; the numbers that are memory have been put back.

    Args:
        advanced: where iterators lie that have gone on.
        leak: makes the error for something traced that is kept at a place.

    Raises:
        Again: a place is memory after all.
        LeakError: something traced is kept where it cannot stay.
        NewStructure: Python has to do what the step does there.
    """
    loaded = survey.before.unload_new_modules()
    if loaded:
        raise NewStructure(f"the step loads the module {loaded[0]}")
    changes = survey.before.changes()
    made = set(map(id, recorder.local_values))
    learned = [_learns(knowledge, change) for change in changes]
    if any(learned) or learn(changes, knowledge, survey):
        raise Again
    for change in changes:
        for part in change.now if change.is_growth else [change.now]:
            is_kept = change.is_growth or (change.before is not MISSING and not are_numbers(part))
            if is_kept and holds_traced(part, survey.knows, made):
                raise leak(change.place, part)
    places = [*(change.place for change in changes), *advanced]
    if places:
        texts = list(dict.fromkeys(place.describe() for place in places))[:_MOST_NAMED]
        raise NewStructure(f"the step changes {', '.join(texts)} besides numbers that were there before")


def _learns(knowledge: Knowledge, change: Change) -> bool:
    """Note that a place holds a number that the step changes; whether that is new."""
    place = change.place
    if change.before is None and _is_gradient(place) and is_traced_number(change.now):
        is_new = place.kind not in knowledge.gradients
        knowledge.gradients.add(place.kind)
        return is_new
    if not is_number(change.before) or not isinstance(change.now, (int, float)) or isinstance(change.now, bool):
        return False
    key = place.kind if isinstance(place, Attribute) else place.key
    keys = {key, ("list", id(change.holder))} if type(change.holder) is list else {key}
    is_new = not keys <= knowledge.variable
    knowledge.variable |= keys
    return is_new


def _is_gradient(place: Place) -> bool:
    """Whether a place may be that of a gradient, which is None until a backward pass has been there."""
    if not isinstance(place, Attribute):
        return False
    kind = original_class(type(place.holder))
    known = node_class(kind) if was_tried(kind) else None
    return hasattr(kind, "backward") if known is None else place.name == known.gradient.name


def are_numbers(thing: Any) -> bool:
    """Whether something is a number, or a list or tuple of numbers: Python can keep those."""
    if isinstance(thing, (list, tuple)):
        return all(map(are_numbers, thing))
    return is_traced_number(thing) or isinstance(thing, (int, float))
