"""Let a step that is one path of several test its assumptions before it stores anything.

    forward:   loss = ...                               forward:   loss = ...
               y[0] = loss                                         y[1] = loss > 1.0 ? 0.0 : 1.0
    backward:  g[i] = ...                        ->     if y[1] is not 0.0, the call ends here
               p[i] = p[i] - rate * g[i]                backward:  y[0] = loss
               y[1] = loss > 1.0 ? 0.0 : 1.0                       g[i] = ...
                                                                   p[i] = p[i] - rate * g[i]

A call whose assumptions do not hold goes to another kernel, and must have changed nothing.  Where the tests come first
that costs nothing; otherwise everything that a step may write is copied before each call (runtime/undo.py).

1. The last two outputs say which assumption fails, and what is so instead.  What they need is moved to the front, with
   whatever stands before it and accesses the same elements; all else keeps its order behind it.
2. If some of that writes what can be seen outside of the kernel, such as a parameter, nothing is moved.
3. What both need is computed once, in front; it lies in scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dependence import never_meet, plain
from ...ir.program import Array, Index, Node, Program, Register, leaf_operands, reads, statements, writes

#: Where a test may write.
_UNSEEN = ("scratch", "output")

_Access = tuple[Array, "Index | None"]


def ask_first(program: Program, outputs: int) -> None:
    """Make what the tests need the forward phase, and all else the backward phase, in place.

    Args:
        outputs: how many there are.
    """
    nodes = [*program.forward, *program.backward, *program.update]
    asked = _asked(nodes, outputs - 2)
    if asked is None:
        return
    program.verdict = outputs - 2
    program.forward = [node for node in nodes if node in asked]
    program.backward, program.update = [node for node in nodes if node not in asked], []


def _asked(nodes: Sequence[Node], verdict: int) -> set[Node] | None:
    """The nodes that are to come first; None if they cannot."""
    needed = _Accesses()
    asked: set[Node] = set()
    for node in reversed(nodes):
        inside = list(statements([node]))
        written = [access for s in inside for access in writes(s)]
        read = [access for s in inside for access in reads(s)]
        is_verdict = any(array.space == "output" and _may_be(index, verdict) for array, index in written)
        if not is_verdict and not needed.conflict(read, written):
            continue
        if any(array.space not in _UNSEEN for array, _ in written):
            return None
        asked.add(node)
        needed.add(read, written)
    return asked if _are_apart(nodes, asked) else None


def _may_be(index: Index | None, verdict: int) -> bool:
    """Whether an access to the outputs may be one to the last two."""
    known = plain(index)
    return known is None or not all(never_meet(known, Index(verdict + k)) for k in range(2))


def _are_apart(nodes: Sequence[Node], asked: set[Node]) -> bool:
    """Whether no register that some of the nodes define is used by others."""
    home = {s: node in asked for node in nodes for s in statements([node])}
    return all(
        home.get(part.statement, is_asked) == is_asked
        for s, is_asked in home.items()
        for operand in s.operands
        for part in leaf_operands(operand)
        if isinstance(part, Register)
    )


class _Accesses:
    """What some nodes read and write."""

    def __init__(self) -> None:
        self._read: dict[Array, set[Index | None]] = {}
        self._written: dict[Array, set[Index | None]] = {}

    def add(self, read: Sequence[_Access], written: Sequence[_Access]) -> None:
        for found, accesses in ((self._read, read), (self._written, written)):
            for array, index in accesses:
                found.setdefault(array, set()).add(index)

    def conflict(self, read: Sequence[_Access], written: Sequence[_Access]) -> bool:
        """Whether nodes with these accesses have to keep their place before the others."""
        return _meet(self._written, read) or _meet(self._read, written) or _meet(self._written, written)


def _meet(known: dict[Array, set[Index | None]], accesses: Sequence[_Access]) -> bool:
    for array, index in accesses:
        own = plain(index)
        for other in map(plain, known.get(array, ())):
            if own is None or other is None or not never_meet(own, other):
                return True
    return False
