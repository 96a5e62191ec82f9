"""What is built in many places: nests of loops, and element numbers that count their iterations."""

from __future__ import annotations

from collections.abc import Sequence

from .program import Loop, Node, Term


def row_major(loops: Sequence[Loop], counts: Sequence[int] | None = None) -> tuple[tuple[Term, ...], int]:
    """The terms of an index that numbers the iterations of a nest, those of the last loop side by side.

    Args:
        loops: outermost first.
        counts: how many places each loop gets, if that is not its count.

    Returns:
        the terms, and how many numbers there are.
    """
    terms: list[Term] = []
    size = 1
    for loop, count in reversed(list(zip(loops, counts or [loop.count for loop in loops]))):
        terms.append((loop, size))
        size *= count
    return tuple(reversed(terms)), size


def nested(loops: Sequence[Loop], body: list[Node]) -> list[Node]:
    """A body inside empty loops, outermost first; the body itself if there are none."""
    for loop in reversed(loops):
        loop.body = body
        body = [loop]
    return body
