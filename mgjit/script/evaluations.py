"""Find expressions that evaluate a model for numbers alone: they may become steps that only run forward.

    scores = [s.data for s in model(x)]        right += (model(x)[0].data > 0.5) == y        out = model(x)[0]

1. Such an expression is `.data` of what a call returns, a list of these, or a call whose result is assigned to a
   variable of which only `.data` is used.
2. It is in a loop, or in a function, of a module that has something to do with training.
3. It is not part of a step that trains, nor of a function that such a step may call: there, it is recorded with it.
4. Its arguments are the variables that it reads: of its function, of the comprehensions around it, and of loops of the
   module.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence

from .find import LOOPS, Knowledge
from .interface import OF_THE_FRAME, variables_of
from .names import FUNCTIONS, SCOPES, blocks_of, called_name, children, exposed, names_in, nodes_of, parameters_of, walk
from .records import field, record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .names import Function

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Calls that compute nothing worth a step.
_SHORT = (frozenset(dir(builtins)) - {"sum", "map"}) | {"parameters", "params", "named_parameters", "weights", "values"}


@record
class Evaluation:
    """An expression that may become a step.

    Attributes:
        node: the expression.
        arguments: the names that it gets.
        function: the name of the function that it is in; empty at module level.
        block, statement: the statement after which parameters become ordinary objects again: the outermost loop around
            it that does not train, or what it is part of.
    """

    node: ast.expr
    arguments: list[str]
    function: str
    block: list[ast.stmt]
    statement: ast.stmt


@record
class _Place:
    """Where an expression is.

    Attributes:
        body: of its scope. function: that scope; None at module level.
        variables: what it may have as arguments. targets: those of the comprehensions around it.
        numbers_only: the variables of its scope of which only numbers are used.
        block, statement: as of an evaluation.
        is_repeated: whether it is in a loop or a function. is_settled: whether `statement` is a loop around it.
        in_class: whether names with two underscores mean something else there.
    """

    body: list[ast.stmt]
    function: Function | None
    variables: set[str]
    targets: set[str] = field(default_factory=set)
    numbers_only: set[str] = field(default_factory=set)
    block: list[ast.stmt] = field(default_factory=list)
    statement: ast.stmt = field(default_factory=ast.Pass)
    is_repeated: bool = False
    is_settled: bool = False
    in_class: bool = False

    def are_bound(self, names: set[str]) -> bool:
        """Whether some names are certainly bound."""
        found = self.targets | _bound_before(self.body, self.statement)
        return names <= (found if self.function is None else found | parameters_of(self.function))


def evaluations(tree: ast.Module, known: Knowledge, steps: Sequence[ast.stmt]) -> list[Evaluation]:
    """The expressions of a module.

    Args:
        steps: the statements of steps that train.
    """
    search = _Search(known, tree, steps)
    loops = [node for node in walk(tree.body) if isinstance(node, LOOPS)]
    search.visit_block(tree.body, _Place(tree.body, None, names_in(loops).writes, set(), _used_for_numbers(tree.body)))
    return search.found


class _Search:
    """Walks through a module; `found` is what it has met."""

    def __init__(self, known: Knowledge, tree: ast.Module, steps: Sequence[ast.stmt]) -> None:
        self._known = known
        self._taken = {id(node) for statement in steps for node in nodes_of(statement)}
        self._called = called_by(tree, steps)
        self.found: list[Evaluation] = []

    def visit_block(self, block: list[ast.stmt], place: _Place) -> None:
        """Visit the statements of a block."""
        for statement in block:
            if id(statement) in self._taken:
                continue
            inner = place
            if not place.is_settled:
                is_loop = isinstance(statement, LOOPS)
                is_settled = is_loop and not any(self._known.is_evidence(node) for node in walk([statement]))
                inner = replace(
                    place, block=block, statement=statement, is_repeated=place.is_repeated or is_loop,
                    is_settled=is_settled,
                )  # fmt: skip
            if isinstance(statement, SCOPES):
                self._visit_scope(statement, place)
                continue
            for node in children(statement):
                if isinstance(node, (ast.expr, ast.withitem)):
                    self._visit(node, statement, inner)
            for part in blocks_of(statement):
                self.visit_block(part, inner)

    def _visit_scope(self, node: ast.AST, place: _Place) -> None:
        """Visit a function or class; not what steps call, and not the class of a graph."""
        if isinstance(node, ast.ClassDef) and "backward" not in {getattr(part, "name", "") for part in node.body}:
            for part in node.body:
                self._visit_scope(part, replace(place, in_class=True))
        elif isinstance(node, FUNCTIONS) and node.name not in self._called and not node.name.startswith("__"):
            variables = variables_of(node) | (place.variables if place.function is not None else set())
            numbers_only = _used_for_numbers(node.body)
            place = _Place(node.body, node, variables, set(), numbers_only, is_repeated=True, in_class=place.in_class)
            self.visit_block(node.body, place)

    def _visit(self, node: ast.AST, parent: ast.AST, place: _Place) -> None:
        """Visit an expression."""
        if isinstance(node, ast.Lambda):
            return
        is_expression = isinstance(node, ast.expr) and place.is_repeated
        if isinstance(node, ast.expr) and is_expression and _evaluates(node, parent, place.numbers_only, self._known):
            arguments = names_in([node]).first & place.variables
            if _can_move(node, place, self._known) and place.are_bound(arguments - _certain(node)):
                function = "" if place.function is None else place.function.name
                self.found.append(Evaluation(node, sorted(arguments), function, place.block, place.statement))
            return
        if isinstance(node, _COMPREHENSIONS):
            targets = names_in(generator.target for generator in node.generators).writes
            place = replace(
                place, variables=place.variables | targets, targets=place.targets | targets, is_repeated=True
            )
        for child in children(node):
            self._visit(child, node, place)


def _evaluates(node: ast.expr, parent: ast.AST, numbers_only: set[str], known: Knowledge) -> bool:
    """Whether an expression calls something for numbers alone."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data" and isinstance(node.ctx, ast.Load) and _calls(_chain(node.value), known)
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        (generator,) = node.generators
        names = names_in([generator.target]).writes
        used = names_in([node.elt])
        return bool(names & used.reads) and not used.objects & names and _calls(nodes_of(generator.iter), known)
    if isinstance(parent, ast.Assign) and node is parent.value and len(parent.targets) == 1:
        target = parent.targets[0]
        is_wanted = isinstance(target, ast.Name) and target.id in numbers_only
        return is_wanted and isinstance(node, (ast.Call, ast.Subscript)) and _calls(_chain(node), known)
    return False


