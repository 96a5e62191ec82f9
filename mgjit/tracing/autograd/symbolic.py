"""Symbolic `backward()` for the user's own classes: one BACKWARD record instead of thousands of others.

1. Observe what the class's own `backward()` does, as a flow of gradients along edges (autograd/flow.py), and find out
   about its nodes (autograd/meeting.py).
2. Each node of the flow has the record that computed its data.  If the factors of its edges are the derivatives of that
   operation, the record is made one through which gradients flow; otherwise LINK records are added
   (autograd/conversion.py).  Where each node contributes once, most need no edges (autograd/styled.py).
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

from collections import deque
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any

from ...ir import opcodes as ops
from ...memory.live import Field
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .conversion import convert
from .derivatives import Edge
from .flow import Flow, Given, Node, NoFlow
from .meeting import Meeting
from .order import Arrangement
from .styled import StyledGraph

#: Up to this many contributions to a gradient of zero may come in any order, because a + b equals b + a.
_COMMUTATIVE = 2


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
        self._memory_of, self._refuse = memory_of, refuse
        self._meeting = Meeting(recorder, types, memory_of, lasting)
        self.reached: set[int] = set()
        self._used: set[int] = set()  # operands of records through which gradients flow in earlier passes
        self._crossed: Collection[int] = ()  # those records of the last pass, whose operands have not been added yet

    def record(self, flow: Flow, first_record: int) -> None:
        """Record a backward pass.

        Args:
            flow: what it does.
            first_record: the records from here on were made while it was observed.

        Raises:
            NoFlow: it cannot be recorded as one.
        """
        self._used.update(map(self._recorder.a.__getitem__, self._crossed))
        self._used.update(map(self._recorder.b.__getitem__, self._crossed))
        graph = StyledGraph(flow, self._meeting, self._used) if flow.operands_first is not None else None
        edges: list[Edge] = []
        if graph is not None:
            nodes, root = graph.nodes, graph.root
        else:
            nodes, edges, root = self._meeting.nodes(flow)
        stores, seeds = self._initial_gradients(nodes, flow)
        senders, linked, self._crossed = graph.convert() if graph is not None else self._converted(nodes, edges)
        self._used |= linked
        arrangement = Arrangement(self._recorder, first_record)
        seeded = {id(node) for node, _ in seeds}
        zero_at_first = {leaf for leaf, operand in stores if self._recorder.is_zero(operand)}
        for node in nodes:
            if len(node.senders) > 1 and node.known.is_ordered:
                if node.is_parameter:
                    is_zero = self._recorder.gradient_leaf(node.value) in zero_at_first
                else:
                    is_zero = id(node) not in seeded
                if len(node.senders) > (_COMMUTATIVE if is_zero else 1):
                    arrangement.keep_order(node.senders)
        usual: Sequence[Node] = graph.usual if graph is not None else ()
        for node in usual:
            if len(node.senders) > _COMMUTATIVE and node.known.is_ordered:
                arrangement.keep_order(node.senders)
        arrangement.apply(senders)
        self._recorder.store_all(stores)
        given = None if flow.given is None else flow.node(flow.given).value
        start = root.value if root is not None else self._seeded(seeds, given)
        if start is not None and (root is None or root.has_gradient):
            self._recorder.backward(start)
        self._show_gradients([*nodes, *usual], flow)

    def _converted(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[list[int], set[int], set[int]]:
        """As `StyledGraph.convert`, of observed nodes."""
        senders: list[int | None] = [None] * len(edges)
        crossed = {node.operand for node in nodes if node.has_gradient}
        linked, converted = convert(self._recorder, nodes, senders, self._used, crossed)
        for edge, sender in zip(reversed(edges), reversed(senders)):
            if sender is not None:
                for one in edge[0].candidates or (edge[0],):
                    one.senders.append(sender)
        return [sender for sender in reversed(senders) if sender is not None], linked, converted

    def _seeded(self, seeds: list[tuple[Node, int]], total: int | None) -> int | None:
        """A root from which the pass gives each seeded node its gradient: the sum of the products, and of `total`."""
        recorder = self._recorder
        for node, gradient in seeds:
            product = recorder.emit(ops.MULTIPLY, node.value, gradient)
            total = product if total is None else recorder.emit(ops.ADD, total, product)
        return total

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
                read = self._meeting.reading(kind)[2]
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
            deque(field.write_all(things, gradients), maxlen=0)
