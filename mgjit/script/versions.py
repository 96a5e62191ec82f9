"""Two versions of a loop: one that tries a step, and the one that was there.

    for x, y in data:                 if SECTION.on and SECTION.enters():
        loss = f(x, y)                    SECTION.begins()
        loss.backward()                   for x, y in SECTION.entered(0, data):
        print(loss.data)                      for loss, in SECTION.called(x, y) if SECTION.on and ... else ():
                                                  break
                                              else:
                                                  loss = f(x, y)
                                                  loss.backward()
                                              print(loss.data)
                                          SECTION.left()
                                      else:
                                          for x, y in data:
                                              loss = f(x, y)
                                              loss.backward()
                                              print(loss.data)

1. The statements of the step stay where they are, as the `else` of a loop that takes the result of a call that has been
   made, and nothing where none has been made.  So whatever they raise has its own line and frame.
2. A loop whose section is given up (`on` is false) is the one that was there, from its next beginning on, and before
   that but for a look at `on` in each iteration.  In between, most iterations only ask `due()` (counted.py).
3. An expression that evaluates a model becomes one that tries a step if `on`, and itself otherwise.
4. A section is a constant, for which a text stands until the code has been compiled (`placeholder`).
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterable, Sequence

from .names import SCOPES, children, names_in, walk
from .slices import taken_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .evaluations import Evaluation
    from .find import Candidate
    from .interface import Outline

#: Functions whose results have as many elements as their first arguments.
_PASSING_ON = frozenset({"enumerate", "zip", "tqdm", "reversed", "sorted", "iter", "list", "tuple"})
#: The fields of a statement that are blocks, or hold them.
_BLOCKS, _HOLDERS = ("body", "orelse", "finalbody"), ("handlers", "cases")


def placeholder(number: int) -> str:
    """The constant that stands for a section until the code has been compiled."""
    return f"<section {number} of mgjit>"


def try_steps(candidate: Candidate, outlines: dict[int, Outline], instead: dict[int, ast.stmt]) -> None:
    """Let a loop try its steps; those in it, which come before, try theirs in both of its versions.

    Args:
        outlines: of the steps, by the numbers of their sections.
        instead: gets what stands in place of the loop, by its identity.
    """
    loop: ast.stmt = candidate.loop
    plain = _copied(loop)
    for number, outline in outlines.items():
        _replace(outline, number, instead)
    levels = [one for one in (loop, *candidate.around) if isinstance(one, ast.For)]
    for number in outlines:
        for level, around in enumerate(levels):
            around.iter = _noting(around.iter, number, level)
    for number, outline in outlines.items():
        if outline.pattern is not None and isinstance(loop, ast.For):
            over = ast.Call(_method(number, "over"), [loop.iter], [])
            _locate(over, loop.iter, {id(loop.iter)})
            loop.iter = over
    for number, outline in outlines.items():
        if outline.without_last and isinstance(loop, ast.For):
            lasting = ast.Call(_method(number, "lasting"), [loop.iter], [])
            _locate(lasting, loop.iter, {id(loop.iter)})
            loop.iter = lasting
    begun: list[ast.stmt] = [ast.Expr(ast.Call(_method(number, "begins"), [], [])) for number in outlines]
    ended: list[ast.stmt] = [ast.Expr(ast.Call(_method(number, "left"), [], [])) for number in outlines]
    place = candidate.block.index(loop)
    made: list[ast.stmt] = [*begun, loop, *ended]
    if not _declares(loop):
        tests: list[ast.expr] = [_both(_method(number, "on"), _asked(number, "enters")) for number in outlines]
        made = [ast.If(tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests), made, [plain])]
        instead[id(loop)] = made[0]
    for one in made:
        _locate(one, loop, {id(loop), id(plain)})
    candidate.block[place : place + 1] = made


def try_values(tree: ast.Module, found: Sequence[Evaluation], first: int) -> None:
    """Let expressions try their steps; the section of the first one has this number."""
    numbers = {id(evaluation.node): first + k for k, evaluation in enumerate(found)}

    class Replaced(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return _tried(node, numbers[id(node)], found) if id(node) in numbers else self.generic_visit(node)

    def _tried(node: ast.AST, number: int, found: Sequence[Evaluation]) -> ast.AST:
        assert isinstance(node, ast.expr)
        arguments: list[ast.expr] = [ast.Name(name, ast.Load()) for name in found[number - first].arguments]
        call = ast.Call(_method(number, "called"), arguments, [])
        attempt = ast.IfExp(_method(number, "ready"), call, ast.Tuple([], ast.Load()))
        plain = ast.Call(_method(number, "noted"), [node], [])
        tried: ast.expr = ast.BoolOp(ast.Or(), [attempt, ast.Tuple([ast.Tuple([plain], ast.Load())], ast.Load())])
        for _ in range(2):
            tried = ast.Subscript(tried, ast.Constant(0), ast.Load())
        tried = ast.IfExp(_method(number, "on"), tried, node)
        _locate(tried, node, {id(node)})
        return tried

    if numbers:
        Replaced().visit(tree)
    for number, evaluation in enumerate(found, first):
        if not isinstance(evaluation.statement, (ast.Return, ast.Raise)) and evaluation.statement in evaluation.block:
            ended = ast.Expr(ast.Call(_method(number, "left"), [], []))
            _locate(ended, evaluation.statement, set())
            evaluation.block.insert(evaluation.block.index(evaluation.statement) + 1, ended)


# ---- the parts ------------------------------------------------------------------------------------------------


def _method(number: int, name: str) -> ast.expr:
    return ast.Attribute(ast.Constant(placeholder(number)), name, ast.Load())


def _asked(number: int, name: str) -> ast.expr:
    return ast.Call(_method(number, name), [], [])


def _both(*tests: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.And(), list(tests))


def _instead(like: ast.expr, number: int) -> ast.expr:
    """A copy of `name.attribute`, or what takes a slice, or bits."""
    if not isinstance(like, ast.Attribute):
        return taken_by(functools.partial(_method, number), like)
    assert isinstance(like.value, ast.Name)
    return ast.copy_location(
        ast.Attribute(ast.copy_location(ast.Name(like.value.id, ast.Load()), like.value), like.attr, ast.Load()), like
    )


def _replace(outline: Outline, number: int, instead: dict[int, ast.stmt]) -> None:
    """Let a block try the step in place of its statements; instead of some loops among them there is something else."""
    block, first = outline.block, outline.statements[0]
    own = [one for one in outline.statements if not stop_name(one, outline)]
    start, end = block.index(instead.get(id(first), first)), block.index(instead.get(id(own[-1]), own[-1])) + 1
    plain = block[start:end]
    arguments: list[ast.expr] = [ast.Name(name, ast.Load()) for name in outline.arguments]
    arguments += [_instead(places[0], number) for places in outline.attributes.values()]
    if outline.pattern is not None and (outline.heads or outline.tails):
        loop = outline.candidate.loop
        arguments += [_test_of(loop, tests) for tests in (outline.heads, outline.tails)]
    call = ast.Call(_method(number, "called"), arguments, [])
    asks = [_method(number, "on"), _asked(number, "due"), _method(number, "ready")]
    test = _both(*asks, *([_method(number, "goes_on")] if outline.without_last else []))
    attempt = ast.IfExp(test, call, ast.Tuple([], ast.Load()))
    if outline.results:
        target: ast.expr = ast.Tuple([ast.Name(name, ast.Store()) for name in outline.results], ast.Store())
        tried: ast.stmt = ast.For(target, attempt, [*outline.moved, ast.Break()], plain, None)
    else:
        tried = ast.If(attempt, list(outline.moved) or [ast.Pass()], plain)
    _locate(tried, first, {id(one) for one in plain})
    block[start:end] = [tried]


def _test_of(loop: ast.stmt, tests: Sequence[ast.expr]) -> ast.expr:
    """A function of the variables of a loop: whether one of some tests is true.  It has all else by its defaults."""
    own = sorted(names_in([loop.target]).writes) if isinstance(loop, ast.For) else []
    others = sorted(names_in(tests).reads - set(own))
    value: ast.expr = (
        ast.BoolOp(ast.Or(), [copy.deepcopy(one) for one in tests])
        if len(tests) > 1
        else (copy.deepcopy(tests[0]) if tests else ast.Constant(False))
    )
    names = [ast.arg(name, None) for name in [*own, *others]]
    given: list[ast.expr] = [ast.Name(name, ast.Load()) for name in others]
    return ast.Lambda(ast.arguments([], names, None, [], [], None, given), value)


def stop_name(statement: ast.stmt, outline: Outline) -> str:
    """The name that a statement gives to a reason to stop; empty for others."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) and target.id in outline.stops else ""


