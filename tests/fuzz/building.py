"""Random programs that keep what they build: in attributes, entries, variables and lists, under one name or several.

    python tests/fuzz/building.py --programs 300 --seed 1 --keep DIR

1. `program(seed)` writes the source of a module: objects, lists and dicts in which a step leaves tuples, lists, dicts
   and objects of what it has computed and was given, and which it reads, before or after.
2. The module runs twice, compiled and undecorated.  Between calls, the program changes some of it, and keeps some.
3. After every call, all that can be seen must be equal, bit for bit and type for type, and so must be which names mean
   one object: also of what was there before the call.
"""

from __future__ import annotations

import contextlib
import linecache
import random
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import mgjit

_HEAD = """\
import collections, dataclasses, math
@dataclasses.dataclass
class Cache:
    x: object
    h: object
Record = collections.namedtuple('Record', 'x h')
class Thing:
    def __init__(self, x, h): self.x, self.h = x, h
class Slots:
    __slots__ = ('a', 'b')
class Net:
    shared = None
    def __init__(self):
        self.w, self.rows = [0.5, -0.25, 1.5], [[0.5, 1.0], [1.5, -0.5]]
        self.a = self.b = self.c = None
        self.acts, self.items, self.table, self.n, self.total = [], [1.0], {'a': None, 'b': 0.5}, 0, 0.0
        self.layers = [None, [0.5, 0.25]]
    def forward(self, x):
        self.x = x
        self.h = [w * v for w, v in zip(self.w, x)]
        return self.h
    def reset(self): self.acts = []
def amount(thing):
    if isinstance(thing, (int, float)): return thing * 0.5
    if isinstance(thing, dict): return sum(amount(part) for part in thing.values())
    if isinstance(thing, (list, tuple)): return sum(amount(part) for part in thing)
    if thing is None or isinstance(thing, str): return 0.25
    return amount(thing.x) + amount(thing.h)
n, slots, kept, pair, glob = Net(), Slots(), [0.5], [[1.0], [2.0]], None
slots.a = slots.b = None
"""
_PLACES = (
    "n.a", "n.b", "n.c", "n.acts", "n.h", "n.x", "n.table['a']", "n.table['b']", "n.layers[0]", "n.layers[1]",
    "n.items",
    "slots.a", "slots.b", "glob", "kept", "pair[0]", "n.rows[1]", "n.rows", "n.w", "Net.shared", "n.total", "n.n",
)  # fmt: skip
_PARTS = (
    "x", "h", "t", "x[0]", "h[1]", "1.5", "2", "None", "True", "'text'", "(x, h)", "[x, h]", "[x]", "[h, h]", "list(x)",
    "h[:]", "{'x': x, 'h': h}", "{0: t}", "[t]", "[t, 1]", "[]", "()", "(t, 2)", "(len(x), 2)", "Cache(x, h)",
    "Record(x, [t])", "Thing(t, x[1])", "Thing(x, h)", "[[w * t for w in h] for _ in range(2)]", "tuple(h)",
    "[0.0] * 3", "[Cache(v, t) for v in x]", "t > 0.5", "n.w", "n.forward(x)", "n.h", "[w + 0.1 * t for w in n.w]",
    "[[w + t for w in row] for row in n.rows]", "math.tanh(t)", "n.n + 1", "n.items", "int(x[0] > 0)",
)  # fmt: skip
_STATEMENTS = (
    "{p} = {v}", "{p} = {v}", "{p} = {v}", "{p} = {q} = {v}", "{p} = h; {q} = h", "{p} = []; {p}.append({v})",
    "{p}.clear(); {p}.append({v}); {p}.append(t)", "{p} = {q}", "{p} = ({q}, {v})", "{p} = [{q}, {v}]", "{p}[0] = {v}",
    "{p}[0] = {v}; {p}[1] = {v}", "h = {v} if type({v}) is list and len({v}) == 3 else h", "n.forward(x)", "n.reset()",
    "n.acts.append({v})", "t = t + amount({p})", "t = t + amount({p})", "t = t + (1.0 if {p} is None else 0.5)",
    "t = t + (1.0 if {p} is not None and {p} is {q} else 0.5)", "t = t + len({p})", "t = t + isinstance({p}, list)",
    "t = t + ({p} == {q})", "t = t + ({p} is h)", "t = t + {p}[0]", "t = t + {p}[-1][0]", "t = t + sum({p})",
    "for k in range(3): n.w[k] -= 0.1 * h[k] * t", "n.n += 1", "n.total += t", "{p} = {v}; t = t + amount({p})",
    "{p} = {v}; t = t + amount({p})", "{p} = {v}; {p} = {v}", "n.table.clear(); n.table['a'] = {v}; n.table['b'] = t",
    "{p} = {v}\n    for k in range(len({p})): {p}[k] = h[0]", "z = {p}; {p} = {v}; t = t + amount(z)",
    "t = t + (0.5 if {p} else 1.5)", "t = t + hasattr(n, 'new'); n.new = {v}", "{p}.append({v}); t = t + {p}.pop()[0]",
    "{p} = {p} + [t]", "{p} += [t]", "if t > 0.5: {p} = t", "{p} = {v}; {q} = [{p}, {p}]",
)  # fmt: skip
#: What the program does between two calls.
_BETWEEN = (
    "{p} = None", "{p} = [0.5, 0.25]", "{p} = {q}", "held.append({p})", "held.append({p})", "{p} = [9.0] * 3",
    "{p}[0] = 7.0", "{p}.append(3.0)", "n.w[0] = 0.75", "{p} = held[-1] if held else None", "{p} = (1.0, [2.0])",
)  # fmt: skip
#: What a statement may raise, which ends a program.
_RAISED = (TypeError, LookupError, AttributeError, NameError, ValueError, RecursionError)


