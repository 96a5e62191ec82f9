"""Questions about objects whose classes answer them in their own way."""

from __future__ import annotations

import random
from typing import Any

from mgjit.base.lookup import derived_unnoticed, entries, has, module_of, package_of, receiver, variables


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        raise AssertionError(name)

    @property
    def __dict__(cls) -> Any:  # type: ignore[override]
        raise AssertionError("__dict__")


class Answering(metaclass=Meta):
    def __init__(self) -> None:
        object.__setattr__(self, "x", 1)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __len__(self) -> int:
        return 0


class Slotted:
    __slots__ = ("x",)

    def method(self) -> None: ...


def test_01_nothing_of_the_class_runs() -> None:
    thing = Answering()
    assert has(thing, "__len__")
    assert has(thing, "__repr__")
    assert not has(thing, "__next__")
    assert not has(thing, "x")
    assert variables(thing) == {"x": 1}
    assert "__len__" in entries(Answering)
    assert receiver(thing) is None


def test_02_ordinary_things() -> None:
    thing = Slotted()
    assert has(thing, "x")
    assert variables(thing) == {}
    assert receiver(thing.method) is thing
    numbers = [1]
    assert receiver(numbers.append) is numbers
    generator = random.Random(1)
    assert receiver(generator.random) is generator
    assert receiver(Slotted.method) is None
    assert variables(1.0) == {}


def test_03_the_users_code_hears_nothing_of_derived_classes() -> None:
    """Neither `__init_subclass__`, which may need arguments, nor the metaclass; both work as before afterwards."""
    heard = []

    class Meta(type):
        def __new__(mcs, name: str, bases: Any, members: Any, **arguments: Any) -> Any:
            heard.append(name)
            return super().__new__(mcs, name, bases, members, **arguments)

    class Named(metaclass=Meta):
        def __init_subclass__(cls, *, key: str) -> None:
            heard.append(key)

    class Node(Named, key="node"):
        pass

    assert heard == ["Named", "Node", "node"]
    derived = derived_unnoticed(Node, {"extra": 1})
    assert heard == ["Named", "Node", "node"]
    assert (derived.__name__, derived.__bases__, derived.extra) == ("Node", (Node,), 1)  # type: ignore[attr-defined]
    thing: Any = Node()
    thing.__class__ = derived

    class Another(Node, key="another"):
        pass

    assert heard[3:] == ["Another", "another"]


def test_06_what_a_class_names_its_module() -> None:
    """Classes made by other compilers may name anything; Python's own name a text."""

    class Odd:
        __module__ = property(lambda self: "never")  # type: ignore[assignment]

    assert (module_of(Odd), package_of(Odd)) == ("", "")
    assert (module_of(Slotted), package_of(random.Random)) == (__name__, "random")
    assert package_of(test_06_what_a_class_names_its_module) == __name__.partition(".")[0]
