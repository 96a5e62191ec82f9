"""Which loops are split into which parts, which stay whole, and that nothing changes."""

from __future__ import annotations

import pytest

import mgjit
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.compiler.schedule.distribute import distribute
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    walk,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example, numbers
from tests.nests import random_chain, random_program

D, X, T = (Array(name, "parameter", 60) for name in "dxt")
G, E = Array("g", "gradient", 60), Array("e", "gradient", 60)
ONE = Constant(1.0)


def split(*nodes: Node) -> tuple[int, str]:
    """Number of nodes after the pass, and their text; they run like those before."""
    program = Program(list(nodes))
    program.tables.extend(range(10))
    same_bits(program, distribute)
    return len(program.forward), print_program(program)


def rows(step: Node, *others: Node) -> list[Node]:
    """`step` in a loop of its own, and the others."""
    return [around(Loop(1, []), step), *others]


def test_01_as_in_the_docstring() -> None:
    """What is made, and two sums over different loops."""
    b, j, k = Loop(4, []), Loop(5, []), Loop(3, [])
    inner = around(
        k,
        update(at(G, (k, 5), (j, 1)), "add", load(X, (b, 3), (k, 1))),
        update(at(E, (b, 3), (k, 1)), "add", load(D, (k, 5), (j, 1))),
    )
    m = Loop(5, [])
    made = around(m, define(at(T, (b, 5), (m, 1)), "copy", load(X, (b, 5), (m, 1))))
    parts, text = split(around(b, made, around(j, inner)))
    assert parts == 3
    assert text.splitlines()[1:-1] == [
        "    for i in 0 .. 3:",
        "        for j in 0 .. 4:",
        "            %0 = t[5*i + j] = copy(x[5*i + j])",
        "    for i in 0 .. 3:",
        "        for j in 0 .. 4:",
        "            for k in 0 .. 2:",
        "                g[5*k + j] = add(g[5*k + j], x[3*i + k])",
        "    for i in 0 .. 3:",
        "        for j in 0 .. 4:",
        "            for k in 0 .. 2:",
        "                e[3*i + k] = add(e[3*i + k], d[5*k + j])",
    ]


def pair(first: Node, second: Node, j: Loop) -> int:
    """Parts of `for j: for k: first; for l: second`, where k and l are independent."""
    return split(around(j, around(Loop(1, []), first), around(Loop(1, []), second)))[0]


def test_02_elements_of_the_same_iteration() -> None:
    """A part may use what another one makes in the same iteration."""
    j = Loop(4, [])
    assert pair(define(at(D, (j, 1)), "copy", ONE), define(at(X, (j, 1)), "copy", load(D, (j, 1))), j) == 2


def test_03_elements_of_other_iterations() -> None:
    """What the last or the next iteration makes or needs keeps the loop whole."""
    for base in (0, 2):
        j = Loop(4, [])
        read = define(at(X, (j, 1)), "copy", load(D, (j, 1), base=base))
        assert pair(define(at(D, (j, 1), base=1), "copy", load(T, (j, 1))), read, j) == 1
        j = Loop(4, [])
        read = define(at(X, (j, 1)), "copy", load(D, (j, 1), base=base))
        assert pair(read, define(at(D, (j, 1), base=1), "copy", load(T, (j, 1))), j) == 1


def test_04_a_running_sum_that_is_read() -> None:
    """Its partial results are needed; the sum alone is a part of its own."""
    j = Loop(4, [])
    assert pair(update(at(E), "add", load(X, (j, 1))), define(at(D, (j, 1)), "copy", load(E)), j) == 1
    j = Loop(4, [])
    k, m = Loop(2, []), Loop(2, [])
    total = around(k, update(at(E, (k, 1)), "add", load(X, (j, 1))))
    assert split(around(j, total, around(m, define(at(D, (j, 2), (m, 1)), "copy", load(T)))))[0] == 2


