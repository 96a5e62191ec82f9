"""Results that are used as objects now and then: with the graph that they were computed in, which no kernel has.

    for step in range(n):                 for step in range(n):
        loss = f(step)                        loss = f(step)
        loss.backward()                       loss.backward()
        if loss.data < limit:             return loss
            return loss

Plain Python makes the iterations after which that happens:

1. Where it is under an `if` behind the step, the step computes the test, too, and is undone where it holds.
2. Where it is after the loop: the last iteration of a `for` over a range, list or tuple, and what ends with `break`.

A trace shows whether a result is such an object at all, or a number (`accuracy * 100`), which nobody has to leave.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .interface import Outline, read_after
from .moved import leaves
from .names import SCOPES, called_name, exposed, names_in, nodes_of, walk


def leave_objects(outline: Outline, stop: Callable[[ast.stmt, int], ast.stmt | None]) -> bool:
    """Leave iterations to plain Python whose results are used as objects; returns whether that was possible.

    Args:
        outline: gets the tests.
        stop: makes `stop_k = test` of a statement, or returns None.
    """
    loop, scope = outline.candidate.loop, outline.candidate.scope
    names = {name for name, only in zip(outline.results, outline.numbers_only) if not only}
    targets = names_in([loop.target]).writes if isinstance(loop, ast.For) else set()
    again = [ast.Expr(loop.test)] if isinstance(loop, ast.While) else []
    if outline.block is not loop.body or exposed([*again, *loop.body], targets, as_objects=True) & names:
        return False
    behind = outline.candidate.block[outline.candidate.block.index(loop) + 1 :]
    after = names & (read_after([loop], scope, as_objects=True) | exposed([*loop.orelse, *behind], set(), True))
    if after and not _can_go_on(outline):
        return False
    changed, made, breaks = set[str](), list[ast.stmt](), 0
    for statement in outline.block[outline.end :]:
        if exposed([statement], set(), as_objects=True) & names or (after and leaves(statement)):
            test = stop(statement, len(outline.stops) + len(made))
            is_sure = isinstance(statement, ast.If) and not exposed([ast.Expr(statement.test)], set(), True) & names
            if test is None or not is_sure or names_in([test]).reads & changed:
                return False
            made.append(test)
            breaks += _breaks([statement])
        changed |= names_in([statement]).writes
    if after and breaks != _breaks(loop.body):
        return False
    outline.statements += made
    outline.stops += [f"stop_{len(outline.stops) + k}_of_mgjit" for k in range(len(made))]
    outline.leaving = len(made)
    outline.without_last = bool(after) and isinstance(loop, ast.For)
    return True


def _can_go_on(outline: Outline) -> bool:
    """Whether it can be known, before an iteration, that it is the last one."""
    loop, scope = outline.candidate.loop, outline.candidate.scope
    tries = [node for node in walk(scope.body) if isinstance(node, ast.Try)]
    if loop.orelse or any(node is loop for one in tries for node in nodes_of(one)):
        return False
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return not isinstance(loop.iter, ast.Call) or called_name(loop.iter) == "range"


def _breaks(block: list[ast.stmt]) -> int:
    """How many `break` of a loop there are in a block of its body."""
    nodes = walk(block, (*SCOPES, ast.For, ast.While))
    return sum(isinstance(node, ast.Break) for node in nodes)
