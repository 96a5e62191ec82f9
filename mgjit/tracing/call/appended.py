"""Lists among the arguments to whose ends a frozen step appends, such as the keys and values of a language model.

1. After a trace, a list that is longer than before, and begins as before, has a tail.  The tails are results of the
   call, and the stand-ins become as long as they were.
2. After a call, the tails are built of its outputs, as floats, and all lists are extended by one call into C.

A list that is longer at the next call is another structure of the arguments, hence another kernel.

Of a list around any step, to which it only appends (record/log.py), nothing is seen but that.  What it appends is part
of the result, since the step may return the same objects.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import ArgumentError, user_location
from .contents import contents
from .given import GivenPath
from .results import ResultTree


class Tail(NamedTuple):
    """What is appended to a list: where the list is, and how the new elements are built."""

    path: GivenPath
    parts: ResultTree


def take_tails(before: Sequence[Any], given: Sequence[Any]) -> list[tuple[GivenPath, list[Any]]]:
    """Cut off what the step has appended to its arguments; returns it, with the lists to which it belongs.

    Args:
        before: the contents of the arguments before the step.
        given: the arguments that the step got, which are changed.
    """
    found: list[tuple[GivenPath, list[Any]]] = []
    for number, (old, thing) in enumerate(zip(before, given)):
        _take(old, thing, GivenPath(number, ()), found)
    return found


def _take(before: Any, thing: Any, path: GivenPath, found: list[tuple[GivenPath, list[Any]]]) -> None:
    now = contents(thing)
    if now == before or not hasattr(before, "__len__"):
        return
    count = len(before)
    if type(thing) is list and len(thing) > count and contents(thing[:count]) == before:
        found.append((path, thing[count:]))
        del thing[count:]
    elif type(thing) in (list, tuple) and len(thing) == count and isinstance(before, tuple):
        for k, (old, part) in enumerate(zip(before, thing)):
            _take(old, part, GivenPath(path.argument, (*path.steps, (False, k))), found)
    elif type(thing) is dict and len(thing) == count:
        for (_, old), (key, part) in zip(before, thing.items()):
            _take(old, part, GivenPath(path.argument, (*path.steps, (False, key))), found)


class AppendingResult(ResultTree):
    """The result of a call that also appends to lists among its arguments.

    Args:
        result: what it returns.
        tails: what it appends.
    """

    def __init__(self, result: ResultTree, tails: Sequence[Tail]) -> None:
        self.result, self.tails = result, tails

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        lists = [tail.path.find(arguments) for tail in self.tails]
        if len(set(map(id, lists))) < len(lists):
            raise ArgumentError(
                f"{user_location()}: two of the lists to which the step appends are one list. Make one for each, as in "
                "[[] for _ in range(n)]."
            )
        parts = [tail.parts(outputs, arguments) for tail in self.tails]
        result = self.result(outputs, arguments)
        deque(map(list.extend, lists, parts), maxlen=0)  # one call into C, which no signal interrupts
        return result

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(self)}({outputs}, ({''.join(f'{name}, ' for name in names)}))"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return self.result.columns(outputs, width, rows)


class LoggingResult(ResultTree):
    """The result of a call that also appends to lists around the step.

    Args:
        tree: of a tuple: what the call returns, and a list for each log of what it appends.
        logs: these lists.
    """

    def __init__(self, tree: ResultTree, logs: Sequence[list[Any]]) -> None:
        self.tree, self.logs = tree, logs

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        result, *parts = self.tree(outputs, arguments)
        deque(map(list.extend, self.logs, parts), maxlen=0)
        return result

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(self)}({outputs}, ({''.join(f'{name}, ' for name in names)}))"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return self.tree.columns(outputs, width, rows)[0]
