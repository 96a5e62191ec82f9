"""surroundings/survey.py: everything that a call can reach is met, once, and nothing else changes its meaning."""

from __future__ import annotations

import builtins
import collections
import gc
import random
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from mgjit.base.ffi import PYPY
from mgjit.tracing.surroundings.survey import Survey


class Thing:
    """Holds anything under a few names."""

    shared: Any = None


class Slotted:
    """The same in slots."""

    __slots__ = ("left", "right")


class Listed(list):  # type: ignore[type-arg]
    """A list with attributes."""


MAKERS: list[Callable[[list[Any]], Any]] = [
    list, tuple, collections.deque, collections.UserList,
    lambda parts: dict(enumerate(parts)), lambda parts: collections.OrderedDict(enumerate(parts)),
    lambda parts: collections.UserDict(enumerate(parts)), lambda parts: types.MappingProxyType(dict(enumerate(parts))),
    lambda parts: collections.ChainMap(dict(enumerate(parts)), {}), lambda parts: {id(p): p for p in parts}.values(),
    lambda parts: types.SimpleNamespace(left=parts), lambda parts: weakref.WeakValueDictionary(),
]  # fmt: skip


def graph(draw: random.Random, size: int) -> tuple[list[Any], list[Any]]:
    """A random object graph with cycles: its roots, and the `Thing`s in it."""
    things: list[Any] = [Thing() for _ in range(size)]
    made: list[Any] = list(things)
    for _ in range(3 * size):
        parts = draw.sample(made, draw.randrange(1, 4))
        kind = draw.randrange(len(MAKERS) + 3)
        if kind < len(MAKERS):
            made.append(MAKERS[kind](parts))
        elif kind == len(MAKERS):
            slotted = Slotted()
            slotted.left, slotted.right = parts[0], parts[-1]
            made.append(slotted)
        elif kind == len(MAKERS) + 1:
            listed: Any = Listed(parts)
            listed.extra = parts[0]
            made.append(listed)
        else:
            draw.choice(things).__dict__[f"a{draw.randrange(5)}"] = draw.choice(made)
    return draw.sample(made, 2), things


def reachable(roots: list[Any]) -> set[int]:
    """The identities of the `Thing`s that the collector sees from these roots, types and modules left out."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
    pending, seen, found = list(roots), {id(vars(module)) for module in modules}, set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType)):
            continue
        seen.add(id(thing))
        if type(thing) is Thing:
            found.add(id(thing))
        pending += gc.get_referents(thing)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_01_the_survey_is_closed(seed: int) -> None:
    """On random graphs of every container of the library it meets what a closure of the collector's view does."""
    roots, things = graph(random.Random(seed), 12)

    def step(x: float) -> Any:
        return [getattr(root, f"a{x}") for root in roots]  # any attribute may be meant

    survey = Survey(step)
    met = {id(thing) for thing in things if survey.knows(thing)}
    assert met >= reachable([roots])
    if not PYPY:  # where a weak container holds nothing that can be seen
        assert met == reachable([roots])
    assert len({id(thing) for group in survey.groups.values() for thing in group.things}) == sum(
        len(group.things) for group in survey.groups.values()
    )


def test_02_only_attributes_that_the_code_mentions() -> None:
    """Of the user's objects; what is reached by name alone, or by a computed name, is met."""
    thing: Any = Thing()
    thing.used, thing.unused = [Thing()], [Thing()]

    def step(x: float) -> Any:
        return len(thing.used) * x

    def computed(x: float) -> Any:
        return len(getattr(thing, f"un{'used'}")) * x

    assert Survey(step).knows(thing.used[0])
    assert not Survey(step).knows(thing.unused[0])
    assert Survey(computed).knows(thing.unused[0])


def test_03_names_that_come_late() -> None:
    """A function that is found last may name an attribute of an object that was found first."""
    thing: Any = Thing()
    thing.late = [Thing()]

    def reads(one: Any) -> Any:
        return one.late

    holder: Any = Thing()
    holder.call = reads

    def step(x: float) -> Any:
        return holder.call(thing)

    assert Survey(step).knows(thing.late[0])


def test_04_functions_of_the_user() -> None:
    """Methods that are named, operators, closures, properties, and what decorators keep."""
    called: list[str] = []

    def outer(function: Any) -> Any:
        def around(*given: Any) -> Any:
            return function(*given)

        return around

    class Layer:
        def __init__(self) -> None:
            self.weights = [1.0]

        def __call__(self, x: float) -> float:
            return self.forward(x)

        @outer
        def forward(self, x: float) -> float:
            return self.first * x

        @property
        def first(self) -> float:
            return self.weights[0]

        def save(self) -> None:
            called.append("saved")

    layer = Layer()
    names = {function.__name__ for function in Survey(lambda x: layer(x)).functions}  # noqa: PLW0108 - a step
    assert {"<lambda>", "__call__", "around", "forward", "first"} <= names
    assert "save" not in names


