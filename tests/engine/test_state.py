"""State: a list of floats of fixed length."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

import mgjit
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.engine.state import State
from mgjit.errors import PrecisionError
from mgjit.memory.buffers import Move


def test_zeros() -> None:
    assert list(mgjit.zeros(3)) == [0.0, 0.0, 0.0]
    assert len(mgjit.zeros(0)) == 0


def test_state_of_values() -> None:
    state = mgjit.state(k / 2 for k in range(3))
    assert list(state) == [0.0, 0.5, 1.0]
    assert all(type(x) is float for x in mgjit.state([1, True]))


def test_elements_are_read_and_assigned_from_both_ends() -> None:
    state = mgjit.state([1.0, 2.0, 3.0])
    state[0] += 10
    state[-1] = -3
    assert [state[0], state[1], state[2]] == [11.0, 2.0, -3.0]
    assert state[-3] == 11.0


def test_slices() -> None:
    state = mgjit.state(range(5))
    assert state[1:4:2] == [1.0, 3.0]
    state[::2] = [7, 8, 9]
    assert list(state) == [7.0, 1.0, 8.0, 3.0, 9.0]


@pytest.mark.parametrize("index", [3, -4])
def test_out_of_range(index: int) -> None:
    state = mgjit.zeros(3)
    with pytest.raises(IndexError):
        state[index]
    with pytest.raises(IndexError):
        state[index] = 1.0


def test_the_length_is_fixed() -> None:
    state = mgjit.zeros(3)
    with pytest.raises(ValueError, match="fixed length"):
        state[0:2] = [1.0]
    assert list(state) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("wrong", ["1", None, [1.0], mgjit.Value(1.0)])
def test_what_is_not_a_number_is_refused(wrong: Any) -> None:
    state = mgjit.zeros(2)
    with pytest.raises(TypeError):
        state[0] = wrong
    with pytest.raises(TypeError):
        mgjit.state([0.0, wrong])
    assert list(state) == [0.0, 0.0]


@pytest.mark.parametrize("n", [-1, 1.5, None, "3"])
def test_zeros_of_a_wrong_length(n: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        mgjit.zeros(n)


def test_repr_can_be_read() -> None:
    assert repr(mgjit.state([1, 2.5])) == "mgjit.state([1.0, 2.5])"


def test_copies_and_pickles_are_independent() -> None:
    state = mgjit.state([1.0, 2.0])
    for other in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):  # noqa: S301
        other[0] = 9.0
        assert list(other) == [9.0, 2.0]
    assert list(state) == [1.0, 2.0]


@pytest.mark.parametrize("backend", ["c", "python"])
def test_a_compiled_step_writes_in_place_and_sees_what_python_writes(backend: str) -> None:
    state = mgjit.state([1.0, 2.0])

    @mgjit.compile(backend=backend)
    def step(x: Any) -> Any:
        state[0] = state[0] + x
        state[1] = state[0] * state[1]
        return state[-1]

    assert (step(1.0), list(state)) == (4.0, [2.0, 4.0])
    state[0] = 10.0
    assert (step(0.5), list(state)) == (42.0, [10.5, 42.0])


def test_wrong_index_in_a_compiled_step_changes_nothing() -> None:
    state = mgjit.state([1.0, 2.0])

    @mgjit.compile(backend="python")
    def step(x: Any) -> None:
        state[0] = x
        state[2] = x

    with pytest.raises(IndexError):
        step(5.0)
    assert list(state) == [1.0, 2.0]


def move(state: State, precision: Precision) -> None:
    """As the first run of a kernel does."""
    first = Move([], [], 0, [state], precision)
    first.fill()
    first.commit()


def test_the_first_step_decides_the_precision() -> None:
    """Numbers are rounded then and at every assignment; another precision is refused."""
    state = mgjit.state([0.1, 0.5])
    assert state[0] == 0.1
    move(state, FLOAT32)
    assert list(state) == [0.10000000149011612, 0.5]
    state[1] = 1e39
    state[:1] = [0.2]
    assert list(state) == [0.20000000298023224, math.inf]
    before = state._buffer
    move(state, FLOAT32)
    assert state._buffer is before
    with pytest.raises(PrecisionError, match="a state of a float32 step"):
        state._require(FLOAT64)
    clone = copy.copy(state)
    move(clone, FLOAT64)
    assert list(clone) == list(state)
