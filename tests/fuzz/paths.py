"""Random programs that ask for numbers on their way: each call takes one path of several.

    python tests/fuzz/paths.py --programs 300 --seed 1 --keep DIR
    python tests/fuzz/paths.py --injected --programs 300    # kernels say that assumptions fail which hold
    python tests/fuzz/paths.py --rows --programs 30         # as rows of `.loop`, in C

1. `program(seed)` writes the source of a module: parameters, rows, generators, and a step of some statements that loop
   until a number is as it should be, return early, use numbers as indices, keys and lengths, search, sort and draw.
2. The module runs twice, compiled and undecorated, in dictionaries of its own.
3. After every call the results, everything that is visible and the states of the generators must be equal, bit for bit
   and type for type.  Where Python raises, so must the compiled step, with the same left behind.
4. `injected()` lets each kernel say at every third call that an assumption fails: all of them in turn, with each kind
   of answer that there may be instead, a true one and wrong ones.
"""

from __future__ import annotations

import itertools
import linecache
import math
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mgjit
from mgjit.kernels import paths
from mgjit.runtime.kernel import Kernel
from mgjit.tracing.call.collected import collect_results

_HEAD = """\
import math, random
import mgjit
class P:
    def __init__(self, data): self.data, self.grad = data, 0.0
class S:
    def __init__(self): self.n, self.k, self.best, self.seen = 0.5, 1, 9.0, 0
ps, s, rng = [P(0.3 * k - 0.5) for k in range(4)], S(), random.Random(5)
q, counts, tab = [0.25, 0.5, 0.125, 0.375], [0, 0, 0], {0: 0.5, 1: 1.5, 2: 2.5, 3: 0.25}
val, sta, w = mgjit.Value(0.5), mgjit.State([0.5, 1.5]), [0.1, -0.2, 0.3]
def search(rows, x):
    for k, r in enumerate(rows):
        if r > x: return k
    return -1
def pick(weights, u):
    total = 0.0
    for k, p in enumerate(weights):
        total += p
        if u < total: return k
    return len(weights) - 1
def bisect(rows, x):
    low, high = 0, len(rows)
    while low < high:
        mid = (low + high) // 2
        if rows[mid] < x: low = mid + 1
        else: high = mid
    return low
def newton(a):
    z, n = 1.0, 0
    while abs(z * z - a) > 1e-3 and n < 12:
        z, n = 0.5 * (z + a / z), n + 1
    return z, n
def clipped(x):
    if x > 0.8: return 0.8
    if x < -0.8: return -0.8
    return x
def sign(x):
    if x == 0.0: raise ValueError('zero')
    return 1 if x > 0 else -1
"""
_FORMS = (
    "z = {a}\n    while abs(z) > {c}: z *= 0.5\n    {v} = z",
    "z, n = {a}, 0\n    while z < {c} and n < 6:\n        z += 0.3; n += 1\n    {v} = z, n",
    "{v} = 0\n    for p in (x, y, {a}):\n        if p > {c}: break\n        {v} += 1",
    "{v} = 0.0\n    for p in (x, {a}, y):\n        if p < 0.0: continue\n        if p > {c}:\n            {v} = p\n"
    "            break\n    else:\n        {v} = -1.0",
    "if {a} > {c}:\n        return {a}, 'early'\n    {v} = {a}",
    "for r in q:\n        if r > {a}:\n            return r\n    {v} = {a}",
    "{v} = newton(abs({a}) + 0.1)",
    "{v} = search(q, {a})",
    "{v} = q[pick([0.2, 0.3, abs(x) * 0.4], {d})]",
    "{v} = bisect([0.1, 0.2, 0.5, 0.9], {a})",
    "k = int(abs({a}) * 3) % 4\n    q[k] += 0.1 * ({c} - q[k])\n    {v} = k",
    "{v} = q[int(abs({a}) * 2) % 4]",
    "{v} = tab[int(abs({a}) * 2) % 4]",
    "{v} = tab.get(round(abs({a})), 7.5)",
    "k = max(range(4), key=lambda a: q[a])\n    q[k] *= 0.75\n    {v} = k",
    "k = min(range(3), key=lambda a: abs(w[a] - {a}))\n    counts[k] += 1\n    w[k] += 0.1 * ({a} - w[k])\n    {v} = k",
    "{v} = sorted([x, y, {a}, {b}], reverse={f})[1]",
    "{v} = sorted(range(3), key=lambda a: w[a] * {a})",
    "t = [x, {a}, y]\n    t.sort()\n    {v} = t",
    "{v} = sum(q[:int(abs({a}) * 3) % 5])",
    "{v} = [0.5 * k for k in range(int(abs({a}) * 2) % 4)]",
    "{v} = 1.0 if {a} in (0.5, -0.5, 0.0) else 2.0",
    "{v} = [x, y, 0.5].index(max(x, y, 0.5))",
    "while s.n > {c}: s.n = s.n * 0.5 - 0.01\n    s.n += abs({a})\n    {v} = s.n",
    "s.seen += 1\n    if s.seen % 3 == 0 and {a} > 0:\n        s.k += 1\n        random.random()\n    {v} = s.k",
    "u = rng.random()\n    n = 0\n    while u > {c} * 0.5 and n < 4: u, n = rng.random(), n + 1\n    {v} = u, n",
    "if {d} < 0.3: {v} = random.randrange(4)\n    else: {v} = max(range(4), key=lambda a: q[a])\n    q[{v}] += 0.01",
    "{v} = clipped({a}) + clipped({b})",
    "try:\n        {v} = sign({a})\n    except ValueError:\n        {v} = 0",
    "try:\n        {v} = 1.0 / {a} if {b} > 0.0 else math.log({a})\n    except (ZeroDivisionError, ValueError):\n"
    "        {v} = 9.0",
    "{v} = 1.0 / x\n    while {v} > 2.0: {v} -= 1.0",
    "loss = (val * {a} + 0.1) ** 2\n    val.grad = 0.0\n    loss.backward()\n    n = 0\n"
    "    while abs(val.grad) > {c} and n < 5:\n        val.grad *= 0.5; n += 1\n    val.data -= 0.1 * val.grad\n"
    "    {v} = loss.data, n",
    "for p in ps: p.grad = p.data * {a}\n    norm = math.sqrt(sum(p.grad * p.grad for p in ps))\n"
    "    if norm > {c}:\n        for p in ps: p.grad /= norm\n    elif norm == 0.0:\n        return 'flat'\n"
    "    for p in ps: p.data -= 0.1 * p.grad\n    {v} = norm",
    "loss = {a} * {a}\n    if loss < s.best:\n        s.best = loss\n        print('better')\n    {v} = s.best",
    "if sta[0] > {c}: sta[0] = {a}\n    sta[1] += sta[0]\n    if sta[1] > 3.0:\n        sta[1] = 0.0\n"
    "        return 'reset', sta[0]\n    {v} = sta[1]",
    "for _ in range(3):\n        ps[0].data += 0.1 * {a}\n        if ps[0].data > {c}: break\n    {v} = ps[0].data",
    "ps[1].data += {a}\n    while ps[1].data > 1.0: ps[1].data -= 1.0\n    {v} = ps[1].data",
    "{v} = {{0: 'low', 1: x}}[int(x > {c})]",
    "{v} = ('no', 'yes', y)[int(abs({a}) * 2) % 3]",
    "assert {a} < 5.0, 'too large'\n    {v} = bool({a} > {c})",
)  # fmt: skip
_NUMBERS = ("x", "y", "x * y", "x + 0.5", "y - x", "s.n * x", "q[0] - y", "ps[2].data * x", "val.data * y",
            "sta[0] * x")  # fmt: skip
