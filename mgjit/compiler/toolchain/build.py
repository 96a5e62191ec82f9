"""Compile one C source to one shared object.

1. The flags follow from the compiler's family, the mode and the optimisation; no compiler runs for that,
   because flags are part of the cache key and a warm process must start none.
2. The source goes into a private directory that is always removed; the compiler runs there, on relative
   names, as a list of arguments (never through a shell), with limits of time and memory: `process.py`.
3. If it runs out of time or memory, the same compiler is tried at -O1, then at -O0; then there is a `CompilerTimeout`
   or `CompilerMemoryError`.
4. If linking fails (no message points at a line of the source), it is tried once more with the other way to link, see
   `_link_choices`; every other failure is a `CompilerError` that shows the lines of C that the messages point at.
5. Success means that the result is a complete shared object; the exit code alone is not enough, because some host
   programs hide it.  A library that would ask for an executable stack is corrected.

Generated C includes no header.  It declares what it calls (`extern double exp(double);`) and marks its entry
points `__attribute__((visibility("default")))`.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mgjit.base import scratch, settings
from mgjit.compiler.toolchain.process import CompilerNotStarted, orderly_termination, run
from mgjit.compiler.toolchain.shared_object import is_shared_object, without_executable_stack
from mgjit.engine.libm import mapped_libm
from mgjit.errors import CompilerError, CompilerMemoryError, CompilerTimeout

if TYPE_CHECKING:
    from mgjit.compiler.toolchain.compilers import Compiler

COMMON = (
    "-shared",
    "-fPIC",  # a shared object may be loaded at any address
    "-w",  # users cannot act on warnings about generated code; the tests check that there are none
    "-fvisibility=hidden",  # only marked entry points are exported, so that kernels cannot bind to each other
    "-fno-math-errno",  # errno is not read; without this flag, square roots are calls instead of instructions
    # The floating-point exception flags are not read.  This changes no value, and lets gcc vectorise
    # loops with comparisons (2 of 6 without it; clang assumes it anyway).
    "-fno-trapping-math",
    "-fno-strict-aliasing",  # buffers have no C type of their own; `restrict` says what the optimiser needs
)

STRICT = (
    "-ffp-contract=off",  # a*b+c stays two roundings, as in Python; gcc's default fuses them
    # pow(x, 2) must not become x*x, nor exp(1.0) a constant computed by other means than the libm of the
    # interpreter.  `__builtin_sqrt` and `__builtin_fabs`, which are exact, remain instructions.
    "-fno-builtin",
)

FAST = (
    # Not -ffast-math: it implies -ffinite-math-only (NaN and inf checks vanish), and gcc before 13 links a
    # start-up file with it that turns denormals off for the whole process.
    "-ffp-contract=fast",
    "-fassociative-math",
    "-fno-signed-zeros",  # -fassociative-math needs it
    "-freciprocal-math",
)


@dataclass(frozen=True)
class Built:
    """A shared object and how it was made (at a lower optimisation than requested, if time ran out)."""

    binary: bytes
    seconds: float
    flags: tuple[str, ...]
    compiler: Compiler
    optimisation: str


def flags(compiler: Compiler, mode: str = "strict", optimisation: str = "-O2") -> tuple[str, ...]:
    """The flags for a family, mode ("strict" or "fast") and optimisation (such as "-O3 -march=native")."""
    if mode not in ("strict", "fast"):
        raise ValueError(f"mode must be 'strict' or 'fast', not {mode!r}")
    kind = compiler.kind
    if not kind.optimises:  # each statement is rounded as written
        return ("-shared", "-w", *settings.cflags())
    chosen = [*COMMON, *(STRICT if mode == "strict" else FAST)]
    words = optimisation.split()
    if mode == "fast" and not any(word.startswith(("-march=", "-mcpu=")) for word in words):
        words.append(native())
    if compiler.family == "gcc" and not {"-O1", "-Og"}.isdisjoint(words):
        # Only with this flag does gcc clear the upper halves of vector registers before it calls exp or pow, which
        # are several times slower otherwise.
        words.append("-fexpensive-optimizations")
    chosen += kind.flags
    if kind.processor and not any(word.startswith(("-march=", "-mcpu=")) for word in words):
        words.append(kind.processor)
    if platform.machine() in ("i386", "i486", "i586", "i686"):
        words += ["-msse2", "-mfpmath=sse"]  # the x87 unit rounds to 64 bits of mantissa
    return (*chosen, *words, *settings.cflags())


def native() -> str:
    """The flag for the processor of this machine; cache keys then include the processor's features."""
    return "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"


