"""Choose the function of a step that is to be compiled by itself: the loss of one sample of a batch.

1. One plain call is watched.  A candidate is a function of the user's that is called several times, gets nothing but
   numbers (also in lists and tuples), and returns a new node of an autograd graph in the usual style
   (autograd/graph_style.py).  Of these, the one that takes most of the time is the outermost one.
2. Nobody must be able to tell that the nodes behind that result are missing: nothing but the class itself mentions the
   attributes by which a graph is walked, except by `backward()`, whose order is known; and no graph outlives the call.
3. Nor may it assign anything that the function reads, other than numbers of parameters: between the call and
   `backward()`, plain Python would not read it again.  What code mentions decides, so this errs on the safe side;
   whatever it overlooks is noticed when it happens (unit.py).
4. The function uses nothing but code of the user's, and what of Python's own depends on its arguments alone.  And while
   the rest of the step runs, parameters are no longer objects of exactly their class, nor does the function raise what
   Python's arithmetic would: so nothing may look at classes, or handle such errors.
"""

from __future__ import annotations

import builtins
import dis
import functools
import gc
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from random import Random
from time import thread_time
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..base import settings
from ..base.lookup import module_of
from ..tracing.autograd.node_class import NodeClass, node_class
from ..tracing.surroundings.code import COMPUTED, SEARCHING, codes, read
from ..tracing.surroundings.ownership import is_module_of_user, is_of_user
from ..tracing.surroundings.shapes import attributes, cell_content
from ..tracing.surroundings.survey import Survey

#: A function is worth it if so much of the time of the step is spent in it, before `backward()`.
_SHARE = 0.2
#: Methods that change containers.
_CHANGING = frozenset({
    "append", "extend", "insert", "pop", "popitem", "remove", "clear", "sort", "reverse", "update", "setdefault", "add",
    "discard", "appendleft", "extendleft", "popleft", "rotate", "__setitem__", "__delitem__",
})  # fmt: skip
_ELSEWHERE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_NUMBERS = frozenset({int, float, bool})
#: Modules of Python's own, and kinds of their objects, in which nothing changes but what guards see.
_FUNCTIONAL = frozenset({
    "math", "cmath", "operator", "itertools", "functools", "collections", "collections.abc", "typing", "dataclasses",
    "numbers", "string", "enum", "types", "abc", "random", "builtins", "_operator", "_collections", "__future__",
})  # fmt: skip
_OUTSIDE = frozenset({"open", "input", "breakpoint", "id", "hash"})
#: With these, code tells a class from a class derived from it.
_CLASSES = frozenset({"type", "__class__"})
#: What arithmetic raises in Python; compiled code goes on.
_ERRORS = frozenset({
    "ZeroDivisionError", "OverflowError", "ArithmeticError", "ValueError", "Exception", "BaseException",
})  # fmt: skip


class Choice(NamedTuple):
    """A function to be compiled by itself.

    Attributes:
        function: the user's function.
        known: the class of the nodes that it returns.
        ratio: how many times as long as these calls the whole step takes.
        example: one of these nodes; to make others might have effects of its own.
    """

    function: FunctionType
    known: NodeClass
    ratio: float
    example: Any


@dataclass
class _Calls:
    """The calls of a function.

    Attributes:
        number: how many there were. seconds: that they have taken. kind: of the results. results: of the calls.
    """

    number: int = 0
    seconds: float = 0.0
    kind: type | None = None
    results: list[Any] = field(default_factory=list)


