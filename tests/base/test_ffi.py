"""Calling C through pointer blocks, on whichever interpreter runs the tests."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.base import ffi
from mgjit.compiler.toolchain import build, compilers
from mgjit.errors import ArgumentError, CompilerError

SOURCE = """\
#define PUBLIC __attribute__((visibility("default")))
extern double exp(double);
PUBLIC int first_byte(void *const *m) { return *(const unsigned char *)m[0]; }
PUBLIC int exponential(void *const *m) { *(double *)m[1] = exp(*(const double *)m[0]); return 0; }
PUBLIC int handshake(void *const *m) {
    volatile int *flag = m[0]; flag[0] = 1;
    for (long i = 0; i < 4000000000L; i++) if (flag[1]) return 7;
    return -1; }
PUBLIC int inner(void *const *m) { void **block = m[0]; block[0] = (char *)block[0] + 1; return 0; }
int hidden(void *const *m) { return 1; }
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = compilers.find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    target = tmp_path_factory.mktemp("lib") / "é step.so"
    target.write_bytes(build.compile_shared(compiler, SOURCE, optimisation="-O1").binary)
    return target


def byte_at(library: ffi.Library, buffer: Any) -> int:
    block = ffi.PointerBlock(1)
    block.set(0, buffer)
    return library.function("first_byte")(block)


def test_01_call(path: Path) -> None:
    """Arguments and results go through memory; the int comes back."""
    argument, result = array("d", [1.5]), array("d", [0.0])
    block = ffi.PointerBlock(2)
    block.set(0, argument)
    block.set(1, result)
    assert ffi.load(path).bind("exponential", block)() == 0
    assert result[0] == math.exp(1.5)


@pytest.mark.parametrize(
    "buffer",
    [
        b"abc",
        bytearray(b"abc"),
        array("B", b"abc"),
        memoryview(b"abc"),
        memoryview(bytearray(b"abc")),
        memoryview(b"xabcx")[1:4],
        memoryview(bytearray(b"xabcx"))[1:],
        memoryview(array("i", [ord("a"), 2])),
        memoryview(b"a\0b\0c\0\0\0").cast("q"),
    ],
    ids=lambda buffer: f"{type(buffer).__name__}",
)
def test_02_every_kind_of_buffer(path: Path, buffer: Any) -> None:
    """The pointer is that of the first byte, also of a slice, also of something read-only."""
    if not (isinstance(buffer, memoryview) and buffer.itemsize > 1 and sys.byteorder == "big"):
        assert byte_at(ffi.load(path), buffer) == ord("a")
    block = ffi.PointerBlock(3)
    block.set(2, buffer)
    assert block.address(2) != 0
    assert block.address(0) == 0
    if ffi.PYPY is False:
        assert block.address(2) == ffi.address_of(buffer)


def test_03_slices_point_inside() -> None:
    """An offset view has an offset address."""
    data = bytearray(100)
    assert ffi.address_of(memoryview(data)[7:]) == ffi.address_of(data) + 7
    text = bytes(range(100))
    if not ffi.PYPY:  # whose immutable objects may be passed through copies, as they move
        assert ffi.address_of(memoryview(text)[7:]) == ffi.address_of(text) + 7
    numbers = array("d", range(10))
    assert ffi.address_of(memoryview(numbers)[3:]) == ffi.address_of(numbers) + 24


@pytest.mark.parametrize("empty", [b"", bytearray(), array("d"), memoryview(b"")], ids=lambda e: type(e).__name__)
def test_04_empty_buffers_are_allowed(empty: Any) -> None:
    """A model without parameters has empty buffers."""
    ffi.PointerBlock(1).set(0, empty)


@pytest.mark.parametrize(
    "wrong",
    [3, 2.5, "text", [1, 2], None, memoryview(bytearray(8))[::2], memoryview(b"abcdefgh")[::-1]],
    ids=lambda wrong: type(wrong).__name__,
)
def test_05_everything_else_is_a_typed_error(wrong: Any) -> None:
    """The text says what can be passed."""
    block = ffi.PointerBlock(1)
    block.set(0, b"before")
    before = block.address(0)
    with pytest.raises(ArgumentError, match="contiguous"):
        block.set(0, wrong)
    assert block.address(0) == before
    with pytest.raises(ArgumentError, match="contiguous"):
        ffi.address_of(wrong)


