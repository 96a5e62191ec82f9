"""Random programs about what a step is given: nested objects of many classes, which it reads, changes and keeps.

    python tests/fuzz/arguments.py --programs 300 --seed 1 --keep DIR

1. `program(seed)` writes the source of a module: `made(k)` makes the arguments of call `k` (slotted and frozen
   dataclasses, records, lists, dicts, floats and ints of classes of their own, nested in each other), `step` uses parts
   of them by paths that fit.
2. The module runs twice, compiled and undecorated, in dictionaries of its own.  Arguments are new at each call, or the
   same, or both in turn; the program changes some of what it has given away.
3. After every call all that can be reached (the model, all arguments and results so far) must be the same: numbers bit
   for bit, types, and which of the objects are one.  What is plain Python with a warning is no failure.
"""

from __future__ import annotations

import contextlib
import linecache
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mgjit
from mgjit.engine.leaks import is_traced

_HEAD = """\
import collections, dataclasses, typing
class Number(float):
    def twice(self): return self * 2.0
class Scaled(float):
    def __mul__(self, other): return float(self) * other * 0.5
class Count(int):
    def more(self): return self + 1
class Row(list):
    def total(self): return sum(self)
class Doubled(list):
    def __getitem__(self, k): return list.__getitem__(self, k) * 2
class Table(dict):
    def first(self): return next(iter(self.values()))
class Default(dict):
    def __missing__(self, key): return 0.25
Pair = collections.namedtuple("Pair", "a b")
class Typed(typing.NamedTuple):
    a: typing.Any
    b: typing.Any = 0.5
@dataclasses.dataclass
class Plain:
    a: typing.Any
    b: typing.Any = 0.5
    def both(self): return self.a, self.b
@dataclasses.dataclass(frozen=True)
class Frozen:
    a: typing.Any
    b: typing.Any = 0.5
@dataclasses.dataclass
class Slotted:
    __slots__ = ("a", "b")
    a: typing.Any
    b: typing.Any
class Slots:
    __slots__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
class Bag:
    def __init__(self, a, b): self.a, self.b = a, b
    @property
    def half(self): return 0.5
"""
_RECORDS = ("Pair", "Typed", "Plain", "Frozen", "Slotted", "Slots", "Bag")
_FIXED = ("Pair", "Typed", "Frozen")
_LISTS, _DICTS = ("list", "Row", "Doubled"), ("dict", "Table", "Default")
_NUMBERS = (*["float"] * 9, "int", "int", "Number", "Scaled", "Count")


class Part(NamedTuple):
    """A part of an argument: the class, and its parts by the text that leads to them."""

    kind: str
    parts: tuple[tuple[str, Part], ...]

    def made(self, draw: random.Random) -> str:
        """The expression that makes it in call `k`."""
        inner = [part.made(draw) for _, part in self.parts]
        if not self.parts:
            number = draw.choice(["0.5 * k", "k - 1.5", "0.25", "-0.75"])
            whole = draw.choice(["k", "2", "k % 3"])
            return {"float": f"({number})", "int": f"({whole})", "Count": f"Count({whole})"}.get(
                self.kind, f"{self.kind}({number})"
            )
        if self.kind in _DICTS:
            pairs = ", ".join(f"'{'uvw'[k]}': {text}" for k, text in enumerate(inner))
            return f"{{{pairs}}}" if self.kind == "dict" else f"{self.kind}({{{pairs}}})"
        if self.kind in _RECORDS:
            return f"{self.kind}({', '.join(inner)})"
        if self.kind == "tuple":
            return f"({', '.join(inner)},)"
        return f"[{', '.join(inner)}]" if self.kind == "list" else f"{self.kind}([{', '.join(inner)}])"

    def walk(self, path: str) -> Iterator[tuple[str, Part]]:
        """All parts, with the text that leads to each."""
        yield path, self
        for step, part in self.parts:
            yield from part.walk(path + step)


