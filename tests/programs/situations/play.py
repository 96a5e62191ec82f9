"""Play situations, undecorated and compiled, in processes of their own, and compare all that they observe.

1. A situation is a script of a file of this folder, below a line `#### its name`.  It hands what can be observed to
   `check(...)`; `P(ps)` is the data and gradients of nodes, `w` a Value, and `Node` a class of a user's own.
2. In `places.txt` a script says how parameters are kept; `reach:` is an expression of all of them, `change:` a
   statement that is run between two calls.  The step around them is the same for all; two kinds of classes take turns.
   Where another outcome than "right" is expected, its name has ` -> ` and that outcome behind it: an error that says
   what to write instead, or a difference that docs/reference/differences.md lists.
3. `verdict` is "right", the name of an error or warning of mgjit, or says what differs or was left behind, or that the
   warnings were not what plain calls have: one, of each step that has them.
4. A situation that begins with `# mgjit run` is a script of its own, and is run so; what it prints is compared.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import math
import os
import re
import signal
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mgjit import errors
from mgjit.base.lookup import package_of
from mgjit.compiler.build.choices import import_generator
from mgjit.kernels.registry import KERNELS
from mgjit.tracing.surroundings import guard

FOLDER = Path(__file__).parent
#: The longest that a situation may take, in seconds; then its process is killed.
_PATIENCE = 120
#: How a situation begins that is a script of its own.
RUN = "\n# mgjit run\n"
_NODE = """\
class Node:
    def __init__(self, data, children=(), grads=()):
        self.data, self.grad, self._children, self._grads = data, 0.0, children, grads
    def __add__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1.0, 1.0))
    def __mul__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))
    __radd__, __rmul__ = __add__, __mul__
    def backward(self):
        order, seen = [], set()
        def visit(node):
            if node not in seen:
                seen.add(node)
                for child in node._children:
                    visit(child)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, grad in zip(node._children, node._grads):
                child.grad += grad * node.grad
"""
_PRELUDE = f"""\
import collections, contextlib, copy, abc, dataclasses, enum, functools, gc, itertools, math, operator, os, pickle
import sys, threading, types, typing, weakref
import mgjit
from mgjit import Value, nn
compile = mgjit.compile
w = Value(2.0)
def P(ps): return [(p.data, p.grad) for p in ps]
{_NODE}"""
#: How `make(data)` makes a parameter.
KINDS = {
    "imported": f"open('nodes.py', 'w').write({_NODE!r})\nimport nodes\nmake = nodes.Node\n",
    "exec": f"space = {{'__name__': 'made'}}\nexec({_NODE!r}, space)\nmake = space['Node']\n",
    "Value": "make = Value\n",
    "derived": "class Weight(Value):\n    def __init__(self, data):\n        super().__init__(data)\n"
    "        self.name = 'w'\nmake = Weight\n",
    "dataclass": _NODE.replace("class Node:", "@dataclasses.dataclass(eq=False)\nclass Node:")
    .replace("    def __init__(self, data, children=(), grads=()):\n", "")
    .replace(
        "        self.data, self.grad, self._children, self._grads = data, 0.0, children, grads\n",
        "    data: float\n    _children: tuple = ()\n    _grads: tuple = ()\n    grad: float = 0.0\n",
    )
    + "make = Node\n",
}
_PLACE = """\
def params(n): return [make(0.25 * i + 0.125) for i in range(n)]
{setup}
@mgjit.compile
def step(x, lr):
    loss = make(0.5)
    for i, p in enumerate({reach}): loss = loss + p * p * (x + i)
    for p in {reach}: p.grad = 0.0
    loss.backward()
    for p in {reach}: p.data -= lr * p.grad
    return loss
for call in range(8):
    check(step(1.0 + call, 0.01), P({reach}))
    if call == 3: {change}
    if call == 5: [p for p in {reach}][0].data = 3.5
