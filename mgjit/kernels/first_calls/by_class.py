"""Calls of a step that is plain for good with objects of some classes, such as models, and perhaps not with others.

Whether a step that gets a model can be compiled depends on the code of the model.  So a step that is given up looks at
the classes of its arguments, which takes a tenth of a microsecond, and where they are others the general path decides.
A step without such arguments, or with ever new classes, is the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Optional

from ...base.ffi import PYPY
from ...base.tracebacks import Failed, failed

Classes = tuple[Optional[type], ...]

#: With so many combinations of classes, no others are looked for.
_MOST = 8


def for_classes(
    known: Collection[Classes], call: Callable[..., Any], general: Callable[..., Any]
) -> Callable[..., Any]:
    """What makes calls with objects of known classes by `call`, and others by `general`.

    Args:
        known: the classes of the arguments that are objects, by position; None for others.
    """
    places = {tuple([k for k, kind in enumerate(classes) if kind is not None]) for classes in known}
    if len(places) != 1 or len(known) >= _MOST or PYPY:
        return call
    (where,) = places
    if len(where) != 1:
        return call if not where else _of_several(where, known, call, general)
    return _of_one(where[0], frozenset([classes[where[0]] for classes in known]), call, general)


def _of_one(
    k: int, known: Collection[type | None], call: Callable[..., Any], general: Callable[..., Any]
) -> Callable[..., Any]:
    def make(cls: type[Failed], /, *args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) <= k or type(args[k]) in known:
                return call(*args, **kwargs)
        except BaseException as error:
            return failed(cls, error)
        return Failed.__new__(cls, general, *args, **kwargs)

    return type("Call", (Failed,), {"__new__": make, "__slots__": ()})


def _of_several(
    where: tuple[int, ...], known: Collection[Classes], call: Callable[..., Any], general: Callable[..., Any]
) -> Callable[..., Any]:
    combinations = frozenset([tuple([classes[k] for k in where]) for classes in known])
    last = max(where)

    def make(cls: type[Failed], /, *args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) <= last or tuple([type(args[k]) for k in where]) in combinations:
                return call(*args, **kwargs)
        except BaseException as error:
            return failed(cls, error)
        return Failed.__new__(cls, general, *args, **kwargs)

    return type("Call", (Failed,), {"__new__": make, "__slots__": ()})
