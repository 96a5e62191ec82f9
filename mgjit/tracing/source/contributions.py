"""Functions that only add to gradients, as the `_backward` of micrograd: what they add can be told without symbols.

    def _backward():                        def _backward():
        self.grad += other.data * out.grad      contribute = observes("grad", out, self, other)
        other.grad += self.data * out.grad      if contribute:
                                                    contribute("**", out, (self, other), (other.data, self.data))
                                                else:
                                                    self.grad += other.data * out.grad
                                                    other.grad += self.data * out.grad

While a backward pass is observed (autograd/flow.py), the second form is quicker: nothing stands for the gradients.

1. A function without arguments qualifies if each of its statements adds to the gradient of a node a number times that
   of one other node, or that divided by a number.  In the numbers, no gradient is named, and nothing is called.
2. They are evaluated when they were: what an operator computes may be recorded, or raise an exception, so it begins
   a group of statements, and is evaluated after the groups before it.
3. So does a loop over the links of a node, `for parent, factor in node.links: parent.grad += factor * node.grad`, all
   at once, if nothing else reads the names that it assigns; and otherwise each such statement by itself.
4. `observes` says whether assigning these attributes of these objects is nothing but what is observed, and whether
   the nodes that are added to are others than that one.  Otherwise the statements run as they stand.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Sequence
from threading import get_ident
from types import CodeType
from typing import Any, NamedTuple, Protocol

#: Adds to the gradients of targets: for "*", factor * gradient, for "r", gradient * factor, and for "/".  The arguments
#: are these forms, whose gradient it is, the targets, and the factors.
Contribute = Callable[[str, Any, Sequence[Any], Sequence[Any]], None]


class Observer(Protocol):
    """What observes a backward pass."""

    def observes(self, name: str, source: Any, targets: Sequence[Any]) -> Contribute | None:
        """What takes contributions, if the attribute of these objects is a gradient and nothing else."""


#: What observes a backward pass, by thread.
observers: dict[int, Observer] = {}


def observes(name: str, source: Any, *targets: Any) -> Contribute | None:
    """`Observer.observes` of the pass that is observed in this thread; None if there is none."""
    observer = observers.get(get_ident())
    return None if observer is None else observer.observes(name, source, targets)


def contributing(name: str, form: str, source: Any, links: Any, target: int) -> Any:
    """What a loop that adds to gradients has still to go through: nothing, where it has been told what it adds.

    Args:
        form: of each contribution. source: whose gradient it is.
        links: pairs of a node that gets something, at the position `target`, and a factor.
    """
    observer = observers.get(get_ident()) if observers else None
    if observer is None or type(links) not in _PAIRS or not links:
        return links
    for link in links:
        if type(link) not in _PAIRS or len(link) != 2:
            return links
    parts = tuple(zip(*links))
    contribute = observer.observes(name, source, parts[target])
    if contribute is None:
        return links
    contribute(form * len(links), source, parts[target], parts[1 - target])
    return ()


_PAIRS = (tuple, list)


def contributed(name: str, form: str, source: Any, target: Any, factor: Any) -> bool:
    """Whether a statement that adds to a gradient is not to run, because it has been told what it adds."""
    observer = observers.get(get_ident()) if observers else None
    contribute = None if observer is None else observer.observes(name, source, (target,))
    if contribute is None:
        return False
    contribute(form, source, (target,), (factor,))
    return True


def may_tell(code: CodeType) -> bool:
    """Whether a code object may be that of such a function."""
    return bool(code.co_freevars) and not code.co_argcount and dis.opmap["STORE_ATTR"] in code.co_code[::2]


#: A local variable of such functions.
_CONTRIBUTE = "__mgjit_contribute__"


class _Contribution(NamedTuple):
    form: str
    source: str
    target: ast.Name
    factor: ast.expr
    place: ast.stmt


def told(node: ast.FunctionDef, call: Callable[..., Any]) -> list[ast.stmt]:
    """What tells the contributions of a function: its last statement is an `if` that is to get the others as `else`.

    Empty if the function does anything else.

    Args:
        call: makes a call of a helper, of its name, a node that says where, and the arguments.
    """
    arguments = node.args
    if arguments.args or arguments.kwonlyargs or arguments.posonlyargs or arguments.vararg or arguments.kwarg:
        return []
    first: Any = node.body[0]
    name = first.target.attr if isinstance(first, ast.AugAssign) and isinstance(first.target, ast.Attribute) else ""
    found = [_contribution(statement, name) for statement in node.body]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({one.source for one in known}) > 1:
        return []
    groups: list[list[_Contribution]] = []
    for one in known:
        if not groups or not _is_read(one.factor):
            groups.append([])
        groups[-1].append(one)
    source = ast.Name(known[0].source, ast.Load())
    observed = call("observes", first, ast.Constant(name), source, *(one.target for one in known))
    contribute = ast.Name(_CONTRIBUTE, ast.Load())
    calls: list[ast.stmt] = []
    for group in groups:
        forms, _, targets, factors, (place, *_) = zip(*group)
        parts = ast.Tuple(list(targets), ast.Load()), ast.Tuple(list(factors), ast.Load())
        told = ast.Expr(ast.Call(contribute, [ast.Constant("".join(forms)), source, *parts], []))
        calls.append(ast.copy_location(told, place))
    made = [ast.Assign([ast.Name(_CONTRIBUTE, ast.Store())], observed), ast.If(contribute, calls, [])]
    return [ast.copy_location(statement, first) for statement in made]


def told_statement(node: ast.AugAssign, call: Callable[..., Any]) -> ast.stmt | None:
    """What tells the contribution of a statement: an `if` around it; None if it is something else."""
    found = _simple(node)
    if found is None:
        return None
    source = ast.Name(found.source, ast.Load())
    name, form = ast.Constant(found.name), ast.Constant(found.form)
    test = call("contributed", node, name, form, source, found.target, found.factor)
    made = ast.If(ast.UnaryOp(ast.Not(), test), [node], [])
    return ast.copy_location(made, node)


def told_loop(node: ast.For, local: set[str], loads: Callable[[str], int], call: Callable[..., Any]) -> Any:
    """What a loop goes through instead that adds the contributions of links; None if it does something else.

    Args:
        local: the local names of the function.
        loads: how often the function around reads a name.
    """
    statement: Any = node.body[0]
    names = [part.id for part in getattr(node.target, "elts", ()) if isinstance(part, ast.Name)]
    if len(node.body) > 1 or node.orelse or not isinstance(node.target, ast.Tuple) or not local.issuperset(names):
        return None
    found = _simple(statement) if isinstance(statement, ast.AugAssign) else None
    if found is None or not isinstance(found.factor, ast.Name) or found.source in names:
        return None
    used = [found.target.id, found.factor.id]
    if len(node.target.elts) != 2 or sorted(used) != sorted(names) or used[0] == used[1]:
        return None
    if any(loads(name) != 1 for name in used[1:]) or loads(used[0]) > 1:  # the target is both read and assigned
        return None
    source = ast.Name(found.source, ast.Load())
    given = ast.Constant(found.name), ast.Constant(found.form), source, node.iter
    return call("contributing", node.iter, *given, ast.Constant(names.index(found.target.id)))


class _Simple(NamedTuple):
    name: str
    form: str
    source: str
    target: ast.Name
    factor: ast.expr


def _simple(node: ast.AugAssign) -> _Simple | None:
    """What a statement adds to a gradient, if its factor is a name or constant."""
    name = node.target.attr if isinstance(node.target, ast.Attribute) else ""
    found = _contribution(node, name) if name else None
    if found is None or not isinstance(found.factor, (ast.Name, ast.Constant)):
        return None
    return _Simple(name, found.form, found.source, found.target, found.factor)


def _contribution(statement: ast.stmt, name: str) -> _Contribution | None:
    """What a statement adds to the gradient of what."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
        return None
    target: Any = statement.target
    added = statement.value
    if not _is_gradient(target, name):
        return None
    form = "*"
    gradient: Any = added
    factor: ast.expr = ast.copy_location(ast.Constant(1.0), added)
    if isinstance(added, ast.BinOp):
        if isinstance(added.op, ast.Mult) and _is_gradient(added.right, name):
            gradient, factor = added.right, added.left
        elif isinstance(added.op, (ast.Mult, ast.Div)):
            form, gradient, factor = "r" if isinstance(added.op, ast.Mult) else "/", added.left, added.right
    if not _is_gradient(gradient, name) or not _is_number(factor, name):
        return None
    return _Contribution(form, gradient.value.id, ast.Name(target.value.id, ast.Load()), factor, statement)


def _is_gradient(node: Any, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def _is_read(factor: ast.expr) -> bool:
    return isinstance(getattr(factor, "value", factor), (ast.Constant, ast.Name)) or isinstance(factor, ast.Constant)


#: What a factor consists of.
_PARTS = (
    ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.operator, ast.UnaryOp, ast.USub, ast.Compare, ast.Lt, ast.Gt,
    ast.LtE, ast.GtE, ast.expr_context,
)  # fmt: skip


def _is_number(node: ast.expr, name: str) -> bool:
    parts = list(ast.walk(node))
    return all(isinstance(part, _PARTS) and getattr(part, "attr", "") != name for part in parts) and not any(
        isinstance(part, ast.Compare) and len(part.ops) > 1 for part in parts
    )
