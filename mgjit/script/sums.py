"""Which updates of variables only add something up: in `y = y + c * x`, unless something else reads `y` meanwhile.

    y = 0.0                               for x, t in data:
    for c, x in zip(gate, moved):             error = w * x - t
        y = y + c * x                         w = w - rate * error * x

1. A loop carries a variable from one iteration to the next if it does not assign it afresh.  Of the loops around an
   update, the outermost one counts that carries the variable.
2. The update trains if that loop reads the variable in other statements as well: then the next iteration depends on it.
   A variable of the module may be read by functions that the loop calls.
3. Outside of loops, it trains if the variable comes from outside of its function, and may go back there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from .names import FUNCTIONS, SCOPES, blocks_of, names_in, nodes_of, parameters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Loop = Union[ast.For, ast.While]

_LOOPS = (ast.For, ast.While)


def sums(tree: ast.Module, is_update: Callable[[ast.AST], bool]) -> set[int]:
    """The identities of the statements that only add something up.

    Args:
        is_update: whether a statement assigns in place what it computes.
    """
    functions = [node for node in nodes_of(tree) if isinstance(node, FUNCTIONS)]
    found = set[int]()
    for scope in (tree, *functions):
        updates = [(one, loops) for one, loops in _statements(scope.body, ()) if _name(one) and is_update(one)]
        if not updates:
            continue
        names = names_in(scope.body)
        is_module = isinstance(scope, ast.Module)
        shared = set(names.writes if is_module else names.declared)
        if shared:
            shared &= set().union(*(names_in(f.body).reads for f in functions if f is not scope))
        outside = names.declared if isinstance(scope, ast.Module) else names.declared | parameters_of(scope)
        for update, loops in updates:
            name = _name(update)
            carrying = _carrying(name, loops, is_update)
            if not loops:
                trains = is_module or name in outside
            else:
                trains = bool(carrying) and (name in shared or _reads(carrying[-1], name, is_update))
            if not trains:
                found.add(id(update))
    return found


def _statements(block: Sequence[ast.stmt], loops: tuple[Loop, ...]) -> Iterator[tuple[ast.stmt, tuple[Loop, ...]]]:
    """The statements of a scope, with the loops around them, the innermost first."""
    for statement in block:
        if isinstance(statement, SCOPES):
            continue
        yield statement, loops
        further = (statement, *loops) if isinstance(statement, _LOOPS) else loops
        for inner in blocks_of(statement):
            yield from _statements(inner, further)


def _name(statement: ast.stmt) -> str:
    """The variable that a statement assigns; empty if it assigns something else."""
    target: ast.AST | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _carrying(name: str, loops: Sequence[Loop], is_update: Callable[[ast.AST], bool]) -> list[Loop]:
    """The loops that carry a variable, out of those around an update, the innermost first."""
    found: list[Loop] = []
    for loop in loops:
        targets = names_in([loop.target]).writes if isinstance(loop, ast.For) else set[str]()
        fresh = (one for one, _ in _statements(loop.body, ()) if _assigns(one, name) and not is_update(one))
        if name in targets or next(fresh, None) is not None:
            break
        found.append(loop)
    return found


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Whether a statement itself, without those in it, assigns a variable."""
    if isinstance(statement, ast.For):
        return name in names_in([statement.target]).writes
    if isinstance(statement, ast.With):
        return name in names_in(list(statement.items)).writes
    return not list(blocks_of(statement)) and name in names_in([statement]).writes


def _reads(loop: Loop, name: str, is_update: Callable[[ast.AST], bool]) -> bool:
    """Whether a loop reads a variable other than to update it."""
    own = set[int]()
    for one, _ in _statements(loop.body, ()):
        if _name(one) == name and is_update(one):
            own.update(map(id, nodes_of(one)))
    parts: list[ast.AST] = [loop.test] if isinstance(loop, ast.While) else []
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and id(node) not in own
        for part in (*parts, *loop.body)
        for node in nodes_of(part)
    )
