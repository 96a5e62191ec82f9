"""Find the source text that a function was compiled from, and prove that it is the right one.

1. `linecache` has the lines of files, archives, doctests, notebook cells and the REPL.
2. Functions and classes at the top level of that text that do not contain the function are left out, because compiling
   them would only take time.
3. The rest is compiled again.  One function in it must have the same code, instruction for instruction; otherwise the
   text is not, or no longer, that of the function.  Notebooks and REPLs compile each statement separately, which makes
   a difference: CPython calls attributes of modules in another way if the same text imports them.
"""

from __future__ import annotations
import __future__ as future

import ast
import functools
import linecache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..world.code import codes

#: Nodes of functions.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_FUTURE = functools.reduce(int.__or__, (getattr(future, name).compiler_flag for name in future.all_feature_names))


class Text(NamedTuple):
    """The text of a function.

    Attributes:
        lines: the file, or part of it, with everything at its original position.
        place: line and column of the function's node.
        flags: compiler flags, such as that for postponed evaluation of annotations.
    """

    lines: str
    filename: str
    place: tuple[int, int]
    flags: int


def text_of(function: FunctionType) -> Text | None:
    """The text that a function was compiled from; None if it cannot be found."""
    code = function.__code__
    found = _found(_lines_of(function), code)
    if found is None:  # the cached lines may be older than the function
        linecache.checkcache(code.co_filename)
        found = _found(_lines_of(function), code)
    return found


def _lines_of(function: FunctionType) -> str:
    """The lines of a function's file; in an archive, they come from the module's loader."""
    filename = function.__code__.co_filename
    try:
        lines = "".join(linecache.getlines(filename, function.__globals__))
    except Exception:  # raised by the loader
        return ""
    if _texts.get(filename) != lines:
        if len(_texts) > _MOST_TEXTS:
            _texts.clear()
        _texts[filename] = lines
    return _texts[filename]  # the same object again: it is the key of what has been found in it


_texts: dict[str, str] = {}
_MOST_TEXTS = 256


def _found(lines: str, code: CodeType) -> Text | None:
    filename, flags = code.co_filename, code.co_flags & _FUTURE
    part = _part_around(lines, filename, code.co_firstlineno)
    if not part:
        return None
    key = code.co_name, code.co_firstlineno
    places, versions = _functions_in(part, filename, flags, code.co_firstlineno)
    if len(places.get(key, ())) != 1 or not any(is_same_code(made, code) for made in versions.get(key, ())):
        return None
    return Text(part, filename, places[key][0], flags)


@functools.lru_cache(maxsize=64)
def _definitions(lines: str, filename: str) -> list[tuple[int, int]] | None:
    """First and last line of each function and class at the top level of a file; None if it is not Python."""
    try:
        tree = ast.parse(lines, filename)
    except (SyntaxError, ValueError, RecursionError):
        return None
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(first_line(node), node.end_lineno or node.lineno) for node in tree.body if isinstance(node, definitions)]


@functools.lru_cache(maxsize=256)
def _part_around(lines: str, filename: str, line: int) -> str | None:
    """A file without the functions and classes that do not contain a line; all else keeps its position."""
    definitions = _definitions(lines, filename)
    if definitions is None:
        return None
    found = lines.split("\n")
    for first, last in definitions:
        if not first <= line <= last:
            found[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(found)


_Key = tuple[str, int]  # identifies a function: its name, and the line in which its decorators begin


@functools.lru_cache(maxsize=256)
def _functions_in(
    part: str, filename: str, flags: int, line: int
) -> tuple[dict[_Key, list[tuple[int, int]]], dict[_Key, list[CodeType]]]:
    """The places of the functions in a part of a file, and the code objects of those that contain a line."""
    tree = ast.parse(part, filename)
    places: dict[_Key, list[tuple[int, int]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            place = getattr(node, "name", "<lambda>"), first_line(node)
            places.setdefault(place, []).append((node.lineno, node.col_offset))
    alone = [node for node in tree.body if first_line(node) <= line <= (node.end_lineno or node.lineno)]
    versions: dict[_Key, list[CodeType]] = {}
    for unit in (tree, ast.Module(alone, [])):
        for code in codes(compile(unit, filename, "exec", flags, dont_inherit=True)):
            versions.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    return places, versions


def first_line(node: Any) -> int:
    """The first line of a statement, including its decorators."""
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
    return min(lines)


_COMPARED = ("co_code", "co_name", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_flags")


def is_same_code(a: Any, b: Any) -> bool:
    """Whether two code objects do the same; constants of equal value but different type differ."""
    return (
        all(getattr(a, name) == getattr(b, name) for name in _COMPARED)
        and len(a.co_consts) == len(b.co_consts)
        and all(map(_is_same_constant, a.co_consts, b.co_consts))
    )


def _is_same_constant(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType):
        return is_same_code(a, b)
    if isinstance(a, frozenset):
        return a == b and set(map(repr, a)) == set(map(repr, b))
    return repr(a) == repr(b)
