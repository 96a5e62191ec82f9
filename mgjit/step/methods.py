"""Where an object keeps its compiled methods: beside its attributes, where `vars(obj)` does not show them.

The `__dict__` of the object becomes an `Attributes`, a dict that holds the same and has room for the methods.  So they
live as long as the object, and what looks at the attributes (`vars`, `json`, `copy`, `pickle`, `==`) sees none of them.
Where the dict is somebody else's as well, or is no ordinary one, and on PyPy, the methods are entries of it.
"""

from __future__ import annotations

import sys
from types import GetSetDescriptorType
from typing import Any

from ..base.ffi import PYPY
from ..base.lookup import entries

#: References to the dict of an object that nobody else has: its own, a variable here and in the caller, an argument.
_OWN = 4


class Attributes(dict):  # type: ignore[type-arg]
    """The `__dict__` of an object that has compiled methods.

    Attributes:
        methods: by the name of the method. known: the same by the step that is in the class.
    """

    __slots__ = ("known", "methods")
    methods: dict[str, Any]
    known: dict[Any, Any]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def methods_in(own: dict[Any, Any]) -> dict[Any, Any]:
    """Where the compiled methods of an object with this `__dict__` are."""
    return own.methods if type(own) is Attributes else own


def make_room(instance: Any) -> dict[Any, Any]:
    """Where compiled methods of an object are to be kept."""
    own: dict[Any, Any] = instance.__dict__
    if type(own) is not dict or PYPY or sys.getrefcount(own) > _OWN:
        return methods_in(own)
    made = Attributes(own)
    made.methods, made.known = {}, {}
    member = next((found for base in type(instance).__mro__ if (found := entries(base).get("__dict__"))), None)
    if isinstance(member, GetSetDescriptorType):
        try:
            member.__set__(instance, made)
        except (AttributeError, TypeError):  # such as a module
            return own
    return methods_in(instance.__dict__)
