"""What goes into a step that is cut out of a loop, and what comes out of it.

1. Arguments are the names of the scope that it may read before it assigns them.  In place of an object of which it
   needs only attributes that nothing but `__init__` assigns, it gets these attributes.
2. Results are the names that it assigns and that may be read after it, before they are assigned anew.
3. Names of a module that functions read stay variables of the module.
4. Whatever has another meaning outside of its place (`super()`, names that may be unbound) refuses the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .find import LOOPS, Candidate
from .names import (
    FUNCTIONS,
    SCOPES,
    blocks_of,
    called_name,
    children,
    exposed,
    names_in,
    needs_numbers_only,
    nodes_of,
    parameters_of,
    root_name,
    walk,
)
from .records import field, record
from .slices import taken_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .names import Function
    from .rows import Pattern

OF_THE_FRAME = frozenset({"locals", "globals", "vars", "eval", "exec", "super", "dir", "__class__"})
#: Those of them that look at an object instead, if there is one: `vars(model)`.
_OF_ANYTHING = frozenset({"vars", "dir"})
#: The lines in front of the statements of a step: its `def` and `global`, which take the places of lines of the module.
_LINES_OF_HEAD = 3


class Refusal(Exception):
    """A loop cannot be outlined.

    Attributes:
        line: where that shows.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@record
class Outline:
    """A part of the body of a loop that becomes a step.

    Attributes:
        block: the statements that it is part of. start, end: where its own begin, and the one after the last.
        statements: its own; `stop = test` in place of what makes the iteration one for plain Python.
        moved: others among them, which come after the step. stops: the names that say if there is a reason to stop.
        arguments, results: names.
        read_only_as_numbers: whether the other code may see the object of a result, or only numbers of it.
        shared: names of the module that the step assigns where functions read them.
        attributes: the arguments that stand for attributes of an object, or for slices and bits (slices.py), with all
            places where they are read.
        leaving: how many of the last stops only count where objects are used; -1 where these cannot be left to Python.
        pattern: the variables of the loop, if many iterations can be one call; None otherwise.
        heads, tails: the tests of statements in front of the step, and behind it, which are false in most of these.
        without_last: whether plain Python makes the last iteration, whose objects are used after the loop.
    """

    candidate: Candidate
    block: list[ast.stmt]
    start: int
    end: int
    statements: list[ast.stmt]
    moved: list[ast.stmt] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    numbers_only: list[bool] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    attributes: dict[str, Sequence[ast.expr]] = field(default_factory=dict)
    leaving: int = -1
    without_last: bool = False
    pattern: Pattern | None = None
    heads: list[ast.expr] = field(default_factory=list)
    tails: list[ast.expr] = field(default_factory=list)


