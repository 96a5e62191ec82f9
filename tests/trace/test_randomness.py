"""Drawing random numbers while a step is traced is refused; afterwards everything is as before."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from typing import Any, Callable

import pytest

from mgjit.errors import RandomnessError
from mgjit.trace.randomness import without_randomness


class OddGenerator:
    """Like a generator of numpy: its state is in `bit_generator`."""

    def __init__(self) -> None:
        self.bit_generator = self
        self.state = {"words": [1, 2, 3]}

    def random(self) -> float:
        """Draw."""
        self.state["words"][0] += 1
        return 0.5


def draws(draw: Callable[[], Any], reachable: Iterable[Any] = ()) -> bool:
    """Whether it is refused, with the place of the step in the message."""
    try:
        without_randomness("model.py:7", reachable, draw)
    except RandomnessError as error:
        return str(error).startswith("model.py:7: the step drew random numbers")
    return False


@pytest.mark.parametrize(
    "draw",
    [
        random.random,
        lambda: random.gauss(0.0, 1.0),
        lambda: random.shuffle([1, 2, 3]),
        lambda: random.seed(12),
        random.seed,
        random.Random,
        lambda: random.SystemRandom().random(),
        lambda: random.SystemRandom().gauss(0.0, 1.0),
    ],
)
def test_01_the_global_generators(draw: Callable[[], Any]) -> None:
    """The module's functions, new generators seeded from the system, the system itself."""
    state = random.getstate()
    try:
        assert draws(draw)
    finally:
        random.setstate(state)


def test_02_reachable_generators() -> None:
    """As objects or as bound methods of them; others are not known."""
    for generator in (random.Random(1), OddGenerator()):
        assert draws(generator.random, [generator])
        assert draws(generator.random, [None, generator.random])
        assert not draws(generator.random, [random.Random(1)])
        assert not draws(lambda: None, [generator])


def test_03_nothing_drawn() -> None:
    """Reading states, and generators with a seed of their own, are no harm."""
    assert not draws(lambda: None)
    assert not draws(random.getstate)
    assert not draws(lambda: random.Random(3).random())


def test_04_restored() -> None:
    """The classes are as they were: after nothing, after a refusal, after an error of the user."""
    seed, system = random.Random.seed, random.SystemRandom.random

    def fail() -> None:
        assert random.Random.seed is not seed
        raise KeyError("the user's")

    assert not draws(lambda: None)
    assert draws(random.Random)
    with pytest.raises(KeyError, match="the user's"):
        draws(fail)
    assert random.Random.seed is seed
    assert random.SystemRandom.random is system
    assert 0.0 <= random.Random().random() < 1.0


def test_05_an_error_of_the_user_comes_first() -> None:
    """A step that draws and fails shows its own error."""
    generator = random.Random(5)

    def fail() -> None:
        generator.random()
        raise KeyError("the user's")

    with pytest.raises(KeyError):
        draws(fail, [generator])


def test_06_other_threads_may_draw() -> None:
    """Seeding from the system and the system's numbers, in a thread that is not traced."""
    drawn: list[float] = []

    def work() -> None:
        drawn.extend([random.Random().random(), random.SystemRandom().random()])

    def in_a_thread() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert not draws(in_a_thread)
    assert len(drawn) == 2
