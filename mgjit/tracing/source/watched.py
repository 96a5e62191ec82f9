"""Wrap what may lead outside of the step, in the syntax tree of a function that is rewritten for a trace.

The survey has found what foreign things the step can reach, and under which names (surroundings/allowed.py).  Without
any, nothing changes.  Otherwise, in the places named there:

1. An object whose attribute is used is looked at first, and so is what the attribute holds.
2. A variable that may hold a function which is not allowed is looked at where it is read.
3. The operands of operators, loops, tests and functions of Python are looked at if a foreign object may be among them.
4. What is called is looked at where no name says what it may be.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from ..surroundings.allowed import NOTHING, Outside
from ..surroundings.code import COMPUTED, EVALUATING, codes
from .names import NAME_OF_HELPERS


def leads_outside(code: CodeType, outside: Outside) -> bool:
    """Whether a function has to be changed."""
    return outside.has_foreign or outside.in_texts or (outside is not NOTHING and uses_outside(code, outside))


def uses_outside(code: CodeType, outside: Outside) -> bool:
    """Whether a function is likely to use something from outside that is not watched, judging by names alone."""
    if outside.has_operators or (outside.everywhere and _calls(code)):
        return True
    leading = outside.names - outside.watched
    leading |= (EVALUATING if outside.in_texts else set()) | (COMPUTED if outside.has_foreign else set())
    return any(not leading.isdisjoint(_names(inner)) for inner in codes(code))


@functools.lru_cache(maxsize=1024)
def _calls(code: CodeType) -> bool:
    return any(not _CALLS.isdisjoint(inner.co_code[::2]) for inner in codes(code))


_CALLS = frozenset(number for name, number in dis.opmap.items() if name.startswith("CALL") and "INTRINSIC" not in name)


def _names(code: CodeType) -> tuple[str, ...]:
    return (*code.co_names, *code.co_freevars, *code.co_cellvars, *code.co_varnames)


def refusing(function: FunctionType, outside: Outside) -> CodeType:
    """Code in place of a function without source, which cannot be changed: to call it ends the trace."""
    names = {name for inner in codes(function.__code__) for name in _names(inner)} & (outside.names - outside.watched)
    what = f"uses {', '.join(sorted(names))}" if names else "may use what existed before the step"
    code = function.__code__
    free = code.co_freevars
    text = (
        f"def around({', '.join(free)}):\n def function(*given, **options):\n"
        f"  {''.join(f'{variable}; ' for variable in free)}"
        f"return {NAME_OF_HELPERS}.unseen({function.__name__!r}, {what!r})\n"
    )
    made = compile(text, code.co_filename, "exec")
    return next(inner for inner in codes(made) if inner.co_name == "function").replace(
        co_firstlineno=code.co_firstlineno
    )


#: Calls that ask for no more than which object, or which class, something is.
_OF_IDENTITY = frozenset({"isinstance", "issubclass", "type", "id", "callable", "super"})
#: Calls whose meaning depends on the function around them.
_OF_THE_FRAME = frozenset({"super", "locals", "vars", "dir", "eval", "exec", "globals"})
#: Helpers that ask for no more, or that are given functions.
_OF_IDENTITY_HERE = frozenset({"is_none", "is_some", "same", "different", "writing", "attempt", "called", "touched",
                               "used", "entered", "taking", "observes", "kept"})  # fmt: skip
#: Helpers that ask whether something is true, which objects are that say nothing else.
_TESTS = frozenset({"truth", "negation", "both", "either", "choose", "sides", "compared", "element", "assign_element",
                    "update_element", "uniform"})  # fmt: skip


class Watching(ast.NodeTransformer):
    """Changes a function that has been rewritten.

    Args:
        outside: what the survey has found.
        helper: makes an expression that refers to a function of source/outside.py, at the place of a node.
    """

    def __init__(self, outside: Outside, helper: Callable[[str, Any], Any]) -> None:
        self._outside, self._helper = outside, helper

    def function(self, node: Any) -> None:
        """Change the body of a function; its decorators and defaults have been evaluated."""
        imports = [alias for part in ast.walk(node) if isinstance(part, ast.ImportFrom) for alias in part.names]
        named = {alias.asname for alias in imports if alias.asname and alias.name in self._outside.names}
        self._outside = self._outside._replace(functions=self._outside.functions | named)
        if isinstance(node.body, ast.expr):
            node.body = self.visit(node.body)
            return
        found = list(map(self.visit, node.body))
        node.body = [made for each in found for made in (each if isinstance(each, list) else [each])]

    def _asked(self, name: str, node: Any, *more: str) -> Any:
        given = [node, *(ast.copy_location(ast.Constant(text), node) for text in more)]
        return ast.copy_location(ast.Call(self._helper(name, node), given, []), node)

    def _used(self, node: Any) -> Any:
        if isinstance(node, ast.Starred) or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return node
        if isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts):
            return node
        is_known = isinstance(node, (ast.Constant, ast.Lambda, ast.JoinedStr, ast.Slice)) or self._is_ours(node)
        return node if is_known else self._asked("used", node)

    def _is_ours(self, node: Any) -> bool:
        """Whether an expression is the name of the helpers."""
        return isinstance(node, ast.Name) and node.id == NAME_OF_HELPERS

    # -- 1 and 2: names

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if self._is_ours(node.value):
            return node
        self.generic_visit(node)
        if node.attr not in self._outside.names:
            return node
        if node.attr in self._outside.attributes:
            node.value = self._asked("touched", node.value, node.attr)
        return self._asked("called", node) if isinstance(node.ctx, ast.Load) else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self._selecting(node, node.value)

    def _selecting(self, node: Any, container: Any) -> Any:
        """One module of `sys.modules` is known by its name, unlike all of them."""
        attribute = container.attr if isinstance(container, ast.Attribute) else ""
        if attribute == "modules":
            container.attr = ""
        found = self.generic_visit(node)
        if attribute == "modules":
            container.attr = attribute
        return found

    def visit_Name(self, node: ast.Name) -> Any:
        if self._outside.in_texts and node.id in EVALUATING:
            return self._asked("unfollowed", node)
        if node.id in self._outside.functions and isinstance(node.ctx, ast.Load):
            return self._asked("called", node)
        return node

    # -- 3 and 4: operands, and what is called

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        is_helper = isinstance(function, ast.Attribute) and self._is_ours(function.value)
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        self._selecting(node, node.args[0] if is_helper and name == "element" else None)
        if name in _OF_IDENTITY or (is_helper and name in _OF_IDENTITY_HERE):
            return node
        if is_helper:
            if self._outside.has_operators or (self._outside.has_foreign and name not in _TESTS):
                node.args = list(map(self._used, node.args))
        elif name not in _OF_THE_FRAME and (self._outside.has_foreign or self._outside.everywhere):
            node.func = self._asked("taking" if self._outside.has_foreign else "called", node.func)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        if self._outside.has_foreign:
            node.value = self._used(node.value)
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        if self._outside.has_foreign:
            for item in node.items:
                item.context_expr = self._asked("entered", item.context_expr)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = copy.deepcopy(node.target)
        self.generic_visit(node)
        if not self._outside.has_operators:
            return node
        node.value = self._used(node.value)
        if not isinstance(target, ast.Name):
            return node
        target.ctx = ast.Load()
        return [ast.copy_location(ast.Expr(self._used(target)), node), node]

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if self._outside.has_operators and any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = self._used(node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if self._outside.has_operators and not all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            node.left, node.comparators = self._used(node.left), list(map(self._used, node.comparators))
        return node

    def generic_visit(self, node: Any) -> Any:
        super().generic_visit(node)
        if self._outside.has_operators:
            for field in _OPERANDS.get(type(node), ()):
                part = getattr(node, field)
                setattr(node, field, list(map(self._used, part)) if isinstance(part, list) else self._used(part))
        return node


#: What Python itself asks objects for something by, and in which fields of the nodes they are.
_OPERANDS: dict[type, tuple[str, ...]] = {
    ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.BoolOp: ("values",), ast.IfExp: ("test",),
    ast.If: ("test",), ast.While: ("test",), ast.Assert: ("test",), ast.For: ("iter",), ast.comprehension: ("iter",),
    ast.Subscript: ("value", "slice"), ast.Starred: ("value",), ast.YieldFrom: ("value",),
}  # fmt: skip