def compile_shared(
    compiler: Compiler,
    source: str,
    *,
    mode: str = "strict",
    optimisation: str = "-O2",
    time_limit: float | None = None,
) -> Built:
    """Compile C source to a shared object.

    Args:
        compiler: the one to use.
        source: in C.
        mode: "strict" or "fast".
        optimisation: flags; lower levels are tried if it takes too much time or memory.
        time_limit: in seconds, for each level; None: MGJIT_COMPILE_SECONDS.
    """
    start = time.perf_counter()
    limit = settings.compile_seconds() if time_limit is None else time_limit
    tried: list[tuple[str, ...]] = []
    reason: CompilerError | None = None
    for level in _levels(optimisation):
        chosen = flags(compiler, mode, level)
        if chosen in tried:
            continue
        tried.append(chosen)
        try:
            binary = _compile(compiler, source, chosen, mode, limit)
        except (CompilerTimeout, CompilerMemoryError) as error:
            settings.LOGGER.info("%s at %s: %s", compiler.path, level, error)
            reason = error
            continue
        return Built(binary, time.perf_counter() - start, chosen, compiler, level)
    assert reason is not None
    raise _given_up(compiler, source, tried, reason, limit)


def _given_up(
    compiler: Compiler, source: str, tried: Sequence[Sequence[str]], last: CompilerError, limit: float
) -> CompilerError:
    """The error for a source that needs too much at every level; `last` is the error at the lowest one."""
    levels = "; ".join(" ".join(words) for words in tried)
    advice = "Another compiler may need less: compiler='tcc' is fast, because it does not optimise."
    lines = f"{compiler.command} did not compile {len(source.splitlines())} lines of C within"
    if isinstance(last, CompilerMemoryError):
        allowed = f"the memory that {settings.COMPILE_MEMORY.name} allows"
        return CompilerMemoryError(f"{lines} {allowed}, tried with: {levels}. {advice} At last: {last}")
    allowed = f"{limit:g} seconds ({settings.COMPILE_SECONDS.name})"
    return CompilerTimeout(f"{lines} {allowed}, tried with: {levels}. {advice}")


def _levels(optimisation: str) -> list[str]:
    """The requested optimisation, then the same flags at -O1, then at -O0."""
    words = optimisation.split()
    asked = [word for word in words if word.startswith("-O")]
    rest = [word for word in words if not word.startswith("-O")]
    below = {"-O1": ["-O0"], "-Og": ["-O0"], "-O0": []}.get(asked[-1] if asked else "-O0", ["-O1", "-O0"])
    return [optimisation, *(" ".join([level, *rest]) for level in below)]


def _compile(compiler: Compiler, source: str, chosen: Sequence[str], mode: str, time_limit: float) -> bytes:
    """Run the compiler at one level, and once more with the other way to link if linking failed."""
    with _workspace(source) as directory:
        target = os.path.join(directory, "step.so")
        for link in _link_choices(compiler, mode):
            argv = [*compiler.argv, *chosen, "step.c", "-o", "step.so", *link]
            code, output = run(argv, directory=directory, time_limit=time_limit)
            binary = _content(target)
            if (code == 0 and binary) or _complaints(output):
                break
    if code != 0 or not is_shared_object(binary):
        raise _failure(compiler, chosen, code, output, source, len(binary))
    return without_executable_stack(binary)


