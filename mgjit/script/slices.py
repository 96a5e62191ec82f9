"""Slices that are all a step needs of a list: it gets them in place of the list, and of the indices.

    for start in range(0, len(data), 16):
        loss = update(data[start:start + 16])       called(SECTION.cut(data, start, start + 16, None))

Otherwise each position would be a step of its own, and each shuffle of the list would undo them.

1. The ends have only names that the step does not assign, one of which the loop assigns.
2. Wherever the step reads the list, it takes a slice, and it changes nothing in it.
3. The section takes it from lists and tuples alone (`Section.cut`), which the program cannot notice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .find import CHANGING
from .names import names_in, nodes_of

#: A step gets so many slices, at most.
_MOST = 6
#: What the ends of a slice consist of.
_OF_ENDS = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub,
    ast.Load, ast.Slice,
)  # fmt: skip


def slices_of(
    statements: Sequence[ast.stmt], varying: set[str], taken: set[str]
) -> tuple[dict[str, list[ast.Subscript]], set[str]]:
    """The arguments that stand for slices, with all places where these are read; and names that nothing else needs.

    Args:
        varying: the names that the loop assigns, but not the step. taken: names that the module uses.
    """
    nodes = [node for one in statements for node in nodes_of(one)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    chosen = [node for node in nodes if isinstance(node, ast.Subscript) and _is_chosen(node, varying, bound)]
    inside = {id(part) for node in chosen for part in nodes_of(node)}
    kept = {node.id for node in names if id(node) not in inside} | {_root(node) for node in nodes if _changes(node)}
    found: dict[str, list[ast.Subscript]] = {}
    for node in chosen:
        if _root(node) not in kept:
            found.setdefault(ast.dump(node), []).append(node)
    arguments = [f"slice_{k}_of_mgjit" for k in range(len(found))]
    if len(found) > _MOST or taken.intersection(arguments):
        return {}, set()
    replaced = {id(part) for places in found.values() for node in places for part in nodes_of(node)}
    gone = {node.id for node in names if id(node) in replaced} - {node.id for node in names if id(node) not in replaced}
    return dict(zip(arguments, found.values())), gone


def _is_chosen(node: ast.Subscript, varying: set[str], bound: set[str]) -> bool:
    """Whether a node is a slice of a variable, whose ends are the loop's."""
    is_simple = isinstance(node.value, ast.Name) and node.lineno == node.end_lineno and isinstance(node.ctx, ast.Load)
    is_slice = isinstance(node.slice, ast.Slice) and all(isinstance(part, _OF_ENDS) for part in nodes_of(node.slice))
    of_loop = bool(names_in([node.slice]).reads & varying) and not names_in([node]).reads & bound
    return is_simple and is_slice and of_loop


def _changes(node: ast.AST) -> bool:
    """Whether a node assigns to an element or attribute, or calls a method that changes its object."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING
    return isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load)


def _root(node: ast.AST) -> str:
    """The variable at the beginning of `x[0].y.append(z)`."""
    while not isinstance(node, ast.Name):
        inner = getattr(node, "func", None) or getattr(node, "value", None)
        if inner is None:
            return ""
        node = inner
    return node.id


def taken_by(method: ast.expr, like: ast.Subscript) -> ast.Call:
    """The call of a section's method `cut` that takes a slice."""
    assert isinstance(like.slice, ast.Slice)
    ends = [copy.deepcopy(one) or ast.Constant(None) for one in (like.slice.lower, like.slice.upper, like.slice.step)]
    return ast.copy_location(ast.Call(method, [copy.deepcopy(like.value), *ends], []), like)
