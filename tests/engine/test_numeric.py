"""What counts as a number."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from mgjit.engine.numeric import is_number, plain_number
from mgjit.tracing.call.results import Result


class _Plain(float):
    """A float with a name."""

    name = "x"


class _Degrees(float):
    """A float that computes in its own way."""

    def __add__(self, other: float) -> float:
        return (float(self) + other) % 360


class _Count(int):
    pass


@pytest.mark.parametrize("number", [1.0, -0.0, 3, Result(0.5)])
def test_floats_ints_and_results_of_steps_are_numbers(number: float) -> None:
    plain = plain_number(number)
    assert is_number(number)
    assert type(plain) in (float, int)
    assert repr(plain) == repr(type(plain)(number))


@pytest.mark.parametrize(
    "thing", [True, None, "1", 1j, Decimal(1), Fraction(1, 2), _Degrees(10.0), _Plain(0.5), _Count(4), [1.0]]
)
def test_other_things_are_no_numbers(thing: object) -> None:
    assert not is_number(thing)


def test_a_bool_has_a_plain_number_although_it_is_a_flag() -> None:
    assert plain_number(True) == 1
    assert type(plain_number(True)) is int


def test_what_is_no_number_has_no_plain_one() -> None:
    with pytest.raises(TypeError, match="_Degrees"):
        plain_number(_Degrees(1.0))


def test_scalars_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    assert type(plain_number(numpy.float64(0.1))) is float
    assert plain_number(numpy.float64(0.1)) == 0.1
    assert type(plain_number(numpy.int64(3))) is int
    for kind in (numpy.float32, numpy.float16, numpy.longdouble, numpy.bool_, numpy.complex128):
        assert not is_number(kind(1))
    assert not is_number(numpy.zeros(1))