def _part(draw: random.Random, depth: int) -> Part:
    if depth == 0 or draw.random() < 0.15:
        return Part(draw.choice(_NUMBERS), ())
    kind = draw.choice((*_RECORDS, *_LISTS, "list", *_DICTS, "dict", "tuple"))
    count = 2 if kind in _RECORDS else draw.randrange(1, 4)
    same = _part(draw, depth - 1) if draw.random() < 0.5 else None
    parts = [same or _part(draw, depth - 1) for _ in range(count)]
    if kind == "Doubled":  # whose elements are multiplied
        parts = [Part(draw.choice(_NUMBERS), ()) for _ in range(count)]
    if kind not in (*_RECORDS, *_DICTS) and {part.kind for part in parts} == {"int", "float"}:
        parts = [parts[0]] * count  # a step sees floats in place of ints beside floats
    form = ".{}" if kind in _RECORDS else "['{}']" if kind in _DICTS else "[{}]"
    names = "ab" if kind in _RECORDS else "uvw" if kind in _DICTS else "012"
    return Part(kind, tuple((form.format(name), part) for name, part in zip(names, parts)))


def _statements(draw: random.Random, given: list[tuple[str, Part]]) -> list[str]:
    """What the step does with its arguments."""
    everything = [found for name, part in given for found in part.walk(name)]
    numbers = [path for path, part in everything if not part.parts]
    containers = [(path, part) for path, part in everything if part.parts]
    made = [f"y = y + {path} * model.w" for path in draw.sample(numbers, min(len(numbers), 3))]
    for path, part in draw.sample(containers, min(len(containers), draw.randrange(4))):
        flat = all(not inner.parts for _, inner in part.parts)
        step, inner = draw.choice(part.parts)
        choices = [
            f"model.kept = {path}", f"cache['k'] = {path}", f"model.pair = ({path}, y)", f"found.append({path})",
            f"y = y + (1.0 if {path} is {draw.choice(containers)[0]} else 2.0)",
            f"y = y + (1.0 if isinstance({path}, (list, tuple)) else 2.0)",
            f"y = y + len(type({path}).__name__)", f"found.append(type({path}))",
        ]  # fmt: skip
        if part.kind not in (*_RECORDS, *_DICTS) and flat:
            choices += [f"for v in {path}: y = y + v", f"y = y + sum({path}) + len({path})", f"model.row = {path}"]
            choices += [f"model.row = [v * model.w for v in {path}]", f"found.append(list({path}))"] * 2
            choices += [f"model.row = {path}; y = y + model.row[0]", f"y = y + model.row[0]; model.row = {path}"]
        if part.kind == "Row" and flat:
            choices.append(f"y = y + {path}.total()")
        if part.kind in _DICTS:
            choices.append(f"for n, v in {path}.items(): y = y + len(n)")
        if part.kind not in (*_FIXED, "tuple"):
            if not inner.parts:
                choices += [f"{path}{step} = {path}{step} * 0.5 + y", f"{path}{step} += y"]
            choices.append(f"{path}{step} = model.w")
        if part.kind in _LISTS:
            choices.append(f"{path}.append(y)")
        made.append(draw.choice(choices))
    asked = draw.sample(numbers, 1)
    made += [f"y = y + (0.5 if {draw.choice(['type({}) is float', 'isinstance({}, int)'])} else 1.0)".format(asked[0])]
    draw.shuffle(made)
    return made


