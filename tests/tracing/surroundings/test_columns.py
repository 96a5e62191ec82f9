"""What many objects hold, compared by identity."""

from __future__ import annotations

import random
from typing import Any

from mgjit.tracing.surroundings.columns import Columns
from mgjit.tracing.surroundings.places import Root


class Thing:
    def __init__(self, *parts: Any) -> None:
        self.parts, self.name = list(parts), "a"


class Slotted:
    __slots__ = ("a",)


def filled(things: list[Any]) -> Columns:
    """Columns of lists, objects, functions and cells."""
    made = Columns()
    for number, thing in enumerate(things):
        place = Root(thing, str(number))
        if type(thing) in (list, tuple):
            made._add(type(thing), thing, place, lambda things: things)
        elif callable(thing):
            made.add_function(thing, place)
        elif type(thing).__name__ == "cell":
            made.add_cell(thing, place)
        else:
            made.add_object(thing, place)
    return made


def test_01_differences_are_those_of_a_comparison_one_by_one() -> None:
    """Lists of many lengths, of which some change and some grow or shrink."""
    draw = random.Random(3)
    for _ in range(200):
        lists = [[object() for _ in range(draw.randrange(4))] for _ in range(draw.randrange(1, 8))]
        look, before = filled([*lists]).look(), [list(one) for one in lists]
        for one in draw.sample(lists, draw.randrange(len(lists))):
            if draw.random() < 0.5:
                one.append(object())
            if one and draw.random() < 0.6:
                one[draw.randrange(len(one))] = object()
            if one and draw.random() < 0.3:
                one.pop(0)
        expected = [
            (str(number), [part for part in one if part not in old])
            for number, (one, old) in enumerate(zip(lists, before))
            if one != old
        ]
        assert [(place.describe(), new) for place, _, new in look.changed().differences()] == expected


def test_02_what_is_added_later_is_none_of_the_business_of_a_look() -> None:
    """Also where there was one object of a kind."""
    first, second, one, other = [1.5], [2.5], Slotted(), Slotted()
    one.a, other.a = 1, 2  # type: ignore[attr-defined]
    columns = filled([first, one])
    look = columns.look()
    columns.add_object(other, Root(other, "later"))
    columns._add(list, second, Root(second, "later"), lambda things: things)
    second.append(1.0)
    other.a = 3  # type: ignore[attr-defined]
    assert not look.changed()
    one.a = 4  # type: ignore[attr-defined]
    first.append(2.0)
    assert [new for *_, new in look.changed().differences()] == [[2.0], [4]]
    assert [(before, after) for _, before, after in look.changed().changed_parts()] == [(1, 4)]


def test_03_functions_without_anything_and_cells_without_a_value() -> None:
    """An attribute or a default makes a difference, and so does the value."""
    if len("a") > 1:
        content = 1

    def bare() -> int:
        return content

    def other() -> None: ...

    assert bare.__closure__ is not None
    look = filled([bare, other, bare.__closure__[0]]).look()
    assert not look.changed()
    other.mark = 1  # type: ignore[attr-defined]
    assert [place.describe() for place, *_ in look.differences()] == ["1"]
    bare.__kwdefaults__ = {"a": 1}
    content = 2
    assert [place.describe() for place, *_ in look.differences()] == ["0", "1", "2"]
