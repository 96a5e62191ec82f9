"""Unroll and jam: run several independent reductions at once.

    for j:                                for j in steps of 8:
        r[j] = b[j]                           r[j+0] = b[j+0] ... r[j+7] = b[j+7]
        for i:                                for i:
            r[j] = r[j] + w[j,i] * x[i]  ->       r[j+0] = r[j+0] + w[j+0,i] * x[i]
        t[j] = relu(r[j])                         ...
                                                  r[j+7] = r[j+7] + w[j+7,i] * x[i]
                                              t[j+0] = relu(r[j+0]) ...

A strict sum is a chain of dependent additions: a processor waits several cycles for each.  Eight chains side
by side keep it busy, and no sum changes its order.

1. Candidates are loops whose body holds loops with an accumulator that does not depend on the inner variable.
2. The iterations must be independent: whatever the body writes, each iteration touches elements of its own.
3. The loop is split into steps of `WIDTH` iterations and a rest.  In a step, every node of the body is
   executed for all `WIDTH` iterations before the next node; in the inner loops, for all of them in turn.

Source: "unroll-and-jam", Callahan, Carr, Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Block, Loop, Node, Program, Reference, Statement, statements
from .dependence import independent, registers_cross
from .substitute import Substitution, copy_nodes

#: Reductions that run side by side.
WIDTH = 8
#: Bodies of more statements than this are not multiplied.
_LARGEST_BODY = 40


def jam(program: Program) -> None:
    """Unroll and jam where it helps, in place."""
    for _, nodes in program.phases:
        nodes[:] = _jam(nodes)


def _jam(nodes: Sequence[Node]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            node.body = _jam(node.body)
        if isinstance(node, Loop):
            if _helps(node) and independent(node) and not registers_cross(node.body):
                done += _split(node)
                continue
            node.body = _jam(node.body)
        done.append(node)
    return done


# ---- 1: does it help? -----------------------------------------------------------------------------------


def _helps(loop: Loop) -> bool:
    if loop.count < WIDTH or len(list(statements(loop.body))) > _LARGEST_BODY:
        return False
    inner = [node for node in loop.body if isinstance(node, Loop)]
    nested = any(isinstance(deeper, Loop) for node in inner for deeper in node.body)
    return not nested and any(_accumulates(node) for node in inner)


def _accumulates(loop: Loop) -> bool:
    return any(
        isinstance(node, Statement)
        and node.update
        and isinstance(node.target, Reference)
        and node.target.array.space == "scratch"
        and all(inner is not loop for inner, _ in node.target.index.terms)
        for node in loop.body
    )


# ---- the transformation ---------------------------------------------------------------------------------


def _split(loop: Loop) -> list[Node]:
    steps, rest = divmod(loop.count, WIDTH)
    main = Loop(steps, [], loop.reverse)
    offsets = range(WIDTH - 1, -1, -1) if loop.reverse else range(WIDTH)
    main.body = _for_all(loop.body, loop, main, offsets)
    tail: list[Node] = []
    if rest:
        last = Loop(rest, [], loop.reverse)
        last.body = copy_nodes(loop.body, Substitution(loop, last, 1, steps * WIDTH))
        tail.append(last)
    return [*tail, main] if loop.reverse else [main, *tail]


def _for_all(body: Sequence[Node], loop: Loop, main: Loop, offsets: Sequence[int]) -> list[Node]:
    done: list[Node] = []
    run: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            done += _each(run, loop, main, offsets)
            run = []
            inner = Loop(node.count, [], node.reverse)
            for offset in offsets:
                inner.body += copy_nodes(node.body, Substitution(loop, main, WIDTH, offset, {node: inner}))
            done.append(inner)
        else:
            run.append(node)
    return done + _each(run, loop, main, offsets)


def _each(run: Sequence[Node], loop: Loop, main: Loop, offsets: Sequence[int]) -> list[Node]:
    return [node for offset in offsets for node in copy_nodes(run, Substitution(loop, main, WIDTH, offset))]
