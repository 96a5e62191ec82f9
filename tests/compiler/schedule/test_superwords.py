"""Statements of short steps as lanes of vectors: which ones, and that rows compute the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.schedule import straighten as straightening
from mgjit.compiler.schedule import superwords
from mgjit.compiler.schedule.straighten import straighten
from mgjit.compiler.toolchain import compilers
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Constant, Loop, Program, Register, Statement, count_statements
from mgjit.ir.verify import verify
from tests import nests
from tests.bounded import random_bounded
from tests.handmade import around, at, define, load, visible
from tests.lowering import bits
from tests.nests import random_program

P, S, X, Y = Array("p", "parameter", 12), Array("s", "state", 12), Array("x", "input", 12), Array("y", "output", 4)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is packed that can be, however little that saves."""
    monkeypatch.setattr(superwords, "_MOST", 1000.0)


def left_by(program: Program, arrays: list[Array], rows: bool) -> list[Any]:
    """The bits that two steps leave behind, as rows or as calls."""
    found = []
    for seed in range(4):
        draw = random.Random(seed)
        special = [0.0, -0.0, float("inf"), float("nan"), 5e-324] if seed % 2 else [1.0]
        memory: dict[Array, Any] = {
            array: [draw.choice(special) if draw.random() < 0.2 else draw.uniform(-2.0, 2.0) for _ in range(array.size)]
            for array in arrays
        }
        runs = Interpreter(program, memory)
        if rows:
            runs.run_rows([{}, {}])
        else:
            runs.run()
            runs.run()
        found.append([[bits(x) for x in content] for content in memory.values()])
    return found


def packed(program: Program, lanes: int = 4) -> Program:
    """The Program, straight; with a row, which computes the same."""
    arrays = visible(program)
    before = left_by(program, arrays, rows=False)
    straighten(program, True, lanes)
    verify(program)
    if program.row is not None:
        assert left_by(program, arrays, rows=True) == before
    return program


def vectors(program: Program) -> list[list[str]]:
    """The operations of each vector of a row."""
    if program.row is None:
        return []
    loops = [node for node in program.row.nodes if isinstance(node, Loop)]
    assert all(loop.lanes for loop in loops)
    return [[node.operation for node in loop.body if isinstance(node, Statement)] for loop in loops]


def units() -> Program:
    """Four units of two weights and a sum: `s[i] = s[i] + relu(p[2 i] x[0] + p[2 i + 1] x[1])`."""
    i = Loop(4, [])
    one = define(None, "multiply", load(P, (i, 2)), load(X))
    other = define(None, "multiply", load(P, (i, 2), base=1), load(X, base=1))
    total = define(None, "add", Register(one), Register(other))
    output = define(None, "relu", Register(total))
    return Program(
        [around(i, one, other, total, output, define(at(S, (i, 1)), "add", load(S, (i, 1)), Register(output)))]
    )


def test_01_units_are_lanes(eager: None) -> None:
    """Weights that lie apart are side by side in the array that is local to the loop."""
    program = packed(units())
    assert vectors(program) == [["multiply", "multiply", "add", "relu", "add"]]
    assert program.row is not None
    assert program.row.places[P][:8] == (0, 4, 1, 5, 2, 6, 3, 7)
    assert count_statements(program.forward) == 20


def test_02_only_where_vectors_are_long_enough(eager: None) -> None:
    """Two lanes, or loops of three iterations."""
    assert not vectors(packed(units(), 2))
    i = Loop(3, [])
    assert not vectors(packed(Program([around(i, define(at(S, (i, 1)), "add", load(S, (i, 1)), Constant(1.0)))])))


def test_03_lanes_that_need_each_other_are_none(eager: None) -> None:
    """A sum over the lanes, and a loop in which each iteration reads what the one before has written."""
    i, j = Loop(4, []), Loop(4, [])
    total = define(at(S), "add", load(S), load(X, (i, 1)))
    chain = define(at(P, (j, 1), base=1), "multiply", load(P, (j, 1)), Constant(2.0))
    assert not vectors(packed(Program([around(i, total)])))
    assert not vectors(packed(Program([around(j, chain)])))


def test_04_a_lane_used_by_all_lanes_comes_from_another_vector(eager: None) -> None:
    """In a loop over lanes, no iteration reads what another one has computed."""
    i, j = Loop(4, []), Loop(4, [])
    first = define(at(S, (i, 1)), "multiply", load(S, (i, 1)), load(X))
    second = define(at(P, (j, 1)), "add", load(P, (j, 1)), load(S, base=3))
    program = packed(Program([around(i, first), around(j, second)]))
    assert vectors(program) == [["multiply"], ["add"]] or vectors(program) == [["multiply", "copy"], ["add"]]


