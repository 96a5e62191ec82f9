"""Cut the body of a loop into the part that can be a step, and the rest.

1. Find the block in the body that trains: the body itself, or that of a `with`, `try` or `if` in it.
2. Statements that can be noticed from outside (print, write, leave the loop, read a clock) divide the block.  A print
   of results between the forward pass and the update may come after the step: it shows the same numbers then.
3. A step reaches from the first statement that is more than preparation (choosing samples, looking up tokens) to the
   last one that trains.  What comes before and after runs as it stands.
4. What a step reads of the names of its scope are its arguments; what it assigns and others read are its results.
5. Whatever has another meaning outside of its place (`super()`, names that may be unbound) refuses the loop.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .find import CHANGING, LOOPS, Candidate, Knowledge
from .names import FUNCTIONS, SCOPES, blocks_of, called_name, exposed, names_in, parameters_of, root_name, walk, words

_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_BARRIERS = (
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.Try,
    ast.With,
    ast.Delete,
    ast.Raise,
    ast.ClassDef,
)
_OF_THE_FRAME = frozenset({"locals", "globals", "vars", "eval", "exec", "super", "dir", "__class__"})
_SAFE_CALLS = words(
    """len range min max list tuple set dict sorted reversed enumerate zip int float str ord chr next iter slice
    bytes array"""
)
_SAFE_METHODS = words(
    """index get items keys values split strip lower upper copy join encode decode randint randrange random choice
    choices sample shuffle uniform gauss normalvariate tolist startswith endswith replace find count readline next
    permutation"""
)
_SHOWING = frozenset({"print", "format", "str", "repr", "round", "float", "int", "len", "range", "write", "flush"})
_NUMBERS_OF_NODES = frozenset({"data", "grad", "value", "item", "val", "v", "g", "gradient"})
_BUILTINS = frozenset(dir(builtins))


class Refusal(Exception):
    """A loop cannot be outlined.

    Attributes:
        line: where that shows.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass
class Outline:
    """A part of the body of a loop that becomes a step.

    Attributes:
        block: the statements that it is part of. start, end: where its own begin, and the one after the last.
        statements: its own. moved: others among them, which come after the step.
        arguments, results: names.
        read_only_as_numbers: whether the other code may see the object of a result, or only numbers of it.
        shared: names of the module that the step assigns where functions read them.
    """

    candidate: Candidate
    block: list[ast.stmt]
    start: int
    end: int
    statements: list[ast.stmt]
    moved: list[ast.stmt] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    numbers_only: list[bool] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)


def outlined(
    candidate: Candidate,
    known: Knowledge,
    is_asked_for: bool = False,
    used_later: Callable[[str], bool] | None = None,
) -> list[Outline]:
    """The steps in the body of a loop.

    Args:
        is_asked_for: whether the user says that this loop trains.
        used_later: of a notebook, whether functions in other cells use a name; all names count as read later.

    Raises:
        Refusal: there are none.
    """
    loop = candidate.loop
    if loop.body[0].lineno == loop.lineno:
        raise Refusal(loop.lineno, "its body is on the line of the loop")
    block = _training_block(loop.body, known)
    outlines = [
        Outline(candidate, block, start, end, [one for one in block[start:end] if one not in moved], moved)
        for start, end, moved in _parts(block, candidate, known, is_asked_for)
    ]
    for outline in outlines:
        _refuse_shared_lines(outline)
        _find_names(outline, used_later)
    return outlines


def _refuse_shared_lines(outline: Outline) -> None:
    """The step is compiled from its lines, which have to be its own."""
    edges = [outline.start, outline.end, *(outline.block.index(one) + k for one in outline.moved for k in (0, 1))]
    for edge in edges:
        if 0 < edge < len(outline.block) and outline.block[edge].lineno == outline.block[edge - 1].end_lineno:
            raise Refusal(outline.block[edge].lineno, "several statements are on one line")


# ---- 1: the block ---------------------------------------------------------------------------------------------


def _trains(statement: ast.stmt, known: Knowledge) -> bool:
    return any(known.is_evidence(node) for node in walk([statement]))


def _training_block(block: list[ast.stmt], known: Knowledge) -> list[ast.stmt]:
    training = [one for one in block if _trains(one, known)]
    if len(training) == 1 and isinstance(training[0], (ast.With, ast.Try, ast.If)):
        inner = [part for part in blocks_of(training[0]) if any(_trains(one, known) for one in part)]
        # An `if` without anything that cannot be in a step is a statement like others.
        if len(inner) == 1 and (not isinstance(training[0], ast.If) or len(inner[0]) > 2):
            return _training_block(inner[0], known)
    return block


