"""Which statements between a forward and a backward pass may come after the step instead.

1. They only show or keep numbers: they print, write to a file that they open, append to a list, or assign numbers to
   variables (`best = loss.data`), perhaps under an `if`.
2. What they read is the same after the step: names that the rest of it does not assign, and of the objects behind them
   nothing but `.data` of nodes that the step has made.
3. What they change is not used by the rest of the step, nor by any function.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from .find import CHANGING, LOOPS, Candidate
from .names import FUNCTIONS, SCOPES, called_name, children, names_in, nodes_of, root_name, walk, words

LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_SHOWING = words("print format str repr round float int len range write flush open min max abs isnan isinf isfinite")
_NUMBERS = frozenset({"min", "max", "abs", "round"})
#: Functions that return one of several objects.
_CHOOSING = frozenset({"next", "min", "max", "choice", "getattr", "get", "pop"})
_BUILTINS = frozenset(dir(builtins))


def may_move(before: Sequence[ast.stmt], statement: ast.stmt, rest: Sequence[ast.stmt], candidate: Candidate) -> bool:
    """Whether a statement only shows or keeps what the rest of the step does not change.

    Args:
        before, rest: the statements of the step before and after it.
    """
    if not isinstance(statement, (ast.Expr, ast.If, ast.Assign, ast.AugAssign, ast.With)) or leaves(statement):
        return False
    used, kept = names_in([statement]), _kept(statement)
    if kept is None or used.deleted:
        return False
    changed = used.writes | kept
    others = names_in([*before, *rest])
    of_functions = names_in(node for node in nodes_of(candidate.tree) if isinstance(node, SCOPES)).reads
    if changed & (others.reads | others.writes) or (isinstance(candidate.scope, ast.Module) and changed & of_functions):
        return False
    if any(_has_elsewhere(name, [*before, *rest], candidate) for name in kept if "." in name):
        return False
    targets = names_in([candidate.loop.target]).writes if isinstance(candidate.loop, ast.For) else set()
    stable = (_made(before) | targets | scalars_of(candidate)) - names_in(rest).writes
    kept = {name.partition(".")[0] for name in kept}
    if not used.reads - _BUILTINS - {"math"} <= stable | kept | _opened(statement):
        return False
    return all(_only_shows(node) for node in walk([statement]))


def _made(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what statements have computed: not of elements of something that was there before."""
    found = set[str]()
    for one in statements:
        names = names_in([one]).writes
        value = getattr(one, "value", None) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
        is_old = value is None or isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Starred))
        if is_old or (isinstance(value, ast.Call) and called_name(value) in _CHOOSING):
            found -= names if isinstance(one, ast.Assign) else set()
            names = names_in([one]).writes - names
        found |= names
        if isinstance(one, ast.For):  # `total = total + ...`
            found |= _made(one.body)
    return found


def _has_elsewhere(name: str, step: Sequence[ast.stmt], candidate: Candidate) -> bool:
    """Whether the step, or another function than the one around it and `__init__`, uses an attribute: `self.losses`."""
    attribute = name.partition(".")[2]
    functions = [
        node
        for node in nodes_of(candidate.tree)
        if isinstance(node, FUNCTIONS) and node is not candidate.scope and node.name != "__init__"
    ]
    return any(isinstance(node, ast.Attribute) and node.attr == attribute for one in [*step, *functions]
               for node in nodes_of(one))  # fmt: skip


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement has a `break` or `continue` of the loop around it."""
    return any(isinstance(node, (ast.Break, ast.Continue)) for node in walk([statement], (*SCOPES, *LOOPS)))


def _only_shows(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in _SHOWING or _receiver(node) is not None
    if isinstance(node, ast.Attribute):
        return node.attr == "data" or node.attr in _SHOWING or node.attr in CHANGING or isinstance(node.value, ast.Name)
    return not isinstance(node, (*LEAVING, ast.Raise, ast.Try, *LOOPS, ast.NamedExpr))


def _receiver(call: ast.Call) -> str | None:
    """What something is appended to: `log` of `log["loss"].append(...)`, `self.log` of `self.log.append(...)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in CHANGING or function.attr == "write":
        return None
    place = function.value
    if isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Constant):
        place = place.value
    if isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name):
        return f"{place.value.id}.{place.attr}"
    return place.id if isinstance(place, ast.Name) else None


def _kept(statement: ast.stmt) -> set[str] | None:
    """The variables whose lists a statement changes; None if it changes something else."""
    found = set[str]()
    for node in walk([statement]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            name = root_name(node.func) if node.func.attr == "write" else _receiver(node)
            if name is None:
                return None
            found |= {name} if node.func.attr != "write" else set()
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return None
    return found


def _opened(statement: ast.stmt) -> set[str]:
    """The files that a statement opens, and the modules whose files it writes to."""
    found = {"sys"}
    for node in walk([statement]):
        if isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call) and called_name(item.context_expr) == "open":
                    found |= names_in([item.optional_vars] if item.optional_vars else []).writes
    return found


def scalars_of(candidate: Candidate) -> set[str]:
    """Names of the scope that stand for numbers, lengths and counters wherever they are assigned."""
    values: dict[str, list[ast.expr]] = {}
    bad = set[str]()
    if isinstance(candidate.scope, FUNCTIONS):
        arguments = candidate.scope.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        bad = {one.arg for one in every if one is not None}
    for node in walk(candidate.scope.body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts))
                for part, value in pairs:
                    if isinstance(part, ast.Name):
                        values.setdefault(part.id, []).append(value)
                    else:
                        bad |= names_in([part]).writes
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and _is_range(node.iter):
            values.setdefault(node.target.id, []).append(ast.Constant(0))
        elif isinstance(node, ast.stmt):
            heads = [part for part in children(node) if not isinstance(part, (ast.stmt, ast.ExceptHandler))]
            bad |= names_in(heads).writes if not isinstance(node, FUNCTIONS) else {node.name}
        elif isinstance(node, ast.NamedExpr):
            bad.add(node.target.id)
    good, nodes = values.keys() - bad, names_in(candidate.loop.body).writes
    while True:
        worse = {name for name in good if not all(_is_scalar(value, good, nodes) for value in values[name])}
        if not worse:
            return good
        good -= worse


def _is_range(iterable: ast.expr) -> bool:
    return isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range"


def _is_scalar(value: ast.expr, scalars: set[str], nodes: set[str]) -> bool:
    """Whether an expression is a number, or another constant, that nothing can change.

    Args:
        nodes: names whose `.data` is a number.
    """
    if isinstance(value, ast.Name):
        return value.id in scalars
    if isinstance(value, ast.Call):
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        return name in ("len", "float", "int") or (
            name in _NUMBERS and all(_is_scalar(one, scalars, nodes) for one in value.args)
        )
    if isinstance(value, ast.Attribute):
        return value.attr == "data" and isinstance(value.value, ast.Name) and value.value.id in nodes
    if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp)):
        return all(_is_scalar(one, scalars, nodes) for one in children(value) if isinstance(one, ast.expr))
    return isinstance(value, ast.Constant)
