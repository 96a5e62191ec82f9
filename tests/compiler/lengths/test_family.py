"""Traces of different lengths share one Program: it gives the numbers of each member, and nobody else gets in."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.codegen.python import emit_python, load_python
from mgjit.compiler.lengths.family import Boxed, Family, Member
from mgjit.compiler.lengths.lengths import Unlike
from mgjit.compiler.pipeline.pipeline import Lowered
from mgjit.compiler.pipeline.shared import lower_family, member_of
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.opcodes import GRADIENT, INPUT, OUTPUT, PARAMETER, STATE
from mgjit.ir.printer import print_program
from mgjit.ir.program import Array
from mgjit.ir.verify import verify
from tests.lowering import SCALAR, WIDE, Example, bits, flat, numbers, sgd
from tests.workload import values

Step = Callable[..., Any]


def prefix_sums() -> Step:
    """Row i sums i + 1 products; a triangle, and the number behind the sequence."""
    weights = values(random.Random(1), 20)

    def step(xs: Any, rate: Any) -> Any:
        sums = [sum(weights[k] * xs[k] for k in range(i + 1)) for i in range(len(xs))]
        loss = sum(y * y for y in sums)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    return step


def recurrent() -> Step:
    """The last state counts, over the length of the sequence."""
    weights = values(random.Random(2), 3)

    def step(xs: Any, y: Any) -> Any:
        h: Any = weights[0] * 0.0
        for x in xs:
            h = (h * weights[1] + weights[2] * x).tanh()
        loss = (h - y) ** 2 * (1.0 / len(xs))
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, 0.1)
        return loss

    return step


def suffixes() -> Step:
    """Loops that become shorter, and one result for each number."""

    def step(xs: Any, y: Any) -> Any:
        found = []
        for i in range(len(xs)):
            total = xs[i] * 0.5
            for k in range(i, len(xs)):
                total = total - xs[k] * y
            found.append(total)
        return found

    return step


def attention() -> Step:
    """Each position attends to itself and those before it."""
    width = 4
    weights = values(random.Random(3), 3 * width * width)
    rows = [weights[k * width : (k + 1) * width] for k in range(3 * width)]

    def step(xs: Any, rate: Any) -> Any:
        keys: list[Any] = []
        found: list[Any] = []
        loss = 0.0
        for t in range(len(xs) // width):
            x = xs[t * width : (t + 1) * width]
            query, key, value = (
                [sum((a * b for a, b in zip(row, x)), 0.0) for row in rows[m * width : (m + 1) * width]]
                for m in range(3)
            )
            keys.append(key)
            found.append(value)
            powers = [mgjit.exp(sum(a * b for a, b in zip(query, other))) for other in keys]
            total = sum(powers)
            mixed = [sum(p / total * v[j] for p, v in zip(powers, found)) for j in range(width)]
            loss = loss + sum(y * y for y in mixed)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    return step


STEPS: dict[str, tuple[Callable[[], Step], int]] = {
    "prefix sums": (prefix_sums, 1),
    "recurrent": (recurrent, 1),
    "suffixes": (suffixes, 1),
    "attention": (attention, 4),
}


def example(step: Step, length: int, unit: int = 1) -> Example:
    return Example(step, numbers(length * unit, seed=length), 0.05)


def member(one: Example) -> Member:
    return member_of(one.trace, one.regions)


def family(one: Example, other: Example, processor: Processor | None = WIDE) -> tuple[Family, Lowered]:
    found, lowered = lower_family(member(one), member(other), processor)
    verify(lowered.program)
    return found, lowered


def contents(one: Example, lowered: Lowered) -> dict[Array, Any]:
    """The memory of an example, by the arrays of the shared Program."""
    own = {(array_.space, array_.region): content for array_, content in one.contents().items()}
    kinds = (PARAMETER, GRADIENT, STATE, INPUT, OUTPUT)
    return {a: own[a.space, a.region] for kind in kinds for _, a in lowered.memory.regions[kind]}


def refuse_lifting_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, only those statements of members may be lifted that depend on the number."""
    lifted = Boxed.lifted

    def partly(self: Boxed, *arguments: Any) -> Any:
        assert len(arguments) == 3, "all of it is lifted"
        return lifted(self, *arguments)

    monkeypatch.setattr(Boxed, "lifted", partly)


