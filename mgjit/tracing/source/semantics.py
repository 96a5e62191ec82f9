"""The functions that rewritten code calls where it may meet a traced number; those for elements and loops are here.

Rewritten functions (source/rewriting.py) find these under one name.  Each does exactly what the syntax or builtin that
it stands for does, unless an operand is traced; then it records the operation with the same result, or raises a
TraceError that says how to write it.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from ...base.lookup import package_of
from ...engine import hook
from ...engine.leaks import is_traced_number
from ...errors import TraceError
from ..record.uniform import EachIndex
from ..record.uniform_loops import CALLS, Use
from . import effects, outside
from .conditional import (
    both,
    choose,
    compared,
    different,
    either,
    identity,
    is_none,
    is_some,
    negation,
    same,
    select,
    sides,
    truth,
)
from .contributions import contributed, contributing, observes
from .handlers import Attempt, Suppressing
from .kinds import class_of, is_instance, rounded, to_float, to_integer, type_of
from .mathematics import replacement_of
from .ranking import extreme, quantifier, sorted_of
from .stores import store_attribute, store_element

_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "Pow": operator.ipow, "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "MatMult": operator.imatmul,
    "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip


# ---- elements -----------------------------------------------------------------------------------------------


def element(container: Any, index: Any) -> Any:
    """`container[index]`."""
    if type(index) is int:
        return container[index]
    if type(index) is EachIndex:
        return index.element(container)
    if not (_is_traced_integer(index) or type(index) is tuple):
        return container[index]
    if type(index) is not tuple and type(container) in (list, tuple):
        try:
            return index._gatherer.element(container, index)
        except TraceError:
            if index._recorder.answers is None:
                raise
            index = operator.index(index)
    return container[_fixed(container, index)]


def _fixed(container: Any, index: Any) -> Any:
    """An index into a numpy array, for each value of which the step is traced.

    numpy asks an index for its number itself, but takes an exception as the answer that there is none.
    """
    if package_of(type(container)) != "numpy":
        return index
    if type(index) is tuple:
        return tuple(_fixed(container, part) for part in index)
    return operator.index(index) if _is_traced_integer(index) else index


def _is_traced_integer(index: Any) -> bool:
    if not is_traced_number(index):
        return False
    return isinstance(index, int) or (index.of_numpy == "integer" and index.__class__.__name__[:4] != "bool")


def assign_element(content: Any, container: Any, index: Any) -> None:
    """`container[index] = content`."""
    if type(index) is int:
        container[index] = content
        return
    if type(index) is EachIndex:
        index.assign(container, content)
        return
    if not _is_traced_integer(index) or type(container) is not list:
        container[_fixed(container, index)] = content
        return
    try:
        index._check_index(len(container))
    except TraceError:
        if index._recorder.answers is None:
            raise
        container[operator.index(index)] = content
        return
    if index._gatherer.put([(container, k) for k in range(len(container))], index, content):
        return
    for k, old in enumerate(container):
        container[k] = select(index == k, content, old)


def update_element(container: Any, index: Any, name: str, operand: Callable[[], Any]) -> None:
    """`container[index] += operand` and its like."""
    current = element(container, index)
    assign_element(_INPLACE[name](current, operand()), container, index)


# ---- loops --------------------------------------------------------------------------------------------------


_ITERATIONS: dict[str, Callable[..., Any]] = {"each": iter, **{name: getattr(builtins, name) for name in CALLS}}


def uniform(
    how: str, iterables: Sequence[Any], use: Sequence[Any], captured: Sequence[Callable[[], Any]]
) -> Iterable[Any]:
    """What a `for` that does the same to each object runs through."""
    recording = hook.recording
    if recording is not None and recording.thread == get_ident():
        found: Iterable[Any] | None = recording.uniform.items(how, iterables, Use(*use), captured)
        if found is not None:
            return found
    return _ITERATIONS[how](*iterables)  # type: ignore[no-any-return]


def mapped(function: Any, *iterables: Any, **options: Any) -> Any:
    """`map(function, *iterables)`, which may be given a function of math or a builtin."""
    return map(kept(function), *iterables, **options)


def kept(function: Any) -> Any:
    """What is called in place of a function that is not known by its name."""
    name = NAMES.get(id(function))
    return function if name is None else getattr(HELPERS, name)


# ---- the table ----------------------------------------------------------------------------------------------


#: The functions that are replaced, by the name of the replacement.
REPLACEMENTS: dict[str, Any] = {"max": max, "min": min, "float": float, "int": int, "round": round, "type": type}
REPLACEMENTS.update(isinstance=isinstance, map=map)
REPLACEMENTS.update(sorted=sorted, any=any, all=all, suppress=contextlib.suppress, id=id, print=print)
REPLACEMENTS.update({f"math_{name}": original for name, original in vars(math).items() if callable(original)})
#: The names of the replacements, by the identity of what they replace.
NAMES = {id(original): name for name, original in REPLACEMENTS.items()}


def _helpers() -> dict[str, Any]:
    found: dict[str, Any] = {
        "max": extreme("max", max), "min": extreme("min", min),
        "float": to_float, "int": to_integer, "round": rounded, "type": type_of, "isinstance": is_instance,
        "id": identity, "sorted": sorted_of, "any": quantifier(any, True), "all": quantifier(all, False),
        "map": mapped, "print": effects.printed, "attempt": Attempt, "suppress": Suppressing,
        "writing": effects.writing,
        "called": outside.called, "touched": outside.touched, "used": outside.used, "entered": outside.entered,
        "taking": outside.taking, "unseen": outside.unseen,
        "unfollowed": outside.unfollowed, "sliced": slice,
    }  # fmt: skip
    for function in (
        choose, both, either, is_none, is_some, same, different, negation, truth, sides, compared, element,
        assign_element, update_element, uniform, observes, contributed, contributing, class_of, store_attribute,
        store_element, kept,
    ):  # fmt: skip
        found[function.__name__] = function
    found.update({f"math_{name}": replacement_of(name) for name in vars(math)})
    return found


#: Everything above, as attributes of one object.
HELPERS = SimpleNamespace(**_helpers())
