"""A step that draws random numbers while it is traced would use the same ones in every later call.

The states of the generators that a step can reach (the global ones, and those among the objects it captures
or is passed) are compared before and after the trace; generators without a state that can be compared, and
generators seeded from the system, refuse to work in the meantime (not a bound method of one that was made before).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from threading import get_ident
from typing import Any, Callable, TypeVar

from ..errors import RandomnessError
from ..interruption import settled

T = TypeVar("T")


def without_randomness(location: str, reachable: Iterable[Any], work: Callable[[], T]) -> T:
    """`work()`, and a RandomnessError when it draws random numbers.

    Args:
        location: `file:line` of the step.
        reachable: objects that may be generators or bound methods of generators.
    """
    generators = [generator for thing in reachable for generator in (thing, getattr(thing, "__self__", None))]
    me = get_ident()
    before = _states(generators)
    original_seed, original_system = random.Random.seed, random.SystemRandom.random
    original_bits = random.SystemRandom.getrandbits

    def seed(self: Any, a: Any = None, *rest: Any, **options: Any) -> Any:
        if a is None and get_ident() == me:
            raise _error(location)
        return original_seed(self, a, *rest, **options)

    def system(self: Any) -> float:
        if get_ident() == me:
            raise _error(location)
        return original_system(self)

    def system_bits(self: Any, k: int) -> int:
        if get_ident() == me:
            raise _error(location)
        return original_bits(self, k)

    def watched() -> T:
        random.SystemRandom.getrandbits = system_bits  # type: ignore[method-assign]
        random.Random.seed, random.SystemRandom.random = seed, system  # type: ignore[method-assign]
        return work()

    def restore() -> None:
        random.SystemRandom.getrandbits = original_bits  # type: ignore[method-assign]
        random.Random.seed, random.SystemRandom.random = original_seed, original_system  # type: ignore[method-assign]

    result = settled(watched, restore)
    if _states(generators) != before:
        raise _error(location)
    return result


def _states(generators: Iterable[Any]) -> list[Any]:
    states: list[Any] = [random.getstate()]
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None:
        kind, words, *rest = numpy_random.get_state()
        states.append((kind, words.tobytes(), rest))
    for generator in generators:
        if isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom):
            states.append(generator.getstate())
        elif hasattr(generator, "bit_generator"):
            states.append(repr(generator.bit_generator.state))
    return states


def _error(location: str) -> RandomnessError:
    return RandomnessError(
        f"{location}: the step drew random numbers while it was traced; they would be the same in every later "
        "call. Draw them outside of the step and pass them in as arguments."
    )
