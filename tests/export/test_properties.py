"""The ten properties that docs/howto/microcontroller.md promises of exported C."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mgjit
from tests.export.compiling import COMPILERS, checked, compiled, object_file, require, sections, symbols
from tests.export.steps import classifier, momentum, prediction

pytestmark = pytest.mark.once

MAKERS = {"training": classifier, "forward": prediction, "with state": momentum}
#: What compilers may call of their own accord, also for a processor without an operating system.
OF_COMPILERS = {"memcpy", "memset", "memmove", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}
MATHEMATICS = {"exp", "log", "tanh", "pow", "sqrt", "sqrtf"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", MAKERS)
def test_01_one_self_contained_file_with_the_prefix_on_every_name(name: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name]()
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net.c").read_text("ascii") + (tmp_path / "net.h").read_text("ascii")
    assert set(re.findall(r'#include ["<](.*)[">]', text)) <= {"net.h", "stdint.h", "math.h"}
    defined = [name for kind, name in symbols(object_file(tmp_path, "net", more=["-O0"])) if kind in "TtDdBbRr"]
    assert [name for name in defined if not name.startswith("net_")] == []
    assert [name for name in re.findall(r"#define (\w+)", text) if not name.startswith("NET_")] == []


@pytest.mark.parametrize("name", MAKERS)
def test_02_no_libc_beyond_mathematics(name: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name]()
    step.export(tmp_path, "net", calls=calls)
    needed = {name for kind, name in symbols(object_file(tmp_path, "net")) if kind == "U"}
    assert needed <= MATHEMATICS | OF_COMPILERS


@pytest.mark.parametrize("name", ["training", "forward"])
def test_03_code_does_not_grow_with_widths(name: str, tmp_path: Path) -> None:
    sizes = []
    for factor in (1, 4):
        step, _, calls = MAKERS[name](32 * factor, 24 * factor, 8)
        step.export(tmp_path, "net", calls=calls[:1])
        sizes.append(sections(object_file(tmp_path, "net", more=["-Os"]))[".text"])
    assert sizes[1] <= 1.1 * sizes[0]


def test_04_weights_of_a_forward_pass_are_constant_data(tmp_path: Path) -> None:
    step, model, calls = prediction(dtype="float32")
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net.c").read_text("ascii")
    assert f"static const float net_parameters[{len(model.parameters())}] = {{" in text
    found = sections(object_file(tmp_path, "net"))
    assert found[".rodata"] >= 4 * len(model.parameters())
    assert found.get(".data", 0) == found.get(".bss", 0) == 0


def test_04_weights_may_be_a_data_file(tmp_path: Path) -> None:
    step, model, calls = prediction(dtype="float32")
    step.export(tmp_path, "net", calls=calls, weights="file")
    assert (tmp_path / "net_weights.bin").stat().st_size == 4 * len(model.parameters())
    assert sections(object_file(tmp_path, "net")).get(".rodata", 0) < 200
    assert "all bits" in checked(tmp_path, "net")


@pytest.mark.parametrize("name", MAKERS)
def test_05_memory_is_the_callers_and_a_macro_says_how_much(name: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name]()
    step.export(tmp_path, "net", calls=calls)
    found = sections(object_file(tmp_path, "net"))
    assert found.get(".data", 0) == found.get(".bss", 0) == 0
    text = (tmp_path / "net.h").read_text("ascii")
    total = re.search(r"#define NET_MEMORY_SIZE (\d+)", text)
    assert total is not None
    members = re.sub(r"/\*.*?\*/", "", text.split("typedef struct {")[1].split("}")[0], flags=re.DOTALL)
    assert sum(map(int, re.findall(r"\[(\d+)\]", members))) * 8 == int(total[1])
    assert "sizeof(net_memory) == NET_MEMORY_SIZE ? 1 : -1" in (tmp_path / "net.c").read_text("ascii")


@pytest.mark.parametrize("name", MAKERS)
def test_06_float32_has_no_double_but_in_functions_of_the_library(name: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name](dtype="float32")
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net.c").read_text("ascii")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    allowed = re.sub(r"\(float\)(tanh|exp|log)\(\(double\)\w+(\[\d+\])?\)", "", text)
    assert "double" not in allowed
    assert re.findall(r"(?<![\w.])\d+\.\d+(?![\df])", text) == []  # every literal has its suffix
    for compiler in ("gcc", "clang"):
        compiled(tmp_path, "net", compiler)  # with -Wdouble-promotion -Wfloat-conversion -Werror


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_07_a_header_for_cpp_and_for_libraries(compiler: str, tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    caller = tmp_path / "caller.cpp"
    caller.write_text(
        '#include "net.h"\n'
        "static net_memory memory;\n"
        f"int main() {{ double x[{len(calls[0][0])}] = {{}}, result[1]; net_init(&memory);\n"
        "    return net_run(&memory, x, 0, 0.1, result) != NET_OK; }\n"
    )
    made = object_file(
        tmp_path, "net", more=["-fvisibility=hidden", '-DNET_API=__attribute__((visibility("default")))']
    )
    command = [require(compiler), "-Wall", "-Wextra", "-Wpedantic", "-Werror", str(caller), str(made)]
    subprocess.run([*command, "-o", str(tmp_path / "caller"), "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "caller")], check=False).returncode == 0


def test_08_cmake_builds_all_exports_of_a_directory_and_their_tests_pass(tmp_path: Path) -> None:
    step, _, calls = classifier()
    for name in ("gone", "net", "another"):
        step.export(tmp_path, name, calls=calls)
    (tmp_path / "gone.c").unlink()
    step.export(tmp_path, "net", calls=calls)
    assert "-ffp-contract=off" in (tmp_path / "CMakeLists.txt").read_text("ascii")
    require("cmake")
    build = tmp_path / "build"
    for command in (["cmake", "-S", str(tmp_path), "-B", str(build)], ["cmake", "--build", str(build)]):
        subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([require("ctest")], cwd=build, check=False, capture_output=True, text=True)
    assert "100% tests passed, 0 tests failed out of 2" in done.stdout


def test_08_recorded_numbers_are_hexadecimal(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net_check.c").read_text("ascii")
    inputs = text.split("in_pixels[CALLS]")[1].split("};")[0]
    assert [float.fromhex(x) for x in re.findall(r"-?0x\S+p[+-]\d+", inputs)] == [x for c in calls for x in c[0]]


PROGRAM = """
import sys
from tests.export.steps import momentum, classifier
for make in (momentum, classifier):
    step, _, calls = make(dtype="float32")
    step.export(sys.argv[1], step.__name__, calls=calls)
