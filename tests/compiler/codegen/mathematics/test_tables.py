"""Tables against other ways to compute their numbers."""

from __future__ import annotations

from fractions import Fraction

from mgjit.compiler.codegen.mathematics.tables import bits_of, c_array, logarithms, powers_of_two


def test_01_powers_of_two_are_the_nearest_doubles() -> None:
    rows = powers_of_two(128)
    assert [scale for scale, _ in rows[::64]] == [1.0, 2.0**0.5]
    assert all(scale == 2.0 ** (number / 128) for number, (scale, _) in enumerate(rows) if number % 16 == 0)


def test_02_the_tails_are_what_rounding_left_out() -> None:
    """(h (1 + t))^128 = 2^i up to a relative error of 128 * 2^-106 or so."""
    for number, (scale, tail) in enumerate(powers_of_two(128)):
        power = (Fraction(scale) * (1 + Fraction(tail))) ** 128
        assert abs(power / 2**number - 1) < Fraction(1, 2**95)


def test_03_logarithms_in_two_parts() -> None:
    ((high, low), (zero, nothing)) = logarithms((0.5, 1.0), 42)
    assert (high * 2**42).is_integer()
    assert high + low == 0.6931471805599453
    assert abs(low) < 2.0**-42
    assert zero == nothing == 0.0


def test_04_text() -> None:
    assert c_array("int", "t", ["1", "2"]) == "static const int t[] = {\n1, 2\n};\n"
    assert bits_of(1.0) == 0x3FF0000000000000
