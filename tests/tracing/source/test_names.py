"""Functions without text: only what they call changes."""

from __future__ import annotations

import builtins
import math
import time
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.errors import BackendWarning
from mgjit.tracing.source.names import renamed
from mgjit.tracing.source.text import text_of

SOURCE = """
import math, time
from math import exp as e, log
class Node:
    def __init__(self, data):
        self.data = data
    def tanh(self):
        return Node(math.tanh(self.data))
def step(x):
    several = [max(y, 0.5) for y in (x, -x)] + [f(x) for f in (lambda z: math.sqrt(z * z), e)]
    return sum(several) + Node(x).tanh().data + math.pi + min(x, 2) + log(1 + x * x) + round(1.5)
def clock(x):
    return x + time.time()
def attribute(math):
    return math.tanh(0.5)
def both(x):
    return (math, x.math, math.tanh(x))
def a_type(x):
    return issubclass(x, float) and x
"""


@pytest.fixture
def made() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "made"}
    exec(SOURCE, names)  # noqa: S102
    sums = " + ".join(f"a{k}" for k in range(300))
    names["many"] = eval(f"lambda x: {sums} + max(x, 1.0)")  # noqa: S307
    return names


def test_01_as_python(made: dict[str, Any]) -> None:
    """From one trace; the functions themselves stay."""
    step, before = made["step"], made["step"].__code__
    assert text_of(step) is None
    compiled = mgjit.compile(step)
    for x in (0.5, -1.5, 3.0, 0.0):
        assert compiled(x).hex() == step(x).hex()
    assert compiled.stats.traces == 1
    assert step.__code__ is before


def test_02_the_clock_is_refused(made: dict[str, Any]) -> None:
    """The call runs as plain Python."""
    with pytest.warns(BackendWarning, match=r"clock\(\) uses time, and its source is not there"):
        mgjit.compile(made["clock"])(1.0)


def all_names(code: CodeType) -> set[str]:
    inner = (all_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


@pytest.mark.parametrize("name", ["attribute", "a_type", "many"])
def test_03_what_stays(made: dict[str, Any], name: str) -> None:
    """Parameters, types, and functions with too many names."""
    function: FunctionType = made[name]
    assert renamed(function.__code__, {**vars(builtins), **made}) is function.__code__


def test_04_one_name_used_in_two_ways(made: dict[str, Any]) -> None:
    """A module as a value stays the module, and attributes of that name stay attributes."""
    both = made["both"]
    code = renamed(both.__code__, {**vars(builtins), **made})
    assert code is not both.__code__
    names = {"__mgjit_math__": SimpleNamespace(tanh=lambda x: "replaced"), "math": math}
    assert FunctionType(code, names)(SimpleNamespace(math=7)) == (math, 7, "replaced")


def test_05_own_functions_of_the_same_name(made: dict[str, Any]) -> None:
    """Names count by what they mean."""
    code = made["step"].__code__
    ours = {"__mgjit_max__", "__mgjit_math_log__", "__mgjit_math__"}
    assert ours <= all_names(renamed(code, {**vars(builtins), **made}))
    own = {**vars(builtins), **made, "max": lambda *_: 0.0, "math": made["Node"](0.0), "log": abs, "e": abs}
    assert not ours & all_names(renamed(code, own))


def test_06_stand_ins_have_everything(made: dict[str, Any]) -> None:
    from mgjit.tracing.source.names import STAND_INS

    for module in (math, time):
        assert vars(STAND_INS[f"__mgjit_{module.__name__}__"]).keys() == vars(module).keys()


def test_the_type_of_what_is_traced_is_the_one_in_python() -> None:
    """Wherever `type` is called with one argument; elsewhere it is the class."""
    namespace: dict[str, Any] = {}
    text = "(type(x) is float, type(x * [2.0][0]).__name__, {float: 1}[type(x)], isinstance(float, type), type)"
    exec(f"def step(x):\n    return x * 2.0, {text}", namespace)  # noqa: S102
    compiled = mgjit.compile(namespace["step"], background=False, verify="never")
    for x in (0.5, 1.5):
        assert compiled(x) == namespace["step"](x) == (2.0 * x, (True, "float", 1, True, type))
