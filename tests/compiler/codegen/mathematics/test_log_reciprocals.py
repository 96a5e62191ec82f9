"""The numbers that the library's log divides by."""

from __future__ import annotations

from mgjit.compiler.codegen.mathematics.exact_log import BITS
from mgjit.compiler.codegen.mathematics.log_reciprocals import RECIPROCALS
from mgjit.compiler.codegen.mathematics.tables import logarithms


def test_01_each_is_the_reciprocal_of_the_middle_of_its_part() -> None:
    for part, reciprocal in enumerate(RECIPROCALS):
        start = 0.6875 + part / 256 if part < 80 else 1.0 + (part - 80) / 128
        middle = start + (1 / 512 if part < 80 else 1 / 256)
        assert abs(reciprocal * middle - 1.0) < 1e-6


def test_02_their_logarithms_are_unusually_close_to_the_table_s() -> None:
    """Why they are data: one of a thousand arbitrary numbers is as good."""
    assert all(abs(rest) < 2.0**-54 for _, rest in logarithms(RECIPROCALS, BITS))
