"""What numpy writes of an array depends on its print options: a trace that has one written ends, and the call is plain.

Arrays may lie anywhere in what a step writes, and be written by any function, such as the `repr` of a dataclass.  So
the two functions of numpy that all of these come to, both in Python, have other code for the time of a trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from types import FunctionType
from typing import Any, TypeVar

from ...base.interruption import with_cleanup
from ...base.lookup import copy_of
from ...engine.leaks import PlainCall
from ...engine.progress import tracing_threads
from ...errors import user_location

T = TypeVar("T")

_MODULES = ("numpy._core.arrayprint", "numpy.core.arrayprint")
_FUNCTIONS = ("_array_str_implementation", "_array_repr_implementation")
#: The name by which their code finds what it calls then.
_NAME_OF_HELPER = "__mgjit_text__"


def refusing_texts(work: Callable[[], T]) -> T:
    """`work()`, during which numpy writes no array in this thread.

    Raises:
        PlainCall: it was to write one.
    """
    functions = _writing()
    before = [function.__code__ for function in functions]

    def enter() -> T:
        for function, code in zip(functions, before):
            original = copy_of(function, code)
            function.__globals__[f"{_NAME_OF_HELPER}{function.__name__}"] = _unless_traced(original)
            function.__code__ = _other_code(function.__name__)
        return work()

    def leave() -> None:
        for function, code in zip(functions, before):
            function.__code__ = code

    return with_cleanup(enter, leave) if functions else work()


def _writing() -> list[FunctionType]:
    modules = [sys.modules[name] for name in _MODULES if name in sys.modules]
    found = [vars(module).get(name) for module in modules[:1] for name in _FUNCTIONS]
    return [function for function in found if type(function) is FunctionType and function.__closure__ is None]


def _other_code(name: str) -> Any:
    text = f"def {name}(*given, **named):\n    return {_NAME_OF_HELPER}{name}(*given, **named)\n"
    made: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), made)  # noqa: S102 - names of two functions of numpy's
    return made[name].__code__


def _unless_traced(original: Callable[..., Any]) -> Callable[..., Any]:
    def write(*given: Any, **named: Any) -> Any:
        if get_ident() in tracing_threads:
            raise PlainCall(f"{user_location()}: it writes an array as text, which numpy does as its print options say")
        return original(*given, **named)

    return write
