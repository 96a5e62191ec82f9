"""Loops over stretches of memory that lie side by side become one, and compute the same."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.adjacent import join_adjacent
from mgjit.ir.program import Array, Loop, Node, PaddedRows, Program, Register, Statement
from tests.handmade import around, at, define, load, same_bits

pytestmark = pytest.mark.once


class Rule:
    """Makes nests that do the same to other elements: `s = 0.5 s + g;  p = p - rate s`."""

    def __init__(self, size: int) -> None:
        self.p, self.g, self.s = (
            Array("p", "parameter", size),
            Array("g", "gradient", size),
            Array("s", "state", size + 3),
        )
        self.rate = Array("x", "input", 2)

    def over(self, *terms: tuple[Loop, int], base: int = 0, last: str = "subtract") -> Loop:
        """The rule for a nest, outermost loop first."""
        half = Statement("multiply", (load(self.s, *terms, base=base + 3), load(self.rate, base=1)))
        moved = define(at(self.s, *terms, base=base + 3), "add", Register(half), load(self.g, *terms, base=base))
        scaled = Statement("multiply", (load(self.rate), Register(moved)))
        done = define(at(self.p, *terms, base=base), last, load(self.p, *terms, base=base), Register(scaled))
        nest: list[Node] = [half, moved, scaled, done]
        for loop, _ in reversed(terms):
            nest = [around(loop, *nest)]
        (outermost,) = nest
        assert isinstance(outermost, Loop)
        return outermost


def counts(program: Program) -> list[int]:
    """The iterations of the loops at the top."""
    return [node.count for node in program.forward if isinstance(node, Loop)]


def test_01_stretches_in_any_order() -> None:
    """Rows, columns, and a stretch that goes backwards, become one loop with the same numbers."""
    rule = Rule(60)
    i, j, k, m = Loop(4, []), Loop(5, []), Loop(30, [], reverse=True), Loop(10, [])
    program = Program([rule.over((i, 1), (j, 4), base=30), rule.over((k, 1)), rule.over((m, 1), base=50)])
    same_bits(program, join_adjacent)
    assert counts(program) == [60]


def test_02_what_does_not_touch_stays() -> None:
    """A stretch that is left out, overlapping stretches, another rule, and what is in between keep loops apart."""
    rule = Rule(60)

    def stretch(start: int, count: int, last: str = "subtract") -> Loop:
        return rule.over((Loop(count, []), 1), base=start, last=last)

    between = define(at(rule.rate), "add", load(rule.rate), load(rule.p))
    for nests in (
        [stretch(0, 10), stretch(11, 10)],
        [stretch(0, 10), stretch(9, 10)],
        [stretch(0, 10), stretch(10, 10, "add")],
        [stretch(0, 10), between, stretch(10, 10)],
        [stretch(0, 10), rule.over((Loop(10, []), 2), base=10)],
    ):
        program = Program(list(nests))
        same_bits(program, join_adjacent)
        assert program.forward == nests


def test_03_what_other_iterations_write() -> None:
    """Nests whose iterations need each other keep their order."""
    p = Array("p", "parameter", 40)

    def chain(start: int) -> Loop:
        loop = Loop(10, [])
        twice = Statement("multiply", (load(p, (loop, 1), base=start + 1), load(p, (loop, 1), base=start)))
        more = Statement("add", (Register(twice), load(p, (loop, 1), base=start)))
        return around(loop, twice, more, define(at(p, (loop, 1), base=start), "copy", Register(more)))

    nests: list[Node] = [chain(0), chain(10)]
    program = Program(list(nests))
    same_bits(program, join_adjacent)
    assert program.forward == nests


def test_04_padding_behind_rows() -> None:
    """Rows with padding are a stretch, if all that is written has the same padding."""
    for padded in (True, False):
        rule = Rule(60)
        if padded:
            rule.p.padded_rows = PaddedRows(20, 6, 8, 5), PaddedRows(0, 20, 20, 1)
            rule.s.padded_rows = (PaddedRows(23, 6, 8, 5),)
        i, j = Loop(6, []), Loop(5, [])
        program = Program([rule.over((Loop(20, []), 1)), rule.over((i, 1), (j, 8), base=20)])
        join_adjacent(program)
        assert counts(program) == ([60] if padded else [20, 6])


def test_05_what_fits_no_cache() -> None:
    """Long stretches stay apart, so that their gradients can be summed and used at once."""
    rule = Rule(20_000)
    nests = [rule.over((Loop(10_000, []), 1), base=base) for base in (0, 10_000)]
    program = Program(list(nests))
    join_adjacent(program)
    assert program.forward == nests
