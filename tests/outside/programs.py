"""Programs whose step reads what lies outside of it, from the lines of expressions.txt.

    ... what is there before ...
    @decorator
    def step(x):
        return x * (expression)
    three calls; what changes it; three calls

Each runs in a process of its own, because it changes the process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import linecache
import os
import signal
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mgjit

_MODULES = """
    argparse array asyncio calendar codecs collections concurrent.futures configparser contextvars csv ctypes datetime
    dbm.dumb decimal email.message faulthandler fractions functools gc glob graphlib hashlib hmac http.cookies inspect
    io itertools linecache locale logging mmap multiprocessing multiprocessing.shared_memory operator os pathlib pprint
    queue re resource sched secrets select selectors shelve signal socket sqlite3 statistics string struct subprocess
    sys tempfile textwrap threading time tracemalloc types uuid unittest.mock warnings weakref xml.etree.ElementTree
    zlib
""".split()  # noqa: SIM905 - read more easily
_SECONDS = 60


class Program(NamedTuple):
    """One line of the table."""

    before: str
    expression: str
    change: str

    @property
    def name(self) -> str:
        """The line itself."""
        return f"{self.before} | {self.expression} | {self.change}".strip()

    def text(self) -> str:
        """What runs, as a function of the decorator."""
        classes, _, rest = self.before.partition(": ") if self.before.startswith("class") else ("", "", self.before)
        body, _, rest = rest.partition("; ") if classes else ("", "", rest)
        lines = [f"{classes}: {body}"] if classes else []
        lines += rest.split("; ")
        names = [name for line in [self.change, *lines] for name in _assigned(line)]
        return "\n".join(
            [
                "def program(decorator):",
                *(f"    {line}" for line in lines if line.strip()),
                "    @decorator",
                "    def step(x):",
                f"        return x * ({self.expression})",
                "    seen.extend(step(1.0) for _ in range(3))",
                *(f"    {line}" for line in self.change.split("; ")),
                "    seen.extend(step(1.0) for _ in range(3))",
                f"    kept.append(({', '.join([*dict.fromkeys(names), ''])}))"
                if names and "del" not in self.change
                else "",
            ]
        )


def _assigned(line: str) -> list[str]:
    name, equals, _ = line.partition(" = ")
    return [part.strip() for part in name.split(",")] if equals and name.replace(", ", "").isidentifier() else []


def programs() -> Iterator[Program]:
    """All of the table."""
    for line in (Path(__file__).parent / "expressions.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield Program(*(part.strip() for part in f" {line}".split(" | ")))


@functools.cache
def _modules() -> dict[str, Any]:
    """The modules that programs use, as far as this Python has them."""
    found: dict[str, Any] = {"graphlib": None}
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found[name.partition(".")[0]] = sys.modules[name.partition(".")[0]]
    found["mock"] = sys.modules["unittest.mock"]
    with contextlib.suppress(ImportError):
        found["np"] = importlib.import_module("numpy")
    return found


def names_of_programs(folder: Path) -> dict[str, Any]:
    """The global variables of a program."""
    found: dict[str, Any] = {**_modules(), "folder": folder, "out": [], "seen": [], "kept": []}
    text = """
class Thing:
    pass

def nothing(*given):
    return None

def started():
    thread = threading.Thread(target=time.sleep, args=(20.0,), daemon=True)
    thread.start()
    return thread

def numbers_of():
    yield from map(float, range(1, 20))

def shared():
    return multiprocessing.shared_memory.SharedMemory(create=True, size=10)

def database():
    found = sqlite3.connect(":memory:", isolation_level=None)
    found.execute("create table t(v real)")
    found.execute("insert into t values(1.0)")
    return found

def loaded(text):
    (folder / "loaded.py").write_text(text)
    specification = importlib.util.spec_from_file_location("loaded_by_path", folder / "loaded.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
"""
    found["importlib"] = importlib
    importlib.import_module("importlib.util")
    _execute(text, found)
    return found


def _execute(text: str, names: dict[str, Any]) -> None:
    """Run text that has lines, as a file has."""
    handle, path = tempfile.mkstemp(suffix=".py")
    os.write(handle, text.encode())
    os.close(handle)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), names)  # noqa: S102 - which is what it is for


class Outcome(NamedTuple):
    """What a program has done: its results, how it ended, its warnings of plain calls, and how many were compiled."""

    seen: list[str]
    error: str
    warned: list[str]
    calls: int


def run(program: Program, folder: Path, decorated: bool) -> Outcome:
    """Run a program in a process of its own."""
    folder.mkdir()
    _modules()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        os.close(reading)
        outcome = _perform(program, folder, decorated)
        os.write(writing, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        told = stream.read()
    os.waitpid(child, 0)
    return Outcome(*json.loads(told)) if told else Outcome([], "no answer", [], 0)


def _perform(program: Program, folder: Path, decorated: bool) -> Outcome:
    os.environ.pop("MGJIT_REFUSE", None)  # as users have it
    names = names_of_programs(folder)
    names["__name__"] = "__main__"
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    names["__builtins__"] = vars(main).get("__builtins__", __builtins__)
    vars(main).update(names)
    names = vars(main)
    steps: list[Any] = []

    def compiled(function: Callable[..., Any]) -> Any:
        steps.append(mgjit.compile(background=False)(function))
        return steps[-1]

    error = ""
    with warnings.catch_warnings(record=True) as caught:
        if "warnings." not in program.name:
            warnings.simplefilter("always")
        try:
            _execute(program.text(), names)
            names["program"](compiled if decorated else lambda function: function)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            if os.environ.get("MGJIT_TEST_SHOW"):
                traceback.print_exc()
    plain = [str(w.message) for w in caught if "runs as plain Python" in str(w.message)]
    seen = [f"{type(number).__name__} {number!r}" for number in names["seen"]]
    return Outcome(seen, error, plain, steps[0].stats.calls if steps else 0)
