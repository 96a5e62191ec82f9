"""Random programs about what lies around a step: what it reads and keeps there, and what changes between its calls.

    python tests/fuzz/surroundings.py --programs 300 --seed 1 --keep DIR

1. `program(seed)` writes the source of a module: places of many kinds, methods, closures and helpers that read them, a
   step that reads some and assigns some, and statements that change some between two calls.
2. The module runs twice, compiled and undecorated, in dictionaries of its own.  The same statements are executed in
   both.
3. After every call the results and everything that is visible must be equal, bit for bit and type for type, and nothing
   traced may be left.  A typed error of mgjit before anything has changed is no failure; the program ends there.
"""

from __future__ import annotations

import linecache
import random
import sys
import warnings
from collections import deque
from pathlib import Path
from typing import Any

import mgjit
from mgjit.engine.leaks import is_traced
from mgjit.errors import MgjitError

_HEAD = """\
import collections, functools, types
class Node:
    def __init__(self, data, operands=(), grads=()):
        self.data, self.grad, self.operands, self.grads = data, 0.0, operands, grads
    def __add__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1.0, 1.0))
    def __mul__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))
    def backward(self):
        order, seen = [], set()
        def visit(node):
            if node not in seen:
                seen.add(node)
                for operand in node.operands: visit(operand)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, factor in zip(node.operands, node.grads): operand.grad += factor * node.grad
class Box:
    shared = 0.5
    def __init__(self, **fields): self.__dict__.update(fields)
    def __call__(self, x): return x * self.scale
    def method(self, x): return x + self.shift
    @property
    def prop(self): return self.scale + self.shift
"""

#: Kinds of places: what makes one; an expression that reads a float; statements of the step that assign one (`E` is a
#: float); statements between calls that change it (`R` is a number).
_PLACES: list[tuple[str, str, list[str], list[str]]] = [
    ("{n} = R", "{n}", ["global {n}; {n} = {n} * 0.5 + E"], ["{n} = R", "{n} = {n} + 1.0"]),
    (
        "{n} = [R, R, R]",
        "{n}[1]",
        ["{n}[0] = {n}[0] * 0.5 + E", "{n}[2] += E"],
        ["{n}[1] = R", "{n} = [R, R, R]", "{n}.reverse()"],
    ),
    (
        "{n} = {{'a': R, 'b': R}}",
        "{n}['a']",
        ["{n}['b'] = {n}['b'] * 0.5 + E", "{n}['new'] = E", "{n}.setdefault('l', 0.5)"],
        ["{n}['a'] = R", "{n} = {{'a': R, 'b': R}}", "{n}.pop('new', None)"],
    ),
    (
        "{n} = Box(scale=R, shift=R)",
        "{n}.scale",
        ["{n}.shift = {n}.shift * 0.5 + E", "{n}.last = E", "setattr({n}, 'm', E)"],
        ["{n}.scale = R", "{n}.shift = R", "{n} = Box(scale=R, shift=R)", "vars({n}).update(scale=R)"],
    ),
    ("{n} = Box(scale=R, shift=R)", "{n}(1.5) + {n}.method(0.5) + {n}.prop", [], ["{n}.scale = R", "{n}.shift = R"]),
    (
        "{n} = Box(scale=R, shift=R)",
        "{n}.shared + Box.shared",
        ["Box.shared = Box.shared * 0.5 + E"],
        ["Box.shared = R", "{n}.shared = R"],
    ),
    ("{n} = collections.deque([R, R])", "{n}[0]", [], ["{n}.append(R)", "{n}.rotate()", "{n}.appendleft(R)"]),
    (
        "{n} = collections.OrderedDict(a=R, b=R)",
        "list({n}.values())[0]",
        ["{n}['b'] = E"],
        ["{n}.move_to_end('a')", "{n}['a'] = R"],
    ),
    ("{n} = (R, [R, R])", "{n}[0] + {n}[1][0]", ["{n}[1][1] = E"], ["{n}[1][0] = R", "{n} = (R, [R, R])"]),
    (
        "def make_{n}(k):\n    def {n}(x):\n        return x * k\n    return {n}\n{n} = make_{n}(R)",
        "{n}(0.5)",
        [],
        ["{n} = make_{n}(R)"],
    ),
    ("{n}_k = R\ndef {n}(x): return x + {n}_k", "{n}(0.25)", [], ["{n}_k = R"]),
    ("def {n}(x, k=R): return x * k", "{n}(0.75)", [], ["{n}.__defaults__ = (R,)"]),
    ("def {n}(x): return x * {n}.k\n{n}.k = R", "{n}(1.25)", ["{n}.k = {n}.k * 0.5 + E"], ["{n}.k = R"]),
    (
        "{n} = functools.partial(lambda x, k: x * k, k=R)",
        "{n}(1.5)",
        [],
        ["{n} = functools.partial(lambda x, k: x - k, k=R)"],
    ),
    (
        "{n} = types.SimpleNamespace(a=R, n=0)",
        "{n}.a",
        ["{n}.n += 1; {n}.a = {n}.a + {n}.n * 0.125"],
        ["{n}.a = R", "{n}.n = 5"],
    ),
    (
        "{n} = [Node(float(R)) for _ in range(3)]",
        "{n}[0].data",
        [
            "for p in {n}: p.data -= 0.1 * E",
            "for p in {n}: p.grad = 0.0\n    (sum((p * E for p in {n}), Node(0.0)) * {n}[1]).backward()\n"
            "    for p in {n}: p.data -= 0.01 * p.grad",
        ],
        [
            "{n}[1].data = float(R)",
            "{n}.append(Node(float(R)))",
            "{n} = [Node(float(R)) for _ in range(3)]",
            "{n}[0].grad = float(R)",
            "{n}.reverse()",
        ],
    ),
    ("{n} = True", "(R if {n} else R)", [], ["{n} = not {n}"]),
    ("{n} = 'a'", "{{'a': R, 'b': R}}[{n}]", [], ["{n} = 'b'", "{n} = 'a'"]),
    ("{n} = 2", "sum(0.5 * k for k in range({n}))", [], ["{n} = 3", "{n} = 1"]),
]


