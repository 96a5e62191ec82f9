"""Find the source text that a function was compiled from, and prove that it is the right one.

1. `linecache` has the lines of files, archives, doctests, notebook cells and the REPL; `mgjit run` those of a text.
2. Only the statement at the top level that contains the function is kept, without the other methods of its class,
   because compiling the rest would only take time.
3. What is kept is compiled again.  One function in it must have the same code, instruction for instruction; otherwise
   the text is not, or no longer, that of the function.  CPython calls attributes of modules in another way if the same
   text imports them, so this is tried with the imports of the file, and without (notebooks and REPLs compile each
   statement separately).
"""

from __future__ import annotations
import __future__ as future

import ast
import functools
import linecache
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..surroundings.code import codes

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
    code = written_as.get(function.__code__, function.__code__)
    found = _found(_lines_of(function), code.co_filename, code)
    if found is None:  # the cached lines may be older than the function
        linecache.checkcache(code.co_filename)
        found = _found(_lines_of(function), code.co_filename, code)
    return found


def _lines_of(function: FunctionType) -> str:
    """The lines of a function's file; in an archive, they come from the module's loader."""
    filename = function.__code__.co_filename
    try:
        lines = without_file.get(filename) or "".join(linecache.getlines(filename, function.__globals__))
    except Exception:  # raised by the loader
        return ""
    if _texts.get(filename) != lines:
        if len(_texts) > _MOST_TEXTS:
            _texts.clear()
        _texts[filename] = lines
    return _texts[filename]  # the same object again: it is the key of what has been found in it


_texts: dict[str, str] = {}
_MOST_TEXTS = 256


@functools.lru_cache(maxsize=1024)
def _found(lines: str, filename: str, code: CodeType) -> Text | None:
    flags = code.co_flags & _FUTURE
    key = code.co_name, code.co_firstlineno
    for part in _parts_around(lines, filename, code.co_firstlineno):
        try:
            places, versions = _functions_in(part, filename, flags, code.co_firstlineno)
        except SyntaxError:  # the file has been changed since, so that the line is one of something else
            return None
        if len(places.get(key, ())) != 1:
            return None
        if any(is_same_code(made, code) for made in versions.get(key, ())):
            return Text(part, filename, places[key][0], flags)
    return None


class _Statement(NamedTuple):
    """A statement of a module or a class: its lines, and what it consists of.

    Attributes:
        members: for a class, the functions and classes in it.
    """

    first: int
    last: int
    is_definition: bool
    imports: bool
    members: list[_Statement]

    def contains(self, line: int) -> bool:
        return self.first <= line <= self.last


@functools.lru_cache(maxsize=64)
def _statements(lines: str, filename: str) -> list[_Statement]:
    """The statements at the top level of a file; none if it is not Python."""
    try:
        return list(map(_statement, ast.parse(lines, filename).body))
    except (SyntaxError, ValueError, RecursionError):
        return []


def _statement(node: ast.stmt) -> _Statement:
    is_definition = isinstance(node, _DEFINITIONS)
    members = [part for part in node.body if isinstance(part, _DEFINITIONS)] if isinstance(node, ast.ClassDef) else []
    imports = not is_definition and any(isinstance(part, (ast.Import, ast.ImportFrom)) for part in ast.walk(node))
    last = node.end_lineno or node.lineno
    return _Statement(first_line(node), last, is_definition, imports, list(map(_statement, members)))


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@functools.lru_cache(maxsize=256)
def _parts_around(lines: str, filename: str, line: int) -> list[str]:
    """What may have been compiled together with a line: its statement with the imports, alone, or with all statements.

    Everything keeps its position.  Of functions and classes, only those that contain the line are left.
    """
    found, statements = lines.split("\n"), _statements(lines, filename)
    if not any(statement.contains(line) for statement in statements):
        return []

    def without(unwanted: Callable[[_Statement], bool]) -> str:
        kept = found.copy()
        pending = statements
        while pending:
            wanted: set[int] = set()
            for one in pending:
                if one.contains(line) or not unwanted(one):
                    wanted.update(range(one.first, one.last + 1))
            for first, last in [(one.first, one.last) for one in pending]:
                if wanted.isdisjoint(range(first, last + 1)):  # no other statement is on the same line
                    kept[first - 1 : last] = [""] * (last - first + 1)
            pending = [member for one in pending if one.contains(line) for member in one.members]
        return "\n".join(kept)

    parts = [
        without(lambda one: not one.imports),
        without(lambda one: True),
        without(lambda one: one.is_definition),
    ]
    return list(dict.fromkeys(parts))


_Key = tuple[str, int]  # identifies a function: its name, and the line in which its decorators begin


@functools.lru_cache(maxsize=256)
def _functions_in(
    part: str, filename: str, flags: int, line: int
) -> tuple[dict[_Key, list[tuple[int, int]]], dict[_Key, list[CodeType]]]:
    """The places of the functions that contain a line of a part of a file, and the code objects of all functions."""
    tree = ast.parse(part, filename)
    places: dict[_Key, list[tuple[int, int]]] = {}
    for node in around(tree, line):
        if isinstance(node, FUNCTIONS):
            place = getattr(node, "name", "<lambda>"), first_line(node)
            places.setdefault(place, []).append((node.lineno, node.col_offset))
    versions: dict[_Key, list[CodeType]] = {}
    for code in codes(compile(tree, filename, "exec", flags, dont_inherit=True)):
        versions.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    return places, versions


def around(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """The nodes of a text that contain a line."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            last = getattr(child, "end_lineno", None)
            if last is None or first_line(child) <= line <= last:  # such as arguments, which have no place
                pending.append(child)


def first_line(node: Any) -> int:
    """The first line of a statement, including its decorators."""
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
    return min(lines)


#: What functions were compiled to that have been changed since, by the code that they have now.
written_as: dict[CodeType, CodeType] = {}
#: Texts that are in no file, by what their code calls it.
without_file: dict[str, str] = {}
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
