"""Both spellings: what PyTorch and NumPy call otherwise, for arguments, functions and methods.

1. `spelled(function)` takes arguments under either library's names (`ARGUMENTS`), and passes over what has no meaning
   here (`_WITHOUT_MEANING`), such as a device.  Where NumPy and PyTorch disagree about the result, PyTorch's names of
   arguments choose PyTorch's function (`of_pytorch`); positional arguments mean what they mean in NumPy.
2. `SPELLINGS` says what to write in place of a name that is not there; errors about missing attributes show it.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..errors import ArgumentError, user_location, user_stacklevel
from .devices import device as require_device

R = TypeVar("R")

#: Names of arguments of either library, with those that they may have here.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "axes", "source"),
    "dims": ("axes", "axis", "shifts"),
    "axis": ("axes",),
    "keepdim": ("keepdims",),
    "input": ("x", "condition", "self", "tensors"),
    "tensor": ("x", "self"),
    "other": ("y", "second"),
    "vec": ("y",),
    "vec2": ("y",),
    "mat2": ("y",),
    "exponent": ("y",),
    "min": ("low",),
    "max": ("high",),
    "a_min": ("low",),
    "a_max": ("high",),
    "size": ("shape",),
    "sizes": ("shape",),
    "num_classes": ("classes",),
    "index": ("indices",),
    "start_dim": ("start",),
    "end_dim": ("end",),
    "dim0": ("first",),
    "dim1": ("second",),
    "dimension": ("axis",),
    "split_size_or_sections": ("sizes",),
    "split_size": ("sizes",),
    "fill_value": ("value",),
    "equation": ("subscripts",),
    "steps": ("count",),
    "num": ("count",),
    "end": ("stop", "high"),
    "n": ("rows", "count"),
    "m": ("columns",),
    "destination": ("target",),
    "repeats": ("counts",),
    "ddof": ("correction",),
    "func": ("function",),
}
#: The names of arguments with which PyTorch's meaning is chosen where there are two.
_OF_PYTORCH = frozenset(("dim", "keepdim", "unbiased"))


def _nothing(given: Any) -> None:
    """Whatever it is makes no difference."""


def _no_result(given: Any) -> None:
    if given is not None:
        raise ArgumentError(f"{user_location()}: results are new tensors: write y[...] = in place of out=.")


#: Arguments that have no meaning here, with what looks at them.
_WITHOUT_MEANING: dict[str, Callable[[Any], object]] = {
    "device": require_device, "out": _no_result,
    **dict.fromkeys(("layout", "memory_format", "pin_memory", "non_blocking", "sparse_grad", "sorted"), _nothing),
    **dict.fromkeys(("order", "foreach", "fused", "capturable", "differentiable", "inplace", "stable"), _nothing),
}  # fmt: skip


def spelled(
    function: Callable[..., R], of_pytorch: Callable[..., Any] | None = None, several: int | None = None
) -> Callable[..., R]:
    """A function that takes its arguments under the names of NumPy and of PyTorch.

    Args:
        of_pytorch: what is called instead if one of the arguments is named as PyTorch names it.
        several: arguments from this place on are one tuple, such as a shape, if the first of them is an int.
    """
    code = function.__code__
    names = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        if several is not None and len(given) > several + 1 and isinstance(given[several], int):
            given = (*given[:several], given[several:])
        if named and not named.keys() <= names:
            if of_pytorch is not None and not _OF_PYTORCH.isdisjoint(named):
                return of_pytorch(*given, **_without_meaning(named, frozenset()))
            named = _respelled(function.__name__, names, _without_meaning(named, names))
        if of_pytorch is not None:
            _warn_of_two_meanings(function.__name__, given, named)
        return function(*given, **named)

    return called


def each_spelled(*functions: Callable[..., R]) -> Iterator[Callable[..., R]]:
    """Several functions, spelled."""
    return (spelled(function) for function in functions)


def _without_meaning(named: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    for name in [name for name in named if name in _WITHOUT_MEANING and name not in names]:
        _WITHOUT_MEANING[name](named.pop(name))
    return named


def _respelled(function: str, names: frozenset[str], named: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, content in named.items():
        ours = name if name in names else next((one for one in ARGUMENTS.get(name, ()) if one in names), name)
        if ours in found or (ours != name and ours in named):
            raise ArgumentError(f"{user_location()}: {function} with both {name}= and {ours}=, which mean the same.")
        found[ours] = content
    return found


#: Of functions that NumPy and PyTorch disagree about, what they do where nothing says which is meant.
_TWO_MEANINGS = {
    **dict.fromkeys(("max", "min"), "gives the values alone, as in NumPy: write axis=, or dim= for indices as well"),
    **dict.fromkeys(("var", "std"), "divides by n, as in NumPy: write correction=0, or 1 for PyTorch's n - 1"),
}
_warned: set[str] = set()


def _warn_of_two_meanings(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Say once that NumPy and PyTorch disagree about what was written."""
    if name in ("max", "min"):
        is_clear = len(given) < 2 or not isinstance(given[1], (int, tuple, list))
    else:
        is_clear = "correction" in named or "axis" in named
    if not is_clear and name not in _warned:
        _warned.add(name)
        message = f"{user_location()}: {name} without a name of the axis {_TWO_MEANINGS[name]}."
        warnings.warn(message, FutureWarning, stacklevel=user_stacklevel())


