"""Objects that are handed to another process."""

from __future__ import annotations

import tempfile
from array import array
from typing import Any

import pytest

from mgjit.base.handover import parts_of, read, write


def handed(thing: Any) -> Any:
    """An object, written to a file that has had another one, and read."""
    with tempfile.TemporaryFile() as file:
        write(parts_of(array("d", bytes(80_000))), file.fileno())
        write(parts_of(thing), file.fileno())
        return read(file.fileno())


@pytest.mark.parametrize("size", [0, 1, 1_000, 100_000])
@pytest.mark.parametrize("typecode", "bBiqd")
def test_01_arrays(typecode: str, size: int) -> None:
    """Are equal, of the same kind, and may grow."""
    numbers = array(typecode, [k % 127 for k in range(size)])
    found, text = handed([numbers, "text"])
    assert found == numbers
    assert found.typecode == typecode
    assert text == "text"
    found.append(1)


def test_02_one_array_in_two_places() -> None:
    """Remains one."""
    numbers = array("i", range(5_000))
    first, second, few = handed((numbers, numbers, array("i", [1])))
    assert first is second
    assert first == numbers
    assert few == array("i", [1])


def test_03_a_large_array_is_not_copied_before_it_is_written() -> None:
    numbers = array("i", range(5_000))
    pickled, *contents = parts_of({"numbers": numbers})
    assert len(pickled) < 1_000
    numbers[7] = -1
    assert [bytes(content) for content in contents] == [numbers.tobytes()]
