"""Run-time indices out of range: an IndexError before anything is written, on every backend and by every way to call.

`take` and `one_hot` look up by an index that is an input.  C would read whatever lies there; so each index is checked
before a step, and before the first row of a loop.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from typing import Any, Callable

import pytest

import mgjit
from mgjit.engine.precision import float32
from mgjit.errors import CompilerError, IndexRangeError

COUNT = 5

BAD = [
    -1.0, 5.0, 6.0, -5.0, 0.5, 4.5, -0.5, -1e-300, 5e-324, 4.999999999999999, math.nan, -math.nan, math.inf, -math.inf,
    1e300, -1e300, 2.0**31, 2.0**32, 2.0**32 + 1, 2.0**63, 2.0**64,
]  # fmt: skip

if sys.implementation.name != "pypy":
    BAD.append(-(2.0**63))  # `[-(2.0**63)]` is a list of an int in PyPy 7.3.11, which is refused for what it is

BACKENDS: list[dict[str, Any]] = [
    {"compiler": "gcc"},
    {"compiler": "clang"},
    {"compiler": "tcc"},
    {"backend": "python"},
    {"compiler": "gcc", "dtype": "float32"},
    {"backend": "python", "dtype": "float32"},
]


class Model:
    """A step that looks up by an index, and everything that it writes."""

    def __init__(self, options: dict[str, Any], reader: Callable[[Any], Any]) -> None:
        self.table = [mgjit.Value(0.25 * k) for k in range(COUNT)]
        self.seen = mgjit.zeros(COUNT)

        @mgjit.compile(**options)
        def step(x: Any, rate: Any) -> Any:
            index = reader(x)
            loss = (mgjit.take(self.table, index) - 1.5) ** 2
            hot = mgjit.one_hot(index, COUNT)
            for k in range(COUNT):
                self.seen[k] = self.seen[k] + hot[k]
            for value in self.table:
                value.grad = 0.0
            loss.backward()
            for value in self.table:
                value.data -= rate * value.grad
            return loss

        self.step: Any = step

    def memory(self) -> bytes:
        """The bits of everything that the step may write."""
        numbers = [v.data for v in self.table] + [v.grad for v in self.table] + list(self.seen)
        return struct.pack(f"{len(numbers)}d", *numbers)

    def refuses(self, call: Callable[[], Any], says: str = "") -> None:
        """A call is an IndexError that names this file, and changes nothing."""
        before = self.memory()
        with pytest.raises(IndexRangeError, match=rf"test_step_indices\.py:\d+: the index .*{says}") as caught:
            call()
        assert isinstance(caught.value, IndexError)
        assert self.memory() == before

    def works(self, *arguments: Any) -> None:
        """A call changes what it should."""
        seen = sum(self.seen)
        self.step(*arguments)
        assert sum(self.seen) == seen + 1.0


#: How an index reaches the step: the argument made from a number, how the step finds it, whether it may be any float.
WAYS: dict[str, tuple[Callable[[float], Any], Callable[[Any], Any], bool]] = {
    "a float": (lambda i: i, lambda x: x, True),
    "in a list": (lambda i: [0.5, i, 2.0], lambda x: x[1], True),
    "in a list of lists": (lambda i: [[0.5, 1.0], [i, 2.0]], lambda x: x[1][0], True),
    "in a tuple in a dict": (lambda i: {"a": (1.5, i)}, lambda x: x["a"][1], True),
    "in an array": (lambda i: array("d", [0.5, i]), lambda x: x[1], True),
    "in an array of float32": (lambda i: array("f", [0.5, i]), lambda x: x[1], True),
    "an int": (int, lambda x: x, False),
    "in a list of ints": (lambda i: [7, int(i)], lambda x: x[1], False),
    "in an array of ints": (lambda i: array("q", [7, int(i)]), lambda x: x[1], False),
    "in bytes": (lambda i: bytes([7, int(i)]), lambda x: x[1], False),
}


def fits(way: str, number: float) -> bool:
    """Whether a number can be given in a way, and is still the same there."""
    make, read, any_float = WAYS[way]
    if not any_float and not number.is_integer():
        return False
    try:
        found = read(make(number))
    except (OverflowError, ValueError):  # too large for an array, or for a byte
        return False
    return number != number or (float(found) == number and abs(number) < 2**53 if not any_float else found == number)


def bad_numbers(options: dict[str, Any], way: str = "a float") -> list[float]:
    """The numbers that are no index, in the way and in the precision of a step: float32 rounds what enters."""
    rounded = float32 if options.get("dtype") == "float32" else float
    valid = {float(k) for k in range(COUNT)}
    return [number for number in BAD if fits(way, number) and rounded(number) not in valid]


def model(options: dict[str, Any], way: str) -> Model:
    """A model on a backend; skips without its compiler."""
    made = Model(options, WAYS[way][1])
    try:
        made.step.lower(WAYS[way][0](1.0), 0.1)
        made.works(WAYS[way][0](1.0), 0.1)
    except CompilerError as reason:
        if "there is no C compiler" not in str(reason):
            raise
        pytest.skip(f"{options['compiler']} is not installed")
    return made


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: " ".join(options.values()))
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.sampled
def test_01_calls(options: dict[str, Any], way: str) -> None:
    """The second call, and those that take the fast path; a good one works in between and afterwards."""
    make, made = WAYS[way][0], model(options, way)
    numbers = bad_numbers(options, way)
    assert numbers
    for _ in range(2):
        for number in numbers:
            made.refuses(lambda number=number: made.step(make(number), 0.1))
        for good in range(COUNT):
            made.works(make(float(good)), 0.1)


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: " ".join(options.values()))
@pytest.mark.parametrize("number", [-1.0, 5.0, 0.5, math.nan, math.inf, 1e300])
@pytest.mark.sampled
def test_02_the_first_call(options: dict[str, Any], number: float) -> None:
    """Traced, built, checked: and then not run."""
    model(options, "a float")
    made = Model(options, lambda x: x)
    made.refuses(lambda: made.step(number, 0.1))
    made.works(4.0, 0.1)


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: " ".join(options.values()))
@pytest.mark.parametrize("way", ["a float", "in a list", "in an array", "an int", "in bytes"])
def test_03_rows_of_a_loop(options: dict[str, Any], way: str) -> None:
    """Any row, also the last of many: none of them has run."""
    make, made = WAYS[way][0], model(options, way)
    numbers = bad_numbers(options, way)
    for bad_row in (0, 1, 39):
        for number in numbers:
            rows = [make(float(k % COUNT)) for k in range(40)]
            rows[bad_row] = make(number)
            made.refuses(lambda rows=rows: made.step.loop(rows, 0.1), f"in row {bad_row} ")
    seen = sum(made.seen)
    made.step.loop([make(float(k % COUNT)) for k in range(40)], 0.1)
    assert sum(made.seen) == seen + 40.0


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: " ".join(options.values()))
def test_04_phases(options: dict[str, Any]) -> None:
    """`forward` checks as well, and `backward` and `update` need a forward that ran."""
    made = model(options, "a float")
    for number in bad_numbers(options):
        made.refuses(lambda number=number: made.step.forward(number, 0.1))
    made.step.forward(2.0, 0.1)
    made.step.backward()
    made.step.update()


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: " ".join(options.values()))
def test_05_the_undecorated_step_agrees(options: dict[str, Any]) -> None:
    """It is an IndexError there too; minus zero is zero in both."""
    made = model(options, "a float")
    made.works(-0.0, 0.1)
    for number in BAD:
        with pytest.raises(IndexError):
            mgjit.take([1.0] * COUNT, number)
    assert mgjit.take([1.0] * COUNT, -0.0) == 1.0