def test_05_tables_and_run_time_indices() -> None:
    """Accesses of a written array that are not affine keep the loop whole."""
    j = Loop(4, [])
    for operand in (
        Load(Reference(D, Index(0, (), TableEntry(0, ((j, 1),))))),
        Load(Reference(D, Index(0, (), None, Dynamic(ONE, 1, 4)))),
    ):
        reader = define(at(X, (j, 1)), "copy", operand)
        assert pair(define(at(D, (j, 1)), "copy", ONE), reader, j) == 1
        assert pair(define(at(T, (j, 1)), "copy", ONE), reader, j) == 2


def test_06_choices() -> None:
    """Both alternatives count; one of this iteration is harmless, one of the iteration before is not."""
    for base, expected in ((0, 2), (1, 1)):
        j = Loop(4, [])
        reader = define(at(X, (j, 1)), "copy", Choice(j, ONE, load(D, (j, 1))))
        assert pair(define(at(D, (j, 1), base=base), "copy", load(T, (j, 1))), reader, j) == expected


def test_07_registers_keep_statements_together() -> None:
    """In an inner loop what shares a register of an expensive operation stays together."""
    j, k = Loop(3, []), Loop(4, [])
    place = (j, 4), (k, 1)
    one, two = Statement("exp", (load(X, *place),)), Statement("tanh", (load(T, *place),))
    inner = around(
        k, one, two, define(at(G, *place), "copy", Register(two)), define(at(E, *place), "copy", Register(one))
    )
    parts, text = split(around(j, inner))
    assert parts == 2
    lines = [line.strip() for line in text.splitlines()]
    assert [line.split(" = ")[-1].split("(")[0] for line in lines if "%" in line] == ["tanh", "copy", "exp", "copy"]


def test_08_what_is_cheap_is_repeated() -> None:
    """A product that two sums over different loops use is computed for each, up to two operations deep."""
    for operations, expected in ((("multiply",), 2), (("multiply", "add"), 2), (("add", "multiply", "add"), 1)):
        j, k = Loop(3, []), Loop(4, [])
        body: list[Node] = [Statement("copy", (load(X, (j, 4), (k, 1)),))]
        body[0] = made = Statement(operations[0], (load(X, (j, 4), (k, 1)), load(T, (k, 1))))
        for operation in operations[1:]:
            made = Statement(operation, (Register(made), load(D, (j, 1))))
            body.append(made)
        body.append(update(at(G, (k, 1)), "add", Register(made)))
        body.append(update(at(E, (j, 1)), "add", Register(made)))
        parts, text = split(around(j, around(k, *body)))
        assert parts == expected
        assert text.count("multiply") == expected


def test_09_registers_that_cross_become_arrays() -> None:
    """A register of an outer stretch that is used inside a loop, or behind one."""
    j, k = Loop(3, []), Loop(4, [])
    made = Statement("exp", (load(X, (j, 1)),))
    parts, text = split(
        around(j, made, around(k, define(at(G, (j, 4), (k, 1)), "multiply", Register(made), load(T, (k, 1)))))
    )
    assert parts == 2
    assert "%0 = held1[i] = exp(x[i])" in text
    assert "g[4*i + j] = multiply(held1[i], t[j])" in text


@pytest.mark.parametrize("where", ["choice", "run-time index"])
def test_10_registers_in_other_places(where: str) -> None:
    """In an alternative, or in the number of an element."""
    j, k = Loop(3, []), Loop(4, [])
    made = Statement("copy", (load(X, (j, 1)),)) if where == "choice" else Statement("less", (load(X, (j, 1)), ONE))
    operand = (
        Choice(k, Register(made), load(T, (k, 1)))
        if where == "choice"
        else Load(Reference(T, Index(0, ((k, 2),), None, Dynamic(Register(made), 1, 2))))
    )
    assert split(around(j, made, around(k, define(at(G, (j, 4), (k, 1)), "copy", operand))))[0] == 2


def test_11_what_gains_nothing_stays_together() -> None:
    """A sum, and the statements around it, without anything independent inside."""
    j, i = Loop(4, []), Loop(5, [])
    body: list[Node] = [
        define(at(D, (j, 1)), "copy", load(X, (j, 1))),
        around(i, update(at(D, (j, 1)), "add", load(T, (i, 1)))),
        define(at(G, (j, 1)), "relu", load(D, (j, 1))),
    ]
    assert split(around(j, *body))[0] == 1