def find_names(outline: Outline, used_later: Callable[[str], bool] | None) -> None:
    """Find the arguments and results of a step.

    Args:
        used_later: of a notebook, whether functions in other cells use a name; all names count as read later.

    Raises:
        Refusal: it cannot be cut out.
    """
    candidate, statements = outline.candidate, outline.statements
    line = statements[0].lineno
    used = names_in(statements)
    _refuse_special(outline, used.reads | used.writes)
    is_module = isinstance(candidate.scope, ast.Module)
    elsewhere = _read_afterwards(outline)
    fresh: set[str] = set()
    first = exposed(statements, fresh)  # what is read before it has been assigned; `fresh` is assigned in any case
    assigned = used.writes
    if used.deleted - assigned:
        raise Refusal(line, f"it deletes {', '.join(sorted(used.deleted))}")
    _refuse_graph_from_outside(statements, fresh)
    declared = _declared(candidate.scope)
    in_functions = _read_by_functions(candidate.scope)
    seen = assigned & (in_functions | declared)  # by others than the loop
    meanwhile = _read_meanwhile(candidate, statements) if seen else set[str]()
    loops = (candidate.loop, *candidate.around)
    varying = set[str]().union(*(names_in([*_targets(loop), *loop.body]).writes for loop in loops))
    if is_module:
        if used_later is not None:
            elsewhere = elsewhere | assigned
            meanwhile = in_functions | set(filter(used_later, assigned))
            in_functions = meanwhile
        shared = assigned & in_functions & meanwhile
        visible = varying - shared
    else:
        if assigned & in_functions & meanwhile - declared:
            names = ", ".join(sorted(assigned & in_functions & meanwhile))
            raise Refusal(line, f"functions inside of {candidate.function} read {names}, which the step assigns")
        shared = assigned & declared & meanwhile
        if shared & _nonlocals(candidate.scope):
            raise Refusal(line, f"it assigns nonlocal variables: {', '.join(sorted(shared))}")
        visible = (variables_of(candidate.scope) | _around(candidate) | (declared & varying)) - shared
    elsewhere = elsewhere | (seen - shared)
    live, bound = (assigned - shared) & (elsewhere | first), _bound(candidate, outline)
    if used_later is not None:  # other cells are unlikely to read what only loops in the step assign
        live &= fresh | bound
    arguments = (first | ((live - fresh) & bound)) & visible
    unbound = arguments - bound - declared - _around(candidate)
    if unbound:
        raise Refusal(line, f"{', '.join(sorted(unbound))} may be unbound when the step begins")
    if shared and line <= _LINES_OF_HEAD:
        raise Refusal(line, f"functions read {', '.join(sorted(shared))}, which the step assigns")
    outline.arguments, outline.results, outline.shared = sorted(arguments), sorted(live), sorted(shared)
    for name in outline.arguments.copy():
        found = _attributes_of(name, statements, candidate.tree)
        if found:
            outline.arguments.remove(name)
            outline.attributes.update(found)
    taken = {node.id for node in nodes_of(candidate.tree) if isinstance(node, ast.Name)}
    before, gone = taken_before(statements, varying - assigned, set(outline.arguments), taken)
    outline.attributes.update(before)
    outline.arguments = [name for name in outline.arguments if name not in gone]
    is_notebook = is_module and used_later is not None
    as_objects = set() if is_notebook else _read_afterwards(outline, as_objects=True)
    as_objects |= set() if is_notebook else _objects_of_others(candidate, seen)
    outline.numbers_only = [name not in as_objects for name in outline.results]


def _attributes_of(name: str, statements: Sequence[ast.stmt], tree: ast.Module) -> dict[str, list[ast.Attribute]]:
    """The attributes that are all a step needs of an object, by the names of the arguments that stand for them.

    Such as `self.model` and `self.optimiser`: what else changes in `self` then means nothing to the step.  They must be
    assigned in `__init__` alone, so that they are the same during the step.
    """
    found: dict[str, list[ast.Attribute]] = {}
    whole = 0
    for node in (part for one in statements for part in nodes_of(one)):
        whole += isinstance(node, ast.Name) and node.id == name
        if isinstance(node, ast.Attribute) and _is_name(node.value, name):
            if not isinstance(node.ctx, ast.Load) or node.lineno != node.end_lineno:
                return {}
            found.setdefault(f"{name}_{node.attr}", []).append(node)
    attributes = {nodes[0].attr for nodes in found.values()}
    taken = {node.id for node in nodes_of(tree) if isinstance(node, ast.Name)}
    complete = whole == sum(map(len, found.values())) and taken.isdisjoint(found)
    return found if complete and attributes <= _settled_attributes(tree) else {}


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _settled_attributes(tree: ast.Module) -> set[str]:
    """The attributes that are assigned in `__init__` and nowhere else."""
    inside, everywhere = dict[str, int](), dict[str, int]()
    for function in nodes_of(tree):
        if isinstance(function, FUNCTIONS) and function.name == "__init__":
            _count_assigned(function, inside)
    _count_assigned(tree, everywhere)
    return {attribute for attribute, count in inside.items() if everywhere[attribute] == count}


