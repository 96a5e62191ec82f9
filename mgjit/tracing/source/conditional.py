"""Conditions on traced numbers: `a if test else b`, `and`, `or`, `a < b < c`, `not`, `if`, and who somebody is.

Python takes one side of a condition, a trace both, and what they compute is selected by the number in the kernel:

1. A test whose sides cannot both be taken (`recorder.decided`) is answered in this trace, and one side runs.
2. Each side runs in turn, as if it were the one that is taken; what it changes is put back before the other
   (untaken.py; for the sides of an `if` sides.py).
3. Results and changes are selected, part by part.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from ...engine.leaks import TracedView, is_numeric, is_traced, is_traced_number
from ...errors import TraceError, user_location
from ..record.current import current_recorder
from ..record.unread import note_read
from ..surroundings.ownership import is_of_user
from .implicit import ANYTHING, NEW, Doing
from .kinds import as_float, type_of
from .sides import ONE_SIDE, both_sides
from .stores import NO_CHANGES, select_changes
from .untaken import Reached, Untaken

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip
_NEVER_TRACED = frozenset({bool, int, tuple, list, str, type(None)})
#: So deep may both sides of conditions be inside of one another, before ints that decide are fixed for the trace.
_DEPTH = 30


def select(condition: Any, chosen: Any, other: Any, are_new: bool = False) -> Any:
    """`chosen if condition else other` of numbers, of lists, tuples and dicts of equal structure, and of nodes.

    Args:
        are_new: whether nothing else means these two.
    """
    if chosen is other:
        return chosen
    if is_numeric(type(chosen)) and is_numeric(type(other)):
        return condition._select(condition, chosen, other)
    if type(chosen) is dict and type(other) is dict and list(chosen) == list(other):

        def make() -> Any:
            return {key: select(condition, part, other[key]) for key, part in chosen.items()}

        return make() if are_new else condition._recorder.selections.made_of(condition, chosen, other, make)
    if type(chosen) in (list, tuple) and type(chosen) is type(other) and len(chosen) == len(other):

        def made() -> Any:
            return type(chosen)(select(condition, a, b) for a, b in zip(chosen, other))

        is_new = are_new or type(chosen) is tuple
        return made() if is_new else condition._recorder.selections.made_of(condition, chosen, other, made)
    if not all(isinstance(x, (int, float)) or hasattr(x, "_select") for x in (chosen, other)):
        if is_of_user(type_of(chosen)) and hasattr(condition, "_choose_object"):
            return condition._choose_object(chosen, other)
        raise TraceError(
            f"{user_location()}: which of two objects is meant ({type(chosen).__name__}, {type(other).__name__}) "
            "depends on a traced number. Only numbers, Values, and lists of them can be selected; compute both, "
            "and select the numbers."
        )
    return condition._select(condition, chosen, other)


def choose(test: Any, chosen: Callable[[], Any], other: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`chosen if test else other`.

    Args:
        does: what both do (implicit.py).
    """
    if type(test) is bool or not is_traced_number(test):
        return chosen() if test else other()
    decided = _decided(test, sys._getframe(1))
    if decided is not None:
        return chosen() if decided else other()
    with _BothSides(test):
        with Untaken(test._recorder, does, Reached.by(chosen, other)) as side:
            first = chosen()
            changes = side.put_back()
            side.begin()
            second = other()
        select_changes(test, changes, side.changes, select)
        return _selected(test, select(test, first, second, NEW in does))


def _decided(test: Any, frame: FrameType) -> bool | None:
    """What a test of a frame's code is in this call, if both of its sides cannot be computed.

    Otherwise None, and the place is known to be under way until `_selected` is called.
    """
    recorder = test._recorder
    if recorder.answers is None:
        return None
    site = frame.f_code.co_filename, frame.f_lineno
    answer: bool | None = test._truth() if site in recorder.decided else None
    if answer is None:
        recorder.under_way.append(site)
    return answer


def _selected(test: Any, result: Any) -> Any:
    """The result of both sides of a test, which have been computed."""
    if test._recorder.answers is not None:
        test._recorder.under_way.pop()
    return result


