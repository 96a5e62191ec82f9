"""What plain Python takes for a step in front of it: slices of a list, in place of the list, and bits of ints.

    for start in range(0, len(data), 16):
        loss = update(data[start:start + 16])       called(SECTION.cut(data, start, start + 16, None))
        loss = update(a, b, float(a ^ b))           called(a, b, a ^ b if SECTION.are_ints(a, b) else None)

Otherwise each position would be a step of its own, and each shuffle of the list would undo them; and no step can look
at the bits of a number.

1. The ends have only names that the step does not assign, one of which the loop assigns.
2. Wherever the step reads the list, it takes a slice, and it changes nothing in it.
3. The section takes it from lists and tuples alone (`Section.cut`), which the program cannot notice.
4. What looks at bits has only constants and arguments that the step does not assign, and cannot raise an error.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence

from .find import CHANGING, is_bitwise
from .names import children, names_in, nodes_of

#: A step gets so many of these, at most.
_MOST = 12
#: What the ends of a slice consist of.
_OF_ENDS = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub,
    ast.Load, ast.Slice,
)  # fmt: skip
#: What is made of ints without errors, if numbers are shifted by constants alone.
_SHIFTS = (ast.LShift, ast.RShift)
_OF_BITS = (
    ast.BitAnd, ast.BitOr, ast.BitXor, ast.Invert, ast.Add, ast.Sub, ast.Mult, ast.USub, *_SHIFTS,
)  # fmt: skip


def taken_before(
    statements: Sequence[ast.stmt], varying: set[str], arguments: set[str], taken: set[str]
) -> tuple[dict[str, list[ast.expr]], set[str]]:
    """The arguments that stand for slices and bits, with all places of these; and names that nothing else needs.

    Args:
        varying: the names that the loop assigns, but not the step. arguments: of the step.
        taken: names that the module uses.
    """
    nodes = [node for one in statements for node in nodes_of(one)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    chosen = [node for node in nodes if isinstance(node, ast.Subscript) and _is_chosen(node, varying, bound)]
    inside = {id(part) for node in chosen for part in nodes_of(node)}
    kept = {node.id for node in names if id(node) not in inside} | {_root(node) for node in nodes if _changes(node)}
    found: dict[str, list[ast.expr]] = {}
    for node in [*(one for one in chosen if _root(one) not in kept), *bits_of(statements, arguments - bound)]:
        found.setdefault(ast.dump(node), []).append(node)
    made = [f"taken_{k}_of_mgjit" for k in range(len(found))]
    if len(found) > _MOST or taken.intersection(made):
        return {}, set()
    replaced = {id(part) for places in found.values() for node in places for part in nodes_of(node)}
    gone = {node.id for node in names if id(node) in replaced} - {node.id for node in names if id(node) not in replaced}
    return dict(zip(made, found.values())), gone


def bits_of(statements: Sequence[ast.AST], settled: set[str]) -> Iterator[ast.expr]:
    """The largest expressions that look at bits of ints: `(number >> 3) & 1`.

    Args:
        settled: arguments that the step does not assign.
    """
    for node in statements:
        if isinstance(node, ast.expr) and _is_of_bits(node, settled):
            yield node
        else:
            yield from bits_of(children(node), settled)


def _is_of_bits(node: ast.expr, settled: set[str]) -> bool:
    parts, names = nodes_of(node), names_in([node]).reads
    return (
        any(map(is_bitwise, parts))
        and node.lineno == node.end_lineno
        and all(map(_is_total, parts))
        and bool(names)
        and names <= settled
    )


def _is_total(node: ast.AST) -> bool:
    """Whether an operation gives an int for all ints."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SHIFTS):
        return isinstance(node.right, ast.Constant)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return isinstance(node.op, _OF_BITS)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) is int)


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


def taken_by(section: Callable[[str], ast.expr], like: ast.expr) -> ast.expr:
    """What takes a slice, or bits.

    Args:
        section: makes a method of the section from its name.
    """
    made: ast.expr
    if isinstance(like, ast.Subscript):
        assert isinstance(like.slice, ast.Slice)
        ends = (like.slice.lower, like.slice.upper, like.slice.step)
        operands = [copy.deepcopy(one) or ast.Constant(None) for one in (like.value, *ends)]
        made = ast.Call(section("cut"), operands, [])
    else:
        names: list[ast.expr] = [ast.Name(name, ast.Load()) for name in sorted(names_in([like]).reads)]
        made = ast.IfExp(ast.Call(section("are_ints"), names, []), copy.deepcopy(like), ast.Constant(None))
    return ast.copy_location(made, like)
