"""surroundings/guard.py: what is compared now and then, and how often."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest

from mgjit.errors import RetraceWarning
from mgjit.tracing.surroundings import guard
from mgjit.tracing.surroundings.guard import Guard
from mgjit.tracing.surroundings.survey import Survey


class Part:
    """An object in a list."""

    scale = 2.0

    def times(self, x: float) -> float:
        """Something to replace."""
        return x * self.scale


def around(parts: list[Part], more: Any) -> Any:
    """A function that captures both."""

    def step(x: float) -> float:
        return sum(part.times(x) for part in parts) + len(more)

    return step


def settled(step: Any) -> Guard:
    return Guard(Survey(step))


def difference(found: Guard) -> str:
    """Whatever it is time for."""
    found.look_at_everything()
    return found.difference()


def test_01_differences_are_named() -> None:
    """Elements, entries, attributes, methods, code and defaults, each with its path."""
    parts, more = [Part(), Part()], {"a": 1.0}
    step = around(parts, more)
    changes: list[tuple[Any, Any, str]] = [
        (lambda: parts.append(Part()), parts.pop, "parts has more or fewer elements"),
        (parts.reverse, parts.reverse, "an element of the captured parts"),
        (lambda: more.update(b=2.0), lambda: more.pop("b"), "more has more or fewer"),
        (lambda: more.update(a=2.0), lambda: more.update(a=1.0), "numbers in the captured more"),
        (lambda: setattr(parts[0], "scale", 3.0), lambda: delattr(parts[0], "scale"), "parts[0].scale has been set"),
        (lambda: setattr(Part, "scale", 3.0), lambda: setattr(Part, "scale", 2.0), "Part.scale was 2.0, is 3.0"),
    ]
    found = settled(step)
    assert difference(found) == ""
    for change, undo, text in changes:
        change()
        assert text in difference(found)
        undo()
        assert difference(found) == ""


def test_02_equal_numbers_are_no_difference() -> None:
    """Another object with the same number; a zero of the other sign is one."""
    more = [float("1.5"), 0.0, "text"]
    found = settled(around([], more))
    more[0] = float("1.5")
    assert difference(found) == ""
    more[1] = -0.0
    assert "more" in difference(found)


def test_03_the_conditions_are_the_same() -> None:
    """Around steps with little data, as expressions."""
    space = types.SimpleNamespace(rate=1.0)
    found = settled(lambda x: x * space.rate)
    names: dict[str, Any] = {}

    def name_of(thing: Any) -> str:
        names[f"n{len(names)}"] = thing
        return f"n{len(names) - 1}"

    conditions = found.conditions(name_of, lambda cell: name_of(cell.cell_contents), {}, ())
    assert len(conditions) > 1
    assert all(eval(condition, names) for condition in conditions)  # noqa: S307
    space.rate = 2.0
    assert not all(eval(condition, names) for condition in conditions)  # noqa: S307


def test_04_what_is_noticed_late_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first calls, much data is compared less often; a difference then comes with a warning."""
    monkeypatch.setattr(guard, "_FIRST_CALLS", 0)
    times = iter(range(1000))
    monkeypatch.setattr(guard, "perf_counter", lambda: float(next(times)))
    parts = [Part() for _ in range(50)]
    found = settled(around(parts, []))
    assert found.difference() == ""
    parts.reverse()
    assert found.difference() == ""
    with pytest.warns(RetraceWarning, match="have not noticed"):
        assert next(filter(None, (found.difference() for _ in range(100)))) != ""


def test_04_what_another_change_hides_is_said_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference that was not noticed yet is not passed over when a global is seen to differ first."""
    monkeypatch.setattr(guard, "_FIRST_CALLS", 0)
    monkeypatch.setattr(guard, "perf_counter", lambda: 0.0)
    parts, more = [Part() for _ in range(50)], {"a": 1.0}
    found = settled(around(parts, more))
    assert found.difference() == ""
    found.times[0] = 1.0  # there is a pause
    parts.reverse()
    assert found.difference() == ""
    more["a"] = 2.0
    with pytest.warns(RetraceWarning, match="have not noticed"):
        assert "more" in found.difference()


def test_05_what_is_looked_after_elsewhere() -> None:
    """Numbers that live in a kernel's memory do not count; the length of their list does."""
    numbers = [1.0, 2.0]
    found = Guard(Survey(around([], numbers)), {(id(numbers), None)})
    numbers[0] = 5.0
    assert found.difference() == ""
    numbers.append(3.0)
    assert "length" in found.difference()


