"""What the numbers are that a step returns, for the header of an export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..tracing.call.results import CompositeResult, MixedResult, ObjectResult, OutputResult, ResultTree
from ..tracing.surroundings.shapes import attributes

#: So many lines of comments describe a result.
_MOST = 24


def describe_outputs(result: ResultTree) -> list[str]:
    """A line for each part of the result: the places of its numbers, and what they are."""
    lines = list(_lines(result, ""))
    return lines if len(lines) <= _MOST else [*lines[:_MOST], "and so on"]


def _lines(result: ResultTree, path: str) -> Iterator[str]:
    name = path or "what the step returns"
    if isinstance(result, OutputResult):
        yield f"result[{result.index}]: {name}{_kind(result)}"
    elif isinstance(result, MixedResult):
        yield f"result[{result.index}]: {name}, an int or a float; result[{result.index + 1}]: which of them"
    elif isinstance(result, ObjectResult):
        yield from _lines(result.parts, path)
    elif isinstance(result, CompositeResult):
        numbers = [part for part in result.parts if isinstance(part, OutputResult)]
        if len(numbers) == len(result.parts) > 1 and len({part.make for part in numbers}) == 1:
            first, last = numbers[0].index, numbers[-1].index
            if [part.index for part in numbers] == list(range(first, last + 1)):
                yield f"result[{first}] to result[{last}]: {name}{_kind(numbers[0])}"
                return
        for name, part in zip(_names(result), result.parts):
            yield from _lines(part, path + name)


def _names(result: CompositeResult) -> list[str]:
    """What each part is called in the container, which is made with numbers in place of its parts."""
    count = len(result.parts)
    made = result.make(list(range(count)))
    if type(made) is dict:
        return [f"[{key!r}]" for key in made]
    if isinstance(made, (list, tuple, set, frozenset)):
        fields: Sequence[str] = getattr(made, "_fields", ())
        return [f".{name}" for name in fields] or [f"[{number}]" for number in range(count)]
    found = {number: f".{name}" for name, number in attributes(made).items() if type(number) is int}
    return [found.get(number, f"[{number}]") for number in range(count)]


def _kind(result: OutputResult) -> str:
    return {"int": ", an int", "integer": ", an int", "bool": ", a bool"}.get(getattr(result.make, "__name__", ""), "")
