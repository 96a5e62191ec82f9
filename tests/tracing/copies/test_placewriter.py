"""The functions that are generated for places: what they copy, what they refuse, what they leave alone."""

from __future__ import annotations

import math
from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any, Callable

import pytest

from mgjit.base import ffi
from mgjit.memory.live import field_of
from mgjit.runtime import vectorcall
from mgjit.tracing.call.given import GivenPath
from mgjit.tracing.copies import packers
from mgjit.tracing.copies.copies import Copied
from mgjit.tracing.copies.placewriter import EXACT, FEW, Told, copying_functions
from mgjit.tracing.surroundings.places import Attribute, Element, Entry, Variable
from tests.runtime.quick import use_extension

LONG = FEW + 4


class Plain:
    """An object with a dict."""

    def __init__(self) -> None:
        self.x: Any = 1.5
        self.xs: Any = [0.25, 0.5]


class Slotted:
    """One with slots."""

    __slots__ = ("x",)

    def __init__(self) -> None:
        self.x: Any = 1.5


class Guarded(Plain):
    """One that does not let anybody assign."""

    def __setattr__(self, name: str, content: Any) -> None:
        if name in vars(self):
            raise AttributeError(name)
        super().__setattr__(name, content)


class Hidden(Plain):
    """One whose number lies behind a property of the same name."""

    @property
    def y(self) -> str:
        """Something else."""
        return "not the number"


def entry(content: Any) -> tuple[dict[str, Any], Entry]:
    holder = {"it": content}
    return holder, Entry(holder, "it", "it")


def functions(
    parts: list[Copied], size: int = 64, code: str = "d"
) -> tuple[array[float], Callable[[], bool], Callable[[], None]]:
    buffer = array(code, [0.0] * size)
    return buffer, *copying_functions(buffer, parts, [])


def number(place: Any, **more: Any) -> Copied:
    return Copied(place, 0, assigned=True, **more)


@pytest.mark.parametrize("kind", [Plain, Slotted, Guarded])
def test_01_attributes(kind: type) -> None:
    """In the dict or a slot, past what the class does when it is asked."""
    thing: Any = kind()
    buffer, fill, show = functions([number(Attribute(thing, field_of(kind, "x")))])
    assert fill()
    assert buffer[0] == 1.5
    buffer[0] = -0.0
    show()
    assert math.copysign(1.0, thing.x) == -1.0


def test_02_behind_a_property() -> None:
    """The number that lies there, and not what the property says."""
    thing = Hidden()
    vars(thing)["y"] = 2.5
    buffer, fill, show = functions([number(Attribute(thing, field_of(Hidden, "y")))])
    assert fill()
    assert buffer[0] == 2.5
    buffer[0] = 3.5
    show()
    assert vars(thing)["y"] == 3.5


def test_03_variables() -> None:
    """Of an enclosing function; one without content is not what it was."""
    x = 1.5

    def inner() -> float:
        return x

    cell = (inner.__closure__ or ())[0]
    buffer, fill, show = functions([number(Variable(cell, "x"))])
    assert fill()
    buffer[0] *= 2
    show()
    assert inner() == 3.0
    del cell.cell_contents
    assert not fill()


@pytest.mark.parametrize("size", [1, 3, FEW, LONG])
@pytest.mark.parametrize("code", ["d", "f"])
def test_04_lists(size: int, code: str) -> None:
    """Keep their identity, whatever their length."""
    numbers: list[Any] = [0.5 + k for k in range(size)]
    holder, place = entry(numbers)
    buffer, fill, show = functions([Copied(place, 3, size, assigned=True)], code=code)
    assert fill()
    assert list(buffer[3 : 3 + size]) == numbers
    assert not any(buffer[:3])
    buffer[3] = math.inf
    show()
    assert holder["it"] is numbers
    assert numbers == [math.inf, *(0.5 + k for k in range(1, size))]


@pytest.mark.parametrize("size", [2, LONG])
@pytest.mark.parametrize(
    "change",
    [
        lambda xs: xs.append(1.0),
        lambda xs: xs.pop(),
        lambda xs: xs.__setitem__(0, "a"),
        lambda xs: xs.__setitem__(1, None),
        lambda xs: xs.clear(),
    ],
)
def test_05_lists_that_do_not_fit(size: int, change: Callable[[Any], Any]) -> None:
    """Of another length, or with something that is no number."""
    holder, place = entry([0.5] * size)
    _, fill, _ = functions([Copied(place, 0, size, assigned=True)])
    assert fill()
    change(holder["it"])
    assert not fill()


@pytest.mark.parametrize("size", [0, 2, LONG])
@pytest.mark.parametrize("other", [(0.5, 0.5), "ab", None, {0.5: 1, 0.25: 2}, [[0.5], [0.5]]])
def test_06_something_else(size: int, other: Any) -> None:
    """Where a number or a list was."""
    holder, place = entry([0.5] * size if size else 0.5)
    _, fill, _ = functions([Copied(place, 0, size, assigned=True)])
    assert fill()
    holder["it"] = other
    assert not fill()
    holder.clear()
    assert not fill()