def check(one: Example, found: Family, lowered: Lowered) -> None:
    """Interpret the shared Program, and run the Python that is made of it, for an example; compare every bit."""
    row = found.row(member(one))
    program = lowered.program
    program.constants = row.constants
    interpreted, generated = contents(one, lowered), contents(one, lowered)
    Interpreter(program, interpreted, [row.number]).run()
    layout = lay_out(program, lowered.memory)
    source = emit_python(program, layout)
    load_python(source)["step"](Example.buffers(layout, program, generated, [row.number]))
    expected = [bits(x) for x in flat(one.function(*one.arguments))]
    after = contents(one, lowered)
    outputs = lowered.memory.regions[OUTPUT][0][1]
    for memory in (interpreted, generated):
        assert [bits(x) for x in flat(one.result(memory[outputs]))] == expected
        for array_, content in after.items():
            if array_ is not outputs:
                assert [bits(x) for x in memory[array_]] == [bits(x) for x in content], array_


@pytest.mark.parametrize("processor", [WIDE, SCALAR, None])
@pytest.mark.parametrize("name", STEPS)
def test_01_one_program_gives_the_numbers_of_all_members(name: str, processor: Processor | None) -> None:
    make, unit = STEPS[name]
    step = make()
    found, lowered = family(example(step, 6, unit), example(step, 7, unit), processor)
    for length in (8, 4, 6, 5, 7):
        check(example(step, length, unit), found, lowered)


def test_02_the_order_of_the_two_first_members_does_not_matter() -> None:
    step = recurrent()
    long, short = example(step, 9), example(step, 5)
    texts = {print_program(family(one, other)[1].program) for one, other in ((long, short), (short, long))}
    assert len(texts) == 1


def test_03_there_is_room_for_longer_members_but_not_for_all() -> None:
    step = recurrent()
    found, lowered = family(example(step, 5), example(step, 9))
    check(example(step, 13), found, lowered)  # between 9 and 16, in fours
    with pytest.raises(Unlike, match="records"):
        found.row(member(example(step, 40)))


def test_04_numbers_that_no_length_explains_are_no_family() -> None:
    """Two points are always on a line; the third one is not."""

    def step(xs: Any, y: Any) -> Any:
        total = xs[len(xs) * len(xs) % 5] * y
        for x in xs:
            total = total * 0.5 + x
        return total

    found, lowered = family(example(step, 6), example(step, 7))
    check(example(step, 6), found, lowered)
    with pytest.raises(Unlike, match="indices"):
        found.row(member(example(step, 8)))


def test_05_a_step_that_looks_at_the_length_is_no_member() -> None:
    def step(xs: Any, y: Any) -> Any:
        total = y * 2.0 if len(xs) % 3 else y - 2.0
        for x in xs:
            total = total * 0.5 + x
        return total

    found, lowered = family(example(step, 4), example(step, 5))
    check(example(step, 7), found, lowered)
    with pytest.raises(Unlike, match="operations"):
        found.row(member(example(step, 6)))


def test_06_only_the_last_partial_sum_of_each_member_is_one_that_is_not_kept() -> None:
    """Element 4 is the last one of some member, which must not make it a total."""

    def step(xs: Any, y: Any) -> Any:
        sums = []
        total = y * 0.0
        for x in xs:
            total = total + x
            sums.append(total)
        return sums[4] * total

    found, lowered = family(example(step, 6), example(step, 8))
    for length in (5, 6, 7, 8):
        check(example(step, length), found, lowered)


def test_07_an_unlike_pair_says_why() -> None:
    step = recurrent()
    with pytest.raises(Unlike, match="same number of records"):
        family(example(step, 5), example(step, 5))
    with pytest.raises(Unlike, match=r"they (have|work on)"):
        family(example(step, 5), example(prefix_sums(), 7))


def test_08_a_family_survives_being_stored() -> None:
    step = attention()
    found, lowered = family(example(step, 6, 4), example(step, 7, 4))
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    check(example(step, 5, 4), again, lowered)


def test_09_arguments_behind_a_sequence_move_with_its_length() -> None:
    def step(xs: Any, a: Any, b: Any) -> Any:
        total = a
        for x in xs:
            total = total * b + x
        return total - b

    made = [Example(step, numbers(length), 0.5, 0.25) for length in (6, 8, 7)]
    found, lowered = family(made[0], made[1])
    for one in made:
        check(one, found, lowered)
