"""Generated Python: the same loops, the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.codegen.python import emit_python, load_python
from mgjit.engine.precision import PRECISIONS
from tests.compiler.codegen.test_c import EXAMPLES
from tests.lowering import Example, bits, numbers


def recurrence() -> Example:
    """Choices of operands and targets."""
    w = mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        h: Any = w
        for x in xs:
            h = mgjit.tanh(h * w + x)
        h.backward()
        return h

    return Example(step, numbers(20))


def shared_sums() -> Example:
    """Mixed targets: gradients of values picked without a pattern."""
    ws = [mgjit.Value(v) for v in numbers(6)]

    def step(x: Any) -> Any:
        found = [mgjit.exp(w * x) for w in ws] + [mgjit.tanh(w * x) for w in ws]
        loss = sum(found[k] * ws[j] for k, j in zip([0, 7, 2, 11, 1, 6, 3, 9], [4, 1, 5, 2, 2, 3, 0, 5]))
        loss.backward()
        return loss

    return Example(step, 0.3)


def long_code() -> Example:
    """Blocks."""
    ws = [mgjit.Value(v) for v in numbers(4)]

    def step(x: Any) -> Any:
        values = [w * x for w in ws]
        for k in range(500):
            a, b = values[(k * k + 3) % len(values)], values[(k * 7 + 1) % len(values)]
            values.append([a + b, a * b, mgjit.tanh(a), mgjit.maximum(a, b)][(k * k * 5 + k) % 7 % 4])
        loss = sum(values)
        loss.backward()
        return loss

    return Example(step, 0.3)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("example", [*EXAMPLES, recurrence, shared_sums, long_code])
def test_01_the_same_numbers_as_the_interpreter(example: Callable[[], Example], dtype: str) -> None:
    """All memory, bit for bit."""
    made = example() if dtype == "float64" else example().in_float32()
    program = made.lower()
    memory = made.contents()
    expected = made.run(program)
    layout = lay_out(program, made.memory)
    functions = load_python(emit_python(program, layout))
    functions["step"](made.buffers(layout, program, memory))
    for place, content in memory.items():
        assert [bits(x) for x in content] == [bits(x) for x in expected[place]], place


def test_02_phases_make_the_step() -> None:
    """forward, backward, update in turn are `step`."""
    made = EXAMPLES[1]()
    contents = []
    for separate, names in ((False, ["step"]), (True, ["forward", "backward", "update"])):
        program = made.lower(separate=separate)
        layout = lay_out(program, made.memory)
        functions = load_python(emit_python(program, layout))
        assert ("step" in functions) is not separate
        memory = made.contents()
        buffers = made.buffers(layout, program, memory)
        for name in names:
            functions[name](buffers)
        contents.append(list(memory.values()))
    assert contents[0] == contents[1]


def test_03_literals() -> None:
    """Infinities, nan and negative zero are valid Python."""
    made = Example(lambda x: (math.inf + x, x - math.inf, math.nan * x, x / -math.inf, x == -0.0), 0.5)
    program = made.lower()
    text = emit_python(program, lay_out(program, made.memory))
    compile(text, "generated", "exec")
    assert "infinity" in text
    assert "inf *" not in text


def test_04_two_threads_round_in_memory_of_their_own() -> None:
    """A number that is being rounded is never seen by another call."""
    texts = []
    for made in (EXAMPLES[0](), EXAMPLES[0]().in_float32()):
        program = made.lower()
        texts.append(emit_python(program, lay_out(program, made.memory)))
    assert "single" not in texts[0]
    assert texts[1].count("single = new_single()") == texts[1].count("def ") - 1  # all but `step`, which calls them