"""

#: Modules whose variables lead to everything that the process of the tests has loaded.
_LIBRARY = getattr(sys, "stdlib_module_names", frozenset({"typing", "threading"}))


def situations(name: str) -> Iterator[tuple[str, str, str]]:
    """The situations of a file: name, script, and the outcome that is expected: `#### name -> outcome`."""
    parts, places = re.split(r"^#### *(.*)$", (FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:], 0
    for heading, text in zip(parts[::2], parts[1::2]):
        title, _, expected = heading.partition(" -> ")
        reach = re.search(r"^reach: (.*)$", text, re.MULTILINE)
        change = re.search(r"^change: (.*)$", text, re.MULTILINE)
        if reach is None or change is None:
            yield title, text, expected or "right"
            continue
        setup = re.sub(r"^(reach|change): .*\n", "", text, flags=re.MULTILINE)
        script = _PLACE.format(setup=setup, reach=reach[1], change=change[1])
        places += 1
        for kind in [*KINDS, *KINDS][places % len(KINDS) :][:2]:
            code = KINDS[kind]
            yield f"{title}, {kind}", code + script, expected or "right"


def verdict(script: str, are_warnings_compared: bool = False) -> str:
    """What comes of a situation."""
    plain, compiled = (_played(script, is_plain) for is_plain in (True, False))
    if compiled["left"]:
        return f"left behind in {compiled['left']}"
    if compiled["error"].startswith("mgjit."):
        is_same = compiled["seen"] == plain["seen"][: len(compiled["seen"])]
        return re.split(r"[.:]", compiled["error"])[2] if is_same else "other numbers before an error"
    if compiled["error"] != plain["error"]:
        return f"{compiled['error']} instead of {plain['error'] or 'no error'}"
    if compiled["seen"] == plain["seen"]:
        return (are_warnings_compared and _of_warnings(**compiled["told"])) or "right"
    found = [k for k, (one, other) in enumerate(zip(plain["seen"], compiled["seen"])) if one != other]
    return f"other numbers at check {found[0] if found else 'in all'}"


def _of_warnings(warned: list[str], steps: int, compiled: int, plain: int) -> str:
    """What is wrong with the warnings of calls that were right, or nothing."""
    bad = [text for text in warned if text.startswith(("Mismatch", "Defect"))]
    if bad or len(warned) > steps or len(set(warned)) < len(warned):
        return f"warned: {bad or warned}"
    return f"{plain} plain calls without a warning" if plain > max(3, compiled) and not warned else ""


@functools.cache
def _imported() -> None:
    """Import all that a step needs: each process finds it here, and most of its time would be that of imports."""
    for name in ("public", "nn", "cli.run", "compiler.pipeline.pipeline"):
        importlib.import_module(f"mgjit.{name}")
    import_generator()
    with contextlib.suppress(ImportError):
        importlib.import_module("numpy")


def _played(script: str, is_plain: bool) -> dict[str, Any]:
    _imported()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            signal.alarm(_PATIENCE)
            try:
                os.chdir(folder)
                os.environ["MGJIT_DISABLE"] = str(int(is_plain))
                # a change is noticed by the next call, as it is where there is less to compare, and on a quick machine
                guard._MUCH = guard._FIRST_SECONDS = math.inf
                found = json.dumps(_observed(script, is_plain))  # which may go to another folder
                (Path(folder) / "found.json").write_text(found, encoding="utf-8")
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return json.loads((Path(folder) / "found.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _observed(script: str, is_plain: bool) -> dict[str, Any]:
    if script.startswith(RUN):
        return _printed(script)
    seen: list[Any] = []
    module = types.ModuleType("user")
    sys.modules["user"] = module
    sys.path.insert(0, os.getcwd())
    module.__dict__.update(check=lambda *things: seen.extend(_bits(thing) for thing in things), __file__="user.py")
    text, error, before = _PRELUDE + script, "", set(KERNELS)
    Path("user.py").write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(text, os.path.abspath("user.py"), "exec"), vars(module))  # noqa: S102 - scripts of this folder
        except Exception as problem:
            error = f"{type(problem).__module__}.{type(problem).__name__}: {problem}"
    stats = [kernels.stats for kernels in KERNELS if kernels not in before]
    told = {
        "warned": [f"{w.category.__name__}: {w.message}" for w in caught if w.category.__module__ == errors.__name__],
        "steps": len(stats),
        "compiled": sum(each.calls for each in stats),
        "plain": sum(each.plain_calls for each in stats),
    }
    left = "" if is_plain else _left_behind(vars(module))
    return {"seen": seen, "error": error, "left": left, "told": told}


def _printed(script: str) -> dict[str, Any]:
    """What a script prints under `python -m mgjit run`, which runs it as it stands where MGJIT_DISABLE says so."""
    from mgjit.cli.run import main

    Path("train.py").write_text(script, encoding="utf-8")
    with Path("printed").open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        code = main(["--eager", "train.py"])
    printed = Path("printed").read_text(encoding="utf-8").splitlines()
    told = {"warned": [], "steps": 0, "compiled": 0, "plain": 0}
    return {"seen": [code, *printed], "error": "", "left": "", "told": told}


def _bits(thing: Any) -> Any:
    """What can be observed of a thing, so that two are equal if and only if their bits are."""
    import mgjit

    if isinstance(thing, mgjit.Value) or (type(thing).__name__ in ("Node", "Weight") and hasattr(thing, "data")):
        return _bits(thing.data)
    if isinstance(thing, float):
        return "nan" if thing != thing else thing.hex()
    if isinstance(thing, (list, tuple)):
        return [type(thing).__name__, *map(_bits, thing)]
    if isinstance(thing, dict):
        return [type(thing).__name__, *([repr(name), _bits(content)] for name, content in thing.items())]
    return [type(thing).__name__, repr(thing)]


def _left_behind(variables: dict[str, Any]) -> str:
    """Where an object of a trace is, among all that a program can reach from its variables; empty if nowhere."""
    from mgjit.engine.leaks import is_traced

    # what was there before the tests of this module is frozen (tests/conftest.py), and leads to the whole process
    new = {id(thing) for thing in gc.get_objects()} if hasattr(gc, "freeze") else None
    seen: set[int] = set()
    pending: list[tuple[Any, str]] = [(thing, name) for name, thing in variables.items() if name != "check"]
    while pending:
        thing, path = pending.pop()
        if is_traced(thing):
            return path
        if new is not None and gc.is_tracked(thing) and id(thing) not in new:
            continue
        is_atom = isinstance(thing, (types.ModuleType, types.CodeType, types.FrameType, str, bytes, int, float))
        kind = thing if isinstance(thing, type) else type(thing)
        if is_atom or id(thing) in seen or package_of(kind) == "mgjit":
            continue
        if isinstance(thing, types.FunctionType) and package_of(thing) == "mgjit":  # whose variables lead to everything
            continue
        seen.add(id(thing))
        if isinstance(thing, type) and thing.__module__ not in ("user", "nodes", "made"):
            continue
        if isinstance(thing, types.FunctionType) and package_of(thing) in _LIBRARY:  # without its module's variables
            inside: Any = enumerate((thing.__closure__, thing.__defaults__, thing.__kwdefaults__, vars(thing)))
        else:
            inside = thing.items() if type(thing) is dict else enumerate(gc.get_referents(thing))
        pending += [(part, f"{path}[{name!r:.30}]") for name, part in inside if part is not sys.modules]
    return ""
