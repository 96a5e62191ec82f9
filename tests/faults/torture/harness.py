"""What all scenarios stand on: child processes, what they report, and where they do it.

1. The torture runs in a process that imports mgjit and never uses it, and that has no second thread.  A child is a
   fork of it: as good as new, because mgjit reads its settings and looks at the disk only when a step is called,
   and thirty times faster to have than a new interpreter.
2. A child runs one *job*, any Python function, and writes what it returned, raised and warned of to a file that
   has no name.  It may die in the middle: then there is an exit code and no report.
3. The job of most scenarios is `compute`: run some steps compiled, return all their numbers and what the cache,
   the compiler and the loader did for them.  `require_right` compares the numbers with those of the undecorated steps.
4. Everything lives below one directory, temporary files included, so that a scenario sees what is left behind.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import json
import os
import pkgutil
import random
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

import mgjit
from mgjit.base import settings
from mgjit.compiler.build import build
from mgjit.compiler.cache import store, sweep
from mgjit.compiler.toolchain import compilers, process

from . import steps

TIME_LIMIT = 120.0
"""Seconds after which a child counts as hanging: far above what the slowest machine needs."""

NOBODY = 65534
"""The user that stands for somebody else."""

ENOUGH = 12
"""Problems after which a scenario ends early."""

BOOKKEEPING = ("ledger", "locks", "sources", "usage")
"""Files of a cache directory that are neither entries nor temporary."""

_POLL = 0.002


class Failure(AssertionError):
    """Something that must not happen has happened."""


class Skip(Exception):
    """The scenario cannot be played on this machine; the text says why."""


@dataclass
class Report:
    """What became of a child."""

    value: Any = None
    error: str = ""
    warnings: list[str] = field(default_factory=list)
    code: int = 0  # the exit code, or minus the signal
    seconds: float = 0.0


# ------------------------------------------------------------------------------------------ child processes


class Child:
    """A process that runs one job."""

    def __init__(
        self,
        job: Callable[[], Any],
        environment: dict[str, str | None] | None = None,
        user: int | None = None,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `report`
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - where it is, if it hangs
        self._started = time.monotonic()
        self._time_limit = time_limit
        self.pid = os.fork()
        if self.pid == 0:
            if hasattr(faulthandler, "register"):
                faulthandler.register(signal.SIGUSR1, self._stacks, all_threads=True)
            _be_child(job, environment or {}, user, self._file.fileno())

    def kill(self) -> None:
        """End it without a chance to do anything about it."""
        os.kill(self.pid, signal.SIGKILL)

    def report(self) -> Report:
        """Wait for the end.  Failure: it did not end in time."""
        deadline = self._started + self._time_limit
        while True:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                raise Failure(f"a process hung for {self._time_limit:g} s:\n{self._where_it_hangs()}")
            time.sleep(_POLL)
        text = _content(self._file)
        self._stacks.close()
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        found = Report(**json.loads(text)) if text else Report(error="no report")
        found.code, found.seconds = code, time.monotonic() - self._started
        return found

    def _where_it_hangs(self) -> str:
        """End it, and say where its threads are."""
        if hasattr(faulthandler, "register"):
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(1.0)
        self.kill()
        os.waitpid(self.pid, 0)
        self._file.close()
        return _content(self._stacks).decode()


def _content(file: IO[bytes]) -> bytes:
    """What was written to a file, which is closed."""
    with file:
        file.seek(0)
        return file.read()


def _be_child(job: Callable[[], Any], environment: dict[str, str | None], user: int | None, descriptor: int) -> None:
    """Run the job, report, and end this process; never returns."""
    code = 1
    try:
        atexit._clear()  # what was registered so far is the parent's to do
        tempfile.tempdir = None  # the environment decides again
        for name, value in environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        report: dict[str, Any] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            try:
                report["value"] = job()
            except BaseException:
                report["error"] = traceback.format_exc()
        report["warnings"] = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
        atexit._run_exitfuncs()
        os.write(descriptor, json.dumps(report).encode("utf-8", "surrogateescape"))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# -------------------------------------------------------------------------------------- computing in a child


def compute(*numbers: int, decorate: Callable[[Any], Any] = mgjit.compile, calls: int = steps.CALLS) -> dict[str, Any]:
    """Run steps compiled: their numbers by step, and what was done for them."""
    results = {str(number): steps.results(number, decorate, calls) for number in numbers}
    return {"results": results, **deeds()}


def deeds() -> dict[str, Any]:
    """What the cache, the compiler and the loader of this process have done so far."""
    counters: dict[str, int] = {}
    for opened in [*store._stores.values()]:
        for name, count in vars(opened.counters).items():
            if isinstance(count, int):
                counters[name] = counters.get(name, 0) + count
    return {"counters": counters, "compiler_runs": process.compiler_runs, "libraries": libraries()}


def libraries() -> list[str]:
    """The files from which this process has mapped executable pages that are not the system's or Python's."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
            fields = [line.rstrip("\n").split(None, 5) for line in lines]
    except OSError:
        return []
    mapped = {row[5] for row in fields if len(row) == 6 and "x" in row[1] and row[5].startswith("/")}
    known = ("/usr/", "/lib", "/opt/", sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable)))
    return sorted(path for path in mapped if not path.startswith(known) and "-packages/" not in path)


