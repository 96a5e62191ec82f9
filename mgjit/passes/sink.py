"""Move loops of independent iterations inwards, where their iterations lie side by side in memory.

    for j:                                for j:
        r[j] = b[j]                           r[j] = b[j]
        for i:                            for i:
            r[j] = r[j] + w[j,i] * x[i]  ->   for j:
        t[j] = relu(r[j])                         r[j] = r[j] + w[j,i] * x[i]
                                          for j:
                                              t[j] = relu(r[j])

The sums keep their order; the inner loop is now one that a compiler can vectorise without reordering anything.

1. A loop may move when its iterations are independent (passes/dependence.py): then its body can be
   distributed, node by node, and it can change places with the loops inside.
2. A loop that may not move as a whole is split (passes/fission.py) when a part of it may.
3. It is worth moving when every access inside the inner loops has step 0 or 1 in it, and the loops inside
   either carry a sum or have longer steps.

Source: loop distribution and interchange, R. Allen, K. Kennedy, "Optimizing Compilers for Modern
Architectures", 2001, chapters 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.program import (
    Block,
    Index,
    Load,
    Loop,
    Node,
    Program,
    Reference,
    Statement,
    leaf_operands,
    leaf_targets,
    statements,
)
from .dependence import independent, registers_cross
from .fission import fission
from .substitute import Substitution, copy_nodes

#: Loops of fewer iterations fill no vector.
_FEWEST = 4


def sink(program: Program) -> None:
    """Move loops inwards where it pays, in place."""
    for _, nodes in program.phases:
        nodes[:] = _sink(nodes)


def _sink(nodes: Sequence[Node]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            node.body = _sink(node.body)
        elif isinstance(node, Loop):
            if _sinks(node):
                done += _distribute(node.body, node)
                continue
            parts = fission(node)
            if any(_sinks(part) for part in parts):
                done += _sink(parts)
                continue
            node.body = _sink(node.body)
        done.append(node)
    return done


def _sinks(loop: Loop) -> bool:
    return _pays(loop) and independent(loop) and not registers_cross(loop.body)


def _distribute(nodes: Sequence[Node], loop: Loop) -> list[Node]:
    """The nodes with `loop`, which was around them, innermost around each stretch of statements."""
    done: list[Node] = []
    run: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            done += _around(run, loop)
            run = []
            done.append(Loop(node.count, [], node.reverse))
            inner = done[-1]
            assert isinstance(inner, Loop)
            copied = copy_nodes(node.body, Substitution(copies={node: inner}))
            inner.body = _distribute(copied, loop)
        else:
            run.append(node)
    return done + _around(run, loop)


def _around(run: Sequence[Node], loop: Loop) -> list[Node]:
    if not run:
        return []
    copy = Loop(loop.count, [], loop.reverse)
    copy.body = copy_nodes(run, Substitution(copies={loop: copy}))
    return [copy]


# ---- does it pay? -----------------------------------------------------------------------------------------


def _pays(loop: Loop) -> bool:
    inner = list(_innermost(loop.body))
    if loop.count < _FEWEST or not inner:
        return False
    mine = theirs = 0
    for other in inner:
        for index in _accesses(other):
            steps = dict(index.terms)
            step = abs(steps.get(loop, 0))
            if step > 1 or index.table is not None or index.dynamic is not None:
                return False
            mine += step
            theirs += min(abs(steps.get(other, 0)), 2)
        theirs += 2 * sum(1 for _ in _sums(other))
    return mine > 0 and mine < theirs


def _innermost(nodes: Sequence[Node]) -> Iterator[Loop]:
    for node in nodes:
        if isinstance(node, Loop):
            deeper = [child for child in node.body if isinstance(child, Loop)]
            if deeper:
                yield from _innermost(node.body)
            else:
                yield node


def _accesses(loop: Loop) -> Iterator[Index]:
    for statement in statements(loop.body):
        for place in leaf_targets(statement.target):
            if isinstance(place, Reference):
                yield place.index
        for operand in statement.operands:
            for part in leaf_operands(operand):
                if isinstance(part, Load):
                    yield part.reference.index


def _sums(loop: Loop) -> Iterator[Statement]:
    for statement in statements(loop.body):
        target = statement.target
        if statement.update and isinstance(target, Reference) and loop not in dict(target.index.terms):
            yield statement
