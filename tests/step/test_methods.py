"""Where objects keep their compiled methods."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.base.ffi import PYPY
from mgjit.step.methods import Attributes, make_room, methods_in


class Trainer:
    """Trains a number by methods that are compiled."""

    def __init__(self) -> None:
        self.w, self.n = 1.0, 0

    @mgjit.compile
    def step(self, x: float) -> float:
        self.w -= 0.5 * x
        self.n += 1
        return self.w

    @mgjit.compile
    def score(self, x: float) -> float:
        return self.w * x


def trained() -> Trainer:
    trainer = Trainer()
    for _ in range(3):
        trainer.score(trainer.step(0.5))
    return trainer


@pytest.mark.skipif(PYPY, reason="nobody can tell there whether a dict has other names")
def test_01_attributes_are_those_of_the_program() -> None:
    trainer = trained()
    assert json.dumps(vars(trainer)) == '{"w": 0.25, "n": 3}'
    assert vars(trainer) == {"w": 0.25, "n": 3}
    assert set(methods_in(vars(trainer))) == {"step compiled", "score compiled"}
    assert trainer.step is trainer.step


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])  # noqa: S301
def test_02_duplicates_have_methods_of_their_own(duplicate: Callable[[Any], Any]) -> None:
    trainer = trained()
    other = duplicate(trainer)
    assert (other.step(0.5), other.n, trainer.w, trainer.n) == (0.0, 4, 0.25, 3)
    assert other.step.stats.calls == 1


@pytest.mark.skipif(PYPY, reason="nobody can tell there whether a dict has other names")
def test_03_attributes_stay_attributes() -> None:
    """What is assigned to them, and to their dict, is the same."""
    trainer = trained()
    own = vars(trainer)
    own["w"], trainer.more = 5.0, 3  # type: ignore[attr-defined]
    assert (own["more"], trainer.w, trainer.step(2.0)) == (3, 5.0, 4.0)
    assert type(pickle.loads(pickle.dumps(own))) is dict  # noqa: S301 - made here


@pytest.mark.skipif(PYPY, reason="collected later")
def test_04_methods_live_as_long_as_the_object() -> None:
    trainer = trained()
    reference = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert reference() is None


def test_05_a_dict_that_objects_share_stays_shared() -> None:
    class Sharing:
        everything: dict[str, Any] = {"w": 1.0}  # noqa: RUF012 - shared by all of them

        def __init__(self) -> None:
            self.__dict__ = self.everything

        @mgjit.compile
        def step(self, x: float) -> float:
            self.w: float = self.w - 0.25 * x
            return self.w

    one, other = Sharing(), Sharing()
    assert [one.step(1.0), other.step(1.0), one.step(1.0)] == [0.75, 0.5, 0.25]
    assert one.__dict__ is other.__dict__ is Sharing.everything


@pytest.mark.skipif(PYPY, reason="methods are entries there")
def test_06_room_is_made_once() -> None:
    trainer = Trainer()
    room = make_room(trainer)
    assert type(vars(trainer)) is Attributes
    assert make_room(trainer) is room is methods_in(vars(trainer))
