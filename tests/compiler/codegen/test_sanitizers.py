"""Generated C under warnings and sanitizers: examples, a few random programs; and that a defect would be noticed.

The long form is `python tests/fuzz/sanitized.py`, and `pytest --strict-c` for the C of all tests.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from array import array
from collections.abc import Callable

import pytest

from mgjit.base import ffi
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.toolchain import compilers
from tests.compiler.codegen.native import compile_c, find
from tests.compiler.codegen.sanitizers import WARNINGS, Case, Kernel, check, difference, expected
from tests.compiler.codegen.test_c import EXAMPLES, tables, training
from tests.fuzz.programs import random_program
from tests.fuzz.sanitized import WAYS, defect
from tests.lowering import WIDE, Example
from tests.strict_c import warnings_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        ffi.PYPY or not sys.platform.startswith("linux"), reason="CPython's buffers, and sanitizers of Linux"
    ),
]


@functools.cache
def usable(family: str) -> bool:
    """Whether a compiler has the libraries of its sanitizers."""
    compiler = compilers._of_family(family)
    if compiler is None:
        return False
    command = [*compiler.argv, "-x", "c", "-fsanitize=address,undefined", "-o", "/dev/null", "-"]
    return not subprocess.run(
        command, input=b"int main(void) { return 0; }", capture_output=True, check=False
    ).returncode


def sanitizing(family: str) -> compilers.Compiler:
    """A compiler with sanitizers; skips without."""
    if not usable(family):
        pytest.skip(f"{family} has no sanitizers here")
    return find(family)


def recorded(made: Example, separate: bool = False) -> Case:
    """An example, scheduled for wide vectors, and one call of it."""
    program = made.lower(processor=WIDE, separate=separate)
    layout = lay_out(program, made.memory)
    case = Case(emit_c(program, layout), layout, separate=separate)
    kernel = Kernel(case, program, compile_c(find("gcc"), case.source))
    kind = program.precision.format
    kernel.run({a: array(a.format if a.space == "input" else kind, c) for a, c in made.contents().items()})
    return case


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_01_examples(example: Callable[[], Example], dtype: str) -> None:
    """Every entry leaves what the kernel left, with nothing to say about it; one compiler for each of the types."""
    family = ("gcc", "clang")[(EXAMPLES.index(example) + (dtype == "float32")) % 2]
    made = example() if dtype == "float64" else example().in_float32()
    for separate in (False, True):
        assert check(recorded(made, separate), sanitizing(family)) == ""


@pytest.mark.parametrize("seed", range(10))
def test_02_random_programs(seed: int) -> None:
    """As they run, and again under the sanitizers of both compilers."""
    for family in ("gcc", "clang"):
        sanitizing(family)
    assert defect(random_program(seed), WAYS[seed % len(WAYS)], [0, 0]) == ""


CALL = "    forward_on("

#: What is put in front of the call of a function, or in its place, and what must be noticed.
DEFECTS = {
    "one element too far": (f"((real *)m[0])[4000] = 1.0; {CALL}", "AddressSanitizer"),
    "a byte too far": (f"((char *)m[0])[64] = 1; {CALL}", "heap-buffer-overflow"),
    "signed overflow": (f"volatile int k = 2147483647; if (k + 1) {CALL}", "signed integer overflow"),
    "a shift": (f"volatile int k = 40; if ((1 << k) > 3) {CALL}", "shift exponent"),
    "a conversion": (f"volatile real r = (real)1e30; if ((int)r) {CALL}", "outside the range"),
    "a null pointer": (f"int *volatile k = 0; if (!*k) {CALL}", "null pointer"),
    "an address": (f"volatile long k = (long)m[0] + 1; if (*(real *)k < 5) {CALL}", "misaligned address"),
    "an unused variable": (f"int k; {CALL}", "unused variable"),
    "a sign": (f"unsigned k = 1; int j = 2; if (k < j) {CALL}", "sign"),
    "another number": (f"*(real *)m[0] += 1.0; {CALL}", " instead of "),
}


@pytest.mark.parametrize("family", ["gcc", "clang"])
@pytest.mark.parametrize("name", list(DEFECTS))
def test_03_defects_are_noticed(name: str, family: str) -> None:
    """Sources with one defect each: none of them passes."""
    new, says = DEFECTS[name]
    case = recorded(tables())
    assert len(case.calls[0][0][0]) == 64, "the first slot has eight parameters"
    assert case.source.count(CALL) == 1
    case.source = case.source.replace(CALL, f"    {new}")
    text = check(case, sanitizing(family))
    assert says in text, text


def test_04_reads_before_writes_are_noticed() -> None:
    """Scratch memory is full of nan, and nan is not the number that was expected."""
    case = recorded(tables())
    scratch = case.layout.slot_number("scratch")
    case.source = case.source.replace(CALL, f"    *(real *)m[0] = *(real *)m[{scratch}]; {CALL}")
    assert " instead of " in check(case, sanitizing("gcc"))


def test_05_the_comparison() -> None:
    """All bits count, all nans are alike, and lines that are missing or in another order are differences."""
    case = recorded(training())
    lines = [f"{way} {slot} {content.hex()}" for way, slot, content in expected(case)]
    assert difference(case, lines) == ""
    assert difference(case, lines[1:]) != ""
    assert difference(case, [*lines[:2], lines[3], lines[2], *lines[4:]]) != ""
    parameters = case.layout.slot_number("parameter")
    number = next(k for k, (_, slot, _) in enumerate(expected(case)) if slot == parameters)
    changed = lines.copy()
    changed[number] = changed[number][:-1] + ("0" if changed[number][-1] != "0" else "1")
    assert "instead of" in difference(case, changed)


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_06_warnings(family: str) -> None:
    """What `--strict-c` says of a good source and of a bad one."""
    compiler, source = find(family), recorded(training()).source
    assert warnings_of(source, compiler) == ""
    assert "unused-function" in warnings_of(source + "static void f(void) { }\n", compiler)
    assert "missing-prototypes" in warnings_of(source + "void f(void);\nvoid f(void) { }\nvoid g(void) { }\n", compiler)
    assert "-Werror" in WARNINGS
