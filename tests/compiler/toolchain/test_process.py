"""Running a compiler: output, limits, signals, descriptors, threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mgjit.base import interruption, settings
from mgjit.compiler.toolchain import build, process
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.errors import CompilerError, CompilerMemoryError, CompilerTimeout
from tests.compiler.toolchain.scripts import alive, fake, left_over, real

ROOT = Path(__file__).resolve().parents[3]
SOURCE = '__attribute__((visibility("default"))) int f(void *const *m) { return *(int *)m[0] + 1; }\n'

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prlimit")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the person who runs the tests; every temporary file where it can be counted."""
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(tmp_path / "scratch")])


def python(code: str, place: Path, before: str = "", **rest: object) -> subprocess.Popen[str]:
    """A process of its own, in which `build`, `compiler` (a real one) and the same scratch directory are known.

    Args:
        code: what it runs.
        place: where the scratch directory is.
        before: a prelude that runs before mgjit is imported.
        rest: for Popen.
    """
    gcc = real("gcc")
    prelude = f"""
        import os, signal, sys, threading
        sys.path.insert(0, {str(ROOT)!r})
        from mgjit.base import settings
        settings.scratch_directories = lambda: [{str(place / "scratch")!r}]
        from mgjit.compiler.toolchain import build, process
        from mgjit.compiler.toolchain.compilers import Compiler
        from mgjit.errors import CompilerError
        def named(path): return Compiler("gcc", (path,), path)
        compiler = named({gcc.path!r})
        SOURCE = {SOURCE!r}
    """
    text = textwrap.dedent(before) + textwrap.dedent(prelude) + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", text], text=True, **rest)  # type: ignore[call-overload, no-any-return]


def finished(child: subprocess.Popen[str]) -> str:
    """What a process printed on the way to exit code 0."""
    output, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    return output


# ---------------------------------------------------------------------------------------------- output


def test_01_endless_output_is_limited(tmp_path: Path) -> None:
    """A compiler that prints a gigabyte neither blocks nor fills the memory."""
    compiler = fake(tmp_path, "head -c 1000000000 /dev/zero; exit 1")
    code, output = process.run(compiler.argv)
    assert code == 1
    assert len(output) == process.OUTPUT_LIMIT


def test_02_a_helper_that_keeps_the_pipe_open(tmp_path: Path) -> None:
    """The servers of compiler caches do that; the compiler's own end counts."""
    pid = tmp_path / "pid"
    code, output = process.run(fake(tmp_path, f'sleep 600 & echo $! > "{pid}"; echo done; exit 4').argv)
    os.kill(int(pid.read_text()), 9)
    assert (code, output) == (4, "done\n")


def test_03_runs_are_counted(tmp_path: Path) -> None:
    """One more for each process started."""
    compiler = fake(tmp_path, "exit 0")
    before = process.compiler_runs
    process.run(compiler.argv)
    assert process.compiler_runs == before + 1


