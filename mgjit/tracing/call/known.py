"""The parts of arguments that are no inputs but known by identity, or compared: Values, models, state, constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...engine.leaks import PlainCall
from ...engine.value import Value
from ...tensor.shapes import View, row_major
from ...tensor.tensor import Tensor
from .containers import DataclassNode, MappingNode, SequenceNode
from .exact import exact_key, have_same_keys
from .node import NO_FRAME, Frame, MakeNumber, Node


class ValueNode(Node):
    """A Value: a parameter known by identity, or (slot) one that is copied in and out at every call."""

    def __init__(self, value: Value, slot: int | None, again: bool = False) -> None:
        self.value, self.slot, self.again = value, slot, again
        self.key = ("value", id(value)) if slot is None else ("value slot", slot, type(value))
        self.identified = 1 if slot is None else -math.inf

    def pack(self, argument: Any, frame: Frame) -> bool:
        if self.slot is None:
            return argument is self.value
        if type(argument) is not type(self.value):
            return False
        if self.again:  # the same Value as an earlier argument, when this was traced
            return argument is frame.values[self.slot]
        frame.values[self.slot] = argument
        return True

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        return iter(()) if self.slot is None else iter(((id(argument), ""),))

    def traced(self, make: MakeNumber) -> Any:
        return self.value

    def describe(self) -> str:
        return "a Value" if self.slot is not None else f"the Value at {id(self.value):#x}"


class KnownNode(Node):
    """A container of nothing but Values, objects and constants, such as a model: known by its identity at first.

    What it holds is compared only in a call that has another one.  Whether its contents have changed is for the guard
    of the kernel to see, as if the step captured it.
    """

    def __init__(self, container: Any, inner: SequenceNode | MappingNode | DataclassNode) -> None:
        self.container, self.inner = container, inner
        self.key, self.identified = inner.key, inner.identified
        self._parts = list(
            container.values() if isinstance(container, dict) else container if _is_row(container) else ()
        )
        #: Whether `==` of all parts is their identity.
        self._is_quick = bool(self._parts) and all(
            getattr(kind, "__eq__", None) is object.__eq__ for kind in set(map(type, self._parts))
        )

    def pack(self, argument: Any, frame: Frame) -> bool:
        return argument is self.container or self.equals(argument)

    def equals(self, argument: Any) -> bool:
        """Whether another container holds the same."""
        if not self._is_quick or type(argument) is not type(self.container):
            return self.inner.pack(argument, NO_FRAME)
        if isinstance(argument, dict):
            return list(argument.values()) == self._parts and have_same_keys(argument, self.container)
        return list(argument) == self._parts

    def traced(self, make: MakeNumber) -> Any:
        return self.inner.traced(make)

    def children(self) -> Sequence[tuple[str, Node]]:
        return self.inner.children()

    def describe(self) -> str:
        return self.inner.describe()


class StaticNode(Node):
    """Something that shapes the trace: it is compared, and never an input."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.exact = exact_key(argument)
        self.by_value = self.exact is not None
        # What may be a node of a graph is told from others as Values are: another one may be a slot, like them.
        tag = "value" if callable(getattr(type(argument), "backward", None)) else "object"
        self.key = ("static", self.exact) if self.by_value else (tag, id(argument))
        self.identified = 0 if self.by_value else 1

    def pack(self, argument: Any, frame: Frame) -> bool:
        return argument is self.argument or (self.by_value and exact_key(argument) == self.exact)

    def traced(self, make: MakeNumber) -> Any:
        return self.argument

    def describe(self) -> str:
        return f"{self.argument!r:.60}"


class PlainNode(Node):
    """What no kernel can have among its arguments: such calls run as plain Python.

    Args:
        reason: why, for people.
    """

    identified = 1

    def __init__(self, path: str, reason: str) -> None:
        self.key, self._reason = ("plain", path), reason

    def pack(self, argument: Any, frame: Frame) -> bool:
        return False

    def traced(self, make: MakeNumber) -> Any:
        raise PlainCall(self._reason)

    def describe(self) -> str:
        return self._reason


class AssignedNode(Node):
    """A tensor in whose memory the step assigns: known by its memory.

    One that shows a part of it, or in another order, has the call run as plain Python: there are too many of them.
    """

    identified = 1

    def __init__(self, argument: Tensor, path: str) -> None:
        self.argument, self.path = argument, path
        memory, view = argument._memory, argument._view
        self._is_whole = view == View(0, argument.shape, row_major(argument.shape)) and memory.size == argument.size
        self.key = "tensor", id(memory) if self._is_whole else None, argument.dtype.name, argument.shape

    def pack(self, argument: Any, frame: Frame) -> bool:
        return (
            isinstance(argument, Tensor)
            and argument._memory is self.argument._memory
            and argument._view == self.argument._view
            and argument.requires_grad is self.argument.requires_grad
        )

    def traced(self, make: MakeNumber) -> Any:
        if not self._is_whole:
            raise PlainCall(f"argument {self.path} is a part of a tensor that the step assigns")
        return self.argument

    def describe(self) -> str:
        return f"a tensor of shape {self.argument.shape} that the step assigns"


def _is_row(container: Any) -> bool:
    return type(container) in (list, tuple)
