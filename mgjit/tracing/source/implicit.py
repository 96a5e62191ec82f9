"""What Python runs without a call to be seen: operators, properties, look-ups; and whether that changes anything.

A side of a condition that only adds and reads attributes leaves everything as it was, unless a class of the user's has
an `__add__` that counts, or a property that fills a cache.  `Implicit.doing` says which of the two a step may meet.  A
function is still if it does nothing but compute, call what is still as well, and make objects, to which it may assign.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
from abc import ABCMeta
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from ...base.cached import cached_property
from ...base.lookup import copy_of
from ..record import instrument
from ..record.counters import Counted
from ..surroundings.ownership import is_of_user
from ..surroundings.shapes import MISSING, cell_content
from .text import FUNCTIONS, Text, around, text_of

#: What a side of a condition does: it reads attributes or elements; has operators; anything else, such as a call.
READS, COMPUTES, CALLS = 1, 2, 4
#: These, added, and the names of the functions that are called, if that is all that CALLS would stand for.
Doing = tuple[Any, ...]
ANYTHING: Doing = (CALLS,)
#: Begins those of what is iterated over, and of what does that: `sum`, `zip`.
ITERATED = "*"
#: Among these names: both sides are lists or dicts that are written out there.
NEW = ""

_READING = frozenset({"__getattr__", "__getattribute__", "__getitem__", "__missing__"})
#: Methods that only calls run, or that run when an object is made or shown.
_OF_CALLS = frozenset({
    "__init__", "__new__", "__call__", "__repr__", "__str__", "__format__", "__init_subclass__", "__set_name__",
    "__class_getitem__", "__enter__", "__exit__", "__iter__", "__next__", "__setattr__", "__delattr__", "__setitem__",
    "__delitem__", "__post_init__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__copy__",
    "__deepcopy__", "__sizeof__", "__dir__", "__contains__", "__reversed__", "__del__",
})  # fmt: skip
_STILL_FUNCTIONS = tuple(
    getattr(builtins, name)
    for name in ("abs", "bool", "float", "id", "int", "isinstance", "len", "round", "type")
)  # fmt: skip
#: These take all from what they are given, which may be an iterator, unless that is given by itself.
_OF_ITERABLES = (dict, frozenset, list, set, tuple)
_OF_SEVERAL = (max, min)
#: What iterates over what it is given, which is no iterator; and what can be iterated over again and again.
_ITERATING = (enumerate, len, range, reversed, sum, zip)
_LISTS = frozenset({list, tuple, dict, range, set, frozenset, deque, str, bytes, bytearray, array, int, Counted})
_MATHEMATICS = tuple(
    function for name, function in vars(math).items()
    if callable(function) and name not in ("dist", "fsum", "prod", "sumprod")
)  # fmt: skip
_PLAIN_DESCRIPTORS = (FunctionType, staticmethod, classmethod, MemberDescriptorType, GetSetDescriptorType)
_STATEMENTS = (ast.Return, ast.Expr, ast.Assign, ast.AnnAssign, ast.If, ast.Assert, ast.Raise, ast.Pass)
_EXPRESSIONS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Call, ast.Slice,
)  # fmt: skip
_DISPLAYS = (ast.List, ast.Dict, ast.Set)


class Implicit:
    """The methods of a step's classes that Python calls by itself.

    Args:
        classes: the user's classes, with what counts of them. functions: the user's.
        has_defaults: whether a look-up may make an entry.
    """

    def __init__(
        self, classes: Mapping[type, Mapping[str, Any]], functions: Iterable[FunctionType], has_defaults: bool = False
    ) -> None:
        self._has_defaults = has_defaults
        # Their code is another one while the step is traced.
        self._methods = [
            (READS if name in _READING or isinstance(member, property) else COMPUTES, name, function)
            for members in classes.values()
            for name, member in members.items()
            for function in _run_by_itself(name, member)
        ]
        self._codes: dict[int, CodeType] = {id(function): function.__code__ for function in functions}
        for members in classes.values():
            for member in members.values():
                self._codes.update((id(f), f.__code__) for f in _functions_of(member))
        self._known: dict[int, bool] = {}
        #: Attributes that are assigned by functions.
        self._setters = {
            name
            for members in classes.values()
            for name, member in members.items()
            if hasattr(type(member), "__set__") and not isinstance(member, _PLAIN_DESCRIPTORS)
        }

    @cached_property
    def doing(self) -> int:
        """What may change something, although no call is to be seen: of READS and COMPUTES."""
        found = READS if self._has_defaults else 0
        for what, _, function in self._methods:
            if not found & what and not (isinstance(function, FunctionType) and self._is_still(function)):
                found |= what
        return found | (COMPUTES if found & READS else 0)  # an operator reads attributes

    def are_still(self, called: Iterable[Any]) -> bool:
        """Whether functions, or classes that are called, leave all that is older as it was."""
        return all(map(self._leaves_all, called))

    @staticmethod
    def iterate_still(things: Iterable[Any]) -> bool:
        """Whether iterating over things, by these functions, changes nothing: none is an iterator."""
        return all(type(thing) in _LISTS or any(thing is known for known in _ITERATING) or _is_our_sum(thing)
                   for thing in things)  # fmt: skip

    def _leaves_all(self, called: Any) -> bool:
        if any(called is known for known in _STILL_FUNCTIONS):
            return True
        if isinstance(called, type):
            return self._is_plain(called)
        return isinstance(called, FunctionType) and is_of_user(called) and self._is_still(called)

    def _is_still(self, function: FunctionType) -> bool:
        if id(function) not in self._known:
            self._known[id(function)] = True  # while it is looked at: it may call itself
            code = self._codes.get(id(function), function.__code__)
            original = function if code is function.__code__ else copy_of(function, code)
            text = text_of(original)
            node = None if text is None else _node_of(text)
            self._known[id(function)] = isinstance(node, ast.FunctionDef) and self._leaves(original, node)
        return self._known[id(function)]

    def _leaves(self, function: FunctionType, node: ast.FunctionDef) -> bool:
        """Whether the body of a function leaves all that is older as it was."""
        parameters = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        parts = [part for statement in node.body for part in ast.walk(statement)]
        stored = Counter(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
        inner = {part.name for part in parts if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
        meant = _Meant(function, parameters | stored.keys() | inner)
        makings = [
            part.targets[0].id
            for part in parts
            if isinstance(part, ast.Assign)
            and len(part.targets) == 1
            and isinstance(part.targets[0], ast.Name)
            and (isinstance(part.value, _DISPLAYS) or self._makes(part.value, meant))
        ]
        made = {name for name, count in Counter(makings).items() if count == stored[name]} - parameters
        if node.name == "__init__" and node.args.args and node.args.args[0].arg not in stored:
            made.add(node.args.args[0].arg)
        return all(self._is_quiet(part, meant, made) for part in node.body)

    def _is_quiet(self, node: ast.AST, meant: _Meant, made: set[str]) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):  # made, and not called
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            return not (decorators or node.args.defaults or any(node.args.kw_defaults))
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            is_made = isinstance(node.value, ast.Name) and node.value.id in made and isinstance(node.ctx, ast.Store)
            return is_made and getattr(node, "attr", "") not in self._setters
        if isinstance(node, ast.Compare) and any(isinstance(part, (ast.In, ast.NotIn)) for part in node.ops):
            return False
        unpacks = isinstance(node, ast.Assign) and any(isinstance(part, (ast.Tuple, ast.List)) for part in node.targets)
        if unpacks and not isinstance(node.value, ast.Tuple):  # type: ignore[attr-defined]
            return False
        if isinstance(node, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
            return True
        if isinstance(node, ast.keyword):
            return self._is_quiet(node.value, meant, made)
        if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
            return False
        if isinstance(node, ast.Call) and not (self._makes(node, meant) or self._calls_still(node, meant)):
            return False
        return all(self._is_quiet(part, meant, made) for part in ast.iter_child_nodes(node))

    def _makes(self, node: Any, meant: _Meant) -> bool:
        """Whether an expression makes an object of a class of the user's, and does nothing else."""
        kind = meant.by(node.func) if isinstance(node, ast.Call) else None
        return isinstance(kind, type) and self._is_plain(kind)

    def _is_plain(self, kind: type) -> bool:
        """The same of a class that is called."""
        if type(kind) not in (type, ABCMeta) or not is_of_user(kind):
            return False
        begins = getattr(kind, "__init__", None)
        own = {name for base in kind.__mro__[:-1] for name in vars(base)}
        if not own.isdisjoint(("__new__", "__setattr__")):
            return False
        return begins is object.__init__ or (isinstance(begins, FunctionType) and self._is_still(begins))

    def _calls_still(self, node: ast.Call, meant: _Meant) -> bool:
        called = meant.by(node.func)
        if any(called is known for known in _OF_ITERABLES):
            return all(isinstance(part, ast.Name) and part.id in meant.containers for part in node.args)
        if any(called is known for known in _OF_SEVERAL):
            return len(node.args) > 1
        return any(called is known for known in _MATHEMATICS) or self._leaves_all(called)