_LIMITS = ("0.3", "0.5", "0.75", "s.k * 0.4")
_DRAWS = ("random.random()", "rng.random()", "abs(x)", "abs(y)")


def program(seed: int) -> str:
    """The source of a module."""
    draw = random.Random(seed)
    lines = []
    count = draw.randrange(1, 4)
    for k in range(count):
        given = {
            "a": draw.choice(_NUMBERS), "b": draw.choice(_NUMBERS), "c": draw.choice(_LIMITS),
            "d": draw.choice(_DRAWS), "f": draw.random() < 0.5, "v": f"v{k}",
        }  # fmt: skip
        lines.append(draw.choice(_FORMS).format(**given))
    body = "".join(f"    {line}\n" for line in lines)
    kept = draw.choice(("", "    s.n = s.n * 0.5 + x\n", "    s.k = s.k % 3 + 1\n"))
    return f"{_HEAD}def step(x, y):\n{body}{kept}    return {', '.join(f'v{k}' for k in range(count))}\n"


def visible(namespace: dict[str, Any]) -> str:
    """Everything that the module's variables show, as text, types and signs included."""
    found: list[Any] = [sorted(vars(namespace["s"]).items()), [(p.data, p.grad) for p in namespace["ps"]]]
    found += [namespace[name] for name in ("q", "counts", "tab", "w")]
    found += [namespace["val"].data, namespace["val"].grad, *namespace["sta"]]
    return repr(found) + str(hash(namespace["rng"].getstate()))


def loaded(seed: int, way: str) -> dict[str, Any]:
    """The variables of the module."""
    source, filename = program(seed), f"<paths {seed} {way}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"paths_{way}", "print": lambda *_: None}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - our own text
    return namespace


def outcome(step: Any, x: Any, y: Any) -> str:
    """What a call returns or raises, and the state of the module `random` after it."""
    try:
        found = repr(step(x, y))
    except Exception as error:
        found = re.sub("<paths .*?>", "", f"{type(error).__name__}: {error}")
    return found + str(hash(random.getstate()))


