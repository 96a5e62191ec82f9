"""Rewrite a module so that its training loops try a step first.

1. Each loop gets a second version, which asks a section for the results of a compiled call (versions.py).
2. The statements of the step, at the same lines, are compiled once more as a function: the step.
3. Sections are no names, but constants of the code, put there after it has been compiled.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Callable, Sequence
from types import CodeType

from .find import LOOPS, candidates, knowledge_of, parsed, trains_by_itself
from .names import FUNCTIONS, nodes_of
from .records import field, record
from .versions import placeholder, stop_name, try_steps, try_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .evaluations import Evaluation
    from .find import Candidate
    from .interface import Outline
    from .rows import Pattern

#: Leaves alone the loop or the function that begins on its line.
_OFF = re.compile(r"#\s*mgjit:\s*off\b")
#: The argument of a step that holds what one iteration takes over from another.
_KEPT = "kept_of_mgjit"
#: The modules of the program that use mgjit themselves.
own_steps: list[str] = []
#: The texts of programs that are in no file, by what tracebacks call them.
texts: dict[str, str] = {}
#: The code of functions as they stand, by the code with sections: a trace follows their text, which has none.
plain_codes: dict[CodeType, CodeType] = {}


@record
class Note:
    """What has become of a loop, for reports.

    Attributes:
        line: of the loop. first, last: the lines of the step; 0 where there is none.
        at: the line that a refusal is about. reason: why there is no step; empty if there is one.
    """

    filename: str
    line: int
    first: int = 0
    last: int = 0
    at: int = 0
    reason: str = ""


@record
class StepSource:
    """The function of a step, to be compiled when it is needed.

    Attributes:
        text: the function, at the lines where its statements are in the file. name: of the function.
        filename, function: of the loop; the function is empty at module level. line: of the loop. first: of the step.
        numbers_only: for each result, whether the program looks only at the numbers of an object.
        stops: how many reasons there are for which plain Python makes an iteration. leaving: as of `Outline`.
        outer: the number of the section around it, or -1. levels: how many loops of the function are around its loop.
        rows: of the function for many iterations at once; None where the step is not the whole body.
        is_value: whether it is an expression. in_reserve: whether the loops in it come first.
    """

    text: str
    name: str
    filename: str
    line: int
    first: int
    last: int
    function: str = ""
    numbers_only: Sequence[bool] = ()
    stops: int = 0
    leaving: int = -1
    outer: int = -1
    levels: int = 0
    is_value: bool = False
    in_reserve: bool = False
    rows: RowsSource | None = None

    def compiled(self, namespace: dict[str, Any]) -> Any:
        """The function, over the variables of its module."""
        import linecache

        filename = f"{self.filename} (step at line {self.first})"
        lines = self.text.splitlines(keepends=True)
        linecache.cache[filename] = (len(self.text), None, lines, filename)
        made: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(self.text, filename, "exec", dont_inherit=True), made)  # noqa: S102 - defines a function
        return type(made[self.name])(made[self.name].__code__, namespace, self.name)


@record
class RowsSource:
    """The function of a step that is the whole body of a loop, for many iterations at once (trying_rows.py).

    Attributes:
        step: the function, without results.  Its last argument is a list of what is kept, if anything is.
        arguments: the names of what the loop gives. pattern: the variables of the loop.
        kept: those of the step's results, which the next iteration may read.
        has_tests: whether functions that tell where an iteration does more come last among what the loop gives.
    """

    step: StepSource
    arguments: list[str]
    pattern: Pattern
    kept: list[str]
    has_tests: bool = False


@record
class Rewritten:
    """A module whose loops try steps.

    Attributes:
        code: has placeholders for sections. steps: their sources. notes: on each loop. plain: the code as it stands.
    """

    code: CodeType
    steps: list[StepSource]
    notes: list[Note] = field(default_factory=list)
    plain: CodeType | None = None

    def with_sections(self, sections: Sequence[Any]) -> CodeType:
        """The code, with these objects in place of the placeholders."""
        code = _replaced(self.code, {placeholder(k): section for k, section in enumerate(sections)})
        if self.plain is not None and self.plain is not self.code:
            _note_plain(code, self.plain)
        return code


def rewritten(
    source: bytes | str, filename: str, lines: Sequence[int] | None = None, plain: CodeType | None = None
) -> Rewritten | None:
    """Rewrite a module; None if it is to run as it stands, because no loop in it trains.

    Args:
        filename: for tracebacks; modules beside it are looked at, too.
        lines: of the loops that the user has named; None for a search.
        plain: its code as it stands, where that has been compiled.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    with warnings.catch_warnings():  # they have come when the module was compiled
        warnings.simplefilter("ignore")
        code = stands = plain or compile(source, filename, "exec", dont_inherit=True)
        tree = parsed(source, filename)
    if _uses_mgjit(tree):
        own_steps.append(filename)
        if lines is None:
            return None
    steps, notes = rewrite(tree, source if isinstance(source, str) else _decoded(source), filename, lines)
    if not notes:
        return None
    if steps:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(tree, filename, "exec", dont_inherit=True)
    return Rewritten(code, steps, notes, stands)


