"""Cut the body of a loop into the part that can be a step, and the rest.

1. Find the block in the body that trains: the body itself, or that of a `with`, `try` or `if` in it.
2. Statements that can be noticed from outside (print, write, leave the loop, read a clock) divide the block.  A print
   of results between the forward pass and the update may come after the step: it shows the same numbers then.
3. A step reaches from the first statement that is more than preparation (choosing samples, looking up tokens) to the
   last one that trains.  What comes before and after runs as it stands.
4. What it reads and assigns are its arguments and results (interface.py).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence

from .find import CHANGING, LOOPS, Candidate, Knowledge
from .interface import Outline, Refusal, find_names
from .names import FUNCTIONS, SCOPES, blocks_of, called_name, names_in, parameters_of, root_name, walk, words

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
_BUILTINS = frozenset(dir(builtins))


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
        find_names(outline, used_later)
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
