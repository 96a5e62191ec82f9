"""Programs as text."""

from __future__ import annotations

from array import array
from typing import Any

import mgjit
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Backward,
    Block,
    Bound,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
)
from tests.lowering import STAGES, Example, numbers


def test_01_every_kind_of_node_and_operand() -> None:
    """One of each, as a person would write it."""
    p, t, y = Array("p0", "parameter", 12), Array("t0", "scratch", 12), Array("y", "output", 3)
    outer = Loop(3, [])
    inner = Loop(4, [], reverse=True)
    entry = TableEntry(2, ((outer, 1),))
    first = Statement(
        "multiply",
        (Load(Reference(p, Index(0, ((outer, 4), (inner, 1))))), Choice(inner, Constant(1.0), Constant(-0.0))),
        Reference(t, Index(1, ((inner, 1),))),
    )
    second = Statement("negate", (Register(first),))
    update = Statement("add", (Register(second),), Reference(y, Index(0, ((outer, 1),))), update=True)
    inner.body = [first, second, update]
    outer.body = [inner]
    mixed = Statement("copy", (Mixed((p, t), entry, entry),), TargetMixed((p, None), entry, entry), update=True)
    chosen = Statement("copy", (Constant(2.5),), TargetChoice(outer, None, Reference(t, Index(0, (), entry))))
    take = Statement("copy", (Load(Reference(p, Index(3, (), None, Dynamic(Constant(1.0), 4, 3)))),))
    outer.body += [Block([mixed]), chosen]
    program = Program([outer, Backward(Register(take), 0, frozenset((0,)))], [take], tables=array("i", [0] * 5))
    assert (
        print_program(program)
        == """\
forward:
    for i in 0 .. 2:
        for j in 3 .. 0:
            %0 = t0[j + 1] = multiply(p0[4*i + j], (1.0 if j == 0 else -0.0))
            %1 = negate(%0)
            y[i] = add(y[i], %1)
        block:
            one of p0 [table[i + 2]][table[i + 2]] = copy(one of p0 [table[i + 2]][table[i + 2]], \
one of p0, t0 [table[i + 2]][table[i + 2]])
        %4 = (nothing if i == 0 else t0[table[i + 2]]) = copy(2.5)
    backward from %?
backward:
    %5 = copy(p0[4*1.0 + 3])
tables: 5 entries
"""
    )


def test_02_every_stage_prints() -> None:
    """Before and after each pass, without an unknown loop or register."""
    model = mgjit.nn.MLP(3, [4, 2])

    def step(x: Any) -> Any:
        loss = sum(s * s for s in model(x))
        loss.backward()
        return loss

    made = Example(step, numbers(3))
    for stage in STAGES:
        text = print_program(made.lower(stage))
        assert text.startswith("forward:\n    ")
        assert "?" not in text
        assert ("backward from" in text) == (STAGES.index(stage) < STAGES.index("differentiate"))


def test_03_many_levels() -> None:
    """More loops than letters."""
    nodes: Any = [Statement("copy", (Constant(1.0),))]
    for _ in range(40):
        nodes = [Loop(2, nodes)]
    text = print_program(Program(nodes))
    names = [line.split()[1] for line in text.splitlines() if line.strip().startswith("for ")]
    assert len(set(names)) == 40


def test_04_bounds() -> None:
    """The last iteration, and the most iterations that there may be."""
    i = Loop(4, [])
    j = Loop(5, [], bound=Bound(2, ((i, 1),)))
    k = Loop(9, [Statement("copy", (Constant(1.0),))], reverse=True)
    k.bound = Bound(0, ((i, 1), (j, -2)), TableEntry(3, ((j, 1),)))
    i.body, j.body = [j], [k]
    assert print_program(Program([i])).splitlines()[1:4] == [
        "    for i in 0 .. 3:",
        "        for j in 0 .. i + 1 (5 at most):",
        "            for k in i - 2*j + table[j + 3] - 1 .. 0 (9 at most):",
    ]
