"""What rewritten code calls where it may meet something that depends on the world outside of the step.

The trace goes on if what is met is on the list of what is allowed (surroundings/allowed.py), and ends otherwise: the
call runs as plain Python, for a reason that names the line and the function.  Only the thread that is traced is asked.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn

from ...base.lookup import entries, variables
from ...engine.leaks import PlainCall
from ...engine.progress import is_tracing
from ...errors import user_location
from ...memory.live import original_class
from ..surroundings.allowed import allowed_attributes, is_allowed, is_foreign, is_foreign_field, name_of
from ..surroundings.ownership import is_of_user
from .effects import WRITES

_SIMPLE = frozenset({float, int, bool, str, bytes, type(None), list, tuple, dict, set})


def _refuse(what: str) -> NoReturn:
    raise PlainCall(
        f"{user_location()}: the step uses {what}, which may answer something else at each call, and a compiled call "
        "would not ask again. Ask outside of the step, and pass the answer as an argument."
    )


#: The identities of objects that are foreign in the trace in progress, although others of their classes are not.
identities: set[int] = set()


def called(thing: Any) -> Any:
    """Something that may be a function, as it is used by the step."""
    kind = type(thing)
    if kind not in _SIMPLE and is_tracing():
        if not is_allowed(thing):
            _refuse(name_of(thing))
        if id(thing) in identities and not issubclass(kind, _STREAMS):
            _refuse(f"a {_described(kind)} to what nothing else keeps")
    elif thing is sys.modules and is_tracing():
        _refuse("sys.modules")
    return thing


_STREAMS = (io.StringIO, io.BytesIO)


def touched(thing: Any, name: str) -> Any:
    """An object of which an attribute is about to be used."""
    kind = type(thing)
    if kind not in _SIMPLE and is_tracing() and _is_met(thing, kind) and not _may_have(thing, kind, name):
        _refuse(f"{_described(kind)}.{name}")
    return thing


def _is_met(thing: Any, kind: Any) -> bool:
    """Whether an object is foreign; of a class of a library, attributes that are no methods are as well."""
    return is_foreign(kind) or id(thing) in identities or (issubclass(kind, type) and is_foreign(thing))


def used(thing: Any) -> Any:
    """The operand of an operator, of a loop, or of a function of Python's own."""
    kind = type(thing)
    if kind not in _NUMBERS and is_tracing():
        _require_own(thing)
        if kind in _CONTAINERS:
            for part in [*thing, *thing.values()] if kind is dict else list(thing):
                _require_own(part)
    return thing


def _require_own(thing: Any) -> None:
    kind = type(thing)
    if kind in _SIMPLE:
        return
    if is_foreign(kind) or id(thing) in identities:
        _refuse(f"a {_described(kind)}")
    if not is_allowed(thing):
        _refuse(name_of(thing))


_NUMBERS = frozenset({float, int, bool, str, bytes, type(None)})
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset, deque})


def entered(thing: Any) -> Any:
    """What a `with` statement enters."""
    kind = type(thing)
    if is_foreign(kind) and "__enter__" not in allowed_attributes(kind) and is_tracing():
        _refuse(f"a {_described(kind)}")
    return thing


def taking(function: Any) -> Any:
    """Something that is called where foreign objects are about: the user's may take them, others may not."""
    called(function)
    if _is_of_user(function) or not is_tracing():
        return function

    def of_own(*given: Any, **options: Any) -> Any:
        return function(*map(used, given), **{name: used(thing) for name, thing in options.items()})

    return of_own


def _is_of_user(function: Any) -> bool:
    """Whether a function asks what it is given for nothing, or is the user's, and so is followed."""
    kind = type(function)
    if kind is BuiltinFunctionType:
        return type(function.__self__) in _SIMPLE and function.__name__ in _KEEPING
    if kind is MethodType:
        function, kind = function.__func__, FunctionType
    if issubclass(kind, type):
        return is_of_user(original_class(function))
    return is_of_user(function if issubclass(kind, FunctionType) else original_class(kind))


#: Methods of containers that take objects and ask them for nothing.
_KEEPING = frozenset({"append", "insert", "setdefault", "get", "pop"})


def unfollowed(function: Any) -> Any:
    """`eval` or `exec`, of text that may use what is outside of the step."""
    if is_tracing():
        _refuse(f"{function.__name__}() of a text that is not followed")
    return function


def unseen(name: str, reason: str) -> NoReturn:
    """Called in place of a function without source, which cannot be rewritten."""
    raise PlainCall(f"{user_location()}: {name}() {reason}, and its source is not there to be followed")


def _described(kind: Any) -> str:
    kind = original_class(kind)
    return f"{kind.__module__}.{kind.__qualname__}"


def _may_have(thing: Any, kind: Any, name: str) -> bool:
    """Whether an attribute of a foreign object is a method, which is looked at when it is called, or watched."""
    if issubclass(kind, type):
        member = next((entries(base)[name] for base in thing.__mro__ if name in entries(base)), None)
        return member is None or isinstance(member, _METHODS) or name.startswith("__")
    if name in allowed_attributes(kind) or (issubclass(kind, _STREAMS) and name in WRITES):
        return True
    if id(thing) in identities:
        return False
    for base in kind.__mro__:
        if name in entries(base):
            member = entries(base)[name]
            if is_of_user(base):  # which may be a field that C computes, as those of `ctypes.Structure`
                return not is_foreign_field(member)
            if isinstance(member, _METHODS):
                return True
            break
    return name in variables(thing)


_METHODS = (FunctionType, staticmethod, classmethod, type(list.append), type(vars(dict)["fromkeys"]))
