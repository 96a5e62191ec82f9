"""Generated C as a program of its own, under the sanitizers, compared with the kernel bit for bit.

1. A `Case` is one generated source and what some of its calls found in memory and left there, slot by slot, as the
   kernel, compiled with the flags of the step, did it in this process.
2. `main_program` writes a C program around the source.  It reads those contents, gives each slot of the pointer block
   a piece of memory of exactly its size, calls the entries, and prints what is in memory afterwards.
3. `check` compiles that with warnings as errors and the sanitizers, runs it as a process, and compares.

As an own process, nothing has to be preloaded into Python, and what the sanitizers say is exit code and text.  Memory
comes from malloc, so that one byte beyond the end of any buffer is noticed, and scratch memory is full of nan, so that
what is read before it is written shows.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mgjit.base import ffi
from mgjit.compiler.codegen.entries import MOST_INPUTS, input_slots
from mgjit.compiler.codegen.layout import Layout
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.ir.program import Program

#: Warnings of generated C are defects.  The ABI of vectors as arguments is no concern of functions that are static.
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wno-psabi")

SANITIZERS = (
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g1",
)

#: Ways to run the step, each of which must leave the same; separate phases run in only one way. Rows of a loop.
WAYS = ("run", "call", "short call", "closed gate", "loop")
ROWS = 3

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {{ SLOTS = {slots}, INPUTS = {inputs}, OUTPUT = {output}, ROWS = {rows} }};
static const int input_slots[] = {{ {input_slots} }};
static size_t size_of[SLOTS];
static unsigned char *kept[SLOTS], *used[SLOTS];

static void *memory(size_t size)
{{
    void *found = size ? malloc(size) : NULL;
    if (size && !found) abort();
    return found;
}}

static void read_exactly(void *where, size_t size, FILE *file)
{{
    if (size && fread(where, 1, size, file) != size) abort();
}}

/* What input files say of one call: for each slot its size and content. */
static int read_call(FILE *file)
{{
    for (int slot = 0; slot < SLOTS; slot++) {{
        unsigned long long size;
        if (fread(&size, 1, sizeof size, file) != sizeof size) return 0;
        free(kept[slot]);
        size_of[slot] = (size_t)size;
        kept[slot] = memory(size_of[slot]);
        read_exactly(kept[slot], size_of[slot], file);
    }}
    return 1;
}}

/* New memory for every slot, with the content of the call; inputs and the output as often as there are rows. */
static void **new_block(int rows)
{{
    void **block = memory((SLOTS + 2) * sizeof *block);
    for (int slot = 0; slot < SLOTS; slot++) {{
        int count = 1;
        for (int k = 0; k < INPUTS; k++) if (input_slots[k] == slot) count = rows;
        if (slot == OUTPUT) count = rows;
        free(used[slot]);
        used[slot] = memory(size_of[slot] * (size_t)count);
        for (int row = 0; row < count && size_of[slot]; row++)
            memcpy(used[slot] + (size_t)row * size_of[slot], kept[slot], size_of[slot]);
        block[slot] = used[slot];
    }}
    block[SLOTS] = memory(8);
    block[SLOTS + 1] = memory(8);
    memset(block[SLOTS], 0, 8);
    memset(block[SLOTS + 1], 0, 8);
    return block;
}}

static void end_block(void **block)
{{
    free(block[SLOTS]);
    free(block[SLOTS + 1]);
    free(block);
}}

static void print_memory(const char *way)
{{
    for (int slot = 0; slot < SLOTS; slot++) {{
        size_t first = slot == OUTPUT && !strcmp(way, "loop") ? (ROWS - 1) * size_of[slot] : 0;
        printf("%s %d ", way, slot);
        for (size_t k = 0; k < size_of[slot]; k++) printf("%02x", used[slot][first + k]);
        printf("\\n");
    }}
}}

{calls}
int main(int count, char **arguments)
{{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file) abort();
    while (read_call(file)) {{
        void **block = new_block(1);
        {run}
        print_memory("run");
        end_block(block);
{use_calls}{use_loop}
    }}
    for (int slot = 0; slot < SLOTS; slot++) free(kept[slot]), free(used[slot]);
    fclose(file);
    return 0;
}}
"""

