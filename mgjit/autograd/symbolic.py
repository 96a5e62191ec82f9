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

from array import array
from collections.abc import Callable, Container, Sequence
from typing import Any

from ..record import opcodes as ops
from ..record.leaks import is_traced_number
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..runtime.live import Field
from .chosen import choice_of, is_gathered
from .derivatives import Derivatives, Edge
from .flow import Flow, Given, Node, NoFlow
from .node_class import NodeClass, node_class
from .order import Arrangement

#: Up to this many contributions to a gradient of zero may come in any order, because a + b equals b + a.
_COMMUTATIVE = 2
#: Factors of sums and differences.
_ONES = (1.0, -1.0)


class SymbolicBackward:
    """Records the symbolic backward passes of one trace.

    Args:
        memory_of: for an object, the leaf of its data, and its gradient when the trace began; None if it is not a
            parameter.
        lasting: the identities of the objects that existed before the step.
        refuse: called when something is needed that was not recorded; does not return.

    Attributes:
        reached: the leaves of the gradients that passes have added to, or set to zero.
    """

    def __init__(
        self,
        recorder: Recorder,
        types: TracedTypes,
        memory_of: Callable[[Any], tuple[int, Any] | None],
        lasting: Container[int],
        refuse: Callable[[str], Any],
    ) -> None:
        self._recorder, self._types = recorder, types
        self._memory_of, self._lasting, self._refuse = memory_of, lasting, refuse
        self._known: dict[type, tuple[NodeClass, Callable[[Any], Any], Callable[[Any], Any]]] = {}
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
        nodes, edges, root = self._nodes(flow)
        stores, seeds = self._initial_gradients(nodes, flow)
        senders: list[int | None] = [None] * len(edges)
        self._used |= convert(self._recorder, nodes, senders, self._used)
        for edge, sender in zip(edges, senders):
            if sender is not None:
                target = edge[0]
                if target.candidates:
                    for one in target.candidates:
                        one.senders = one.senders or []
                        one.senders.append(sender)
                elif target.senders is None:
                    target.senders = [sender]
                else:
                    target.senders.append(sender)
        arrangement = Arrangement(self._recorder, first_record)
        seeded = {id(node) for node, _ in seeds}
        zero_at_first = {leaf for leaf, operand in stores if self._recorder.is_zero(operand)}
        for node in nodes:
            if node.senders is not None and len(node.senders) > 1 and node.known.is_ordered:
                if node.is_parameter:
                    is_zero = self._recorder.gradient_leaf(node.value) in zero_at_first
                else:
                    is_zero = id(node) not in seeded
                if len(node.senders) > (_COMMUTATIVE if is_zero else 1):
                    arrangement.keep_order(node.senders[::-1])
        arrangement.apply([sender for sender in senders if sender is not None])
        self._recorder.store_all(stores)
        given = None if flow.given is None else flow.node(flow.given).value
        start = root.value if root is not None else self._seeded(seeds, given)
        if start is not None and (root is None or root.has_gradient):
            self._recorder.backward(start)
        self._show_gradients(nodes, flow)

    def _seeded(self, seeds: list[tuple[Node, int]], total: int | None) -> int | None:
        """A root from which the pass gives each seeded node its gradient: the sum of the products, and of `total`."""
        recorder = self._recorder
        for node, gradient in seeds:
            product = recorder.emit(ops.MULTIPLY, node.value, gradient)
            total = product if total is None else recorder.emit(ops.ADD, total, product)
        return total

    # ---- 1: nodes ---------------------------------------------------------------------------------

    def _nodes(self, flow: Flow) -> tuple[list[Node], list[Edge], Node | None]:
        """All nodes, operands before what is computed from them; all edges in order; and the root."""
        nodes: list[Node] = []
        edges: list[Edge] = []
        sources: list[Node] = []
        meet = self._meet
        root = None if flow.root is None else flow.node(flow.root)
        if root is not None:
            meet(root, nodes)
        if flow.given is not None:
            sources.append(self._given(flow.node(flow.given)))
        types: Any = self._types
        number, operand_of = types.number, types.number_operand
        constants: dict[float, int] = {}  # the operands of factors: ones, mostly
        before: Any = None
        add: Callable[[Edge], None] = edges.append
        for source, target, factor, divides in flow.edges:
            node = target
            if node.known is None:
                if is_gathered(node.thing):
                    node = self._looked_up(node.thing, source, flow, nodes)
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
        recorder = self._recorder
        node.known = Given
        node.operand = recorder.emit(ops.COPY | ops.NUMBER, recorder.constant(0.0), ops.NO_OPERAND)
        node.value, node.is_parameter, node.has_gradient = node.operand, False, True
        return node

    def _looked_up(self, thing: Any, user: Node, flow: Flow, nodes: list[Node]) -> Node:
        """A parameter chosen by a traced index, as an operand of `user`: each operand has its own look-up."""
        _, chosen_from, index = choice_of(thing)
        candidates = [flow.node(part) for part in chosen_from]
        for node in [*candidates, user]:
            self._meet(node, nodes)
        found = Node(thing)
        found.known, found.candidates = candidates[0].known, candidates
        if user.thing is flow.given and not any(candidate.is_parameter for candidate in candidates):
            found.operand, found.has_gradient = candidates[0].operand, False  # constants that the step makes
            return found
        if not all(candidate.is_parameter for candidate in candidates):
            raise NoFlow("a traced index chooses among what is no parameter")
        places = [candidate.operand for candidate in candidates]
        record = self._recorder.look_up_before(user.operand, places[0], index._leaf)
        if user.thing is flow.given and self._recorder.is_table(places):
            record = self._recorder.take(places, index._leaf, engine=False)
        if record is None:
            raise NoFlow("a traced index chooses among parameters that do not lie at equal distances")
        if record in self._look_ups:
            raise NoFlow("the data of a parameter that a traced index has chosen is read once and used twice")
        self._look_ups.add(record)
        found.operand = found.value = record
        found.is_parameter, found.has_gradient = False, True
        nodes.append(found)
        return found

    def _meet(self, node: Node, nodes: list[Node]) -> None:
        """Find out about a node, and append it to the others, unless it is among them."""
        if node.known is not None:
            return
        thing = node.thing
        kind = type(thing)
        known, read, _ = self._known.get(kind) or self._class(kind)
        try:
            data = read(thing)
        except (AttributeError, KeyError):
            raise NoFlow(f"a {kind.__name__} has no {known.data.name}") from None
        operand: int
        if type(data) is self._types.number:
            operand = data._leaf  # type: ignore[attr-defined]
        elif is_traced_number(data) or isinstance(data, (int, float)):
            operand = self._types.number_operand(data)
        else:
            raise NoFlow(f"{known.data.name} of a {kind.__name__} is no number")
        memory = self._memory_of(thing) if operand < 0 else None
        is_parameter = memory is not None and memory[0] == operand
        if not is_parameter and id(thing) in self._lasting:
            raise NoFlow(f"{known.data.name} of a {kind.__name__} from outside of the step has been assigned")
        node.known, node.operand, node.value = known, operand, operand
        node.is_parameter = node.has_gradient = is_parameter
        nodes.append(node)

    def _class(self, kind: type) -> tuple[NodeClass, Callable[[Any], Any], Callable[[Any], Any]]:
        """What is known about a class, and what reads the data and the gradient of its objects."""
        known = node_class(kind)
        if known is None:
            raise NoFlow(f"{kind.__name__} is another class")
        found = self._known[kind] = known, known.data.reader(kind), known.gradient.reader(kind)
        return found

    # ---- 4: gradients before the pass ----------------------------------------------------------------

    def _initial_gradients(
        self, nodes: Sequence[Node], flow: Flow
    ) -> tuple[list[tuple[int, int]], list[tuple[Node, int]]]:
        """The stores that set the initial gradients of parameters, and the initial gradients of computed nodes."""
        stores, seeds = [], []
        operand_of, zeroed = self._types.number_operand, flow.zeroed
        kind: Any = None
        zero: Any = None  # what was found to be one: mostly the constant in the class's code
        for node in nodes:
            if node.candidates or node.known is Given:
                continue
            thing = node.thing
            if type(thing) is not kind:
                kind = type(thing)
                read = self._known[kind][2]
            gradient = 0 if zeroed and id(thing) in zeroed else read(thing)
            if gradient is None:
                raise NoFlow("a gradient is None before")
            if node.is_parameter:
                leaf = self._recorder.gradient_leaf(node.operand)
                self.reached.add(leaf)
                if not self._is_in_place(gradient, leaf, node.thing):
                    stores.append((leaf, operand_of(gradient)))
            elif gradient is zero:
                pass
            elif self._recorder.is_zero(operand_of(gradient)):
                zero = gradient
            else:
                if flow.root is not None:
                    raise NoFlow("the gradient of a computed node is not zero before, as after an earlier backward()")
                if node.has_gradient:
                    seeds.append((node, operand_of(gradient)))
        stores.sort(reverse=True)  # in the order in which parameters lie, whose leaves count downwards
        return stores, seeds

    def _is_in_place(self, gradient: Any, leaf: int, thing: Any) -> bool:
        """Whether a gradient equals what the memory at `leaf` holds now."""
        memory = self._memory_of(thing)
        if memory is not None and gradient is memory[1]:
            return leaf not in self._recorder.last_store and self._recorder.last_backward < 0
        return self._types.is_current(gradient, leaf)

    # ---- 6: gradients after the pass -----------------------------------------------------------------

    def _show_gradients(self, nodes: Sequence[Node], flow: Flow) -> None:
        at = len(self._recorder.op)
        known: dict[int, int] = {}

        def read(number: int, value: int) -> int:
            if number not in known:
                known[number] = self._recorder.adjoint(value, at)
            return known[number]

        def refuse() -> int:
            return self._refuse("the step uses the gradient of a number that is no parameter")  # type: ignore[no-any-return]

        # What is shown does not refer to its object, so that graphs without cycles are freed at once.
        when_used, unknown = self._types.number_when_used, self._types.number_when_used(refuse)
        shown: dict[type, tuple[Field, list[Any], list[Any]]] = {}  # by class: its field, objects, their gradients
        kind: Any = None
        for number, node in enumerate(nodes):
            if node.candidates or node.known is Given:
                continue
            thing = node.thing
            if thing is flow.root:
                gradient = flow.seed
            elif node.is_parameter:
                gradient = self._types.leaf_number(self._recorder.gradient_leaf(node.value))
            elif node.has_gradient:
                gradient = when_used(read, number, node.value)
            else:
                gradient = unknown
            if type(thing) is not kind:
                kind = type(thing)
                _, things, gradients = shown.setdefault(kind, (node.known.gradient, [], []))
            things.append(thing)
            gradients.append(gradient)
        for field, things, gradients in shown.values():
            field.write_all(things, gradients)


