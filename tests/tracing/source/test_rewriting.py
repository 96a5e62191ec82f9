"""Rewritten functions: the same as before for everything that is not traced, selections for what is."""

# The functions under test are what they are for the sake of their syntax.
# ruff: noqa: E721, E731, S102

from __future__ import annotations

import importlib
import math
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.tracing.source.installed import with_captured_functions
from mgjit.tracing.source.rewriting import rewritten

SCALE = 3.0


def conditional(x: Any, y: Any) -> Any:
    return x if x > y else y * 2


def nested(x: Any, y: Any) -> Any:
    return (1 if x > 0 else 2) if y > 0 else (3 if x > 0 else 4)


def conjunction(x: Any, y: Any) -> Any:
    return (x > 0 and y > 0) * 1 + (x > y and x) * 10


def disjunction(x: Any, y: Any) -> Any:
    return (x > 0 or y) + (x or y or 7.0)


def negation(x: Any, y: Any) -> Any:
    return (not x > y) * 1 + (not x) * 2


def chain(x: Any, y: Any) -> Any:
    return (0 < x < y) * 1 + (-1 <= y <= 1 < x) * 2


def comprehension(x: Any, y: Any) -> Any:
    return [k if k > x else y for k in [0, 1, x]]


def local_function(x: Any, y: Any) -> Any:
    def inner(z: Any) -> Any:
        return z if z > y else SCALE

    return inner(x) + (lambda z: z if z > 0 else 0)(y)


def extremes(x: Any, y: Any) -> Any:
    return [max(x, y), min(x, y, 0.5), max([x, y]), min(k for k in (x, 1)), max(0, x), max(2, 3)]


def mathematics(x: Any, y: Any) -> Any:
    return [math.exp(x), math.tanh(y), math.sqrt(x * x), math.fabs(y), math.pi, float(x), math.isnan(x) * 1]


class Own:
    def __init__(self, number: Any) -> None:
        self.number = number

    def __float__(self) -> Any:
        return self.number * 2.0


def mapped(x: Any, y: Any) -> Any:
    return [*map(math.tanh, [x, y, 2.0]), *map(max, [x, y], [y, 1.0]), *map(float, [x, 3, Own(x)]), *map(abs, [x])]


def types(x: Any, y: Any) -> Any:
    return [isinstance(x, float), isinstance(y, (int, float)), type(x) is float, isinstance(x, int), type(x) == float]


def own_maximum(x: Any, y: Any) -> Any:
    max = lambda a, b: a + b
    return max(x, y)


PLAIN_NUMBERS = [
    (1.5, 2.5),
    (2.5, 1.5),
    (-1.0, 0.5),
    (0.0, -0.0),
    (0.0, 3.0),
    (math.nan, 1.0),
    (1.0, math.nan),
    (1.0, 1.0),
]
FUNCTIONS = [
    conditional, nested, conjunction, disjunction, negation, chain, comprehension, local_function, extremes,
    mathematics, mapped, types, own_maximum,
]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    a, b = float(a), float(b)
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_01_nothing_changes_for_plain_numbers(function: Callable[..., Any]) -> None:
    """Results, their types and their signs of zero."""
    for x, y in PLAIN_NUMBERS:
        expected = function(x, y)
        got = with_captured_functions([function], lambda x=x, y=y: function(x, y))
        assert repr(got) == repr(expected), (x, y)


