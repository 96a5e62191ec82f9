"""The two number types a step can compute with: `dtype="float64"` and `dtype="float32"`.

float64 is Python's own float.  A float32 step means this, in every backend, bit for bit:

1. Every number that enters (parameter, gradient, state, input, constant) is rounded to the nearest float32:
   ties to even, beyond the largest to infinity.  An integer becomes a float64 first, as `float(n)` does.
2. The result of every operation is rounded in the same way.  exp, log, tanh and power are the float64
   functions of the C library, of float32 operands, and then rounded; powers with the exponents 2, 1, -1 and 0.5
   are a product, the base, a quotient and a square root (`arithmetic.power_of_float32`).
3. `+ - * /` and sqrt of float32 numbers are float32 operations, or float64 operations that are then rounded:
   both are the same, because 53 bits are at least 2 * 24 + 2.

For 3, see S. Figueroa, "When is double rounding innocuous?", ACM SIGNUM Newsletter 30 (3), 1995.  It holds for
subnormal results too: there, sums and products are exact in float64, and quotients are not close enough to a tie.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, NamedTuple

from ..errors import PrecisionError, user_location

_FLOAT32 = struct.Struct("f")


class Precision(NamedTuple):
    """A number type.

    Attributes:
        name: as given to `mgjit.compile(dtype=...)`.
        format: the struct and array code of one number.
        size: its size in bytes.
        rounded: rounds a float to the nearest such number, returned as a float.
        largest_integer: all integers up to this one can be represented.
    """

    name: str
    format: str
    size: int
    rounded: Callable[[float], float]
    largest_integer: int

    def __reduce__(self) -> Any:
        return _named, (self.name,)  # so that there is only one object for each


def float32(number: float) -> float:
    """The nearest float32."""
    # In native format, where C does the conversion: standard formats raise OverflowError instead of giving inf.
    return _FLOAT32.unpack(_FLOAT32.pack(number))[0]  # type: ignore[no-any-return]


FLOAT64 = Precision("float64", "d", 8, float, 1 << 53)
FLOAT32 = Precision("float32", "f", 4, float32, 1 << 24)

#: By the value of `dtype`.
PRECISIONS = {precision.name: precision for precision in (FLOAT64, FLOAT32)}


def _named(name: str) -> Precision:
    return PRECISIONS[name]


def require_precision(what: str, has: Precision, wanted: Precision) -> None:
    """Raise a PrecisionError if the memory of a parameter or state does not have the precision of a step."""
    if has is not wanted:
        raise PrecisionError(
            f"{user_location()}: {what} of a {has.name} step is used in a {wanted.name} step, but its memory, which "
            "both would share, holds numbers of one kind. Give both steps the same dtype, or let one of them work on "
            "a copy: copy.deepcopy(model)."
        )
