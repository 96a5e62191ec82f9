"""Caches, printing, the time, files."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "functools.lru_cache with a traced argument",
        """\
@functools.lru_cache(None)
def f(x):
    return x * 2.0

@mgjit.compile
def step(x):
    return w * f(x)
check(step(3.0))
check(step(4.0))
check(step(3.0))
""",
        "TraceError",
        "a run-time number cannot be a list index, a key, a length or a ...",
    ),
    Trap(
        "functools.lru_cache with an int that shapes the step",
        """\
@functools.lru_cache(None)
def f(n):
    return [1.0] * n

@mgjit.compile
def step(x, n):
    return w * x * sum(f(n))
check(step(3.0, 2))
check(step(4.0, 3))
check(step(3.0, 2))
""",
        "",
        "",
    ),
    Trap(
        "functools.lru_cache, cleared between calls",
        """\
K = 2.0

@functools.lru_cache(None)
def f(n):
    return n * K

@mgjit.compile
def step(x):
    return w * x * f(3)
check(step(3.0))
check(step(4.0))
f.cache_clear()
K = 5.0
check(step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "a dict as a memo of traced numbers",
        """\
M = {}

def f(x):
    if x not in M:
        M[x] = x * 2.0
    return M[x]

@mgjit.compile
def step(x):
    return w * f(x)
check(step(3.0))
check(step(4.0))
""",
        "TraceError",
        "a run-time number cannot be a list index, a key, a length or a ...",
    ),
    Trap(
        "a dict as a memo of ints",
        """\
M = {}

def f(n):
    if n not in M:
        M[n] = n * 2.0
    return M[n]

@mgjit.compile
def step(x, n):
    return w * x * f(n)
check(step(3.0, 1))
check(step(4.0, 2))
check(step(4.0, 1))
check(M)
""",
        "",
        "",
    ),
    Trap(
        "cached_property",
        """\
class A:

    @functools.cached_property
    def k(s):
        return 2.0
a = A()

@mgjit.compile
def step(x):
    return w * x * a.k
check(step(3.0))
check(step(4.0))
a.k = 3.0
check(step(4.0))
""",
        "",
        "",
    ),
    Trap(
        "lazy init attr",
        """\
class A:
    k = None
a = A()

@mgjit.compile
def step(x):
    if a.k is None:
        a.k = 2.0
    return w * x * a.k
check(step(3.0))
check(step(4.0))
a.k = 3.0
check(step(4.0))
""",
        "",
        "",
    ),
    Trap(
        "print of a traced number",
        """\
@mgjit.compile
def step(x):
    print(x)
    return w * x
import io, contextlib
b = io.StringIO()
with contextlib.redirect_stdout(b):
    step(1.0)
    step(2.0)
check(b.getvalue())
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "str(x)",
        """\
@mgjit.compile
def step(x):
    s = str(x)
    return w * x * len(s)
check(step(1.0))
check(step(2.25))
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "repr(x)",
        """\
@mgjit.compile
def step(x):
    s = repr(x)
    return w * x * len(s)
check(step(1.0))
check(step(2.25))
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "%s",
        """\
@mgjit.compile
def step(x):
    s = '%s' % x
    return w * x * len(s)
check(step(1.0))
check(step(2.25))
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "f-string with !r",
        """\
@mgjit.compile
def step(x):
    s = f'{x!r}'
    return w * x * len(s)
check(step(1.0))
check(step(2.25))
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "repr([x])",
        """\
@mgjit.compile
def step(x):
    s = repr([x])
    return w * x * len(s)
check(step(1.0))
check(step(2.25))
""",
        "TraceError",
        "a traced value has no digits to print. Return it from the step and ...",
    ),
    Trap(
        "time.time",
        """\
@mgjit.compile
def step(x):
    t = time.time()
    return w * x * t
num = lambda v: float(getattr(v, 'data', v))
a = num(step(1.0))
time.sleep(0.01)
b = num(step(1.0))
check(a != b)
""",
        "PlainWarning",
        "the step uses time.time(), which may answer something else at each call ...",
    ),
    Trap(
        "perf_counter",
        """\
@mgjit.compile
def step(x):
    t = time.perf_counter()
    return w * x * t
num = lambda v: float(getattr(v, 'data', v))
a = num(step(1.0))
b = num(step(1.0))
check(a != b)
""",
        "PlainWarning",
        "the step uses time.perf_counter(), which may answer something else at each call ...",
    ),
    Trap(
        "datetime.now",
        """\
import datetime

@mgjit.compile
def step(x):
    t = datetime.datetime.now().microsecond
    return w * x * t
num = lambda v: float(getattr(v, 'data', v))
a = num(step(1.0))
b = num(step(1.0))
check(a != b)
""",
        "PlainWarning",
        "the step uses datetime.now(), which may answer something else at each call ...",
    ),
    Trap(
        "os.environ",
        """\
import os
os.environ['RATEX'] = '1'

@mgjit.compile
def step(x):
    return w * x * float(os.environ['RATEX'])
check(step(1.0))
os.environ['RATEX'] = '2'
check(step(1.0))
""",
        "PlainWarning",
        "the step uses a os._Environ, which may answer something else at each call ...",
    ),
    Trap(
        "read file",
        """\
p = __file__ + '.txt'
def write(text):
    with open(p, 'w') as file:
        file.write(text)
write('1')

@mgjit.compile
def step(x):
    return w * x * float(open(p).read())
check(step(1.0))
write('2')
check(step(1.0))
""",
        "PlainWarning",
        "the step uses open(), which may answer something else at each call ...",
    ),
    Trap(
        "id()",
        """\
@mgjit.compile
def step(x):
    return w * x * (id(x) % 2 * 0 + 1)
check(step(1.0))
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an attribute of a library module",
        """\
import sys
sys.ratex = 1.0

@mgjit.compile
def step(x):
    return w * x * sys.ratex
check(step(1.0))
sys.ratex = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
]
