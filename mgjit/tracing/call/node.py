"""A node of an argument plan: it knows the structure of a part of an argument, and how to pack a later one.

`call/plan.py` builds trees of these for the arguments of a step.  inputs.py has the nodes of numbers and buffers,
containers.py those of lists, dicts and dataclasses, known.py those of what is compared and never an input.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any, Callable

from ...engine.precision import FLOAT64, Precision
from ...engine.state import zero_array

#: Makes the number for an INPUT index; a second argument says that it is an integer.
MakeNumber = Callable[..., Any]

#: So many parts of a container are named in the outline of a structure.
_MOST_OUTLINED = 16


class Frame:
    """What one call passes to the kernel: the packed numbers, the buffers, and the Values among the arguments."""

    __slots__ = ("buffers", "given", "objects", "packed", "values")

    def __init__(
        self, packed_size: int, buffers: int, values: int, precision: Precision = FLOAT64, objects: int = 0
    ) -> None:
        self.packed = zero_array(packed_size, precision)
        self.buffers: list[Any] = [None] * buffers
        #: The caller's object for each buffer, which may not be contiguous.
        self.given: list[Any] = [None] * buffers
        self.values: list[Any] = [None] * values
        #: Nodes of the user's autograd classes that are copied in and out.
        self.objects: list[Any] = [None] * objects


#: For what writes nothing into it.
NO_FRAME = Frame(0, 0, 0)


def flat_view(buffer: Any, format: str) -> memoryview:
    """A contiguous buffer as a one-dimensional view with elements of a struct format."""
    return memoryview(buffer).cast("B").cast(format)  # type: ignore[call-overload, no-any-return]


class Node:
    """One argument, or one part of an argument.

    Attributes:
        identified: how many Values and other objects known by identity it has; minus infinity if it has inputs.
    """

    key: Hashable
    identified: float = -math.inf

    def pack(self, argument: Any, frame: Frame) -> bool:
        """Write `argument` into the frame; returns False if it does not have this node's structure."""
        raise NotImplementedError

    def traced(self, make: MakeNumber) -> Any:
        """The traced argument, which the step sees during a trace."""
        raise NotImplementedError

    def children(self) -> Sequence[tuple[str, Node]]:
        """Named parts, for reports."""
        return ()

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        """The identities of the containers in an argument of this structure whose contents are inputs.

        With each comes the path of what is known by identity where that does not do; "" for the whole argument.
        """
        return iter(())

    def describe(self) -> str:
        """A few words for reports."""
        return str(self.key)

    def outline(self) -> str:
        """The whole structure, in short: what tells the kernels of a step apart."""
        parts = self.children()
        return f"{self.describe()} ({grouped(parts)})" if parts else self.describe()


def grouped(parts: Sequence[tuple[str, Node]]) -> str:
    """The outlines of parts; equal ones that follow each other are counted, elements of lists have no names."""
    named = [(name if name.startswith(".") or "'" in name else "", part.outline()) for name, part in parts]
    texts = []
    for (name, outline), group in groupby(named):
        count = len(list(group))
        texts.append(f"{name.strip('.[]')}: {outline}" if name else outline if count == 1 else f"{count} x {outline}")
    more = [] if len(texts) <= _MOST_OUTLINED else [f"... {len(texts)} in all"]
    return ", ".join([*texts[:_MOST_OUTLINED], *more])