_USE_LOOP = """
        block = new_block(ROWS);
        long long *plan = memory((3 + 2 * (INPUTS + 1)) * sizeof *plan);
        int moved = 0;
        for (int k = 0; k <= INPUTS; k++) {
            int slot = k < INPUTS ? input_slots[k] : OUTPUT;
            if (!size_of[slot]) continue;
            plan[3 + 2 * moved] = slot;
            plan[4 + 2 * moved++] = (long long)size_of[slot];
        }
        plan[0] = ROWS, plan[1] = 0, plan[2] = moved;
        void *both[2] = { block, plan };
        mgjit_loop(both);
        if (plan[1] != ROWS) abort();
        print_memory("loop");
        free(plan);
        end_block(block);
"""

#: The packed numbers of a call follow the address of the block, in one piece of memory of exactly that size.
_CALLS = """
static void print_number(const char *way, double number)
{{
    unsigned long long bits;
    memcpy(&bits, &number, sizeof bits);
    printf("%s result %016llx\\n", way, bits);
}}

static double by_call(void **block, int is_short)
{{
    int slot = input_slots[0];
    double address = (double)(long long)block;
    double *numbers = memory(8 + size_of[slot]);
    memcpy(numbers, &address, 8);
    if (size_of[slot]) memcpy(numbers + 1, used[slot], size_of[slot]);
    double result = is_short ? mgjit_short_call(numbers{arguments}) : mgjit_call(numbers{arguments});
    free(numbers);
    return result;
}}
"""

_USE_CALLS = """
        for (int is_short = 0; is_short < 2; is_short++) {
            const char *way = is_short ? "short call" : "call";
            block = new_block(1);
            print_number(way, by_call(block, is_short));
            if (*(long long *)block[SLOTS + 1] != 1) abort();
            print_memory(way);
            end_block(block);
        }
        block = new_block(1);
        *(long long *)block[SLOTS] = 1;
        print_number("closed gate", by_call(block, 1));
        print_memory("closed gate");
        end_block(block);
"""

Contents = list[bytes]


