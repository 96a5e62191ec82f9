"""Tables of numbers, computed with more digits than a double has and rounded once."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from decimal import Decimal, localcontext

#: Decimal digits of the computations: a double has 17, so a value and its rounding error have 34.
DIGITS = 60


def c_array(kind: str, name: str, values: Iterable[str]) -> str:
    """A constant array of C."""
    return f"static const {kind} {name}[] = {{\n{', '.join(values)}\n}};\n"


@functools.cache
def powers_of_two(count: int) -> tuple[tuple[float, float], ...]:
    """For i < count: 2^(i/count) as a double h, and the double t such that h * (1 + t) is 2^(i/count)."""
    rows = []
    with localcontext() as context:
        context.prec = DIGITS
        step = (Decimal(2).ln() / count).exp()
        exact = Decimal(1)
        for _ in range(count):
            nearest = float(exact)
            rows.append((nearest, float(exact / Decimal(nearest) - 1)))
            exact *= step
        # The first is 1; the product of all steps is 2 up to some of the last digits.
        assert abs(exact - 2) < Decimal(10) ** (5 - DIGITS)
    return tuple(rows)


@functools.cache
def logarithms(reciprocals: tuple[float, ...], bits: int) -> tuple[tuple[float, float], ...]:
    """For each r: the logarithm of 1/r rounded to a multiple of 2^-bits, and the remainder as a double."""
    rows = []
    with localcontext() as context:
        context.prec = DIGITS
        for reciprocal in reciprocals:
            exact = -Decimal(reciprocal).ln()
            scaled = (exact * 2**bits).to_integral_value()
            rows.append((float(scaled / 2**bits), float(exact - scaled / 2**bits)))
    return tuple(rows)


def bits_of(value: float) -> int:
    """The 64 bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])
