"""What lies, during a trace, where a step is known to leave something new: whoever looks at it ends the trace.

What `forward` keeps for `backward` is made anew in each call.  As long as nobody looks at what the call before has left
there, it may be anything.  So an `Unread` lies there in its place, and asks for another trace as soon as it is used, in
whatever way: by an operator, a builtin, an attribute.  Only `is`, which cannot be noticed, is looked after by rewritten
code (source/semantics.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...engine.leaks import TracedView
from .log import Log


class Unread(TracedView):
    """Stands for what was there.

    Args:
        read: called when it is used; raises what ends the trace.
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        _READ.__set__(self, read)


_READ: Any = vars(Unread)["_read"]


def note_read(thing: Any) -> None:
    """Something is compared by its identity."""
    if type(thing) is Unread:
        _refuse(thing)
    if type(thing) is Log:
        thing.read()


def _refuse(self: Any, *_: Any, **__: Any) -> Any:
    return _READ.__get__(self)()


_UNARY = "neg pos abs invert bool len iter next reversed int float complex index round trunc floor ceil hash str repr"
_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_OTHERS = (
    "eq ne lt le gt ge contains getitem setitem delitem getattribute setattr delattr call enter exit format bytes "
    "length_hint fspath copy deepcopy reduce reduce_ex sizeof dir await aiter anext instancecheck get set delete"
)
for _name in (
    *_UNARY.split(),
    *_OTHERS.split(),
    *(f"{_kind}{_op}" for _op in _BINARY.split() for _kind in ("", "r", "i")),
):
    setattr(Unread, f"__{_name}__", _refuse)
