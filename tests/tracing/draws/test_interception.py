"""What a step draws while it is traced is noticed, followed or refused; afterwards everything is as before."""

from __future__ import annotations

import functools
import os
import random
import secrets
import threading
from collections.abc import Iterable
from typing import Any, Callable

import pytest

from mgjit.engine.precision import FLOAT64
from mgjit.errors import RandomnessError
from mgjit.tracing.autograd.chosen import Gatherer
from mgjit.tracing.draws.interception import followed, with_draws
from mgjit.tracing.draws.recorded import Drawing
from mgjit.tracing.record.recorder import Recorder
from mgjit.tracing.record.values import traced_types


class OddGenerator:
    """Like a generator of numpy: its state is in `bit_generator`."""

    def __init__(self) -> None:
        self.bit_generator = self
        self.state = {"words": [1, 2, 3]}

    def random(self) -> float:
        """Draw."""
        self.state = {"words": [self.state["words"][0] + 1, 2, 3]}
        return 0.5


class Fair(random.Random):
    """Derives from Random and leaves it as it is."""


def followed_draws(draw: Callable[[], Any], reachable: Iterable[Any] = ()) -> list[str]:
    """The names of the draws that are recorded."""
    recorder = Recorder(FLOAT64)
    drawing = Drawing(recorder, traced_types(recorder, Gatherer()), 0)
    with_draws(drawing, "model.py:7", reachable, (), draw)
    return [one.name for one in drawing.plan.draws]


def is_refused(draw: Callable[[], Any], reachable: Iterable[Any] = ()) -> bool:
    """Whether it is refused, with what to write in the message."""
    with pytest.raises(RandomnessError, match="outside of") as caught:
        followed_draws(draw, reachable)
    assert "model.py:7" in str(caught.value)
    assert str(caught.value).startswith(("model.py:7: ", f"{__file__}:"))
    return True


GENERATOR = random.Random(3)
_gauss = random.gauss


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        (lambda: random.random(), ["random"]),  # noqa: PLW0108 - looked up while it is traced
        (lambda: random.gauss(0.0, 1.0), ["gauss"]),
        (lambda: _gauss(0.0, 1.0), ["gauss"]),
        (functools.partial(random.uniform, 1.0, 2.0), ["uniform"]),
        (lambda: random.shuffle([1, 2, 3]), ["shuffle"]),
        (lambda: (GENERATOR.random(), random.getrandbits(3)), ["random", "getrandbits"]),
        (lambda: GENERATOR.getrandbits(4), ["getrandbits"]),
        (Fair(5).random, []),
        (lambda: None, []),
        (lambda: random.Random(3).random(), []),
        (lambda: Fair(3).gauss(0.0, 1.0), []),
    ],
)
def test_01_followed(draw: Callable[[], Any], names: list[str]) -> None:
    """By whichever name; generators that the step seeds itself draw as ever.  None of them moves on."""
    states = random.getstate(), GENERATOR.getstate()
    assert followed_draws(draw, [GENERATOR]) == names
    assert (random.getstate(), GENERATOR.getstate()) == states


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random.seed(12),
        random.seed,
        random.getstate,
        lambda: random.setstate(random.getstate()),
        lambda: GENERATOR.seed(1),
        random.Random,
        lambda: random.Random(None),
        lambda: random.SystemRandom().random(),
        lambda: random.SystemRandom().gauss(0.0, 1.0),
        lambda: random.SystemRandom().randrange(5),
        lambda: secrets.randbelow(5),
        lambda: secrets.token_bytes(5),
        lambda: os.urandom(3),
    ],
)
def test_02_refused(draw: Callable[[], Any]) -> None:
    """Seeds and states, new generators seeded from the system, the system itself."""
    state = random.getstate()
    assert is_refused(draw)
    assert random.getstate() == state