def _count_assigned(tree: ast.AST, counts: dict[str, int]) -> None:
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            counts[node.attr] = counts.get(node.attr, 0) + 1


def _refuse_special(outline: Outline, names: set[str]) -> None:
    candidate, line = outline.candidate, outline.statements[0].lineno
    scope = candidate.scope
    nodes = list(walk(scope.body))
    of_objects = {id(node.func) for node in nodes if isinstance(node, ast.Call) and called_name(node) in _OF_ANYTHING
                  and node.args}  # fmt: skip
    frame = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name)
        and node.id in OF_THE_FRAME - {"super", "__class__"}
        and id(node) not in of_objects
    }
    frame |= names & OF_THE_FRAME
    if frame:
        raise Refusal(line, f"{', '.join(sorted(frame))} may be used to look at the variables around the loop")
    private = {
        node.attr for one in outline.statements for node in nodes_of(one) if isinstance(node, ast.Attribute)
    } | names
    if candidate.in_class and any(name.startswith("__") and not name.endswith("__") for name in private):
        raise Refusal(line, "names that begin with two underscores mean something else outside of the class")


def _refuse_graph_from_outside(statements: Sequence[ast.stmt], fresh: set[str]) -> None:
    """The graph that `backward` runs through must have been built by the step.

    A `backward` that is given a computed gradient is no walk through a graph, but that of layers written by hand.
    """
    for node in walk(statements):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            if any(not isinstance(argument, ast.Constant) for argument in node.args):
                continue
            root = root_name(node.func)
            if isinstance(node.func.value, ast.Name) and root not in fresh | names_in(statements).writes:
                raise Refusal(node.lineno, f"{root}.backward() goes through a graph from before the step")


def _declared(scope: ast.AST) -> set[str]:
    return {
        name
        for node in walk(getattr(scope, "body", []))
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }


def _nonlocals(scope: ast.AST) -> set[str]:
    return {name for node in walk(getattr(scope, "body", [])) if isinstance(node, ast.Nonlocal) for name in node.names}


def variables_of(scope: ast.Module | Function) -> set[str]:
    """The local names of a function."""
    found = names_in(scope.body)
    if isinstance(scope, ast.Module):
        return found.writes
    return (found.writes | parameters_of(scope)) - _declared(scope)


def _read_afterwards(outline: Outline, as_objects: bool = False) -> set[str]:
    """The names that may be read after the step before they are assigned anew.

    Args:
        as_objects: whether only those count that are used for more than numbers.
    """
    found = exposed([*outline.moved, *outline.block[outline.end :]], set(), as_objects)
    return found | read_after(outline.block[outline.start : outline.end], outline.candidate.scope, as_objects)


def read_after(statements: Sequence[ast.stmt], scope: ast.Module | Function, as_objects: bool) -> set[str]:
    """The names that may be read after the block of some statements, or the next time before them.

    Args:
        as_objects: as for `exposed`.
    """
    found, own = set[str](), {id(one) for one in statements}
    pending = [scope.body]
    while pending:  # from the outside to the block: what follows, and loops from their beginning
        block = pending.pop()
        for k, statement in enumerate(block):
            if id(statement) in own:
                break
            if any(id(node) in own for node in walk([statement])):
                found |= exposed(block[k + 1 :], set(), as_objects)
                if isinstance(statement, LOOPS):
                    again = [ast.Expr(statement.test)] if isinstance(statement, ast.While) else []
                    targets = names_in(_targets(statement)).writes
                    found |= exposed(statement.body, targets, as_objects)
                    found |= exposed([*again, *statement.orelse], set(), as_objects)
                elif hasattr(statement, "handlers"):  # any of these may come next
                    for part in blocks_of(statement)[1:]:
                        found |= exposed(part, set(), as_objects)
                pending += blocks_of(statement)
    return found


