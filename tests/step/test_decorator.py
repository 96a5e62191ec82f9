"""What is decorated that cannot be a step: it comes back as it was."""

from __future__ import annotations

import asyncio
import functools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit
from mgjit.errors import ArgumentError, PlainWarning


def generator(x: float) -> Iterator[float]:
    yield 2.0 * x


async def coroutine(x: float) -> float:
    return 2.0 * x


async def stream(x: float) -> Any:
    yield 2.0 * x


class Model:
    def __init__(self, x: float) -> None:
        self.x = 2.0 * x


class Bare:
    __signature__ = 3

    def __call__(self, x: float) -> float:
        return 2.0 * x


async def _first(x: float) -> Any:
    return [each async for each in stream(x)]


#: Objects, and what is made of what comes back.
UNSUITABLE: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "generator": (generator, lambda f: list(f(1.5)), [3.0]),
    "coroutine": (coroutine, lambda f: asyncio.run(f(1.5)), 3.0),
    "stream": (stream, lambda f: asyncio.run(_first(1.5)), [3.0]),
    "class": (Model, lambda f: isinstance(f(1.5), Model) and f(1.5).x, 3.0),
    "builtin": (math.sqrt, lambda f: f(9.0), 3.0),
    "without signature": (Bare(), lambda f: f(1.5), 3.0),
    "staticmethod": (staticmethod(lambda x: 2.0 * x), lambda f: type("C", (), {"f": f}).f(1.5), 3.0),
    "classmethod": (classmethod(lambda cls, x: 2.0 * x), lambda f: type("C", (), {"f": f}).f(1.5), 3.0),
    "property": (property(lambda self: 3.0), lambda f: type("C", (), {"f": f})().f, 3.0),
    "partialmethod": (functools.partialmethod(lambda self, x: x + x, 1.5), lambda f: type("C", (), {"f": f})().f(), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUITABLE)
def test_01_comes_back_with_one_warning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    thing, use, wanted = UNSUITABLE[name]
    with pytest.warns(PlainWarning, match="cannot compile the .* It stays as it is") as warned:
        got = mgjit.compile(thing)
    assert got is thing
    assert use(got) == wanted
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize("refuse", ["plain", "error"])
@pytest.mark.parametrize("name", UNSUITABLE)
def test_02_nothing_is_said_where_mgjit_is_disabled(name: str, refuse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    thing, use, wanted = UNSUITABLE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = mgjit.compile(thing, refuse=refuse)
    assert got is thing
    assert use(got) == wanted


@pytest.mark.parametrize("name", UNSUITABLE)
def test_03_errors_on_request(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    with pytest.raises(ArgumentError, match="cannot compile the"):
        mgjit.compile(refuse="error")(UNSUITABLE[name][0])


@pytest.mark.parametrize("thing", [3, None, [], math, "float32"])
def test_04_what_cannot_be_called_is_an_error(thing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    with pytest.raises(ArgumentError, match="it needs a function"):
        mgjit.compile()(thing)
