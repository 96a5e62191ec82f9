"""Both ways of an `if`, when its test is traced: the statement becomes a loop over the sides that are to be taken.

    if test:                for side in __mgjit__.sides(test, "test", ...): # one side, or both when the test is traced
        y = a                   if side.is_both:
    else:                           side.enter((lambda: y,))
        y = b                       if side.back(0): y = side.before(0)     # the second side begins as the first did
                                with side:
                                    if side.chosen: y = a
                                    else: y = b
                                if side.is_both:
                                    side.leave((lambda: y,))
                                    if side.done(0): y = side.selected(0)

1. Statements that assign, call, loop over what is there, and ask again can be taken both ways.  An `if` around anything
   else stays one.  What expressions do besides is seen when they run (source/untaken.py).
2. `if test: return a`, and what follows it, become two sides that assign one name, which is returned.  `continue`, and
   what follows it in the body of a loop, become two sides as well.
3. What the sides have assigned to names is selected name by name (source/sides.py), what they have assigned to
   attributes and elements place by place (source/stores.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .implicit import CALLS, COMPUTES, ITERATED, READS, Doing
from .stores import can_be_noted

#: The name that takes what is returned, and the beginning of those of sides.
RETURNED = "__mgjit_returned__"
_SIDE = "__mgjit_side__"
_OF_THE_FUNCTION = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.If, ast.AugAssign, ast.Set, ast.Dict)
#: Nodes that do nothing by themselves.
_SILENT = (
    ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Slice, ast.Assign, ast.AnnAssign, ast.Return, ast.Pass, ast.Expr,
    ast.Delete,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def with_returns_last(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, in which what follows an `if` that returns is its other side, where possible."""
    for number, statement in enumerate(body):
        if not isinstance(statement, ast.If) or not may_return([statement]):
            continue
        first, second, rest = statement.body, statement.orelse, body[number + 1 :]
        if not _returns(first) and not _returns(second):
            return body
        sides = [side if _returns(side) else [*side, *rest] for side in (first, second)]
        sides = [side if _returns(side) else [*side, _no_return(statement)] for side in sides]
        made = ast.If(statement.test, *map(with_returns_last, sides))
        return [*body[:number], ast.copy_location(made, statement)]
    return body


def with_continues_last(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop, in which what follows an `if` that ends in `continue` is its other side."""
    for number, statement in enumerate(body):
        if not isinstance(statement, ast.If) or not any(map(_continues, (statement.body, statement.orelse))):
            continue
        rest = body[number + 1 :]
        sides = [side[:-1] if _continues(side) else [*side, *rest] for side in (statement.body, statement.orelse)]
        first, second = map(with_continues_last, sides)
        made = ast.If(statement.test, first or [ast.copy_location(ast.Pass(), statement)], second)
        return [*body[:number], ast.copy_location(made, statement)]
    return body


def _continues(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Continue)


def _no_return(place: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), place)), place)


def is_generator(function: Any) -> bool:
    """Whether a function yields: its returns are none of a value."""
    return any(
        isinstance(part, (ast.Yield, ast.YieldFrom)) for statement in function.body for part in _own_parts(statement)
    )


def may_return(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a return among statements."""
    return any(isinstance(part, ast.Return) for statement in body for part in _own_parts(statement))


def _returns(body: Sequence[ast.stmt]) -> bool:
    """Whether statements end in a return for certain."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)


def _own_parts(statement: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are not in functions or classes of their own."""
    pending = [statement]
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(part)


def assigned_names(node: ast.If, hidden: set[str]) -> tuple[list[str], list[str]] | None:
    """The local names that the sides of an `if` assign, and those that they change in place; None if they do more.

    Args:
        hidden: the names that the function may assign.
    """
    names: dict[str, None] = {}
    changed: dict[str, None] = {}
    returns = may_return([node])
    if returns and not (_returns(node.body) and _returns(node.orelse)):
        return None
    if not _are_taken_both_ways(node.body, names, changed, returns):
        return None
    if not _are_taken_both_ways(node.orelse, names, changed, returns):
        return None
    if returns:
        names[RETURNED] = None
    return None if not set(names) <= {*hidden, RETURNED} else (list(names), list(changed))


def _are_taken_both_ways(
    body: Sequence[ast.stmt], names: dict[str, None], changed: dict[str, None], returns: bool
) -> bool:
    """The same of several statements, of which none but the last one may return."""
    last = body[-1] if body else None
    return all(_is_taken_both_ways(part, names, changed, returns and part is last) for part in body)


def _is_taken_both_ways(node: ast.stmt, names: dict[str, None], changed: dict[str, None], returns: bool) -> bool:
    """Whether both sides can be taken of an `if` around a statement; the local names that it assigns are noted.

    Args:
        returns: whether it may return, which nothing but a side that ends there can.
    """
    if getattr(node, "is_of_store", False):
        return True

    def inside(body: Sequence[ast.stmt], returns: bool) -> bool:
        return _are_taken_both_ways(body, names, changed, returns)

    if isinstance(node, ast.Return):
        return returns and (node.value is None or _is_quiet(node.value))
    if isinstance(node, ast.If):
        returns = returns and _returns(node.body) and _returns(node.orelse)
        return _is_quiet(node.test) and inside(node.body, returns) and inside(node.orelse, returns)
    if isinstance(node, ast.For):
        targets = _names_in(node.target)
        names.update(dict.fromkeys(targets or ()))
        return targets is not None and not node.orelse and _is_quiet(node.iter) and inside(node.body, False)
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            names[node.target.id] = changed[node.target.id] = None
        return can_be_noted(node.target, True) and _is_quiet(node.value) and _is_quiet(node.target)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        assigned = node.targets if isinstance(node, ast.Assign) else [node.target]
        names.update((name, None) for target in assigned for name in _assigned_in(target))
        can_be = all(can_be_noted(target) and _is_quiet(target) for target in assigned)
        return can_be and node.value is not None and _is_quiet(node.value)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.Constant, ast.Call)) and _is_quiet(node.value)
    return isinstance(node, ast.Pass)


