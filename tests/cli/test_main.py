from __future__ import annotations

import subprocess
import sys

import pytest

import mgjit
from mgjit.cli import doctor
from mgjit.cli.main import COMMANDS, main
from mgjit.errors import MgjitError

_CACHE = ("info", "list", "verify", "clear", "gc")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"mgjit {mgjit.__version__}\n"


@pytest.mark.parametrize("argv", [["no-such-command"], ["doctor", "--no-such-option"], ["cache", "prune"]])
def test_a_wrong_command_line_shows_the_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m mgjit")


def test_run_asks_for_nothing_but_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run"])
    assert capsys.readouterr().err.endswith("required: script\n")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = " ".join(capsys.readouterr().out.split())  # however wide the terminal is
    for name, module in COMMANDS.items():
        assert name in out
        assert module.SUMMARY in out


@pytest.mark.parametrize("argv", [[], ["cache"]])
def test_without_a_command_there_is_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*argv, "--help"])
    assert out == capsys.readouterr().out
    assert "mgjit cache info" in out


@pytest.mark.parametrize("called", ["/usr/bin/mgjit", "mgjit.exe", "/x/mgjit/__main__.py"])
def test_both_ways_to_call_it(called: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: python -m mgjit " if "main" in called else "usage: mgjit ")
    assert "`mgjit` and `python -m mgjit` are the same." in out


@pytest.mark.parametrize("argv", [["run"], ["demo"], ["doctor"], *(["cache", name] for name in _CACHE)])
def test_each_help_has_an_example(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*argv, "--help"])
    out = capsys.readouterr().out
    assert f"python -m mgjit {' '.join(argv)}" in out.partition("\n\n")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"usage: python -m mgjit {name}" in capsys.readouterr().out


def test_the_exit_code_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run", lambda arguments: 1)
    assert main(["doctor"]) == 1


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MgjitError("the reason"), 2, "mgjit: error: the reason\n"),
        (KeyboardInterrupt(), 130, "mgjit: interrupted\n"),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(doctor, "run", run)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err == message


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(doctor, "run", run)
    with pytest.raises(ZeroDivisionError):
        main(["doctor"])


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mgjit", "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert b"BrokenPipe" not in errors
    assert b"Traceback" not in errors