def test_06_quick_calls_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the clock where calls follow each other quickly, and only there."""
    clock = [0.0]
    monkeypatch.setattr(guard, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(guard, "_FIRST_CALLS", 0)
    parts = [Part() for _ in range(50)]
    found = settled(around(parts, []))
    cells: list[Any] = []
    names: dict[str, Any] = {}

    def name_of(thing: Any) -> str:
        names[f"n{len(names)}"] = thing
        return f"n{len(names) - 1}"

    def variable_of(cell: Any) -> str:
        cells.append(cell)
        return "left"

    condition = found.conditions(name_of, variable_of, {}, ())[-1]
    looks: list[float] = []
    asked = list(names)[-1]
    ask = names[asked]

    def look() -> bool:
        looks.append(clock[0])
        return bool(ask())

    names[asked] = look

    def calls(count: int, seconds: float) -> int:
        """How many of them looked at the clock."""
        before = len(looks)
        for _ in range(count):
            clock[0] += seconds
            names["left"] = cells[0].cell_contents
            assert eval(condition, names)  # noqa: S307
            if names["left"] >= 0:
                cells[0].cell_contents = names["left"]
        return len(looks) - before

    assert calls(100, 1.0) == 100
    found.times[0] = float("inf")
    assert calls(100, 1.0) == 100
    assert calls(160, 1e-6) <= 12
    calls(16, 1.0)
    assert calls(100, 1.0) == 100


class Slotted:
    """An object that need not have its attribute."""

    __slots__ = ("scale",)

    def __init__(self, *scale: float) -> None:
        for number in scale:
            self.scale = number


def test_07_objects_of_one_class() -> None:
    """Are noted together: some lack the attribute, lie in several places, or are looked after elsewhere."""
    parts = [Slotted(k + 0.5) for k in range(20)]
    parts += [Slotted(), parts[3]]
    owners = [Part(), Part()]
    owners[1].scale = 4.0

    def step(x: float) -> float:
        return sum(part.scale for part in parts) + sum(owner.scale for owner in owners) * x

    found = Guard(Survey(step), {(id(parts[5]), "scale"), (id(vars(owners[1])), "scale")})
    assert difference(found) == ""
    parts[5].scale, owners[1].scale = 6.0, 7.0
    assert difference(found) == ""
    changes: list[tuple[Any, Any, str]] = [
        (lambda: setattr(parts[6], "scale", 1.0), lambda: setattr(parts[6], "scale", 6.5), "parts[6].scale was 6.5"),
        (lambda: setattr(parts[20], "scale", 1.0), lambda: delattr(parts[20], "scale"), "parts[20].scale has been set"),
        (lambda: delattr(parts[0], "scale"), lambda: setattr(parts[0], "scale", 0.5), "parts[0].scale is gone"),
        (lambda: setattr(owners[0], "scale", 1.0), lambda: delattr(owners[0], "scale"), "owners[0].scale has been set"),
    ]
    for change, undo, text in changes:
        change()
        assert text in difference(found)
        undo()
        assert difference(found) == ""


def test_07_elements_that_each_call_replaces() -> None:
    """They may be others; the rest of their list, and lists beside it, are watched."""
    replaced, kept = [Part() for _ in range(3)], [Part() for _ in range(3)]
    found = Guard(Survey(around(replaced, kept)), replaced=[(id(replaced), 1)])
    replaced[1] = Part()
    assert difference(found) == ""
    for parts, place in ((replaced, 0), (replaced, 2), (kept, 1)):
        before, parts[place] = parts[place], Part()
        assert difference(found) != ""
        parts[place] = before
        assert difference(found) == ""


def comparisons(monkeypatch: pytest.MonkeyPatch, took: Any, calls: int, parts: int = 500) -> list[int]:
    """The calls, a second apart, in which all is compared, where that takes so many seconds each time."""
    clock, found, made = [0.0], settled(around([Part() for _ in range(parts)], [])), []
    hold = found._rarely.hold

    def slowly() -> bool:
        made.append(number)
        clock[0] += took(len(made))
        return hold()

    monkeypatch.setattr(guard, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(found._rarely, "hold", slowly)
    for number in range(2, calls + 2):  # noqa: B007 - which `slowly` notes
        clock[0] += 1.0
        assert found.difference() == ""
    return made


def test_08_much_is_compared_in_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first three after the trace, and then in a fiftieth of the time."""
    made = comparisons(monkeypatch, lambda _: 1.5, 400)
    assert made[:4] == [2, 3, 4, 79]
    assert {later - earlier for earlier, later in zip(made[2:], made[3:])} == {75}