def _chain(node: ast.AST) -> Iterator[ast.AST]:
    """`f(x)[0].y`, `f(x)[0]`, `f(x)` and `f`."""
    while True:
        yield node
        if not isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            return
        node = node.func if isinstance(node, ast.Call) else node.value


def _calls(nodes: Iterable[ast.AST], known: Knowledge) -> bool:
    """Whether there is a call among some nodes that may take long."""
    return any(
        isinstance(node, ast.Call) and called_name(node) not in _SHORT and called_name(node) not in known.scalar
        for node in nodes
    )


def _can_move(node: ast.expr, place: _Place, known: Knowledge) -> bool:
    names = names_in([node])
    private = {part.attr for part in nodes_of(node) if isinstance(part, ast.Attribute)} | names.reads
    return not (
        names.writes
        or names.reads & OF_THE_FRAME
        or (place.in_class and any(name.startswith("__") and not name.endswith("__") for name in private))
        or any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)) for part in nodes_of(node))
        or any(isinstance(part, ast.Call) and known.is_noticed(part) for part in nodes_of(node))
    )


def _certain(node: ast.expr) -> set[str]:
    """The names that an expression reads whatever happens: not those of conditions, or of loops that may be empty."""
    pending, found = [node], set[str]()
    while pending:
        part = pending.pop()
        if isinstance(part, _COMPREHENSIONS):
            pending.append(part.generators[0].iter)
        elif isinstance(part, ast.IfExp):
            pending.append(part.test)
        elif isinstance(part, ast.BoolOp):
            pending.append(part.values[0])
        elif isinstance(part, ast.Name):
            found.add(part.id)
        else:
            below = (one.value if isinstance(one, ast.keyword) else one for one in children(part))
            pending += [one for one in below if isinstance(one, ast.expr)]
    return found


def _bound_before(body: Sequence[ast.stmt], statement: ast.stmt) -> set[str]:
    """The names that a scope has certainly assigned before one of its statements."""
    found = set[str]()
    for one in body:
        if any(node is statement for node in nodes_of(one)):
            if isinstance(one, ast.For):
                found |= names_in([one.target]).writes
            break
        exposed([one], found)
    return found


def _used_for_numbers(body: Sequence[ast.stmt]) -> set[str]:
    """The variables of a scope of which nothing but numbers is used."""
    used = names_in(body)
    looked_at = {
        node.value.id
        for node in walk(body)
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.value, ast.Name)
    }
    return (looked_at & used.writes) - used.objects - used.declared - used.deleted


def called_by(tree: ast.Module, steps: Sequence[ast.stmt]) -> set[str]:
    """The names of functions and methods that steps may call, by themselves or by others."""
    bodies: dict[str, list[ast.AST]] = {}
    for node in nodes_of(tree):
        if isinstance(node, FUNCTIONS):
            bodies.setdefault(node.name, []).append(node)
    pending: list[ast.AST] = list(steps)
    pending += [body for name, same in bodies.items() if name.startswith("__") for body in same]
    found = set[str]()
    while pending:
        for part in nodes_of(pending.pop()):
            name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if name in bodies:
                found.add(name)
                pending += bodies.pop(name)
    return found
