"""Advice is taken: a program that fails, the error, and the program as the error says it should be written.

The second one runs, and gives what it gives undecorated.  Each program defines `step`, and `calls`, its arguments.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mgjit import errors
from tests.programs.traps.traps import PRELUDE, play

RUN = """
for arguments in calls:
    check(step(*arguments))
"""


class Advice(NamedTuple):
    """A program, what is said to it, and the program that follows the advice."""

    name: str
    failing: str
    error: str
    says: str
    advised: str


ADVICE = [
    Advice(
        "an if with effects",
        "log = []\n@mgjit.compile\ndef step(x):\n    if x > 0:\n        log.append(1)\n    return x\n"
        "calls = [(1.0,), (-1.0,)]",
        "TraceError",
        r"one changes the variable log, .* Do that in front of it, or return the numbers",
        "@mgjit.compile\ndef step(x):\n    return x, 1 if x > 0 else 0\ncalls = [(1.0,), (-1.0,)]",
    ),
    Advice(
        "an if, with where",
        "@mgjit.compile\ndef step(x):\n    assert x > 0\n    return x\ncalls = [(1.0,), (2.0,)]",
        "TraceError",
        r"`assert x > 0` asks .* that @mgjit\.compile\(static=",
        "@mgjit.compile(static=('x',))\ndef step(x):\n    assert x > 0\n    return x\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "a while",
        "@mgjit.compile\ndef step(x, n):\n    while x < n:\n        x = x * 2.0\n    return x\ncalls = [(1.0, 5)]",
        "TraceError",
        r"`while x < n` asks .* mgjit\.where",
        "@mgjit.compile\ndef step(x, n):\n    for _ in range(8):\n        x = mgjit.where(x < n, x * 2.0, x)\n"
        "    return x\ncalls = [(1.0, 5), (3.0, 5)]",
    ),
    Advice(
        "argmax",
        "@mgjit.compile\ndef step(xs):\n    return max(range(3), key=lambda i: xs[i])\ncalls = [([1.0, 3.0, 2.0],)]",
        "TraceError",
        r"max\(\) asks .* Return the numbers, and choose or sort outside",
        "@mgjit.compile\ndef numbers(xs):\n    return [2.0 * x for x in xs]\ndef step(xs):\n    xs = numbers(xs)\n"
        "    return max(range(3), key=lambda i: xs[i])\ncalls = [([1.0, 3.0, 2.0],), ([1.0, 3.0, 4.0],)]",
    ),
    Advice(
        "sorted",
        "@mgjit.compile\ndef step(xs):\n    return sorted(xs)\ncalls = [([1.0, 3.0, 2.0],)]",
        "TraceError",
        r"sorted\(\) asks .* choose or sort outside .* max\(xs\) and min\(xs\)",
        "@mgjit.compile\ndef numbers(xs):\n    return [2.0 * x for x in xs], max(xs), min(xs)\n"
        "def step(xs):\n    return sorted(numbers(xs)[0])\ncalls = [([1.0, 3.0, 2.0],), ([1.0, 3.0, 0.5],)]",
    ),
    Advice(
        "sort and index",
        "@mgjit.compile\ndef step(xs):\n    return xs.index(max(xs))\ncalls = [([1.0, 3.0, 2.0],)]",
        "TraceError",
        r"sorted, searched or looked up by their value: return them, and do that outside",
        "@mgjit.compile\ndef numbers(xs):\n    return xs, max(xs)\ndef step(xs):\n    found, most = numbers(xs)\n"
        "    return found.index(most)\ncalls = [([1.0, 3.0, 2.0],), ([4.0, 3.0, 0.5],)]",
    ),
    Advice(
        "a computed index",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef step(i):\n    return T[i * i]\ncalls = [(0,), (1,)]",
        "TraceError",
        r"the index of table\[i\], mgjit\.take and mgjit\.one_hot must be an int argument .* compute the index outside",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef inner(i):\n    return T[i]\ndef step(i):\n    return inner(i * i)\n"
        "calls = [(0,), (1,)]",
    ),
    Advice(
        "a remainder that is not taken last",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef step(i):\n    return T[i % 3 - 1]\ncalls = [(0,), (1,)]",
        "TraceError",
        r"Take the remainder last, as in \(i - 1\) % n",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef step(i):\n    return T[(i - 1) % 3]\ncalls = [(0,), (1,)]",
    ),
    Advice(
        "a negative index",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef step(i):\n    return T[i]\ncalls = [(0,), (-1,)]",
        "IndexRangeError",
        r"Write a negative index, which Python counts from the end, as index % len\(table\)",
        "T = [1.0, 2.0, 3.0]\n@mgjit.compile\ndef step(i):\n    return T[i % len(T)]\ncalls = [(0,), (-1,)]",
    ),
    Advice(
        "math.hypot",
        "@mgjit.compile\ndef step(x, y):\n    return math.hypot(x, y)\ncalls = [(1.0, 2.0)]",
        "TraceError",
        r"math\.hypot .*; math\.sqrt\(x \* x \+ y \* y\) is",
        "@mgjit.compile\ndef step(x, y):\n    return math.sqrt(x * x + y * y)\ncalls = [(1.0, 2.0), (-3.0, 4.0)]",
    ),
    Advice(
        "a function of math that others call",
        "@mgjit.compile\ndef step(x):\n    return max([x, 2.0], key=math.sin)\ncalls = [(1.0,)]",
        "TraceError",
        r"Call a function of math by a name \(f\(x\), or map\(f, xs\)\), not by a partial or key=",
        "act = {'pow': math.pow, 'tanh': math.tanh}\n@mgjit.compile\ndef step(x):\n"
        "    return [act['pow'](2.0, x), *map(act['tanh'], [x, 2.0])]\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "float of a Value",
        "@mgjit.compile\ndef step(x):\n    return float(w * x)\ncalls = [(1.0,)]",
        "TraceError",
        r"write x\.data for float\(x\) of a Value",
        "@mgjit.compile\ndef step(x):\n    return (w * x).data\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "a history of nodes",
        "log = []\n@mgjit.compile\ndef step(x):\n    log.append(w * x)\n    return x\ncalls = [(1.0,)]",
        "LeakError",
        r"in the variable log, .* Return the number and keep it outside",
        "@mgjit.compile\ndef inner(x):\n    return (w * x).data\nlog = []\ndef step(x):\n    log.append(inner(x))\n"
        "    return log[-1]\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "a tape that is never emptied",
        "tape = []\n@mgjit.compile\ndef step(x):\n    tape.append(w * x)\n    return tape[-1].data\ncalls = [(1.0,)]",
        "LeakError",
        r"in the variable tape, .* empty it at the end of the step: tape\.clear\(\)",
        "tape = []\n@mgjit.compile\ndef step(x):\n    tape.append(w * x)\n    y = tape[-1].data\n    tape.clear()\n"
        "    return y\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "math.fsum",
        "@mgjit.compile\ndef step(xs):\n    return math.fsum(xs)\ncalls = [([1.0, 2.0],)]",
        "TraceError",
        r"math\.fsum .*; sum\(xs\) is",
        "@mgjit.compile\ndef step(xs):\n    return sum(xs)\ncalls = [([1.0, 2.0],), ([0.1, 0.2],)]",
    ),
    Advice(
        "math of a Value",
        "@mgjit.compile\ndef step(x):\n    return math.sin(w * x)\ncalls = [(1.0,)]",
        "TraceError",
        r"math\.sin has no derivative here\. Take it of the number, math\.sin\(x\.data\)",
        "@mgjit.compile\ndef step(x):\n    return math.sin((w * x).data)\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "modulo of a Value",
        "@mgjit.compile\ndef step(x):\n    return (w * x) % 2.0\ncalls = [(1.0,)]",
        "TraceError",
        r"have no derivative\. Compute with their numbers, x\.data",
        "@mgjit.compile\ndef step(x):\n    return (w * x).data % 2.0\ncalls = [(1.0,), (2.5,)]",
    ),
    Advice(
        "modulo of an int or a float",
        "@mgjit.compile\ndef step(x):\n    return max(x, 0) % 2.0\ncalls = [(1.0,)]",
        "TraceError",
        r"Write 0\.0 instead of 0",
        "@mgjit.compile\ndef step(x):\n    return max(x, 0.0) % 2.0\ncalls = [(1.0,), (-2.5,), (3.5,)]",
    ),
    Advice(
        "round to digits",
        "@mgjit.compile\ndef step(x):\n    return round(x, 2)\ncalls = [(1.234,)]",
        "TraceError",
        r"Round the number that the step returns, outside of it",
        "@mgjit.compile\ndef number(x):\n    return x * 2.0\ndef step(x):\n    return round(number(x), 2)\n"
        "calls = [(1.234,)]",
    ),
    Advice(
        "a text of a number",
        "@mgjit.compile\ndef step(x):\n    return f'{x:.2f}'\ncalls = [(1.234,)]",
        "TraceError",
        r"no digits to print\. Return it from the step and print the result",
        "@mgjit.compile\ndef number(x):\n    return x * 2.0\ndef step(x):\n    return f'{number(x):.2f}'\n"
        "calls = [(1.234,)]",
    ),
    Advice(
        "a recursion that a float ends",
        "def halves(x):\n    return 1.0 if x < 1.0 else halves(x / 2.0) + 1.0\n@mgjit.compile\ndef step(x):\n"
        "    return halves(x)\ncalls = [(5.0,)]",
        "TraceError",
        r"Let an int argument of the step decide when it ends, or write a loop",
        "def halves(x, n):\n    return 1.0 if n == 0 else halves(x / 2.0, n - 1) + x\n@mgjit.compile\ndef step(x, n):\n"
        "    return halves(x, n)\ncalls = [(5.0, 3), (2.0, 3), (2.0, 4)]",
    ),
    Advice(
        "a generator that is sent numbers",
        "def running():\n    v = 0.0\n    while True:\n        x = yield v\n        v = 0.5 * v + x\n"
        "g = running()\nnext(g)\n@mgjit.compile\ndef step(x):\n    return 2.0 * g.send(x)\ncalls = [(1.0,), (2.0,)]",
        "TraceError",
        r"takes the next element of the variable g, .* take it outside of the step, and pass it as an argument",
        "def running():\n    v = 0.0\n    while True:\n        x = yield v\n        v = 0.5 * v + x\n"
        "g = running()\nnext(g)\n@mgjit.compile\ndef inner(v):\n    return 2.0 * v\ndef step(x):\n"
        "    return inner(g.send(x))\ncalls = [(1.0,), (2.0,)]",
    ),
    Advice(
        "in place on one side",
        "@mgjit.compile\ndef step(x):\n    ys = [x]\n    if x > 0:\n        ys += [1.0]\n    return ys\n"
        "calls = [(1.0,)]",
        "TraceError",
        r"Write y = y \+ \.\.\. instead of y \+=",
        "@mgjit.compile\ndef step(x):\n    ys = [x]\n    if x > 0:\n        ys = ys + [1.0]\n    else:\n"
        "        ys = ys + [2.0]\n    return ys[0] * ys[1]\ncalls = [(1.0,), (-1.0,)]",
    ),
    Advice(
        "a node that an index chooses, of a class with closures",
        """