@pytest.mark.parametrize("backend", ["auto", "python"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_02_traced_numbers_give_what_python_gives(function: Callable[..., Any], backend: str) -> None:
    """For all numbers, from one trace."""
    step = mgjit.compile(backend=backend)(function)
    for x, y in PLAIN_NUMBERS:
        assert same(step(x, y), function(x, y)), (x, y)
    assert step.stats.traces == 1


def elements(table: list[Any], k: Any) -> Any:
    return table[k] * 2 + table[-1]


def rows(table: list[list[Any]], k: Any) -> Any:
    return sum(table[k]) + table[0][k]


def assigned(table: list[Any], k: Any) -> Any:
    table = list(table)
    table[k] = 7.0
    table[k] += table[0]
    table[0] -= 1.0
    return table


def computed(table: list[Any], k: Any) -> Any:
    return [x * x for x in table][k]


@pytest.mark.parametrize("function", [elements, assigned, computed])
def test_03_elements_by_a_traced_index(function: Callable[..., Any]) -> None:
    """Read and assigned, of inputs and of computed numbers; out of range is an IndexError before anything runs."""
    step = mgjit.compile(function)
    table = [1.5, -2.0, 0.25]
    for k in (0, 1, 2, 1):
        assert step(table, k) == function(table, k)
    assert step.stats.traces == 1
    for k in (3, -1):
        with pytest.raises(mgjit.errors.IndexRangeError):
            step(table, k)
    assert step(table, 2) == function(table, 2)


def test_04_rows_by_a_traced_index() -> None:
    """A row is a list of the elements of that row."""
    step = mgjit.compile(rows)
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    assert [step(table, k) for k in (2, 0, 1)] == [rows(table, k) for k in (2, 0, 1)]


def generator(x: Any) -> Iterator[Any]:
    yield 1 if (yield x) else 2


def walrus(x: Any) -> Any:
    return y if (y := x) > 0 else (y := 5)


async def coroutine(x: Any) -> Any:
    return 1 if x else 2


def test_05_what_would_change_its_meaning_stays() -> None:
    """Yields, assignments in expressions and coroutines."""
    for function in (generator, coroutine):
        assert not [code for _, code in rewritten([function]) if code.co_flags != function.__code__.co_flags]
    assert with_captured_functions([walrus], lambda: [walrus(2), walrus(-2)]) == [2, 5]
    running = with_captured_functions([generator], lambda: generator(3))
    assert [next(running), running.send(0)] == [3, 2]


class Counter:
    """Methods with private names and super()."""

    def __init__(self) -> None:
        self.__count = 2

    def count(self, x: Any) -> Any:
        return self.__count if x > 0 else -self.__count


class Derived(Counter):
    def count(self, x: Any) -> Any:
        return super().count(x) if x < 10 else __class__.__name__  # type: ignore[name-defined]


def test_06_methods() -> None:
    """Private names, super() and __class__ mean what they did."""

    def count() -> list[Any]:
        assert Counter.count.__code__.co_freevars == ()
        return [Derived().count(1), Derived().count(-1), Derived().count(11)]

    assert with_captured_functions([Counter.count, Derived.count], count) == [2, -2, "Derived"]


def test_07_the_code_comes_back() -> None:
    """Also after an exception; closures, defaults and identity stay."""
    original = conditional.__code__

    def look() -> None:
        assert conditional.__code__ is not original
        assert conditional.__code__.co_firstlineno == original.co_firstlineno

    with_captured_functions([conditional], look)
    assert conditional.__code__ is original
    with pytest.raises(TypeError):
        with_captured_functions([conditional], lambda: conditional("text", 1))
    assert conditional.__code__ is original


def failing(x: Any) -> Any:
    first = x if x > 0 else 1
    return (
        first
        / 0 if x else 2
    )  # fmt: skip


def test_08_lines_of_exceptions() -> None:
    """A traceback of rewritten code points at the same line."""

    def line() -> int:
        try:
            failing(1)
        except ZeroDivisionError as error:
            frames = traceback.extract_tb(error.__traceback__)
            return [f.lineno or 0 for f in frames if f.filename == __file__][-1]
        raise AssertionError

    expected = line()
    assert abs(with_captured_functions([failing], line) - expected) <= 1


def test_09_source_that_is_not_the_functions() -> None:
    """Code from exec, or of a file that has changed since: stays as it is, and works."""
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return 1 if x > 0 else 2\n", namespace)
    assert rewritten([namespace["f"]]) == []
    assert with_captured_functions([namespace["f"]], lambda: namespace["f"](1)) == 1
    other = FunctionType(conditional.__code__.replace(co_names=("other",)), globals(), "conditional")
    assert rewritten([other]) == []


def test_10_nothing_to_change() -> None:
    """A function without any such syntax is not touched."""

    def simple(x: Any) -> Any:
        y = x * 2
        if isinstance(y, (int, float)) and callable(y) is False:
            return [y][0]
        return "text"[1:2]

    assert rewritten([simple]) == []


def test_11_one_function_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else is in the file may change how Python compiles it: imports in odd places, what is in the future."""
    text = '''
from __future__ import annotations

try:
    import math
except ImportError:
    math = None


def decorated(function): return function


class Number:
    @decorated
    def clipped(self, x: Missing) -> Missing:
        return math.exp(x) if x > 0 else """of
        two lines"""


def other(x):
    return 1 if x else 2
'''
    (tmp_path / "one_function_of_a_file.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("one_function_of_a_file")
    function = module.Number.clipped
    [(same, code)] = rewritten([function])
    assert same is function
    assert code.co_firstlineno == function.__code__.co_firstlineno
    assert "__mgjit__" in code.co_names
    for x in (0.5, -0.5):
        assert with_captured_functions([function], lambda x=x: function(None, x)) == function(None, x)


def test_12_mathematics_that_the_step_imports_itself() -> None:
    """Under its own or another name, whole or in parts."""

    def step(x: Any) -> Any:
        import math as mathematics
        from math import exp
        from math import sqrt as root

        return mathematics.tanh(x) + exp(x) * root(x) + mathematics.floor(x * mathematics.pi)

    compiled = mgjit.compile(step, background=False)
    assert [compiled(x) for x in (0.5, 1.5)] == [step(x) for x in (0.5, 1.5)]
    assert compiled.stats.calls == 2


@pytest.mark.skipif("config.getoption('assertmode') == 'plain'", reason="asserts are as they stand")
def test_asserts_that_pytest_has_rewritten() -> None:
    """What pytest calls for an `assert` is on the list of what a step may use: steps of test modules are compiled."""
    w, numbers = mgjit.Value(1.5), [2.0]

    @mgjit.compile(backend="python")
    def step(x: float) -> Any:
        assert len(numbers) == 1, "one number"
        assert isinstance(x, object)
        return w * x * numbers[0]

    assert "@pytest_ar" in globals()
    assert [step(x).data for x in (1.0, 2.0)] == [3.0, 6.0]
    assert step.stats.plain_calls == 0


def test_functions_without_source_that_call_nothing() -> None:
    """They are compiled, also where functions that no step may use lie about."""
    hooks, names = [time.monotonic], dict[str, Any]()
    exec("def half(x): return x * 0.5\ndef told(x): return x * hooks[0]()", names)
    names["hooks"] = hooks
    half, told = names["half"], names["told"]
    step = mgjit.compile(lambda x: half(x) * len(hooks), backend="python")
    assert [step(x) for x in (1.0, 3.0)] == [0.5, 1.5]
    assert step.stats.plain_calls == 0
    asking = mgjit.compile(lambda x: told(x) * len(hooks), backend="python")
    with pytest.warns(PlainWarning, match="source is not there"):
        assert asking(1.0) < asking(1.0)
