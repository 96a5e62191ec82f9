"""The text of functions, wherever Python has it; and never the text of another one."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import linecache
import math
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import mgjit
from mgjit.tracing.source.rewriting import rewritten
from mgjit.tracing.source.text import is_same_code, text_of

MODULE = """\
import math

SCALE = 2.0

class Node:
    def __init__(self, data):
        self.data = data

    def tanh(self):
        return Node(math.tanh(self.data))

def step(x):
    return (x if x > SCALE else Node(x).tanh().data) * (1 if x else 2)
"""


def loaded(path: Path, name: str) -> Any:
    """A module that is not in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert name not in sys.modules
    return module


def check(step: Any) -> None:
    """A step of one trace does what Python does."""
    compiled = mgjit.compile(step)
    for x in (0.5, 3.0, -1.0, 0.0, 2.0):
        assert compiled(x).hex() == float(step(x)).hex()
    assert compiled.stats.traces == 1


def test_01_a_module_that_is_not_in_sys_modules(tmp_path: Path) -> None:
    (tmp_path / "nowhere.py").write_text(MODULE)
    check(loaded(tmp_path / "nowhere.py", "nowhere").step)


def test_02_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines come from the loader."""
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("in_an_archive.py", MODULE)
    monkeypatch.syspath_prepend(str(tmp_path / "archive.zip"))
    module = importlib.import_module("in_an_archive")
    monkeypatch.delitem(sys.modules, "in_an_archive")
    linecache.clearcache()
    check(module.step)


def test_03_statements_that_were_compiled_one_by_one() -> None:
    """As notebooks and REPLs do, whose cells are in `linecache`; with futures that an earlier cell has asked for."""
    import ast

    name, namespace = "<cell 7>", {"__name__": "__main__"}
    flags = compile("from __future__ import annotations", "", "exec").co_flags & 0x1FF0000
    for statement in ast.parse(MODULE).body:
        exec(compile(ast.Module([statement], []), name, "exec", flags, dont_inherit=True), namespace)  # noqa: S102
    linecache.cache[name] = (len(MODULE), None, MODULE.splitlines(keepends=True), name)
    try:
        check(namespace["step"])
    finally:
        del linecache.cache[name]


def test_04_a_doctest() -> None:
    examples = textwrap.dedent(
        """
        >>> import math, mgjit
        >>> def plain(x):
        ...     return (x if x > 2.0 else math.tanh(x)) * (1 if x else 2)
        >>> step = mgjit.compile(plain)
        >>> [step(x) == plain(x) for x in (0.5, 3.0, -1.0, 0.0)]
        [True, True, True, True]
        >>> step.stats.traces
        1
        """
    )
    test = doctest.DocTestParser().get_doctest(examples, {"__name__": "__main__"}, "cells", None, None)
    report: list[str] = []
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


def test_05_an_edited_file(tmp_path: Path) -> None:
    """The functions of before are not taken for those of now, also where all lines are as long as they were."""
    path = tmp_path / "edited.py"
    path.write_text(MODULE)
    old = loaded(path, "edited")
    assert text_of(old.step) is not None
    path.write_text(MODULE.replace("else 2)", "else 3)").replace("math.tanh", "math.cosh"))
    os.utime(path, (1, 1))
    new = loaded(path, "edited")
    assert text_of(new.step) is not None
    assert text_of(old.step) is None
    assert text_of(old.Node.tanh) is None
    assert text_of(old.Node.__init__) is not None
    assert not rewritten([old.step])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("lambda x: x + 1", "lambda x: x + 1.0"),
        ("lambda x: x + 1", "lambda x: x + True"),
        ("lambda x: x * 0.0", "lambda x: x * -0.0"),
        ("lambda x: x + 1", "lambda x: x - 1"),
        ("lambda x: x.data", "lambda x: x.grad"),
        ("lambda x: x in {1, 2}", "lambda x: x in {1, 2.0}"),
        ("lambda x: (lambda: 1)", "lambda x: (lambda: 2)"),
        ("lambda x: a", "lambda x: b"),
        ("lambda x: x", "lambda y: y"),
    ],
)
def test_06_code_that_differs(a: str, b: str) -> None:
    first, again, other = (eval(text).__code__ for text in (a, a, b))  # noqa: S307
    assert is_same_code(first, again)
    assert not is_same_code(first, other)


def test_07_what_has_no_text() -> None:
    """Made by `exec`; by a loader that fails; two functions of one line."""
    namespace: dict[str, Any] = {}
    exec("def f(x): return x", namespace)  # noqa: S102
    assert text_of(namespace["f"]) is None

    class Loader:
        def get_source(self, name: str) -> str:
            raise ZeroDivisionError

    names = {"__name__": "broken", "__loader__": Loader()}
    exec(compile("def f(x): return x", "/nowhere/broken.py", "exec"), names)  # noqa: S102
    function = names["f"]
    assert isinstance(function, FunctionType)
    assert text_of(function) is None
    two = [lambda x: x, lambda x: -x]
    assert [text_of(function) for function in two] == [None, None]


REPL = """
import math, mgjit
class Node:
    def __init__(self, data):
        self.data = data
    def tanh(self):
        return Node(math.tanh(self.data))

step = mgjit.compile(lambda x: Node(x).tanh().data)
print("same:", [step(x) == math.tanh(x) for x in (0.5, 0.25, -1.0)], step.stats.traces)
"""


def test_08_the_repl(tmp_path: Path) -> None:
    """Lines that are typed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]), "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=REPL, capture_output=True, check=True, text=True, env=environment, timeout=60,
    )  # fmt: skip
    assert "same: [True, True, True] 1" in done.stdout, done.stderr


def test_09_ipython(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]), "TERM": "dumb"}
    environment["IPYTHONDIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--quick"],
        input=REPL, capture_output=True, check=True, text=True, env=environment, timeout=60,
    )  # fmt: skip
    assert "same: [True, True, True] 1" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif("config.getoption('assertmode') == 'plain'", reason="asserts are as they stand")
def test_10_assertions_of_a_test() -> None:
    """pytest compiles something else than the text."""
    assert isinstance(sys.modules.get(__name__, math), ModuleType)
    assert text_of(test_10_assertions_of_a_test) is None