def test_03_what_cannot_be_followed_is_put_back() -> None:
    """Methods in C that something else calls, and generators of other libraries: found by their states."""
    c_method = random.random
    for generator in (random.Random(1), Fair(1), OddGenerator()):
        before = generator.getstate() if isinstance(generator, random.Random) else generator.state
        for reachable in ([generator], [None, generator.random], [random.Random(1), generator.random]):
            assert is_refused(functools.partial(generator.random), reachable)
            now = generator.getstate() if isinstance(generator, random.Random) else generator.state
            assert now == before
        followed_draws(lambda: None, [generator, OddGenerator, random.Random])
    state = random.getstate()
    assert is_refused(lambda: list(map(lambda draw: draw(), [c_method])))  # noqa: C417 - no name
    assert random.getstate() == state


def test_04_restored() -> None:
    """The classes are as they were: after nothing, after a refusal, after an error of the user."""
    codes = {name: getattr(method, "__code__", method) for name, method in vars(random.Random).items()}
    system, module, urandom = vars(random.SystemRandom)["random"].__code__, vars(random).copy(), os.urandom

    def fail() -> None:
        assert random.Random.seed.__code__ is not codes["seed"]
        assert random.random is not module["random"]
        random.gauss(0.0, 1.0)
        raise KeyError("the user's")

    followed_draws(lambda: None)
    assert is_refused(random.Random)
    with pytest.raises(KeyError, match="the user's"):
        followed_draws(fail)
    assert {name: getattr(method, "__code__", method) for name, method in vars(random.Random).items()} == codes
    assert vars(random.SystemRandom)["random"].__code__ is system
    assert vars(random) == module
    assert os.urandom is urandom
    assert 0.0 <= random.Random().random() < 1.0
    assert random.Random(7).gauss(1.0, 2.0) == random.Random(7).gauss(1.0, 2.0)


def test_05_an_error_of_the_user_comes_first() -> None:
    """A step that draws past us and fails shows its own error, and the generator is put back."""
    generator = random.Random(5)
    draw, before = generator.random, generator.getstate()

    def fail() -> None:
        draw()
        raise KeyError("the user's")

    with pytest.raises(KeyError):
        followed_draws(fail, [generator])
    assert generator.getstate() == before


def test_06_other_threads_may_draw() -> None:
    """They draw, seed and ask the system as ever; what they have taken hold of meanwhile works later on."""
    drawn: list[Any] = []
    generator = random.Random(9)
    wanted = random.Random(9)

    def work() -> None:
        drawn.extend([random.Random().random(), random.SystemRandom().random(), os.urandom(1)])
        drawn.extend([generator.random(), generator.gauss(0.0, 1.0), generator.randrange(100), generator.random])

    def in_a_thread() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert followed_draws(in_a_thread) == []
    assert drawn[3:6] == [wanted.random(), wanted.gauss(0.0, 1.0), wanted.randrange(100)]
    assert drawn[6]() == wanted.random()


def test_07_methods_in_c() -> None:
    """What is bound to one is followed by something that stands for it, at any time."""
    assert followed_draws(followed(GENERATOR.random), [GENERATOR]) == ["random"]
    state = GENERATOR.getstate()
    wanted = GENERATOR.random()
    GENERATOR.setstate(state)
    assert followed(GENERATOR.random)() == wanted
    assert followed(len) is len
    assert followed(GENERATOR.gauss) == GENERATOR.gauss


def test_08_sources_of_ones_own() -> None:
    """A class with its own `random` is code like any other: only what it takes from Random is followed."""

    class Halved(random.Random):
        def random(self) -> float:
            return super().random() / 2.0

    class Constant(random.Random):
        def random(self) -> float:
            return 0.25

    halved = Halved(1)
    assert followed_draws(lambda: halved.random()) == ["random"]  # noqa: PLW0108 - looked up while it is traced
    constant = Constant(1)
    assert followed_draws(lambda: constant.uniform(1.0, 3.0)) == []