def test_12_stretches_stay_whole() -> None:
    """Statements between loops are one part, when they share what they write."""
    j, k = Loop(4, []), Loop(3, [])
    stretch = [define(at(D, (j, 1)), "copy", ONE), define(at(T, (j, 1)), "negate", load(D, (j, 1)))]
    parts, _ = split(around(j, *stretch, around(k, define(at(G, (j, 3), (k, 1)), "copy", load(T, (j, 1))))))
    assert parts == 2


def test_13_blocks_stay() -> None:
    """A loop with a block in it is left as it is; loops in a block are not."""
    j = Loop(4, [])
    assert pair(Block([define(at(D), "copy", ONE)]), define(at(T, (j, 1)), "copy", ONE), j) == 1
    j = Loop(4, [])
    body = [around(Loop(1, []), define(at(array, (j, 1)), "copy", ONE)) for array in (D, T)]
    program = Program([Block([around(j, *body)])])
    same_bits(program, distribute)
    assert sum(isinstance(node, Loop) and node.count == 4 for node in walk(program.forward)) == 2


def test_14_many_parts() -> None:
    """Every one of them by itself, in order."""
    j = Loop(2, [])
    arrays = [Array(f"a{number}", "parameter", 2) for number in range(40)]
    assert split(around(j, *(around(Loop(1, []), define(at(a, (j, 1)), "copy", ONE)) for a in arrays)))[0] == 40


def test_15_downwards() -> None:
    """Parts run in the direction of the loop."""
    j, k, m = Loop(4, [], reverse=True), Loop(2, []), Loop(2, [])
    first = around(k, update(at(E, (k, 1)), "multiply", load(X, (j, 1))))
    parts, text = split(around(j, first, around(m, define(at(D, (j, 2), (m, 1)), "copy", load(T, (j, 1))))))
    assert parts == 2
    assert text.count("3 .. 0") == 2


def test_16_a_circle_stays_together() -> None:
    """Each part needs the iteration before of the other; what neither needs leaves."""
    j, k = Loop(4, []), Loop(2, [])
    one = around(Loop(1, []), define(at(D, (j, 1), base=1), "copy", load(T, (j, 1))))
    two = around(Loop(1, []), define(at(T, (j, 1), base=1), "negate", load(D, (j, 1))))
    parts, _ = split(around(j, one, two, around(k, define(at(G, (j, 2), (k, 1)), "copy", load(X, (j, 1))))))
    assert parts == 2


def test_17_statements_that_alternate_stay_together() -> None:
    """A part that reads what another part overwrites in the same iteration is not moved behind it."""
    m, t, e = mgjit.state([float(q) for q in range(30)]), mgjit.state([0.1 * q for q in range(30)]), mgjit.zeros(30)
    s = mgjit.zeros(1)

    def step(x: float) -> float:
        for j in range(6):
            for k in range(5):
                old = m[6 * k + j] * 1.5
                m[6 * k + j] = t[6 * k + j] * 2.0
                e[6 * k + j] = old + t[6 * k + j]
            s[0] = s[0] + t[j]
        return x

    made = Example(step, 1.0)
    lowered = lower(made.trace, made.regions)
    made.memory = lowered.memory
    made.check(lowered.program)


def test_18_a_batch() -> None:
    """The samples of a batch: after the pass each layer is a nest of its own."""
    model = mgjit.nn.MLP(3, [8, 1])

    def step(xs: list[list[float]]) -> mgjit.Value:
        loss: mgjit.Value = sum(model(x) ** 2 for x in xs)  # type: ignore[assignment]
        loss.backward()
        return loss

    made = Example(step, [numbers(3, seed) for seed in range(7)])
    before, after = made.lower("dead statements before"), made.lower("distribute")
    assert len(after.forward) > len(before.forward)
    assert len(after.backward) > len(before.backward)
    made.check(after)


@pytest.mark.parametrize("seed", range(25))
def test_19_random_nests(seed: int) -> None:
    """Whatever they access."""
    for program in (random_program(seed), random_program(seed, plain=True), random_chain(seed)):
        same_bits(program, distribute)