def _assigned_in(target: ast.expr) -> list[str]:
    """The names among what is assigned."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in _assigned_in(part)]
    return [target.id] if isinstance(target, ast.Name) else []


def _names_in(target: ast.expr) -> list[str] | None:
    """The names that are assigned; None where something else is."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        found = [_names_in(part) for part in target.elts]
        return None if None in found else [name for names in found for name in names or ()]
    return None


def _is_quiet(expression: ast.expr) -> bool:
    """Whether an expression may be one of a side: what it does is seen when it runs (untaken.py)."""
    return not any(isinstance(part, _OF_THE_FUNCTION) for part in ast.walk(expression))


def doing(nodes: Sequence[ast.AST], computes: Callable[[ast.expr, int], bool]) -> Doing:
    """What sides do, as implicit.py has it, with the names of the functions that they call.

    Args:
        computes: whether a function, with so many arguments, does nothing but compute with numbers.
    """
    found, called, own = 0, dict[str, None](), _stored(nodes)
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and getattr(node, "is_of_store", False):
            found |= READS | COMPUTES
            pending += node.args
            continue
        if isinstance(node, (ast.For, ast.comprehension)) or _is_sum(node):
            parts = _iteration(node, own, called)
            if parts is None:
                return (CALLS,)
            found |= READS | COMPUTES
            pending += parts
            continue
        if isinstance(node, ast.Call):
            is_known = computes(node.func, len(node.args)) and not node.keywords
            found |= COMPUTES
            pending += node.args
            if not is_known and isinstance(node.func, ast.Name) and not node.keywords:
                called[node.func.id] = None
            elif not is_known:
                return (CALLS,)
            continue
        if isinstance(node, ast.Lambda):
            continue  # it is made, and not called
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            found |= READS
        elif _iterates(node):
            return (CALLS,)
        elif isinstance(node, _OPERATORS):
            found |= COMPUTES
        elif not isinstance(node, _SILENT):
            return (CALLS,)
        pending += ast.iter_child_nodes(node)
    return (CALLS,) if _adds_in_place(nodes) else (found, *called)


