"""The entries of generated C beside `mgjit_step`."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

import mgjit
from mgjit.base import ffi
from mgjit.compiler.codegen.entries import LATE, MOST_INPUTS, entries, input_slots
from mgjit.compiler.codegen.layout import Layout
from mgjit.compiler.codegen.slot import Slot
from mgjit.compiler.toolchain import build, compilers

SOURCE = """\
#define EXPORT __attribute__((visibility("default")))
#define ENTER
#define LEAVE
typedef double real;
static void step(void *const *m) { *(double *)m[1] = *(double *)m[0] * 2.0 + *(unsigned char *)m[2]; }
EXPORT int mgjit_step(void *const *m) { step(m); return 0; }
"""


def layout(inputs: int = 2) -> Layout:
    slots = [Slot("input", 0, "d"), Slot("output", 0, "d")]
    return Layout(slots=[*slots, *(Slot("input", k, "B") for k in range(1, inputs))])


@pytest.fixture(scope="module", params=["gcc", "clang", "tcc"])
def library(request: pytest.FixtureRequest) -> ffi.Library:
    compiler = compilers.find(request.param) if compilers.find() else None
    if compiler is None:
        pytest.skip(f"{request.param} is not installed")
    built = build.compile_shared(compiler, SOURCE + entries(layout(), ["step"]), optimisation="-O2")
    return ffi.load_bytes(built.binary)


def test_01_input_slots() -> None:
    """In the order of regions, wherever they are."""
    slots = [Slot("input", 2, "B"), Slot("output", 0, "d"), Slot("input", 0, "d"), Slot("input", 1, "B")]
    assert input_slots(slots) == [2, 3, 0]


def test_02_a_loop(library: ffi.Library) -> None:
    """Pointers move by their strides; a second run goes on where the first ended."""
    numbers, results, raw = array("d", [1.0, -1.0, 2.0, -1.0, 3.0, -1.0]), array("d", [0.0] * 3), b"\x05\x06\x07"
    block, both = ffi.PointerBlock(3), ffi.PointerBlock(2)
    for slot, memory in enumerate((numbers, results, raw)):
        block.set(slot, memory)
    plan = array("q", [2, 0, 3, 0, 16, 1, 8, 2, 1])
    both.set_block(0, block)
    both.set(1, plan)
    run = library.bind("mgjit_loop", both)
    run()
    assert list(results) == [7.0, 10.0, 0.0]
    plan[0] = 1
    run()
    assert list(results) == [7.0, 10.0, 13.0]
    assert plan[1] == 3


def test_02b_rows_of_several_steps_in_turn(library: ffi.Library) -> None:
    """Each row by the loop of its step, which moves on in its own table; a second run goes on where the first ended."""
    numbers, raw = array("d", [1.0, 2.0, 3.0, 4.0, 5.0]), b"\x05\x06"
    results = [array("d", bytes(40)) for _ in range(2)]
    functions, arguments, everything = (ffi.PointerBlock(count) for count in (2, 2, 3))
    for number in range(2):
        block, both = ffi.PointerBlock(3), ffi.PointerBlock(2)
        for slot, memory in enumerate((numbers, results[number], raw[number:])):
            block.set(slot, memory)
        both.set_block(0, block)
        both.set(1, array("q", [1, 0, 2, 0, 8, 1, 8]))
        arguments.set_block(number, both)
        functions.set_function(number, library, "mgjit_loop")
    plan = array("q", [3, 0, 0, 1, 1, 0, 1])
    everything.set(0, plan)
    everything.set_block(1, functions)
    everything.set_block(2, arguments)
    run = library.bind("mgjit_turns", everything)
    run()
    assert [list(one) for one in results] == [[7.0, 0.0, 0.0, 0.0, 0.0], [8.0, 10.0, 0.0, 0.0, 0.0]]
    plan[0] = 2
    run()
    assert [list(one) for one in results] == [[7.0, 9.0, 0.0, 0.0, 0.0], [8.0, 10.0, 12.0, 0.0, 0.0]]
    assert plan[1] == 5


@pytest.mark.skipif(ffi.PYPY, reason="PyPy calls C in another way")
def test_03_calls(library: ffi.Library) -> None:
    """The inputs are arguments or in the block; a closed gate makes the short call do nothing."""
    results, gate, counter = array("d", [0.0]), array("q", [0]), array("q", [0])
    block = ffi.PointerBlock(5)
    for slot, memory in ((1, results), (2, b"\x09"), (3, gate), (4, counter)):
        block.set(slot, memory)

    def inputs(number: float) -> bytes:
        return array("d", [float(block.location()), number]).tobytes()

    for name in ("mgjit_call", "mgjit_short_call"):
        for holds_gil in (False, True):
            call: Any = library.caller(name, holds_gil)
            assert call is not None
            block.set(2, b"\x09")
            assert (call(inputs(1.5), None), call(inputs(1.5), b"\x01")) == (12.0, 4.0)
    assert counter[0] == 8
    short: Any = library.caller("mgjit_short_call", True)
    nan = float("nan")
    assert [math.copysign(1.0, short(inputs(number), b"\0")) for number in (nan, math.copysign(nan, -1.0))] == [
        1.0,
        1.0,
    ]
    assert short(inputs(-float("inf")), b"\0") == -float("inf")
    gate[0] = 1
    refused = short(inputs(1.5), b"\0")
    assert refused != refused
    assert math.copysign(1.0, refused) < 0
    assert counter[0] == 11
    library.bind("mgjit_counted_step", block)()
    assert counter[0] == 12


def test_04_many_inputs() -> None:
    """Too many for arguments: only the loop."""
    assert "mgjit_call" in entries(layout(MOST_INPUTS), [])
    assert "mgjit_call" not in entries(layout(MOST_INPUTS + 1), [])
    step = mgjit.compile(lambda d: sum(raw[0] for raw in d.values()) * 1.0)
    rows = {k: bytes([k]) for k in range(MOST_INPUTS + 8)}
    assert [step(rows) for _ in range(5)] == [float(sum(rows))] * 5


@pytest.mark.skipif(ffi.PYPY, reason="PyPy calls C in another way")
def test_05_late_gradients() -> None:
    """A call leaves them out where it may, `mgjit_gradients` computes those that are due, a loop its last ones."""
    compiler = compilers.find()
    if compiler is None:
        pytest.skip("no C compiler")
    more = "static void gradients(void *const *m) { *(double *)m[2] += 1.0; }\n"
    built = build.compile_shared(compiler, SOURCE + more + entries(layout(), ["step", LATE]), optimisation="-O1")
    library = ffi.load_bytes(built.binary)
    results, gate, words, computed = array("d", [0.0]), array("q", [0]), array("q", [0, 1]), array("d", [0.0])
    block = ffi.PointerBlock(6)
    for slot, memory in ((1, results), (2, computed), (3, gate), (4, array("q", [0]))):
        block.set(slot, memory)
    call: Any = library.caller("mgjit_call", True)
    inputs = array("d", [float(block.location()), 1.5]).tobytes()
    call(inputs, None)
    assert list(computed) == [1.0]
    block.set(5, words)
    call(inputs, None)
    assert (list(computed), list(words)) == ([1.0], [1, 1])
    for _ in range(2):
        library.bind("mgjit_gradients", block)()
        assert (list(computed), list(words)) == ([2.0], [0, 1])
    words[1] = 0
    call(inputs, None)
    assert (list(computed), list(words)) == ([3.0], [0, 0])
    both = ffi.PointerBlock(2)
    both.set_block(0, block)
    for rows in (2, 0):
        both.set(1, array("q", [rows, 0, 0]))
        library.bind("mgjit_loop", both)()
        assert list(computed) == [4.0]
