"""The random numbers that a step draws: noted while it is traced, drawn by Python before each compiled call.

A draw is a call of a generator's method with arguments that are known when the step is traced.  Each call of the kernel
first makes the same draws in the same order as the undecorated step, and passes the results as consecutive inputs.  So
the numbers, and the states in which the generators are left, are those of the undecorated step.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat, starmap
from threading import get_ident
from types import FunctionType
from typing import Any, TypeVar

from ...base.lookup import has, receiver
from ...engine.state import zero_array
from ...errors import user_location
from ..surroundings.code import captured
from ..surroundings.ownership import is_of_user

T = TypeVar("T")


@dataclass(frozen=True)
class Draw:
    """One call of a generator's method.

    Attributes:
        name: of the method, for reports.
        call: the function to call; it returns a number, or an iterable of `size` numbers.
        arguments: plain constants.
        size: how many numbers it returns; None for a single number.
        key: equal for draws that are alike, which are made together.
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    size: int | None
    key: Hashable


@dataclass
class DrawPlan:
    """All draws of one call of a step.

    Attributes:
        size: how many numbers are drawn.
        generators: where they come from, each generator once.
        first_line: `file:line` of the first draw.
    """

    draws: list[Draw] = field(default_factory=list)
    size: int = 0
    generators: list[Any] = field(default_factory=list)
    first_line: str = ""
    _runs: list[tuple[Draw, int]] = field(default_factory=list)

    def add(self, draw: Draw, generator: Any) -> int:
        """Add a draw; returns the index of its first number."""
        place = self.size
        if not self.draws:
            self.first_line = user_location()
        self.draws.append(draw)
        self.size += 1 if draw.size is None else draw.size
        if not any(generator is known for known in self.generators):
            self.generators.append(generator)
        if self._runs and self._runs[-1][0].key == draw.key:
            self._runs[-1] = draw, self._runs[-1][1] + 1
        else:
            self._runs.append((draw, 1))
        return place

    def numbers(self) -> Iterable[Any]:
        """Draw the numbers of one call."""
        return chain.from_iterable(map(_drawn, self._runs))

    def filler(self, numbers: array[float]) -> Callable[[], None]:
        """A function that draws the numbers of one call into an array of exactly that size."""
        runs, code = self._runs, numbers.typecode

        def fill() -> None:
            numbers[:] = array(code, chain.from_iterable(map(_drawn, runs)))

        def fill_one() -> None:
            numbers[0] = only()

        if self.size == 1 and runs[0][0].size is None:
            draw = runs[0][0]
            only = partial(draw.call, *draw.arguments) if draw.arguments else draw.call
            return fill_one
        return fill

    def rows(self, count: int, typecode: str) -> array[float]:
        """Draw the numbers of `count` calls."""
        return array(typecode, chain.from_iterable(self.numbers() for _ in range(count)))

    def memory(self, precision: Any) -> array[float]:
        """An array for the numbers of one call."""
        return zero_array(self.size, precision)

    def states(self) -> list[Any]:
        """The states of the generators, for `restore`."""
        return [state_of(generator) for generator in self.generators]

    def restore(self, states: list[Any]) -> None:
        """Restore the states of the generators."""
        for generator, state in zip(self.generators, states):
            restore_state(generator, state)

    def describe(self) -> str:
        """For reports: how many numbers of which kinds; empty if there are none."""
        if not self.draws:
            return ""
        counts = Counter(draw.name for draw in self.draws)
        names = ", ".join(f"{name} {count} x" for name, count in counts.items())
        return f"draws {self.size} random number{'s' if self.size > 1 else ''} a call: {names}"


def _drawn(run: tuple[Draw, int]) -> Iterable[Any]:
    draw, count = run
    made = starmap(draw.call, repeat(draw.arguments, count))
    return made if draw.size is None else chain.from_iterable(made)


#: The interception of draws in traces that are in progress (draws/interception.py), by thread.
followers: dict[int, Any] = {}


def undrawn(kind: type, work: Callable[[], T]) -> T:
    """Return `work()`, which tries out a class of the user's; its draws are ignored, and generators restored."""
    me = get_ident()
    follower = followers.pop(me, None)
    generators = _generators_of(kind)
    states = [generator.getstate() for generator in generators]
    try:
        return work()
    finally:
        for generator, state in zip(generators, states):
            generator.setstate(state)
        if follower is not None:
            followers[me] = follower


def _generators_of(kind: type) -> list[random.Random]:
    """The generator of the module `random`, and those that are named in the methods of a class."""
    methods = [member for base in kind.__mro__ for member in vars(base).values() if isinstance(member, FunctionType)]
    named = [place.read() for method in methods if is_of_user(method) for place in captured(method)]
    found = {id(thing): thing for one in (random.seed, *named) for thing in (one, receiver(one))}
    return [
        thing
        for thing in found.values()
        if isinstance(thing, random.Random) and not isinstance(thing, random.SystemRandom)
    ]


def state_of(generator: Any) -> Any:
    """The state of a generator of Python or numpy, for `restore_state`."""
    if has(generator, "getstate"):
        return generator.getstate()
    if has(generator, "get_state"):
        return generator.get_state()
    return generator.bit_generator.state


def restore_state(generator: Any, state: Any) -> None:
    """Restore a state of a generator, so that it draws the same numbers again."""
    if has(generator, "setstate"):
        generator.setstate(state)
    elif has(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