def _read_by_functions(scope: ast.AST) -> set[str]:
    """The names that functions and classes in a scope use which they do not define."""
    return set().union(*(_taken(node) for node in walk(getattr(scope, "body", [])) if isinstance(node, SCOPES)))


def _taken(node: ast.AST) -> set[str]:
    found = names_in([node])
    return (found.reads | found.writes) - {getattr(node, "name", "")}


def _read_meanwhile(candidate: Candidate, statements: Sequence[ast.stmt]) -> set[str]:
    """The names that functions use which may run during the step.

    These are all but those that are only called, by their names, and not by the step; and but the one with the loop.
    """
    around = (candidate.scope, *candidate.enclosing)
    nodes = list(nodes_of(candidate.tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    values = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    methods = {id(part) for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    pending: list[ast.AST] = list(statements)
    callees: dict[str, list[ast.AST]] = {}
    for node in nodes:
        if not isinstance(node, SCOPES) or isinstance(node, ast.ClassDef):
            continue
        is_named = isinstance(node, FUNCTIONS) and id(node) not in methods and not node.decorator_list
        if isinstance(node, FUNCTIONS) and is_named and (node in around or node.name not in values):
            callees.setdefault(node.name, []).append(node)
        elif node not in around:
            pending.append(node)
    found = set[str]()
    while pending:
        node = pending.pop()
        for part in nodes_of(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                pending += callees.pop(part.func.id, [])
        found |= _taken(node) if isinstance(node, SCOPES) else set()
    return found


def _objects_of_others(candidate: Candidate, names: set[str]) -> set[str]:
    """Those of some names that code outside of the scope of a loop uses for more than numbers."""
    found = set[str]()

    def visit(node: ast.AST, parent: ast.AST | None, names: set[str]) -> None:
        if node is candidate.scope and parent is not None:
            return
        if isinstance(node, FUNCTIONS) and node not in candidate.enclosing:
            names = names - variables_of(node)
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Name) and is_read and node.id in names and not needs_numbers_only(parent):
            found.add(node.id)
        for child in children(node):
            visit(child, node, names)

    if names and isinstance(candidate.scope, ast.Module):
        for one in walk(candidate.scope.body):
            if isinstance(one, SCOPES):
                visit(one, candidate.tree, names)
    elif names:
        outer = names & _around(candidate)
        for function in candidate.enclosing[:1] if outer else ():
            visit(function, None, outer)
        visit(candidate.tree, None, names - outer)
    return found


def _targets(loop: ast.stmt) -> list[ast.expr]:
    return [loop.target] if isinstance(loop, ast.For) else []


def _around(candidate: Candidate) -> set[str]:
    """The variables of the functions around that of a loop."""
    return set().union(*map(variables_of, candidate.enclosing))


def _bound(candidate: Candidate, outline: Outline) -> set[str]:
    """The names that are bound when the step begins, from the second iteration on."""
    scope, loop = candidate.scope, candidate.loop
    found: set[str] = set() if isinstance(scope, ast.Module) else parameters_of(scope)

    def descend(block: list[ast.stmt]) -> bool:
        """Add what is bound before the step; returns whether it was met."""
        for statement in block:
            if block is outline.block and statement is outline.block[outline.start]:
                return True
            if statement is loop:
                whole: set[str] = set()
                exposed(_until_leaving(loop.body), whole)
                found.update(whole)
            if any(node is outline.block[outline.start] for node in nodes_of(statement)):
                if isinstance(statement, ast.For):
                    found.update(names_in([statement.target]).writes)
                if isinstance(statement, ast.With):
                    found.update(names_in(list(statement.items)).writes)
                return any(descend(inner) for inner in blocks_of(statement))
            exposed([statement], found)
        return False

    descend(scope.body)
    return found


def _until_leaving(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that every iteration executes that goes on to the next one."""
    for k, statement in enumerate(body):
        if any(isinstance(node, ast.Continue) for node in walk([statement], (*SCOPES, *LOOPS))):
            return body[:k]
    return body
