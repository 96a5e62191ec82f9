"""What statements read and assign: the names of the scope that they are in.

Functions, lambdas and comprehensions have scopes of their own: only what they take from outside counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .records import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


#: Attributes of a node of a graph that are numbers, and functions that look only at these.
_NUMBERS_OF_NODES = frozenset({"data", "grad", "value", "item", "val", "v", "g", "gradient"})
_LOOKING = frozenset({"print", "float", "str", "repr", "format", "len", "int"})


@record
class Names:
    """Names that are read, assigned (also deleted), and declared as global or nonlocal.

    Attributes:
        objects: those among the ones read that are used for more than numbers: `f(loss)`, but not `loss.data`.
        first: those that may be read before an expression assigns them with `:=`; sure: those that one has assigned.
    """

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    first: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)

    def add(self, node: ast.AST, parent: ast.AST | None = None) -> Names:
        """Add what a node uses; returns self."""
        if isinstance(node, ast.Name):
            kind = type(node.ctx)
            (self.reads if kind is ast.Load else self.writes if kind is ast.Store else self.deleted).add(node.id)
            if kind is ast.Load:
                self._note_read(node.id, not needs_numbers_only(parent))
        elif isinstance(node, ast.NamedExpr):
            self.add(node.value, node)
            self.add(node.target, node)
            self.sure.add(node.target.id)
        elif isinstance(node, SCOPES):
            self._add_scope(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._add_comprehension(node)
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.reads.add(node.target.id)
                self._note_read(node.target.id, True)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.declared.update(node.names)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self.deleted.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.writes.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            for child in children(node):
                before = set(self.sure) if _is_conditional(node, child) else self.sure
                self.add(child, node)
                self.sure = before
        return self

    def _note_read(self, name: str, is_object: bool) -> None:
        if name not in self.sure:
            self.first.add(name)
        if is_object:
            self.objects.add(name)

    def _take(self, inner: Names, own: set[str]) -> None:
        """Add what a scope in this one takes from it."""
        self.first |= inner.first - own - self.sure
        self.reads |= inner.reads - own
        self.objects |= inner.objects - own

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
        inner.first |= inner.reads  # it runs later
        self._take(inner, own)
        self.writes |= inner.writes & inner.declared

    def _add_comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        inner, targets = Names(), names_in(generator.target for generator in node.generators)
        for child in [*node.generators, *children(node)]:  # in the order of evaluation
            inner.add(child, node)
        inner.objects -= _looked_through(node)
        self._take(inner, targets.writes)
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


def _looked_through(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> set[str]:
    """The sequences of a comprehension whose elements are used for numbers alone: `s.data for s in scores`."""
    pairs = [(generator.target, generator.iter) for generator in node.generators]
    for target, iterable in pairs.copy():
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and isinstance(target, ast.Tuple):
            sequences = {"zip": iterable.args, "enumerate": [ast.Constant(0), *iterable.args]}.get(iterable.func.id, [])
            pairs += zip(target.elts, sequences)
    found = {(target.id, one.id) for target, one in pairs if isinstance(target, ast.Name) and isinstance(one, ast.Name)}
    values = [part for part in children(node) if not isinstance(part, ast.comprehension)]
    uses = names_in([*values, *(test for generator in node.generators for test in generator.ifs)])
    read = [part.id for part in nodes_of(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    return {name for target, name in found if target not in uses.objects and read.count(name) == 1}


def _is_conditional(node: ast.AST, child: ast.AST) -> bool:
    """Whether what a part of a node evaluates may not be evaluated, where the node is."""
    if isinstance(node, ast.BoolOp):
        return child is not node.values[0]
    if isinstance(node, ast.IfExp):
        return child is not node.test
    if isinstance(node, ast.Compare):
        return child in node.comparators[1:]
    return isinstance(child, ast.stmt) or type(child).__name__ in ("ExceptHandler", "match_case")


def needs_numbers_only(parent: ast.AST | None) -> bool:
    """Whether a name in such a place needs only the numbers of what it stands for."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in _NUMBERS_OF_NODES and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in _LOOKING
    return isinstance(parent, ast.FormattedValue)


def exposed(statements: Sequence[ast.stmt], assigned: set[str], as_objects: bool = False) -> set[str]:
    """The names that statements may read before they have assigned them.

    Args:
        assigned: names that have certainly been assigned; what the statements certainly assign is added.
        as_objects: whether only those count that are used for more than numbers.
    """
    found: set[str] = set()
    for statement in statements:
        heads, branches, is_loop = _parts(statement)
        used = names_in(heads)
        found |= (used.first & used.objects if as_objects else used.first) - assigned
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            inner = assigned | names_in([statement.target]).writes
            found |= exposed(statement.body, inner, as_objects)
            found |= exposed(statement.orelse, set(assigned), as_objects)
            continue
        ends = []
        for branch in branches:
            end = set(assigned)
            found |= exposed(branch, end, as_objects)
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


#: Fields without nodes, or with nodes that say nothing more than their type; by type, the others.
_WITHOUT = words("ctx op ops id attr kind type_comment type_ignores level module conversion is_async simple")
_fields: dict[type, list[str]] = {}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one: those of `ast.iter_child_nodes` without `ast.Load`, `ast.Add` and the like.

    Each node keeps them: no tree is changed before all has been asked about it.
    """
    known: list[ast.AST] | None = vars(node).get("_children")
    if known is not None:
        return known
    kind, found = type(node), list[ast.AST]()
    if kind not in _fields:
        _fields[kind] = [name for name in kind._fields if name not in _WITHOUT]
    for name in _fields[kind]:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
    vars(node)["_children"] = found
    return found


def nodes_of(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of `ast.walk`."""
    found = [node]
    for one in found:  # which grows
        found += children(one)
    return found


def walk(nodes: Iterable[ast.AST], without: tuple[type, ...] = SCOPES) -> Iterator[ast.AST]:
    """All nodes in these, except what is inside of nodes of some types (which are given themselves)."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, without):
            pending.extend(children(node))


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