def test_04_the_compiler_reads_nothing_and_speaks_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """stdin is empty; messages are not translated, so that they can be understood here."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    code, output = process.run(fake(tmp_path, "cat; echo $LC_ALL").argv)
    assert (code, output) == (0, "C\n")


def test_05_no_variable_writes_files_or_changes_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a build system around us set for its own compilers is not for ours; temporary files stay inside."""
    dependencies = tmp_path / "dependencies"
    monkeypatch.setenv("DEPENDENCIES_OUTPUT", str(dependencies))
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-ffast-math")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    build.compile_shared(real("gcc"), SOURCE)
    assert not dependencies.exists()
    _, output = process.run(fake(tmp_path, 'echo "$CCC_OVERRIDE_OPTIONS:$TMPDIR"').argv, directory=str(tmp_path))
    assert output == ":.\n"


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_06_colours_are_off(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the flags ask for them, the lines are found, and no terminal is told anything."""
    monkeypatch.setenv("MGJIT_CFLAGS", "-fdiagnostics-color=always")
    with pytest.raises(CompilerError) as caught:
        build.compile_shared(real(family), "int a;\nint bad(void) { return 1 +* ; }\n")
    assert ">     2 | int bad" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_07_output_is_plain_text() -> None:
    """Escape sequences go, other control characters are question marks, broken UTF-8 is replaced."""
    raw = b"\x1b[01;31merror\x1b[m\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x9b1m \x08\x00\r\ntab\tend\xff\n"
    assert process.plain_text(raw) == "errorlink \ufffd1m ??\ntab end\ufffd\n"


# ---------------------------------------------------------------------------------------------- limits


def test_08_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_COMPILE_SECONDS is for the whole group of processes."""
    pids = tmp_path / "pids"
    compiler = fake(tmp_path, f'sleep 600 & echo $! > "{pids}"; wait')
    monkeypatch.setenv("MGJIT_COMPILE_SECONDS", "0.7")
    with pytest.raises(CompilerTimeout, match=r"0\.7 seconds"):
        process.run(compiler.argv)
    assert not alive(int(pids.read_text()))


@linux
def test_09_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_COMPILE_MEMORY is the address space of each of its processes; 0 is none."""
    compiler = fake(tmp_path, "sleep 0.2; sh -c 'ulimit -v'")
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", "3G")
    assert process.run(compiler.argv) == (0, f"{3 << 20}\n")
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", "0")
    outside = subprocess.run(["/bin/sh", "-c", "ulimit -v"], capture_output=True, text=True, check=True).stdout
    assert process.run(compiler.argv) == (0, outside)


@linux
@pytest.mark.parametrize(("family", "memory"), [("gcc", "30M"), ("clang", "100M")])
def test_10_out_of_memory(family: str, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CompilerMemoryError after all levels, with the variable that allows more."""
    compiler, tried = real(family), []

    def counted(argv: list[str], **rest: object) -> tuple[int, str]:
        tried.append([word for word in argv if word.startswith("-O")])
        return process.run(argv, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "run", counted)
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", memory)
    # Long enough that no compiler is done before it is limited, which happens right after its start.
    long = f"double mgjit_long(double x) {{ {'x = x * 1.5 + 0.5; ' * 20_000} return x; }}"
    with pytest.raises(CompilerMemoryError, match="MGJIT_COMPILE_MEMORY") as caught:
        build.compile_shared(compiler, f"{SOURCE}\n{long}\n", optimisation="-O2")
    assert isinstance(caught.value, MemoryError)
    assert [levels for k, levels in enumerate(tried) if levels not in tried[:k]] == [["-O2"], ["-O1"], ["-O0"]]


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("cc1: out of memory allocating 65536 bytes after a total of 1 bytes", 1),
        ("virtual memory exhausted: Cannot allocate memory", 1),
        ("gcc: fatal error: Killed signal terminated program cc1", 1),
        ("terminate called after throwing an instance of 'std::bad_alloc'", 134),
        ("LLVM ERROR: out of memory", 1),
        ("tcc: error: memory full (malloc)", 1),
    ],
)
def test_11_signs_of_no_memory(tmp_path: Path, says: str, code: int) -> None:
    """The words of gcc, ld, clang and tcc; the compiler that needs less memory is tried after that."""
    with pytest.raises(CompilerMemoryError, match="tcc"):
        build.compile_shared(fake(tmp_path, f'echo "{says}" >&2; exit {code}'), SOURCE)
    assert left_over(tmp_path) == []


