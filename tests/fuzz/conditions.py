"""Random programs about sides of conditions that do more than compute: both run in a trace, one of them in Python.

    python tests/fuzz/conditions.py --programs 300 --seed 1 --keep DIR

1. `program(seed)` writes the source of a module: objects with methods that draw, count, append, advance or raise, and a
   step with conditions of many forms whose sides are drawn from these and from ones that only compute.
2. The module runs twice, compiled and undecorated, in dictionaries of its own.
3. After every call the results, everything that is visible and the states of the generators must be equal, bit for bit
   and type for type.  Where Python raises, so must the compiled step, with the same left behind.
"""

from __future__ import annotations

import linecache
import random
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import mgjit

_HEAD = """\
import collections, functools, itertools, math, operator, random
import mgjit
class S:
    def __init__(self):
        self.n, self.k, self.items, self.table = 0.5, 1, [1.0, 2.0], {'a': 1.0}
    def bump(self): self.n = self.n * 0.5 + 1.0; return self.n
    def count(self): self.k += 1; return self.k * 0.5
    def push(self, x): self.items.append(1.0); return x
    def keep(self, x): self.last = 1.0; return x
    def pure(self, x): return self.n * x + self.items[0]
    def add(self, x): return self.n + x
    @property
    def prop(self): self.n = self.n * 0.5 + 0.25; return self.n
    @property
    def still(self): return self.n
    def __call__(self, x): self.k += 1; return x
    def __getitem__(self, i): self.n = self.n * 0.5 + 0.125; return self.n
    def __float__(self): self.k += 2; return 0.5
class T:
    made = 0
    def __init__(self, v): self.v = v; T.made += 1
    def __add__(self, other): return T(self.v + other.v)
class U:
    def __init__(self, v): self.v, self.parts = v, [v]
    def __mul__(self, other): return U(self.v * other.v)
    def __iadd__(self, other): self.v = self.v + other; return self
    def add(self, y): self.v += y; self.parts.append(y); return self.v
class W:
    def __init__(self, v): self.v = v
    def __add__(self, other): self.v = self.v * 0.5 + 1.0; return self.v + other
    def __len__(self): self.v = self.v * 0.5 + 0.25; return 3
    def __str__(self): self.v = self.v * 0.5 + 0.75; return 'w'
class P:
    def __init__(self, data): self.data, self.grad, self.steps = data, 0.0, 0
    def scale(self, by): self.grad = self.grad * by
class Q:
    __slots__ = ('v', 'w')
    def __init__(self): self.v, self.w = 0.5, 1
class R:
    best, level = 9.0, 0.5
    def __init__(self): self._v, self.n = 0.5, 0.25
    @property
    def v(self): return self._v
    @v.setter
    def v(self, v): self._v = v * 0.5
class N:
    def __init__(self): self.v = 0.5
    def __setattr__(self, name, v): object.__setattr__(self, name, v * 0.5)
class Defaults(dict):
    def __missing__(self, key): self[key] = 1.0; return 2.0
s, u, w, glob = S(), U(0.5), W(0.25), 0.5
lst, d, dd, dq, bag = [0.5, 1.5, 2.5], {'a': 0.5}, collections.defaultdict(float), collections.deque([0.5, 1.5]), {1}
od, df, cell, rng = collections.OrderedDict(a=0.5, b=1.5), Defaults(), [[0.5], [1.5]], random.Random(5)
counter = itertools.count()
ps, qs, rs, ns = [P(k * 0.1 - 1.0) for k in range(20)], Q(), R(), N()
val, sta = mgjit.Value(0.5), mgjit.State([0.5, 1.5])
tab, num = {'a': 0.5, 1: 1.5, 'n': 2}, 3
def scale_all(by):
    for p in ps: p.grad = p.grad * by
def fill(rows, v):
    for k in range(len(rows)): rows[k] = v * k
def count_calls():
    global num
    num += 1
def bump_global():
    global glob
    glob = glob * 0.5 + 1.0
    return glob
def helper(x): return x * 0.5 + 1.0 if x > 0.1 else 0.25
def fresh(x):
    t, a = U(x), [x]
    t.add(1.0); a.append(2.0); a[0] += 1.0
    b = {}
    b['x'] = sum(a)
    return t.v + b['x']
def early(x, y):
    if x > y: return s.bump()
    return y
def fails(x): raise ValueError('no')
def guarded(x):
    try: return d['none'] + x
    except KeyError: return x + 1.0
def keeps(x, seen=[]): seen.append(1.0); return len(seen) * 0.5
def numbers(n):
    for k in range(n): yield k * 0.5
    s.count()
def swap(rows): rows[0], rows[1] = rows[1], rows[0]; return rows[0][0]
@functools.lru_cache(None)
def cached(k): return k * 0.5
def takes(it): return list(it)[0]
def first_of(it):
    a, b = it[:2] if isinstance(it, list) else (0.5, 1.5) if it is None else it
    return a
def shown(x): return len(f'{x}') * 0.5
class V:
    def __init__(self, v, parts): self.v, self.parts = v, tuple(parts)
def pair(x): return [x * 0.5]
def several(x):
    if x > 0.2:
        z = s.bump() if x > 0.6 else x
        z = z + 1.0
    else:
        z = 0.5
    return z
"""
#: Variables of the step, of which it has those that it names, and what is shown of them.
_LOCALS = (
    ("mine", "mine = [1.0, 2.0]", "list(mine)"),
    ("inner_list", "def inner_list(): mine.append(0.25); return 0.75", "mine[-1]"),
    ("made", "made = U(0.5)", "made.v, made.parts"),
    ("ones", "ones = iter([0.5, 1.5, 2.5, 3.5])", "list(ones)"),
    ("gen", "gen = numbers(6)", "list(gen)"),
    ("inner_bag", "inner_bag = set()", "sorted(inner_bag)"),
    ("table", "table = {'x': 0.5}", "sorted(table)"),
    ("own", "own = [[0.5], [1.5]]", "own"),
    ("total", "total = 0.0", "total"),
    ("inner()", "n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return 0.5", "n"),
)
_COMPUTING = (
    "x", "y * 0.5", "0.0", "-1", "fresh(x)", "s.pure(y)", "s.add(x)", "sum([x, y])", "U(x).add(y)", "(U(x) * U(y)).v",
    "math.sqrt(abs(x))", "max(x, y)", "helper(y)", "s.still", "s.n", "sum(q * x for q in lst)", "len([x, y]) * 0.5",
    "sorted([2.0, 1.0])[0]", "dict(a=x)['a']", "guarded(x)", "[q + y for q in lst][1]", "u.v", "made.v", "mine[0]",
    "(lambda a: a + y)(x)", "lst[0]", "d.get('a', 0.5)", "cell[0][0]",
)  # fmt: skip
_DOING = (
    "rng.random()", "random.random()", "rng.gauss(0, 1)", "random.choice([0.5, 1.5])", "s.bump()", "s.count()",
    "s.push(x)", "s.keep(x)", "s.prop", "s(x)", "s[0]", "float(s)", "(lst.append(1.0) or 1.0)", "lst.pop()",
    "(mine.append(1.0) or 2.0)", "mine.pop()", "(mine.reverse() or mine[0])", "dd['new']", "df['new']",
    "d.setdefault('c', 1.0)", "dq.popleft()", "(dq.rotate() or dq[0])", "(od.move_to_end('a') or 1.0)", "next(ones)",
    "next(gen)", "sum(ones)", "next(counter) * 0.5", "bump_global()", "keeps(x)", "inner()", "inner_list()",
    "(operator.setitem(lst, 0, 0.125) or x)", "(lst.__setitem__(0, 0.25) or y)", "(setattr(s, 'n', 0.75) or x)",
    "(list(map(lst.append, [1.0])) and x)", "functools.partial(mine.insert, 0)(0.5) or x",
    "(lambda a=s.bump(): a)()", "[s.bump() for _ in range(2)][0]", "(T(x) + T(y)).v", "(w + x)", "u.add(0.5)",
    "made.add(0.5)", "operator.iadd(u, 0.5).v", "(bag.add(7) or x)", "(inner_bag.add(7) or x)", "swap(cell)",
    "several(x)", "early(x, y)", "cached(1)", "(d.update(a=0.75) or x)", "table.pop('x')",
    "vars(s).setdefault('z', 1.0)", "list(ones)[0]", "(0.5 in ones) * 1.0", "math.prod(ones)", "math.fsum(ones)",
    "takes(ones)", "first_of(ones)", "max(ones)", "V(x, ones).v", "shown(w)", "len(w)",
)  # fmt: skip
#: Lists of one number, and what is done with the one that is chosen.
_LISTS = ("cell[0]", "cell[1]", "cell[0]", "cell[1]", "[x]", "[{a}]", "pair(x)", "pair(y)", "own[0]", "own[1]")
_USES = (
    "{v} = r[0]", "{v} = r[0] + sum(r)", "{v} = r", "{v} = (r, r)", "r[0] = {a}\n    {v} = r[0]",
    "r[0] += x\n    {v} = cell[0][0]", "cell[0][0] = x\n    {v} = r[0]", "{v} = r is cell[0]",
    "s.kept = r\n    {v} = 0.0",
    "cell[1] = r\n    {v} = r[0]", "w = r\n    w[0] = y\n    {v} = r", "own[0][0] = y\n    {v} = r[0]", "{v} = [r]",
    "{v} = [q for q in r]", "r.append(1.0)\n    {v} = len(r)",
)  # fmt: skip
#: What statements in sides assign.
_STORES = (
    "s.n = {a}", "s.n += {a}", "s.k += 1", "s.k -= 2", "qs.v = {a}", "qs.w += 1", "qs.v, qs.w = qs.w, qs.v",
    "lst[0] = {a}", "lst[-1] *= 0.5", "lst[0], lst[1] = lst[1], {a}", "lst[:2] = [{a}, y]", "tab['a'] = {a}",
    "tab[1] += {a}", "tab['n'] += 1", "d['a'] = {a}", "cell[0][0] = {a}", "own[1][0] += {a}", "mine[0] = {a}",
    "table['x'] -= {a}", "made.v = {a}", "for p in ps: p.grad = p.data * {a}", "for p in ps: p.grad *= 0.5",
    "for p in ps:\n    if p.grad > 0.1: p.grad = 0.1", "for p in ps: p.data -= 0.1 * p.grad",
    "for p in ps:\n    if p.grad < 0.0: continue\n    p.data = p.data * 0.5 + {a}",
    "ps[3].data, ps[4].data = ps[4].data, {a} * 1.0", "ps[0].steps += 1", "ps[5].data = x; ps[5].scale({a})",
    "val.data = {a}", "val.data += x", "val.grad = {a} * 0.5", "sta[0] = {a}", "sta[1] += sta[0]",
    "z = val.data; val.data = z * x + {a}", "glob = {a}", "glob += 1.0; num += 1", "num = {a}", "scale_all({a})",
    "ps[1].scale(0.5)", "s.bump()", "count_calls()", "fill(lst, {a})", "s.n = lst[0]; lst[0] = s.n * {a}",
    "u.v += {a}", "s.n = s.k = {a}", "k = 1; lst[k] += {a}", "qs.w = {a}", "qs.w = 3", "s.n: float = {a}",
    "z = sta[0]; sta[0] = sta[1]; sta[1] = z", "rs.n = {a}", "R.best = {a}", "rs.best = {a}", "inner()",
    "if x > 0.0: s.n = 1.0 / x", "if x < 0.5: lst[1] = math.exp(x * 1400.0)", "if y > 0.1: s.n = math.log(y)", "pass",
)  # fmt: skip
#: And what cannot be selected.
_OTHER_STORES = (
    "rs.v = {a}", "ns.v = {a}", "s.new = {a}", "s.items = [{a}]", "s.items += [1.0]", "lst.append(1.0)",
    "tab['new'] = {a}", "s.n = None", "dq[0] = {a}", "od['a'] = {a}", "dd['b'] = {a}", "del mine[0]", "s.n = True",
    "lst[:1] = []", "s.items[5] = {a}",
)  # fmt: skip
_ASSIGNING = (
    "if {t}:\n        {s}\n    {v} = 0.5",
    "if {t}:\n        {s}\n        {r}\n    {v} = x",
    "if {t}:\n        {s}\n    else:\n        {r}\n    {v} = {a}",
    "{v} = 0.0\n    if {t}:\n        {s}\n        if {u}:\n            {r}\n            {v} = {a}\n"
    "        else:\n            {q}\n    elif {u}:\n        {q}",
    "{v} = 0.0\n    for q in (x, y, 0.25):\n        if q > 0.1:\n            {s}\n            continue\n"
    "        {v} += q\n        {r}",
    "{v} = {a}\n    if {t}:\n        {s}\n        {v} = s.n + lst[0] + val.data + sta[0] + ps[3].data\n"
    "    else:\n        {r}\n        {v} = s.n * tab['a'] + glob + ps[0].grad",
    "loss = val * x + val * {a}\n    val.grad = 0.0\n    loss.backward()\n    if {t}: val.grad = 0.5\n"
    "    if {u}:\n        val.data -= 0.1 * val.grad\n        {s}\n    {v} = loss.data",
    "for p in ps: p.grad = p.data * x\n    {v} = sum(p.grad * p.grad for p in ps) ** 0.5\n"
    "    if {v} > 0.5:\n        for p in ps: p.grad = p.grad * 0.5 / {v}\n        {s}\n"
    "    for p in ps: p.data -= 0.1 * p.grad",
)  # fmt: skip
_RAISING = ("1.0 / 0", "fails(x)", "lst[9]", "d['none']", "next(iter([]))")
_TESTS = ("x > 0", "y < 0.3", "x > y", "s.n > 0.6", "x * y > -0.1", "not x > 0.2", "0 < x < 0.7", "(x > 0 and y > 0)",
          "rng.random() < 0.5", "u.v > 0.6", "lst[0] > x")  # fmt: skip
