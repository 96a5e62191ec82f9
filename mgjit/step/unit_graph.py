"""The graph behind a result of a function that is compiled by itself.

1. In the user's graph there is a stand-in for it: a node without operands, of a class derived from the user's, whose
   gradient is a property.  What arrives there flows on (`Unit.flow`), as a rule by a call of compiled code.
2. Where that is not possible, the graph is made after all, by the function itself.  Then `backward()` is what it is for
   all classes of this style (autograd/graph_style.py).  If gradients have gone through compiled code before, the inner
   nodes first get what those would have left in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.interruption import with_cleanup
from ..errors import UnsupportedError, user_location
from ..memory.buffers import ParameterStorage
from ..runtime.detached import attach_all
from ..tracing.autograd.graph_style import GraphStyle, depth_first


class Memory:
    """The numbers of parameters, as they are now.

    Args:
        storages: where they lie; they stay there.
    """

    def __init__(self, storages: Sequence[ParameterStorage]) -> None:
        self._numbers = [memoryview(storage.data).cast("B") for storage in storages]
        self._then = list(map(bytes, self._numbers))

    def is_unchanged(self) -> bool:
        """Whether they are the same."""
        attach_all()
        return list(map(bytes, self._numbers)) == self._then

    def during(self, work: Callable[[], Any]) -> Any:
        """Return `work()`, run while they are what they were."""
        attach_all()
        now = list(map(bytes, self._numbers))

        def run() -> Any:
            _assign(self._numbers, self._then)
            return work()

        return with_cleanup(run, lambda: _assign(self._numbers, now))


def _assign(numbers: Sequence[memoryview], contents: Sequence[bytes]) -> None:
    for memory, content in zip(numbers, contents):
        memory[:] = content


class Graph:
    """The graph behind a result, which exists only where it is needed.

    Attributes:
        arguments: of the call. memory: of the parameters then.
        gradients: that have arrived so far.
    """

    def __init__(self, arguments: Sequence[Any], memory: Memory) -> None:
        self.arguments, self.memory = arguments, memory
        self.gradients: list[Any] = []
        self._order: list[Any] = []

    def flow(self, make: Callable[[], Any], gradient: Any, style: GraphStyle) -> None:
        """Let a gradient flow as plain Python would.

        Args:
            make: makes the graph; returns its root.
        """
        if not self._order:
            self._order, _ = depth_first(self.memory.during(make), style.operands_of)
            self._order.reverse()
            for earlier in self.gradients:
                self._pass(earlier, style, True)
        self.gradients.append(gradient)
        self._pass(gradient, style, False)

    def _pass(self, gradient: Any, style: GraphStyle, inner_only: bool) -> None:
        self._order[0].grad = gradient
        for node, operand, factor, _ in style.edges_of(self._order):
            # Leaves have got it from compiled code.
            if not inner_only or style.operands_of(operand):
                operand.grad += factor * node.grad


def copied(thing: Any) -> Any:
    """A copy of arguments."""
    return type(thing)(map(copied, thing)) if type(thing) in (list, tuple) else thing


def stand_in_class(kind: Any, gradient: str) -> Any:
    """A class of nodes whose gradients flow through the graph of a unit."""

    def arrived(self: Any, number: Any) -> None:
        self.unit_.flow(self.graph_, number)

    return type(kind)(kind.__name__, (kind,), {
        "__slots__": ("unit_", "graph_"), "__module__": kind.__module__, gradient: property(lambda self: 0.0, arrived),
        "__reduce_ex__": _refuse_to_copy,
    })  # fmt: skip


def _refuse_to_copy(self: Any, protocol: Any) -> Any:
    raise UnsupportedError(
        f"{user_location()}: the graph of a result of {self.unit_.name}(), which is compiled by itself, cannot be "
        "copied or pickled. Copy the number of the result."
    )
