"""Fields of objects that live in a kernel's memory."""

from __future__ import annotations

import copy
import gc
import pickle
from array import array
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import PlainCall
from mgjit.memory.buffers import ParameterStorage, bind
from mgjit.memory.live import field_of, live_class
from mgjit.memory.parameter import Parameter
from mgjit.runtime.detached import are_detached, attach_numbers


class WithDict:
    """Keeps its numbers in its dict."""

    def __init__(self, data: float) -> None:
        self.data = data
        self.grad: Any = None
        self.name = "weight"


class WithSlots:
    """Keeps its numbers in slots."""

    __slots__ = ("data", "grad", "name")

    def __init__(self, data: float) -> None:
        self.data = data
        self.grad: Any = None
        self.name = "weight"


@dataclass
class Record:
    """Keeps them as a dataclass does."""

    data: float
    grad: Any = None
    name: str = "weight"


CLASSES = pytest.mark.parametrize("cls", [WithDict, WithSlots, Record])


def moved(cls: Any) -> tuple[Any, ParameterStorage]:
    thing = cls(1.5)
    return thing, bind([Parameter(thing, (field_of(cls, "data"), field_of(cls, "grad")), 0, ("data", "grad"))], [1], 3)


@CLASSES
def test_01_python_and_the_kernel_see_the_same_number(cls: Any) -> None:
    """Both ways; identity, class and other attributes stay."""
    thing, storage = moved(cls)
    assert (thing.data, thing.grad, thing.name) == (1.5, 0.0, "weight")
    storage.data[1], thing.grad = 2.5, 7
    assert (thing.data, storage.grad[1]) == (2.5, 7.0)
    assert isinstance(thing, cls)
    assert type(thing).__name__ == cls.__name__
    assert type(thing) is live_class(cls, ("data", "grad")) is live_class(type(thing), ("grad",))


@CLASSES
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],  # noqa: S301 - our own
    ids=["copy", "deepcopy", "pickle"],
)
def test_02_copies_are_independent(cls: Any, duplicate: Any) -> None:
    """A copy is an object of the user's class with numbers of its own."""
    thing, storage = moved(cls)
    other = duplicate(thing)
    assert type(other) is cls
    assert (other.data, other.grad, other.name) == (1.5, 0.0, "weight")
    storage.data[1] = 9.0
    assert other.data == 1.5


@CLASSES
@pytest.mark.parametrize(
    "other", ["text", [1.0], Fraction(1, 3), 10**400, None], ids=lambda other: type(other).__name__
)
@pytest.mark.parametrize("name", ["data", "grad"])
def test_03_what_is_no_number(cls: Any, other: Any, name: str) -> None:
    """It is held as it is, and kernels do not run."""
    thing, storage = moved(cls)
    setattr(thing, name, other)
    assert getattr(thing, name) is other
    assert getattr(copy.copy(thing), name) is other
    with pytest.raises(PlainCall, match=rf"{cls.__name__}\.{name} is .*Put a number there"):
        attach_numbers()
    assert getattr(thing, name) is other
    assert are_detached()
    setattr(thing, name, 2.5)
    attach_numbers()
    assert not are_detached()
    assert getattr(storage, name)[1] == getattr(thing, name) == 2.5


def test_03_a_gradient_that_is_none_is_zero_for_a_backward_pass() -> None:
    class Node(WithDict):
        def backward(self) -> None:
            """Adds to gradients."""

    thing, storage = moved(Node)
    thing.grad = None
    assert thing.grad is None
    attach_numbers()
    assert storage.grad[1] == thing.grad == 0.0


@CLASSES
def test_03_the_object_is_gone(cls: Any) -> None:
    """What it held concerns no call any more."""
    thing, _ = moved(cls)
    thing.data = "text"
    del thing
    gc.collect()
    attach_numbers()
    assert not are_detached()


def test_04_a_subclass_with_a_property_of_that_name() -> None:
    """The raw field is what moves; the property goes on computing from it."""

    class Scaled(WithDict):
        @property
        def double(self) -> float:
            return self.data * 2

    thing, storage = moved(Scaled)
    storage.data[1] = 4.0
    assert thing.double == 8.0
    assert array("d", storage.data)[1] == 4.0


def test_class_is_that_of_the_user() -> None:
    """`__class__`, which `==` of dataclasses compares; another class that is assigned gets numbers."""

    @dataclass
    class Weight:
        data: float

    class Other:
        pass

    weights = [Weight(0.5 * k) for k in range(20)]

    def step(x: float) -> None:
        for weight in weights:
            weight.data -= x

    compiled = mgjit.compile(step)
    compiled(0.25)
    assert weights[1].__class__ is Weight
    assert weights[1] == Weight(0.25)
    weights[1].__class__ = Other  # type: ignore[assignment]
    assert type(weights[1]) is Other
    assert vars(weights[1]) == {"data": 0.25}
