"""Parameters in buffers: the same objects, the same numbers, no copies that could be old."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from collections.abc import Iterator
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.base.ffi import address_of
from mgjit.engine.precision import FLOAT32, FLOAT64
from mgjit.ir.parameters import Layouts, ParameterBlock, ParameterLayout
from mgjit.memory.buffers import (
    Move,
    Moved,
    ParameterStorage,
    SharedScratch,
    aligned_zeros,
    bind,
    bound_class,
    bound_classes,
)


def test_01_binding_moves_numbers() -> None:
    """Data and gradients go to their places; objects stay the same."""
    values = [Value(1.5), Value(-0.0), Value(3.0)]
    values[2].grad = 7.0
    storage = bind(values, [4, 0, 2], 6)
    assert len(storage) == 6
    assert [struct.pack("<d", v.data) for v in values] == [struct.pack("<d", x) for x in (1.5, -0.0, 3.0)]
    assert (list(storage.data), storage.grad[2]) == ([-0.0, 0.0, 3.0, 0.0, 1.5, 0.0], 7.0)


def test_02_both_sides_see_the_same_memory() -> None:
    """What Python assigns the kernel reads, and the other way round."""
    value = Value(1.0)
    storage = bind([value], [0], 1)
    storage.data[0], storage.grad[0] = 5.0, 6.0
    assert (value.data, value.grad) == (5.0, 6.0)
    value.data, value.grad = 7, 8.5
    assert (storage.data[0], storage.grad[0]) == (7.0, 8.5)


def test_03_still_a_value() -> None:
    """Arithmetic, differentiation, repr, identity as a key, type name."""
    a, plain = Value(2.0), Value(2.0)
    table = {a: "a"}
    bind([a], [0], 1)
    loss = (a * 3.0 + a**2).relu()
    loss.backward()
    expected = (plain * 3.0 + plain**2).relu()
    expected.backward()
    assert (loss.data, a.grad) == (expected.data, plain.grad)
    assert (type(a).__name__, repr(a), table[a]) == ("Value", repr(plain), "a")
    assert isinstance(a, Value)


def test_04_copies_and_pickles_are_free() -> None:
    """They do not share the storage."""
    value = Value(2.0)
    value.grad = 3.0
    bind([value], [0], 1)
    for clone in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301
        assert type(clone) is Value
        assert (clone.data, clone.grad) == (2.0, 3.0)
        clone.data = 9.0
        assert value.data == 2.0


def test_05_derived_classes() -> None:
    """One bound class for each class of the user's, with its methods."""

    class Weight(Value):
        __slots__ = ("label",)

    weight = Weight(1.0)
    weight.label = "w"
    bind([weight], [0], 1)
    assert isinstance(weight, Weight)
    assert (type(weight).__name__, weight.label) == ("Weight", "w")
    assert bound_class(Weight) is type(weight)
    assert bound_classes[Weight] is type(weight)
    del bound_classes[Weight]


def test_06_storage_is_zeroed() -> None:
    """Places that no Value has are 0.0."""
    storage = ParameterStorage(3)
    assert (list(storage.data), list(storage.grad), len(storage)) == ([0.0] * 3, [0.0] * 3, 3)


def test_06_numbers_and_places() -> None:
    """A layout puts parameters elsewhere; their numbers are those of the natural order, each of which has one place."""
    layout = ParameterLayout((ParameterBlock(0, 2, 3, 2, 0, 1, 8), ParameterBlock(2, 2, 3, 1, 16, 1, 1)), 24)
    storage = ParameterStorage(6, FLOAT64, layout)
    assert (len(storage), len(storage.data)) == (6, 24)
    assert list(storage.places(range(6))) == [0, 8, 16, 1, 9, 17]
    assert list(map(storage.number, storage.places(range(6)))) == list(range(6))
    values = [Value(float(k)) for k in range(6)]
    move = Move(values, range(6), 6, (), FLOAT64, Layouts(layout))
    move.fill()
    move.commit()
    assert [value.data for value in values] == [move.storage.data[place] for place in storage.places(range(6))]
    assert [ParameterStorage(3).number(place) for place in range(3)] == [0, 1, 2]


