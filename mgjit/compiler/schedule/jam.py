"""Unroll and jam: execute several independent iterations of a loop side by side.

    for j:                                for j in steps of 4:
        r[j] = b[j]                           r[j+0] = b[j+0] ... r[j+3] = b[j+3]
        for i:                                for i:
            r[j] = r[j] + w[j,i] * x[i]  ->       r[j+0] = r[j+0] + w[j+0,i] * x[i]
        t[j] = relu(r[j])                         ...
                                                  r[j+3] = r[j+3] + w[j+3,i] * x[i]
                                              t[j+0] = relu(r[j+0]) ...

1. Every node of the body is executed for all iterations before the next node; loops inside are shared and jammed in
   turn.  Their bounds must not refer to the loop.
2. Iterations that differ by the same steps are a loop again, around each stretch of nodes (`Loop.beside`): generated
   code has a copy of it for each of them, the Program has one.

schedule/in_blocks.py says for which loops this is done, and for how many iterations.

Source: "unroll-and-jam", D. Callahan, S. Carr, K. Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builders import nested
from ...ir.nest import Nest
from ...ir.program import Loop, Node, Statement, statements
from ...ir.substitute import Substitution, copy_nodes


def side_by_side(body: Sequence[Node], iterations: Sequence[Substitution]) -> list[Node]:
    """The body for several iterations, node by node; each, or a loop over some, is given by its substitution."""
    done: list[Node] = []
    run: list[Node] = []
    for node in body:
        if isinstance(node, Loop) and not (node.lanes or node.beside):
            done += _each(run, iterations)
            run = []
            inner = iterations[0].loop_copy(node)  # its bound is the same in all of them
            for iteration in iterations:
                iteration.copies[node] = inner
            inner.body = side_by_side(node.body, iterations)
            done.append(inner)
        else:
            run.append(node)
    return done + _each(run, iterations)


def _each(run: Sequence[Node], iterations: Sequence[Substitution]) -> list[Node]:
    done: list[Node] = []
    for iteration in iterations:
        nodes = copy_nodes(run, iteration)
        done += nodes if iteration.new is None or not iteration.new.beside else _in_loop(nodes, iteration.new)
    return done


def _in_loop(nodes: list[Node], loop: Loop) -> list[Node]:
    """The nodes in a loop of their own, or a copy for each iteration if some would be the same in all of them."""
    changing = Nest([], [], [], set(), dict.fromkeys(statements(nodes), ())).varying(loop)
    if all(node in changing for node in nodes if isinstance(node, Statement)):
        own = loop.empty_copy()
        return nested([own], copy_nodes(nodes, Substitution(copies={loop: own}))) if nodes else []
    return [node for k in range(loop.count) for node in copy_nodes(nodes, Substitution(loop, None, 1, k))]
