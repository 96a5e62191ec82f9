"""Short Programs without loops: which they are, and that they compute the same bits."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.schedule import straighten as straightening
from mgjit.compiler.schedule.straighten import MOST_STATEMENTS, is_short, straighten
from mgjit.errors import DefectWarning
from mgjit.ir.program import Array, Loop, Program, count_statements, statements, walk
from tests.backends import in_c, interpreted
from tests.bounded import contents, random_bounded
from tests.handmade import around, at, define, load, same_bits, update, visible
from tests.nests import random_program

P, G, X = Array("p", "parameter", 12), Array("g", "gradient", 12), Array("x", "input", 12)


def test_01_all_iterations_count() -> None:
    """Of nests, and of reversed loops."""
    i, j = Loop(MOST_STATEMENTS // 12, []), Loop(12, [])
    nest = around(i, around(j, update(at(P, (j, 1)), "add", load(X, (j, 1)))))
    assert is_short(Program([nest]))
    assert not is_short(Program([nest], [nest]))
    assert not is_short(Program([nest], separate=True))


def test_02_what_was_computed_is_a_register() -> None:
    """A gradient that is cleared, added up and used is never read from memory."""
    i, j, k, n = Loop(4, []), Loop(3, []), Loop(4, []), Loop(4, [], reverse=True)
    program = Program(
        [],
        [
            around(i, define(at(G, (i, 1)), "copy", load(X, base=0))),
            around(j, around(k, update(at(G, (k, 1)), "add", load(X, (k, 1), (j, 4))))),
            around(n, update(at(P, (n, 1)), "subtract", load(G, (n, 1)))),
        ],
    )
    same_bits(program, lambda changed: straighten(changed, True))
    straighten(program, True)
    assert not any(isinstance(node, Loop) for node in walk(program.backward))
    assert count_statements(program.backward) == 4 + 12 + 4
    straighten(program, False)
    assert {s.target.array for s in statements(program.backward) if s.target is not None} == {P}  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", random.Random(3).sample(range(10_000), 8))
def test_03_random_nests(seed: int) -> None:
    """All strides and directions, choices, tables, run-time indices, blocks; and loops that grow."""
    same_bits(random_program(seed), lambda program: straighten(program, True))
    same_bits(random_bounded(seed), lambda program: straighten(program, True))


@pytest.mark.parametrize("seed", random.Random(4).sample(range(10_000), 4))
def test_04_random_nests_in_c(seed: int) -> None:
    """The C of one call."""
    program = random_program(seed)
    memory = contents(visible(program), seed)
    before = interpreted(program, memory)
    straighten(program, True)
    assert in_c(program, memory, "gcc") == before


def course(form: str, number: int, **options: Any) -> list[float]:
    """What a short step leaves behind and returns: in calls, in a loop, or undecorated.

    Gradients come last.
    """
    draw = random.Random(5)
    rows = [[draw.uniform(-1, 1) for _ in range(3)] for _ in range(40)]
    labels = [draw.randrange(4) for _ in range(40)]
    signs = [bytes([draw.randrange(9), draw.randrange(9)]) for _ in range(40)]
    model, velocity, seen = nn.MLP(3, [3, 1], seed=number), mgjit.zeros(20), [0.0, 1.0]
    table = [mgjit.Value(k / 4) for k in range(4)]
    parameters = [*model.parameters(), *table] if number else model.parameters()

    def step(row: Any, label: Any, sign: Any, rate: Any) -> Any:
        output = model(row) if number < 2 else mgjit.tanh(model(row))
        if number:
            output = output + mgjit.take(table, label)
        loss = (output - sign[0]) ** 2 * (1.0 if number < 2 else 0.5)
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for k, p in enumerate(parameters):
            velocity[k] = 0.5 * velocity[k] + p.grad
            p.data -= rate * velocity[k]
        seen[0] = seen[0] + loss.data
        seen[1] = loss.data - sign[1]
        return loss, output

    run: Any = step if form == "undecorated" else mgjit.compile(step, background=False, **options)
    if form == "loop":
        results: list[Any] = [run(rows[0], labels[0], signs[0], 0.05)]
        results += zip(*run.loop(rows[1:], labels[1:], signs[1:], 0.05))
    else:
        results = [run(*arguments, 0.05) for arguments in zip(rows, labels, signs)]
    numbers = [float(getattr(x, "data", x)) for result in results for x in result]
    return [*numbers, *velocity, *seen, *(p.data for p in parameters), *(p.grad for p in parameters)]


@pytest.mark.parametrize("number", range(3))
def test_05_calls_and_loops(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With look-ups, numbers that are copied, state, and buffers; every one of them is straight."""
    made = []
    original = straightening.straighten
    monkeypatch.setattr(straightening, "MOST_RECORDS", 1000)
    monkeypatch.setattr(straightening, "MOST_STATEMENTS", 1000)
    monkeypatch.setattr(straightening, "straighten", lambda *given: made.append(original(*given)))
    wanted = course("undecorated", number)
    assert course("calls", number, cache=False) == wanted
    assert course("loop", number, cache=False, grads=False)[: -12 - 8] == wanted[: -12 - 8]
    assert len(made) == 2


def test_06_a_defect_keeps_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and the numbers are right."""
    monkeypatch.setattr(straightening, "use_registers", None)
    with pytest.warns(DefectWarning, match="keeps its loops"):
        found = course("calls", 0, cache=False, cache_key="a defect")
    assert found == course("undecorated", 0)
