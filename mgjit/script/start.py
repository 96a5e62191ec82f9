"""What a program is started as: a script, a module, a text, or what comes from standard input.

Each has the variables, `sys.argv` and `sys.path` that Python gives it: `python script.py`, `python -m module`,
`python -c text`, `python -`.
"""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType

from .records import record
from .rewrite import texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How a program may be named on the command line, besides by its file.
MODULE, TEXT, INPUT = "-m", "-c", "-"


@record
class Start:
    """A program that is about to run.

    Attributes:
        main: its module `__main__`. folder: where the modules are that it may bring along.
        source: its text; None for a module, which is found later. filename: what tracebacks call it.
    """

    main: ModuleType
    folder: str
    source: bytes | None
    filename: str


def started(kind: str, target: str, arguments: list[str]) -> Start:
    """Prepare this process for a program; from here on `sys.argv`, `sys.path` and `__main__` are its own.

    Args:
        kind: MODULE, TEXT or INPUT; empty for a script. target: its name, text or path. arguments: its own.

    Raises:
        OSError: the script cannot be read.
    """
    main = ModuleType("__main__")
    variables: dict[str, Any] = {"__builtins__": builtins, "__annotations__": {}}
    source: bytes | None = None
    if kind == "":
        filename, source = _absolute(target), _read(target)
        folder = os.path.dirname(os.path.realpath(filename))
        variables.update(__file__=filename, __cached__=None, __loader__=SourceFileLoader("__main__", filename))
    else:
        folder = os.getcwd()
        filename = {TEXT: "<string>", INPUT: "<stdin>", MODULE: target}[kind]
        variables["__loader__"] = BuiltinImporter
        if kind == INPUT:
            variables.update(__file__=filename, __cached__=None)
        if kind != MODULE:
            source = sys.stdin.buffer.read() if kind == INPUT else f"{target}\n".encode("utf-8", "surrogateescape")
            texts[filename] = text = source.decode("utf-8", "replace")
            if kind == TEXT and sys.version_info >= (3, 13):  # whose tracebacks show its lines
                import linecache

                linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    vars(main).update(variables, __package__=None, __spec__=None)
    sys.argv = [target if kind == "" else kind, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, "" if kind in (TEXT, INPUT) else folder)
    sys.modules["__main__"] = main
    return Start(main, folder, source, filename)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _absolute(path: str) -> str:
    """A path as Python makes it: `..` stays."""
    if os.path.isabs(path):
        return path
    return os.path.join(os.getcwd(), path[2:] if path.startswith(f".{os.sep}") else path)