@functools.cache
def expected(number: int, calls: int = steps.CALLS) -> list[str]:
    """The numbers of the undecorated step."""
    return steps.results(number, calls=calls)


def require(truth: object, text: str) -> None:
    """Failure with the text unless the truth holds."""
    if not truth:
        raise Failure(text)


def require_right(report: Report, numbers: Iterable[int], calls: int = steps.CALLS) -> None:
    """Failure unless a child ended well and has computed these steps, to the last bit."""
    require(not report.error and report.code == 0, f"exit code {report.code}\n{report.error}")
    for number in numbers:
        found = report.value["results"].get(str(number))
        require(found == expected(number, calls), f"step {number} gave {found}, not {expected(number, calls)}")


# ------------------------------------------------------------------------------------------- the torture itself


class Torture:
    """One scenario at work: how much of it, where, and what was found."""

    def __init__(self, name: str, long: bool, seed: int, quiet: bool) -> None:
        self.name = name
        self.long = long
        self.random = random.Random(f"{name} {seed}")
        self.figures: dict[str, Any] = {}
        self.problems: list[str] = []
        self.directory = Path(tempfile.mkdtemp(prefix="torture-"))
        self.directory.chmod(0o711)  # another user may pass through
        self._quiet = quiet
        self._made = 0

    def times(self, short: int, long: int) -> int:
        """How often, in the short and in the long form."""
        return long if self.long else short

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a figure of the summary."""
        self.figures[name] = self.figures.get(name, 0) + amount

    @contextlib.contextmanager
    def attempt(self, text: str) -> Iterator[None]:
        """One of many tries: a Failure is kept, and the next try goes on; too many of them are enough."""
        try:
            yield
        except Failure as failure:
            self.problems.append(f"{text}: {failure}")
            if len(self.problems) >= ENOUGH:
                raise Failure(f"{ENOUGH} problems are enough") from None

    def progress(self, items: Iterable[Any], text: str = "") -> Iterator[Any]:
        """The items, with a bar that says how far we are."""
        label = f"{self.name} {text}".strip()
        yield from tqdm(items, desc=label, disable=self._quiet, leave=False, file=sys.stderr, dynamic_ncols=True)

    def fresh(self, name: str = "place") -> Path:
        """A new directory for this user alone."""
        self._made += 1
        path = self.directory / f"{name}-{self._made}"
        path.mkdir(mode=0o700)
        return path

    def place(self, **environment: str | None) -> Place:
        """A new cache, with temporary files of its own."""
        return Place(self.fresh(), environment)

    def close(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.directory, ignore_errors=True)


#: For scenarios that count entries: what has been compared with plain Python is remembered in an entry of its own.
WITHOUT_PROOFS: dict[str, str | None] = {"MGJIT_VERIFY": "never"}


class Place:
    """A cache directory, a home, a directory for temporary files, and a log of all compiler calls."""

    def __init__(self, root: Path, environment: dict[str, str | None]) -> None:
        self.root = root
        self.cache = root / "cache"
        self.temporary = root / "temporary"
        self.temporary.mkdir(mode=0o700)
        self.home = root / "home"
        self.home.mkdir(mode=0o700)
        self._log = root / "compiler.log"
        self.environment: dict[str, str | None] = {
            **{setting.name: None for setting in settings.SETTINGS},
            "MGJIT_CACHE_DIR": str(self.cache),
            "MGJIT_CC": compiler(),
            "MGJIT_BACKGROUND": "0",  # each process compiles what it runs
            "TMPDIR": str(self.temporary),
            "HOME": str(self.home),
            "XDG_CACHE_HOME": None,
            "XDG_RUNTIME_DIR": None,
            "TORTURE_LOG": str(self._log),
            **environment,
        }

    def start(self, job: Callable[[], Any], **options: Any) -> Child:
        """A child with this place as its environment."""
        return Child(job, self.environment, **options)

    def run(self, job: Callable[[], Any], **options: Any) -> Report:
        """A child, waited for."""
        return self.start(job, **options).report()

    def compute(self, *numbers: int, **options: Any) -> Report:
        """A child that computes these steps, and has computed them right."""
        report = self.run(lambda: compute(*numbers), **options)
        require_right(report, numbers)
        return report

    def compute_quietly(self, *numbers: int, **options: Any) -> Report:
        """The same, and it met nothing to warn of."""
        report = self.compute(*numbers, **options)
        require(not report.warnings, f"warnings: {report.warnings}")
        return report

    def recovers(self, number: int) -> None:
        """Whatever happened here: the next process computes right without a warning, and the one after it hits."""
        self.compute_quietly(number)
        counters = self.compute_quietly(number).value["counters"]
        require(counters["hits"] >= 1 and not counters["corrupt"], f"no whole entry is there at last: {counters}")

    def builds(self) -> int:
        """How many steps were compiled here, by any process: what the compiler itself has written down."""
        try:
            return self._log.read_text().split().count("step")
        except OSError:
            return 0

    def entries(self) -> list[Path]:
        """The files of the entries, in order of name."""
        return sorted(path for path in self.cache.glob("*.so"))

    def forget_the_last_sweep(self) -> None:
        """So that the next put sweeps."""
        (self.cache / sweep.LEDGER).unlink()

    def leftovers(self) -> list[str]:
        """Temporary files of mgjit that nobody has deleted; Python's own `tempfile` may leave others when it dies."""
        names = [*os.listdir(self.cache)] if self.cache.is_dir() else []
        names += [name for name in os.listdir(self.temporary) if name.startswith("mgjit")]
        return sorted(name for name in names if not name.endswith(".so") and name not in BOOKKEEPING)

    def give_to(self, user: int) -> None:
        """Make another user the owner of everything here, as far as it exists."""
        for directory, names, files in os.walk(self.root):
            for path in [directory, *(os.path.join(directory, name) for name in names + files)]:
                os.chown(path, user, user, follow_symlinks=False)

    def remove(self) -> None:
        """Delete everything here, whatever its modes."""
        for directory, _names, _files in os.walk(self.root):
            with contextlib.suppress(OSError):
                os.chmod(directory, stat.S_IRWXU)
        shutil.rmtree(self.root, ignore_errors=True)


