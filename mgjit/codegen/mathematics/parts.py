"""Pieces of C text that need each other, put in order.

A Part is text that exists once (tables, prototypes) and text for each number of lanes, in which

    @            stands for the number of lanes: `double@` becomes `double8`;
    EACH(...)    is repeated for every lane, `#` being the lane: `{EACH(table[index[#]])}`.

1. `assemble` visits the parts that are asked for and what they require, every part once, requirements first.
2. It writes the text that exists once, then the text for each number of lanes.
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


def assemble(parts: Sequence[Part], lanes: Sequence[int], without: Sequence[Part] = ()) -> str:
    """The text of the parts and of all that they require, for several numbers of lanes.

    Args:
        parts: what is wanted.
        lanes: the numbers of lanes.
        without: what stands before the text already.
    """
    ordered: dict[int, Part] = {}

    def visit(part: Part) -> None:
        if id(part) not in ordered:
            for required in part.requires:
                visit(required)
            ordered[id(part)] = part

    for part in parts:
        visit(part)
    for part in without:
        ordered.pop(id(part), None)
    texts = [part.once() for part in ordered.values() if part.once is not None]
    for count in sorted(set(lanes)):
        for part in ordered.values():
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
