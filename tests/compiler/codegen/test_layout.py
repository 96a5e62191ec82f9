"""The pointer block and scratch memory of a kernel."""

from __future__ import annotations

import mgjit
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.codegen.slot import Slot
from mgjit.ir.program import Mixed, arrays_read, arrays_written, statements
from tests.compiler.codegen.test_c import tables, training
from tests.lowering import Example, numbers


def test_01_slots() -> None:
    """Parameters, gradients, state, inputs, outputs, then what belongs to the code."""
    made = tables()
    layout = lay_out(made.lower(), made.memory)
    assert layout.slots == [
        Slot("parameter", 0, "d"), Slot("gradient", 0, "d"), Slot("input", 0, "d"), Slot("input", 1, "B"),
        Slot("output", 0, "d"), Slot("constant", 0, "d"), Slot("table", 0, "i"), Slot("scratch", 0, "d"),
    ]  # fmt: skip
    assert layout.slot_number("scratch") == 7


def test_02_scratch_arrays_do_not_overlap() -> None:
    """Each has its stretch, all fit, and one element is left for what nobody reads."""
    made = Example(lambda xs: [[mgjit.exp(x) * y for y in xs] for x in xs], numbers(6))
    program = made.lower("lift")
    layout = lay_out(program, made.memory)
    stretches = sorted((offset, offset + array.size) for array, offset in layout.offset_of.items())
    assert all(end <= start for (_, end), (start, _) in zip(stretches, stretches[1:]))
    assert stretches[-1][1] < layout.scratch_size


def test_03_every_array_has_a_place() -> None:
    """Whatever a statement touches is in a slot or in scratch."""
    for made in (tables(), training()):
        for stage in ("differentiate", ""):
            program = made.lower(stage)
            layout = lay_out(program, made.memory)
            used = {
                a
                for _, nodes in program.phases
                for s in statements(nodes)
                for a in (*arrays_read(s), *arrays_written(s))
            }
            assert used <= set(layout.slot_of) | set(layout.offset_of)


def test_04_mixed_operands() -> None:
    """Scratch arrays share one base; the tables are rewritten to places in it."""
    made = tables()
    program = made.lower("lift")
    layout = lay_out(program, made.memory)
    mixed = [o for s in statements(program.forward) for o in s.operands if isinstance(o, Mixed)]
    assert mixed
    for operand in mixed:
        selection = layout.selection(operand)
        assert selection.bases.count(None) <= 1
        size = 1
        for loop, _ in operand.position.terms:
            size *= loop.count
        places = layout.tables[selection.position.offset : selection.position.offset + size]
        assert all(0 <= place < layout.scratch_size for place in places)


def test_float32_slots() -> None:
    """Everything but tables and buffers of the caller."""
    made = tables().in_float32()
    layout = lay_out(made.lower(), made.memory)
    assert [slot.format for slot in layout.slots] == ["f", "f", "f", "B", "f", "f", "i", "f"]
