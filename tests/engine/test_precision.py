"""The two kinds of numbers: rounding to float32, and what may not share memory."""

from __future__ import annotations

import math
import random
import struct

import pytest

from mgjit.engine.precision import FLOAT32, FLOAT64, PRECISIONS, float32, require_precision
from mgjit.errors import PrecisionError
from tests.single import rounded

LARGEST = (2.0 - 2.0**-23) * 2.0**127


def bits(x: float) -> bytes:
    return b"nan" if x != x else struct.pack("<d", x)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.0 + 2.0**-24, 1.0),  # ties to even
        (1.0 + 3 * 2.0**-24, 1.0 + 2.0**-22),
        (1.0 + 2.0**-24 + 2.0**-50, 1.0 + 2.0**-23),
        (LARGEST + 2.0**102, LARGEST),
        (LARGEST + 2.0**103, math.inf),  # a tie, with what would be the next number
        (-1e39, -math.inf),
        (2.0**-150, 0.0),
        (-(2.0**-150), -0.0),
        (2.0**-149 * 1.5, 2.0**-148),
        (2.0**-150 + 2.0**-180, 2.0**-149),
        (-0.0, -0.0),
        (math.inf, math.inf),
        (math.nan, math.nan),
        (2**24 + 1, 2.0**24),
    ],
)
def test_01_rounding(number: float, expected: float) -> None:
    """To the nearest, ties to even, beyond the largest to infinity, gradually to zero."""
    assert bits(float32(number)) == bits(expected)
    assert bits(rounded(number)) == bits(expected)  # the oracle of other tests


def test_02_rounding_of_any_bits() -> None:
    """Against arithmetic on the parts of a number."""
    draw = random.Random(1)
    for _ in range(20000):
        number = struct.unpack("<d", struct.pack("<Q", draw.getrandbits(64)))[0]
        near = math.ldexp(draw.uniform(-2.0, 2.0), draw.randint(-152, 130))
        for x in (number, near):
            assert bits(float32(x)) == bits(rounded(x))


def test_03_as_numpy_rounds() -> None:
    """numpy.float32 of the same number."""
    numpy = pytest.importorskip("numpy")
    draw = random.Random(2)
    with numpy.errstate(all="ignore"):
        for _ in range(2000):
            number = math.ldexp(draw.uniform(-2.0, 2.0), draw.randint(-152, 130))
            assert bits(float32(number)) == bits(float(numpy.float32(number)))


def test_04_names() -> None:
    """Those of the argument dtype."""
    assert PRECISIONS == {"float64": FLOAT64, "float32": FLOAT32}
    assert [struct.calcsize(p.format) for p in PRECISIONS.values()] == [p.size for p in PRECISIONS.values()] == [8, 4]
    assert FLOAT64.rounded(1e300) == 1e300


def test_05_memory_of_one_kind() -> None:
    """The error names both, the place, and what to do."""
    require_precision("a parameter", FLOAT32, FLOAT32)
    with pytest.raises(PrecisionError, match=r"test_precision\.py:\d+: a state of a float64 .* float32 .*deepcopy"):
        require_precision("a state", FLOAT64, FLOAT32)