def _stored(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that are assigned."""
    parts = (part for node in nodes for part in ast.walk(node))
    return {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}


def _is_sum(node: Any) -> bool:
    """Whether something is called that goes by the name of `sum`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum"
    return is_call and bool(node.args) and not node.keywords


def _iteration(node: Any, own: set[str], called: dict[str, None]) -> list[ast.AST] | None:
    """The parts of a loop or sum besides what it iterates over, the names in which are noted.

    None where it may iterate over what is not known to be a list, or takes elements apart.

    Args:
        own: the names that sides assign.
    """
    iterated = node.args[0] if isinstance(node, ast.Call) else node.iter
    if isinstance(node, ast.Call) and isinstance(iterated, (ast.GeneratorExp, ast.ListComp)):
        called[f"{ITERATED}sum"] = None
        return [iterated.elt, *iterated.generators, *node.args[1:]]
    names: list[str] = []
    parts = [iterated]
    while parts:
        part: Any = parts.pop()
        dotted = _dotted(part)
        if dotted and dotted.partition(".")[0] not in own:
            names.append(dotted)
        elif isinstance(part, ast.Constant):
            pass
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and not part.keywords:
            parts += [part.func, *part.args]
        else:
            return None
    called.update((f"{ITERATED}{name}", None) for name in names)
    if isinstance(node, ast.Call):
        called[f"{ITERATED}sum"] = None
        return list(node.args[1:])
    if not (isinstance(node.target, ast.Name) or _is_made_of_several(iterated, node.target)):
        return None
    return [*node.body, *node.orelse] if isinstance(node, ast.For) else list(node.ifs)


def _dotted(node: Any) -> str:
    """A name with attributes; empty for anything else."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_made_of_several(iterated: ast.expr, target: ast.expr) -> bool:
    """Whether what a target takes apart is a tuple that `zip` or `enumerate` has made."""
    is_new = isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") in ("zip", "enumerate")
    return is_new and isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts)


def _iterates(node: ast.AST) -> bool:
    """Whether a node takes all from something, which may be an iterator."""
    if isinstance(node, ast.Compare):
        return any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops)
    return isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store)


def _adds_in_place(nodes: Sequence[ast.AST]) -> bool:
    """Whether sides may change what they give a name to; what names mean before is looked at (sides.py)."""
    parts = [part for node in nodes for part in ast.walk(node)]
    added = {part.target.id for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)}
    targets = [part.targets for part in parts if isinstance(part, ast.Assign)]
    targets += [[part.target] for part in parts if isinstance(part, ast.AnnAssign)]
    return any(isinstance(target, ast.Name) and target.id in added for each in targets for target in each)


def _is_written_out(name: str, node: ast.If) -> bool:
    """Whether a name means a new list or dict after both sides, which has no other name."""
    uses = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]
    bases = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Subscript)}
    made = [
        {
            id(statement.targets[0])
            for statement in side
            if isinstance(statement, ast.Assign) and is_display(statement.value)
        }
        for side in (node.body, node.orelse)
    ]
    assigned = [{id(use) for use in uses} & targets for targets in made]
    return all(assigned) and all(id(use) in bases | assigned[0] | assigned[1] for use in uses)


def is_display(node: ast.AST) -> bool:
    """Whether an expression is a new list or dict."""
    return isinstance(node, (ast.List, ast.ListComp, ast.Dict, ast.DictComp))


def as_loop(
    node: ast.If,
    number: int,
    names: Sequence[str],
    changed: Sequence[str],
    does: Doing,
    call: Callable[..., ast.expr],
    text: str,
    outer: Sequence[str],
) -> list[ast.stmt]:
    """The loop over the sides of an `if`.

    Args:
        number: tells it from other loops of the function.
        names: what the sides assign. changed: what they change in place.
        call: makes the call of a helper.
        text: of the test.
        outer: the names among them that are variables of the module, or of a function around this one.
    """
    side = f"{_SIDE}{number}"

    def ask(method: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name(side, ast.Load()), method, ast.Load()), list(arguments), [])

    def readers(names: Sequence[str]) -> ast.expr:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Tuple([ast.Lambda(nothing, ast.Name(name, ast.Load())) for name in names], ast.Load())

    def assign(position: int, condition: str, content: str) -> ast.stmt:
        constant = ast.Constant(position)
        target = ast.Name(names[position], ast.Store())
        return ast.If(ask(condition, constant), [ast.Assign([target], ask(content, constant))], [])

    places = range(len(names))
    chosen, is_both = (ast.Attribute(ast.Name(side, ast.Load()), name, ast.Load()) for name in ("chosen", "is_both"))
    enter, leave = ask("enter", readers(names), readers(changed)), ask("leave", readers(names))
    body: list[ast.stmt] = [
        ast.If(is_both, [ast.Expr(enter), *(assign(k, "back", "before") for k in places)], []),
        ast.With([ast.withitem(ast.Name(side, ast.Load()))], [ast.If(chosen, node.body, node.orelse or [ast.Pass()])]),
        ast.If(is_both, [ast.Expr(leave), *(assign(k, "done", "selected") for k in places)], []),
    ]
    parts = [part for statement in (*node.body, *node.orelse) for part in ast.walk(statement)]
    named = sorted({part.id for part in parts if isinstance(part, ast.Name)})
    written_out = tuple(name for name in names if _is_written_out(name, node))
    given: tuple[Any, ...] = text, does, tuple(named), written_out, tuple(outer), node.lineno
    sides = call("sides", node.test, node.test, *(ast.Constant(part) for part in given))
    loop = ast.For(ast.Name(side, ast.Store()), sides, body, [])
    made: list[ast.stmt] = [ast.copy_location(loop, node)]
    for part in ast.walk(loop):
        if not hasattr(part, "lineno") and isinstance(part, (ast.expr, ast.stmt)):
            ast.copy_location(part, node)
    return made


class ReturnsAssigned(ast.NodeTransformer):
    """Lets the returns of a statement assign a name."""

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value if node.value is not None else ast.copy_location(ast.Constant(None), node)
        return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(RETURNED, ast.Store()), node)], value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node
