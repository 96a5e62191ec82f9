"""Symbolic `backward()` for the user's own classes: one BACKWARD record instead of thousands of others.

1. Observe what the class's own `backward()` does, as a flow of gradients along edges (autograd/flow.py).
2. Each node of the flow has the record that computed its data.  If the factors of its edges are the derivatives of that
   operation (autograd/derivatives.py), the record is made one through which gradients flow.  Otherwise LINK records are
   added, each with the number of the node, one of its operands, and the factor of that edge.
3. Data that a node shares with another one, or that is used without an edge (also by an earlier pass), is copied or
   linked, so that gradients flow where there is an edge, and nowhere else.
4. Gradients of parameters that were assigned before are stored, and a BACKWARD record is appended.
5. The pass will add up the contributions to a gradient in reverse order of the records.  If the class does so in
   another order, the records are rearranged (autograd/order.py).
6. The gradients of parameters are then read from their memory; those of other nodes on demand.

Whatever cannot be done in this way raises NoFlow; the step is then traced again, and every operation of `backward()`
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from ..record import opcodes as ops
from ..record.leaks import is_traced_number
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .chosen import choice_of, is_gathered
from .derivatives import Derivatives
from .flow import Flow, NoFlow
from .node_class import NodeClass, node_class
from .order import Arrangement

#: Up to this many contributions to a gradient of zero may come in any order, because a + b equals b + a.
_COMMUTATIVE = 2


class Edge:
    """Where a gradient goes.

    Attributes:
        target: the node.
        factor: what the gradient is multiplied with or divided by.
        divides: whether it is divided.
        sender: the record that contributes it; None if the contribution is not needed.
    """

    __slots__ = ("divides", "factor", "sender", "target")

    def __init__(self, target: Node, factor: int, divides: bool) -> None:
        self.target, self.factor, self.divides = target, factor, divides
        self.sender: int | None = None


class Node:
    """A node of a flow.

    Attributes:
        thing: the user's object.
        known: what is known about its class.
        operand: its data.
        is_parameter: whether its data and gradient are in the memory of parameters.
        edges: where its gradient flows, as far as it may be read there.
        has_gradient: whether a gradient flows through it that may be read.
        value: the operand that stands for it in records through which gradients flow.
        senders: the records that contribute to its gradient, in the order of the flow.
        candidates: the parameters of which a traced index chooses one; empty for other nodes.
    """

    __slots__ = ("candidates", "edges", "has_gradient", "is_parameter", "known", "operand", "senders", "thing", "value")

    def __init__(self, thing: Any, known: NodeClass, operand: int, is_parameter: bool) -> None:
        self.thing, self.known, self.operand, self.is_parameter = thing, known, operand, is_parameter
        self.edges: list[Edge] = []
        self.has_gradient = is_parameter
        self.value = operand
        self.senders: list[int] = []
        self.candidates: list[Node] = []


class SymbolicBackward:
    """Records the symbolic backward passes of one trace.

    Args:
        memory_of: for an object, the leaf of its data, and its gradient when the trace began; None if it is not a
            parameter.
        is_lasting: whether an object existed before the step.
        refuse: called when something is needed that was not recorded; does not return.

    Attributes:
        reached: the leaves of the gradients that passes have added to, or set to zero.
    """

    def __init__(
        self,
        recorder: Recorder,
        types: TracedTypes,
        memory_of: Callable[[Any], tuple[int, Any] | None],
        is_lasting: Callable[[Any], bool],
        refuse: Callable[[str], Any],
    ) -> None:
        self._recorder, self._types = recorder, types
        self._memory_of, self._is_lasting, self._refuse = memory_of, is_lasting, refuse
        self._known: dict[type, NodeClass] = {}
        self._look_ups: set[int] = set()
        self.reached: set[int] = set()
        self._used: set[int] = set()  # operands of records through which gradients flow in earlier passes

    def record(self, flow: Flow, first_record: int) -> None:
        """Record a backward pass.

        Args:
            flow: what it does.
            first_record: the records from here on were made while it was observed.

        Raises:
            NoFlow: it cannot be recorded as one.
        """
        nodes, edges = self._nodes(flow)
        stores, seeds = self._initial_gradients(nodes.values(), flow)
        self._used |= convert(self._recorder, nodes.values(), self._used)
        for edge in edges:
            for target in edge.target.candidates or [edge.target]:
                if edge.sender is not None:
                    target.senders.append(edge.sender)
        arrangement = Arrangement(self._recorder, first_record)
        seeded = {id(node) for node, _ in seeds}
        zero_at_first = {leaf for leaf, operand in stores if self._recorder.is_zero(operand)}
        for node in nodes.values():
            if node.is_parameter:
                is_zero = self._recorder.gradient_leaf(node.value) in zero_at_first
            else:
                is_zero = id(node) not in seeded
            if node.known.is_ordered and len(node.senders) > (_COMMUTATIVE if is_zero else 1):
                arrangement.keep_order(node.senders[::-1])
        arrangement.apply()
        self._recorder.store_all(stores)
        root = nodes.get(id(flow.root))
        start = root.value if root is not None else self._seeded(seeds)
        if start is not None and (root is None or root.has_gradient):
            self._recorder.backward(start)
        self._show_gradients(nodes.values(), flow)

    def _seeded(self, seeds: list[tuple[Node, int]]) -> int | None:
        """A root from which the pass gives each seeded node its gradient: the sum of the products."""
        recorder, total = self._recorder, None
        for node, gradient in seeds:
            product = recorder.emit(ops.MULTIPLY, node.value, gradient)
            total = product if total is None else recorder.emit(ops.ADD, total, product)
        return total

    # ---- 1: nodes ---------------------------------------------------------------------------------

    def _nodes(self, flow: Flow) -> tuple[dict[int, Node], list[Edge]]:
        """All nodes by identity, operands before what is computed from them; and all edges in order."""
        nodes: dict[int, Node] = {}
        edges: list[Edge] = []
        operand_of = self._types.number_operand

        def node_of(thing: Any) -> Node:
            node = nodes.get(id(thing))
            if node is None:
                node = nodes[id(thing)] = self._node(thing)
            return node

        if flow.root is not None:
            node_of(flow.root)
        for source, target, factor, divides in flow.edges:
            if is_gathered(target):
                candidates = [node_of(candidate) for candidate in choice_of(target)[1]]
                node = nodes[-1 - len(edges)] = self._looked_up(target, node_of(source), candidates)
            else:
                node = node_of(target)
            edges.append(Edge(node, operand_of(factor), divides))
            node_of(source).edges.append(edges[-1])
        for thing in flow.zeroed.values():
            node_of(thing)
        sources = dict.fromkeys(id(edge.source) for edge in flow.edges)
        leaves = {key: node for key, node in nodes.items() if not node.edges}
        ordered = {**leaves, **{key: nodes[key] for key in reversed(sources)}}
        for node in ordered.values():
            if node.edges:
                if node.is_parameter:
                    raise NoFlow("it goes on through a graph from before the step")
                node.edges = [edge for edge in node.edges if edge.target.has_gradient]
                node.has_gradient |= bool(node.edges)
        return ordered, edges

    def _looked_up(self, thing: Any, source: Node, candidates: list[Node]) -> Node:
        """A parameter chosen by a traced index, as an operand of `source`: each operand has its own look-up."""
        if not all(candidate.is_parameter for candidate in candidates):
            raise NoFlow("a traced index chooses among what is no parameter")
        record = self._recorder.look_up_before(source.operand, candidates[0].operand, choice_of(thing)[2]._leaf)
        if record is None:
            raise NoFlow("a traced index chooses among parameters that do not lie at equal distances")
        if record in self._look_ups:
            raise NoFlow("the data of a parameter that a traced index has chosen is read once and used twice")
        self._look_ups.add(record)
        node = Node(thing, candidates[0].known, record, False)
        node.has_gradient = True
        node.candidates = candidates
        return node

    def _node(self, thing: Any) -> Node:
        kind = type(thing)
        known = self._known.get(kind) or self._class(kind)
        try:
            data = known.data.read(thing)
        except (AttributeError, KeyError):
            raise NoFlow(f"a {kind.__name__} has no {known.data.name}") from None
        if not is_traced_number(data) and not isinstance(data, (int, float)):
            raise NoFlow(f"{known.data.name} of a {kind.__name__} is no number")
        operand = self._types.number_operand(data)
        memory = self._memory_of(thing)
        is_parameter = memory is not None and memory[0] == operand
        if not is_parameter and self._is_lasting(thing):
            raise NoFlow(f"{known.data.name} of a {kind.__name__} from outside of the step has been assigned")
        return Node(thing, known, operand, is_parameter)

    def _class(self, kind: type) -> NodeClass:
        known = node_class(kind)
        if known is None:
            raise NoFlow(f"{kind.__name__} is another class")
        self._known[kind] = known
        return known

    # ---- 4: gradients before the pass ----------------------------------------------------------------

    def _initial_gradients(
        self, nodes: Iterable[Node], flow: Flow
    ) -> tuple[list[tuple[int, int]], list[tuple[Node, int]]]:
        """The stores that set the initial gradients of parameters, and the initial gradients of computed nodes."""
        stores, seeds = [], []
        for node in nodes:
            if node.candidates:
                continue
            gradient = 0 if id(node.thing) in flow.zeroed else node.known.gradient.read(node.thing)
            if gradient is None:
                raise NoFlow("a gradient is None before")
            if node.is_parameter:
                leaf = self._recorder.gradient_leaf(node.operand)
                self.reached.add(leaf)
                if not self._is_in_place(gradient, leaf, node.thing):
                    stores.append((leaf, self._types.number_operand(gradient)))
            elif not self._recorder.is_zero(self._types.number_operand(gradient)):
                if flow.root is not None:
                    raise NoFlow("the gradient of a computed node is not zero before, as after an earlier backward()")
                if node.has_gradient:
                    seeds.append((node, self._types.number_operand(gradient)))
        stores.sort(reverse=True)  # in the order in which parameters lie, whose leaves count downwards
        return stores, seeds

    def _is_in_place(self, gradient: Any, leaf: int, thing: Any) -> bool:
        """Whether a gradient equals what the memory at `leaf` holds now."""
        memory = self._memory_of(thing)
        if memory is not None and gradient is memory[1]:
            return leaf not in self._recorder.last_store and self._recorder.last_backward < 0
        return self._types.is_current(gradient, leaf)

    # ---- 6: gradients after the pass -----------------------------------------------------------------

    def _show_gradients(self, nodes: Iterable[Node], flow: Flow) -> None:
        at = len(self._recorder.op)
        for node in nodes:
            if node.candidates:
                continue
            if node.thing is flow.root:
                gradient = flow.seed
            elif node.is_parameter:
                gradient = self._types.leaf_number(self._recorder.gradient_leaf(node.value))
            else:
                gradient = self._types.number_when_used(self._gradient(node.value, node.has_gradient, at))
            node.known.gradient.write(node.thing, gradient)

    def _gradient(self, value: int, is_known: bool, at: int) -> Callable[[], int]:
        known: list[int] = []

        def operand() -> int:
            if not is_known:
                self._refuse("the step uses the gradient of a number that is no parameter")
            if not known:
                known.append(self._recorder.adjoint(value, at))
            return known[0]

        return operand  # does not refer to the object, so that graphs without cycles are freed at once


# ---- 2, 3: records that gradients cross ----------------------------------------------------------------------


def convert(recorder: Recorder, nodes: Iterable[Node], used: Container[int] = ()) -> set[int]:
    """Convert the records of nodes so that gradients flow through them, and note which records contribute to what.

    Args:
        nodes: operands before what is computed from them.
        used: operands used by an earlier pass, which must not reach beyond them.

    Returns:
        The operands of the records through which gradients now flow.
    """
    given = [node for node in nodes if node.has_gradient and node.edges]
    crossed = {node.operand for node in nodes if node.has_gradient}
    converted: dict[int, Node] = {}
    derivatives = Derivatives(recorder, crossed)
    columns: dict[Node, list[list[int]]] = {}
    for node in given:
        if node.operand not in converted and node.operand not in used:
            found = derivatives.columns(node.operand, [(e.target.operand, e.factor, e.divides) for e in node.edges])
            if found is not None:
                converted[node.operand] = node
                columns[node] = found
    for node in nodes:
        if node.candidates:
            derivatives.take(node.operand)
    earlier = {node.operand for node in given if node.operand >= 0 and recorder.op[node.operand] < ops.NUMBER}
    for node in given:
        if node in columns:
            _convert(derivatives, node, columns[node])
        else:
            is_crossed = node.operand in converted or node.operand in earlier
            _link(recorder, node, is_crossed or ops.leaf_kind(node.operand) == ops.PARAMETER)
    linked = {node.operand for node in given if node not in columns}
    return linked.union(*((recorder.a[record], recorder.b[record]) for record in converted))


def _convert(derivatives: Derivatives, node: Node, columns: list[list[int]]) -> None:
    for edge, column in zip(node.edges, columns):
        edge.sender = edge.target.value if edge.target.candidates else node.operand
        column[node.operand] = edge.target.value
    derivatives.take(node.operand)


def _link(recorder: Recorder, node: Node, is_crossed: bool) -> None:
    """Add LINK records; that of the first edge comes last, because the backward pass meets it first."""
    if is_crossed:
        node.value = recorder.emit(ops.COPY | ops.NUMBER, node.operand, ops.NO_OPERAND)
    for edge in reversed(node.edges):
        node.value = recorder.link(node.value, edge.target.value, edge.factor, edge.divides)
        edge.sender = edge.target.value if edge.target.candidates else node.value
