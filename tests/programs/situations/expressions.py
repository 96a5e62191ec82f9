"""Situations whose step reads what lies outside of it, from the lines of expressions.txt.

    ... what is there before ...
    @mgjit.compile(background=False)
    def step(x):
        return x * (expression)
    three calls; what changes it; three calls

`scripts()` are some of the same in a script without a decorator, which trains with what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.programs.situations.play import RUN

MODULES = """\
import argparse, array, asyncio, calendar, codecs, collections, concurrent.futures, configparser, contextvars, csv
import ctypes, datetime, dbm.dumb, decimal, email.message, faulthandler, fractions, functools, gc, glob, graphlib
import hashlib, hmac, http.cookies, importlib.util, inspect, io, itertools, linecache, locale, logging, mmap
import multiprocessing, multiprocessing.shared_memory, operator, os, pathlib, pprint, queue, random, re, resource, sched
import secrets, select, selectors, shelve, signal, socket, sqlite3, statistics, string, struct, subprocess, sys
import tempfile, textwrap, threading, time, types, unittest.mock, uuid, warnings, weakref
import xml.etree.ElementTree, zlib
"""
_PRELUDE = f"""\
{MODULES}
try:
    import numpy as np
except ImportError:
    pass
try:
    import tracemalloc  # of CPython
except ImportError:
    pass

mock, out, seen, kept = unittest.mock, [], [], []
folder = pathlib.Path("folder").resolve()
folder.mkdir()

class Thing:
    pass

def nothing(*given):
    return None

def started():
    thread = threading.Thread(target=time.sleep, args=(20.0,), daemon=True)
    thread.start()
    return thread

def numbers_of():
    yield from map(float, range(1, 20))

def shared():
    return multiprocessing.shared_memory.SharedMemory(create=True, size=10)

def database():
    found = sqlite3.connect(":memory:", isolation_level=None)
    found.execute("create table t(v real)")
    found.execute("insert into t values(1.0)")
    return found