_FORMS = (
    "{v} = {a} if {t} else {b}",
    "{v} = {a} if {t} else {b} if {r} else {c}",
    "{v} = ({a} if {t} else {b}) if {r} else {c}",
    "{v} = ({t}) and {a}",
    "{v} = ({t}) or {a}",
    "{v} = ({t}) and ({r}) and {a}",
    "{v} = 1.0 if ({t}) and {a} > 0.2 else {b}",
    "{v} = (0 < x < {a}) * 1.0",
    "{v} = 0.0\n    if {t}: {v} = {a}",
    "if {t}:\n        {v} = {a}\n    else:\n        {v} = {b}",
    "if {t}:\n        {v} = {a}\n    elif {r}:\n        {v} = {b}\n    else:\n        {v} = {c}",
    "if {t}:\n        z = {a}\n        {v} = z + x\n        if {r}: {v} = {b}\n    else:\n        {v} = {c}",
    "{v} = sum([{a} if {t} else {b} for _ in range(2)])",
    "{v} = [q for q in [{a} if {t} else {b}]][0]",
    "{v} = any({a} > 0.4 for _ in range(2)) * 1.0 + any(q > 0.1 for q in [x, {b}])",
    "{v} = all({a} < x for _ in range(3)) * 1.0",
    "{v} = any([{a} > x, {b} > y]) * 1.0",
    "{v} = 0.0\n    for q in (x, y):\n        if q > 0.1: {v} += {a}",
    "{v} = 0.0\n    if {t}:\n        for q in (0.5, 0.25): {v} = {v} + {a} * q",
    "try:\n        {v} = {a} if {t} else {b}\n    except (ZeroDivisionError, ValueError, LookupError, StopIteration):\n"
    "        {v} = 9.0",
    "try:\n        if {t}: {v} = {a}\n        else: {v} = {b}\n    except Exception:\n        {v} = 9.0",
    "total = total + ({a} if {t} else 0.0)\n    {v} = total",
    "{v} = (lambda: {a} if {t} else {b})()",
    "table['x'] = {a} if {t} else {b}\n    {v} = table['x']",
    "if {t}:\n        p = mine\n        p += [0.5]\n        {v} = p[0]\n    else: {v} = {b}",
    "if {t}:\n        p, q, r, w = ones\n        {v} = p\n    else: {v} = {b}",
    "r = {l} if {t} else {m}\n    {use}",
    "r = {l} if {t} else {m} if {r} else {l}\n    {use}",
    "if {t}: r = {l}\n    else: r = {m}\n    {use}",
    "r = {l}\n    if {t}: r = {m}\n    {use}",
    "if {t}:\n        r = {l}\n        p = r\n    else:\n        r = {m}\n        p = r\n    {use}\n"
    "    {v} = [{v}, p, p is r]",
    "def chosen():\n        if {t}: return {l}\n        if {r}: return {m}\n        return {l}\n"
    "    r = chosen()\n    {use}",
)  # fmt: skip


