"""Parameters wherever a program may keep them: forty kinds of places, five kinds of classes, each as plain Python."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mgjit.engine.leaks import is_traced

CLASS = """\
class P:
    def __init__(self, data, operands=(), grads=()):
        self.data, self.grad, self._operands, self._grads = data, 0.0, operands, grads
    def __add__(self, other):
        return P(self.data + other.data, (self, other), (1.0, 1.0))
    def __mul__(self, other):
        other = other if isinstance(other, P) else P(other)
        return P(self.data * other.data, (self, other), (other.data, self.data))
    def backward(self):
        order, seen = [], set()
        def visit(node):
            if node not in seen:
                seen.add(node)
                for operand in node._operands:
                    visit(operand)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, factor in zip(node._operands, node._grads):
                operand.grad += factor * node.grad
"""

#: How to keep `a` and `b`, and get them back by `get()`.
PLACES = {
    "list": "kept = [a, b]\ndef get(): return kept",
    "tuple": "kept = (a, b)\ndef get(): return kept",
    "dict": "kept = {'a': a, 'b': b}\ndef get(): return list(kept.values())",
    "dict keys": "kept = {a: 1, b: 2}\ndef get(): return list(kept)",
    "dict of lists": "kept = {'x': [a, b]}\ndef get(): return kept['x']",
    "list of tuples": "kept = [(a,), (b,)]\ndef get(): return [x for (x,) in kept]",
    "deque": "kept = collections.deque([a, b])\ndef get(): return list(kept)",
    "OrderedDict": "kept = collections.OrderedDict(a=a, b=b)\ndef get(): return list(kept.values())",
    "defaultdict": "kept = collections.defaultdict(list)\nkept['x'] += [a, b]\ndef get(): return kept['x']",
    "namedtuple": "kept = collections.namedtuple('Pair', 'a b')(a, b)\ndef get(): return [kept.a, kept.b]",
    "Counter": "kept = collections.Counter({a: 1, b: 1})\ndef get(): return list(kept)",
    "list subclass": "class L(list): pass\nkept = L([a, b])\ndef get(): return list(kept)",
    "dict subclass": (
        "class D(dict): __getattr__ = dict.__getitem__\nkept = D(a=a, b=b)\ndef get(): return [kept.a, kept.b]"
    ),
    "tuple subclass": "class T(tuple): pass\nkept = T((a, b))\ndef get(): return list(kept)",
    "UserList": "kept = collections.UserList([a, b])\ndef get(): return list(kept)",
    "UserDict": "kept = collections.UserDict(a=a, b=b)\ndef get(): return list(kept.values())",
    "ChainMap": "kept = collections.ChainMap({'a': a}, {'b': b})\ndef get(): return [kept['a'], kept['b']]",
    "mappingproxy": "kept = types.MappingProxyType({'a': a, 'b': b})\ndef get(): return [kept['a'], kept['b']]",
    "dict view": "kept = {'a': a, 'b': b}.values()\ndef get(): return list(kept)",
    "frozenset of one": "kept = (frozenset([a]), frozenset([b]))\ndef get(): return [x for s in kept for x in s]",
    "set of one": "kept = ({a}, {b})\ndef get(): return [x for s in kept for x in s]",
    "attribute": "class M: pass\nkept = M()\nkept.a, kept.b = a, b\ndef get(): return [kept.a, kept.b]",
    "slots": "class M: __slots__ = ('a', 'b')\nkept = M()\nkept.a, kept.b = a, b\ndef get(): return [kept.a, kept.b]",
    "SimpleNamespace": "kept = types.SimpleNamespace(a=a, b=b)\ndef get(): return [kept.a, kept.b]",
    "class attribute": "class M: pair = [a, b]\ndef get(): return M.pair",
    "tuple in a class": "class M: pair = (a, b)\ndef get(): return M.pair",
    "metaclass attribute": ("class Meta(type): pair = [a, b]\nclass M(metaclass=Meta): pass\ndef get(): return M.pair"),
    "property over a deque": (
        "class M:\n    def __init__(s): s._d = collections.deque([a, b])\n    @property\n"
        "    def pair(s): return list(s._d)\nkept = M()\ndef get(): return kept.pair"
    ),
    "__getattr__": (
        "class M:\n    def __init__(s): s.__dict__['d'] = {'a': a, 'b': b}\n"
        "    def __getattr__(s, name): return s.d[name]\nkept = M()\ndef get(): return [kept.a, kept.b]"
    ),
    "computed attributes": (
        "class M: pass\nkept = M()\nfor k, p in enumerate((a, b)): setattr(kept, f'p{k}', p)\n"
        "def get(): return [getattr(kept, f'p{k}') for k in range(2)]"
    ),
    "dataclass": (
        "@dataclasses.dataclass\nclass M:\n    a: object\n    b: object\nkept = M(a, b)\n"
        "def get(): return [kept.a, kept.b]"
    ),
    "frozen dataclass": (
        "@dataclasses.dataclass(frozen=True)\nclass M:\n    a: object\n    b: object\nkept = M(a, b)\n"
        "def get(): return [kept.a, kept.b]"
    ),
    "enum member": "class E(enum.Enum):\n    A = [a]\n    B = [b]\ndef get(): return [E.A.value[0], E.B.value[0]]",
    "default": "def get(kept=(a, b)): return list(kept)",
    "closure": "def outer(x, y):\n    def inner(): return [x, y]\n    return inner\nget = outer(a, b)",
    "function attribute": "def get(): return [get.a, get.b]\nget.a, get.b = a, b",
    "partial": "def both(x, y): return [x, y]\nget = functools.partial(both, a, b)",
    "lru_cache": "@functools.lru_cache(None)\ndef get(): return (a, b)\nget()",
    "bound method": "class M:\n    def both(s): return [s.a, s.b]\nkept = M()\nkept.a, kept.b = a, b\nget = kept.both",
    "threading.local": "kept = threading.local()\nkept.a, kept.b = a, b\ndef get(): return [kept.a, kept.b]",
    "queue": "kept = queue.Queue()\nkept.put(a)\nkept.put(b)\ndef get(): return list(kept.queue)",
    "weakref": "kept = [weakref.ref(a), weakref.ref(b)]\ndef get(): return [r() for r in kept]",
    "WeakValueDictionary": "kept = weakref.WeakValueDictionary(a=a, b=b)\ndef get(): return [kept['a'], kept['b']]",
    "ContextVar": "kept = contextvars.ContextVar('kept')\nkept.set([a, b])\ndef get(): return kept.get()",
    "module": "kept = types.ModuleType('kept')\nkept.a, kept.b = a, b\ndef get(): return [kept.a, kept.b]",
    "iterator inside": "kept = [a, b]\ndef get(): return list(iter(kept))",
}
STEP = """
import collections, contextvars, dataclasses, enum, functools, queue, threading, types, weakref
a, b = P(1.5), P(-0.5)
{place}
def step(x):
    p, q = get()
    loss = p * q + p * x
    for one in get():
        one.grad = 0.0
    loss.backward()
    for one in get():
        one.data -= 0.1 * one.grad
    return loss.data