# ---- 2, 3: parts ----------------------------------------------------------------------------------------------


def _parts(
    block: list[ast.stmt], candidate: Candidate, known: Knowledge, is_asked_for: bool
) -> list[tuple[int, int, list[ast.stmt]]]:
    """The steps in a block: where they begin and end, and what moves behind them."""
    training = [k for k, one in enumerate(block) if _trains(one, known)]
    if is_asked_for and not training:
        training = [k for k, one in enumerate(block) if not _obstacle(one, set(), known)]
    if not training:
        raise Refusal(candidate.loop.lineno, "none of its own statements trains")
    found: list[tuple[int, int, list[ast.stmt]]] = []
    start, fresh, moved, obstacle = 0, set[str](), list[ast.stmt](), ""
    last_line = candidate.loop.lineno
    for k, statement in enumerate(block[: training[-1] + 1]):
        reason = _obstacle(statement, fresh, known)
        if (
            reason
            and start < k
            and any(start <= t for t in training)
            and _may_move(block[start:k], statement, candidate)
        ):
            moved.append(statement)
            continue
        if reason:
            if any(start <= t < k for t in training):
                found.append((start, k, moved))
            start, fresh, moved, obstacle, last_line = k + 1, set(), [], reason, statement.lineno
            continue
        is_first = start == k and k not in training
        if is_first and _is_preparation(statement, candidate, known) and not _is_changed(statement, block[k + 1 :]):
            start = k + 1
            continue
        fresh |= names_in([statement]).writes
    if any(start <= t <= training[-1] for t in training) and start <= training[-1]:
        found.append((start, training[-1] + 1, moved))
    found = [
        (a, _last(training, a, b) + 1, [one for one in m if one in block[a : _last(training, a, b)]])
        for a, b, m in found
    ]
    if not found:
        raise Refusal(last_line, obstacle or "nothing is left of it")
    return found


def _last(training: Sequence[int], start: int, end: int) -> int:
    return max(t for t in training if start <= t < end)