def program(seed: int) -> str:
    """The source of a module."""
    draw = random.Random(seed)

    def side() -> str:
        kinds = (_COMPUTING, _DOING, _RAISING)
        return draw.choice(draw.choices(kinds, (6, 3, 0.2))[0])

    def stored(indent: int) -> str:
        """A statement that assigns."""
        text = draw.choice(_STORES if draw.random() < 0.95 else _OTHER_STORES).format(a=draw.choice(_COMPUTING))
        return text.replace("\n", "\n" + " " * indent)

    forms = [draw.choice(draw.choice((_FORMS, _ASSIGNING))) for _ in range(draw.randrange(1, 4))]
    tests = [draw.choice(_TESTS) for _ in range(2)]
    lines = []
    for k, form in enumerate(forms):
        chosen, other = (draw.choice(_LISTS).format(a=draw.choice(_COMPUTING)) for _ in range(2))
        use = draw.choice(_USES).format(v=f"v{k}", a=side())
        given = {"t": draw.choice(tests), "r": draw.choice(_TESTS), "l": chosen, "m": other, "use": use}
        if form in _ASSIGNING:
            given = {"t": given["t"], "u": given["r"], "s": stored(12), "r": stored(12), "q": stored(12)}
        lines.append(form.format(v=f"v{k}", a=side(), b=side(), c=side(), **given))
    body = "".join(f"    {line}\n" for line in lines)
    kept = "    s.n = s.n * 0.5 + x\n" if draw.random() < 0.5 else ""
    names = ", ".join(f"v{k}" for k in range(len(forms)))
    named = body + ("mine" if "inner_list" in body else "")
    used = [(first, shown) for name, first, shown in _LOCALS if name in named]
    begin = "".join(f"    {first}\n" for first, _ in used)
    begin = "    global glob, num\n" + begin
    return f"{_HEAD}def step(x, y):\n{begin}{body}{kept}    return {', '.join([names, *(s for _, s in used)])}\n"


