"""What is the user's code: wherever it comes from, and whatever it says about itself."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import importlib.util
import random
import sys
import types
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit import nn
from mgjit.tracing.surroundings.ownership import is_module_of_user, is_of_user

SOURCE = """
class Node:
    def __init__(self, data):
        self.data = data

class OnlyData:
    rate = 0.5

def function(x):
    return x
"""


class Here:
    def method(self) -> None: ...


@dataclasses.dataclass
class Data:
    x: float = 0.0


class Pair(NamedTuple):
    x: float
    y: float


class Colour(enum.Enum):
    RED = 1


class Slotted:
    __slots__ = ("x",)


class WithDescriptor:
    """A class whose `__module__` is no string."""

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        return "builtins"


class Contrary(type):
    """Answers everything, and hides what it has."""

    def __getattr__(cls, name: str) -> Any:
        return f"an answer to {name}"


class Answering(metaclass=Contrary):
    def __getattr__(self, name: str) -> Any:
        return lambda *_: name


@functools.wraps(random.random)
def wrapper() -> None:
    """It calls itself one of the library."""


def test_01_functions_and_classes_of_a_module() -> None:
    for thing in (Here, Here.method, Data, Data.__init__, Pair, Colour, Slotted, Answering, Contrary, WithDescriptor):
        assert is_of_user(thing), thing
    assert is_of_user(wrapper)
    assert is_of_user(test_01_functions_and_classes_of_a_module)

    class Local:
        rate = 1.0

    assert is_of_user(Local)


def test_02_what_is_not_of_the_user() -> None:
    """Of Python, of C, of this package, and what is neither function nor class."""
    of_python = [random.Random, random.Random.choice, collections.OrderedDict, collections.UserDict, functools.partial]
    of_python += [enum.Enum, type, object, int, len, types.SimpleNamespace, functools.wraps, dataclasses.Field]
    for thing in of_python:
        assert not is_of_user(thing), thing
    for thing in (mgjit.Value, nn.MLP, nn.MLP.__call__, mgjit.compile, 1.0, None, "text", [Here], sys):
        assert not is_of_user(thing), thing
    stats = sys.modules["inspect"]
    assert not is_of_user(stats.FullArgSpec)  # a namedtuple of the library


def test_03_what_exec_makes() -> None:
    """With and without a name for the module, and under the name of one of the library."""
    for names in ({}, {"__name__": "cell"}, {"__name__": "builtins"}, {"__name__": "random"}, {"__name__": None}):
        exec(SOURCE, names)  # noqa: S102
        for name in ("Node", "OnlyData", "function"):
            assert is_of_user(names[name]), (names.get("__name__"), name)
    assert is_of_user(type("Made", (), {"rate": 0.5}))
    assert is_of_user(types.new_class("Made", (Here,)))
    assert is_of_user(dataclasses.make_dataclass("Made", [("x", float)]))
    assert is_of_user(enum.Enum("Made", "A B"))
    assert is_of_user(collections.namedtuple("Made", "x y"))  # type: ignore[misc]


@pytest.mark.parametrize("is_registered", [True, False])
def test_04_modules_that_importlib_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_registered: bool) -> None:
    """In `sys.modules` or not, under their own name or one of the library's."""
    for name in ("of_the_user", "statistics"):
        (tmp_path / f"{name}.py").write_text(SOURCE)
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        if is_registered:
            monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        assert is_module_of_user(module)
        assert is_of_user(module.Node)
        assert is_of_user(module.OnlyData)
        assert is_of_user(module.function)


def test_05_archives_and_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pure Python in site-packages is the user's, except for libraries that only work on arrays."""
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("in_the_archive.py", SOURCE)
    installed = tmp_path / "lib" / "site-packages"
    (installed / "engine_of_somebody").mkdir(parents=True)
    (installed / "engine_of_somebody" / "__init__.py").write_text(SOURCE)
    (installed / "jax").mkdir()
    (installed / "jax" / "__init__.py").write_text(SOURCE)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    for place in (tmp_path / "archive.zip", installed):
        monkeypatch.syspath_prepend(str(place))
    for name in ("in_the_archive", "engine_of_somebody", "jax"):
        module = importlib.import_module(name)
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, name, module)
        for thing in (module.Node, module.OnlyData, module.function):
            assert is_of_user(thing) is (name != "jax"), thing


def test_06_code_of_other_packages() -> None:
    """micrograd is the user's; numpy is not, in which one class has a descriptor for `__module__`."""
    micrograd = pytest.importorskip("micrograd.engine")
    assert is_of_user(micrograd.Value)
    assert is_of_user(micrograd.Value.backward)
    numpy = pytest.importorskip("numpy")
    for thing in (numpy.ndarray, numpy.sum, numpy.float64, numpy.poly1d, type(numpy.sum), numpy.random.Generator):
        assert not is_of_user(thing), thing
    assert not is_module_of_user(numpy)


def test_07_no_class_stops_the_question() -> None:
    """Classes and functions of this process, a few thousand of all that there are."""
    found = [thing for thing in gc.get_objects() if isinstance(thing, (type, types.FunctionType))]
    for thing in found[:: 1 + len(found) // 5_000]:  # `list[int]` is among them, before Python 3.11
        assert is_of_user(thing) in (True, False)


def test_08_steps_with_numpy_in_reach() -> None:
    """The whole of numpy is in the variables of this step."""
    numpy = pytest.importorskip("numpy")
    double, rate = numpy.float64(2.0), 0.5

    @mgjit.compile
    def step(x: float) -> Any:
        return x * rate + float(numpy.pi) + float(double)

    assert [step(1.0), step(2.0)] == [0.5 + numpy.pi + 2.0, 1.0 + numpy.pi + 2.0]
