"""Unroll and jam: execute several independent iterations of a loop side by side.

    for j:                                for j in steps of 4:
        r[j] = b[j]                           r[j+0] = b[j+0] ... r[j+3] = b[j+3]
        for i:                                for i:
            r[j] = r[j] + w[j,i] * x[i]  ->       r[j+0] = r[j+0] + w[j+0,i] * x[i]
        t[j] = relu(r[j])                         ...
                                                  r[j+3] = r[j+3] + w[j+3,i] * x[i]
                                              t[j+0] = relu(r[j+0]) ...

A strict sum is a chain of dependent additions: a processor waits several cycles for each.  Several chains side by side
keep it busy and share what they read, and no sum changes its order.  passes/cost.py decides which loops are jammed, and
by how much; this module does it.

1. The loop is split into steps of `factor` iterations and a remainder; both are jammed.
2. In a step, every node of the body is executed for all iterations before the next node; loops inside are shared
   and jammed in turn.  Their bounds must not refer to the loop.

Source: "unroll-and-jam", D. Callahan, S. Carr, K. Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Loop, Node
from .substitute import Substitution, copy_nodes


def jam(loop: Loop, factor: int) -> list[Node]:
    """The loop with `factor` iterations side by side; its iterations must be independent."""
    if factor <= 1:
        return [loop]
    steps, rest = divmod(loop.count, factor)
    done: list[Node] = []
    if steps:
        main = Loop(steps, []) if steps > 1 else None
        body = side_by_side(loop.body, [Substitution(loop, main, factor, offset) for offset in range(factor)])
        done += _in(main, body, factor)
    if rest:
        start = steps * factor
        done += side_by_side(loop.body, [Substitution(loop, None, 1, start + offset) for offset in range(rest)])
    return done


def _in(loop: Loop | None, body: list[Node], factor: int) -> list[Node]:
    if loop is None:
        return body
    loop.body, loop.at_once = body, factor
    return [loop]


def side_by_side(body: Sequence[Node], iterations: Sequence[Substitution]) -> list[Node]:
    """The body for several iterations, node by node; each iteration is given by its substitution."""
    done: list[Node] = []
    run: list[Node] = []
    for node in body:
        if isinstance(node, Loop) and not node.lanes:
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
    return [node for iteration in iterations for node in copy_nodes(run, iteration)]
