"""What statements read and assign: the names of the scope that they are in.

Functions, lambdas and comprehensions have scopes of their own: only what they take from outside counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


@dataclass
class Names:
    """Names that are read, assigned (also deleted), and declared as global or nonlocal."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)

    def add(self, node: ast.AST) -> Names:
        """Add what a node uses; returns self."""
        if isinstance(node, ast.Name):
            kind = type(node.ctx)
            (self.reads if kind is ast.Load else self.writes if kind is ast.Store else self.deleted).add(node.id)
        elif isinstance(node, SCOPES):
            self._add_scope(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._add_comprehension(node)
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.reads.add(node.target.id)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.declared.update(node.names)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self.deleted.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.writes.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            for child in ast.iter_child_nodes(node):
                self.add(child)
        return self

    def _add_scope(self, node: ast.AST) -> None:
        """A function, lambda or class."""
        name = getattr(node, "name", None)
        if name:
            self.writes.add(name)
        inner = Names()
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            outside = [*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", ())]
            inner.writes.update(parameters_of(node))
        else:
            assert isinstance(node, ast.ClassDef)
            outside = [*node.bases, *node.keywords, *node.decorator_list]
        for part in outside:
            self.add(part)
        body = node.body if isinstance(node.body, list) else [node.body]
        for part in body:
            inner.add(part)
        own = set() if isinstance(node, ast.ClassDef) else inner.writes - inner.declared
        self.reads |= inner.reads - own
        self.writes |= inner.writes & inner.declared

    def _add_comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        inner = Names()
        for child in ast.iter_child_nodes(node):
            inner.add(child)
        targets = Names()
        for generator in node.generators:
            targets.add(generator.target)
        self.reads |= inner.reads - targets.writes
        self.writes |= inner.writes - targets.writes  # by `:=`


def names_in(nodes: Iterable[ast.AST]) -> Names:
    """What nodes read and assign."""
    found = Names()
    for node in nodes:
        found.add(node)
    return found


def parameters_of(node: Function | ast.Lambda) -> set[str]:
    """The names of the parameters of a function."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return {one.arg for one in every if one is not None}


def exposed(statements: Sequence[ast.stmt], assigned: set[str]) -> set[str]:
    """The names that statements may read before they have assigned them.

    Args:
        assigned: names that have certainly been assigned; what the statements certainly assign is added.
    """
    found: set[str] = set()
    for statement in statements:
        heads, branches, is_loop = _parts(statement)
        used = names_in(heads)
        found |= used.reads - assigned
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            inner = assigned | names_in([statement.target]).writes
            found |= exposed(statement.body, inner) | exposed(statement.orelse, set(assigned))
            continue
        ends = []
        for branch in branches:
            end = set(assigned)
            found |= exposed(branch, end)
            ends.append(end)
        if not branches:
            assigned |= used.writes
        elif not is_loop and len(ends) == 2:
            assigned |= set.intersection(*ends)
        elif isinstance(statement, ast.With):
            assigned |= used.writes | ends[0]
        assigned -= used.deleted
    return found


def _parts(statement: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]], bool]:
    """What a statement evaluates itself, the blocks in it, and whether these may run more than once, or not at all."""
    if isinstance(statement, ast.If):
        return [statement.test], [statement.body, statement.orelse], False
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter], [statement.body, statement.orelse], True
    if isinstance(statement, ast.While):
        return [statement.test], [statement.body, statement.orelse], True
    if isinstance(statement, ast.With):
        return list(statement.items), [statement.body], False
    if isinstance(statement, ast.Try):
        handlers = [handler.body for handler in statement.handlers]
        return [], [statement.body, *handlers, statement.orelse, statement.finalbody], True
    return [statement], [], False


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement."""
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", [])]
    blocks += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in blocks if block]


def walk(nodes: Iterable[ast.AST], without: tuple[type, ...] = SCOPES) -> Iterator[ast.AST]:
    """All nodes in these, except what is inside of nodes of some types (which are given themselves)."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, without):
            pending.extend(ast.iter_child_nodes(node))


def called_name(call: ast.Call) -> str:
    """The name of what is called: of a function, or of the method."""
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def root_name(node: ast.AST) -> str:
    """The variable at the beginning of `a.b[c].d`; empty if there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
