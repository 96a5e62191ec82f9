"""The plan of what a call draws: in order, row by row, and back again."""

from __future__ import annotations

import random
from array import array
from functools import partial

import pytest

from mgjit.base.lookup import is_bound_draw
from mgjit.engine.precision import FLOAT64
from mgjit.tracing.draws.plan import Draw, DrawPlan, restore_state, state_of, undrawn


def plan_of(*generators: random.Random) -> DrawPlan:
    """Two numbers, three indices, and a number of each generator in turn."""
    plan = DrawPlan()
    places = []
    for number, generator in enumerate(generators):
        one = Draw("random", generator.random, (), None, (number, "random"))
        places += [plan.add(one, generator), plan.add(one, generator)]
        choices = partial(generator.choices, k=3)
        places.append(plan.add(Draw("choices", choices, (range(9),), 3, (number, "choices")), generator))
        places.append(plan.add(Draw("gauss", generator.gauss, (1.0, 2.0), None, (number, "gauss")), generator))
    assert places == [6 * k + place for k in range(len(generators)) for place in (0, 1, 2, 5)]
    return plan


def by_hand(*generators: random.Random) -> list[float]:
    """The same."""
    found = []
    for one in generators:
        found += [one.random(), one.random(), *one.choices(range(9), k=3), one.gauss(1.0, 2.0)]
    return found


def test_01_numbers_in_order() -> None:
    """Of a call, and of many; all generators end in the state in which Python leaves them."""
    mine, theirs = [random.Random(1), random.Random(2)], [random.Random(1), random.Random(2)]
    plan = plan_of(*mine)
    assert plan.size == 12
    numbers = plan.memory(FLOAT64)
    fill, address = plan.filler(numbers), numbers.buffer_info()
    for _ in range(3):
        fill()
        assert list(numbers) == by_hand(*theirs)
    assert numbers.buffer_info() == address
    assert list(plan.rows(4, "d")) == [x for _ in range(4) for x in by_hand(*theirs)]
    assert [one.getstate() for one in mine] == [one.getstate() for one in theirs]


def test_02_one_number() -> None:
    """With arguments and without."""
    for draw, arguments in ((random.Random(4).random, ()), (random.Random(4).gauss, (0.0, 3.0))):
        plan = DrawPlan()
        plan.add(Draw("x", draw, arguments, None, "x"), None)
        numbers = array("d", [0.0])
        plan.filler(numbers)()
        assert numbers[0] == getattr(random.Random(4), draw.__name__)(*arguments)


def test_03_states() -> None:
    """What was drawn can be drawn again."""
    generators = [random.Random(1), random.Random(2)]
    plan = plan_of(*generators)
    states = plan.states()
    first = list(plan.numbers())
    plan.restore(states)
    assert list(plan.numbers()) == first
    assert list(plan.numbers()) != first


def test_04_described() -> None:
    """How many of what; nothing where nothing is drawn."""
    assert DrawPlan().describe() == ""
    text = plan_of(random.Random(1)).describe()
    assert text == "draws 6 random numbers a call: random 2 x, choices 1 x, gauss 1 x"


def test_05_methods_in_c() -> None:
    """They cannot get other code."""
    generator = random.Random(3)
    assert all(map(is_bound_draw, (random.random, generator.random, generator.getrandbits)))
    assert not any(map(is_bound_draw, (random.gauss, generator.gauss, [].append, len, None, random.Random.random)))


def test_06_other_generators() -> None:
    """States of generators that keep them as numpy does."""

    class New:
        def __init__(self) -> None:
            self.bit_generator = self
            self.state = 5

    class Old:
        state = 5

        def get_state(self) -> int:
            return self.state

        def set_state(self, state: int) -> None:
            self.state = state

    for generator in (New(), Old()):
        assert state_of(generator) == 5
        restore_state(generator, 6)
        assert state_of(generator) == 6


OF_THE_CLASS = random.Random(6)
draw_tag = OF_THE_CLASS.random


class Tagged:
    """Draws when it is made, from two generators."""

    def __init__(self) -> None:
        self.tags = random.random(), draw_tag()


def test_07_classes_that_are_tried_out() -> None:
    """What they draw is not drawn, also when the attempt fails."""

    def fail() -> None:
        Tagged()
        raise KeyError

    states = random.getstate(), OF_THE_CLASS.getstate()
    tags = undrawn(Tagged, lambda: Tagged().tags)
    assert (random.getstate(), OF_THE_CLASS.getstate()) == states
    with pytest.raises(KeyError):
        undrawn(Tagged, fail)
    assert Tagged().tags == tags
    assert (random.getstate(), OF_THE_CLASS.getstate()) != states