@dataclass
class Case:
    """A source, the layout of its memory, whether its gradients count, whether its phases are separate, and calls.

    Of a call: what the slots hold before it, after one step, after as many as there are rows.
    """

    source: str
    layout: Layout
    grads: bool = True
    calls: list[tuple[Contents, Contents, Contents]] = field(default_factory=list)
    separate: bool = False

    @property
    def functions(self) -> tuple[str, ...]:
        """What runs the step."""
        return ("forward", "backward", "update") if self.separate else ("step",)

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways to run it."""
        callable_ = len(self.slots_of("input")) <= MOST_INPUTS
        return WAYS[:1] if self.separate else WAYS if callable_ else (WAYS[0], WAYS[-1])

    def slots_of(self, space: str) -> list[int]:
        """The slots of a memory space."""
        return [number for number, slot in enumerate(self.layout.slots) if slot.space == space]


class Kernel:
    """A Program compiled as steps are, which writes each of its calls down.

    Args:
        case: to be written to; its source is compiled.
        program: of that source.
        library: of that source.
    """

    def __init__(self, case: Case, program: Program, library: ffi.Library) -> None:
        self.case, self.program, self.library = case, program, library

    def run(self, memory: dict[Any, Any]) -> None:
        """Run the step on buffers by array, which it changes."""
        before = self._contents(memory)
        after = self._after(before, 1)
        self.case.calls.append((before, after, self._after(before, ROWS)))
        for region, slot in self.case.layout.slot_of.items():
            if region in memory and region.space != "input" and len(memory[region]):
                memoryview(memory[region]).cast("B")[:] = after[slot]

    def _contents(self, memory: dict[Any, Any]) -> Contents:
        layout, number = self.case.layout, self.program.precision.format
        contents = [b""] * len(layout.slots)
        for region, slot in layout.slot_of.items():
            if region in memory:
                contents[slot] = memoryview(memory[region]).cast("B").tobytes() if len(memory[region]) else b""
        contents[layout.slot_number("constant")] = array(number, self.program.constants).tobytes()
        contents[layout.slot_number("table")] = layout.tables.tobytes()
        contents[layout.slot_number("scratch")] = b"\xff" * (array(number).itemsize * layout.scratch_size)
        return contents

    def _after(self, before: Contents, times: int) -> Contents:
        buffers = [bytearray(content) for content in before]
        block = ffi.PointerBlock(len(buffers))
        for slot, buffer in enumerate(buffers):
            if buffer:
                block.set(slot, buffer)
        for _ in range(times):
            for name in self.case.functions:
                self.library.function(f"mgjit_{name}")(block)
        return [bytes(buffer) for buffer in buffers]


def main_program(case: Case) -> str:
    """The C of the whole program."""
    inputs = input_slots(case.layout.slots)
    callable_ = "call" in case.ways
    others = "".join(f", used[{slot}]" for slot in inputs[1:])
    main = _MAIN.format(
        slots=len(case.layout.slots),
        inputs=len(inputs),
        output=case.layout.slot_number("output"),
        rows=ROWS,
        input_slots=", ".join(map(str, inputs)),
        calls=_CALLS.format(arguments=others) if callable_ else "",
        run=" ".join(f"mgjit_{name}(block);" for name in case.functions),
        use_calls=_USE_CALLS if callable_ else "",
        use_loop=_USE_LOOP if "loop" in case.ways else "",
    )
    return case.source + main


def check(
    case: Case,
    compiler: Compiler,
    optimisation: Sequence[str] = ("-O1", "-march=native"),
    emulator: Sequence[str] = (),
) -> str:
    """What is wrong with a case under the sanitizers of a compiler; empty when nothing is.

    Args:
        case: with at least one call.
        compiler: gcc or clang.
        optimisation: level and processor.
        emulator: the command that runs a program for another machine, without sanitizers.
    """
    assert case.calls
    kept = [flag for flag in build.STRICT + build.COMMON if flag not in ("-shared", "-fPIC", "-w")]
    sanitizers = () if emulator else SANITIZERS
    with tempfile.TemporaryDirectory() as directory:
        source, program, data = (Path(directory) / name for name in ("main.c", "main", "data"))
        source.write_text(main_program(case), encoding="utf-8")
        data.write_bytes(b"".join(struct.pack("=Q", len(c)) + c for before, _, _ in case.calls for c in before))
        command = [*compiler.argv, *WARNINGS, *sanitizers, *kept, *optimisation, str(source), "-o", str(program), "-lm"]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode:
            return f"{' '.join(command)}\n{compiled.stderr[:4000]}"
        options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
        ran = subprocess.run(
            [*emulator, str(program), str(data)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **options},
        )
        if ran.returncode or ran.stderr:
            return f"exit code {ran.returncode}\n{ran.stderr[:4000]}"
    return difference(case, ran.stdout.splitlines())


def difference(case: Case, printed: Sequence[str]) -> str:
    """The first line that is not what the kernel did, in words; all nans are alike, as their bits depend on compilers.

    Scratch memory is nobody's business, nor are gradients of a step that promises none.
    """
    unseen = set(case.slots_of("scratch") + ([] if case.grads else case.slots_of("gradient")))
    wanted = expected(case)
    if len(printed) != len(wanted):
        return f"{len(printed)} lines instead of {len(wanted)}"
    for line, (way, slot, content) in zip(printed, wanted):
        name, what, text = line.rsplit(" ", 2)
        if (name, what) != (way, str(slot)):
            return f"{name} {what} instead of {way} {slot}"
        kind = ">d" if isinstance(slot, str) else case.layout.slots[slot].format
        if slot not in unseen and not _alike(bytes.fromhex(text), content, kind, exact=way == "closed gate"):
            return f"{name} {what} {text[:200]} instead of {content.hex()[:200]}"
    return ""


def _alike(found: bytes, wanted: bytes, kind: str, exact: bool) -> bool:
    """Whether two contents are the same numbers."""
    if found == wanted or exact or kind[-1] not in "df":
        return found == wanted
    pairs = zip(struct.iter_unpack(kind, found), struct.iter_unpack(kind, wanted))
    size = struct.calcsize(kind)
    return len(found) == len(wanted) and all(
        found[k * size : (k + 1) * size] == wanted[k * size : (k + 1) * size] or (a != a and b != b)
        for k, ((a,), (b,)) in enumerate(pairs)
    )


def expected(case: Case) -> list[tuple[str, int | str, bytes]]:
    """What the program prints when it does what the kernel did: way, slot or "result", and content."""
    lines: list[tuple[str, int | str, bytes]] = []
    output = case.layout.slot_number("output")
    for before, after, looped in case.calls:
        kind = case.layout.slots[output].format
        first = struct.unpack_from(kind, after[output])[0] if after[output] else 0.0
        for way in case.ways:
            if "call" in way or "gate" in way:
                refused = bytes.fromhex("fff8000000000000")
                lines.append((way, "result", refused if way == "closed gate" else struct.pack(">d", first)))
            memory = {"closed gate": before, "loop": looped}.get(way, after)
            lines += [(way, slot, content) for slot, content in enumerate(memory)]
    return lines