def _content(path: str) -> bytes:
    """The content of a file; empty if there is none, or if it is a link, a pipe or a device."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


@contextlib.contextmanager
def _workspace(source: str) -> Iterator[str]:
    """A private directory with the source in it, in the first place that has room."""
    reasons = []
    with orderly_termination(), contextlib.ExitStack() as stack:
        for place in settings.scratch_directories():
            try:
                directory = stack.enter_context(scratch.directory(place))
                with open(os.path.join(directory, "step.c"), "w", encoding="utf-8", newline="\n") as file:
                    file.write(source)  # closed before the compiler reads it, because PyPy may write only then
                break
            except OSError as reason:
                reasons.append(str(reason))
        else:
            raise CompilerNotStarted(f"no directory for temporary files: {'; '.join(reasons) or 'none exists'}")
        yield directory


# ---------------------------------------------------------------------------------------------- linking


def _link_choices(compiler: Compiler, mode: str) -> list[list[str]]:
    """How to link `exp` and the like: the best way first, then one for machines where that fails.

    Naming the file of the libm that the interpreter has mapped needs no C development files, gives the symbol
    versions that the interpreter uses (without a version, glibc picks its oldest `log`, whose NaN has another sign),
    and is faster than -lm (20 ms instead of 27 with gcc).  Without any libm, the symbols are found in the process when
    the library is loaded (`runtime.ffi.load`).
    """
    kind, bare = compiler.kind, [*compiler.kind.bare]
    if sys.platform == "darwin":
        return [["-lm"], ["-undefined", "dynamic_lookup"]]
    libm = mapped_libm()
    if libm is None or sys.maxsize < 2**32:  # 32-bit code may need helpers of the compiler's own library
        return [["-lm"], bare] if kind.program else [bare, ["-lm"]]
    vector = os.path.join(os.path.dirname(libm), "libmvec.so.1")
    if mode == "fast" and kind.optimises and os.path.isfile(vector):
        return [[*bare, "-Wl,--as-needed", libm, vector], ["-lm"]]
    return [[*bare, libm], ["-lm"] if kind.program else bare]


# ------------------------------------------------------------------------------------------ error texts


def _complaints(output: str) -> list[int]:
    """The lines of the source that the compiler's messages point at, in the order of the messages."""
    return list(dict.fromkeys(int(number) for number in re.findall(r"step\.c:(\d+)", output)))


_OUT_OF_MEMORY = re.compile(
    r"out of memory|memory exhausted|cannot allocate|bad_alloc|memory full|failed to map segment|cannot map|"
    r"(killed|segmentation fault|aborted)( signal)? terminated program",
    re.IGNORECASE,
)


def _failure(
    compiler: Compiler, chosen: Sequence[str], code: int, output: str, source: str, size: int
) -> CompilerError:
    """The error for a failed compilation: the compiler's messages, and the lines of C that they point at."""
    if code > 0:
        end = f"failed with exit code {code}"
    elif code < 0:
        end = f"was killed by signal {-code} (out of memory?)"
    else:
        end = f"reported success and left {f'{size} bytes that are no shared object' if size else 'no output file'}"
    messages = [line[:500] for line in output.splitlines() if line.strip()]
    errors = [line for line in messages if "error" in line.lower()] or messages
    text = [f"{compiler.command} {end}", f"flags: {' '.join(chosen)}", *errors[:5]]
    lines = source.splitlines()
    pointed = _complaints("\n".join(errors[:5]))
    shown = sorted({n for line in pointed for n in (line - 1, line, line + 1) if 1 <= n <= len(lines)})
    text += [f"{'>' if n in pointed else ' '}{n:6d} | {lines[n - 1][:200]}" for n in shown]
    kind = CompilerMemoryError if code < 0 or (code and _OUT_OF_MEMORY.search(output)) else CompilerError
    return kind("\n".join(text))
