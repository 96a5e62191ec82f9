"""Instrumented code computes what the kernel computes, on copies of its memory, and its times add up."""

from __future__ import annotations

from array import array
from itertools import count

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.codegen.clock import Clock
from mgjit.report import study as studying
from mgjit.report.measured import Memory, measure
from tests.report.steps import network


def instrumented(step):
    """The instrumented code of a step: memory, clock, library and source."""
    studied = studying._Studied(step._kernels.maker, step._kernels.last, "step")
    lowered, layout, source, compiler = studied._emitted()
    memory = Memory(step._kernels.last, studied._noted, lowered, layout)
    library = None
    if compiler is not None:
        library = studying._built(compiler, source, studied._options, lowered.copies)
    return memory, studied._clock, library, source


def recurrent():
    """A step whose backward pass cannot be split: loops over loops."""
    cell, readout = nn.Layer(33, 32, nonlin=False), nn.Neuron(32, nonlin=False)
    parameters = cell.parameters() + readout.parameters()

    @mgjit.compile(background=False, backend="c")
    def step(xs):
        state = [0.0] * 32
        for x in xs:
            state = [mgjit.tanh(h) for h in cell([x, *state])]
        loss = readout(state)
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= 0.01 * p.grad
        return loss

    for _ in range(2):
        step([0.5] * 12)
    return step, ([0.5] * 12,)


@pytest.mark.parametrize("backend", ["c", "python"])
def test_the_numbers_are_those_of_the_kernel(backend):
    step, arguments, _ = network(backend=backend)
    memory, clock, library, source = instrumented(step)
    measure(memory, clock, library, source)
    loss = step(*arguments)
    slots = step._kernels.last.code.slots
    for slot, mine, real in zip(slots, memory.buffers, step._kernels.last.buffers):
        if slot.space in ("parameter", "gradient"):
            assert array("d", mine).tobytes() == array("d", real).tobytes(), slot
        elif slot.space == "output":
            assert list(mine) == [loss]


def test_every_run_begins_with_the_same_numbers():
    step, _, _ = network()
    memory, clock, library, source = instrumented(step)
    before = [bytes(memoryview(one).cast("B")) for one in memory.buffers[:2]]
    measure(memory, clock, library, source)
    assert [bytes(memoryview(one).cast("B")) for one in memory.buffers[:2]] != before
    memory.restore()
    assert [bytes(memoryview(one).cast("B")) for one in memory.buffers[:2]] == before


def test_loops_around_long_nests_are_divided():
    step, arguments = recurrent()
    memory, clock, library, source = instrumented(step)
    assert any(part.around for part in clock.parts)
    found = measure(memory, clock, library, source)
    assert len(found.parts) == len(clock.parts)
    assert found.call == pytest.approx(sum(found.parts))
    assert all(part >= 0.0 for part in found.parts)
    assert sum(part for part, one in zip(found.parts, clock.parts) if one.around) > 0.0
    step(*arguments)
    assert array("d", memory.buffers[0]).tobytes() == array("d", step._kernels.last.buffers[0]).tobytes()


def test_ticks_are_not_counted(monkeypatch):
    times = count()
    monkeypatch.setattr("mgjit.compiler.codegen.clock.perf_counter", lambda: float(next(times)))
    clock = Clock()
    clock.parts = [None, None]
    clock.take()
    clock.tick(-1)
    for _ in range(1000):
        clock.tick(0)
    next(times)
    clock.tick(1)
    assert list(clock.take()[:2]) == [0.0, 1.0]
    assert list(clock.take()[:2]) == [0.0, 0.0]