def test_06_numpy(path: Path) -> None:
    """Arrays pass by pointer, writable or not; strided ones are refused, never copied silently."""
    np = pytest.importorskip("numpy")
    values = np.arange(24, dtype="float64").reshape(4, 6)
    assert ffi.address_of(values) == values.ctypes.data
    assert ffi.address_of(values[2:]) == values.ctypes.data + 96
    values.flags.writeable = False
    assert ffi.address_of(values) == values.ctypes.data
    for strided in (values[:, 1:], values.T):
        with pytest.raises(ArgumentError, match="ontiguous"):
            ffi.address_of(strided)
    assert byte_at(ffi.load(path), np.full(3, 9, dtype="uint8")) == 9


def test_07_the_block_keeps_buffers_alive(path: Path) -> None:
    """A temporary is not freed between `set` and the call."""
    function, block = ffi.load(path).function("first_byte"), ffi.PointerBlock(1)
    for value in range(60):
        data = bytes([value]) * 5000
        block.set(0, data if value % 2 else memoryview(b"x" + data)[1:])
        del data
        if value % 20 < 2:
            gc.collect()
        _other = [bytes(5000) for _ in range(20)]
        assert function(block) == value


def test_08_functions_keep_the_library_open(path: Path) -> None:
    """Neither interpreter may unload code that can still be called."""
    block = ffi.PointerBlock(1)
    block.set(0, b"\x05")
    function = ffi.load(path).function("first_byte")
    bound = ffi.load(path).bind("first_byte", block)
    gc.collect()
    assert function(block) == bound() == 5


def test_09_index_outside_of_the_block() -> None:
    """Nothing is written outside."""
    block = ffi.PointerBlock(2)
    assert len(block) == 2
    for buffer in (b"x", bytearray(b"x"), array("d", [1.0])):
        with pytest.raises(IndexError):
            block.set(2, buffer)


def test_15_blocks_in_blocks(path: Path) -> None:
    """A block can hold another one, which C may change."""
    library, inner, outer = ffi.load(path), ffi.PointerBlock(1), ffi.PointerBlock(1)
    text = bytearray(b"\x05\x06\x07")
    inner.set(0, text)
    outer.set_block(0, inner)
    move = library.bind("inner", outer)
    move()
    del outer
    gc.collect()
    move()
    assert library.function("first_byte")(inner) == 7


def test_10_missing_names_and_files(path: Path, tmp_path: Path) -> None:
    """CompilerError with the loader's words, for what a stale or broken library can cause."""
    with pytest.raises(CompilerError, match="no_such"):
        ffi.load(path).function("no_such")
    with pytest.raises(CompilerError, match="does not load"):
        ffi.load(tmp_path / "missing.so")
    (tmp_path / "garbage.so").write_bytes(b"garbage" * 100)
    with pytest.raises(CompilerError, match="does not load"):
        ffi.load(tmp_path / "garbage.so")


def test_11_other_threads_run_during_a_call(path: Path) -> None:
    """The call waits for a flag that only another Python thread sets: that thread needs the GIL."""
    flag, block = array("i", [0, 0]), ffi.PointerBlock(1)
    block.set(0, flag)

    def answer() -> None:
        while not flag[0]:
            pass
        flag[1] = 1

    thread = threading.Thread(target=answer)
    thread.start()
    assert ffi.load(path).function("handshake")(block) == 7
    thread.join()


def test_12_load_bytes_leaves_no_file(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file is gone before the first call, and two libraries in a row are two libraries."""
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(tmp_path / "none"), str(tmp_path)])
    first, second = ffi.load_bytes(path.read_bytes()), ffi.load_bytes(path.read_bytes())
    assert first.path != second.path
    assert list(tmp_path.iterdir()) == []
    assert byte_at(first, b"\x01") == byte_at(second, b"\x01") == 1
    with pytest.raises(CompilerError, match="does not load"):
        ffi.load_bytes(b"no library")


def test_13_each_interpreter_imports_its_own_way_only() -> None:
    """ctypes costs PyPy time, and cffi is not installed everywhere."""
    other = "ctypes" if ffi.PYPY else "_cffi_backend"
    code = f"import sys, mgjit.base.ffi; sys.exit({other!r} in sys.modules)"
    root = str(Path(mgjit.__file__).parents[1])
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_14_libm_that_the_interpreter_keeps_private(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that was linked with nothing needs `exp` from the process: libm is shared, and it loads."""
    opened, shared, real = [], [], ffi._open

    def stubborn(name: str) -> Any:
        opened.append(name)
        if not shared:
            raise OSError(f"{name}: undefined symbol: exp")
        return real(name)

    monkeypatch.setattr(ffi, "_open", stubborn)
    monkeypatch.setattr(ffi, "_share_libm", lambda: shared.append(1))
    assert byte_at(ffi.load(path), b"\x03") == 3
    assert opened == [str(path)] * 2
    if sys.platform.startswith("linux"):
        monkeypatch.undo()
        ffi._share_libm()