class N:
    def __init__(self, data, prev=(), push=None):
        self.data, self.grad, self._prev, self._push = data, 0.0, prev, push
    def __mul__(self, other):
        other = other if isinstance(other, N) else N(other)
        out = N(self.data * other.data, (self, other))
        def push():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._push = push
        return out
    def __add__(self, other):
        other = other if isinstance(other, N) else N(other)
        out = N(self.data + other.data, (self, other))
        def push():
            self.grad += out.grad
            other.grad += out.grad
        out._push = push
        return out
    def backward(self):
        self.grad = 1.0
        pending = [self]
        while pending:
            node = pending.pop()
            if node._push is not None:
                node._push()
                pending += node._prev
w = [N(0.5), N(2.0)]
@mgjit.compile
def step(i, x):
    outputs = [p * x for p in w]
    loss = outputs[i] * 3.0
    loss.backward()
    return loss.data, [p.grad for p in w]
calls = [(0, 1.5), (1, 2.5)]
""",
        "TraceError",
        r"Select with a sum of products with mgjit\.one_hot\(index, n\), also in the undecorated program",
        "+loss = (outputs[0] * mgjit.one_hot(i, 2)[0] + outputs[1] * mgjit.one_hot(i, 2)[1]) * 3.0",
    ),
]


def _advised(advice: Advice) -> str:
    """The program that follows the advice: another one, or one line of it replaced."""
    if not advice.advised.startswith("+"):
        return advice.advised
    name = advice.advised[1:].partition(" ")[0]
    line = re.compile(rf"^( *){name} = .*$", re.MULTILINE)
    return line.sub(lambda match: match.group(1) + advice.advised[1:], advice.failing, count=1)


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.name)
def test_01_what_fails(advice: Advice, tmp_path: Path) -> None:
    """The error is typed, names the line, and gives the advice; undecorated, the program runs."""
    plain = play(advice.failing + RUN, tmp_path, "user_undecorated", decorated=False)
    assert plain.error is None or isinstance(plain.error, TypeError)  # of Values, undecorated too
    played = play(advice.failing + RUN, tmp_path, "user_decorated", decorated=True)
    assert type(played.error).__name__ == advice.error, played.error
    assert isinstance(played.error, errors.MgjitError)
    text = " ".join(str(played.error).split())
    assert re.search(advice.says, text), text
    line = int(re.search(r"user_decorated\.py:(\d+): ", text).group(1))  # type: ignore[union-attr]
    assert line > PRELUDE.count("\n")


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.name)
def test_01_what_fails_goes_on_by_default(advice: Advice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As undecorated, with the advice in a warning."""
    monkeypatch.delenv("MGJIT_REFUSE")
    plain = play(advice.failing + RUN, tmp_path, "user_undecorated", decorated=False)
    played = play(advice.failing + RUN, tmp_path, "user_decorated", decorated=True)
    assert type(played.error) is type(plain.error), played.error
    assert played.seen == plain.seen
    if plain.error is None:
        (warned,) = (one for one in played.warned if one.category is errors.PlainWarning)
        assert re.search(advice.says, " ".join(str(warned.message).split()))


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.name)
def test_02_what_is_advised(advice: Advice, tmp_path: Path) -> None:
    """It runs, compiled, and gives what it gives undecorated."""
    code = _advised(advice) + RUN
    plain = play(code, tmp_path, "user_undecorated", decorated=False)
    assert plain.error is None
    for _ in range(2):
        played = play(code, tmp_path, "user_decorated", decorated=True)
        assert played.error is None
        assert played.seen == plain.seen
        assert [str(warning.message) for warning in played.warned] == []
    assert "user_decorated" not in sys.modules
