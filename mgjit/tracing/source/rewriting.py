"""Rewrite the user's functions so that traced numbers can be used where Python needs real ones.

The source of a function is parsed, changed, and compiled; the function object stays the same, and has the new code
during a trace (source/installed.py).  What changes:

1. `a if test else b`, `a and b`, `a or b`, `not a` and `a < b < c` become calls that select when the test is traced;
   `a is b` becomes one that tells what stands for the same argument.
2. `table[index]`, also as a target, becomes a call that looks elements up (or assigns them) if the index is traced.
3. Functions that need the number itself (`max`, `float`, `type`, `math.exp`, ...) are replaced by ones that also take
   traced numbers (source/semantics.py).
4. The tests of `if` and `while` are passed to a function that raises an error with the text of the test if it is
   traced.
5. The body of a `try` with handlers is watched, because what it records may not be able to raise (source/handlers.py).
6. A loop that does the same to each of many objects is recorded at once (record/uniform_loops.py).
7. An inner function, a loop or a statement that only adds to gradients tells what it adds (source/contributions.py).
8. A function that is called by a variable, an attribute or an expression is asked for its replacement, where functions
   of math may be kept there (source/kept_functions.py): `f = math.tanh`, `self.activation(x)`.
9. What may lead to the world outside of the step is looked at (source/watched.py).

Code whose meaning this would change (a `yield`, `await`, `:=` or `super()` would end up in another function) stays as
it is.  If the source of a function is not found, only names in its bytecode change (source/names.py).
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import functools
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

from ..record.uniform_loops import CALLS, use_of
from ..surroundings.allowed import NOTHING, Outside
from ..surroundings.code import codes
from .branches import (
    RETURNED,
    ReturnsAssigned,
    as_loop,
    assigned_names,
    doing,
    is_display,
    is_generator,
    may_return,
    with_continues_last,
    with_returns_last,
)
from .contributions import may_tell, told, told_loop, told_statement
from .effects import WRITES
from .expressions import (
    asks_for_identity,
    asks_for_none,
    bound_names,
    dotted,
    has_its_own_meaning,
    is_plain,
    is_plain_index,
    later,
    tells_ints,
)
from .handlers import goes_on, takes_all
from .implicit import NEW
from .kept_functions import Kept
from .meanings import Meanings, meanings
from .names import NAME_OF_HELPERS, renamed
from .stores import StoresNoted
from .text import FUNCTIONS, Text, around, text_of
from .watched import Watching, leads_outside, refusing, uses_outside

#: Functions of math that may take all from an iterator.
_OF_ITERABLES = frozenset({"math_dist", "math_fsum", "math_prod", "math_sumprod"})


def rewritten(functions: Iterable[FunctionType], outside: Outside = NOTHING) -> list[tuple[FunctionType, CodeType]]:
    """The functions that can be rewritten, each with its new code.

    Args:
        outside: where they may meet what depends on the world outside of the step.
    """
    functions = list(functions)
    distinct: dict[tuple[int, int], FunctionType] = {}  # closures share their code
    for function in functions:
        distinct.setdefault(_key(function), function)
    meant = {key: meanings(function) for key, function in distinct.items()}
    kept = Kept.of(outside, [(function.__code__, meant[key]) for key, function in distinct.items()])
    made = {key: _new_code(function, meant[key], outside, kept) for key, function in distinct.items()}
    pairs = [(function, made[_key(function)]) for function in functions]
    return [(function, code) for function, code in pairs if code is not None and code is not function.__code__]


def _key(function: FunctionType) -> tuple[int, int]:
    return id(function.__code__), id(function.__globals__)


def notices_identity(functions: Iterable[FunctionType]) -> bool:
    """Whether all that these functions compare by identity goes through rewritten code."""
    return all(
        all(_IDENTITIES.isdisjoint(inner.co_code[::2]) for inner in codes(function.__code__))
        or (function.__code__.co_filename == "<string>" and "__class__" in function.__code__.co_names)  # of a dataclass
        or text_of(function) is not None
        for function in functions
    )


def _new_code(function: FunctionType, meant: Meanings, outside: Outside, kept: Kept) -> CodeType | None:
    leads = leads_outside(function.__code__, outside)
    kept = kept.within(function.__code__)
    is_replaced = any(replacement for _, replacement in meant)
    if not (leads or is_replaced or kept.anywhere or kept.names or _has_what_changes(function.__code__)):
        return None
    text = text_of(function)
    if text is not None:
        return _rewritten(text, function.__code__, meant, outside if leads else NOTHING, kept)
    if leads and uses_outside(function.__code__, outside):
        return refusing(function, outside)
    return renamed(function.__code__, {**vars(builtins), **function.__globals__})


#: One of these is in the bytecode of whatever is changed, except of calls.
_INSTRUCTIONS = (
    "POP_JUMP", "JUMP_IF", "UNARY_NOT", "BINARY_SUBS", "BINARY_SL", "STORE_SUBS", "STORE_SL", "SETUP_", "PUSH_EXC",
    "IS_OP",
)  # fmt: skip
_OPERATIONS = frozenset(number for name, number in dis.opmap.items() if name.startswith(_INSTRUCTIONS))
_IDENTITIES = frozenset(number for name, number in dis.opmap.items() if name == "IS_OP" or name.endswith("_NONE"))
#: All of these are in that of a uniform loop, which otherwise contains one of those.
_OF_LOOPS = frozenset({dis.opmap["FOR_ITER"], dis.opmap["STORE_ATTR"]})


@functools.lru_cache(maxsize=1024)
def _has_what_changes(code: CodeType) -> bool:
    """Whether a function may contain any such thing, except calls: most methods of small classes do not."""
    return "BINARY_SUBSCR" not in dis.opmap or any(
        not _OPERATIONS.isdisjoint(inner.co_code[::2])
        or _OF_LOOPS.issubset(inner.co_code[::2])
        or "__class__" in inner.co_names
        or may_tell(inner)
        for inner in codes(code)
    )


@functools.lru_cache(maxsize=1024)
def _rewritten(text: Text, code: CodeType, meant: Meanings, outside: Outside, kept: Kept) -> CodeType | None:
    """The new code of a function; None if it is unchanged."""
    tree = ast.parse(text.lines, text.filename)
    nodes = around(tree, text.place[0])
    node: Any = next(n for n in nodes if isinstance(n, FUNCTIONS) and (n.lineno, n.col_offset) == text.place)
    rewriter = _Rewriter(dict(meant), text.lines, kept)
    rewriter.function(node)
    if outside is not NOTHING:
        Watching(outside, rewriter.helper).function(node)
    if not rewriter.changed:
        return None
    ast.fix_missing_locations(node)
    for made in codes(compile(tree, text.filename, "exec", text.flags, dont_inherit=True)):
        if made.co_name == code.co_name and made.co_firstlineno == code.co_firstlineno:
            return made if made.co_freevars == code.co_freevars else None
    return None


# ---- the changes ------------------------------------------------------------------------------------------


class _Rewriter(ast.NodeTransformer):
    """Changes the body of one function, and of those inside it."""

    def __init__(self, meanings: dict[str, str], source: str, kept: Kept) -> None:
        self._meanings, self._source, self._kept = meanings, source, kept
        self._hidden: list[set[str]] = []
        self._functions: list[Any] = []
        self._local: list[set[str]] = []
        self._sides = 0
        self.changed = False

    def function(self, node: Any) -> None:
        """Rewrite the body of a function; its decorators and defaults have been evaluated."""
        inner = {name for part in ast.walk(node) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names}
        self._hidden.append(set(bound_names(node)))
        self._local.append(self._hidden[-1] - inner)
        self._functions.append(node)
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = self._statements(node.body if is_generator(node) else with_returns_last(node.body))
        self._local.pop()
        self._hidden.pop()
        self._functions.pop()

    def _statements(self, body: list[Any]) -> list[Any]:
        made: list[Any] = []
        for statement in body:
            found = self.visit(statement)
            made += found if isinstance(found, list) else [found]
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        made: list[Any] = told(node, self._call)
        self.function(node)
        if made:
            made[-1].orelse = node.body
            node.body = made
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.function(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        for statement in node.body:  # not rewritten itself: a lambda in it would not see the names of the class
            if isinstance(statement, ast.FunctionDef):
                self.function(statement)
        return node

    # -- 1: tests

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        plain = is_plain(node.test) or has_its_own_meaning(node.body, node.orelse)
        does = self._doing(node.body, node.orelse)
        self.generic_visit(node)
        if plain:
            return node
        return self._call("choose", node, node.test, later(node.body), later(node.orelse), does)

    def _doing(self, *nodes: Any) -> ast.Constant:
        """What sides do, as an argument of a helper."""
        found: Any = doing(nodes, self._computes)
        if all(map(is_display, nodes)):
            found = (*found, NEW)
        return ast.copy_location(ast.Constant(found), nodes[0])

    def _computes(self, function: ast.expr, arguments: int) -> bool:
        """Whether a function, with so many arguments, does nothing but compute with numbers."""
        meaning = self._meaning(function)
        if meaning in ("max", "min"):
            return arguments > 1
        known = meaning in ("float", "int", "round", "type") or (meaning or "").startswith("math_")
        if meaning in _OF_ITERABLES:
            return False
        return known or (meaning == "" and dotted(function) not in CALLS)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        plain = all(map(is_plain, node.values)) or has_its_own_meaning(*node.values[1:])
        doings = [self._doing(*node.values[k:]) for k in range(1, len(node.values))]
        self.generic_visit(node)
        if plain:
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        result = node.values[-1]
        for value, does in zip(node.values[-2::-1], doings[::-1]):
            result = self._call(name, node, value, later(result), does)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        plain = not isinstance(node.op, ast.Not) or is_plain(node.operand)
        self.generic_visit(node)
        return node if plain else self._call("negation", node, node.operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if asks_for_none(node):
            self.generic_visit(node)
            return self._call("is_none" if isinstance(node.ops[0], ast.Is) else "is_some", node, node.left)
        asks = asks_for_identity(node)
        is_chain = len(node.ops) > 1 and (asks or not is_plain(node)) and not has_its_own_meaning(*node.comparators)
        does = self._doing(*node.comparators[1:]) if is_chain else None
        self.generic_visit(node)
        if asks and len(node.ops) == 1:
            name = "same" if isinstance(node.ops[0], ast.Is) else "different"
            return self._call(name, node, node.left, *node.comparators)
        if not is_chain:
            return node
        operators = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return self._call("compared", node, node.left, operators, does, *map(later, node.comparators))

    def visit_If(self, node: ast.If) -> Any:
        found = None if is_plain(node.test) or not self._local else assigned_names(node, self._hidden[-1])
        if found is None or has_its_own_meaning(node.test):
            return self._with_test(node)
        names, changed = found
        text = ast.get_source_segment(self._source, node.test) or ""
        returns, does = may_return([node]), doing([*node.body, *node.orelse], self._computes)
        if returns:
            ReturnsAssigned().generic_visit(node)
        StoresNoted(self._call).generic_visit(node)
        self.generic_visit(node)
        self._sides += 1
        outer = [name for name in names if name not in self._local[-1] and name != RETURNED]
        made = as_loop(node, self._sides, names, changed, does, self._call, text, outer)
        if returns:
            content = ast.copy_location(ast.Name(RETURNED, ast.Load()), node)
            made.append(ast.copy_location(ast.Return(content), node))
        return made

    def visit_While(self, node: ast.While) -> Any:
        node.body = with_continues_last(node.body)
        return self._with_test(node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return self._with_test(node)

    def _with_test(self, node: Any) -> Any:
        text = "" if is_plain(node.test) else ast.get_source_segment(self._source, node.test) or ""
        kind = type(node).__name__.lower()
        self.generic_visit(node)
        if text:
            node.test = self._call("truth", node.test, node.test, ast.Constant(text), ast.Constant(kind))
        return node

    # -- 5: handlers

    def visit_Try(self, node: Any) -> Any:
        handlers = [handler for handler in node.handlers if goes_on(handler)]
        leaves = takes_all(node.finalbody)
        self.generic_visit(node)
        if handlers:
            node.body = self._watched(node, node.body, [copy.deepcopy(handler.type) for handler in handlers])
        if leaves:
            inner = copy.copy(node)
            inner.finalbody = []
            node.body = self._watched(node, [inner] if node.handlers else node.body, [None])
            node.handlers, node.orelse = [], []
        return node

    def _watched(self, place: Any, body: list[Any], kinds: list[Any]) -> list[Any]:
        """Statements whose exceptions of these kinds are handled around them; None stands for all."""
        anything = ast.copy_location(ast.Name("BaseException", ast.Load()), place)
        classes = ast.copy_location(ast.Tuple([kind or anything for kind in kinds], ast.Load()), place)
        attempt = ast.withitem(self._call("attempt", place, later(classes)))
        return [ast.copy_location(ast.With([attempt], body), place)]

    visit_TryStar = visit_Try

    # -- 2: elements

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        plain = not isinstance(node.ctx, ast.Load) or is_plain_index(node.slice)
        self.generic_visit(node)
        return node if plain else self._call("element", node, node.value, node.slice)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        self.generic_visit(node)
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and not is_plain_index(target.slice):
            return ast.copy_location(
                ast.Expr(self._call("assign_element", node, node.value, target.value, target.slice)), node
            )
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        own_meaning = has_its_own_meaning(node.value)
        self.generic_visit(node)
        if isinstance(target, ast.Attribute):
            return told_statement(node, self._call) or node
        if not isinstance(target, ast.Subscript) or is_plain_index(target.slice) or own_meaning:
            return node
        operator = ast.Constant(type(node.op).__name__)
        return ast.copy_location(
            ast.Expr(self._call("update_element", node, target.value, target.slice, operator, later(node.value))), node
        )

    # -- 3: functions

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        is_asked = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        return self._call("class_of", node, node.value) if is_asked else node

    def visit_Call(self, node: ast.Call) -> Any:
        replacement = self._meaning(node.func)
        self.generic_visit(node)
        if not replacement and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            node.func = self._call("writing", node, node.func)
            return node
        if not replacement:
            if replacement is None and node.args and self._may_be_kept(node.func):
                node.func = self._call("kept", node, node.func)
            return node
        if replacement == "type" and len(node.args) != 1:
            return node
        if replacement == "isinstance" and (len(node.args) != 2 or not tells_ints(node.args[1])):
            return node
        node.func = self.helper(replacement, node)
        return node

    def _meaning(self, function: Any) -> str | None:
        """The replacement of a function; empty where it has none but is known."""
        name = dotted(function)
        is_hidden = any(name.partition(".")[0] in hidden for hidden in self._hidden)
        return None if is_hidden else self._meanings.get(name)

    # -- 8: functions that are kept

    def _may_be_kept(self, function: ast.expr) -> bool:
        """Whether what is called may be a function that is replaced."""
        if isinstance(function, ast.Attribute):
            return function.attr in self._kept.names
        if not isinstance(function, ast.Name):
            return self._kept.anywhere and isinstance(function, (ast.Subscript, ast.Call, ast.IfExp))
        is_variable = any(function.id in hidden for hidden in self._hidden)
        return function.id in self._kept.names or (self._kept.anywhere and is_variable)

    # -- 6: uniform loops

    def visit_For(self, node: ast.For) -> Any:
        def is_builtin(name: str) -> bool:
            return self._meaning(ast.Name(name, ast.Load())) == ""

        def computes(function: ast.expr) -> bool:
            meaning = self._meaning(function)
            known = meaning in ("max", "min", "float") or (meaning or "").startswith("math_")
            return known or (meaning == "" and dotted(function) not in CALLS)

        node.body = with_continues_last(node.body)
        found = use_of(node, self._local[-1], is_builtin, computes) if self._local else None
        links = told_loop(node, self._local[-1], self._loads, self._call) if self._local and not found else None
        if links is not None:
            return self._told(node, links)
        self.generic_visit(node)
        if found is not None:
            how, iterables, use, captured = found
            iterables = iterables if how != "each" else [node.iter]
            how_used: Any = tuple(use)
            names = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in captured]
            given = (
                ast.Tuple(iterables, ast.Load()),
                ast.Constant(how_used),
                ast.Tuple([*map(later, names)], ast.Load()),
            )
            node.iter = self._call("uniform", node.iter, ast.Constant(how), *given)
        return node

    def _loads(self, name: str) -> int:
        """How often the function reads or deletes a name, also in functions inside of it."""
        named = (part for part in ast.walk(self._functions[-1]) if isinstance(part, ast.Name) and part.id == name)
        return sum(not isinstance(part.ctx, ast.Store) for part in named)

    def _told(self, node: ast.For, links: Any) -> ast.For:
        """A loop that goes only through those links of which it is not told what is added."""
        self.generic_visit(node)
        links.args[3] = node.iter
        node.iter = links
        return node

    def helper(self, name: str, place: Any) -> Any:
        """An expression that refers to a function of source/semantics.py."""
        self.changed = True
        helpers = ast.copy_location(ast.Name(NAME_OF_HELPERS, ast.Load()), place)
        return ast.copy_location(ast.Attribute(helpers, name, ast.Load()), place)

    def _call(self, name: str, place: Any, *arguments: Any) -> Any:
        return ast.copy_location(ast.Call(self.helper(name, place), list(arguments), []), place)