"""
KINDS = ("imported", "notebook", "exec", "Value", "derived")


def prepared(kind: str, place: str, folder: Path, name: str) -> dict[str, Any]:
    """The variables of a program whose class is of a kind, and whose parameters lie at a place."""
    classes = {
        "Value": "from mgjit import Value as P\n",
        "derived": "from mgjit import Value\nclass P(Value):\n    rate = 0.1\n",
    }
    text = classes.get(kind, CLASS) + STEP.format(place=PLACES[place])
    if kind == "imported":
        file = folder / f"{name}.py"
        file.write_text(text)
        module = types.ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module
        exec(compile(text, str(file), "exec"), vars(module))  # noqa: S102
        return vars(module)
    filename = f"<ipython-input-{name}>" if kind == "notebook" else "<string>"
    if kind == "notebook":
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "__main__"} if kind == "notebook" else {}
    exec(compile(text, filename, "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_01_parameters_anywhere(place: str, kind: str, tmp_path: Path) -> None:
    """Results, parameters and gradients after every call; the parameters are numbers afterwards."""
    import mgjit

    plain, compiled = (prepared(kind, place, tmp_path, f"places_{way}") for way in ("plain", "compiled"))
    step = mgjit.compile(compiled["step"], backend="python")
    for x in (1.0, -2.0, 0.5, 3.0):
        assert step(x) == plain["step"](x)
        assert [(p.data, p.grad) for p in compiled["get"]()] == [(p.data, p.grad) for p in plain["get"]()]
        assert not any(is_traced(number) for p in compiled["get"]() for number in (p.data, p.grad))
    if not place.lower().startswith("weak"):  # whatever else keeps what these refer to may let go of it
        assert step.stats.plain_calls == 0
