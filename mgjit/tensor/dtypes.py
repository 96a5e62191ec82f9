"""The element types of tensors, and what mixing them gives.

1. `bool` and `int64` go with everything: with an `int64` a `bool` counts as one, with floats both count as floats.
2. `float32` and `float64` do not mix: an error says which operand to convert, because silent rounding is a bug to find.
3. A Python number takes the type of the tensor that it meets; only a float that meets whole numbers makes float64.
4. Integers are exact up to 2**53 (2**24 where they meet float32), as everywhere in mgjit.  Those that are computed are
   below that, or an error says so: of 2**53 itself nobody knows whether it was rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from ..engine.precision import FLOAT32, FLOAT64, Precision
from ..errors import ArgumentError, IntegerOverflowError, PrecisionError, described, user_location


class DType(NamedTuple):
    """An element type.

    Attributes:
        name: as NumPy and PyTorch spell it.
        format: its struct code.
        size: in bytes.
        rank: floats are above integers.
    """

    name: str
    format: str
    size: int
    rank: int

    @property
    def is_floating(self) -> bool:
        """Whether it is float64 or float32."""
        return self.rank > 1

    @property
    def precision(self) -> Precision:
        """The numbers that arithmetic on such elements computes with."""
        return FLOAT32 if self.format == "f" else FLOAT64

    def __reduce__(self) -> Any:
        return dtype_of, (self.name,)

    def __repr__(self) -> str:
        return self.name


#: Computed integers are below this, and above its negative.
INTEGERS_END = 2.0**53

float64, float32 = DType("float64", "d", 8, 2), DType("float32", "f", 4, 2)
int64, bool_ = DType("int64", "q", 8, 1), DType("bool", "?", 1, 0)
DTYPES = {dtype.name: dtype for dtype in (float64, float32, int64, bool_)}
_OF_TYPES = {float: float64, int: int64, bool: bool_}
#: The element types of buffers that become tensors, by struct code.
OF_FORMATS = {"d": float64, "f": float32, "?": bool_, **dict.fromkeys("bBhHiIlLqQ", int64)}


def get_default_dtype() -> DType:
    """float64, the type of floats where nothing says which."""
    return float64


def set_default_dtype(dtype: Any) -> None:
    """Nothing, for float64.

    Raises:
        ArgumentError: it is another type.
    """
    if dtype_of(dtype) is not float64:
        raise ArgumentError(
            f"{user_location()}: floats are float64 where nothing says otherwise. For {dtype_of(dtype)}, write "
            "model.float(), dtype= where a tensor is made, and @mgjit.compile(dtype='float32')."
        )


def dtype_of(given: Any) -> DType:
    """The element type that a user means: one of these, its name, or float, int or bool.

    Raises:
        ArgumentError: there is no such type.
    """
    found = given if isinstance(given, DType) else DTYPES.get(given) if isinstance(given, str) else None
    found = found or (_OF_TYPES.get(given) if isinstance(given, type) else None)
    if found is None:
        raise ArgumentError(
            f"{user_location()}: there is no element type {described(given)}. "
            "Tensors hold 'float64', 'float32', 'int64' or 'bool'."
        )
    return found


def common(name: str, dtypes: Iterable[DType], numbers: Iterable[type] = ()) -> DType:
    """The type of what an operation computes from tensors of some types and from Python numbers.

    Raises:
        PrecisionError: they are float32 and float64.
    """
    found = max(dtypes := list(dtypes), key=lambda dtype: dtype.rank, default=bool_)
    if {float32, float64} <= set(dtypes):
        raise PrecisionError(
            f"{user_location()}: {name} of a float32 and a float64 tensor. Say which numbers you mean: "
            "x.astype('float32') rounds, x.astype('float64') does not."
        )
    for kind in numbers:
        number = _OF_TYPES.get(kind, float64)
        if number.rank > found.rank:
            found = number
    return found


def require_type(dtype: DType, own: Precision) -> None:
    """Require that floats in a step are of its type.

    Raises:
        PrecisionError: they are not.
    """
    if not dtype.is_floating or dtype.precision is own:
        return
    asked, hint = "", ""
    if own is FLOAT64:
        asked = f"(dtype={dtype.name!r})"
    else:
        hint = (
            " Numbers alone make float64: zeros, ones, full and asarray take dtype='float32', and "
            "where(condition, 1.0, 0.0) is where(condition, asarray(1.0, dtype='float32'), 0.0)."
        )
    raise PrecisionError(
        f"{user_location()}: a tensor of type {dtype} in a {own.name} step. Convert it with astype('{own.name}'), or "
        f"compile the step for such tensors: @mgjit.compile{asked}.{hint}"
    )


def refuse_overflow(name: str) -> NoReturn:
    """Raise the error of an operation that has computed whole numbers from `INTEGERS_END` on, or nan."""
    raise IntegerOverflowError(
        f"{user_location()}: {name} gives whole numbers that are not below 2**53, which are not exact. Compute with "
        "floats: x.astype('float64')."
    )
