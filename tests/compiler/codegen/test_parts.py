"""Parts of long phases: their edges, that equal ones share a function, and that the numbers stay the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.compiler.codegen import parts
from mgjit.compiler.codegen.parts import parts_of, registers_into
from mgjit.ir.builders import nested
from mgjit.ir.program import Array, Constant, Index, Load, Loop, Node, Reference, Register, Statement, count_statements
from tests.compiler.codegen.test_vectors import run
from tests.lowering import WIDE, Example

pytestmark = pytest.mark.once


def nest(array: Array, statements: int, *operands: Any) -> Loop:
    """A loop over an array."""
    loop = Loop(4, [])
    target = Reference(array, Index(0, ((loop, 1),)))
    loop.body = [Statement("add", (Load(target), *(operands or (Constant(1.0),))), target) for _ in range(statements)]
    return nested([loop], loop.body)[0]  # type: ignore[return-value]


def test_01_a_short_phase_is_one_part() -> None:
    array = Array("t0", "scratch", 4)
    nodes: list[Node] = [nest(array, 10) for _ in range(parts._SHORT // 10)]
    assert parts_of(nodes) == [nodes]
    assert len(parts_of([*nodes, nest(array, 10)])) == len(nodes) + 1


def test_02_single_statements_are_no_parts_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_SHORT", 0)
    array = Array("t0", "scratch", 4)
    first, second = (Statement("copy", (Constant(1.0),), Reference(array, Index(k))) for k in range(2))
    nodes: list[Node] = [
        nest(array, 9), first, nest(array, 9), second, nest(array, 9, Register(first)), nest(array, 9),
        nest(array, 9, Register(second)), nest(array, 1), nest(array, 2), nest(array, 9),
    ]  # fmt: skip
    found = parts_of(nodes)
    assert [node for part in found for node in part] == nodes
    assert [len(part) for part in found] == [1, 1, 1, 1, 1, 1, 1, 2, 1]
    assert [registers_into(part) for part in found] == [[], [], [], [], [first], [], [second], [], []]
    assert sum(map(count_statements, found)) == count_statements(nodes)


def layers(count: int) -> Example:
    """Linear layers of equal width."""
    weights = [T.uniform((24, 24), -0.3, 0.3, requires_grad=True) for _ in range(count)]

    def step(x: Any) -> Any:
        h = T.asarray(x).reshape((6, 24))
        for w in weights:
            h = T.tanh(h @ w)
        loss = h.sum()
        loss.backward()
        with mgjit.no_grad():
            for w in weights:
                w[...] = w - 0.1 * w.grad
        return loss.item()

    made = Example(step, [0.1 * k for k in range(144)])
    made.trace = replace(made.trace, has_pointers=False)  # otherwise the layers are a loop
    return made


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_03_equal_layers_share_functions_and_have_the_numbers_of_the_interpreter(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_SHORT", 0)
    text = run(layers(5), WIDE, family)
    functions = len(re.findall(r"^static NOINLINE void part\d+\(", text, re.MULTILINE))
    calls = len(re.findall(r"^    part\d+\(.*\);$", text, re.MULTILINE))
    assert calls - functions >= 8, (functions, calls)