def program(seed: int) -> tuple[str, list[tuple[str, int]]]:
    """The source of a module, and for each call what is done before it, and the number that its arguments have."""
    draw = random.Random(seed)
    given = [(name, _part(draw, draw.randrange(1, 4))) for name in "xz"[: draw.randrange(1, 3)]]
    body = _statements(draw, given)
    containers = [path for name, part in given for path, inner in part.walk(name) if inner.parts]
    returned = [*draw.sample(containers, min(len(containers), draw.randrange(3))), "y"]
    names = ", ".join(name for name, _ in given)
    lines = [
        _HEAD, "model = Bag(0.0, 0.0)", "model.w, model.kept, model.pair, model.row = 0.5, None, None, [0.0, 0.0]",
        "cache = {'k': None}", "def made(k):", f"    return ({', '.join(part.made(draw) for _, part in given)},)",
        f"def step({names}):", "    y, found = 0.25, []", *(f"    {line}" for line in body),
        "    model.w = model.w * 0.875 + 0.125",
        f"    return {', '.join(returned)}, found",
    ]  # fmt: skip
    orders = [0, 1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 2, 0], [3, 4, 5, 3, 4, 6, 7, 8]
    changes = [
        f"{path}{step} = {3 if last.kind == 'int' else 1.5}" for name, part in given for path, inner in part.walk(name)
        for step, last in inner.parts if not last.parts and inner.kind not in (*_FIXED, "tuple")
    ]  # fmt: skip
    calls = [(draw.choice(changes) if changes and draw.random() < 0.3 else "", which) for which in draw.choice(orders)]
    return "\n".join(lines) + "\n", calls


def visible(roots: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """All that can be reached, with types; of each object its first path."""
    seen: dict[int, str] = {}
    found: list[tuple[str, Any]] = []

    def walk(thing: Any, path: str) -> None:
        if isinstance(thing, type):
            found.append((path, thing.__name__))
            return
        kind = type(thing).__name__
        if is_traced(thing):
            found.append((path, "TRACED"))
        elif thing is None or type(thing) in (int, float, str, bool):
            found.append((path, (kind, repr(thing))))
        elif id(thing) in seen:
            found.append((path, seen[id(thing)]))
        else:
            seen[id(thing)] = path
            found.append((path, (kind, float.__repr__(thing) if isinstance(thing, float) else "")))
            if isinstance(thing, int):
                found.append((path, int.__repr__(thing)))
            if isinstance(thing, dict):
                for key, part in dict.items(thing):
                    walk(part, f"{path}[{key!r}]")
            elif isinstance(thing, (list, tuple)):
                for k, part in enumerate(list.__iter__(thing) if isinstance(thing, list) else tuple.__iter__(thing)):
                    walk(part, f"{path}[{k}]")
            for name in [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())]:
                walk(getattr(thing, name, None), f"{path}.{name}")

    for name, root in roots:
        walk(root, name)
    return found


def fails(seed: int, **options: Any) -> str:
    """What is not as it should be; empty when all is."""
    source, calls = program(seed)
    spaces: list[dict[str, Any]] = []
    for way in ("plain", "compiled"):
        filename = f"<arguments {seed} {way}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        namespace: dict[str, Any] = {"__name__": f"arguments_{way}"}
        exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - our own text
        spaces.append(namespace)
    steps = [spaces[0]["step"], mgjit.compile(spaces[1]["step"], background=False, **options)]
    past: list[list[Any]] = [[], []]
    kept: list[dict[int, Any]] = [{}, {}]
    names = source[source.index("def step(") :].partition("(")[2].partition(")")[0].split(", ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (change, which) in enumerate(calls):
            seen = []
            for k, (namespace, step) in enumerate(zip(spaces, steps)):
                again = which in kept[k]
                given = kept[k].setdefault(which, namespace["made"](which))
                with contextlib.suppress(LookupError, TypeError, AttributeError):  # the step may have changed its form
                    exec(change if again else "pass", {**namespace, **dict(zip(names, given))})  # noqa: S102
                try:
                    result = step(*given)
                except Exception as error:
                    result = f"{type(error).__name__}: {error}"
                past[k].append((given, result))
                roots = [("model", namespace["model"]), ("cache", namespace["cache"]), ("past", past[k])]
                seen.append(visible(roots))
            if seen[0] != seen[1]:
                pairs = [(a, b) for a, b in zip(*seen) if a != b] or [("of other lengths", "")]
                return f"call {number}: {pairs[0][0]} in plain Python, {pairs[0][1]} in the compiled step"
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.fuzz.command import hunt

    def source(seed: int) -> str:
        """The program, and what is done before each call."""
        text, calls = program(seed)
        return f"{text}\n# {calls}\n"

    sys.exit(hunt(__doc__, fails, source))
