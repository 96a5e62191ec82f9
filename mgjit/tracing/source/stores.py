"""What the sides of conditions assign to attributes, elements and memory: put back behind each, selected behind both.

Python runs one side, a trace both.  A number that one of them leaves where a number was is a number afterwards, whoever
is taken: `p.grad = new` becomes `p.grad = new if test else old`.

1. Rewritten sides assign through `store_attribute` and `store_element`, which note what was there at first.
2. What functions assign that a side calls is seen when all that it can reach is compared (untaken.py).
3. What is memory of Values and States is seen in the records: after a side, a copy is taken of what it has left there.
4. Behind each side everything is what it was.  Behind both, each place gets what is selected.

Anything else than numbers in places that exist cannot be selected: the call is plain.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, NamedTuple, NoReturn

from ...engine.leaks import PlainCall, is_numeric, is_traced
from ...engine.state import State
from ...engine.value import Value
from ...errors import user_location
from ...ir import opcodes as ops
from ...memory.live import field_of, original_class, slot
from ..record.counters import Counted
from ..record.current import current_recorder
from ..record.recorder import Recorder
from ..surroundings.places import Attribute, ClassAttribute, Entry, Place

_TEMPORARY = "__mgjit_stored_{}__"
Select = Callable[[Any, Any, Any], Any]
_OF_OBJECTS: Any = object.__setattr__


class Change(NamedTuple):
    """A place, what was there before a side, and behind it."""

    place: Place
    before: Any
    after: Any


class Changes(NamedTuple):
    """What one side has changed: places by their keys, and by leaf the operands of what it has left in memory."""

    places: dict[Any, Change]
    memory: dict[int, int]


NO_CHANGES = Changes({}, {})


def is_number(thing: Any) -> bool:
    """Whether something can be selected as a number."""
    return is_numeric(type(thing)) or type(thing) is Counted


# ---- 1: while a side runs ---------------------------------------------------------------------------------------


class Noted:
    """What was where rewritten code assigns, while a side runs.

    Args:
        frame: the identity of the frame that runs the side; functions that it calls may assign to what they have made.
    """

    def __init__(self, frame: int) -> None:
        self.frame = frame
        self._before: dict[Any, tuple[Place, Any]] = {}

    def note(self, place: Place) -> None:
        """Something is about to be assigned.

        Raises:
            PlainCall: there is nothing yet.
        """
        if place.key not in self._before:
            if place.is_empty():
                refuse(f"{place.describe()}, which is not there yet")
            self._before[place.key] = place, place.read()

    def put_back(self) -> dict[Any, Change]:
        """Let everything be what it was; returns what has changed."""
        changed = {}
        for key, (place, before) in self._before.items():
            after = place.read()
            if after is not before:
                changed[key] = Change(place, before, after)
                place.write(before)
        return changed


def store_attribute(content: Any, thing: Any, name: str, updates: bool = False) -> None:
    """`thing.name = content` in a side; `updates`: it is what `+=` has made of what was there."""
    noted = _noted(sys._getframe(1))
    if noted is not None and not isinstance(thing, Value):
        place = _attribute(thing, name)
        noted.note(place)
        if updates and not is_number(content) and content is place.read():
            refuse(f"{place.describe()} in place")
    setattr(thing, name, content)


def store_element(content: Any, container: Any, index: Any, updates: bool = False) -> None:
    """`container[index] = content` in a side."""
    noted = _noted(sys._getframe(1))
    if noted is not None and not isinstance(container, State):
        if isinstance(index, slice) and type(container) is list:
            content = list(content)
            positions = range(*index.indices(len(container)))
            if len(content) != len(positions):
                refuse("a list of another length")
            places = [Entry(container, k, "an element of a list") for k in positions]
        elif is_traced(index) and type(container) is list and isinstance(index, int):
            traced: Any = index
            traced._check_index(len(container))
            for k, old in enumerate(container):
                test = traced == k
                noted.note(Entry(container, k, "an element of a list"))
                container[k] = test._select(test, content, old)
            return
        else:
            places = [_element(container, index)]
        for place in places:
            noted.note(place)
        if updates and not is_number(content) and content is places[0].read():
            refuse(f"{places[0].describe()} in place")
    container[index] = content


def _noted(frame: FrameType) -> Noted | None:
    recorder = current_recorder()
    noted = recorder.noted[-1] if recorder is not None and recorder.noted else None
    return noted if noted is not None and noted.frame == id(frame) else None


def _attribute(thing: Any, name: str) -> Place:
    """The place of an attribute, if assigning it does nothing else."""
    if isinstance(thing, ModuleType):
        return Entry(vars(thing), name, f"the variable {name}")
    if isinstance(thing, type):
        if type(thing).__setattr__ is type.__setattr__ and not hasattr(type(thing), name):
            return ClassAttribute(thing, name)
        return refuse(f"an attribute of the class {thing.__name__}, which does more")
    kind: Any = original_class(type(thing))
    member = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    is_plain = member is None or member is slot(kind, name) or not hasattr(type(member), "__set__")
    if not is_plain or kind.__setattr__ is not _OF_OBJECTS:
        refuse(f"{kind.__name__}.{name}, which runs a function")
    try:
        return Attribute(thing, field_of(kind, name))
    except (AttributeError, TypeError):
        return refuse(f"{kind.__name__}.{name}")


def _element(container: Any, index: Any) -> Entry:
    if type(container) is list and type(index) is int and -len(container) <= index < len(container):
        return Entry(container, index % len(container), "an element of a list")
    if type(container) is dict and isinstance(index, (str, int, float, tuple)) and index in container:
        return Entry(container, index, f"the entry {index!r}")
    return refuse(f"an element of a {type(container).__name__} that cannot be selected")


def refuse(what: str) -> NoReturn:
    """Let the call be plain."""
    raise PlainCall(f"{user_location()}: a side of a condition on a traced number assigns {what}")


# ---- 3: memory ----------------------------------------------------------------------------------------------------


def put_back_memory(recorder: Recorder, targets: Iterator[int], start: int) -> dict[int, int]:
    """Record that memory gets the numbers that were there at a record; returns copies of what is there, by leaf."""
    found = dict.fromkeys(targets, 0)
    for target in found:
        found[target] = recorder.emit(ops.COPY | ops.NUMBER, target, ops.NO_OPERAND)
    for target in found:
        recorder.store(target, recorder.late_read(target, start))
    return found


# ---- 4: behind both -------------------------------------------------------------------------------------------------


def select_changes(test: Any, first: Changes, second: Changes, select: Select) -> None:
    """Let each place that a side has changed have what is selected.

    Args:
        first: of the side that is taken where the test holds.

    Raises:
        PlainCall: it is no number.
    """
    recorder = test._recorder
    outer = recorder.noted[-1] if recorder.noted else None
    for key in {**first.places, **second.places}:
        place, before, _ = changed = first.places.get(key) or second.places[key]
        one, other = (side.places.get(key, Change(place, before, before)).after for side in (first, second))
        if not (is_number(one) and is_number(other)):
            refuse(f"{changed.place.describe()}, and not a number in place of another one")
        if outer is not None:
            outer.note(place)
        place.write(one if one is other else select(test, one, other))
    targets = {**first.memory, **second.memory}
    numbers = [
        (target, *(recorder.number_of(side.memory.get(target, target)) for side in (first, second)))
        for target in targets
    ]
    for target, one, other in numbers:
        recorder.store(target, select(test, one, other)._leaf)


# ---- the rewriting ----------------------------------------------------------------------------------------------


class StoresNoted(ast.NodeTransformer):
    """Lets the statements of a side assign to attributes and elements through the functions above.

    Args:
        call: makes the call of a helper.
    """

    def __init__(self, call: Callable[..., ast.expr]) -> None:
        self._call, self._count = call, 0

    def visit_Assign(self, node: Any) -> Any:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(map(is_of_names, targets)):
            return node
        stores: list[tuple[str, Any]] = []
        named = [self._named(target, stores) for target in targets]
        assign = ast.copy_location(ast.Assign(named, node.value), node)
        return self._made(node, [assign, *(self._store(node, name, target) for name, target in stores)], stores)

    visit_AnnAssign = visit_Assign

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Name):
            return node
        names = [self._name() for _ in range(3)]
        holder, index = (ast.copy_location(ast.Name(name, ast.Load()), node) for name in names[:2])
        begin: list[ast.stmt] = [ast.Assign([ast.Name(names[0], ast.Store())], target.value)]
        place: Any
        if isinstance(target, ast.Attribute):
            place = ast.Attribute(holder, target.attr, ast.Load())
        else:
            begin.append(ast.Assign([ast.Name(names[1], ast.Store())], target.slice))
            place = ast.Subscript(holder, index, ast.Load())
        made = [
            *begin,
            ast.Assign([ast.Name(names[2], ast.Store())], place),
            ast.AugAssign(ast.Name(names[2], ast.Store()), node.op, node.value),
            self._store(node, names[2], place, True),
        ]
        used = names if isinstance(target, ast.Subscript) else [names[0], names[2]]
        return self._made(node, made, [(name, None) for name in used])

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_Lambda = visit_ClassDef = visit_FunctionDef

    def _name(self) -> str:
        self._count += 1
        return _TEMPORARY.format(self._count)

    def _named(self, target: Any, stores: list[tuple[str, Any]]) -> Any:
        """A target with names in place of attributes and elements."""
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self._named(part, stores) for part in target.elts]
            return ast.copy_location(type(target)(parts, ast.Store()), target)
        if isinstance(target, ast.Name):
            return target
        stores.append((self._name(), target))
        return ast.copy_location(ast.Name(stores[-1][0], ast.Store()), target)

    def _store(self, node: Any, name: str, target: Any, updates: bool = False) -> ast.stmt:
        content = ast.Name(name, ast.Load())
        more = [ast.Constant(True)] if updates else []
        if isinstance(target, ast.Attribute):
            call = self._call("store_attribute", node, content, target.value, ast.Constant(target.attr), *more)
        else:
            index = target.slice
            if isinstance(index, ast.Slice):
                bounds = [bound or ast.Constant(None) for bound in (index.lower, index.upper, index.step)]
                index = self._call("sliced", node, *bounds)
                index.is_of_store = True  # type: ignore[attr-defined]
            call = self._call("store_element", node, content, target.value, index, *more)
        call.is_of_store = True  # type: ignore[attr-defined]
        return ast.Expr(call)

    def _made(self, node: Any, made: list[Any], stores: list[tuple[str, Any]]) -> list[ast.stmt]:
        made.append(ast.Delete([ast.Name(name, ast.Del()) for name, _ in stores]))
        for statement in made:
            statement.is_of_store = True  # which what looks at sides knows
            for part in ast.walk(statement):
                if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        return made


def is_of_names(target: ast.expr) -> bool:
    """Whether names alone are assigned."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(is_of_names, target.elts))
    return isinstance(target, ast.Name)


def can_be_noted(target: ast.expr, updates: bool = False) -> bool:
    """Whether `StoresNoted` knows how to assign this."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(can_be_noted, target.elts))
    if isinstance(target, ast.Attribute):
        return not target.attr.startswith("__")  # which the class may give another name
    if isinstance(target, ast.Subscript):
        slices = [part for part in ast.walk(target.slice) if isinstance(part, ast.Slice)]
        return not slices or (slices == [target.slice] and not updates)
    return isinstance(target, ast.Name)