"""


def test_09_the_text_is_the_same_in_every_process(tmp_path: Path) -> None:
    texts = []
    for seed in ("1", "77"):
        folder = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], check=True, env=environment, cwd=ROOT)
        texts.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert texts[0] == texts[1]
    head = texts[0]["step.c"].decode().split("*/")[0]
    assert f"exported by mgjit {mgjit.__version__}" in head
    assert "dtype float32, mode strict, weights inside" in head
    assert re.search(r"Checksum: [0-9a-f]{16} ", head)


REENTRANT = """
#include "net.h"
#include <string.h>
static net_memory one, other, alone;
int main(void)
{
    double x[12], y[12], a[1], b[1];
    for (int k = 0; k < 12; k++) { x[k] = 0.1 * k; y[k] = 1 - 0.2 * k; }
    net_init(&one);
    net_init(&other);
    net_init(&alone);
    for (int k = 0; k < 5; k++) net_run(&alone, x, 1, 0.05, a);
    for (int k = 0; k < 5; k++) {
        net_run(&one, x, 1, 0.05, b);
        net_run(&other, y, 2, 0.05, b);
        if (k == 4 && net_run(&other, y, 7, 0.05, b) != NET_INDEX_ERROR) return 2;
    }
    return memcmp(one.parameters, alone.parameters, sizeof alone.parameters) != 0
        || memcmp(one.parameters, other.parameters, sizeof alone.parameters) == 0;
}
"""


def test_10_calls_with_different_memories_do_not_know_of_each_other(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    (tmp_path / "net_check.c").write_text(REENTRANT)
    program = compiled(tmp_path, "net", "tcc")
    assert subprocess.run([str(program)], check=False).returncode == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MAKERS)
def test_10_no_warnings(name: str, dtype: str, tmp_path: Path) -> None:
    """With all warnings, as `checked` compiles everywhere."""
    step, _, calls = MAKERS[name](dtype=dtype)
    step.export(tmp_path, "net", calls=calls, weights="file")
    for compiler in COMPILERS:
        compiled(tmp_path, "net", compiler)


def test_fast_math_is_refused_by_the_code_itself(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    with pytest.raises(AssertionError, match="-ffast-math changes the numbers of net"):
        compiled(tmp_path, "net", "gcc", ["-ffast-math"])


def test_without_any_compiler_an_export_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, _, calls = classifier(backend="python")
    step.export(tmp_path, "net", calls=calls)
    if shutil.which("gcc"):
        assert "all bits" in checked(tmp_path, "net", "gcc")


def test_a_compiler_that_rounds_products_and_sums_once_is_named(tmp_path: Path) -> None:
    """Without the option that forbids it, as gcc is for processors that have such an instruction."""
    about = Path("/proc/cpuinfo")
    if not about.exists() or "fma" not in about.read_text().split():
        pytest.skip("this processor has no such instruction")
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    command = [require("gcc"), "-std=gnu99", "-O2", "-mfma", "net.c", "net_check.c", "-o", "check", "-lm"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(["./check"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "net: a product and a sum are rounded once: compile with -ffp-contract=off\n" in done.stdout
