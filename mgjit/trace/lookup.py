"""What `table[index]` is when the index is known only at run time, and the table holds more than numbers.

In Python the result is one of the things in the table, not a copy: what is assigned to `table[index][k]`, or to
`wte[token].grad`, is found there afterwards.  So the look-up of a row, or of an object, is a *view*:

1. Reading an element or attribute looks the number up among those that all candidates have there now.
2. Assigning one assigns it in every candidate: the new number in the chosen one, its old number in the others.
3. What is the same in all candidates (an empty tuple, a method) is just that.

4. Objects that the step itself has made, and that differ in anything else than numbers, such as in the operands that
   they were computed from, are refused: a backward pass would take another way for each index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from ..errors import TraceError, user_location
from ..runtime.live import slot
from .functions import is_of_user
from .leaks import TracedView, is_traced_number

Choose = Callable[[list[Any]], Any]
Test = Callable[[int], Any]


def looked_up(
    candidates: Sequence[Any],
    choose: Choose,
    test: Test,
    select: Callable[[Any, Any, Any], Any],
    existed: Callable[[Any], bool],
) -> Any:
    """The candidate that a traced index means.

    Args:
        candidates: the elements of the table.
        choose: picks one of as many numbers.
        test: whether the index is k, as a traced number.
        select: one of two numbers, by such a test.
        existed: whether an object was there before the step.
    """
    return _Index(choose, test, select, existed).of(candidates)


class _Index:
    """One traced index, for everything that it looks up."""

    def __init__(
        self,
        choose: Choose,
        test: Test,
        select: Callable[[Any, Any, Any], Any],
        existed: Callable[[Any], bool],
    ) -> None:
        self._choose, self._test, self._select, self._existed = choose, test, select, existed

    def of(self, candidates: Sequence[Any]) -> Any:
        """The candidate that the index means."""
        first = candidates[0]
        if all(candidate is first for candidate in candidates):
            return first
        if all(map(_is_number, candidates)):
            return self._choose(list(candidates))
        if all(isinstance(candidate, (list, tuple)) for candidate in candidates):
            if len({len(candidate) for candidate in candidates}) > 1:
                raise _refusal("rows of different lengths")
            return Row(self, list(candidates))
        if len(set(map(_class_of, candidates))) > 1:
            raise _refusal("objects of different classes")
        if isinstance(first, FunctionType):
            if all(candidate.__code__ is first.__code__ and not candidate.__closure__ for candidate in candidates):
                return first
            raise _refusal("functions")
        if is_of_user(type(first)):
            return _view_class(_class_of(first))._of(self, list(candidates))
        if all(candidate == first for candidate in candidates):
            return first
        raise _refusal(f"{type(first).__name__} objects")

    def part(self, candidates: list[Any], name: str) -> Any:
        """An attribute of the object that the index means."""
        contents = [getattr(candidate, name) for candidate in candidates]
        simple = all(map(_is_number, contents)) or all(content is contents[0] for content in contents)
        if not simple and any(contents) and not all(map(self._existed, candidates)):
            raise _refusal(f"{type(contents[0]).__name__}s in .{name} of {_class_of(candidates[0]).__name__}s")
        return self.of(contents)

    def assign(self, candidates: list[Any], content: Any, read: Callable[[Any], Any], write: Any) -> None:
        """Assign to a part of the candidate that the index means: the others keep theirs."""
        if not _is_number(content):
            raise TraceError(
                f"{user_location()}: where a traced index points, only numbers can be assigned, not "
                f"{type(content).__name__} objects. Assign their parts, or name the argument in "
                "@mgjit.compile(static=(...))."
            )
        old = [read(candidate) for candidate in candidates]
        if not all(map(_is_number, old)):
            raise _refusal("places that hold other things than numbers")
        for k, (candidate, number) in enumerate(zip(candidates, old)):
            write(candidate, self._select(self._test(k), content, number))


class Row(TracedView):
    """The row of a table that a traced index chooses."""

    __slots__ = ("_candidates", "_index")
    __hash__ = None  # type: ignore[assignment]

    #: For isinstance.
    __class__ = property(lambda self: list if isinstance(self._candidates[0], list) else tuple)

    def __init__(self, index: _Index, candidates: list[Any]) -> None:
        self._index, self._candidates = index, candidates

    def __len__(self) -> int:
        return len(self._candidates[0])

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return self._class()(self[k] for k in range(*position.indices(len(self))))
        if is_traced_number(position):
            return position._look_up(list(self))
        return self._index.of([candidate[position] for candidate in self._candidates])

    def __setitem__(self, position: Any, content: Any) -> None:
        if self._class() is tuple:
            raise TypeError("'tuple' object does not support item assignment")
        if isinstance(position, slice):
            numbers = list(content)
            positions = range(*position.indices(len(self)))
            if len(numbers) != len(positions):
                raise _refusal("rows of different lengths")
            for k, number in zip(positions, numbers):
                self[k] = number
        elif is_traced_number(position):
            old = list(self)
            position._check_index(len(old))
            for k, number in enumerate(old):
                self[k] = self._index._select(position == k, content, number)
        else:
            self._index.assign(
                self._candidates, content, lambda row: row[position], lambda row, new: row.__setitem__(position, new)
            )

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self) - 1, -1, -1))

    def __add__(self, other: Any) -> Any:
        return self.whole() + (other.whole() if isinstance(other, Row) else other)

    def __radd__(self, other: Any) -> Any:
        return other + self.whole()

    def __mul__(self, times: int) -> Any:
        return self.whole() * times

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "<a row that is chosen while a step is traced>"

    def whole(self) -> Any:
        """A list or tuple of the numbers that are there now."""
        return self._class()(self)

    def copy(self) -> list[Any]:
        """As of a list."""
        return list(self)

    def _class(self) -> type:
        return list if isinstance(self._candidates[0], list) else tuple

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise _refusal("rows whose lengths change, or that are compared")

    append = extend = insert = pop = remove = clear = sort = reverse = index = count = _refuse
    __iadd__ = __imul__ = __delitem__ = __eq__ = __ne__ = __contains__ = __lt__ = _refuse


class _ObjectView(TracedView):
    """Base of the views of the user's objects."""

    __slots__ = ()