def program(seed: int) -> str:
    """The source of a module."""
    draw = random.Random(seed)
    places = [draw.choice(_PLACES) for _ in range(draw.randrange(1, 4))]

    def filled(text: str) -> str:
        for name in ("{p}", "{q}", "{v}"):
            while name in text:
                kind = places if name != "{v}" else (*_PARTS, *(places if draw.random() < 0.1 else ()))
                chosen = draw.choice(kind)
                text = text.replace(name, chosen) if name != "{v}" else text.replace(name, chosen, 1)
        return text

    lines = [filled(draw.choice(_STATEMENTS)) for _ in range(draw.randrange(1, 7))]
    body = "".join(f"    {line}\n" for line in lines)
    returned = draw.choice(("t", "t", "(t, h)", filled("(t, {p})"), "h"))
    between = "".join(f"    if k == {k}: {filled(text)}\n" for k, text in enumerate(draw.choices(_BETWEEN, k=4)))
    names = "    global glob, kept, pair\n"
    return (
        f"{_HEAD}def step(x):\n{names}    h = [v * 0.5 + w for v, w in zip(x, n.w)]\n    t = sum(h)\n{body}"
        f"    return {returned}\ndef between(k, held):\n{names}{between or '    pass'}\n"
    )


def looked_at(thing: Any, met: dict[int, int]) -> Any:
    """What can be seen of an object, and which names mean it."""
    if thing is None or isinstance(thing, (int, float, str)):
        return type(thing).__name__, repr(thing)
    if id(thing) in met:
        return "again", met[id(thing)]
    met[id(thing)] = len(met)
    if isinstance(thing, dict):
        return [(repr(name), looked_at(part, met)) for name, part in thing.items()]
    if isinstance(thing, (list, tuple)):
        return type(thing).__name__, [looked_at(part, met) for part in thing]
    own = {name: getattr(thing, name) for name in thing.__slots__} if hasattr(thing, "__slots__") else vars(thing)
    return type(thing).__name__, [(name, looked_at(part, met)) for name, part in own.items()]


def visible(namespace: dict[str, Any], *others: Any) -> str:
    """Everything that the module's variables show."""
    found = [namespace.get(name, "gone") for name in ("n", "slots", "kept", "pair", "glob")]
    return repr(looked_at([*found, vars(namespace["Net"]).get("shared", "gone"), *others], {}))


def loaded(seed: int, way: str) -> dict[str, Any]:
    """The variables of the module."""
    source, filename = program(seed), f"<building {seed} {way}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"building_{way}"}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)  # noqa: S102 - our own text
    return namespace


def change(work: Any, number: int, held: list[Any]) -> None:
    """What the program does between two calls, if that is possible."""
    with contextlib.suppress(*_RAISED):
        work(number, held)


def fails(seed: int, calls: int = 14, counts: Counter[str] | None = None, **options: Any) -> str:
    """What is not as it should be; empty when all is.

    Args:
        counts: takes how many programs were compiled to the end, and why not.
    """
    plain, compiled = loaded(seed, "plain"), loaded(seed, "compiled")
    step = mgjit.compile(compiled["step"], background=False, **options)
    draw = random.Random(seed)
    held: tuple[list[Any], list[Any]] = [], []
    given: list[list[float]] = [[0.5, -0.25, 1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(calls):
            if draw.random() < 0.8:
                given.append([draw.uniform(-1.0, 1.0) for _ in range(3 if draw.random() < 0.9 else 4)])
            xs = given[-1][:], given[-1][:]
            try:
                wanted = plain["step"](xs[0])
            except _RAISED:
                return ""
            try:
                found = step(xs[1])
                seen = visible(plain, xs[0], wanted, held[0]), visible(compiled, xs[1], found, held[1])
            except Exception as error:
                return f"call {number}({xs[0]!r}): {type(error).__name__}: {error}"
            if seen[0] != seen[1]:
                return f"call {number}({xs[0]!r}):\n  {seen[1]}\nnot\n  {seen[0]}"
            k = draw.randrange(12)
            change(plain["between"], k, held[0])
            change(compiled["between"], k, held[1])
    if counts is not None:
        counts[step.stats.last.made_by] += 1
        counts[step.stats.last.reason[:150].partition(": ")[2]] += 1
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.fuzz.command import hunt_and_count

    sys.exit(hunt_and_count(__doc__, fails, program))
