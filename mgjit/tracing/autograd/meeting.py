"""What is found out about the nodes of a flow before their records are converted (autograd/symbolic.py).

1. A node is an object of a class with data and a gradient (autograd/node_class.py), whose data is a number that was
   recorded, a constant, or the memory of a parameter.
2. A node chosen by a traced index is a look-up among the data of its candidates.
3. The factors of edges become operands.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from ...engine.leaks import is_traced_number
from ...ir import opcodes as ops
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .chosen import choice_of, is_gathered
from .derivatives import Edge
from .flow import Flow, Given, Node, NoFlow
from .node_class import NodeClass, node_class

#: Factors of sums and differences.
_ONES = (1.0, -1.0)


class Meeting:
    """Meets the nodes of the flows of one trace.

    Args:
        memory_of: for an object, the leaf of its data, and its gradient when the trace began; None if it is not a
            parameter.
        lasting: the identities of the objects that existed before the step.
    """

    def __init__(
        self,
        recorder: Recorder,
        types: TracedTypes,
        memory_of: Callable[[Any], tuple[int, Any] | None],
        lasting: Container[int],
    ) -> None:
        self.recorder, self.types, self.lasting = recorder, types, lasting
        self._memory_of = memory_of
        self._known: dict[type, tuple[NodeClass, Callable[[Any], Any], Callable[[Any], Any]]] = {}
        self._look_ups: set[int] = set()

    def nodes(self, flow: Flow) -> tuple[list[Node], list[Edge], Node | None]:
        """All nodes, operands before what is computed from them; all edges in order; and the root."""
        nodes: list[Node] = []
        edges: list[Edge] = []
        sources: list[Node] = []
        meet = self.meet
        root = None if flow.root is None else flow.node(flow.root)
        if root is not None:
            meet(root, nodes)
        if flow.given is not None:
            sources.append(self._given(flow.node(flow.given)))
        types: Any = self.types
        number, operand_of = types.number, types.number_operand
        constants: dict[float, int] = {}  # the operands of factors: ones, mostly
        before: Any = None
        add: Callable[[Edge], None] = edges.append
        for source, target, factor, divides in flow.edges:
            node = target
            if node.known is None:
                if is_gathered(node.thing):
                    node = self.looked_up(node.thing, source, flow, nodes)
                else:
                    meet(node, nodes)
            if type(factor) is number:
                operand = factor._leaf
            elif type(factor) in (int, float) and factor in _ONES:
                operand = constants.get(factor) or constants.setdefault(factor, operand_of(factor))
            else:
                operand = operand_of(factor)
            edge = (node, node.operand, operand, divides, len(edges))
            edges.append(edge)
            if source is not before:
                if source.known is None:
                    meet(source, nodes)
                if not source.edges:
                    if source.thing is not flow.given:
                        sources.append(source)
                    source.edges = []
                before, add = source, source.edges.append
            add(edge)
        for thing in flow.zeroed.values():
            meet(flow.node(thing), nodes)
        leaves = [node for node in nodes if not node.edges]
        sources.reverse()
        for node in sources:
            if node.is_parameter:
                raise NoFlow("it goes on through a graph from before the step")
            for edge in node.edges:
                if not edge[0].has_gradient:
                    node.edges = [edge for edge in node.edges if edge[0].has_gradient]
                    break
            node.has_gradient = bool(node.edges)
        return leaves + sources, edges, root

    def _given(self, node: Node) -> Node:
        """The node from which contributions come that are numbers: its own number is not used."""
        recorder = self.recorder
        node.known = Given
        node.operand = recorder.emit(ops.COPY | ops.NUMBER, recorder.constant(0.0), ops.NO_OPERAND)
        node.value, node.is_parameter, node.has_gradient = node.operand, False, True
        return node

    def looked_up(self, thing: Any, user: Node, flow: Flow, nodes: list[Node]) -> Node:
        """A parameter chosen by a traced index, as an operand of `user`: each operand has its own look-up."""
        _, chosen_from, index = choice_of(thing)
        candidates = [flow.node(part) for part in chosen_from]
        for node in [*candidates, user]:
            self.meet(node, nodes)
        found = Node(thing)
        found.known, found.candidates = candidates[0].known, candidates
        if user.thing is flow.given and not any(candidate.is_parameter for candidate in candidates):
            found.operand, found.has_gradient = candidates[0].operand, False  # constants that the step makes
            return found
        if not all(candidate.is_parameter for candidate in candidates):
            raise NoFlow("a traced index chooses among what is no parameter")
        places = [candidate.operand for candidate in candidates]
        record = self.recorder.look_up_before(user.operand, places[0], index._leaf)
        if user.thing is flow.given and self.recorder.is_table(places):
            record = self.recorder.take(places, index._leaf, engine=False)
        if record is None:
            raise NoFlow("a traced index chooses among parameters that do not lie at equal distances")
        if record in self._look_ups:
            raise NoFlow("the data of a parameter that a traced index has chosen is read once and used twice")
        self._look_ups.add(record)
        found.operand = found.value = record
        found.is_parameter, found.has_gradient = False, True
        nodes.append(found)
        return found

    def meet(self, node: Node, nodes: list[Node]) -> None:
        """Find out about a node, and append it to the others, unless it is among them."""
        if node.known is not None:
            return
        thing = node.thing
        kind = type(thing)
        known, read, _ = self.reading(kind)
        try:
            data = read(thing)
        except (AttributeError, KeyError):
            raise NoFlow(f"a {kind.__name__} has no {known.data.name}") from None
        operand: int
        if type(data) is self.types.number:
            operand = data._leaf  # type: ignore[attr-defined]
        elif is_traced_number(data) or isinstance(data, (int, float)):
            operand = self.types.number_operand(data)
        else:
            raise NoFlow(f"{known.data.name} of a {kind.__name__} is no number")
        memory = self._memory_of(thing) if operand < 0 else None
        is_parameter = memory is not None and memory[0] == operand
        if not is_parameter and id(thing) in self.lasting:
            raise NoFlow(f"{known.data.name} of a {kind.__name__} from outside of the step has been assigned")
        node.known, node.operand, node.value = known, operand, operand
        node.is_parameter = node.has_gradient = is_parameter
        nodes.append(node)

    def reading(self, kind: type) -> tuple[NodeClass, Callable[[Any], Any], Callable[[Any], Any]]:
        """What is known about a class, and what reads the data and the gradient of its objects."""
        found = self._known.get(kind)
        if found is not None:
            return found
        known = node_class(kind)
        if known is None:
            raise NoFlow(f"{kind.__name__} is another class")
        found = self._known[kind] = known, known.data.reader(kind), known.gradient.reader(kind)
        return found