def _with_rest(
    test: Any, rest: Callable[[], Any], does: Doing, reached: Reached, frame: FrameType, if_true: bool
) -> Any:
    """`test and rest()`, or `test or rest()`, of a traced number.

    Args:
        does, reached: what the rest does, and what it can reach.
        frame: of the code that asks.
        if_true: whether the rest is asked for where the test is true.
    """
    decided = _decided(test, frame)
    if decided is not None:
        return rest() if decided is if_true else test
    with Untaken(test._recorder, does, reached) as side:
        content = rest()
    if if_true:
        select_changes(test, side.changes, NO_CHANGES, select)
        return _selected(test, select(test, content, test))
    select_changes(test, NO_CHANGES, side.changes, select)
    return _selected(test, select(test, test, content))


class _BothSides:
    """Both sides of a condition are computed inside, which has no end where a function calls itself there."""

    def __init__(self, test: Any) -> None:
        self._test, self._recorder = test, test._recorder

    def __enter__(self) -> None:
        if self._recorder.conditions >= _DEPTH:
            self._test._fix(True)
        self._recorder.conditions += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._recorder.conditions -= 1
        if kind is RecursionError and not self._recorder.conditions:
            raise TraceError(
                f"{user_location()}: both sides of a condition on a traced number are computed, and a function calls "
                "itself there without end. Let an int argument of the step decide when it ends, or write a loop."
            ) from None


def sides(test: Any, text: str, *others: Any) -> Iterable[Any]:
    """The sides of an `if` that can be taken both ways: both when the test is traced; `others`: see `both_sides`."""
    if type(test) in _NEVER_TRACED or not is_traced_number(test):
        return ONE_SIDE[bool(truth(test, text, "if"))]
    test._fix(False)
    decided = _decided(test, sys._getframe(1))
    return _sides_inside(test, *others) if decided is None else ONE_SIDE[decided]


def _sides_inside(test: Any, *others: Any) -> Iterator[Any]:
    with _BothSides(test):
        yield from both_sides(test, select, *others)
    _selected(test, None)


def compared(
    first: Any, operators: Sequence[str], does: Doing, later: Callable[[], Any], *others: Callable[[], Any]
) -> Any:
    """`first < second < third`, with each of them evaluated once, and no further than in Python."""
    second = later()
    result = _COMPARISONS[operators[0]](first, second)
    if not others:
        return result
    if type(result) is bool or not is_traced_number(result):
        return result and compared(second, operators[1:], does, *others)

    def rest() -> Any:
        return compared(second, operators[1:], does, *others)

    return _with_rest(result, rest, does, Reached.by(*others), sys._getframe(1), True)


def both(first: Any, second: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`first and second`."""
    if type(first) is bool or not is_traced_number(first):
        return first and second()
    return _with_rest(first, second, does, Reached.by(second), sys._getframe(1), True)


def either(first: Any, second: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`first or second`."""
    if type(first) is bool or not is_traced_number(first):
        return first or second()
    return _with_rest(first, second, does, Reached.by(second), sys._getframe(1), False)


def negation(operand: Any) -> Any:
    """`not operand`."""
    return as_float(operand) == 0 if is_traced_number(operand) else not operand


def truth(test: Any, text: str, statement: str) -> Any:
    """The test of an `if`, `while` or `assert`."""
    if type(test) not in _NEVER_TRACED and is_traced(test) and not issubclass(type(test), TracedView):
        if is_traced_number(test):
            test._fix(False)
            answer = test._truth()
            if answer is not None:
                return answer
        raise TraceError(
            f"{user_location()}: `{statement} {text}` asks for a number that is known only when the compiled step "
            "runs. Write a conditional expression (`a if test else b`, mgjit.where, max, min), which is computed both "
            "ways, or pass what decides as an argument that @mgjit.compile(static=(...)) names."
        )
    return test


def is_none(thing: Any) -> bool:
    """`thing is None`."""
    note_read(thing)
    return thing is None


def is_some(thing: Any) -> bool:
    """`thing is not None`."""
    note_read(thing)
    return thing is not None


def same(one: Any, other: Any) -> bool:
    """`one is other`."""
    note_read(one)
    note_read(other)
    recorder = current_recorder()
    if recorder is not None:
        recorder.selections.refuse_identity(one, other)
    return one is other if recorder is None or recorder.same is None else recorder.same(one, other)


def different(one: Any, other: Any) -> bool:
    """`one is not other`."""
    return not same(one, other)


_COMPARISONS.update(Is=same, IsNot=different)


def identity(thing: Any) -> int:
    """`id(thing)`."""
    note_read(thing)
    recorder = current_recorder()
    if recorder is not None:
        recorder.selections.refuse_identity(thing)
    return id(thing) if recorder is None or recorder.same is None else recorder.same.identity(thing)