def _obstacle(statement: ast.stmt, fresh: set[str], known: Knowledge) -> str:
    """Why a statement cannot be in a step; empty if it can.

    Args:
        fresh: names that the step has assigned before.
    """
    if isinstance(statement, _BARRIERS) or type(statement).__name__ in ("Match", "TryStar", "AsyncFor", "AsyncWith"):
        return f"`{type(statement).__name__.lower()}` stays in Python"
    if isinstance(statement, ast.While):
        return "`while` stays in Python"
    for node in walk([statement]):
        if isinstance(node, _LEAVING):
            return f"`{type(node).__name__.lower()}` stays in Python"
        if isinstance(node, (ast.Raise, ast.Try, ast.With)):
            return f"`{type(node).__name__.lower()}` stays in Python"
        if isinstance(node, ast.Call):
            if known.is_noticed(node):
                return f"`{called_name(node)}(...)` can be noticed outside of the step"
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGING
                and node.func.attr not in known.trains
            ):
                root = root_name(node.func)
                if isinstance(node.func.value, ast.Name) and root not in fresh | names_in([statement]).writes:
                    return f"`{root}.{node.func.attr}(...)` changes an object that exists before the step"
    if _leaves(statement):
        return "`break` and `continue` stay in Python"
    return ""


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement has a `break` or `continue` of the loop around it."""
    return any(isinstance(node, (ast.Break, ast.Continue)) for node in walk([statement], (*SCOPES, *LOOPS)))


def _may_move(before: Sequence[ast.stmt], statement: ast.stmt, candidate: Candidate) -> bool:
    """Whether a statement only prints what the rest of the step does not change."""
    if not isinstance(statement, (ast.Expr, ast.If)) or _leaves(statement):
        return False
    targets = names_in([candidate.loop.target]).writes if isinstance(candidate.loop, ast.For) else set()
    stable = names_in(before).writes | targets | _scalars(candidate)
    used = names_in([statement])
    if used.writes or used.deleted or not used.reads - _BUILTINS <= stable:
        return False
    for node in walk([statement]):
        if isinstance(node, ast.Call) and called_name(node) not in _SHOWING:
            return False
        if isinstance(node, ast.Attribute) and node.attr != "data" and node.attr not in _SHOWING:
            return False
        if isinstance(node, (*_LEAVING, ast.Raise, ast.Try, ast.With, *LOOPS)):
            return False
    return True


def _scalars(candidate: Candidate) -> set[str]:
    """Names of the scope that stand for constants, lengths and counters wherever they are assigned."""
    good, bad = set[str](), parameters_of(candidate.scope) if isinstance(candidate.scope, FUNCTIONS) else set[str]()
    for node in walk(candidate.scope.body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts))
                for name, value in pairs:
                    (good if _is_scalar(value) else bad).update(names_in([name]).writes)
        elif isinstance(node, ast.AugAssign):
            (good if _is_scalar(node.value) else bad).update(names_in([node.target]).writes)
        elif isinstance(node, ast.stmt):
            heads = [part for part in ast.iter_child_nodes(node) if not isinstance(part, (ast.stmt, ast.ExceptHandler))]
            bad |= names_in(heads).writes if not isinstance(node, FUNCTIONS) else {node.name}
    return good - bad


def _is_scalar(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and called_name(value) == "len")


def _is_preparation(statement: ast.stmt, candidate: Candidate, known: Knowledge) -> bool:
    """Whether a statement chooses what the step works on, rather than computing with it."""
    if isinstance(statement, ast.If):
        return all(_is_preparation(one, candidate, known) for one in [*statement.body, *statement.orelse]) and (
            not any(isinstance(n, ast.Call) and called_name(n) not in _SAFE_CALLS for n in walk([statement.test]))
        )
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or (
            isinstance(statement.value, ast.Call) and called_name(statement.value) in ("shuffle", "next")
        )
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if any(isinstance(node, (ast.Attribute, ast.Subscript)) for target in targets for node in ast.walk(target)):
        return False
    return _only_chooses(statement.value, candidate, known)


def _is_changed(statement: ast.stmt, later: Sequence[ast.stmt]) -> bool:
    """Whether later statements change what a statement has assigned: lists are filled, sums are added up."""
    names = names_in([statement]).writes
    for node in walk(later):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            if root_name(node.func) in names:
                return True
        elif (isinstance(node, ast.AugAssign) and root_name(node.target) in names) or (
            isinstance(node, (ast.Subscript, ast.Attribute))
            and isinstance(node.ctx, ast.Store)
            and root_name(node) in names
        ):
            return True
    return False


def _only_chooses(value: ast.expr, candidate: Candidate, known: Knowledge) -> bool:
    loop = candidate.loop
    scalars = (names_in([loop.target]).writes if isinstance(loop, ast.For) else set()) | _scalars(candidate)
    scalars |= known.scalar | {"math", "min", "max", "float", "int"}
    computes = not names_in([value]).reads <= scalars
    pending: list[tuple[ast.AST, bool]] = [(value, False)]
    while pending:
        node, is_index = pending.pop()
        if isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Call):
            name = called_name(node)
            method = isinstance(node.func, ast.Attribute)
            is_safe = name in (_SAFE_METHODS if method else _SAFE_CALLS) or (name in known.scalar and not computes)
            if not is_safe and not (root_name(node.func) in ("random", "math") and method):
                return False
            is_index = is_index or name in ("range", "randint", "randrange")
        is_chosen = not computes or is_index
        if isinstance(node, ast.BinOp) and not (is_chosen or isinstance(node.op, (ast.Add, ast.Mod, ast.FloorDiv))):
            return False
        if isinstance(node, ast.Subscript):
            pending += [(node.value, is_index), (node.slice, True)]
            continue
        pending += [(child, is_index) for child in ast.iter_child_nodes(node)]
    return True


# ---- 4, 5: names ----------------------------------------------------------------------------------------------


def _find_names(outline: Outline, used_later: Callable[[str], bool] | None) -> None:
    candidate, statements = outline.candidate, outline.statements
    line = statements[0].lineno
    used = names_in(statements)
    _refuse_special(outline, used.reads | used.writes)
    is_module = isinstance(candidate.scope, ast.Module)
    declared = _declared(candidate.scope)
    inside = [node for one in statements for node in ast.walk(one)]
    elsewhere = _read_afterwards(outline)
    own = _variables(candidate.scope)
    fresh: set[str] = set()
    first = exposed(statements, fresh)  # what is read before it has been assigned; `fresh` is assigned in any case
    assigned = used.writes
    if used.deleted - assigned:
        raise Refusal(line, f"it deletes {', '.join(sorted(used.deleted))}")
    in_functions = _read_by_functions(candidate.scope)
    _refuse_graph_from_outside(statements, fresh)
    if is_module:
        if used_later is not None:
            elsewhere = elsewhere | assigned
            in_functions = in_functions | set(filter(used_later, assigned))
        shared = assigned & in_functions
        varying = names_in(
            [*([candidate.loop.target] if isinstance(candidate.loop, ast.For) else []), *candidate.loop.body]
        ).writes
        visible = varying - shared
    else:
        shared = assigned & declared
        if assigned & in_functions:
            names = ", ".join(sorted(assigned & in_functions))
            raise Refusal(line, f"functions inside of {candidate.function} read {names}, which the step assigns")
        visible = own - shared
        if shared & _nonlocals(candidate.scope):
            raise Refusal(line, f"it assigns nonlocal variables: {', '.join(sorted(shared))}")
    live = (assigned - shared) & (elsewhere | first)
    arguments = (first | (live - fresh)) & visible
    unbound = arguments - _bound(candidate, outline)
    if unbound:
        raise Refusal(line, f"{', '.join(sorted(unbound))} may be unbound when the step begins")
    if shared and line < 4:
        raise Refusal(line, f"functions read {', '.join(sorted(shared))}, which the step assigns")
    outline.arguments, outline.results, outline.shared = sorted(arguments), sorted(live), sorted(shared)
    uses = _uses_elsewhere(candidate.scope, {id(node) for node in inside})
    is_notebook = is_module and used_later is not None
    outline.numbers_only = [is_notebook or all(uses.get(name, [])) for name in outline.results]


def _refuse_special(outline: Outline, names: set[str]) -> None:
    candidate, line = outline.candidate, outline.statements[0].lineno
    scope = candidate.scope
    frame = {
        node.id
        for node in walk(scope.body)
        if isinstance(node, ast.Name) and node.id in _OF_THE_FRAME - {"super", "__class__"}
    }
    frame |= names & _OF_THE_FRAME
    if frame:
        raise Refusal(line, f"{', '.join(sorted(frame))} may be used to look at the variables around the loop")
    private = {
        node.attr for one in outline.statements for node in ast.walk(one) if isinstance(node, ast.Attribute)
    } | names
    if candidate.in_class and any(name.startswith("__") and not name.endswith("__") for name in private):
        raise Refusal(line, "names that begin with two underscores mean something else outside of the class")


def _refuse_graph_from_outside(statements: Sequence[ast.stmt], fresh: set[str]) -> None:
    """The graph that `backward` runs through must have been built by the step."""
    for node in walk(statements):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
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


def _variables(scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The local names of a function, and what it takes from functions around it; everything that is no global name."""
    found = names_in(scope.body)
    if isinstance(scope, ast.Module):
        return found.writes
    return (found.writes | parameters_of(scope)) - _declared(scope)