def visible(namespace: dict[str, Any]) -> str:
    """Everything that the module's variables show, as text, types and signs included."""
    cell, kept = namespace["cell"], getattr(namespace["s"], "kept", None)
    s, u, w = namespace["s"], namespace["u"], namespace["w"]
    found: list[Any] = [sorted(vars(thing).items()) for thing in (s, u, w)]
    found += [sorted(vars(namespace[name]).items()) for name in ("rs", "ns")]
    found += [[(p.data, p.grad, p.steps) for p in namespace["ps"]], namespace["qs"].v, namespace["qs"].w]
    found += [namespace["val"].data, namespace["val"].grad, *namespace["sta"], namespace["R"].best]
    found += [namespace[name] for name in ("tab", "num")]
    found += [namespace[name] for name in ("glob", "lst", "d", "dd", "dq", "bag", "od", "df", "cell", "counter")]
    found += [cell[0] is cell[1], [kept is row for row in cell], namespace["T"].made, namespace["keeps"].__defaults__]
    return repr(found) + str(hash(namespace["rng"].getstate()))


def loaded(seed: int, way: str) -> dict[str, Any]:
    """The variables of the module."""
    source, filename = program(seed), f"<conditions {seed} {way}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"conditions_{way}"}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - our own text
    return namespace


