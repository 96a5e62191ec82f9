"""Pieces of C text with dependencies, assembled in the right order.

A Part is text that exists once (tables, prototypes) and text for each number of lanes, in which

    @            stands for the number of lanes: `double@` becomes `double8`;
    EACH(...)    is repeated for every lane, `#` being the lane: `{EACH(table[index[#]])}`.

1. `assemble` visits the parts that are asked for and what they require, every part once, requirements first.
2. It writes the text that exists once, then each part's text for each number of lanes that it is wanted for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A piece of C.

    Attributes:
        each: the text for one number of lanes, or a function of it.
        once: makes the text that is needed once; called only when it is.
        requires: the parts that must stand before this one.
    """

    each: str | Callable[[int], str] = ""
    once: Callable[[], str] | None = None
    requires: tuple[Part, ...] = ()


def assemble(wanted: Sequence[tuple[Part, Sequence[int]]]) -> str:
    """The text of parts and of everything they require, each for the numbers of lanes that are needed."""
    lanes_of: dict[int, set[int]] = {}
    ordered: list[Part] = []

    def visit(part: Part, lanes: Sequence[int]) -> None:
        for required in part.requires:
            visit(required, lanes)
        if id(part) not in lanes_of:
            ordered.append(part)
        lanes_of.setdefault(id(part), set()).update(lanes)

    for part, lanes in wanted:
        if lanes:
            visit(part, lanes)
    texts = [part.once() for part in ordered if part.once is not None]
    for part in ordered:
        for count in sorted(lanes_of[id(part)]):
            text = part.each if isinstance(part.each, str) else part.each(count)
            if text:
                texts.append(for_lanes(text, count))
    return "\n".join(texts)


def for_lanes(template: str, lanes: int) -> str:
    """A template for one number of lanes."""
    text = re.sub(
        r"EACH\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)",
        lambda found: ", ".join(found.group(1).replace("#", str(lane)) for lane in range(lanes)),
        template,
    )
    return text.replace("@", str(lanes))