@linux
def test_12_a_limit_that_holds_already(tmp_path: Path) -> None:
    """Nobody may raise a hard limit, and nobody needs to."""
    code = """
        print(build.compile_shared(compiler, SOURCE).optimisation)
        print(process.run(["/bin/sh", "-c", "ulimit -v"])[1])
    """
    before = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
    child = python(code, tmp_path, before, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert finished(child).split() == ["-O2", str(2 << 20)]


def test_13_wrong_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ValueError that names the variable, before anything runs."""
    before = process.compiler_runs
    for name, text in (("MGJIT_COMPILE_SECONDS", "soon"), ("MGJIT_COMPILE_MEMORY", "lots")):
        monkeypatch.setenv(name, text)
        with pytest.raises(ValueError, match=name):
            process.run([sys.executable, "-c", ""])
        monkeypatch.delenv(name)
    assert process.compiler_runs == before


# --------------------------------------------------------------------------------------------- signals


def test_14_interrupts_end_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during a compilation leaves no process and no file."""
    pid = tmp_path / "pid"
    compiler = fake(tmp_path, f'sleep 600 & echo $! > "{pid}"; wait')

    def interrupted(*_args: object) -> None:
        while not pid.exists() or not pid.read_text():
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr("mgjit.compiler.toolchain.process._Attended._wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.compile_shared(compiler, "int a;")
    assert not alive(int(pid.read_text()))
    assert left_over(tmp_path) == []


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_15_signals_to_the_process(tmp_path: Path, number: int) -> None:
    """SIGTERM ends Python at once; here, only after the compiler and its files are gone, and still by that signal."""
    pid = tmp_path / "pid"
    slow = fake(tmp_path, f'sleep 600 & echo $! > "{pid}.new"; mv "{pid}.new" "{pid}"; wait')
    usual = "signal.default_int_handler" if number == signal.SIGINT else "signal.SIG_DFL"
    before = f"import signal; signal.signal({int(number)}, {usual})\n"  # which is ignored below nohup, or in scripts
    code = f"build.compile_shared(named({slow.path!r}), SOURCE)"
    child = python(code, tmp_path, before, stderr=subprocess.DEVNULL)
    try:
        while not pid.exists():
            assert child.poll() is None
            time.sleep(0.02)
        assert len(left_over(tmp_path)) == 1
        child.send_signal(number)
        assert child.wait(60) == -number
    finally:
        child.kill()
    assert not alive(int(pid.read_text()))
    assert left_over(tmp_path) == []


@posix
def test_16_handlers_of_the_host_stay(tmp_path: Path) -> None:
    """A host that handles SIGTERM itself goes on doing so, and without one the default is back afterwards."""
    code = """
        build.compile_shared(compiler, SOURCE)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda *_: print("mine"))
        with process.orderly_termination():
            os.kill(os.getpid(), signal.SIGTERM)
        build.compile_shared(compiler, SOURCE)
        print("end")
    """
    child = python(code, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert finished(child) == "mine\nend\n"


@posix
def test_17_an_exception_that_is_lost_on_its_way(tmp_path: Path) -> None:
    """A signal during a destructor, which cannot raise, still ends the process."""
    code = """
        class Lost:
            def __del__(self): os.kill(os.getpid(), signal.SIGTERM)
        with process.orderly_termination(), process.orderly_termination():
            Lost()
            import gc; gc.collect()
            print("inside", flush=True)
        print("after")
    """
    child = python(code, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.communicate(timeout=60)[0] == "inside\n"
    assert child.returncode == -signal.SIGTERM


@posix
@pytest.mark.parametrize("family", ["gcc", "clang", "tcc"])
@pytest.mark.parametrize("how", ["ignored", "inherited", "collected"])
def test_18_children_that_the_host_ignores(tmp_path: Path, family: str, how: str) -> None:
    """SIGCHLD ignored by the host, from before its start, or a host that collects every child: exit codes are lost.

    The compiler's own processes must still find theirs, success must be seen, and failure with its messages.
    """
    path = real(family).path
    prepare = {
        "ignored": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "inherited": "assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN",
        "collected": "threading.Thread(target=collect, daemon=True).start()",
    }[how]
    code = f"""
        def collect():
            while True:
                try: os.waitpid(-1, 0)
                except ChildProcessError: time.sleep(0.001)
        import time
        {prepare}
        assert build.is_shared_object(build.compile_shared(named({path!r}), SOURCE).binary)
        try:
            build.compile_shared(named({path!r}), "int a;\\nint bad(void) {{ return 1 +* ; }}\\n")
        except CompilerError as error:
            assert ">     2 | int bad" in str(error), error
            print("refused")
    """
    before = ""
    if how == "inherited":
        before = """
            import os, signal, sys
            if signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        """
        if not hasattr(sys, "orig_argv"):
            pytest.skip("sys.orig_argv, from Python 3.10 on")
    child = python(code, tmp_path, before, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert finished(child) == "refused\n"


# ------------------------------------------------------------------------- descriptors, threads, start


@posix
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_19_closed_standard_streams(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """A daemon has none; a compiler must not write its messages into whatever file took their numbers."""
    result = tmp_path / "result"
    code = f"""
        for number in {closed!r}: os.close(number)
        other = open({str(tmp_path / "other")!r}, "w")  # takes the first free number
        binary = build.compile_shared(compiler, SOURCE).binary
        try:
            build.compile_shared(compiler, "int bad(void) {{ return 1 +* ; }}")
        except CompilerError as error:
            with open({str(result)!r}, "w") as file: file.write(str(error))
    """
    child = python(code, tmp_path)
    assert child.wait(120) == 0
    assert "error: expected expression" in result.read_text()
    assert (tmp_path / "other").read_text() == ""


@linux
def test_20_no_more_descriptors(tmp_path: Path) -> None:
    """EMFILE is a CompilerError, nothing is left behind, and as soon as there are some it works."""
    code = """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept = []
        try:
            while True: kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError: pass
        while kept:
            try:
                build.compile_shared(compiler, SOURCE)
                break
            except CompilerError as error:
                assert "Too many open files" in str(error), error
            os.close(kept.pop())
        print("works with some", len(kept) > 0)
    """
    child = python(code, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert finished(child) == "works with some True\n"
    assert left_over(tmp_path) == []


def test_21_threads(tmp_path: Path) -> None:
    """Compilations at the same time do not see each other."""
    compiler, found = real("gcc"), {}

    def one(number: int) -> None:
        source = SOURCE if number % 2 else "int bad(void) { return 1 +* ; }"
        try:
            found[number] = bool(build.compile_shared(compiler, source).binary)
        except CompilerError as error:
            found[number] = "expected expression" not in str(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: bool(number % 2) for number in range(8)}
    assert left_over(tmp_path) == []


def test_22_no_thread_to_spare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine at its limit: a typed error, and no compiler that runs alone."""
    pid = tmp_path / "pid"
    compiler = fake(tmp_path, f'echo $$ > "{pid}"; sleep 600')

    def refused(function: object, arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refused)
    with pytest.raises(CompilerError, match="can't start new thread"):
        process.run(compiler.argv)
    assert not pid.exists()


@posix
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_23_an_exception_at_any_line_of_the_start_ends_the_process(tmp_path: Path) -> None:
    """As 24, at each line in turn."""
    pids = tmp_path / "pids"
    compiler = fake(tmp_path, f'echo $$ >> "{pids}"; sleep 600')
    files = {process.__file__, interruption.__file__}
    left = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        left -= event in ("call", "line")
        if left == 0:
            left = -1
            raise KeyboardInterrupt
        return trace

    def interrupted(events: int) -> bool:
        nonlocal left
        left = events
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            process.run(compiler.argv, time_limit=0.01)
        except (KeyboardInterrupt, CompilerTimeout):
            return left <= 0
        finally:
            sys.settrace(before)
        raise AssertionError("it ended by itself")

    count = 0
    try:
        raise LookupError
    except LookupError:
        # An exception that a trace function raises where another one is about to be forgotten leaves that one behind,
        # as the context of whatever this thread raises next. The end of this block forgets it.
        while interrupted(count + 1):
            count += 1
    assert count > 20
    started = pids.read_text().split() if pids.exists() else []
    assert not any(alive(int(pid)) for pid in started)


@posix
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_24_signals_while_the_compiler_starts(tmp_path: Path) -> None:
    """An exception from a handler at any moment: whatever has been started is gone afterwards."""
    pids = tmp_path / "pids"
    compiler = fake(tmp_path, f'echo $$ >> "{pids}"; sleep 600')

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def interrupted(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        process.run(compiler.argv, time_limit=5.0)  # for an exception that Python has ignored, in a destructor

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(60):
            with pytest.raises((KeyboardInterrupt, CompilerTimeout)):
                interrupted(2e-4 * (k + 1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    started = pids.read_text().split() if pids.exists() else []
    assert not any(alive(int(pid)) for pid in started)


@pytest.mark.parametrize(
    ("content", "says"), [(None, "cannot be run"), ("", "cannot be run|no output file"), ("\x7fELF", "cannot be run")]
)
def test_23_what_cannot_be_started(tmp_path: Path, content: str | None, says: str) -> None:
    """A file that is gone, empty, or no program."""
    path = tmp_path / "gcc"
    if content is not None:
        path.write_text(content)
        path.chmod(0o755)
    with pytest.raises(CompilerError, match=says) as caught:
        build.compile_shared(Compiler("gcc", (str(path),), str(path)), SOURCE)
    assert not isinstance(caught.value, process.CompilerNotStarted)
