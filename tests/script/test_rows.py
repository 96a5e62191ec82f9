"""Loops whose whole body is a step: many iterations in one call."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgjit.script.rows import columns, is_finished, iterator_over, lists_of, skip, to_come
from mgjit.script.trying_rows import TryingRows

from .running import explained

A, B = [5, 6, 7, 8], ((1.0, "a"), (2.0, "b"), (3.0, "c"), (4.0, "d"))


@pytest.mark.parametrize(
    ("make", "pattern"),
    [
        (lambda: A, "x"),
        (lambda: tuple(A), "x"),
        (lambda: range(20, 2, -5), "x"),
        (lambda: B, ("x", "y")),
        (lambda: zip(A, B), ("x", ("y", "z"))),
        (lambda: zip(A, B), "x"),
        (lambda: enumerate(zip(A, B), 3), ("k", ("x", "y"))),
        (lambda: enumerate(range(3, 7)), ("k", "x")),
    ],
)
@pytest.mark.parametrize("gone", [1, 2, 4])
def test_01_columns(make: Callable[[], Any], pattern: Any, gone: int) -> None:
    """They are what the loop would give, which goes on as before."""
    iterator: Any = iterator_over(make())
    if iterator is None:
        pytest.skip("ranges tell nothing on PyPy")
    wanted = list(make())
    for _ in range(gone):
        last = next(iterator)
    assert to_come(iterator) == 4 - gone
    rows = columns(iterator, 5 - gone, pattern)
    assert rows is not None
    for k, element in enumerate(wanted[gone - 1 :]):
        found: dict[str, Any] = {}
        exec(f"{pattern} = element".replace("'", ""), {"element": element}, found)  # noqa: S102 - unpacks
        assert found == {name: column[k] for name, column in rows.items()}
    assert last == wanted[gone - 1]
    skip(iterator, 3 - gone if gone < 4 else 0)
    assert list(iterator) == wanted[max(3, gone) :]
    assert is_finished(iterator)


def test_02_what_does_not_tell_what_comes() -> None:
    """Generators, maps, dicts, subclasses."""

    class Mine(list):  # type: ignore[type-arg]
        pass

    for thing in (iter(A), map(abs, A), {1: 2}, "text", Mine(A), zip(A, map(abs, A)), zip(), reversed(A)):
        if thing is not None and type(thing) is not type(iter(A)):
            assert iterator_over(thing) is None
    ragged = iterator_over([(1, 2), (1, 2, 3)])
    next(ragged)
    assert columns(ragged, 2, ("x", "y")) is None
    both = iterator_over(zip(A, enumerate(B)))
    assert lists_of(both) == {id(A), id(B)}


HEAD = """
import random
random.seed(3)
rows = [(random.randrange(5), random.uniform(1, 2)) for _ in range(200)]
w = [0.5, 1.0, 1.5, 2.0, 2.5]
"""
#: What makes the loop run often, and what is printed then.
SCRIPTS = {
    "sums, counters and a table": (
        """
def epoch(rate):
    total, count = 0, 0
    for k, x in rows:
        error = w[k] * x - 1.0
        total += error * error
        count += 1
        w[k] -= rate * error * x
    return total, count, k, x, error
for _ in range(30):
    print(epoch(0.1), w)
""",
        True,
    ),
    "two lists, at the level of the module": (
        """
xs, ys = [x for _, x in rows], [k for k, _ in rows]
a = b = 0.0
for _ in range(30):
    for number, (x, y) in enumerate(zip(xs, ys)):
        error = a * x + b - y
        a -= 0.01 * error * x
        b -= 0.01 * error
    print(a, b, number, x, y)
""",
        False,
    ),
    "an error in one of the rows": (
        """
rows[77] = (2, 0.0)
def epoch():
    total = 0.0
    for k, x in rows:
        error = w[k] - 1.0 / x
        w[k] -= 0.01 * error
        total += w[k]
    return total
