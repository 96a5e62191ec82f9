"""Whatever MGJIT_CC or `compiler=` says: a compiler, or a CompilerError; never a shell line, a hang or a crash.

Each value is tried as a user would, by calling a step.  None of them may make the file `touched`, which what they
say would make in a shell; none may leave a file or a process behind, or change the parameter of the step.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.base import scratch, settings
from mgjit.compiler.build import build as building
from mgjit.compiler.toolchain import compilers
from mgjit.errors import BackendWarning, CompilerError
from tests.compiler.toolchain.scripts import fake, left_over, real

pytestmark = pytest.mark.skipif(os.name != "posix", reason="shell scripts")


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setenv("MGJIT_REFUSE", "error")
    monkeypatch.setenv("MGJIT_BACKGROUND", "0")  # the tests wait for the errors of compilers
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_shared", {})
    monkeypatch.setattr(building, "_warned", set())
    monkeypatch.setattr(compilers, "_probed", {})
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(tmp_path / "scratch")])
    monkeypatch.chdir(tmp_path)


def make(**options: Any) -> tuple[Any, mgjit.Value]:
    """A step and its parameter, which one call changes from 2.0 to -1.0 when all is well."""
    w = mgjit.Value(2.0)

    @mgjit.compile(**options)
    def step(x: Any) -> Any:
        w.data = w.data - x
        return w

    return step, w


def refused(value: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By argument and, where it can be one, by variable: an error of moderate length, and nothing has happened."""
    ways: list[dict[str, Any]] = [{"compiler": value}]
    if "\0" not in value and len(value) < 120_000:
        ways.append({})
    for options in ways:
        if not options:
            monkeypatch.setenv("MGJIT_CC", value)
        step, w = make(cache=False, **options)
        with pytest.raises(CompilerError, match=f"(?s){says}") as caught:
            step(3.0)
        assert len(str(caught.value)) < 8000
        assert w.data == 2.0
    assert not (tmp_path / "touched").exists()
    assert [path for path in left_over(tmp_path) if path.name.startswith(scratch.PREFIX)] == []


LINES = [
    ("gcc; touch touched", "no C compiler 'gcc; touch touched'"),
    ("gcc ; touch touched", "does not work"),
    ("gcc && touch touched", "does not work"),
    ("gcc | touch touched", "does not work"),
    ("gcc & touch touched", "does not work"),
    ("gcc > touched", "does not work"),
    ("gcc $(touch touched)", "does not work"),
    ("$(touch touched)", "no C compiler"),
    ("`touch touched`", "no C compiler"),
    ("gcc\ntouch touched\n", "does not work"),
    ("gcc\n;touch touched", "does not work"),
    ("'; touch touched'", "no C compiler"),
    ("${IFS}touch${IFS}touched", "no C compiler"),
    ("gcc 'unbalanced", "not a command line"),
    ('gcc "', "not a command line"),
    ("gcc \\", "not a command line"),
    ("gcc\0touch touched", "NUL"),
    ("gcc -DX=\0", "NUL"),
    ("~\0x/gcc", "NUL"),
    ("gcc @touched", "does not work"),
    ("gcc --no-such-option", "does not work"),
    ("gcc -x cobol", "does not work"),
    ("gcc -E", "does not work"),
    ("gcc -fsyntax-only", "does not work"),
    ("--version", "no C compiler"),
    ("-o touched", "no C compiler"),
    ("#", "no C compiler|not a command line"),
    ("%s%s%n", "no C compiler"),
    ("{0.__class__}", "no C compiler"),
    ("caf\u00e9", "no C compiler"),
    ("\u202egcc", "no C compiler"),
    ("gcc" + "x" * 100_000, "no C compiler"),
    ("gcc " + "x" * 100_000, "does not work"),
    ("gcc " + "-DX=1 " * 20_000, "does not work: .*too long"),
    ("/" * 5000 + "gcc", "no C compiler"),
    ("/", "no C compiler"),
    (".", "no C compiler"),
    ("..", "no C compiler"),
    ("/dev/null", "no C compiler"),
    ("/proc/self/mem", "no C compiler"),
    ("~no-such-user/gcc", "no C compiler"),
    ("true", "does not work: .* left no output file"),
    ("false", "does not work"),
    ("cat", "does not work"),
    ("yes", "does not work"),
]