_WRAPPER = """\
#!/bin/sh
case "$*" in *.c*) if grep -q mgjit_probe ./*.c; then kind=probe; else kind=step; fi;; *) kind=other;; esac
[ -z "$TORTURE_LOG" ] || echo $kind >> "$TORTURE_LOG"
exec {compiler} "$@"
"""

_scripts: dict[str, str] = {}


def prepare_compilers(directory: Path) -> None:
    """Write the compilers that the scenarios use: scripts that note the call and run a real one.

    A child looks for those that work, because looking is using.
    """
    report = Child(_usable_compilers).report()
    require(not report.error, report.error)
    for family, command in report.value:
        script = directory / family
        script.write_text(_WRAPPER.format(compiler=command))
        script.chmod(0o755)
        _scripts[family] = str(script)


def _usable_compilers() -> list[tuple[str, str]]:
    """Family and command line of what works."""
    found = [each for each in compilers.candidates() if each.family in ("tcc", "gcc", "clang")]
    return [(each.family, each.command) for each in found if compilers.probe(each) is None]


def compiler(*families: str) -> str:
    """The path of the first of these that there is; tcc takes 3 ms where the others take 50."""
    for family in families or ("tcc", "gcc", "clang"):
        if family in _scripts:
            return _scripts[family]
    raise Skip(f"no C compiler works here{' that is ' + ' or '.join(families) if families else ''}")


def import_everything(numbers: Sequence[int] = (0,)) -> None:
    """Import what children import when they compute: another user may not be able to read Python's own files."""

    def modules() -> list[str]:
        before = set(sys.modules)
        with tempfile.TemporaryDirectory() as directory:
            os.environ["MGJIT_CACHE_DIR"] = directory
            for _ in range(2):  # the first misses, the second hits
                compute(*numbers)
                store._stores.clear()
                build._shared.clear()
        return sorted(set(sys.modules) - before)

    report = Child(modules).report()
    require(not report.error, report.error)
    own = (name for _, name, _ in pkgutil.walk_packages(mgjit.__path__, "mgjit.") if not name.endswith("__main__"))
    for name in [*report.value, *own]:  # which of its own depends on the clock
        with contextlib.suppress(ImportError):  # of what is not installed
            __import__(name)