for turn in range(60):
    try:
        print(epoch(), w)
    except ZeroDivisionError as error:
        print("stopped", error, w)
    if turn == 30:
        rows[77] = (2, 1.0)
""",
        False,
    ),
    "random numbers": (
        """
def epoch():
    total = 0.0
    for k, x in rows:
        noise = random.random() - 0.5
        w[k] -= 0.01 * (w[k] - x + noise)
        total += w[k]
    return total
for _ in range(30):
    print(epoch(), random.random(), w)
""",
        True,
    ),
    "the list that it goes through": (
        """
v = [1.0 + k / 50 for k in range(50)]
def epoch():
    for k, x in enumerate(v):
        error = v[9] * 1.5 - x
        v[20] -= 0.01 * error
        v[21] -= 0.02 * error
    return error
for _ in range(40):
    print(epoch(), v[:5], v[20:])
""",
        True,
    ),
    "a loop that runs within itself": (
        """
def epoch(depth):
    for k, x in rows:
        error = w[k] * x - 1.0
        w[k] -= 0.01 * error
        deeper(depth)
def deeper(depth):
    if depth and w[0] > 0.6:
        epoch(depth - 1)
for _ in range(10):
    print(epoch(1), w)
""",
        False,
    ),
    "reports now and then": (
        """
def fit(xs, every, turns):
    a, loss = 0.0, 0.0
    for turn in range(turns):
        if turn == 3 or turn % 500 == 499:
            print("begins", turn, a)
        loss = sum((a * x - k) ** 2 for k, x in xs)
        a -= 0.001 * sum((a * x - k) * x for k, x in xs)
        if turn % every == 0 and turn:
            print(turn, loss, a)
        if turn == 4321:
            break
    return turn, a
print(fit(rows[:20], 700, 3000), fit(rows[20:25], 1, 40), fit(rows[:20], 1000, 6000))
""",
        False,
    ),
    "weights that are made anew, or changed in place": (
        """
def shrunk(v):
    for i in range(len(v)):
        v[i] *= 0.99
    return v
def fit(w, v):
    before, also = w, v
    for k, x in rows:
        w = [a - 0.01 * (a * x - 1.0) for a in w]
        v = shrunk(v)
        w[0] += 0.001 * v[1]
    return w, before, v, also, v is also, w is before
for turn in range(30):
    print(fit([0.1, 0.2, 0.3], [turn + 1.0, 2.0]))
""",
        False,
    ),
    "an int that becomes a float": (
        """
def epoch(scale):
    total = 0
    for k, x in rows:
        error = w[k] * x - scale
        w[k] -= 0.01 * error
        total = total + w[k] if scale > 1 else total + 1
    return total
for turn in range(40):
    print(epoch(turn % 3), w)
""",
        False,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_03_scripts(name: str, tmp_path: Path) -> None:
    """They print what Python prints; where it is said, most of it by compiled calls."""
    text, is_compiled = SCRIPTS[name]
    script = tmp_path / "script.py"
    script.write_text(HEAD + text)
    found = explained(tmp_path, script)
    calls = max((int(one.replace(",", "")) for one in re.findall(r"([\d,]+) compiled call", found)), default=0)
    assert calls > 1900 or not is_compiled, found


def test_04_a_first_iteration_that_begins_with_an_int_for_a_sum_stays_in_python() -> None:
    """`total = count = 0`: the sum is a float in all later iterations, and the count is not."""
    section: Any = SimpleNamespace(kinds=[], is_entered=False, _kept=list)
    rounds = [[(0, 0), (0.5, 1), (0.7, 2)], [(0, 0), (0.1, 1)], [(0.0, 0), (0.1, 1)]]
    told = []
    for iterations in rounds:
        section.is_entered = True
        told.append([TryingRows._begins_otherwise(section, kept) for kept in iterations])
    assert told == [[True, False, False], [True, False], [False, False]]