def _read_afterwards(outline: Outline) -> set[str]:
    """The names that may be read after the step before they are assigned anew."""
    candidate = outline.candidate
    found = exposed(outline.moved, set()) | exposed(outline.block[outline.end :], set())
    own = {id(one) for one in outline.block[outline.start : outline.end]}
    pending = [candidate.scope.body]
    while pending:  # from the outside to the block: what follows, and loops from their beginning
        block = pending.pop()
        for k, statement in enumerate(block):
            if id(statement) in own:
                break
            if any(id(node) in own for node in walk([statement])):
                found |= exposed(block[k + 1 :], set())
                if isinstance(statement, LOOPS):
                    targets = names_in([statement.target]).writes if isinstance(statement, ast.For) else set[str]()
                    found |= exposed(statement.body, targets) | exposed(statement.orelse, set())
                    found |= names_in([statement.test]).reads if isinstance(statement, ast.While) else set()
                pending += blocks_of(statement)
    return found


def _read_by_functions(scope: ast.AST) -> set[str]:
    """The names that functions and classes in a scope use which they do not define."""
    return set().union(*(_taken(node) for node in walk(getattr(scope, "body", [])) if isinstance(node, SCOPES)))


def _taken(node: ast.AST) -> set[str]:
    found = names_in([node])
    return (found.reads | found.writes) - {getattr(node, "name", "")}


def _uses_elsewhere(scope: ast.AST, inside: set[int]) -> dict[str, list[bool]]:
    """For each name, whether each of its uses outside of some nodes needs only the numbers of what it stands for."""
    found: dict[str, list[bool]] = {}

    def visit(node: ast.AST, parent: ast.AST | None) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside:
            found.setdefault(node.id, []).append(_needs_numbers_only(parent))
        for child in ast.iter_child_nodes(node):
            visit(child, node)

    visit(scope, None)
    return found


def _needs_numbers_only(parent: ast.AST | None) -> bool:
    if isinstance(parent, ast.Attribute):
        return parent.attr in _NUMBERS_OF_NODES and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in (
            "print",
            "float",
            "str",
            "repr",
            "format",
            "len",
            "int",
        )
    return isinstance(parent, ast.FormattedValue)


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
            if any(node is outline.block[outline.start] for node in ast.walk(statement)):
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
