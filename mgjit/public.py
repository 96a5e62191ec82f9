"""The public names of mgjit, which the package takes from here when the first of them is used.

Those that most programs do without are imported when they are used themselves (`LATER`).
"""

from . import errors, nn, tensor
from ._version import __version__
from .engine.elementary import erf, log1p, softplus
from .engine.functions import dot, exp, log, maximum, minimum, one_hot, relu, sqrt, take, tanh, where
from .engine.state import State, state, zeros
from .engine.value import Value
from .step.decorator import compile
from .step.step import CompiledStep
from .tensor import (
    Tensor,
    custom_gradient,
    enable_grad,
    grad,
    jacobian,
    manual_seed,
    no_grad,
    value_and_grad,
    vmap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import data as data
    from . import optim as optim
    from .data.runs import load, save
    from .frozen.step import FrozenStep, freeze
    from .parallel.each import each
    from .parallel.ensemble import Ensemble, ensemble
    from .script.notebook import install

#: Public names, and one that IPython looks for, with the modules where they are (`data` and `optim` are modules).
LATER = {
    "FrozenStep": "frozen.step",
    "freeze": "frozen.step",
    "each": "parallel.each",
    "Ensemble": "parallel.ensemble",
    "ensemble": "parallel.ensemble",
    "load": "data.runs",
    "save": "data.runs",
    "install": "script.notebook",
    "load_ipython_extension": "script.notebook",
}
__all__ = [
    "CompiledStep",
    "Ensemble",
    "FrozenStep",
    "State",
    "Tensor",
    "Value",
    "__version__",
    "compile",
    "custom_gradient",
    "data",
    "dot",
    "each",
    "enable_grad",
    "ensemble",
    "erf",
    "errors",
    "exp",
    "freeze",
    "grad",
    "install",
    "jacobian",
    "load",
    "log",
    "log1p",
    "manual_seed",
    "maximum",
    "minimum",
    "nn",
    "no_grad",
    "one_hot",
    "optim",
    "relu",
    "save",
    "softplus",
    "sqrt",
    "state",
    "take",
    "tanh",
    "tensor",
    "value_and_grad",
    "vmap",
    "where",
    "zeros",
]
