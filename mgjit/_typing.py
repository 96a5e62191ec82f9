"""`typing.ParamSpec` for Python 3.9, at run time only: checkers see the real one."""

from __future__ import annotations

from typing import Any, TypeVar


class ParamSpec:  # pragma: no cover - only reached on Python 3.9
    """Enough of typing.ParamSpec to be named in annotations and in Generic[...]."""

    def __new__(cls, name: str) -> Any:
        return TypeVar(name)
