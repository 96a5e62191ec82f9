"""Traced values that outlive their trace: recognising them, and the errors about them."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Collection, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any, NoReturn

from ..base.lookup import derived_unnoticed, has, variables
from ..errors import LeakError, TraceError, user_location
from .value import Value

#: So many objects that a step has made are searched for traced ones; more are taken for some.
_MOST_SEARCHED = 100_000


class Traced:
    """Base of everything that stands for a number or Value while a step is traced."""

    __slots__ = ()


class PlainCall(BaseException):
    """This call runs as plain Python, for the reason in the text.

    It is raised before a call has had any effect, mostly by a trace.  Whatever the trace has changed is put back,
    and then the undecorated function is called.

    Args:
        parameters: objects in the memory of a kernel that are ordinary ones for the time of the call.
    """

    def __init__(self, reason: str, parameters: Sequence[Any] = ()) -> None:
        super().__init__(reason)
        self.parameters = parameters


class NewStructure(PlainCall):
    """The step makes something that the next call will find, such as an attribute: that one is traced again."""


class TracedView(Traced):
    """Base of what stands for the row or object chosen by a traced index."""

    __slots__ = ()


class Symbol:
    """Base of what stands for a number that is not recorded, such as a gradient that is only observed.

    Attributes:
        divisions: how many there have been of such numbers, in all.
    """

    __slots__ = ()
    divisions = 0

    def refuse(self, *_: Any) -> NoReturn:
        """Called when the number itself is needed."""
        raise NotImplementedError

    def times(self, factor: Any) -> Any:
        """The product with a traced number."""
        return self.refuse(factor)


class Leaked:
    """Base of the classes that Values made inside a step get when the trace has ended."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> Any:
        raise LeakError(
            f"{user_location()}: this Value was made inside a compiled step and lives only there. "
            "Return its number from the step instead of keeping it."
        )

    _data = property(_refuse, _refuse)
    _grad = property(_refuse, _refuse)

    def __repr__(self) -> str:
        return "<a Value that was made inside a compiled step>"


@functools.lru_cache(maxsize=1024)
def leaked_class(kind: Any) -> type:
    """The class that a Value of this class gets when the trace has ended: one of the same layout."""
    return kind if issubclass(kind, Leaked) else derived_unnoticed(kind, {}, Leaked)


def is_traced(thing: Any) -> bool:
    """Whether an object stands for a number or Value of some trace, running or ended."""
    return issubclass(type(thing), (Traced, Leaked))


def is_traced_number(thing: Any) -> bool:
    """Whether an object stands for a plain number of some trace."""
    return issubclass(type(thing), Traced) and not issubclass(type(thing), (Value, TracedView))


def is_numeric(kind: type) -> bool:
    """Whether objects of a type are numbers, or stand for plain numbers of some trace."""
    return issubclass(kind, (int, float)) or (issubclass(kind, Traced) and not issubclass(kind, (Value, TracedView)))


def leaked(*_: Any) -> NoReturn:
    """Raise the LeakError for a value of another trace."""
    raise LeakError(
        f"{user_location()}: a value of an earlier trace is used here. Values of a trace live only while the step is "
        "being traced: return what is needed later, do not keep it in a list, an attribute or a global."
    )


def holds_traced(thing: Any, knows: Callable[[Any], bool], made: Collection[int] = ()) -> bool:
    """Whether something that a step has made is, or leads to, an object that lives only during a trace.

    Args:
        knows: whether an object existed before the step.
        made: identities of the Values that the step has made.
    """
    pending, seen = [thing], set()
    while pending:
        part = pending.pop()
        if is_traced(part) or isinstance(part, Symbol):
            return True
        if isinstance(part, Value):
            if id(part) in made:
                return True
            continue
        if id(part) in seen or knows(part) or isinstance(part, (type, ModuleType, FrameType)):
            continue
        seen.add(id(part))
        if len(seen) > _MOST_SEARCHED:
            return True
        pending += gc.get_referents(part)
    return False


def refuse_hidden(result: Any) -> None:
    """Raise a TraceError if a result of a step contains traced values in places where they cannot become numbers."""
    hidden: list[Any] = []
    if isinstance(result, Symbol):
        result.refuse()
    if isinstance(result, (set, frozenset)):
        hidden = list(result)
    elif isinstance(result, FunctionType):
        hidden = [cell.cell_contents for cell in result.__closure__ or ()]
    elif has(result, "__next__"):
        hidden = [result]
    elif not isinstance(result, type):
        hidden = list(variables(result).values())
    if any(is_traced(part) or has(part, "__next__") for part in hidden):
        raise TraceError(
            f"{user_location()}: the step returns a {type(result).__name__} around traced values, which would be dead "
            "outside of the trace. Return numbers, Values, or lists, tuples, dicts and dataclasses of them."
        )