def fails(seed: int, calls: int = 60, counts: Counter[str] | None = None, **options: Any) -> str:
    """What is not as it should be; empty when all is.

    Args:
        counts: takes how many calls were compiled, and why others were not.
    """
    plain, compiled = loaded(seed, "plain"), loaded(seed, "compiled")
    step = mgjit.compile(compiled["step"], background=False, **options)
    draw = random.Random(seed)
    random.seed(seed)
    state = random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(calls):
            x, y = (draw.choice([0.0, 0.5, -0.5, draw.uniform(-1, 1), draw.uniform(-2, 2)]) for _ in range(2))
            random.setstate(state)
            wanted = outcome(plain["step"], x, y)
            random.setstate(state)
            found = outcome(step, x, y)
            state = random.getstate()
            if found != wanted:
                return f"call {number}({x!r}, {y!r}): {found}, not {wanted}"
            if visible(compiled) != visible(plain):
                return f"call {number}({x!r}, {y!r}):\n  {visible(compiled)}\nnot\n  {visible(plain)}"
    if step.stats.mismatches:
        return f"a kernel was wrong: {step.stats.mismatches}"
    for reason in step.stats.plain_reasons:
        if "a part of mgjit has failed" in reason:
            return reason
    if counts is not None:
        counts["compiled calls"] += step.stats.calls
        counts["calls"] += calls
        counts[f"{len(step._kernels)} kernels"] += 1
        for reason in step.stats.plain_reasons:
            counts[reason[:150].partition(": ")[2]] += 1
    return ""


@contextmanager
def injected() -> Iterator[Counter[int]]:
    """Assumptions of kernels in generated Python fail in turn; gives how often each one did, by its number."""
    original, made = Kernel._undone, Counter[int]()
    limits = {name: getattr(paths, name) for name in ("_MOST_FAILURES", "_MOST_AGAIN", "_SHARE")}

    def undone(kernel: Kernel, run: Callable[[Any], None]) -> Callable[[Any], None]:
        inner, calls = original(kernel, run), 0

        def run_and_fail(buffers: Any) -> None:
            nonlocal calls
            inner(buffers)
            calls += 1
            if not kernel.told or calls % 3:
                return
            turn, place = divmod(calls // 3, len(kernel.told))
            answer = kernel.told[place].content
            others = (math.nan, -7.0, float(answer) if isinstance(answer, int) else 0.0, 1.0)
            outputs = buffers[kernel.slot("output", 0)]
            outputs[kernel.verdict] = -(place + 1.0) if turn % 5 == 4 else place + 1.0
            outputs[kernel.verdict + 1] = others[turn % 4]
            made[place + 1] += 1

        return run_and_fail

    Kernel._undone = undone  # type: ignore[method-assign]
    paths._MOST_FAILURES, paths._MOST_AGAIN, paths._SHARE = sys.maxsize, sys.maxsize, 0.0
    try:
        yield made
    finally:
        vars(paths).update(limits)
        Kernel._undone = original  # type: ignore[method-assign]


def fails_in_rows(seed: int, counts: Counter[str] | None = None, **options: Any) -> str:
    """As `fails`, where rows of several loops take the paths."""
    plain, compiled = loaded(seed, "plain"), loaded(seed, "compiled")
    step: Any = mgjit.compile(compiled["step"], background=False, **options)
    draw = random.Random(seed)
    random.seed(seed)
    state = random.getstate()
    numbers = [draw.choice([0.0, 0.5, -0.5, draw.uniform(-1, 1), draw.uniform(-2, 2)]) for _ in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count in (3, 20, 60, 60):
            rows = [draw.choices(numbers, k=count) for _ in range(2)]
            random.setstate(state)
            wanted = outcome(lambda *xs: collect_results(itertools.starmap(plain["step"], zip(*xs))), *rows)
            random.setstate(state)
            found = outcome(step.loop, *rows)
            state = random.getstate()
            if found != wanted:
                return f"{count} rows: {found}, not {wanted}"
            if visible(compiled) != visible(plain):
                return f"{count} rows:\n  {visible(compiled)}\nnot\n  {visible(plain)}"
    if counts is not None:
        counts["compiled rows"] += step.stats.calls
    return ""


def fails_injected(seed: int, **options: Any) -> str:
    """As `fails`, where assumptions fail."""
    with injected():
        return fails(seed, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.fuzz.command import hunt_and_count

    modes = {"--injected": fails_injected, "--rows": fails_in_rows}
    chosen: Any = next((modes[mode] for mode in modes if mode in sys.argv), fails)
    sys.argv[:] = [word for word in sys.argv if word not in modes]
    sys.exit(hunt_and_count(__doc__, chosen, program))