def test_09_an_interruption_is_no_reason_for_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison that takes a thousand times as long counts as one that takes twice as long."""
    made = comparisons(monkeypatch, lambda number: 1000.0 if number == 4 else 1.0, 300)
    assert made[:6] == [2, 3, 4, 54, 154, 204]


def test_10_what_is_replaced_by_its_equal_takes_no_time_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects whose attributes are replaced by equal ones before each call are looked through no more often."""
    parts = [Part() for _ in range(500)]
    for part in parts:
        vars(part)["scale"] = " text".strip()
    found = settled(lambda x: sum(part.scale for part in parts) * x)
    clock, looked = [0.0], []
    difference_in_all = found._rarely.difference

    def slowly() -> str:
        looked.append(number)
        clock[0] += 1.0
        return difference_in_all()

    monkeypatch.setattr(guard, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(found._rarely, "difference", slowly)
    for number in range(2, 250):  # noqa: B007 - which `slowly` notes
        clock[0] += 1.0
        for part in parts:
            vars(part)["scale"] = " text".strip()  # PyPy's equal floats are the same object
        assert found.difference() == ""
    assert looked == [2, 3, 4, 54, 104, 154, 204]


def test_11_little_is_compared_in_each_call_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thousand calls, or for twenty milliseconds; an interruption counts as twice a comparison."""
    monkeypatch.setattr(guard, "_PAUSE", 1.05e7)
    monkeypatch.setattr(guard, "_FIRST_SECONDS", 0.02)  # tests have no such limit otherwise
    made = comparisons(monkeypatch, lambda number: 5.0 if number == 7 else 1e-6, 1500, parts=20)
    assert made[:1001] == [*range(2, 1002), 1012]
    made = comparisons(monkeypatch, lambda _: 1.9e-3, 100, parts=20)
    assert made == list(range(2, 13))


def test_12_data_of_a_class_that_an_object_would_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attribute that an object gets in place of that of its class is noticed by the next call."""
    monkeypatch.setattr(guard, "_FIRST_CALLS", 0)
    monkeypatch.setattr(guard, "_PAUSE", 1e9)  # on machines of any speed
    part, others = Part(), [Part() for _ in range(500)]
    found = settled(lambda x: sum(other.scale for other in others) * part.scale * x)
    alone = settled(lambda x: part.scale * x)
    assert [found.difference(), alone.difference(), found.difference(), alone.difference()] == [""] * 4
    part.scale = 3.0
    assert "scale has been set" in alone.difference()
    assert found.difference() == ""  # one of many


def test_13_guards_of_a_step_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they spend a fiftieth of the time, and each looks as often as the others."""
    pace, clock, looked = guard.Pace(), [0.0], []
    found = [Guard(Survey(around([Part() for _ in range(500)], [])), (), pace) for _ in range(4)]

    def slowly(number: int) -> bool:
        looked.append(number)
        clock[0] += 1.0
        return True

    monkeypatch.setattr(guard, "perf_counter", lambda: clock[0])
    for number, one in enumerate(found):
        monkeypatch.setattr(one._rarely, "hold", functools.partial(slowly, number))
    for call in range(4 * 3 + 2500):
        clock[0] += 0.5
        assert found[call % 4].difference() == ""
    later = looked[4 * 3 :]
    assert 20 < len(later) <= 2500 * 0.5 / 50 + 1
    assert all(sorted(later[k : k + 4]) == [0, 1, 2, 3] for k in range(0, len(later) - 3, 4))
