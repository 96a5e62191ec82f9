"""Find the loops that train in the syntax tree of a module.

1. What a module knows (`Knowledge`), by name: which functions train (their bodies call a `backward`, or assign in place
   numbers that they compute, or call such a function), and which can be noticed from outside (they print, write, read
   a clock).  Modules beside it that it imports count as well.  Where nothing of that is in a module, its loops train
   if they compute a variable from itself: `theta = step(theta, gradient)`, or call a function for what the next
   iteration begins with: `means = update(data, weights)` (`Knowledge.is_wide`).
2. A loop is a candidate if its own statements train, or simple loops in it do; a loop in it that trains by itself is
   a candidate of its own, inside of the other one.  A loop that only goes through such loops is one in reserve: for
   iterations of theirs that are too short.
3. `--loop FILE:LINE` makes the loop at that line one, and leaves out all others.
"""

from __future__ import annotations

import ast
import builtins
import functools
import os
from collections.abc import Iterable, Iterator, Sequence

from .names import FUNCTIONS, SCOPES, blocks_of, called_name, exposed, names_in, nodes_of, root_name, walk, words
from .records import field, record
from .sums import sums

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    from .names import Function

    Loop = Union[ast.For, ast.While]

LOOPS = (ast.For, ast.While)
_BITS = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)

#: Calls that can be noticed from outside, or depend on what is there: never part of a step.
NOTICED = words(
    """print pprint input open display exec eval breakpoint exit quit sleep write writelines writerow writerows flush
    close savefig show plot dump save warning debug info set_description set_postfix time perf_counter monotonic
    process_time time_ns perf_counter_ns now seed setstate getstate collect locals globals vars print_exc system
    run Popen readline readlines send recv put notify"""
)
#: Functions that are part of how a graph is built or differentiated, rather than of training with it.
_OF_GRAPHS = frozenset({"backward", "_backward", "__init__"})
#: Attributes that are added to while gradients are computed.
_GRADIENTS = words("grad gradient _grad adjoint derivative g")
#: A loop of so many short statements updates single numbers: part of a step, rather than one.
_FEW = 2
#: Modules whose functions are.
NOTICED_MODULES = frozenset(("os", "sys", "subprocess", "logging", "shutil", "socket", "pickle", "warnings", "tqdm"))
#: Methods that change the object that they belong to.
CHANGING = words(
    """append extend insert pop remove clear add discard update setdefault popitem appendleft popleft extendleft
    rotate sort reverse write push"""
)


@record
class Knowledge:
    """What is known about functions, by their names.

    Attributes:
        trains: those that train.
        noticed: those that can be noticed from outside.
        scalar: those that only compute with a few numbers: no loops, no calls but those of `math` and of each other.
        bitwise: those that look at the bits of ints, which no step can compute.
        sums: the identities of statements that only add something up (sums.py).
        renewed: those of statements that call a function for what the next iteration begins with.
        is_wide: whether any computation of a variable from itself is evidence.
    """

    trains: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    scalar: set[str] = field(default_factory=set)
    bitwise: set[str] = field(default_factory=set)
    sums: set[int] = field(default_factory=set)
    renewed: set[int] = field(default_factory=set)
    is_wide: bool = False

    def is_noticed(self, call: ast.Call) -> bool:
        """Whether a call can be noticed from outside."""
        name = called_name(call)
        if name in self.trains and name not in self.noticed and name not in NOTICED:
            return False
        of_module = isinstance(call.func, ast.Attribute) and root_name(call.func) in NOTICED_MODULES
        return name in NOTICED or name in self.noticed or of_module

    def is_evidence(self, node: ast.AST) -> bool:
        """Whether a node itself says that the code trains."""
        if isinstance(node, ast.Call):
            name = called_name(node)
            return name == "backward" or name in self.trains
        if id(node) in self.sums:
            return False
        return is_update(node) or (self.is_wide and (is_carried(node) or id(node) in self.renewed))


def is_update(node: ast.AST) -> bool:
    """Whether a statement assigns in place what it computes: `w -= lr * g`, `p.data = p.data - lr * p.grad`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        in_place = isinstance(node.target, (ast.Attribute, ast.Subscript)) or isinstance(node.op, ast.Sub)
        if isinstance(node.target, ast.Attribute) and isinstance(node.op, ast.Add):
            in_place = node.target.attr not in _GRADIENTS
        return in_place and _multiplies(node.value)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target, left = node.targets[0], node.value.left
        in_place = isinstance(target, (ast.Attribute, ast.Subscript, ast.Name))
        return in_place and _are_alike(target, left) and _multiplies(node.value.right)
    return False


def is_carried(node: ast.AST) -> bool:
    """Whether a statement computes a variable from itself by more than one operation: `w = [a - r * b for ...w...]`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    reads = any(type(part) is type(target) and _are_alike(target, part) for part in nodes_of(value))
    return reads and isinstance(value, (ast.ListComp, ast.Call, ast.BinOp)) and _computes(value)


