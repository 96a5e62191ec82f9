"""Program -> C source: the whole file; `function.py` writes each function of it.

The source includes no header: it then needs no C library development files, and compiles faster.  It exports
`mgjit_step`, a pure function of one array of pointers, and those of `entries.py`, which call it in other ways; or, of a
Program whose phases are run separately, `mgjit_forward`, `mgjit_backward` and `mgjit_update`.  Floating-point
constants are hexadecimal, so that no locale and no decimal rounding is involved.  `real` is the type of every
number of the step.  Every result is assigned to a `real` before it is used, which rounds what functions return
in double.

The text is clean under -Wall -Wextra and the sanitizers (tests/compiler/codegen/sanitizers.py), although users'
machines compile it with -w: a warning about it would be a defect of mgjit, which users could do nothing about.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import Program
from .clock import Clock
from .entries import called, entries, exported, sum_entries
from .function import Blocks, FunctionEmitter
from .layout import Layout
from .prologue import ENTRY, UNSIGNED, prologue, prototypes
from .rows import rotated_loop, row_loop
from .sharing import SOURCE as SHARING
from .sharing import give_threads_their_own, shared_loops
from .transpose import has_many
from .vectors import Vectors


def emit_c(
    program: Program,
    layout: Layout,
    mode: str = "strict",
    functions: frozenset[str] = frozenset(),
    clock: Clock | None = None,
    threads: int = 1,
) -> str:
    """The C source of a Program.

    Args:
        program: what to compute.
        layout: where its arrays lie.
        mode: "strict" or "fast".
        functions: the mathematical functions that have a version for whole vectors.
        clock: if given, the code also measures how long each part of the Program takes.
        threads: how many of them share its loops, but where it is measured.
    """
    if clock is not None:
        clock.parts.clear()
    shared = shared_loops(program) if threads > 1 and clock is None else {}
    give_threads_their_own(layout, shared, threads)
    parts: list[str] = []
    phases = [(name, nodes) for name, nodes in program.phases if nodes or program.separate]
    transposes = has_many(node for _, nodes in phases for node in nodes)
    blocks, vectors = Blocks(), Vectors(program.precision.name, mode, functions, transposes)
    emitters: list[FunctionEmitter] = []
    for name, nodes in phases:
        emitter = FunctionEmitter(program, layout, blocks, vectors)
        emitters.append(emitter)
        if clock is not None:
            clock.emit(name, nodes, emitter, blocks.sources)
        elif program.is_straight:
            emitter.nodes(nodes)
        else:
            emitter.parts(nodes)
        parts += blocks.take()
        parts.append(emitter.function(name))
    rotated = program.rotation is not None and clock is None and not shared
    if program.rotation is not None and rotated:
        emitter = FunctionEmitter(program, layout, blocks, vectors)
        emitter.nodes(program.rotation.nodes)
        parts.append(emitter.function("between_rows", next_row=", void *const *next"))
    if program.row is not None and not program.asks_first:
        emitters = [FunctionEmitter(program, layout, blocks, vectors)]
        emitters[0].nodes(program.row.nodes)
    unsigned = [UNSIGNED] if any(slot.format in ("L", "Q") for slot in layout.slots) else []
    parts = [
        *prologue(program.precision),
        *prototypes(blocks.called),
        *_entry(mode, threads if shared else 1),
        *unsigned,
        *vectors.source(),
        *([] if clock is None else [clock.c_source()]),
        *parts,
    ]
    if program.separate:
        bodies = {name: f"{{ ENTER {name}(m); LEAVE return 0; }}\n" for name, _ in phases}
        parts += [exported(f"int mgjit_{name}(void *const *m)", body) for name, body in bodies.items()]
        parts.append(sum_entries())
    else:
        names = [name for name, _ in phases]
        output = f"((const real *)m[{layout.slot_number('output')}])"
        ending = f"{output}[{program.verdict}]" if program.asks_first else ""
        at_once = called(names, ending=ending)
        parts.append(exported("int mgjit_step(void *const *m)", f"{{ ENTER {at_once} LEAVE return 0; }}\n"))
        in_one = program.is_straight and not program.asks_first
        loop = row_loop(program, layout, *_in_rows(emitters)) if in_one else ""
        if rotated:
            loop = rotated_loop(layout, names)
        parts.append(entries(layout, names, loop, program.is_path, ending))
    return "\n".join(parts)


def _entry(mode: str, threads: int) -> list[str]:
    """What an entry point does first and last."""
    if threads == 1:
        return [ENTRY[mode]]
    own = ENTRY[mode].replace("ENTER", "PREPARE").replace("LEAVE", "RESTORE")
    return [own, SHARING.format(threads=threads)]


def _in_rows(emitters: Sequence[FunctionEmitter]) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """The lines of each phase, and a pointer to each array; compilers are told nothing about what they point at."""
    pointers = dict(pointer for emitter in emitters for pointer in emitter.pointers())
    return [emitter.lines for emitter in emitters], [
        (declaration.replace("RESTRICT ", ""), source) for declaration, source in pointers.items()
    ]
