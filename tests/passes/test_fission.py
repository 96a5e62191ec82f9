"""Which loops are split into which parts, which stay whole, and that nothing changes."""

from __future__ import annotations

import mgjit
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
)
from mgjit.passes.fission import fission
from mgjit.passes.pipeline import lower
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example

D, X, T = (Array(name, "parameter", 60) for name in "dxt")
G, E = Array("g", "gradient", 60), Array("e", "gradient", 60)
ONE = Constant(1.0)


def split(loop: Loop) -> tuple[int, str]:
    """Number of parts, and their text; they run like the loop."""

    def change(program: Program) -> None:
        program.forward[:] = fission(loop)

    program = Program([loop])
    program.tables.extend(range(10))
    same_bits(program, change)
    if len(program.forward) == 1:
        assert program.forward[0] is loop
    return len(program.forward), print_program(program)


def test_01_an_outer_and_an_inner_loop() -> None:
    """As in the docstring of the module: the inner loop first."""
    j, k = Loop(4, []), Loop(5, [])
    inner = around(
        k,
        update(at(G, (k, 4), (j, 1)), "add", load(T, (k, 1))),
        update(at(E, (k, 1)), "add", load(D, (j, 1))),
    )
    parts, text = split(around(j, define(at(D, (j, 1)), "copy", load(X, (j, 1))), inner))
    assert parts == 3
    assert text.splitlines()[1:-1] == [
        "    for i in 0 .. 3:",
        "        %0 = d[i] = copy(x[i])",
        "    for i in 0 .. 3:",
        "        for j in 0 .. 4:",
        "            g[4*j + i] = add(g[4*j + i], t[j])",
        "    for i in 0 .. 3:",
        "        for j in 0 .. 4:",
        "            e[j] = add(e[j], d[i])",
    ]


def pair(first: Node, second: Node, j: Loop) -> int:
    """Parts of `for j: for k: first; for l: second`."""
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
    assert pair(update(at(E), "add", load(X, (j, 1))), define(at(D, (j, 1)), "copy", load(T)), j) == 2


def test_05_tables_and_choices() -> None:
    """Accesses of a written array that are not affine keep the loop whole."""
    j = Loop(4, [])
    looked_up = Load(Reference(D, Index(0, (), TableEntry(0, ((j, 1),)))))
    for operand in (looked_up, Choice(j, load(D, (j, 1)), ONE)):
        reader = define(at(X, (j, 1)), "copy", operand)
        assert pair(define(at(D, (j, 1)), "copy", ONE), reader, j) == 1
        assert pair(define(at(T, (j, 1)), "copy", ONE), reader, j) == 2


def test_06_registers_keep_statements_together() -> None:
    """In an inner loop what shares a register stays together, by the place of its last statement."""
    j, k = Loop(3, []), Loop(4, [])
    place = (j, 4), (k, 1)
    one, two = Statement("exp", (load(X, *place),)), Statement("relu", (load(T, *place),))
    inner = around(
        k, one, two, define(at(G, *place), "copy", Register(two)), define(at(E, *place), "copy", Register(one))
    )
    parts, text = split(around(j, inner))
    assert parts == 2
    lines = [line.strip() for line in text.splitlines()]
    assert [line.split(" = ")[-1].split("(")[0] for line in lines if "%" in line] == ["relu", "copy", "exp", "copy"]


def test_07_registers_that_cross() -> None:
    """A register of an outer stretch that is used behind or inside a loop keeps the loop whole."""
    for inside in (True, False):
        j, k = Loop(3, []), Loop(4, [])
        made = Statement("relu", (load(X, (j, 1)),))
        use = define(at(G, (j, 4), (k, 1)) if inside else at(G, (j, 1)), "copy", Register(made))
        if inside:
            body: list[Node] = [made, around(k, use)]
        else:
            body = [made, around(k, update(at(E, (k, 1)), "add", ONE)), use]
        assert split(around(j, *body))[0] == 1


def test_08_stretches_stay_whole() -> None:
    """Statements beside each other are one part; so a loop of statements only is not split."""
    j = Loop(4, [])
    body = [define(at(D, (j, 1)), "copy", ONE), define(at(T, (j, 1)), "copy", ONE)]
    assert split(around(j, *body))[0] == 1


def test_09_blocks_and_long_bodies() -> None:
    """Blocks and bodies of many nodes are left as they are; up to 24 nodes are not."""
    j = Loop(4, [])
    assert pair(Block([define(at(D), "copy", ONE)]), define(at(T, (j, 1)), "copy", ONE), j) == 1
    for count, expected in ((24, 24), (25, 1)):
        j = Loop(2, [])
        arrays = [Array(f"a{number}", "parameter", 2) for number in range(count)]
        assert split(around(j, *(around(Loop(1, []), define(at(a, (j, 1)), "copy", ONE)) for a in arrays)))[0] == (
            expected
        )


def test_10_downwards() -> None:
    """Parts run in the direction of the loop."""
    j = Loop(4, [], reverse=True)
    first = around(Loop(1, []), update(at(E), "multiply", load(X, (j, 1))))
    parts, text = split(around(j, first, define(at(D, (j, 1)), "copy", load(T, (j, 1)))))
    assert parts == 2
    assert text.count("3 .. 0") == 2


def test_20_statements_that_alternate_stay_together() -> None:
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
