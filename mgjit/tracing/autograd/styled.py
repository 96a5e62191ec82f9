"""The nodes of a flow to which each contributes once (Flow.operands_first), met and converted in one pass.

Nearly all of them are sums and products of two nodes, with the usual derivatives.  These have no edges:

1. Objects come after their operands, so it is known of these whether gradients flow through them.
2. A sum or product of two through which they do, or of one and a constant or input, which may be no object, is usual
   if the derivatives are those of the operation, and its gradient is zero so far.  Any other object becomes a node
   with edges, which is converted as those of other flows are (autograd/conversion.py).
3. Contributions are noted last one first: those of the first object, and of these the last operand's.  For those along
   an edge, its number stands for the record that is made later.
4. Usual records become ones through which gradients flow at once, so that no other node takes them; an operand that
   gets another record is exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from ...ir import opcodes as ops
from .chosen import is_gathered
from .conversion import convert
from .derivatives import PRODUCT, SUM, Edge
from .flow import Flow, Node, NoFlow, Step, new
from .meeting import Meeting

#: The types of numbers that are no traced ones.
_PLAIN = (int, float)


def _takes_none(operand: int) -> bool:
    """Whether an operand is one to which no gradient flows."""
    return operand < 0 and ops.leaf_kind(operand) in (ops.CONSTANT, ops.INPUT)


class Usual(Node):
    """A node that is no parameter, and without edges."""

    __slots__ = ()
    edges: Any = ()
    candidates: Any = ()
    is_parameter = False
    has_gradient = True


class StyledGraph:
    """The nodes of a flow whose steps are known with operands first.

    Args:
        used: operands used by earlier passes.

    Attributes:
        nodes: operands before what is computed from them, without the usual ones.
        usual: these, whose gradients are zero before. root: the node whose gradient is 1.
    """

    def __init__(self, flow: Flow, meeting: Meeting, used: set[int]) -> None:
        assert flow.operands_first is not None
        self._flow, self._meeting, self._used = flow, meeting, used
        self._leaves: list[Node] = []
        self._sources: list[Node] = []
        self.usual: list[Node] = []
        self._factors: dict[int, int] = {}  # the operands of factors, by identity
        self._kept: list[Any] = []
        self._exchanged: list[tuple[Any, int, Node]] = []  # columns of usual records whose operands may get other ones
        self._with_edges: list[Node] = []
        self._edges = 0
        self._senders: list[int] = []
        self._meet_all(flow.operands_first)
        self.root = None if flow.root is None else flow.node(flow.root)
        if self.root is not None:
            meeting.meet(self.root, self._leaves)
        for thing in flow.zeroed.values():
            meeting.meet(flow.node(thing), self._leaves)
        self.nodes = self._leaves + self._sources

    def _meet_all(self, steps: Iterable[Step]) -> None:
        recorder, lasting, used = self._meeting.recorder, self._meeting.lasting, self._used
        add, send = self.usual.append, self._senders.append
        types: Any = self._meeting.types
        number, operand_of, factor_before = types.number, self._factor, self._factors.get
        op, a, b, nodes, find = recorder.op, recorder.a, recorder.b, self._flow.nodes, self._flow.nodes.get
        kind: Any = None
        ones: Any = None  # factors that were found to be ones: mostly the constant in the class's code
        zero: Any = None  # and a gradient
        for thing, parts, factors, forms in steps:
            if not factors:
                continue
            if type(thing) is not kind:
                kind = type(thing)
                known, read, gradient_of = self._meeting.reading(kind)
            try:
                data = read(thing)
            except (AttributeError, KeyError):
                data = None  # which meeting it refuses
            record = data._leaf if type(data) is number and len(parts) == len(factors) <= 2 else -1
            code = op[record] if record >= 0 and "/" not in forms else -1
            if code == PRODUCT or code == SUM:  # noqa: SIM109 - quicker
                p, q = parts[0], parts[-1]
                x = find(id(p)) or self._met(p)
                y = find(id(q)) or self._met(q)
                if x is not None and y is not None:
                    first, second = a[record], b[record]
                    dx, dy = factors[0], factors[-1]
                    is_both = x.has_gradient and y.has_gradient and len(parts) == 2
                    if is_both and x.operand == first and y.operand == second:
                        if code == SUM:
                            fits = factors is ones or (type(dx) in _PLAIN and type(dy) in _PLAIN and dx == dy == 1)
                            ones = factors if fits else ones
                        else:
                            factor = dx._leaf if type(dx) is number else factor_before(id(dx)) or operand_of(dx)
                            if fits := factor == second:
                                factor = dy._leaf if type(dy) is number else factor_before(id(dy)) or operand_of(dy)
                                fits = factor == first
                    elif is_both:
                        fits = False  # contributions would come in another order
                    else:
                        if not x.has_gradient:
                            x, y, dx = y, x, dy
                        mine, other = (first, second) if x.operand == first else (second, first)
                        fits = x.has_gradient and x.operand == mine and _takes_none(other)
                        if fits and len(parts) == 2:
                            fits = y.operand == other
                        if fits and code == SUM:
                            fits = type(dx) in _PLAIN and dx == 1
                        elif fits:
                            factor = dx._leaf if type(dx) is number else factor_before(id(dx)) or operand_of(dx)
                            fits = factor == other
                    if fits and gradient_of(thing) is not zero:
                        fits = self._is_zero(gradient_of(thing))
                        zero = gradient_of(thing) if fits else zero
                    key = id(thing)
                    if fits and not (key in lasting or key in nodes or record in used):
                        node = nodes[key] = new(Usual)
                        node.thing, node.known, node.senders = thing, known, []
                        node.operand = node.value = record
                        op[record] = code - ops.NUMBER
                        add(node)
                        if is_both:
                            y.senders.append(record)
                            if y.edges:
                                self._exchanged.append((b, record, y))
                        x.senders.append(record)
                        if x.edges:
                            self._exchanged.append((a if is_both or mine == first else b, record, x))
                        send(record)
                        continue
            self._meet_with_edges(self._flow.node(thing), parts, factors, forms)

    def _factor(self, factor: Any) -> int:
        """The operand of a factor that is no computed number."""
        operand = self._factors[id(factor)] = self._meeting.types.number_operand(factor)
        self._kept.append(factor)  # so that no identity is used again
        return operand

    def _is_zero(self, gradient: Any) -> bool:
        return gradient is not None and self._meeting.recorder.is_zero(self._meeting.types.number_operand(gradient))

    def _met(self, part: Any) -> Node | None:
        """The node of an operand, which is met if it has not been; None if it is one of several."""
        if is_gathered(part):
            return None
        node = self._flow.node(part)
        self._meeting.meet(node, self._leaves)
        return node

    def _meet_with_edges(self, node: Node, parts: Sequence[Any], factors: Sequence[Any], forms: str) -> None:
        flow, meeting = self._flow, self._meeting
        edges: list[Edge] = []
        meeting.meet(node, self._sources)
        for part, factor, form in zip(parts, factors, forms or repeat("*")):
            if is_gathered(part):
                target = meeting.looked_up(part, node, flow, self._leaves)
            else:
                target = flow.node(part)
                meeting.meet(target, self._leaves)
            operand = meeting.types.number_operand(factor)
            edges.append((target, target.operand, operand, form == "/", self._edges))
            self._edges += 1
        if node.is_parameter:
            raise NoFlow("it goes on through a graph from before the step")
        node.edges = [edge for edge in edges if edge[0].has_gradient]
        if node.edges:
            node.has_gradient = True
            self._with_edges.append(node)
        for target, _, _, _, number in reversed(node.edges):
            self._senders.append(~number)
            for one in target.candidates or (target,):
                one.senders.append(~number)

    def convert(self) -> tuple[list[int], set[int], list[int]]:
        """Convert the records of all nodes.

        Returns:
            The records that contribute, last contribution first; what has got another record; and the records through
            which gradients flow.
        """
        recorder = self._meeting.recorder
        made: list[int | None] = [None] * self._edges
        crossed = {node.operand for node in self.nodes if node.has_gradient}
        linked, converted = convert(recorder, self._leaves + self._with_edges, made, self._used, crossed)
        for column, record, x in self._exchanged:
            column[record] = x.value

        def records(senders: list[int]) -> list[int]:
            return [sender if sender >= 0 else made[~sender] for sender in senders]  # type: ignore[misc]

        targets = {target for node in self._with_edges for target, *_ in node.edges}
        for one in {one for target in targets for one in target.candidates or (target,)}:
            one.senders = records(one.senders)
        return records(self._senders), linked, [*converted, *(node.operand for node in self.usual)]
