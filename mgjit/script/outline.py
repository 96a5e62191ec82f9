"""Cut the body of a loop into the part that can be a step, and the rest.

1. Find the blocks in the body that train: the body itself, and those of a `with`, `try` or `if` in it.
2. Statements that can be noticed from outside (print, write, leave the loop, read a clock) or look at a computed
   number (`if norm > 1:`) divide the block.  Between the forward and the backward pass it cannot be divided: what only
   shows or keeps numbers may come after the step, and is the same then (moved.py); of an `if` or `assert`, the test is
   computed by the step, and where it holds, plain Python makes the iteration.
3. A step reaches from the first statement that is more than preparation (choosing samples, looking up tokens) to the
   last one that trains.  What comes before and after runs as it stands.
4. What it reads and assigns are its arguments and results (interface.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .find import CHANGING, Candidate, Knowledge, is_bitwise, is_list_renewed
from .interface import Outline, Refusal, find_names
from .moved import LEAVING, leaves, may_move, scalars_of
from .names import called_name, children, names_in, nodes_of, root_name, walk, words
from .objects import leave_objects
from .slices import bits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rows import Pattern

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
#: What a test consists of that is made for iterations to come.
_OF_TESTS = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop,
             ast.boolop, ast.cmpop, ast.expr_context)  # fmt: skip
_SAFE_CALLS = words(
    """len range min max list tuple set dict sorted reversed enumerate zip int float str ord chr next iter slice
    bytes array"""
)
_SAFE_METHODS = words(
    """index get items keys values split strip lower upper copy join encode decode randint randrange random choice
    choices sample shuffle uniform gauss normalvariate tolist startswith endswith replace find count readline next
    permutation"""
)


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
    found, refusals = list[Outline](), list[Refusal]()
    for block in _training_blocks(candidate.loop.body, known):
        try:
            found += _of_block(block, candidate, known, is_asked_for, used_later)
        except Refusal as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return found


def _of_block(
    block: list[ast.stmt], candidate: Candidate, known: Knowledge, is_asked_for: bool,
    used_later: Callable[[str], bool] | None,
) -> list[Outline]:  # fmt: skip
    """The steps in a block.

    Raises:
        Refusal: there are none.
    """
    outlines = _parts(block, candidate, known, is_asked_for)
    for outline in outlines:
        find_names(outline, used_later)
        if not all(outline.numbers_only) and leave_objects(outline, lambda one, k: _stop(one, known, k)):
            find_names(outline, used_later)
        outline.pattern = _pattern(outline)
    return outlines


def _pattern(outline: Outline) -> Pattern | None:
    """The variables of a loop whose whole body is a step that changes none of them; None for others.

    Its results have to be numbers: nothing has attributes.  In front of the step, and behind it, there may be what
    only the variables of the loop decide about: `if epoch % 100 == 0: print(loss)`.
    """
    loop, block = outline.candidate.loop, outline.block
    if not isinstance(loop, ast.For) or loop.orelse or block is not loop.body:
        return None
    if outline.moved or outline.stops or outline.shared or outline.without_last or outline.candidate.in_reserve:
        return None
    if any(not isinstance(place, ast.Attribute) for places in outline.attributes.values() for place in places):
        return None
    pattern, names = _unpacked(loop.target), names_in([loop.target]).writes
    written = names_in(loop.body).writes
    looked_into = {root_name(node) for node in walk(outline.candidate.scope.body) if isinstance(node, ast.Attribute)}
    if pattern is None or names & written or looked_into.intersection(outline.results):
        return None
    scopes = [node for node in nodes_of(outline.candidate.tree) if isinstance(node, (ast.Global, ast.Nonlocal))]
    changing = written.union(*(node.names for node in scopes))
    for found, statements in ((outline.heads, block[: outline.start]), (outline.tails, block[outline.end :])):
        if not all(isinstance(one, ast.If) and _is_decided(one, names, changing) for one in statements):
            return None
        found += [one.test for one in statements if isinstance(one, ast.If)]
    return pattern


def _is_decided(statement: ast.If, names: set[str], changing: set[str]) -> bool:
    """Whether only the variables of a loop, and what stays as it is, decide if a statement does something."""
    nodes = nodes_of(statement.test)
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    return not statement.orelse and all(isinstance(node, _OF_TESTS) for node in nodes) and not read & changing - names


def _unpacked(target: ast.expr) -> Pattern | None:
    if isinstance(target, ast.Name):
        return target.id
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    parts = [part for part in map(_unpacked, target.elts) if part is not None]
    names = [node.id for node in nodes_of(target) if isinstance(node, ast.Name)]
    return tuple(parts) if len(parts) == len(target.elts) and len(set(names)) == len(names) else None


# ---- 1: the block ---------------------------------------------------------------------------------------------


def _trains(statement: ast.stmt, known: Knowledge) -> bool:
    return any(known.is_evidence(node) for node in walk([statement]))


def _training_blocks(block: list[ast.stmt], known: Knowledge) -> list[list[ast.stmt]]:
    """The block, and those of a `with`, `try` or `if` in it that cannot be in a step of the block itself."""
    training = [one for one in block if _trains(one, known)]
    found = list[list[ast.stmt]]()
    for statement in training:
        if not isinstance(statement, (ast.With, ast.Try, ast.If)):
            continue
        inner = [
            part
            for part in (statement.body, getattr(statement, "orelse", []))
            if any(_trains(one, known) for one in part)
        ]
        # An `if` without anything that cannot be in a step is a statement like others.
        if not isinstance(statement, ast.If) or (len(training) == 1 and len(inner) == 1 and len(inner[0]) > 2):
            found += [further for part in inner for further in _training_blocks(part, known)]
    return found if found and len(training) == 1 else [block, *found]


# ---- 2, 3: parts ----------------------------------------------------------------------------------------------


def _parts(block: list[ast.stmt], candidate: Candidate, known: Knowledge, is_asked_for: bool) -> list[Outline]:
    """The steps in a block: where they begin and end, what moves behind them, and what plain Python has to do."""
    training = [k for k, one in enumerate(block) if _trains(one, known)]
    if is_asked_for and not training:
        training = [k for k, one in enumerate(block) if not _obstacle(one, set(), known)]
    if not training:
        raise Refusal(candidate.loop.lineno, "none of its own statements trains")
    while training[-1] + 1 < len(block) and is_list_renewed(block[training[-1] + 1]):
        training.append(training[-1] + 1)  # it belongs to what trains in front of it
    found: list[Outline] = []
    start, fresh, computed, obstacle = 0, set[str](), set[str](), ""
    moved, stops = list[ast.stmt](), dict[int, ast.stmt]()
    last_line = candidate.loop.lineno
    for k, statement in enumerate(block[: training[-1] + 1]):
        reason = _obstacle(statement, fresh, known) or _question(statement, computed)
        is_between = start < k and k not in training and not any(start <= t < k for t in training)
        if reason and start < k and k not in training:
            if may_move(block[start:k], statement, block[k + 1 : training[-1] + 1], candidate):
                moved.append(statement)
                continue
            stop = _stop(statement, known, len(stops)) if is_between else None
            if stop is not None and fresh & names_in(block[k + 1 : training[-1] + 1]).objects:
                stops[id(statement)] = stop
                continue
        if reason:
            if any(start <= t < k for t in training):
                found.append(_part(candidate, block, start, k, training, moved, stops))
            start, fresh, computed, obstacle, last_line = k + 1, set(), set(), reason, statement.lineno
            moved, stops = [], {}
            continue
        is_choice = k not in training and _is_preparation(statement, candidate, known)
        is_choice = is_choice and not names_in([statement]).reads & computed
        is_filled = is_choice and _holds_empty(statement) and not _is_preparation(block[k + 1], candidate, known)
        if start == k and is_choice and not is_filled and not _is_changed(statement, block[k + 1 : training[-1] + 1]):
            start = k + 1
            continue
        fresh |= names_in([statement]).writes
        computed |= set() if is_choice else names_in([statement]).writes
    if any(start <= t <= training[-1] for t in training) and start <= training[-1]:
        found.append(_part(candidate, block, start, training[-1] + 1, training, moved, stops))
    if not found:
        raise Refusal(last_line, obstacle or "nothing is left of it")
    return found


def _part(
    candidate: Candidate, block: list[ast.stmt], start: int, end: int, training: Sequence[int], moved: list[ast.stmt],
    stops: dict[int, ast.stmt],
) -> Outline:  # fmt: skip
    """A step that ends with the last statement that trains."""
    end = _last(training, start, end) + 1
    inside = block[start:end]
    statements = [stops.get(id(one), one) for one in inside if one not in moved]
    names = [f"stop_{k}_of_mgjit" for k in range(sum(id(one) in stops for one in inside))]
    return Outline(candidate, block, start, end, statements, [one for one in moved if one in inside], names)


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
        if isinstance(node, LEAVING):
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
                is_plain = isinstance(node.func.value, (ast.Name, ast.Subscript)) or node.func.attr == "append"
                if is_plain and root not in fresh | names_in([statement]).writes:
                    return f"`{ast.unparse(node.func)}(...)` changes an object that exists before the step"
    if leaves(statement):
        return "`break` and `continue` stay in Python"
    return ""


def _question(statement: ast.stmt, computed: set[str]) -> str:
    """Why Python has to look at a number that the step computes; empty if it does not."""
    if isinstance(statement, (ast.If, ast.Assert)):
        nodes = walk([statement.test])
        if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in nodes) or (
            names_in([statement.test]).reads & computed
        ):
            return "it looks at a number that the step computes"
    return ""


def _stop(statement: ast.stmt, known: Knowledge, number: int) -> ast.stmt | None:
    """`stop = test`, which is true where a statement does more than nothing; None if there is no such test."""
    if not isinstance(statement, (ast.If, ast.Assert)) or getattr(statement, "orelse", None):
        return None
    for node in walk([statement.test]):
        if isinstance(node, (*LEAVING, ast.NamedExpr)) or (isinstance(node, ast.Call) and known.is_noticed(node)):
            return None
    test = statement.test if isinstance(statement, ast.If) else ast.UnaryOp(ast.Not(), statement.test)
    made = ast.Assign([ast.Name(f"stop_{number}_of_mgjit", ast.Store())], test)
    ast.copy_location(made, statement)
    made.end_lineno, made.end_col_offset = statement.test.end_lineno, statement.test.end_col_offset
    ast.copy_location(test, statement.test)
    return made


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
    if any(isinstance(node, (ast.Attribute, ast.Subscript)) for target in targets for node in nodes_of(target)):
        return False
    if any(is_bitwise(n) or (isinstance(n, ast.Call) and called_name(n) in known.bitwise) for n in walk([statement])):
        return not _computes_with_bits(statement, known)
    return _only_chooses(statement.value, candidate, known)


def _computes_with_bits(statement: ast.stmt, known: Knowledge) -> bool:
    """Whether a statement calls something with bits that the step can get: `loss = error(model(x), a ^ b)`."""
    nodes = nodes_of(statement)
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    taken = {id(part) for one in bits_of([statement], names_in([statement]).reads - bound) for part in nodes_of(one)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(is_bitwise(node) and id(node) not in taken for node in nodes):
        return False
    return known.bitwise.isdisjoint(map(called_name, calls)) and not all(
        called_name(call) in _SAFE_CALLS | _SAFE_METHODS or root_name(call.func) in ("random", "math") for call in calls
    )


def _is_changed(statement: ast.stmt, later: Sequence[ast.stmt]) -> bool:
    """Whether later statements change what a statement has assigned: lists are filled, sums are added up.

    Args:
        later: those up to the end of the step; what comes behind it is Python, as the statement would be.
    """
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


def _holds_empty(statement: ast.stmt) -> bool:
    """Whether a statement makes containers of empty ones, `[([], []) for layer in layers]`, that something fills."""
    value = getattr(statement, "value", None)
    made = nodes_of(value) if isinstance(value, (ast.List, ast.ListComp, ast.Tuple, ast.Dict, ast.DictComp)) else ()
    return any(node is not value and not getattr(node, "elts", getattr(node, "keys", True)) for node in made)


def _repeats(node: ast.BinOp) -> bool:
    """Whether an operation makes a list of equal elements, `[0.0] * n`."""
    return isinstance(node.op, ast.Mult) and any(isinstance(side, ast.List) for side in (node.left, node.right))


def _only_chooses(value: ast.expr, candidate: Candidate, known: Knowledge) -> bool:
    loop = candidate.loop
    scalars = (names_in([loop.target]).writes if isinstance(loop, ast.For) else set()) | scalars_of(candidate)
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
        if isinstance(node, ast.BinOp) and not (
            is_chosen or isinstance(node.op, (ast.Add, ast.Mod, ast.FloorDiv)) or _repeats(node)
        ):
            return False
        if isinstance(node, ast.Subscript):
            pending += [(node.value, is_index), (node.slice, True)]
            continue
        pending += [(child, is_index) for child in children(node)]
    return True
