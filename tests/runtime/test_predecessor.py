"""Better code is compared with the code that it replaces: the same numbers, or those of the code before."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mgjit.compiler.build.code import Code
from mgjit.compiler.codegen.slot import Slot
from mgjit.runtime.kernel import Kernel
from mgjit.runtime.predecessor import Predecessor

SLOTS = [Slot("parameter", 0, "d"), Slot("input", 0, "d"), Slot("output", 0, "d"), Slot("scratch", 0, "d")]


def memory() -> list[Any]:
    return [array("d", [1.0, -0.0, math.nan]), array("d", [2.0]), array("d", [0.0]), array("d", [9.0])]


def code() -> Code:
    return Code(SLOTS, 1, array("d"), array("i"), None, "")


def made(buffers: list[Any], run: Callable[[], None]) -> Predecessor:
    return Predecessor(code(), run, buffers, buffers.__setitem__)


def step(buffers: list[Any], rate: float) -> Callable[[], None]:
    """Code that adds to a parameter, and returns what it was."""

    def run() -> None:
        buffers[2][0] = buffers[0][0]
        buffers[0][0] += rate * buffers[1][0]
        buffers[3][0] = rate  # scratch memory, which is nobody else's

    return run


def test_code_that_leaves_the_same_numbers_makes_the_call_once() -> None:
    buffers = memory()
    predecessor = made(buffers, step(buffers, 0.5))
    runs: list[Any] = []
    predecessor.run_both(step(buffers, 0.5), [], runs)
    assert (predecessor.has_run, predecessor.mismatch, len(runs)) == (True, "", 1)
    assert (buffers[0][0], buffers[2][0]) == (2.0, 1.0)


def test_code_that_leaves_other_numbers_is_not_believed() -> None:
    buffers = memory()
    predecessor = made(buffers, step(buffers, 0.5))
    predecessor.run_both(step(buffers, 0.25), [], [])
    assert predecessor.mismatch == "number 0 of the parameter memory is 1.5, and was 2.0"
    assert (buffers[0][0], buffers[2][0]) == (2.0, 1.0)


@pytest.mark.parametrize(("place", "number", "differs"), [(1, 0.0, True), (2, -math.nan, False), (2, 1.0, True)])
def test_signs_of_zero_are_compared_and_kinds_of_nan_are_not(place: int, number: float, differs: bool) -> None:
    buffers = memory()
    predecessor = made(buffers, lambda: None)
    predecessor.run_both(lambda: buffers[0].__setitem__(place, number), [], [])
    assert bool(predecessor.mismatch) == differs


@pytest.mark.parametrize("wanted", [True, False])
def test_gradients_that_nobody_reads_need_not_be_the_same(wanted: bool) -> None:
    gradients = array("d", [1.0])
    before = Code([Slot("gradient", 0, "d")], 1, array("d"), array("i"), None, "")
    predecessor = Predecessor(before, lambda: None, [gradients], [].__setitem__, with_gradients=wanted)
    predecessor.run_both(lambda: gradients.__setitem__(0, 2.0), [], [])
    assert bool(predecessor.mismatch) == wanted


@pytest.mark.parametrize("interrupted", ["before", "better"])
def test_an_interruption_leaves_what_was_there(interrupted: str) -> None:
    buffers = memory()

    def stop() -> None:
        buffers[0][0] = 77.0
        raise KeyboardInterrupt

    good = step(buffers, 0.5)
    predecessor = made(buffers, stop if interrupted == "before" else good)
    runs: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        predecessor.run_both(stop if interrupted == "better" else good, [], runs)
    assert not runs
    assert not predecessor.has_run
    assert (buffers[0][0], buffers[2][0]) == (1.0, 0.0)


def test_it_gets_the_buffers_of_the_call() -> None:
    """Which are other ones in each call."""
    buffers = [*memory(), array("d", [7.0])]
    own, better = buffers.copy(), buffers.copy()
    slots = [*SLOTS, Slot("input", 1, "d")]
    before = Code(slots, 1, array("d"), array("i"), None, "")

    def adding(memory: list[Any]) -> Callable[[], None]:
        return lambda: memory[0].__setitem__(0, memory[0][0] + memory[4][0])

    predecessor = Predecessor(before, adding(own), own, own.__setitem__)
    better[4] = array("d", [0.5])
    predecessor.run_both(adding(better), [better[4]], [])
    assert predecessor.mismatch == ""
    assert buffers[0][0] == 1.5


class Rows:
    """Parameters in rows with padding behind them."""

    def __init__(self, data: Any) -> None:
        self.data, self.grad = data, array("d")

    def __len__(self) -> int:
        return 2

    def places(self, numbers: Any) -> list[int]:
        return [(0, 2)[number] for number in numbers]


@pytest.mark.parametrize("is_state", [True, False])
@pytest.mark.parametrize(("place", "differs"), [(0, True), (1, False), (2, True)])
def test_what_is_written_to_padding_does_not_count(place: int, differs: bool, is_state: bool) -> None:
    """Of parameters, and of states, which may lie in rows as well."""
    buffers = memory()
    kernel: Any = SimpleNamespace(parameters=[], state_buffers=[], state_places=[])
    if is_state:
        kernel.state_buffers, kernel.state_places = [array("d"), buffers[0]], [range(0), [0, 2]]
    else:
        kernel.parameters = [Rows(buffers[0])]

    def places(buffer: Any) -> Sequence[int]:
        return Kernel.places_in(kernel, buffer)

    predecessor = Predecessor(code(), lambda: None, buffers, buffers.__setitem__, places)
    predecessor.run_both(lambda: buffers[0].__setitem__(place, 5.0), [], [])
    assert bool(predecessor.mismatch) == differs