def test_05_long_lists_of_numbers_are_not_walked_into() -> None:
    """One comparison of types is all that they cost."""
    numbers = [float(k) for k in range(1000)]
    survey = Survey(lambda x: x * len(numbers))
    assert survey.knows(numbers)
    assert not any(survey.knows(number) for number in numbers)


def test_06_the_names_of_python_itself_are_no_data() -> None:
    """A namespace that is used as a dict names them, too; `sum` is another function while a trace is made."""
    space: dict[str, Any] = {"w": [1.0]}
    exec("def step(x): return x * names['w'][0]", space)  # noqa: S102 - code of this file
    space["names"] = space
    assert "__builtins__" in space
    survey = Survey(space["step"])
    held = [thing for _, thing, _, _ in survey.containers()]
    assert any(thing is space for thing in held)
    assert not any(thing is vars(builtins) for thing in held)


def test_07_an_attribute_or_a_string_spelled_like_a_variable_does_not_mean_it() -> None:
    """A program may keep the results of a step in variables called as its attributes; but a module has attributes."""
    text = "def spelled(x, thing): return {'scale': thing.scale * x}\n"
    text += "def meant(x): return scale * x\n"
    text += "def assigned(x):\n    global scale\n    scale = [x]\n"
    text += "def reached(x): return sys.modules[__name__].scale * x\n"
    space: dict[str, Any] = {"scale": [1.0], "__name__": "elsewhere", "sys": sys}
    exec(text, space)  # noqa: S102 - code of this file
    known = {name: Survey(space[name]).knows(space["scale"]) for name in ("spelled", "meant", "assigned", "reached")}
    assert known == {"spelled": False, "meant": True, "assigned": True, "reached": True}


class _Run:
    """Says in its `__init__` what it keeps."""

    def __init__(self) -> None:
        self.weights, self.losses, self.table = [1.0], [], {}  # type: ignore[var-annotated]
        self.limit = 1.0

    @property
    def limit(self) -> float:
        return float(_LIMITS[0])

    @limit.setter
    def limit(self, limit: float) -> None:
        _LIMITS[0] = limit

    def forward(self, x: float) -> float:
        return x * self.weights[0]

    def read(self, x: float) -> float:
        return x * len(self.losses)

    def named(self, x: float) -> float:
        return x * len(getattr(self, "table"))  # noqa: B009 - the name is a text here

    def again(self, x: float) -> float:
        return _Run().forward(x)


_LIMITS = [0.0]


def test_08_what_an_object_holds_where_code_only_assigns_in_init_is_not_walked_into() -> None:
    """A history of losses that the program appends to is nothing to a step that never reads it."""
    run = _Run()
    holders = {"weights": run.weights, "losses": run.losses, "table": run.table, "limits": _LIMITS}

    def known(step: Callable[..., Any]) -> set[str]:
        survey = Survey(step)
        return {name for name, thing in holders.items() if survey.knows(thing)}

    assert known(run.forward) == known(run.again) == {"weights", "limits"}  # a property is called by an assignment
    assert known(run.read) == {"losses", "limits"}
    assert known(run.named) == set(holders)


def test_09_a_pattern_reads_attributes_that_the_class_names() -> None:
    """`case Point(xs)` names them nowhere in its own code."""
    text = "class Point:\n    __match_args__ = ('xs',)\n    def __init__(self): self.xs = [1.0]\n"
    text += "def step(x):\n    return x, point\n"
    space: dict[str, Any] = {"__name__": "elsewhere"}
    exec(text, space)  # noqa: S102 - code of this file
    space["point"] = space["Point"]()
    assert Survey(space["step"]).knows(space["point"].xs)


class _Lazy(types.ModuleType):
    """Computes what is not there."""

    def __getattr__(self, name: str) -> Any:
        return 2 * self.base


def test_10_a_module_of_a_class_of_the_users() -> None:
    """Its methods are code of the step, and what they read is watched."""
    module = _Lazy("lazy")
    module.base = 0.25
    survey = Survey(lambda x: x * module.rate)
    assert "__getattr__" in survey.classes[_Lazy]
    assert "base" in survey.names


def test_11_all_places_of_a_bound_draw() -> None:
    """Where something else can be put there while a trace runs: it lies in the tuple as well."""
    thing: Any = Thing()
    thing.left = thing.right = random.Random(1).random
    listed = [thing.left]
    fixed = (thing.left,)
    survey = Survey(lambda x: x * thing.left() + thing.right() + listed[0]() + fixed[0]())
    assert len(survey.draws) == 3
    assert all(place.read() is thing.left for place in survey.draws)