# ---- names that are not there ---------------------------------------------------------------------------------------

#: What to write in place of attributes of PyTorch's and NumPy's tensors `x`, and of functions, that are not there.
SPELLINGS = {
    "astype_": "x = x.astype(dtype)",
    "half": "x.astype('float32')",
    "bfloat16": "x.astype('float32')",
    "cuda": "x itself: tensors live in the memory of this process",
    "nonzero": "mgjit.tensor.where(mask, x, 0.0), which has a known shape",
    "masked_select": "mgjit.tensor.where(mask, x, 0.0), which has a known shape, or x[mask]",
    "unique": "sorted(set(x.tolist()))",
    "retain_grad": "requires_grad=True of a leaf",
    "register_hook": "mgjit.grad, whose results are tensors",
    "resize_": "x = x.reshape(shape)",
    "DoubleTensor": "mgjit.tensor.tensor(data)",
    "FloatTensor": "mgjit.tensor.asarray(data, dtype='float32')",
    "LongTensor": "mgjit.tensor.asarray(data, dtype='int64')",
    "median": "mgjit.tensor.sort(x).values[..., (n - 1) // 2]",
    "fft": "mgjit.tensor.einsum with a matrix of cosines and sines",
    "linalg": "mgjit.tensor.norm(x, p, axis) for a norm: nothing else of it is there",
    "hstack": "mgjit.tensor.concat(tensors, axis=1), or axis=0 for vectors",
    "vstack": "mgjit.tensor.concat(tensors, axis=0), or mgjit.tensor.stack for vectors",
    "is_tensor": "isinstance(x, mgjit.Tensor)",
    "glu": "a * mgjit.tensor.sigmoid(b), with a, b = x.chunk(2, -1)",
    "PReLU": "nn.LeakyReLU, or mgjit.tensor.where(x > 0, x, weight * x)",
    "set_detect_anomaly": "`if x.isnan().any(): breakpoint()` into the step, and run it with MGJIT_DISABLE=1",
    "AdaptiveMaxPool2d": "nn.MaxPool2d(size) of the windows that you mean",
    "Conv3d": "nn.Conv2d over a reshaped tensor",
    "BatchNorm3d": "nn.BatchNorm2d over a reshaped tensor",
    "Transformer": "nn.TransformerEncoderLayer",
    "register_full_backward_hook": "p.grad after backward()",
    "LBFGS": "mgjit.optim.Adam",
}


def hint(name: str, known: Iterable[str] = ()) -> str:
    """What to write in place of a name, as a sentence with a blank before it; empty if nobody knows.

    Args:
        known: names that are there.
    """
    if name in SPELLINGS:
        return f" Write {SPELLINGS[name]}."
    import difflib  # which takes longer to import than all of this

    alike = difflib.get_close_matches(name, [one for one in known if one[0] != "_"], 1, 0.8)
    return f" Perhaps {alike[0]} is meant." if alike else ""


def missing(module: str, names: dict[str, Any], name: str) -> AttributeError:
    """The error of a name that a module does not have."""
    more = "" if name.startswith("__") else hint(name, names)
    return AttributeError(f"module {module!r} has no attribute {name!r}{'.' if more else ''}{more}")


def array_of(x: Any) -> str:
    """The expression that makes a numpy array of another library's tensor called `x`; empty if it is none."""
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        return "x.detach().numpy()"
    return "numpy.asarray(x)" if library in ("jax", "jaxlib", "tensorflow") else ""


class CallableModule(types.ModuleType):
    """A module that can be called: `mgjit.tensor([1.0, 2.0])` makes a tensor."""

    def __call__(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        """A tensor of the numbers in `data`, copied; see `asarray`."""
        require_device(device)
        return self.asarray(data, dtype=dtype, requires_grad=requires_grad, copy=True)
