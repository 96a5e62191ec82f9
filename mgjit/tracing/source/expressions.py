"""What an expression of the user's source is: whether its test is certain, what it asks for, which names it binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

_PLAIN_TESTS = frozenset({"isinstance", "issubclass", "hasattr", "callable", "len"})
_PLAIN_OPERATORS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_HAS_ITS_OWN_MEANING = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_OF_THE_FRAME = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})


def tells_ints(kinds: ast.expr) -> bool:
    """Whether the classes of an `isinstance` seem to tell ints from floats."""
    names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(kinds)}
    return ("float" in names) != (not names.isdisjoint(("int", "Integral", "Rational", "integer")))


def is_plain(node: Any) -> bool:
    """Whether a test is certain to have a truth value."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _PLAIN_TESTS
    if isinstance(node, ast.BoolOp):
        return all(map(is_plain, node.values))
    if isinstance(node, ast.UnaryOp):
        return is_plain(node.operand)
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        return all(isinstance(op, _PLAIN_OPERATORS) for op in node.ops) or all(map(is_plain, parts))
    return False


def asks_for_none(node: ast.Compare) -> bool:
    """Whether a comparison is `x is None` or `x is not None`."""
    last = node.comparators[-1]
    is_one = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot))
    return is_one and isinstance(last, ast.Constant) and last.value is None and not isinstance(node.left, ast.Constant)


def asks_for_identity(node: ast.Compare) -> bool:
    """Whether a comparison has an `is` that is not one with a constant, such as None."""
    parts = [node.left, *node.comparators]
    sides = zip(node.ops, parts, parts[1:])
    return any(
        isinstance(op, (ast.Is, ast.IsNot)) and not any(isinstance(side, ast.Constant) for side in pair)
        for op, *pair in sides
    )


def is_plain_index(node: Any) -> bool:
    """Whether an index is a literal."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.Tuple):  # with a slice, it cannot be an argument
        return all(map(is_plain_index, node.elts)) or any(isinstance(part, ast.Slice) for part in node.elts)
    return isinstance(node, (ast.Constant, ast.Slice))


def has_its_own_meaning(*nodes: Any) -> bool:
    """Whether expressions contain anything whose meaning depends on the function around it."""
    return any(
        isinstance(part, _HAS_ITS_OWN_MEANING) or (isinstance(part, ast.Call) and dotted(part.func) in _OF_THE_FRAME)
        for node in nodes
        for part in ast.walk(node)
    )


def dotted(node: Any) -> str:
    """The text of a name with attributes, such as `math.exp`; of anything else, what follows it."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def bound_names(node: Any) -> Iterator[str]:
    """The names that a function binds: its parameters and what it assigns."""
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def later(node: Any) -> ast.Lambda:
    """A lambda around an expression, which postpones its evaluation."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(nothing, node), node)