def _decoded(source: bytes) -> str:
    """The text of a module."""
    if any(b"coding" in line for line in source.split(b"\n", 2)[:2]):
        from importlib.util import decode_source  # which imports `tokenize`

        return decode_source(source)
    return source.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def rewrite(
    tree: ast.Module,
    text: str,
    filename: str,
    lines: Sequence[int] | None = None,
    used_later: Callable[[str], bool] | None = None,
) -> tuple[list[StepSource], list[Note]]:
    """Rewrite a tree in place; returns the steps, and a note on each loop.

    Args:
        text: what it was parsed from.
        used_later: of a notebook, whether functions in other cells use a name; all names count as read later.
    """
    folder = os.path.dirname(os.path.abspath(filename)) if not filename.startswith("<") else None
    known = knowledge_of(tree, folder)
    loops = candidates(tree, known, lines)
    if not (known.trains or any(not one.is_short for one in loops)):
        known = knowledge_of(tree, folder, is_wide=True)
        loops = candidates(tree, known, lines)
    off = _switched_off(tree, text) if lines is None and "mgjit:" in text else []
    loops = [one for one in loops if not any(_meets(one.loop, part) for part in off)]
    if not (loops or known.trains):
        return [], []
    from .evaluations import called_by, evaluations  # which most scripts do without
    from .interface import Refusal
    from .outline import outlined

    notes, steps, made = list[Note](), list[StepSource](), dict[int, int]()
    planned: list[tuple[Candidate, Outline]] = []
    for candidate in loops:
        try:
            parts = outlined(candidate, known, lines is not None, used_later)
            planned += [(candidate, outline) for outline in parts if outline.pattern or not candidate.is_short]
        except Refusal as refusal:
            if not (candidate.in_reserve or candidate.is_short):
                notes.append(Note(filename, candidate.loop.lineno, at=refusal.line, reason=str(refusal)))
    if lines is None:  # a loop over parameters in a function that a step calls is part of that step
        called = called_by(tree, [one for _, outline in planned for one in outline.statements])
        planned = [
            (candidate, outline)
            for candidate, outline in planned
            if candidate.function not in called or outline.pattern or trains_by_itself(candidate.loop, known)
        ]
    for number, (candidate, outline) in enumerate(planned):
        around = candidate.outer
        while around is not None and id(around) not in made:
            around = around.outer
        made.setdefault(id(candidate), number)
        source = _step_source(text, filename, outline)
        source.outer = made[id(around)] if around is not None else -1
        source.levels = sum(isinstance(one, ast.For) for one in candidate.around)
        source.in_reserve = candidate.in_reserve
        source.rows = _rows_source(text, filename, outline, source) if outline.pattern is not None else None
        outline.pattern = None if source.rows is None else outline.pattern
        steps.append(source)
        notes.append(Note(filename, candidate.loop.lineno, source.first, source.last))
    found: list[Evaluation] = []
    if lines is None and (planned or known.trains):
        found = evaluations(
            tree, known, [s for _, outline in planned for s in outline.block[outline.start : outline.end]]
        )
        found = [one for one in found if not any(_meets(one.node, part) for part in off)]
    for evaluation in found:
        source = _value_source(text, filename, evaluation)
        steps.append(source)
        notes.append(Note(filename, source.line, source.first, source.last))
    instead = dict[int, ast.stmt]()
    try_values(tree, found, len(planned))
    for candidate in reversed(list({id(one): one for one, _ in planned}.values())):  # inner ones first
        own = {number: outline for number, (one, outline) in enumerate(planned) if one is candidate}
        try_steps(candidate, own, instead)
    return steps, notes