def is_list_renewed(node: ast.AST) -> bool:
    """Whether a statement makes a list anew from itself: `w = [a + b for a, b in zip(w, v)]`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.ListComp):
        return False
    return any(_are_alike(node.targets[0], part) for part in nodes_of(node.value))


def is_bitwise(node: ast.AST) -> bool:
    """Whether a node looks at the bits of an int."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    return isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, _BITS)


def _renewed(tree: ast.Module, functions: Sequence[Function]) -> Iterator[int]:
    """The identities of statements of loops that call a function for variables which the next iteration reads."""
    own = {function.name for function in functions}
    for loop in nodes_of(tree):
        if not isinstance(loop, LOOPS):
            continue
        first = exposed(loop.body, set())
        for one in loop.body:
            value = one.value if isinstance(one, ast.Assign) else None
            is_call = isinstance(value, ast.Call) and called_name(value) in own and len(value.args) > 1
            if is_call and names_in([one]).writes & first:
                yield id(one)


def _computes(value: ast.expr) -> bool:
    """Whether an expression multiplies, or calls a function of the program with something beside the variable."""
    made = value
    while isinstance(made, ast.ListComp):
        made = made.elt
    return _multiplies(value) or (
        isinstance(made, ast.Call)
        and len(made.args) > 1
        and not (isinstance(made.func, ast.Name) and hasattr(builtins, made.func.id))
    )


def _multiplies(node: ast.AST) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div)) for part in nodes_of(node))


def _are_alike(target: object, read: object) -> bool:
    """Whether a target is what an expression reads."""
    if isinstance(target, ast.AST):
        names = [name for name in target._fields if name != "ctx"]
        are_nodes = type(target) is type(read)
        return are_nodes and all(_are_alike(getattr(target, name), getattr(read, name)) for name in names)
    if isinstance(target, list):
        return isinstance(read, list) and len(target) == len(read) and all(map(_are_alike, target, read))
    return type(target) is type(read) and target == read


def knowledge_of(tree: ast.Module, folder: str | None = None, is_wide: bool = False) -> Knowledge:
    """What is known about the functions of a module, and of those beside it that it imports.

    Args:
        folder: where those modules are; None where there are none.
        is_wide: whether any computation of a variable from itself is evidence.
    """
    functions = [node for node in nodes_of(tree) if isinstance(node, FUNCTIONS)]
    known = Knowledge(is_wide=is_wide)
    for path in () if folder is None else _imported(tree, folder):
        other = _knowledge_of_file(path, os.stat(path).st_mtime_ns)
        known.trains.update(other.trains)
        known.noticed.update(other.noticed)
        known.scalar.update(other.scalar)
        known.bitwise.update(other.bitwise)
    known.sums = sums(tree, (lambda node: is_update(node) or is_carried(node)) if is_wide else is_update)
    known.renewed = set(_renewed(tree, functions)) if is_wide else set()
    telling = [[node for node in walk(f.body) if isinstance(node, _TELLING)] for f in functions]
    for names, belongs in ((known.noticed, _is_noticed), (known.trains, _is_training)):
        while True:
            more = {f.name for f, nodes in zip(functions, telling) if f.name not in names and belongs(f, nodes, known)}
            if not more:
                break
            names.update(more)
    known.scalar |= {f.name for f in functions if _is_scalar(f)}
    known.bitwise |= {f.name for f in functions if any(map(is_bitwise, walk(f.body)))}
    return known


#: The trees of files that were looked at because another one imports them, until they are imported themselves.
_trees: dict[bytes | str, ast.Module] = {}


