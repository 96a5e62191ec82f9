"""Assignments by run-time indices: one record where that is possible, and what Python does in any case."""

from __future__ import annotations

import linecache
import random
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import IndexRangeError

BACKENDS: dict[str, dict[str, Any]] = {
    "python": {"backend": "python"},
    "gcc": {"compiler": "gcc"},
    "tcc": {"compiler": "tcc"},
}
ROWS, WIDTH = 7, 3


class Tables:
    """What the steps of this file change."""

    def __init__(self) -> None:
        self.flat = [0.5 * k - 1.0 for k in range(ROWS)]
        self.rows = [[0.25 * (k + 1) - 0.125 * c for c in range(WIDTH)] for k in range(ROWS)]
        self.state = mgjit.state([0.1 * k for k in range(ROWS)])
        self.weights = [mgjit.Value(0.3 * k - 0.7) for k in range(4)]

    def contents(self) -> Any:
        """All numbers, with the signs of zeros and the types."""
        weights = [(w.data, w.grad) for w in self.weights]
        return repr((self.flat, self.rows, list(self.state), weights))


def step_of(body: str, tables: Tables) -> Callable[..., Any]:
    """A step `def step(i, j, x)` with this body; its source can be found."""
    source = f"def step(i, j, x):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    name = f"<step {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {**vars(tables), "mgjit": mgjit}
    exec(compile(source, name, "exec"), names)  # noqa: S102 - of this file
    return names["step"]  # type: ignore[no-any-return]


def compare(body: str, calls: list[tuple[Any, ...]], **options: Any) -> Any:
    """Run a step undecorated and compiled; the same results, and the same tables, after each call."""
    mine, theirs = Tables(), Tables()
    plain, compiled = step_of(body, mine), mgjit.compile(step_of(body, theirs), background=False, **options)
    for arguments in calls:
        expected = plain(*arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = compiled(*arguments)
        found = [float(number) for number in found] if isinstance(found, list) else found
        assert repr(found) == repr(expected), (body, arguments)
        assert theirs.contents() == mine.contents(), (body, arguments)
    return compiled


CALLS = [(2, 5, 1.5), (0, 0, -2.0), (6, 6, 0.0), (3, 2, -0.0), (5, 1, 4.25)]
BODIES = {
    "a list": "flat[i] = x",
    "what was there": "flat[i] = flat[i] * x + flat[j]",
    "in place": "flat[i] += x",
    "one after the other": "flat[i] = x\nflat[j] = flat[i] + 1.0\nreturn flat[i] + flat[j]",
    "read before": "old = flat[3]\nflat[i] = x\nreturn old + flat[3]",
    "read before by an index": "old = flat[j]\nflat[i] = x\nreturn old + flat[j]",
    "assigned before": "flat[2] = x * 2.0\nflat[i] = x\nreturn flat[2]",
    "assigned after": "flat[i] = x\nflat[2] = flat[2] * 3.0",
    "exchanged before": "flat[2], flat[5] = flat[5], flat[2]\nflat[i] = x",
    "exchanged after": "flat[i] = x\nflat[2], flat[5] = flat[5], flat[2]\nreturn flat[j]",
    "exchanged": "flat[i], flat[j] = flat[j], flat[i]",
    "the old number of another": "a = flat[4]\nflat[i] = x\nflat[1] = a\nflat[j] = a + flat[4]",
    "a row": "row = rows[i]\nfor k in range(3):\n    row[k] = row[k] * x\nreturn row[1]",
    "a row by its table": "for k in range(3):\n    rows[i][k] -= x * rows[j][k]",
    "a row from behind": "rows[i][-1] = x",
    "a row and its slice": "rows[i][0:2] = [x, x * 2.0]\nreturn rows[i][0] + rows[j][1]",
    "several indices": "for k in (i, j, i):\n    rows[k][0] = rows[k][0] * 0.5 + x\nreturn rows[i][0]",
    "a copied row": "row = list(rows[j])\nrows[i][0] = x\nreturn row[0] - rows[j][0]",
    "a constant": "flat[i] = 2.0",
    "minus zero": "flat[i] = -0.0",
    "state": "state[i] = state[j] + x\nreturn state[i] - state[2]",
    "state in place": "old = state[3]\nstate[i] += x\nstate[j] *= 2.0\nreturn old",
    "between two passes": (
        "loss = weights[0] * flat[2] + weights[1] * flat[i]\nflat[i] = x\nfor w in weights:\n    w.grad = 0.0\n"
        "loss.backward()\nreturn loss.data"
    ),
    "gradients": (
        "for w in weights:\n    w.grad = 0.0\n(weights[2] * x).backward()\nold = weights[2].grad\n"
        "flat[i] = weights[2].grad\nstate[j] = old + 1.0"
    ),
    "a sum over the table": "flat[i] = x\nreturn sum(flat)",
    "a list of results": "flat[i] = x\nreturn [number * 1.0 for number in flat]",
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.sampled
def test_01_as_in_python(name: str, backend: str) -> None:
    """Every way to mix them with other reads and assignments."""
    compiled = compare(BODIES[name], CALLS, **BACKENDS[backend])
    assert not compiled.stats.plain_calls


@pytest.mark.parametrize("backend", BACKENDS)
def test_01_two_indices(backend: str) -> None:
    """Both at run time."""
    body = "rows[i][j] += x\nrows[j][1] = 2.0 * rows[i][j]\nreturn rows[i][j] + rows[0][0]"
    compare(body, [(k, k % WIDTH, 0.5 * k) for k in range(ROWS)], **BACKENDS[backend])


def records(body: str, size: int) -> int:
    """How many records a step has over tables of a size."""
    tables = Tables()
    tables.flat[:] = [0.5 * k for k in range(size)]
    tables.rows[:] = [[0.5 * k] * WIDTH for k in range(size)]
    lowering = mgjit.compile(step_of(body, tables), background=False).lower(2, 3, 1.5)
    return lowering.lowered.records


@pytest.mark.parametrize("name", ["a list", "in place", "one after the other", "a row", "a row by its table"])
def test_02_the_size_of_the_table_does_not_matter(name: str) -> None:
    """There is no comparison with each place."""
    assert records(BODIES[name], 8) == records(BODIES[name], 64) < 24


def test_03_as_a_statement() -> None:
    """The index is part of the address."""
    graph = mgjit.compile(step_of("flat[i] = x", Tables()), background=False).lower(2, 3, 1.5).graph
    assert "= s0[x0[0]] = copy(x0[2])" in graph.replace("1*x0[0]", "x0[0]")


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ("flat[i] = x", lambda tables: tables.flat.__setitem__(slice(None), [1, 2, 3, 4, 5, 6, 7])),
        ("flat[i] = x", lambda tables: tables.flat.__setitem__(1, 4)),
        ("flat[i] = i", lambda tables: None),
        ("flat[i] = x > 1.0", lambda tables: None),
        ("rows[i][0] = x", lambda tables: tables.rows.__setitem__(3, tables.rows[2])),
        ("rows[i][0] = x", lambda tables: tables.rows.__setitem__(3, [1.0, 2.0, 3.0])),
        ("rows[i % 4][0] = x", lambda tables: tables.rows.__setitem__(slice(4, None), [])),
    ],
)
def test_04_tables_of_other_kinds(body: str, change: Callable[[Tables], Any]) -> None:
    """Ints, rows that are one list, few rows: as Python does it, in whatever way."""
    body = body.replace("i % 4", "i")
    mine, theirs = Tables(), Tables()
    change(mine)
    change(theirs)
    plain, compiled = step_of(body, mine), mgjit.compile(step_of(body, theirs), background=False, backend="python")
    for arguments in [(2, 1, 1.5), (3, 1, 0.5), (0, 1, 2.0)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert compiled(*arguments) == plain(*arguments)
        assert theirs.contents() == mine.contents()


@pytest.mark.parametrize("body", ["flat[i] = x", "rows[i][1] = x", "flat[i] += x", "return flat[i] * x"])
def test_04_an_int_that_comes_later(body: str) -> None:
    """It stays an int where it is not assigned."""
    mine, theirs = Tables(), Tables()
    plain, compiled = step_of(body, mine), mgjit.compile(step_of(body, theirs), background=False, backend="python")
    for number, arguments in enumerate([(2, 1, 1.5), (3, 1, 0.5), (0, 1, 2.0), (4, 4, 0.25), (5, 1, 1.0), (6, 0, 1.0)]):
        if number == 3:
            for tables in (mine, theirs):
                tables.flat[4], tables.flat[1], tables.rows[5][1], tables.rows[1][0] = 4, 2, 3, 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert repr(compiled(*arguments)) == repr(plain(*arguments))
        assert theirs.contents() == mine.contents()


@pytest.mark.parametrize("body", ["flat[i] = x", "rows[i][1] = x", "state[i] = x", "return state[i] * x"])
@pytest.mark.parametrize("index", [7, 100, -1])
def test_05_out_of_range(body: str, index: int) -> None:
    """Nothing is written."""
    tables = Tables()
    compiled = mgjit.compile(step_of(body, tables), background=False, backend="python")
    compiled(1, 2, 0.5)
    before = tables.contents()
    with pytest.raises(IndexRangeError):
        compiled(index, 2, 0.5)
    assert tables.contents() == before


def test_06_rows_of_a_loop() -> None:
    """One row after the other, as separate calls."""
    body = "flat[i] += x * rows[j][1]\nrows[i][1] = flat[j]\nstate[j] = x\nreturn flat[i]"
    mine, theirs = Tables(), Tables()
    plain, compiled = step_of(body, mine), mgjit.compile(step_of(body, theirs), background=False, compiler="tcc")
    columns = [[k * 5 % 7 for k in range(20)], [k * 3 % 7 for k in range(20)], [0.25 * k for k in range(20)]]
    assert list(compiled.loop(*columns)) == [plain(*row) for row in zip(*columns)]
    assert theirs.contents() == mine.contents()


def test_07_float32() -> None:
    """Numbers are rounded when they are assigned."""
    tables = Tables()
    compiled = mgjit.compile(step_of("state[i] = x\nreturn state[i]", tables), background=False, dtype="float32")
    assert compiled(2, 0, 0.1) == mgjit.compile(dtype="float32", background=False)(lambda x: x * 1.0)(0.1)


# ---- random steps -------------------------------------------------------------------------------------------


def random_body(draw: random.Random) -> str:
    """Some assignments, and numbers that are kept; every other body has no constant indices."""
    indices = ("i", "j", "i", "j", "1", "4") if draw.random() < 0.5 else ("i", "j")
    kept = ["x"]
    lines = []

    def place() -> str:
        index = draw.choice(indices)
        return draw.choice((f"flat[{index}]", f"rows[{index}][{draw.randrange(WIDTH)}]", f"state[{index}]"))

    def term() -> str:
        return draw.choice((draw.choice(kept), place(), place(), "0.5", f"({draw.choice(kept)} * {place()})"))

    for number in range(draw.randrange(3, 9)):
        if draw.random() < 0.3:
            lines.append(f"kept{number} = {place()}")
            kept.append(f"kept{number}")
        elif draw.random() < 0.15:
            lines.append(f"row{number} = rows[{draw.choice('ij')}]")
            lines.append(f"row{number}[{draw.randrange(WIDTH)}] = {term()}")
        elif draw.random() < 0.15:
            a, b = place(), place()
            lines.append(f"{a}, {b} = {b}, {a}")
        elif draw.random() < 0.3:
            lines.append(f"{place()} {draw.choice('+-*')}= {term()}")
        else:
            lines.append(f"{place()} = {term()} {draw.choice('+-*')} {term()}")
    lines.append(f"return [{', '.join(f'{name} * 1.0' for name in kept)}, {place()} + {place()}]")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(25))
def test_08_random_steps(seed: int) -> None:
    """Reads and assignments by constants and by run-time indices, which may mean the same elements."""
    draw = random.Random(seed)
    calls = [(draw.randrange(ROWS), draw.randrange(ROWS), draw.uniform(-1.0, 1.0)) for _ in range(4)]
    calls += [(1, 1, 0.5), (4, 1, -0.5)]
    compare(random_body(draw), calls, backend="python")


@pytest.mark.parametrize("seed", [*range(20), 58])
def test_09_ints_that_come_later(seed: int) -> None:
    """Random steps whose tables get ints between calls: every number has the type that it has in Python."""
    draw = random.Random(seed)
    body = random_body(draw)
    mine, theirs = Tables(), Tables()
    plain, compiled = step_of(body, mine), mgjit.compile(step_of(body, theirs), background=False, backend="python")
    for number in range(9):
        arguments = draw.randrange(ROWS), draw.randrange(ROWS), draw.uniform(-1.0, 1.0)
        if number > 4:
            k, c, integer = draw.randrange(ROWS), draw.randrange(WIDTH), draw.randrange(-3, 4)
            for tables in (mine, theirs):
                line = tables.flat if number % 2 else tables.rows[k]
                line[k if number % 2 else c] = integer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, found = plain(*arguments), compiled(*arguments)
        assert repr(list(found)) == repr(expected), (body, arguments)
        assert theirs.contents() == mine.contents(), (body, arguments)
