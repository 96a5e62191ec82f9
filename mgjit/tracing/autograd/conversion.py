"""Convert the records of nodes so that gradients flow through them (autograd/symbolic.py).

1. Where the factors of a node's edges are the derivatives of its operation (autograd/derivatives.py), its record is
   made one through which gradients flow.
2. Otherwise LINK records are added, each with the number of the node, one of its operands, and the factor of that edge.
3. Data that a node shares with another one, or that is used without an edge (also by an earlier pass), is copied.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence

from ...ir import opcodes as ops
from ..record.recorder import Recorder
from .derivatives import Derivatives
from .flow import Node


def convert(
    recorder: Recorder,
    nodes: Sequence[Node],
    senders: list[int | None],
    used: Container[int],
    crossed: set[int],
) -> tuple[set[int], set[int]]:
    """Convert the records of nodes, and note which records contribute to what.

    Args:
        nodes: operands before what is computed from them.
        senders: by number of the edge, the record that contributes it; None if it is not needed.
        used: operands used by an earlier pass, which must not reach beyond them.
        crossed: the operands through which gradients will flow, besides those of records through which they do by now.

    Returns:
        What has got another record, and the records through which gradients flow.
    """
    derivatives = Derivatives(recorder, crossed)
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
    return linked, converted


def _link(recorder: Recorder, node: Node, is_crossed: bool, senders: list[int | None]) -> None:
    """Add LINK records; that of the first edge comes last, because the backward pass meets it first."""
    if is_crossed:
        node.value = recorder.emit(ops.COPY | ops.NUMBER, node.operand, ops.NO_OPERAND)
    for target, _, factor, divides, number in reversed(node.edges):
        node.value = recorder.link(node.value, target.value, factor, divides)
        senders[number] = target.value if target.candidates else node.value
