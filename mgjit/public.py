"""The public names of mgjit, which the package takes from here when the first of them is used."""

from . import errors, nn, optim, tensor
from ._version import __version__
from .decorator import compile
from .engine.functions import dot, exp, log, maximum, minimum, one_hot, relu, sqrt, take, tanh, where
from .engine.state import State, state, zeros
from .engine.value import Value
from .frozen.step import FrozenStep, freeze
from .parallel.each import each
from .parallel.ensemble import Ensemble, ensemble
from .script.notebook import install, load_ipython_extension  # noqa: F401 - IPython looks for it
from .step import CompiledStep
from .tensor import Tensor, enable_grad, grad, jacobian, no_grad, value_and_grad

__all__ = [
    "CompiledStep",
    "Ensemble",
    "FrozenStep",
    "State",
    "Tensor",
    "Value",
    "__version__",
    "compile",
    "dot",
    "each",
    "enable_grad",
    "ensemble",
    "errors",
    "exp",
    "freeze",
    "grad",
    "install",
    "jacobian",
    "log",
    "maximum",
    "minimum",
    "nn",
    "no_grad",
    "one_hot",
    "optim",
    "relu",
    "sqrt",
    "state",
    "take",
    "tanh",
    "tensor",
    "value_and_grad",
    "where",
    "zeros",
]