# ---- 2, 3: records that gradients cross ----------------------------------------------------------------------


def convert(
    recorder: Recorder, nodes: Sequence[Node], senders: list[int | None], used: Container[int] = ()
) -> set[int]:
    """Convert the records of nodes so that gradients flow through them, and note which records contribute to what.

    Args:
        nodes: operands before what is computed from them.
        senders: by number of the edge, the record that contributes it; None if it is not needed.
        used: operands used by an earlier pass, which must not reach beyond them.

    Returns:
        The operands of the records through which gradients now flow.
    """
    derivatives = Derivatives(recorder, {node.operand for node in nodes if node.has_gradient})
    usual, columns_of, take = derivatives.of_usual_form, derivatives.columns, derivatives.take
    converted: set[int] = set()
    look_ups: list[int] = []
    given: list[tuple[Node, Sequence[array[int]] | None]] = []
    for node in nodes:
        if node.edges and node.has_gradient:
            record, found = node.operand, None
            if record not in converted and record not in used:
                found = usual(record, node.edges) or columns_of(record, node.edges)
                if found is not None:
                    converted.add(record)
            given.append((node, found))
        elif node.candidates:
            look_ups.append(node.operand)
    for record in look_ups:
        take(record)
    linked = set()
    op, is_power = recorder.op, ops.POWER | ops.NUMBER
    for node, found in given:
        record = node.operand
        if found is not None:
            for (target, _, _, _, number), column in zip(node.edges, found):
                value = column[record] = target.value
                senders[number] = value if target.candidates else record
            if op[record] == is_power:
                take(record)
            else:
                op[record] &= ~ops.NUMBER
        else:
            linked.add(record)
            is_crossed = record in converted or (record >= 0 and recorder.op[record] < ops.NUMBER)
            _link(recorder, node, is_crossed or ops.leaf_kind(record) == ops.PARAMETER, senders)
    return linked.union(map(recorder.a.__getitem__, converted), map(recorder.b.__getitem__, converted))


def _link(recorder: Recorder, node: Node, is_crossed: bool, senders: list[int | None]) -> None:
    """Add LINK records; that of the first edge comes last, because the backward pass meets it first."""
    if is_crossed:
        node.value = recorder.emit(ops.COPY | ops.NUMBER, node.operand, ops.NO_OPERAND)
    for target, _, factor, divides, number in reversed(node.edges):
        node.value = recorder.link(node.value, target.value, factor, divides)
        senders[number] = target.value if target.candidates else node.value