def test_07_float32() -> None:
    """Numbers are rounded when they move in and when they are assigned; lines are aligned alike."""
    value = Value(0.1)
    value.grad = 1e39
    storage = bind([value], [1], 3, FLOAT32)
    assert (value.data, value.grad) == (0.10000000149011612, math.inf)
    value.data = 2**24 + 1
    assert (value.data, type(value.data)) == (2.0**24, float)
    assert (storage.data.format, storage.data.nbytes, storage.precision) == ("f", 12, FLOAT32)
    for precision in (FLOAT32, FLOAT64):
        assert all(address_of(aligned_zeros(n, precision)) % 64 == 0 for n in range(1, 40))


def test_08_nothing_is_visible_before_the_commit() -> None:
    """Not the rounding either; afterwards everything is, also when it is committed twice."""
    value, state = Value(0.1), mgjit.state([0.3])
    move = Move([value], [1], 2, [state], FLOAT32)
    move.fill()
    move.storage.data[1], move.state_buffers[0][0] = 7.0, 8.0
    assert (value.data, state[0]) == (0.1, 0.3)
    for _ in range(2):
        move.commit()
        assert (value.data, state[0]) == (7.0, 8.0)


def test_09_two_moves_of_the_same() -> None:
    """The second one is told that it comes too late, and nothing happens."""
    value, state = Value(0.5), mgjit.state([0.25])
    moves = [Move([value], [0], 1, (), FLOAT64), Move([value], [0], 1, (), FLOAT64)]
    moves += [Move([], [], 0, [state], FLOAT32), Move([], [], 0, [state], FLOAT32)]
    for first, second in (moves[:2], moves[2:]):
        first.fill()
        first.commit()
        with pytest.raises(Moved):
            second.fill()
    value.data, state[0] = 3.0, 4.0
    assert (moves[0].storage.data[0], moves[2].state_buffers[0][0]) == (3.0, 4.0)


class Labelled(Value):
    """A class of the user's with attributes of its own."""

    def __init__(self, data: float, label: str) -> None:
        super().__init__(data)
        self.label = label


class Slotted(Value):
    """The same with slots."""

    __slots__ = ("label",)

    def __init__(self, data: float, label: str) -> None:
        super().__init__(data)
        self.label = label


@pytest.mark.parametrize("kind", [Labelled, Slotted])
def test_10_copies_of_derived_classes(kind: Any) -> None:
    """They keep their class and attributes, bound or not."""
    value = kind(2.0, "w")
    value.grad = 0.5
    for _ in range(2):
        for clone in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301
            assert type(clone) is kind
            assert (clone.data, clone.grad, clone.label) == (2.0, 0.5, "w")
        if not value._is_bound:
            bind([value], [0], 1)


def test_11_values_that_another_thread_moves_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their classes are read once; `fill` notices that they have moved."""
    values = [Value(1.0), Value(2.0)]

    class Late(list):  # type: ignore[type-arg]
        """They move when the move has looked at their classes."""

        def __iter__(self) -> Iterator[Any]:
            yield from list.__iter__(self)
            if not values[0]._is_bound:
                bind(values, [0, 1], 2)

    move = Move(Late(values), [0, 1], 2)
    with pytest.raises(Moved):
        move.fill()
    assert [value.data for value in values] == [1.0, 2.0]
    with pytest.raises(Moved):
        Move(values, [0, 1], 2).fill()


def test_12_kernels_of_a_step_share_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger memory is made where it is needed, by precision; nobody may rely on its contents."""
    scratch = SharedScratch()
    first = scratch.block(100, FLOAT64)
    assert address_of(scratch.block(50, FLOAT64)) == address_of(first)
    larger = scratch.block(200, FLOAT64)
    assert len(larger) == 200
    assert address_of(larger) % 64 == 0
    assert address_of(larger) != address_of(first)
    assert address_of(scratch.block(220, FLOAT64)) == address_of(larger)  # lengths that grow
    assert scratch.block(100, FLOAT32).format == "f"
    monkeypatch.setenv("MGJIT_CHECK", "1")
    assert all(map(math.isnan, SharedScratch().block(100, FLOAT64)))