@pytest.mark.parametrize("inner", [2, LONG])
@pytest.mark.parametrize("all_of_them", [True, False])
def test_07_lists_in_lists(inner: int, all_of_them: bool) -> None:
    """All rows of a table, or some; a table that is replaced is read where it is now."""
    table = [[10.0 * row + k for k in range(inner)] for row in range(3)]
    holder, place = entry(table)
    rows = range(3) if all_of_them else (0, 2)
    parts = [Copied(Element(place, table, row), row * inner, inner, assigned=True) for row in rows]
    buffer, fill, show = functions(parts)
    assert fill()
    for row in rows:
        assert list(buffer[row * inner : (row + 1) * inner]) == table[row]
    buffer[2 * inner] = -1.0
    identities = list(map(id, table))
    show()
    assert list(map(id, table)) == identities
    assert table[2][0] == -1.0
    holder["it"] = tuple([0.25] * inner for _ in range(3))
    assert fill()
    assert buffer[2 * inner] == 0.25
    holder["it"] = {row: [0.5] * inner for row in range(3)}
    assert not fill()
    holder["it"] = [[0.5] * inner]
    assert not fill()


def test_08_numbers_among_other_things() -> None:
    """Elements of a list that holds more than numbers."""
    things: Any = ["a", 0.5, [1.5]]
    _, place = entry(things)
    parts = [number(Element(place, things, 1)), Copied(Element(place, things, 2), 1, 1, assigned=True)]
    buffer, fill, show = functions(parts)
    assert fill()
    assert list(buffer[:2]) == [0.5, 1.5]
    buffer[0], buffer[1] = 2.5, 3.5
    show()
    assert things == ["a", 2.5, [3.5]]


@pytest.mark.parametrize("size", [0, 3, LONG])
def test_09_integers(size: int) -> None:
    """Stay ints; a float, a bool, or an int that a float64 may not hold, is not what was there."""
    contents = list(range(7, 7 + (size or 1)))
    whole = frozenset(range(size or 1))
    holder, place = entry(contents if size else 7)
    part = Copied(place, 0, size, assigned=True, integers=whole, given_integers=whole)
    buffer, fill, show = functions([part])
    assert fill()
    buffer[0] = 9.0
    show()
    now = holder["it"] if size else [holder["it"]]
    assert now == [9, *contents[1:]]
    assert set(map(type, now)) == {int}
    for other in (0.5, 9.0, math.nan, True, EXACT + 1, -EXACT - 1):
        if size:
            holder["it"][0] = other
        else:
            holder["it"] = other
        assert not fill()
    buffer[0] = math.inf
    show()
    assert (holder["it"][0] if size else holder["it"]) == math.inf


def test_10_what_is_only_read() -> None:
    """Is not written."""
    first, place = entry([0.5, 1.5])
    second, other = entry(2.5)
    buffer, fill, show = functions([Copied(place, 0, 2), Copied(other, 2, assigned=True)])
    assert fill()
    buffer[0], buffer[2] = 9.0, 9.0
    show()
    assert (first["it"], second["it"]) == ([0.5, 1.5], 9.0)


@pytest.mark.parametrize("size", [2, LONG])
def test_11_replaced_lists(size: int) -> None:
    """A new list each time."""
    holder, place = entry([0.5] * size)
    before = holder["it"]
    _, fill, show = functions([Copied(place, 0, size, assigned=True, replaced=True)])
    assert fill()
    show()
    assert holder["it"] == before
    assert holder["it"] is not before


@pytest.mark.parametrize("size", [2, LONG])
@pytest.mark.parametrize("mixed", [False, True])
def test_11_a_list_that_was_given(size: int, mixed: bool) -> None:
    """Is put there itself, if the call tells it; what an earlier call has told does not count."""
    holder, place = entry([0.5] * size)
    part = Copied(place, 0, size, assigned=True, replaced=True, given=GivenPath(0, ()), mixed=mixed)
    told, given = Told([part]), [0.5] * size
    fill, show = copying_functions(array("d", [0.0] * 2 * size), [part], [], (), told)
    assert fill()
    told.given[0] = given
    for _ in range(2):
        holder["it"] = []
        show()
        assert holder["it"] is given
    assert fill()
    show()
    assert holder["it"] == given
    assert holder["it"] is not given


@pytest.mark.parametrize("has_containers", [False, True])
def test_11_which_lists_are_changed(has_containers: bool) -> None:
    """Are noted at each call, if arguments may be among them."""
    parts = []
    for offset, more in enumerate(({"assigned": True}, {"assigned": True, "replaced": True}, {}, {"assigned": True})):
        parts.append(Copied(entry([0.5, 1.5])[1], 2 * offset, 2, **more))
    told = Told(parts, has_containers)
    fill, _ = copying_functions(array("d", [0.0] * 8), parts, [], (), told)
    for _ in range(2):
        parts[3].place.write([2.5, 3.5])
        assert fill()
        assert set(told.lists[0]) == ({id(parts[k].place.read()) for k in (0, 3)} if has_containers else set())


