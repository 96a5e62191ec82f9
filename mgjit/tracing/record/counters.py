"""Counters that number the nodes of a graph, such as `Value.count += 1` in `__init__`.

Such numbers are sorted, compared and used as keys while the step is traced, and only their order matters.  So a counter
can have a concrete value during a trace, as long as only its growth is observed:

1. Adding ints gives a later number; numbers of one counter can be compared, subtracted, and used as keys.
2. Comparing one with an int that is not above the counter's start has the same result in every call.
3. Anything else needs the value itself: `used` is called, and the step is traced again, with a traced number instead.
"""

from __future__ import annotations

import operator
from typing import Any, Callable


class Counted:
    """A number given out by a counter.

    Args:
        start: the value of the counter when the call begins.
        value: of this number, in the call that is traced.
        used: called when the value itself is needed.
    """

    __slots__ = ("_start", "_used", "value")

    #: For isinstance.
    __class__ = property(lambda self: int)

    def __init__(self, start: int, value: int, used: Callable[[], None]) -> None:
        self._start, self.value, self._used = start, value, used

    def growth(self) -> int:
        """How far the counter has grown since the start of the call."""
        return self.value - self._start

    def is_of(self, counter: Any) -> bool:
        """Whether another number is from the same counter."""
        return type(counter) is Counted and counter._used is self._used

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        self._used()
        return self.value


def _grown(operation: Callable[[int, int], int], always: bool) -> Callable[[Counted, Any], Any]:
    def method(self: Counted, other: Any) -> Any:
        if type(other) is int and operation(0, other) >= 0 and self.growth() >= 0:
            return Counted(self._start, operation(self.value, other), self._used)
        if not always and self.is_of(other):
            return operation(self.value, other.value)
        return _plain(operation)(self, other)

    return method


def _compared(operation: Callable[[Any, Any], bool]) -> Callable[[Counted, Any], Any]:
    def method(self: Counted, other: Any) -> Any:
        if self.is_of(other):
            return operation(self.value, other.value)
        if type(other) is int and other <= self._start and self.growth() > 0:
            return operation(self.value, other)
        return _plain(operation)(self, other)

    return method


def _plain(operation: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Counted, *others: Any) -> Any:
        self._used()
        return operation(self.value, *(other.value if type(other) is Counted else other for other in others))

    return method


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Counted, Any], Any]:
    return _plain(lambda mine, theirs: operation(theirs, mine))


for _name in ("mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    _special = _name.rstrip("_")
    setattr(Counted, f"__{_special}__", _plain(getattr(operator, _name)))
    setattr(Counted, f"__r{_special}__", _reflected(getattr(operator, _name)))
for _name, _function in (
    ("neg", operator.neg), ("pos", operator.pos), ("abs", abs), ("invert", operator.invert), ("bool", bool),
    ("int", int), ("float", float), ("str", str), ("repr", repr), ("format", format), ("round", round),
):  # fmt: skip
    setattr(Counted, f"__{_name}__", _plain(_function))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Counted, f"__{_name}__", _compared(getattr(operator, _name)))
setattr(Counted, "__add__", _grown(operator.add, always=True))  # noqa: B010 - as the others
setattr(Counted, "__radd__", _grown(operator.add, always=True))  # noqa: B010
setattr(Counted, "__sub__", _grown(operator.sub, always=False))  # noqa: B010
setattr(Counted, "__rsub__", _reflected(operator.sub))  # noqa: B010