_view_classes: dict[type, Any] = {}


def _view_class(kind: type) -> Any:
    """The class of views of objects of a class: derived from it, for its methods."""
    if kind not in _view_classes:
        members = {
            "__slots__": ("_mgjit_candidates", "_mgjit_index"),
            "__class__": property(lambda self: kind),
            "__getattribute__": _get,
            "__setattr__": _set,
            "__repr__": lambda self: f"<a {kind.__name__} that is chosen while a step is traced>",
            "_of": staticmethod(lambda index, candidates: _make(_view_classes[kind], index, candidates)),
        }
        _view_classes[kind] = type(kind)(kind.__name__, (_ObjectView, kind), members)
    return _view_classes[kind]


def _make(made: type, index: _Index, candidates: list[Any]) -> Any:
    view: Any = object.__new__(made)
    object.__setattr__(view, "_mgjit_index", index)
    object.__setattr__(view, "_mgjit_candidates", candidates)
    return view


def _get(self: Any, name: str) -> Any:
    candidates = object.__getattribute__(self, "_mgjit_candidates")
    if name in getattr(candidates[0], "__dict__", ()) or slot(_class_of(candidates[0]), name) is not None:
        return object.__getattribute__(self, "_mgjit_index").part(candidates, name)
    return object.__getattribute__(self, name)


def _set(self: Any, name: str, content: Any) -> None:
    descriptor: Any = getattr(type(self), name, None)
    if isinstance(descriptor, property) and descriptor.fset is not None:
        descriptor.fset(self, content)
        return
    candidates = object.__getattribute__(self, "_mgjit_candidates")
    object.__getattribute__(self, "_mgjit_index").assign(
        candidates, content, lambda thing: getattr(thing, name, None), lambda thing, new: setattr(thing, name, new)
    )


def _class_of(thing: Any) -> type:
    """The user's class of an object, also when fields of it live elsewhere."""
    kind = type(thing)
    return getattr(kind, "_mgjit_original", kind)


def _is_number(content: Any) -> bool:
    return type(content) in (float, int, bool) or is_traced_number(content)


def _refusal(what: str) -> TraceError:
    return TraceError(
        f"{user_location()}: a traced index chooses among {what}. Numbers can be looked up, rows of numbers of equal "
        "lengths, and objects that differ only in numbers, such as parameters: not what a step has computed from "
        "others. Choose with a sum over all, weighted with 1.0 and 0.0, or name the argument in "
        "@mgjit.compile(static=(...)) when it has few different values."
    )