class _Meant:
    """What the names in a function mean that are not its own.

    Attributes:
        containers: the parameters that take tuples: their default is one.
    """

    def __init__(self, function: FunctionType, own: set[str]) -> None:
        self._own = own
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        pairs = zip(names[len(names) - len(defaults) :], defaults)
        self.containers = {name for name, default in pairs if type(default) is tuple}
        cells = zip(function.__code__.co_freevars, function.__closure__ or ())
        self._closure = {name: cell_content(cell) for name, cell in cells}
        self._globals = function.__globals__

    def by(self, node: ast.expr) -> Any:
        """The object; MISSING if that cannot be told."""
        if isinstance(node, ast.Attribute) and self.by(node.value) is math:
            return getattr(math, node.attr, MISSING)
        if not isinstance(node, ast.Name) or node.id in self._own:
            return MISSING
        named = self._closure.get(node.id, self._globals.get(node.id, getattr(builtins, node.id, MISSING)))
        return MISSING if named is None else named


def _is_our_sum(thing: Any) -> bool:
    """Whether something is the `sum` that is there during a trace."""
    return isinstance(thing, FunctionType) and thing.__globals__.get("__name__") == instrument.__name__


def _functions_of(member: Any) -> Iterator[FunctionType]:
    if isinstance(member, FunctionType):
        yield member
    elif isinstance(member, (staticmethod, classmethod)) and isinstance(member.__func__, FunctionType):
        yield member.__func__
    elif isinstance(member, property) and isinstance(member.fget, FunctionType):
        yield member.fget


def _run_by_itself(name: str, member: Any) -> Iterable[Any]:
    """What Python runs of a member of a class when an attribute is read, or for an operator."""
    if isinstance(member, property):
        return (member.fget,)
    if name.startswith("__") and name.endswith("__"):
        is_method = isinstance(member, (FunctionType, staticmethod, classmethod))
        return (member,) if is_method and name not in _OF_CALLS else ()
    is_descriptor = hasattr(type(member), "__get__") and not isinstance(member, _PLAIN_DESCRIPTORS)
    return (member,) if is_descriptor else ()


@functools.lru_cache(maxsize=1024)
def _node_of(text: Text) -> Any:
    nodes = around(ast.parse(text.lines, text.filename), text.place[0])
    return next(n for n in nodes if isinstance(n, FUNCTIONS) and (n.lineno, n.col_offset) == text.place)