@pytest.mark.parametrize(("value", "says"), LINES, ids=[repr(value)[:30] for value, _ in LINES])
def test_01_lines(value: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Texts that mean something to a shell, or to nobody."""
    real("gcc")
    refused(value, says, monkeypatch, tmp_path)


def test_02_a_lone_surrogate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no file name can be; as a variable it cannot be either."""
    step, w = make(compiler="gcc\ud800", cache=False)
    with pytest.raises(CompilerError):
        step(3.0)
    assert w.data == 2.0


#: Body of the script, and what the error says.
SCRIPTS = {
    "hangs": ("sleep 600", "did not"),
    "hangs and ignores signals": ("trap '' TERM INT HUP; while :; do sleep 1; done", "did not"),
    "hangs in the background": ("sleep 600 & sleep 600 & wait", "did not"),
    "stops itself": ("kill -STOP $$", "did not"),
    "prints a gigabyte": ("head -c 1000000000 /dev/zero; exit 1", "exit code 1"),
    "prints escapes": (r"printf '\033[2J\033]0;title\007step.c:1: error: \033[31mred\n'; exit 1", "error: red"),
    "prints lines that are not there": ("echo 'step.c:999999999999: error: far'; exit 1", "error: far"),
    "writes nothing": ("exit 0", "left no output file"),
    "writes an empty file": (': > "$out"', "left no output file"),
    "writes text": ('echo garbage > "$out"', "no shared object"),
    "writes a directory": ('mkdir -p "$out"', "left no output file"),
    "writes a pipe": ('[ -e "$out" ] || mkfifo "$out"', "no output file"),
    "writes an endless link": ('ln -sf "$out" "$out"', "left no output file"),
    "links to an endless file": ('ln -sf /dev/zero "$out"', "no output file"),
    "links to a secret": ('ln -sf /etc/passwd "$out"', "no shared object|no output file"),
    "writes a program": ('cp /bin/true "$out"', "does not load|no shared object|no function"),
    "writes another architecture": (
        'gcc "$@" && printf "\\267" | dd of="$out" bs=1 seek=18 conv=notrunc',
        "does not load",
    ),
    "writes other symbols": (
        'echo "int x;" > o.c; gcc -shared -nostdlib -fPIC o.c -o "$out"',
        "no function 'mgjit_probe'",
    ),
    "needs symbols": (
        'echo "extern int no_such(void); int mgjit_probe(void *m) { return no_such(); }" > o.c; '
        'gcc -shared -nostdlib -fPIC o.c -o "$out"',
        "no_such",
    ),
    "computes something else": (
        'echo "int mgjit_probe(void *m) { return 42; }" > o.c; gcc -shared -nostdlib -fPIC o.c -o "$out"',
        "its code is wrong",
    ),
    "writes half of a library": (
        'gcc "$@"; head -c 5000 "$out" > half; mv half "$out"',
        "no shared object",
    ),
    "fails after writing": ('gcc "$@"; exit 1', "exit code 1"),
    "starts many processes": (
        "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; wait",
        "did not",
    ),
    "kills its group": ("kill -9 0", "signal 9"),
    "kills itself": ("kill -SEGV $$", "signal 11"),
    "removes its directory": ('rm -rf "$PWD"', "cannot be run"),
    "removes the source": ("rm -f step.c; exit 1", "exit code 1"),
    "locks its directory": ("chmod 0 . ; exit 1", "exit code 1"),
    "closes its output": ("exec >&- 2>&-; sleep 600", "did not"),
    "asks a question": ("read answer || exit 9", "exit code 9"),
    "uses all its memory": ("head -c 1000000000 /dev/zero | tail -n 1 > x; exit 1", "memory|exit code 1"),
}


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_03_scripts(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs that are no compiler, or one with a grudge."""
    body, says = SCRIPTS[name]
    if says == "did not":
        monkeypatch.setattr(compilers, "_PATIENCE", 1.0)
    real("gcc")
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", "300M")
    refused(fake(tmp_path, body, "gcc").path, says, monkeypatch, tmp_path)


def test_04_a_file_that_is_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not executable, empty, a library, a directory, a broken link, a script whose interpreter is missing."""
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    refused(str(tmp_path / "gcc"), "no C compiler", monkeypatch, tmp_path)
    for name, content in (("empty", b""), ("binary", b"\x7fELF" + bytes(200)), ("lost", b"#!/no/such/interpreter\n")):
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o755)
        refused(str(path), "cannot be run|left no output file|does not work", monkeypatch, tmp_path)
    refused(str(tmp_path), "no C compiler", monkeypatch, tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    refused(str(tmp_path / "link"), "no C compiler", monkeypatch, tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(str(tmp_path / "loop"), "no C compiler", monkeypatch, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "with blank",
        "caf\u00e9",
        "two\nlines",
        "-dash",
        "quo'te\"$HOME;",
        "$(touch touched)",
        "a\\b",
        "%s{}",
        "\u202e\u0301",
    ],
)
def test_05_odd_paths_everywhere(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the compiler, the temporary directory, the cache and the current directory at once."""
    gcc = real("gcc")
    place = tmp_path / name
    try:
        place.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(place)])
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(place / "cache"))
    monkeypatch.setenv("TMPDIR", str(place))
    compiler = fake(place, f'exec {gcc.argv[0]} "$@"', "gcc")
    monkeypatch.chdir(place)
    for number, choice in enumerate((compiler.path, "./gcc")):
        step, w = make(compiler=choice, cache=not number)
        assert (step(3.0), w.data) == (-1.0, -1.0)
    assert not (place / "touched").exists()
    assert not (tmp_path / "touched").exists()


def test_06_a_compiler_that_turns_bad(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After a probe that went well: the same typed errors, and with "auto" the Python backend, with a warning."""
    gcc = real("gcc")
    path = fake(tmp_path, f'grep -q mgjit_probe step.c && exec {gcc.argv[0]} "$@"; cp /bin/true "$out"', "gcc").path
    refused(path, "no function|does not load|no shared object", monkeypatch, tmp_path)
    monkeypatch.delenv("MGJIT_CC")
    monkeypatch.setattr(compilers, "FAMILIES", ("gcc",))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    step, w = make(cache=False)
    with pytest.warns(BackendWarning, match="generated Python"):
        assert step(3.0) == -1.0
    assert w.data == -1.0


def test_07_python_as_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A real program that knows nothing of C."""
    refused(sys.executable, "does not work", monkeypatch, tmp_path)