class _Watch:
    """Watches which functions are called (sys.setprofile): of what is not suitable, no more than one call."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[CodeType, _Calls | None]] = {}  # by identity, which is quick; None: not suitable
        self._under_way: list[tuple[Any, float]] = []

    def see(self, frame: Any, event: str, given: Any) -> None:
        """Take note of an event."""
        code = frame.f_code
        _, calls = self.found.get(id(code)) or self._first(code)
        if calls is None:
            return
        if event == "call":
            self._begin(frame, code)
        elif event == "return" and self._under_way and self._under_way[-1][0] is frame:
            calls.seconds += thread_time() - self._under_way.pop()[1]
            calls.number += 1
            if calls.kind not in (None, type(given)):
                self._drop(code)
            calls.kind = type(given)
            calls.results.append(given)

    def _first(self, code: CodeType) -> tuple[CodeType, _Calls | None]:
        is_possible = code.co_argcount and not (code.co_kwonlyargcount or code.co_flags & _ELSEWHERE)
        known = self.found[id(code)] = code, _Calls() if is_possible else None
        return known

    def _begin(self, frame: Any, code: CodeType) -> None:
        own = frame.f_locals
        is_recursive = any(other.f_code is code for other, _ in self._under_way)
        if is_recursive or not all(is_plain(own.get(n, self)) for n in code.co_varnames[: code.co_argcount]):
            self._drop(code)
        else:
            self._under_way.append((frame, thread_time()))

    def _drop(self, code: CodeType) -> None:
        self.found[id(code)] = code, None
        self._under_way[:] = [one for one in self._under_way if one[0].f_code is not code]


def is_plain(thing: Any) -> bool:
    """Whether an argument consists of numbers, or of lists and tuples of them."""
    kind = type(thing)
    return kind in _NUMBERS or (kind in (list, tuple) and all(map(is_plain, thing)))


def watched(step: Any, call: Callable[[], Any]) -> tuple[Any, Choice | None]:
    """Make a plain call of a step; returns its result, and the function to be compiled by itself, if there is one."""
    if sys.getprofile() is not None:
        return call(), None
    watch = _Watch()
    see = watch.see
    started = thread_time()
    sys.setprofile(see)
    try:
        result = call()
    finally:
        if sys.getprofile() is see:  # the step may have set another
            sys.setprofile(None)
    seconds = thread_time() - started
    good = [
        (calls.seconds, number, code, calls.results[0], known)
        for number, (code, calls) in enumerate(watch.found.values())
        if calls is not None and calls.number > 1 and calls.seconds > _SHARE * seconds
        and (known := _styled(calls.kind)) is not None and all(is_inner(thing, known) for thing in calls.results)
    ]  # fmt: skip
    if not good:
        return result, None
    survey = Survey(step)  # only now, because plain calls over objects that have been looked at may be slower
    functions = {function.__code__: function for function in survey.functions}
    good = [one for one in good if one[2] in functions]
    if not good:
        return result, None
    spent, _, code, example, known = max(good, key=itemgetter(0, 1))
    function = functions[code]
    choice = Choice(function, known, seconds / spent, example)
    reason = objection(survey, choice) or _kept(step, result, known)
    if reason:
        settings.LOGGER.info("%s is not compiled by itself: %s", function.__name__, reason)
    return result, None if reason else choice


def is_inner(thing: Any, known: NodeClass) -> bool:
    """Whether an object is a node of a graph that is no leaf."""
    return type(thing) is known.kind and known.style is not None and bool(known.style.operands_of(thing))


def _kept(step: Any, result: Any, known: NodeClass) -> str:
    """Which graph outlives a call; empty if none does."""
    if is_inner(result, known) or (
        isinstance(result, (list, tuple, dict)) and any(is_inner(t, known) for t in gc.get_referents(result))
    ):
        return "the step returns a graph"
    groups = Survey(step).groups
    is_kept = any(is_inner(thing, known) for thing in groups[known.kind].things) if known.kind in groups else False
    return "the step keeps a graph" if is_kept else ""


def _styled(kind: type | None) -> NodeClass | None:
    """What is known about a class of nodes whose graph is kept in the usual style."""
    known = None if kind is None else node_class(kind)
    if known is None or known.style is None or known.kind is not kind or type(kind) is not type:
        return None
    if known.style.seed != 1:
        return None
    own = [name for base in kind.__mro__ if is_of_user(base) for name in vars(base)]
    special = {"__init_subclass__", "__getattribute__", "__getattr__", "__setattr__", "__new__", "__del__", "__eq__"}
    return None if special.intersection(own) else known


def objection(survey: Survey, choice: Choice) -> str:
    """Why a function cannot be compiled by itself; empty if nothing speaks against it.

    Args:
        survey: of the step.
    """
    known = choice.known
    methods = {id(part) for base in known.kind.__mro__ for part in vars(base).values()}
    unit = Survey(choice.function)
    own = {id(function) for function in unit.functions}
    numbers = {known.data.name, known.gradient.name}
    hidden = attributes(choice.example).keys() - numbers
    changeable = {name for function in unit.functions for name in _names(function)} - numbers
    contents = changeable - _settled(survey.functions) - _CHANGING
    foreign = next(filter(None, map(_foreign, unit.functions)), "")
    if foreign:
        return f"it uses {foreign}"
    for function in survey.functions:
        reading, is_method = read(function.__code__), id(function) in methods
        if id(function) not in own or is_method:
            told = _CLASSES.intersection(reading.names) if function.__name__ != "__repr__" else ()
            if told:
                return f"{function.__name__} may look at the class of a parameter, with {min(told)}"
        if function.__name__ in ("__init__", "backward") and is_method:
            continue
        if not reading.names.isdisjoint(COMPUTED | SEARCHING):
            return f"{function.__name__} reaches attributes or variables that it does not name"
        if id(function) not in own and not _ERRORS.isdisjoint(reading.names):
            return f"{function.__name__} may handle an error of arithmetic, which compiled code does not raise"
        names = set(_looked_up(function.__code__)) if is_method else reading.names
        if not hidden.isdisjoint(names):
            return f"{function.__name__} looks at the graph: {sorted(hidden & set(names))[0]}"
        if is_method or id(function) in own:
            continue
        stored = {*reading.stored_attributes, *reading.stored_variables} & changeable
        if stored:
            return f"{function.__name__} assigns {sorted(stored)[0]}, which {choice.function.__name__} may read"
        changes = reading.beside_stores or not _CHANGING.isdisjoint(reading.names)
        changed = contents.intersection(_names(function)) if changes else ()
        if changed:
            return f"{function.__name__} may change {sorted(changed)[0]}, which {choice.function.__name__} reads"
    return ""


def _foreign(function: FunctionType) -> str:
    """What a function uses that may change without its arguments, such as the time; empty if there is nothing."""
    reading = read(function.__code__)
    known = _contents(function, reading.variables)
    modules = [module.partition(".")[0] for _, module, _ in reading.imports]
    strange = [name for name, thing in known if not _is_functional(thing)]
    return next(chain(strange, set(modules) - _FUNCTIONAL, _OUTSIDE.intersection(reading.variables)), "")


def _is_functional(thing: Any) -> bool:
    """Whether something is the user's own, or of a part of Python in which nothing changes unseen."""
    if isinstance(thing, ModuleType):
        return thing.__name__ in _FUNCTIONAL or is_module_of_user(thing)
    if isinstance(thing, (FunctionType, type)):
        return is_of_user(thing) or module_of(thing) in _FUNCTIONAL
    if isinstance(thing, MethodType):
        return _is_functional(thing.__func__)
    if isinstance(thing, BuiltinFunctionType):
        return isinstance(thing.__self__, Random) or module_of(thing) in _FUNCTIONAL
    kind = type(thing)
    if kind is ContextVar:  # whose module is `builtins` before Python 3.10
        return False
    return is_of_user(kind) or (module_of(kind) in _FUNCTIONAL - {"functools"}) or kind is functools.partial


def _names(function: FunctionType) -> Iterator[str]:
    """The names of the variables and attributes that a function uses, but for its own variables."""
    for code in codes(function.__code__):
        yield from code.co_names
        yield from code.co_freevars


def _contents(function: FunctionType, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The variables that a function captures, and the global ones among some names, with what they refer to."""
    yield from zip(function.__code__.co_freevars, map(cell_content, function.__closure__ or ()))
    space = function.__globals__
    yield from ((name, space[name]) for name in names if name in space)


def _settled(functions: Iterable[FunctionType]) -> set[str]:
    """The names of functions, classes and modules among the variables of functions: these are not changed in place."""
    found = dict.fromkeys(dir(builtins), True)
    for function in functions:
        for name, thing in _contents(function, _names(function)):
            is_fixed = isinstance(thing, (FunctionType, type, ModuleType, int, float, str))
            found[name] = found.get(name, True) and is_fixed
    return {name for name, is_fixed in found.items() if is_fixed}


def _looked_up(code: CodeType) -> Iterator[str]:
    """The attributes that code reads."""
    for inner in codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOOKUP_METHOD"):
                yield instruction.argval
            elif instruction.opname == "MATCH_CLASS":  # the names are in a constant before it
                yield from read(code).names
