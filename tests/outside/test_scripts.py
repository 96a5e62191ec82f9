"""Scripts whose training loops read what lies outside of them print what they print under `python`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
for k in range({steps}):
    e = Value(-1.0)
    for p in w:
        e = e + p * Value(random.random())
    loss = e * e
    for p in w: p.grad = 0.0
    loss.backward()
    for p in w: p.data -= 0.001 * (1.0 + ({expression})) * p.grad
    if k % 500 == 300:
        {change}
print(loss.data, [p.data for p in w][:3])
"""
_STEPS = 1200
#: What is there before the loop, what it reads, and what changes that.
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


@pytest.mark.long
@pytest.mark.parametrize(("before", "expression", "change"), _READING, ids=[each[1] for each in _READING])
def test_01_a_script_prints_what_it_prints(before: str, expression: str, change: str, tmp_path: Path) -> None:
    """Each run has a folder of its own, in which it makes files."""
    text = _SCRIPT.format(before=before, expression=expression, change=change, steps=_STEPS)
    printed = []
    for number, words in enumerate([[], ["-W", "ignore", "-m", "mgjit", "run"]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "train.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        done = subprocess.run(
            [sys.executable, *words, "train.py"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(done.stdout)
    assert printed[0]
    assert printed[1] == printed[0]
