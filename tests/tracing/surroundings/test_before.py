"""surroundings/before.py: every kind of change is noticed, named, and undone."""

from __future__ import annotations

import collections
import functools
import importlib
import io
import sys
import types
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgjit.tracing.surroundings.survey import Survey

GLOBAL = 1.0


class Thing:
    """Something with attributes."""

    shared = 2.0
    pair: Any = ()

    def __init__(self) -> None:
        self.number, self.text = 1.0, "a"


class Slotted:
    """An attribute that need not be there."""

    __slots__ = ("number",)


def world() -> dict[str, Any]:
    module = types.ModuleType("settings")
    vars(module)["number"] = 1.0
    return {
        "list": [1.0, 2.0], "dict": {"a": 1.0}, "set": {1, 2}, "deque": collections.deque([1.0, 2.0], maxlen=2),
        "ordered": collections.OrderedDict(a=1.0, b=2.0), "counter": collections.Counter("aab"),
        "thing": Thing(), "slotted": Slotted(), "space": types.SimpleNamespace(number=1.0),
        "array": array("d", [1.0, 2.0]), "bytes": bytearray(b"ab"), "user": collections.UserDict(a=1.0),
        "partial": functools.partial(max, default=1.0), "text": io.StringIO("a\nb\n", newline="\r\n"),
        "octets": io.BytesIO(b"ab"), "module": module,
    }  # fmt: skip


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an element of a list": lambda w: w["list"].__setitem__(0, 5.0),
    "a longer list": lambda w: w["list"].append(3.0),
    "a shorter list": lambda w: w["list"].clear(),
    "an order of a list": lambda w: w["list"].reverse(),
    "an entry": lambda w: w["dict"].__setitem__("a", 2.0),
    "a new entry": lambda w: w["dict"].__setitem__("b", 2.0),
    "an entry that goes": lambda w: w["dict"].pop("a"),
    "a member of a set": lambda w: w["set"].add(3),
    "a deque that rotates": lambda w: w["deque"].append(3.0),
    "an order of a dict": lambda w: w["ordered"].move_to_end("a"),
    "a count": lambda w: w["counter"].update("b"),
    "a text": lambda w: w["text"].write("c\n"),
    "a position in a text": lambda w: w["text"].read(1),
    "octets": lambda w: w["octets"].truncate(1),
    "an attribute": lambda w: setattr(w["thing"], "number", 2.0),
    "a new attribute": lambda w: setattr(w["thing"], "new", 2.0),
    "an attribute that goes": lambda w: delattr(w["thing"], "text"),
    "an attribute past __setattr__": lambda w: vars(w["thing"]).update(number=3.0),
    "a slot": lambda w: setattr(w["slotted"], "number", 2.0),
    "an attribute of a namespace": lambda w: setattr(w["space"], "number", 2.0),
    "an attribute of a class": lambda w: setattr(Thing, "shared", 3.0),
    "a new attribute of a class": lambda w: setattr(Thing, "new", 3.0),
    "a method": lambda w: setattr(Thing, "__init__", lambda self: None),
    "a number in an array": lambda w: w["array"].__setitem__(0, 5.0),
    "a longer array": lambda w: w["array"].append(5.0),
    "a byte": lambda w: w["bytes"].__setitem__(0, 1),
    "an entry of a UserDict": lambda w: w["user"].__setitem__("a", 2.0),
    "a keyword of a partial": lambda w: w["partial"].keywords.update(default=2.0),
    "an attribute of a module": lambda w: setattr(w["module"], "number", 2.0),
    "a new attribute of a module": lambda w: setattr(w["module"], "new", 2.0),
    "a global": lambda w: globals().update(GLOBAL=2.0),
    "a new global": lambda w: globals().update(NEW=2.0),
}


def snapshot(w: dict[str, Any]) -> Any:
    """All of it as text, order included."""
    things = {name: vars(one) if isinstance(one, (Thing, types.ModuleType)) else one for name, one in w.items()}
    things.update({name: things[name].__getstate__() for name in ("text", "octets")})
    slot = getattr(w["slotted"], "number", "nothing")
    shared = {name: repr(entry) for name, entry in vars(Thing).items() if name != "__doc__"}
    return repr({**things, "slotted": slot}), shared, GLOBAL, globals().get("NEW", "nothing")


@pytest.mark.parametrize("name", CHANGES)
def test_01_changes_are_noticed_and_undone(name: str) -> None:
    """One change, in the middle of everything."""
    w = world()

    def step(x: float) -> Any:
        return [x, w, GLOBAL, NEW, Thing.new, Thing.shared, w["thing"].number, w["thing"].text]  # type: ignore[name-defined, attr-defined]  # noqa: F821

    survey = Survey(step)
    before = snapshot(w)
    assert survey.before.changes() == []
    CHANGES[name](w)
    assert snapshot(w) != before
    found = survey.before.changes()
    assert found
    assert all(change.place.describe() for change in found)
    survey.before.restore()
    assert snapshot(w) == before
    assert survey.before.changes() == []
    survey.before.restore()
    assert snapshot(w) == before


def test_02_variables_of_enclosing_functions() -> None:
    """One that changes, one that had no value, and defaults."""
    number = 1.0
    if number > 2.0:
        empty = 3.0

    def step(x: float, given: Any = ([],)) -> Any:
        nonlocal number, empty
        number, empty = x, x
        return given

    survey = Survey(step)
    step(5.0)
    step.__defaults__ = (1.0,)
    assert {change.place.describe() for change in survey.before.changes()} == {
        "the variable number", "the variable empty", "the defaults of step",
    }  # fmt: skip
    survey.before.restore()
    assert number == 1.0
    with pytest.raises(NameError):
        empty  # noqa: B018
    assert step.__defaults__ == ([],) or step.__defaults__ == (([],),)


def test_03_attributes_of_functions() -> None:
    """Of the step itself and of those that it calls."""

    def helper() -> Any:
        return helper

    def step(x: float) -> Any:
        return helper().last, step.count  # type: ignore[attr-defined]

    helper.last = 1.0  # type: ignore[attr-defined]
    survey = Survey(step)
    helper.last = 2.0  # type: ignore[attr-defined]
    step.count = 1  # type: ignore[attr-defined]
    assert len(survey.before.changes()) == 2
    survey.before.restore()
    assert (helper.last, hasattr(step, "count")) == (1.0, False)  # type: ignore[attr-defined]


def test_04_all_is_undone_after_a_comparison_that_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the comparison before it has found no change."""
    thing = Thing()
    before = Survey(lambda: thing).before
    assert before.changes() == []
    thing.number = 5.0
    monkeypatch.setattr(before, "_changes_of_containers", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        before.changes()
    before.restore()
    assert thing.number == 1.0


def test_05_modules_that_were_loaded_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the user's that have a source are forgotten; what no import would make again stays."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("loaded_before", "loaded_since"):
        (tmp_path / f"{name}.py").write_text("count = 0\n", "utf-8")
    monkeypatch.setitem(sys.modules, "loaded_before", importlib.import_module("loaded_before"))
    before = Survey(lambda: None).before
    importlib.import_module("loaded_since")
    monkeypatch.setitem(sys.modules, "made_since", types.ModuleType("made_since"))
    assert before.unload_new_modules() == ["loaded_since"]
    assert "loaded_since" not in sys.modules
    assert {"loaded_before", "made_since"} <= sys.modules.keys()