def _switched_off(tree: ast.Module, text: str) -> list[ast.AST]:
    """The loops and functions with a comment `# mgjit: off` on their first line."""
    lines = text.split("\n")
    return [
        node
        for node in nodes_of(tree)
        if isinstance(node, (*LOOPS, *FUNCTIONS)) and _OFF.search(lines[node.lineno - 1]) is not None
    ]


def _meets(node: ast.AST, other: ast.AST) -> bool:
    """Whether one of two nodes is in the other."""
    first, last, begin, end = (
        getattr(one, name) for one in (node, other) for name in ("lineno", "end_lineno")
    )  # fmt: skip
    return first <= end and begin <= last  # type: ignore[no-any-return]


def _uses_mgjit(tree: ast.Module) -> bool:
    for node in nodes_of(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if any(name.partition(".")[0] == "mgjit" for name in names):
            return True
    return False


# ---- 1: the function ------------------------------------------------------------------------------------------


def _step_source(text: str, filename: str, outline: Outline) -> StepSource:
    """The text of the function: its statements, at their lines, and nothing else."""
    lines = [line.encode() for line in text.split("\n")]  # columns are bytes
    statements = outline.statements
    first, last = _first_line(statements[0]), statements[-1].end_lineno or statements[-1].lineno
    indentation = _indentation(lines, outline)
    kept = [""] * (last - first + 1)
    for statement in statements:
        begin, *others = _segment(lines, statement, outline)
        place = _first_line(statement) - first
        kept[place] = f"{kept[place]}; {begin}" if kept[place] else indentation + begin
        kept[place + 1 : place + 1 + len(others)] = others
    name = f"step_at_line_{first}"
    head = [f"def {name}({', '.join([*outline.arguments, *outline.attributes])}):"]
    if outline.shared:
        head.append(f"{indentation}global {', '.join(outline.shared)}")
    results = "".join(f"{result}, " for result in [*outline.results, *outline.stops])
    body = [*[""] * (first - 1 - len(head)), *head, *kept, f"{indentation}return ({results})", ""]
    return StepSource(
        "\n".join(body), name, filename, outline.candidate.loop.lineno, first, last,
        outline.candidate.function, tuple(outline.numbers_only), len(outline.stops), outline.leaving,
    )  # fmt: skip


def _rows_source(text: str, filename: str, outline: Outline, source: StepSource) -> RowsSource | None:
    """The function of a step that is a whole body; None if there is no room for its first lines."""
    assert outline.pattern is not None
    kept = outline.results
    names = [*(name for name in outline.arguments if name not in kept), *outline.attributes, *([_KEPT] if kept else [])]
    taken = [f"{name} = {_KEPT}[{k}]" for k, name in enumerate(kept) if name in outline.arguments]
    given = [f"{_KEPT}[{k}] = {name}" for k, name in enumerate(kept)]
    lines, indentation = source.text.split("\n"), _indentation([line.encode() for line in text.split("\n")], outline)
    name = f"rows_at_line_{source.first}"
    head = [f"def {name}({', '.join(names)}):", *([indentation + "; ".join(taken)] if taken else [])]
    if len(head) >= source.first:
        return None
    body = [*lines[source.first - 1 : source.last], f"{indentation}{'; '.join([*given, 'return ()'])}", ""]
    made = [*[""] * (source.first - 1 - len(head)), *head, *body]
    step = StepSource("\n".join(made), name, filename, source.line, source.first, source.last, source.function)
    arguments = [*outline.arguments, *outline.attributes]
    return RowsSource(step, arguments, outline.pattern, kept, bool(outline.heads or outline.tails))


def _value_source(text: str, filename: str, evaluation: Evaluation) -> StepSource:
    """The text of a function that returns an expression."""
    node = evaluation.node
    lines = [line.encode() for line in text.split("\n")]
    first, last = node.lineno, node.end_lineno or node.lineno
    part = lines[first - 1 : last]
    part[-1] = part[-1][: node.end_col_offset]
    part[0] = part[0][node.col_offset :]
    name = f"value_at_line_{first}"
    expression = b"\n".join(part).decode()
    head = f"def {name}({', '.join(evaluation.arguments)}):"
    body = [*[""] * (first - 2), head, f"    return ({expression},)", ""]
    return StepSource(
        "\n".join(body), name, filename, first, first, last, evaluation.function, (True,), is_value=True
    )  # fmt: skip


def _indentation(lines: Sequence[bytes], outline: Outline) -> str:
    """What is in front of the statements of a block; they may be on the line of their loop."""
    beginning = outline.block[0]
    line = lines[_first_line(beginning) - 1].decode()
    found = line[: len(line) - len(line.lstrip())]
    is_apart = not lines[_first_line(beginning) - 1][: beginning.col_offset].strip(b" \t\x0c@")
    return found if is_apart else found + "    "


def _segment(lines: Sequence[bytes], statement: ast.stmt, outline: Outline) -> list[str]:
    """The text of a statement, line by line, with arguments in place of attributes."""
    first, last = _first_line(statement), statement.end_lineno or statement.lineno
    start, end = statement.col_offset, statement.end_col_offset or 0
    stop, test = stop_name(statement, outline), getattr(statement, "value", None)
    if stop and test is not None:
        first, start = test.lineno, test.col_offset
    part = list(lines[first - 1 : last])
    inside = {id(node) for node in nodes_of(statement)}
    for argument, place in sorted(
        (
            (argument, place)
            for argument, places in outline.attributes.items()
            for place in places
            if id(place) in inside
        ),
        key=lambda pair: (pair[1].lineno, -pair[1].col_offset),
    ):
        line, after = part[place.lineno - first], place.end_col_offset or 0
        part[place.lineno - first] = line[: place.col_offset] + argument.encode() + line[after:]
        end += (len(argument) - (after - place.col_offset)) * (place.lineno == last)
    part[-1] = part[-1][:end]
    part[0] = part[0][start:]
    found = [line.decode() for line in part]
    if stop:
        is_negated = isinstance(test, ast.UnaryOp) and test.col_offset == test.operand.col_offset
        found[0] = f"{stop} = {'not ' if is_negated else ''}({found[0]}"
        found[-1] += ")"
    return found


def _first_line(statement: ast.stmt) -> int:
    lines: list[int] = [statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))]
    return min(lines)


# ---- 3: constants ---------------------------------------------------------------------------------------------


def _replaced(code: CodeType, sections: dict[str, Any]) -> CodeType:
    """Code with sections among its constants, and among those of functions in it."""
    changed: Callable[[Any], Any] = lambda constant: (  # noqa: E731 - used once
        _replaced(constant, sections)
        if isinstance(constant, CodeType)
        else sections.get(constant, constant)
        if isinstance(constant, str)
        else constant
    )
    constants = tuple(map(changed, code.co_consts))
    same = all(new is old for new, old in zip(constants, code.co_consts))
    return code if same else code.replace(co_consts=constants)


def _note_plain(code: CodeType, plain: CodeType) -> None:
    """Note for each function that has sections what its code was."""
    before: dict[tuple[str, int], list[CodeType]] = {}
    for one in _functions_of(plain):
        before.setdefault((one.co_name, one.co_firstlineno), []).append(one)
    for one in _functions_of(code):
        found = before.get((one.co_name, one.co_firstlineno), [])
        if len(found) == 1 and found[0].co_code != one.co_code:
            plain_codes[one] = found[0]


def _functions_of(code: CodeType) -> list[CodeType]:
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [*inner, *(further for one in inner for further in _functions_of(one))]
