"""The iterations of a loop that are still to come, as columns: many of them are one call if the whole body is a step.

    for u, i, r in ratings:               [3, 1, ...], [7, 7, ...], [4.0, 5.0, ...]
        error = r - predicted(u, i)

1. The loop goes through an iterator of Python's own: over lists, tuples and ranges, also by `zip` and `enumerate`.  It
   says where it is (`__reduce__`) without being moved, and the elements that it would give next are read.
2. Each variable of the loop gets a column, from the iteration that is under way to the last but one: the last one is an
   iteration as always, which leaves the variables as they are to be after the loop.
3. What has been done is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import length_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    #: The variable of a loop, or what it is unpacked into.
    Pattern = Union[str, tuple["Pattern", ...]]

_SEQUENCES = (list, tuple, range)
#: The types of their iterators that tell what they go through; those over ranges do not on PyPy.
_ITERATORS = tuple(
    type(one) for one in (iter([0]), iter((0,)), iter(range(1))) if type(one.__reduce__()[1][0]) in _SEQUENCES
)


def iterator_over(iterable: Any) -> Any:
    """An iterator over something whose coming elements can be read; None where there is none."""
    kind = type(iterable)
    found = iter(iterable) if kind in _SEQUENCES else iterable
    return found if kind in (*_SEQUENCES, zip, enumerate) and _is_known(found) else None


def _is_known(iterator: Any) -> bool:
    if type(iterator) in (zip, enumerate):
        return bool(_inner(iterator)) and all(map(_is_known, _inner(iterator)))
    return type(iterator) in _ITERATORS


def _inner(iterator: Any) -> Sequence[Any]:
    """The iterators that `zip` or `enumerate` goes through."""
    found = iterator.__reduce__()[1]
    return found[:1] if type(iterator) is enumerate else found  # type: ignore[no-any-return]


def is_finished(iterator: Any) -> bool:
    """Whether an iterator has given all there is."""
    while type(iterator) in (zip, enumerate):
        iterator = _inner(iterator)[0]
    return length_hint(iterator) == 0


def to_come(iterator: Any) -> int:
    """How many elements come after the last one."""
    if type(iterator) in (zip, enumerate):
        return min(map(to_come, _inner(iterator)))
    return length_hint(iterator)


def skip(iterator: Iterator[Any], count: int) -> None:
    """Go on by so many elements."""
    next(islice(iterator, count, count), None)


def lists_of(iterator: Any) -> set[int]:
    """The identities of the lists that an iterator goes through."""
    if type(iterator) in (zip, enumerate):
        return set().union(*map(lists_of, _inner(iterator)))
    return {id(iterator.__reduce__()[1][0])}


def columns(iterator: Any, count: int, pattern: Pattern) -> dict[str, list[Any]] | None:
    """So many elements from the last one on, a column for each variable; None where they cannot be unpacked."""
    found: dict[str, list[Any]] = {}
    return found if _unpack(_elements(iterator, count), pattern, found) else None


def _elements(iterator: Any, count: int) -> Any:
    """Elements from the last one on: a list of them, or the parts of all that are tuples, in a tuple."""
    known: Any = iterator.__reduce__()
    if type(iterator) is zip:
        return tuple(_elements(one, count) for one in known[1])
    if type(iterator) is enumerate:
        inner, number = known[1]
        return list(range(number - 1, number - 1 + count)), _elements(inner, count)
    things, position = known[1][0], known[2]
    if type(things) is range and not position:  # from Python 3.12 on, a range of those that are to come
        first = things.start - things.step
        return list(range(first, first + count * things.step, things.step))
    return list(things[position - 1 : position - 1 + count])


def _unpack(elements: Any, pattern: Pattern, found: dict[str, list[Any]]) -> bool:
    if isinstance(pattern, str):
        found[pattern] = _joined(elements)
        return True
    if type(elements) is list:
        if not set(map(type, elements)) <= {tuple, list} or set(map(len, elements)) != {len(pattern)}:
            return False
        elements = tuple(map(list, zip(*elements)))
    return len(elements) == len(pattern) and all(_unpack(part, one, found) for part, one in zip(elements, pattern))


def _joined(elements: Any) -> list[Any]:
    """A list of elements, from those of their parts."""
    return elements if type(elements) is list else list(zip(*map(_joined, elements)))