def loaded(text):
    (folder / "loaded.py").write_text(text)
    specification = importlib.util.spec_from_file_location("loaded_by_path", folder / "loaded.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module

"""


class Expression(NamedTuple):
    """One line of the table."""

    before: str
    expression: str
    change: str

    @property
    def name(self) -> str:
        """The line itself."""
        return f"{self.before} | {self.expression} | {self.change}".strip()

    def script(self) -> str:
        """The situation."""
        classes, _, rest = self.before.partition(": ") if self.before.startswith("class") else ("", "", self.before)
        body, _, rest = rest.partition("; ") if classes else ("", "", rest)
        lines = [f"{classes}: {body}"] if classes else []
        lines += rest.split("; ")
        names = [name for line in [self.change, *lines] for name in _assigned(line)]
        return _PRELUDE + "\n".join(
            [
                "def program():",
                *(f"    {line}" for line in lines if line.strip()),
                "    @mgjit.compile(background=False)",
                "    def step(x):",
                f"        return x * ({self.expression})",
                "    seen.extend(step(1.0) for _ in range(3))",
                *(f"    {line}" for line in self.change.split("; ")),
                "    seen.extend(step(1.0) for _ in range(3))",
                f"    kept.append(({', '.join([*dict.fromkeys(names), ''])}))"
                if names and "del" not in self.change
                else "",
                "program()",
                "check(*seen)",
            ]
        )


def _assigned(line: str) -> list[str]:
    name, equals, _ = line.partition(" = ")
    return [part.strip() for part in name.split(",")] if equals and name.replace(", ", "").isidentifier() else []


def expressions() -> Iterator[Expression]:
    """All of the table."""
    for line in (Path(__file__).parent / "expressions.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield Expression(*(part.strip() for part in f" {line}".split(" | ")))


# ---- scripts -------------------------------------------------------------------------------------------

_SCRIPT = """
import collections, contextvars, ctypes, decimal, io, logging, multiprocessing, os, pathlib, queue, random, signal
import sqlite3, sys, threading, types, weakref

class Value:
    def __init__(self, data, prev=()):
        self.data, self.grad, self.prev = data, 0.0, prev
    def __add__(self, o):
        return Value(self.data + o.data, ((self, 1.0), (o, 1.0)))
    def __mul__(self, o):
        return Value(self.data * o.data, ((self, o.data), (o, self.data)))
    def backward(self):
        topo, seen = [], set()
        def visit(v):
            if v not in seen:
                seen.add(v)
                for p, _ in v.prev: visit(p)
                topo.append(v)
        visit(self)
        self.grad = 1.0
        for v in reversed(topo):
            for p, g in v.prev: p.grad += g * v.grad

class Thing:
    pass

random.seed(1)
{before}
w = [Value(random.random()) for _ in range(20)]
for k in range(120):
    e = Value(-1.0)
    for p in w:
        e = e + p * Value(random.random())
    loss = e * e
    for p in w: p.grad = 0.0
    loss.backward()
    for p in w: p.data -= 0.001 * (1.0 + ({expression})) * p.grad
    if k % 50 == 30:
        {change}
print(loss.data, [p.data for p in w][:3])
"""
_READING = [
    ("s = threading.Event()", "s.is_set()", "s.set()"),
    ("s = types.SimpleNamespace(stop=threading.Event())", "s.stop.is_set()", "s.stop.set()"),
    ("s = [threading.Event()]", "s[0].is_set()", "s[0].set()"),
    ("s = pathlib.Path('flag')", "s.exists()", "s.write_text('')"),
    ("s = pathlib.Path('rate'); s.write_text('1.0')", "float(s.read_text())", "s.write_text('3.0')"),
    ("", "os.path.exists('flag')", "open('flag', 'w').close()"),
    ("", "len(os.environ.get('MGJIT_SCRIPT', ''))", "os.environ['MGJIT_SCRIPT'] = 'ab'"),
    ("s = multiprocessing.Value('d', 0.0)", "s.value", "s.value += 1.0"),
    ("s = ctypes.c_double(0.0)", "s.value", "s.value += 1.0"),
    ("s = (ctypes.c_double * 2)()", "s[1]", "s[1] += 1.0"),
    ("s = logging.getLogger('mine')", "s.isEnabledFor(logging.DEBUG)", "s.setLevel(logging.DEBUG)"),
    ("s = logging.getLogger('mine')", "s.level * 0.1", "s.setLevel(logging.DEBUG)"),
    ("", "decimal.getcontext().prec * 0.1", "decimal.getcontext().prec = 5"),
    ("s = decimal.Decimal(1)", "float(s / 3)", "decimal.getcontext().prec = 2"),
    ("t = Thing(); s = weakref.ref(t)", "s() is None", "t = None"),
    ("t = Thing(); s = weakref.WeakSet([t])", "len(s)", "t = None"),
    ("s = queue.Queue()", "s.qsize()", "s.put(1)"),
    (
        "s = sqlite3.connect(':memory:'); s.execute('create table t(v)'); s.execute('insert into t values(0.5)')",
        "s.execute('select v from t').fetchone()[0]",
        "s.execute('update t set v = v + 1.0')",
    ),
    ("s = types.ModuleType('settings'); s.rate = 0.5", "s.rate", "s.rate += 1.0"),
    ("s = types.SimpleNamespace(m=types.ModuleType('settings')); s.m.rate = 0.5", "s.m.rate", "s.m.rate += 1.0"),
    ("s = contextvars.ContextVar('s', default=0.5)", "s.get()", "s.set(s.get() + 1.0)"),
    ("s = io.StringIO()", "len(s.getvalue())", "s.write('a')"),
    ("", "sys.getrecursionlimit() * 0.001", "sys.setrecursionlimit(sys.getrecursionlimit() + 500)"),
    ("s = collections.UserString('ab')", "len(s.data)", "s.data += 'c'"),
]


def scripts() -> Iterator[tuple[str, str]]:
    """What a script reads, and the situation."""
    for before, expression, change in _READING:
        yield expression, RUN + _SCRIPT.format(before=before, expression=expression, change=change)