def _number(draw: random.Random) -> str:
    return repr(draw.choice([0.0, -0.0, 1.0, 2, -3, draw.uniform(-2, 2), draw.uniform(-2, 2), draw.uniform(-2, 2)]))


def _filled(draw: random.Random, text: str, name: str) -> str:
    text = text.format(n=name)
    parts = text.split("R")
    made = parts[0]
    for before, after in zip(parts, parts[1:]):
        is_number = not (before[-1:].isalnum() or after[:1].isalnum())
        made += (_number(draw) if is_number else "R") + after
    return made


def program(seed: int) -> tuple[str, list[list[str]]]:
    """The source of a module, and the statements before each call."""
    draw = random.Random(seed)
    chosen = [(f"v{k}", draw.choice(_PLACES)) for k in range(draw.randrange(2, 6))]
    lines = [_HEAD, *(_filled(draw, make, name) for name, (make, _, _, _) in chosen)]
    reads = [_filled(draw, read, name) for name, (_, read, _, _) in chosen]
    expression = " + ".join(f"{part} * x" if draw.random() < 0.5 else f"({part})" for part in reads)
    body = [f"y = {expression}"]
    changes: list[str] = []
    for name, (_, _, assigns, between) in chosen:
        changes += [_filled(draw, text, name) for text in between]
        if assigns and draw.random() < 0.6:
            text = draw.choice(assigns).format(n=name).replace("E", draw.choice(["x", "y", "(x * 0.5)", "y * x"]))
            if text.startswith("global "):
                body.insert(0, text.split(";")[0])
                text = text.split("; ", 1)[1]
            body.append(text)
    result = draw.choice(["y", "[y, x]", "{'y': y}", "y, " + reads[0]])
    lines += ["def step(x):", *(f"    {line}" for line in body), f"    return {result}"]
    calls = [[] if draw.random() < 0.4 else [draw.choice(changes)] for _ in range(draw.randrange(4, 9))]
    return "\n".join(lines) + "\n", calls


def visible(namespace: dict[str, Any]) -> str:
    """Everything that the module's variables show, as text, types and signs included; and whether it is traced."""
    seen: dict[int, int] = {}

    def shown(thing: Any) -> str:
        if is_traced(thing):
            return "TRACED"
        if isinstance(thing, (int, float, str, type(None))):
            return repr(thing)
        if type(thing).__name__ == "Node":  # whose numbers live in a kernel's memory, as floats
            return f"Node({float(thing.data)!r}, {float(thing.grad)!r})"
        if thing and id(thing) in seen:
            return f"#{seen[id(thing)]}"
        seen[id(thing)] = len(seen)
        if isinstance(thing, dict):
            return f"{type(thing).__name__}{{{', '.join(f'{k!r}: {shown(v)}' for k, v in thing.items())}}}"
        if isinstance(thing, (list, tuple, deque)):
            return f"{type(thing).__name__}[{', '.join(map(shown, thing))}]"
        if hasattr(thing, "__dict__") and not isinstance(thing, type):
            return f"{type(thing).__name__}({', '.join(f'{k}: {shown(v)}' for k, v in vars(thing).items())})"
        return type(thing).__name__

    names = [name for name in namespace if name[0] == "v" or name == "Box"]
    shared = namespace["Box"].shared
    return "; ".join(f"{name} = {shown(namespace[name])}" for name in sorted(names)) + f"; Box.shared = {shared!r}"


def fails(seed: int, **options: Any) -> str:
    """What is not as it should be; empty when all is."""
    source, calls = program(seed)
    spaces: list[dict[str, Any]] = []
    for way in ("plain", "compiled"):
        filename = f"<surroundings {seed} {way}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        namespace: dict[str, Any] = {"__name__": f"surroundings_{way}"}
        exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - our own text
        spaces.append(namespace)
    plain, compiled = spaces
    step = mgjit.compile(compiled["step"], background=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, statements in enumerate(calls):
            for statement in statements:
                for namespace in spaces:
                    exec(statement, namespace)  # noqa: S102
            x = [0.5, 1.25, -0.75, 2.0][number % 4]
            before = visible(compiled)
            try:
                found = step(x)
            except MgjitError as error:
                return "" if visible(compiled) == before else f"call {number}: {error!r} after a change"
            wanted = plain["step"](x)
            if repr(found) != repr(wanted):
                return f"call {number}: {found!r}, not {wanted!r}"
            if visible(compiled) != visible(plain):
                return f"call {number}:\n  {visible(compiled)}\nnot\n  {visible(plain)}"
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.fuzz.command import hunt

    def source(seed: int) -> str:
        """The program, and what is done before each call."""
        text, calls = program(seed)
        return f"{text}\n# {calls}\n"

    sys.exit(hunt(__doc__, fails, source))