def test_05_elements_have_one_order(eager: None) -> None:
    """What reads them in another order stays as it is."""
    i, j = Loop(4, []), Loop(4, [])
    first = define(at(S, (i, 1)), "multiply", load(P, (i, 1)), load(S, (i, 1)))
    second = define(at(S, (j, 1), base=4), "multiply", load(P, (j, -1), base=3), load(S, (j, 1), base=4))
    assert vectors(packed(Program([around(i, first), around(j, second)]))) == [["multiply"]]


def test_06_what_only_outputs_need_comes_last(eager: None) -> None:
    """Calls such as that of pow are behind everything that the next row waits for."""
    program = units()
    power = define(None, "power", load(S, base=1), Constant(3.0))
    program.forward += [power, define(at(Y), "copy", Register(power))]
    i = Loop(4, [])
    program.backward = [around(i, define(at(P, (i, 2)), "subtract", load(P, (i, 2)), load(X, base=2)))]
    row = packed(program).row
    assert row is not None
    assert [node.operation for node in row.nodes[-2:] if isinstance(node, Statement)] == ["power", "copy"]


def test_07_chains_stay_as_they_are() -> None:
    """A linear model waits for its sum, which vectors do not make shorter; two layers have more to do than to wait."""
    assert not rows_of("calls", lambda row: mgjit.dot(LINEAR, row), "linear")[0]
    assert rows_of("calls", nn.MLP(3, [4, 1], seed=2), "layers")[0]


LINEAR = [mgjit.Value(0.1 * k) for k in range(3)]


def rows_of(form: str, model: Callable[[Any], Any], about: str, **options: Any) -> tuple[bool, list[float]]:
    """Whether a step with this model has a row with vectors, and what it computes."""
    found = []
    original = straightening.pack_statements

    def noted(program: Program, alike: Any, _: int) -> None:
        original(program, alike, 4)
        found.append(program.row is not None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(straightening, "MOST_STATEMENTS", 1000)
        patch.setattr(straightening, "MOST_RECORDS", 1000)
        patch.setattr(straightening, "pack_statements", noted)
        numbers = trained(form, model, cache=False, grads=False, cache_key=f"packed {about}", **options)
    return found == [True], numbers


def trained(form: str, model: Any, **options: Any) -> list[float]:
    """What 30 steps leave behind and return: in calls, in a loop, or undecorated."""
    draw = random.Random(5)
    rows = [[draw.uniform(-1, 1) for _ in range(3)] for _ in range(30)]
    parameters = model.parameters() if isinstance(model, nn.MLP) else LINEAR

    def step(row: Any, wanted: Any, rate: Any) -> Any:
        loss = (model(row) - wanted) ** 2
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= rate * (p.grad + 0.01 * p.data)
        return loss

    run: Any = step if form == "undecorated" else mgjit.compile(step, background=False, **options)
    wanted = [draw.uniform(-1, 1) for _ in rows]
    if form == "loop":
        results = [run(rows[0], wanted[0], 0.05).data, *run.loop(rows[1:], wanted[1:], 0.05)]
    else:
        results = [run(*arguments, 0.05).data for arguments in zip(rows, wanted)]
    return [*results, *(p.data for p in parameters)]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("units", [4, 6])
def test_08_rows_in_c(units: int, compiler: str) -> None:
    """The same bits as undecorated; the two units beyond the lanes are numbers of their own."""
    if compilers.find(compiler) is None:
        pytest.skip(f"no {compiler}")
    has_row, found = rows_of("loop", nn.MLP(3, [units, 1], seed=2), f"{units} {compiler}", compiler=compiler)
    assert has_row
    assert found == trained("undecorated", nn.MLP(3, [units, 1], seed=2))


@pytest.mark.parametrize("seed", random.Random(3).sample(range(10_000), 6))
def test_09_random_nests(seed: int, eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All strides and directions, tables, run-time indices; and loops that grow."""
    monkeypatch.setattr(nests, "COUNTS", (1, 4, 4, 5, 8))
    programs = [packed(random_program(seed)), packed(random_program(seed, plain=True), 8), packed(random_bounded(seed))]
    assert any(map(vectors, programs))
