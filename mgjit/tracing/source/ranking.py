"""Which of several numbers is the greatest, and in which order they are: `max`, `min`, `sorted`, `any`, `all`.

The greatest number itself is computed from traced ones.  Which of them it is, or in which order they are, decides what
the step does next, so that the trace is told (record/answers.py), if anybody can.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ...engine.leaks import TracedView, is_traced, is_traced_number
from ...errors import TraceError, user_location
from ..record.current import current_recorder
from .conditional import both, either
from .implicit import ANYTHING
from .kinds import as_float, has_traced
from .untaken import Reached, Untaken


def extreme(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """`max` or `min`."""

    def function(*arguments: Any, **options: Any) -> Any:
        items = list(arguments[0]) if len(arguments) == 1 else list(arguments)
        key = options.get("key")
        if items and key is not None:
            keys = _keys(items, key)
            found = _told(keys, name, lambda answers, operands: answers.greatest(operands, name == "min"))
            return items[original(range(len(items)), key=keys.__getitem__) if found is None else found]
        if not any(map(is_traced, items)):
            return original(items, **options) if items or "default" in options else original(*arguments, **options)
        best = items[0]
        for item in items[1:]:
            if is_traced(best) or is_traced(item):
                traced = best if is_traced(best) else item._lifted(best)
                best = getattr(traced, "maximum" if name == "max" else "minimum")(item)
            else:
                best = original(best, item)
        return best

    return function


def quantifier(original: Callable[[Any], bool], decisive: bool) -> Callable[[Any], Any]:
    """`any` or `all`, of which one element that is `decisive` decides."""

    def function(iterable: Any) -> Any:
        items = iter(iterable)
        for item in items:
            if is_traced_number(item):
                return _with_rest(as_float(item) != 0, iterable, items, sys._getframe(1))
            if original((item,)) is decisive:
                return decisive
        return not decisive

    def _with_rest(result: Any, iterable: Any, items: Iterator[Any], caller: FrameType) -> Any:
        """The result with the later elements, which Python may not ask for: the traced one before may decide."""
        if type(iterable) in (list, tuple) or not is_traced(result):
            return _rest(result, items)
        with Untaken(result._recorder, ANYTHING, Reached.by_iterating(iterable, caller)) as side:
            result = _rest(result, items)
        side.refuse_changes()
        return result

    def _rest(result: Any, items: Iterator[Any]) -> Any:
        for item in items:
            if is_traced_number(item):
                result = (either if decisive else both)(result, _given(as_float(item) != 0))
            elif original((item,)) is decisive:
                return decisive
        return result

    return function


def _given(thing: Any) -> Callable[[], Any]:
    return lambda: thing


def _keys(items: list[Any], key: Callable[[Any], Any] | None) -> list[Any]:
    """What decides about the order of items."""
    keys = items if key is None else list(map(key, items))
    for number in filter(is_traced_number, keys):
        number._fix(False)
    return keys


def _told(keys: list[Any], name: str, ask: Callable[[Any, list[int]], Any]) -> Any:
    """What `ask` says about the order of numbers, which are records; None where Python can see it for itself.

    Raises:
        TraceError: nobody can.
    """
    traced = next(filter(is_traced, keys), None)
    recorder = current_recorder()
    answers = None if recorder is None else recorder.answers
    if recorder is not None and traced is not None and answers is not None and all(map(_is_number_or_value, keys)):
        found = ask(answers, [key._leaf if is_traced(key) else recorder.constant(key) for key in keys])
        if found is not None:
            return found
    elif answers is not None:  # of tuples with numbers in them, Python asks for each number that it needs
        return None
    if any(map(has_traced, keys)):
        raise TraceError(
            f"{user_location()}: {name}() asks which of several traced numbers is greater, and all else in the step "
            "may depend on that. Return the numbers, and choose or sort outside of the step; the greatest and the "
            "least number themselves are max(xs) and min(xs)."
        )
    return None


def _is_number_or_value(key: Any) -> bool:
    return isinstance(key, (int, float)) or (is_traced(key) and not issubclass(type(key), TracedView))


def sorted_of(iterable: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """`sorted(xs)`."""
    items = list(iterable)
    keys = _keys(items, key)
    found = _told(keys, "sorted", lambda answers, operands: answers.order(operands, bool(reverse)))
    if found is None:
        found = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
    return [items[k] for k in found]