def test_12_long_lists_without_a_change() -> None:
    """Keep even their elements; a change of sign alone is a change."""
    numbers = [0.0, *(0.5 + k for k in range(LONG))]
    _, place = entry(numbers)
    buffer, fill, show = functions([Copied(place, 0, len(numbers), assigned=True)])
    before = list(numbers)
    assert fill()
    show()
    assert all(new is old for new, old in zip(numbers, before))
    buffer[0] = -0.0
    show()
    assert math.copysign(1.0, numbers[0]) == -1.0


def test_13_long_lists_that_change_their_kind() -> None:
    """Ints that the step makes floats are assigned, equal or not."""
    numbers: list[Any] = [0] * LONG
    _, place = entry(numbers)
    _, fill, show = functions([Copied(place, 0, LONG, assigned=True, integers=frozenset({1}))])
    assert fill()
    show()
    assert [type(x) for x in numbers] == [float, int, *([float] * (LONG - 2))]


def test_14_stretches_that_belong_to_others() -> None:
    """Numbers before and behind a long list, and unused ones, do not disturb one another."""
    first, a = entry(1.5)
    second, b = entry([0.5] * LONG)
    third, c = entry([2.5, 3.5])
    parts = [Copied(b, 4, LONG, assigned=True), number(a), Copied(c, 10 + LONG, 2, assigned=True)]
    buffer, fill, show = functions(parts)
    for _ in range(2):
        assert fill()
        assert list(buffer[: 12 + LONG]) == [1.5, 0, 0, 0, *second["it"], *([0.0] * 6), *third["it"]]
    buffer[0], buffer[4], buffer[11 + LONG] = 7.0, 8.0, 9.0
    show()
    assert (first["it"], second["it"][:2], third["it"]) == (7.0, [8.0, 0.5], [2.5, 9.0])


@pytest.mark.parametrize("size", [4, 200])
def test_elements_that_a_step_does_not_assign_belong_to_others(size: int) -> None:
    """Two steps, or a step and Python, may each assign their own elements of one list at the same time."""
    numbers = [float(k) for k in range(size)]
    place = Entry({"numbers": numbers}, "numbers")
    buffer = array("d", bytes(8 * size))
    fill, show = copying_functions(buffer, [Copied(place, 0, size, assigned=True, positions=(1, size - 1))], [])
    assert fill()
    buffer[0], buffer[1], buffer[size - 1] = 7.0, 8.0, 9.0
    numbers[0] = 5.0  # by somebody else, meanwhile
    show()
    assert (numbers[0], numbers[1], numbers[size - 1], numbers[2]) == (5.0, 8.0, 9.0, 2.0)


class Floaty:
    """What is made into a float, without being one."""

    def __float__(self) -> float:
        return 2.0


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("other", [Floaty(), Fraction(1, 2), Decimal(2), None, "a"])
def test_13_what_can_be_made_a_float_is_no_number(other: Any, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a short list nor in a long one, whether or not C looks at it; bools are, and ints."""
    use_extension(monkeypatch, quick)
    monkeypatch.setattr(packers.in_c, "extension", vectorcall.extension)
    for size in (FEW, LONG, 200):
        holder, place = entry([0.5 * k for k in range(size)])
        buffer, fill, _ = functions([Copied(place, 0, size, assigned=True)], size)
        for fits in (holder["it"], [*range(size)], [True, *holder["it"][1:]]):
            holder["it"] = fits
            assert fill()
            assert buffer.tolist() == fits
        for place_of_other in (0, size // 2, size - 1):
            holder["it"] = [0.5] * size
            holder["it"][place_of_other] = other
            assert not fill()
        for length in (size - 1, size + 1):
            holder["it"] = [0.5] * length
            assert not fill()


@pytest.mark.skipif(ffi.PYPY, reason="lists are read without it")
def test_14_many_long_lists_ask_for_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which then makes the same bytes."""
    extension = vectorcall.Extension()
    monkeypatch.setattr(packers.in_c, "extension", extension)
    asked: list[int] = []
    monkeypatch.setattr(extension, "is_ready", lambda: asked.append(0))
    _, place = entry([0.5 * k for k in range(LONG)])
    buffer, fill, _ = functions([Copied(place, 0, LONG)])
    assert all(fill() for _ in range(packers._MANY_CALLS + 10))
    assert asked == [0]
    extension.floats = lambda numbers: array("d", [7.0] * len(numbers)).tobytes()
    assert fill()
    assert buffer[:LONG].tolist() == [7.0] * LONG