def parsed(source: bytes | str, filename: str) -> ast.Module:
    """The syntax tree of a module.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    return _trees.pop(source, None) or ast.parse(source, filename)


@functools.lru_cache(maxsize=256)
def _knowledge_of_file(path: str, changed: int) -> Knowledge:
    try:
        with open(path, "rb") as file:
            source = file.read()
        tree = ast.parse(source, path)
        known = knowledge_of(tree)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Knowledge()
    _trees[source] = tree
    return known


def _imported(tree: ast.Module, folder: str) -> Iterator[str]:
    """The files of modules in a folder that a module imports."""
    for node in nodes_of(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names] + [node.module or ""]
        for name in names:
            place = os.path.join(folder, *name.strip(".").split("."))
            yield from filter(os.path.isfile, (f"{place}.py", os.path.join(place, "__init__.py")))


#: The nodes that tell whether a function trains, or can be noticed.
_YIELDS = (ast.Yield, ast.YieldFrom)
_TELLING = (ast.Call, ast.Assign, ast.AugAssign, *_YIELDS)


def _is_noticed(function: Function, telling: Sequence[ast.AST], known: Knowledge) -> bool:
    return any(isinstance(node, ast.Call) and known.is_noticed(node) for node in telling)


def _is_training(function: Function, telling: Sequence[ast.AST], known: Knowledge) -> bool:
    """Whether a function trains without a loop that is a candidate itself, or defines how `backward` works."""
    if function.name in _OF_GRAPHS or any(isinstance(node, _YIELDS) for node in telling):
        return False
    is_possible = any(known.is_evidence(node) for node in telling)
    return is_possible and any(known.is_evidence(node) for node in own_nodes(function.body, known))


def _is_scalar(function: Function) -> bool:
    loops = (*LOOPS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.Attribute)
    for node in walk(function.body):
        if isinstance(node, ast.Call) and not (
            root_name(node.func) == "math" or called_name(node) in ("min", "max", "float", "int", "abs")
        ):
            return False
        if isinstance(node, loops) and not (isinstance(node, ast.Attribute) and root_name(node) == "math"):
            return False
    return True


def own_nodes(statements: Iterable[ast.AST], known: Knowledge) -> Iterator[ast.AST]:
    """The nodes of statements, without those of loops that train by themselves."""
    for statement in statements:
        for node in walk([statement], (*SCOPES, *LOOPS)):
            yield node
            if isinstance(node, LOOPS) and not trains_by_itself(node, known):
                yield from own_nodes([*node.body, *node.orelse], known)


def trains_by_itself(loop: Loop, known: Knowledge) -> bool:
    """Whether a loop has a `backward` or a training function among its own statements, or in a loop of theirs."""
    return any(isinstance(node, ast.Call) and known.is_evidence(node) for node in walk([*loop.body, *loop.orelse]))


@record
class Candidate:
    """A loop whose body may become a step.

    Attributes:
        loop: its node. block: the statements that it is one of.
        tree: the module. scope: the module or function that it is in. function: its name; empty at module level.
        in_class: whether names with two underscores mean something else there.
        outer: the candidate around it, or None. around: all loops around it, in this scope, the innermost first.
        enclosing: the functions around the scope. in_reserve: whether the loops in it come first.
        is_short: whether an iteration takes less than the call of a compiled step.
    """

    loop: Loop
    block: list[ast.stmt]
    tree: ast.Module
    scope: ast.Module | Function
    function: str = ""
    in_class: bool = False
    outer: Candidate | None = None
    around: Sequence[Loop] = ()
    enclosing: Sequence[Function] = ()
    in_reserve: bool = False
    is_short: bool = False


def candidates(tree: ast.Module, known: Knowledge, lines: Sequence[int] | None = None) -> list[Candidate]:
    """The loops that may become steps, outer ones before those in them.

    Args:
        lines: those that the user has named, instead of a search; None for a search.
    """
    found: list[Candidate] = []

    def visit(
        block: list[ast.stmt], scope: ast.Module | Function, in_class: bool, outer: Candidate | None,
        loops: tuple[Loop, ...] = (), enclosing: tuple[Function, ...] = (),
    ) -> None:  # fmt: skip
        functions = (*enclosing, scope) if isinstance(scope, FUNCTIONS) else enclosing
        for statement in block:
            if isinstance(statement, FUNCTIONS):
                if statement.name not in _OF_GRAPHS:
                    visit(statement.body, statement, in_class, None, (), functions)
                continue
            if isinstance(statement, ast.ClassDef):
                visit([part for part in statement.body if isinstance(part, SCOPES)], scope, True, None, (), enclosing)
                continue
            around = outer
            if isinstance(statement, LOOPS):
                is_wanted = _is_wanted(statement, known, lines)
                in_reserve = not is_wanted and lines is None and _goes_through(statement, known)
                if is_wanted or in_reserve:
                    name = getattr(scope, "name", "")
                    around = Candidate(
                        statement, block, tree, scope, name, in_class, outer, loops, enclosing, in_reserve,
                        lines is None and is_wanted and not _is_long(statement, known),
                    )  # fmt: skip
                    found.append(around)
            further = (statement, *loops) if isinstance(statement, LOOPS) else loops
            for inner in blocks_of(statement):
                visit(inner, scope, in_class, around, further, enclosing)

    visit(tree.body, tree, False, None)
    return found


def _is_wanted(loop: Loop, known: Knowledge, lines: Sequence[int] | None) -> bool:
    if lines is not None:
        return loop.lineno in lines
    evidence = [node for node in own_nodes(loop.body, known) if known.is_evidence(node)]
    if not evidence:
        return False
    return _is_long(loop, known) or (isinstance(loop, ast.For) and len(loop.body) > _FEW)


def _is_long(loop: Loop, known: Knowledge) -> bool:
    """Whether an iteration takes longer than the call of a compiled step; if not, one call may make many (rows.py)."""
    return trains_by_itself(loop, known) or any(_takes_time(node, known) for node in walk(loop.body))


def _goes_through(loop: Loop, known: Knowledge) -> bool:
    """Whether there is a loop that trains among the own statements of another one."""
    inner = [node for node in walk(loop.body, (*SCOPES, *LOOPS)) if isinstance(node, LOOPS)]
    return any(trains_by_itself(one, known) and _is_wanted(one, known, None) for one in inner)


def _takes_time(node: ast.AST, known: Knowledge) -> bool:
    """Whether a node may take longer than the call of a compiled step: a loop, or a call of a function with one."""
    if isinstance(node, ast.Call):
        is_short = isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id) and node.func.id != "sum"
        return not (is_short or root_name(node.func) == "math" or called_name(node) in known.scalar)
    return isinstance(node, (*LOOPS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
