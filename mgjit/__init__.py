"""mgjit: compiles training steps written in plain scalar Python, bit for bit."""

from importlib import import_module
from typing import Any

from . import errors
from ._version import __version__
from .decorator import compile
from .engine import nn
from .engine.functions import dot, exp, log, maximum, minimum, one_hot, relu, sqrt, take, tanh, where
from .engine.state import State, state, zeros
from .engine.value import Value
from .frozen.step import FrozenStep, freeze
from .parallel.ensemble import Ensemble, each, ensemble
from .step import CompiledStep


def __getattr__(name: str) -> Any:
    if name == "distributed":  # which few programs use
        return import_module(".distributed", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "CompiledStep",
    "Ensemble",
    "FrozenStep",
    "State",
    "Value",
    "__version__",
    "compile",
    "dot",
    "each",
    "ensemble",
    "errors",
    "exp",
    "freeze",
    "log",
    "maximum",
    "minimum",
    "nn",
    "one_hot",
    "relu",
    "sqrt",
    "state",
    "take",
    "tanh",
    "where",
    "zeros",
]