def outcome(step: Any, namespace: dict[str, Any], x: float, y: float) -> str:
    """What a call returns or raises, which of it was there before, and the state of the module `random` after it."""
    try:
        returned = step(x, y)
        parts = returned if isinstance(returned, tuple) else (returned,)
        found = repr(returned) + str([part is row for part in parts for row in namespace["cell"]])
    except Exception as error:
        found = re.sub("<conditions .*?>", "", f"{type(error).__name__}: {error}")
    return found + str(hash(random.getstate()))


def fails(seed: int, calls: int = 40, counts: Counter[str] | None = None, **options: Any) -> str:
    """What is not as it should be; empty when all is.

    Args:
        counts: takes how many programs were compiled to the end, and why not.
    """
    plain, compiled = loaded(seed, "plain"), loaded(seed, "compiled")
    step = mgjit.compile(compiled["step"], background=False, **options)
    draw = random.Random(seed)
    random.seed(seed)
    state = random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(calls):
            x, y = (draw.choice([0.0, -0.0, 0.5, -0.5, draw.uniform(-1, 1), draw.uniform(-1, 1)]) for _ in range(2))
            random.setstate(state)
            wanted = outcome(plain["step"], plain, x, y)
            random.setstate(state)
            found = outcome(step, compiled, x, y)
            state = random.getstate()
            if found != wanted:
                return f"call {number}({x!r}, {y!r}): {found}, not {wanted}"
            if visible(compiled) != visible(plain):
                return f"call {number}({x!r}, {y!r}):\n  {visible(compiled)}\nnot\n  {visible(plain)}"
    if counts is not None:
        counts[step.stats.last.made_by] += 1
        counts[step.stats.last.reason[:150].partition(": ")[2]] += 1
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.fuzz.command import hunt_and_count

    sys.exit(hunt_and_count(__doc__, fails, program))