def _noting(iterable: ast.expr, number: int, level: int) -> ast.expr:
    """Let a section see what a loop iterates over: `enumerate(data)` becomes `enumerate(SECTION.entered(0, data))`."""
    if isinstance(iterable, ast.Call) and getattr(iterable.func, "id", "") in _PASSING_ON and iterable.args:
        first, *others = iterable.args
        if not isinstance(first, ast.Starred):
            made = ast.Call(iterable.func, [_noting(first, number, level), *others], iterable.keywords)
            return ast.copy_location(made, iterable)
    begun = ast.Call(_method(number, "entered"), [ast.Constant(level), iterable], [])
    _locate(begun, iterable, {id(iterable)})
    return begun


def _copied(node: ast.stmt) -> ast.stmt:
    """A statement with blocks of its own, of the same expressions and simple statements."""
    made = copy.copy(node)
    for name in _BLOCKS:
        if hasattr(node, name) and not isinstance(node, SCOPES):
            setattr(made, name, [_copied(one) for one in getattr(node, name)])
    for name in _HOLDERS:
        if hasattr(node, name):
            setattr(made, name, [_holder(one) for one in getattr(node, name)])
    return made


def _holder(node: ast.AST) -> ast.AST:
    """An `except` or `case` with a block of its own."""
    made = copy.copy(node)
    made.body = [_copied(one) for one in made.body]  # type: ignore[attr-defined]
    return made


def _declares(loop: ast.stmt) -> bool:
    """Whether a loop says `global` or `nonlocal`, which a function may do but once."""
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in walk([loop]))


def _locate(node: ast.AST, like: ast.AST, kept: Iterable[int]) -> None:
    """Give a new node, and what is new in it, the place of another one.

    Args:
        kept: the identities of nodes that are not new.
    """
    if id(node) in kept:
        return
    if "lineno" in node._attributes and not hasattr(node, "lineno"):
        ast.copy_location(node, like)
    for child in children(node):
        _locate(child, like, kept)
