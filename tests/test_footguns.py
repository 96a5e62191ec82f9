"""Every way a tracing JIT can surprise: each is right here, or an error that says where, why and what to write.

All traps of tests/programs/traps, which docs/traps.md lists, one by one; and with many variants: traced numbers that
are asked for their value, values that leak out of a trace, exceptions while tracing; the files test_footguns_memory.py
and test_footguns_arguments.py have the rest. The oracle is the undecorated step.
"""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import itertools
import math
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import (
    LeakError,
    MgjitError,
    TraceError,
)
from mgjit.tracing.surroundings import allowed
from tests.programs.traps.traps import DOCUMENT, Trap, document, fails, fails_by_default, is_refused, load
from tests.refusals import HERE, bits, refused

pytestmark = [
    pytest.mark.keeps_traced,  # steps that let values of their trace escape
]

PYPY = sys.implementation.name == "pypy"


@pytest.fixture
def w() -> Value:
    """A parameter of 2.0."""
    return Value(2.0)


# ---- the list ------------------------------------------------------------------------------------------

TRAPS = [pytest.param(trap, id=f"{chapter}: {trap.name}") for chapter, traps in load().items() for trap in traps]


@pytest.mark.usefixtures("only_thread")
@pytest.mark.parametrize("trap", TRAPS)
def test_00_traps(trap: Trap, tmp_path: Path) -> None:
    """With the decorator as without it, in every call; or an error or a warning that says what to write."""
    if "import numpy" in trap.code:
        pytest.importorskip("numpy")
    assert fails(trap, tmp_path) == ""


REFUSED = [trap for trap in TRAPS if is_refused(trap.values[0])]


@pytest.mark.parametrize("trap", REFUSED)
def test_00_traps_by_default(trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused goes on as plain Python, with one warning."""
    monkeypatch.delenv("MGJIT_REFUSE")
    if "import numpy" in trap.code:
        pytest.importorskip("numpy")
    assert fails_by_default(trap, tmp_path) == ""


def test_00_traps_of_the_document() -> None:
    """There are many, none twice; `python -m tests.programs.traps.traps --write` writes docs/traps.md."""
    names = [trap.name for traps in load().values() for trap in traps]
    assert len(names) == len(set(names)) >= 200
    assert DOCUMENT.read_text(encoding="utf-8") == document()


# ---- a traced number is asked for its value ------------------------------------------------------------


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("wrap", [lambda w, x: x, lambda w, x: w * x], ids=["number", "value"])
@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda x: list(itertools.takewhile(lambda k: k < x, [1, 2])), r"mgjit\.where"),
        (lambda x: sorted([x, 2.0 * x]), "choose or sort outside"),
        (lambda x: max([1, 2], key=lambda k: x * k), "choose or sort outside"),
        (lambda x: bool(x), r"mgjit\.where"),
        (lambda x: round(x, 2), "outside|as an argument"),
        (lambda x: math.hypot(x, 2.0), r"math\.sqrt\(x \* x"),
        (lambda x: complex(x), "function of math by a name"),
        (lambda x: [0.0 for _ in range(x)], r"mgjit\.take"),
        (lambda x: f"{x:.3f}", "Return it"),
        (lambda x: format(x), "Return it"),
    ],
)
def test_01_needs_a_real_number(
    w: Value, wrap: Callable[[Any, Any], Any], use: Callable[[Any], Any], instead: str
) -> None:
    """Anything that needs the number itself while tracing: a TraceError, also a TypeError."""
    refused(TraceError, instead, lambda x: use(wrap(w, x)), 2.5, value=w)


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda x: int(x), "as an argument"),
        (lambda x: round(x), "as an argument"),
        (lambda x: math.floor(x), "as an argument"),
        (lambda x: math.trunc(x), "as an argument"),
        (lambda x: math.sin(x), r"math\.sin\(x\.data\)"),
        (lambda x: x // 2, r"x\.data"),
        (lambda x: x % 2, r"x\.data"),
        (lambda x: 2 % x, r"x\.data"),
        (lambda x: divmod(x, 2), r"x\.data"),
    ],
)
def test_01b_has_no_derivative(w: Value, use: Callable[[Any], Any], instead: str) -> None:
    """Functions of numbers, given a Value: a TraceError; with its number it works."""
    refused(TraceError, instead, lambda x: use(w * x), 2.5, value=w)
    assert repr(mgjit.compile(lambda x: use((w * x).data))(2.5)) == repr(use((w * 2.5).data))


@pytest.mark.parametrize("use", [lambda x: 1.0 if x else 2.0, lambda x: x and 1.0, lambda x: not x, lambda x: float(x)])
def test_01a_the_truth_of_a_value(w: Value, use: Callable[[Any], Any]) -> None:
    """Undecorated, every Value is true, as any object; nobody means that, so it is refused."""
    refused(TraceError, r"mgjit\.where|function of math by a name", lambda x: use(w * x), 2.0, value=w)


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("statement", ["if", "while"])
def test_01c_statements_that_depend_on_a_number(w: Value, statement: str) -> None:
    """The error shows the test, and how to write it."""

    def with_if(x: Any) -> Any:
        for _ in range(2):
            if x * 2 > 3:
                break
        return w * x

    def with_while(x: Any) -> Any:
        while x * 2 > 3:
            x = x - 1
        return w * x

    function = {"if": with_if, "while": with_while}[statement]
    refused(TraceError, rf"`{statement} x \* 2 > 3`.*mgjit\.where", function, 2.0, value=w)


@pytest.mark.skipif(PYPY, reason="PyPy replaces a TypeError of __index__ by a TypeError of its own")
@pytest.mark.parametrize("wrap", [lambda w, x: x, lambda w, x: w * x], ids=["number", "value"])
def test_01b_as_a_list_index(w: Value, wrap: Callable[[Any, Any], Any]) -> None:
    """The table look-up is the way to write it."""
    refused(TraceError, r"mgjit\.take", lambda x: [1.0, 2.0, 3.0, 4.0, 5.0][wrap(w, x)], 2.0, value=w)


@pytest.mark.parametrize(
    "use", [lambda n: n & 1, lambda n: 1 << n, lambda n: n >> 1, lambda n: n | 1, lambda n: n ^ 1, lambda n: ~n]
)
def test_02_bit_operations(w: Value, use: Callable[[Any], Any]) -> None:
    """Integer arithmetic that float64 does not have is refused like `//`."""
    refused(TraceError, "outside", lambda n: use(n) * w, 2, value=w)


@pytest.mark.parametrize(
    "use", [lambda n: {1: 2.0, 2: 5.0}[n], lambda n: {1: 2.0}.get(n, 7.0), lambda n: n in {1, 2}, lambda n: {n: 1.0}[n]]
)
def test_03_as_a_key(w: Value, use: Callable[[Any], Any]) -> None:
    """A number that is looked for in a dict or set shapes the trace: a kernel for each of its values."""
    step = mgjit.compile(lambda n: use(n) * w, backend="python")
    for n in (1, 1, 2, 1, 2):
        try:
            wanted = (use(n) * w).data
        except KeyError:
            with pytest.raises(KeyError):
                step(n)
        else:
            assert step(n) == wanted
            assert step.stats.traces <= 2


def test_03a_a_float_as_a_key(w: Value) -> None:
    """There are too many floats for that: refused, not silently absent."""
    refused(TraceError, r"mgjit\.take|static", lambda x: {1.5: 2.0}[x] * w, 1.5, value=w)


def test_03b_lengths_and_ranges(w: Value) -> None:
    """`[1.0] * n` and `range(n)` need the integer n: the step is traced for each; a float is refused."""
    for use in (lambda n: sum([1.0] * n) * w, lambda n: sum(w for _ in range(n)), lambda n: w * len("ab" * n)):
        step = mgjit.compile(use)
        assert [bits(step(n)) for n in (2, 3, 2)] == [bits(use(n)) for n in (2, 3, 2)]
        assert step.stats.traces == 2
    refused(TraceError, r"mgjit\.take|static", lambda n: sum([1.0] * n) * w, 2.0, value=w)


def test_04_comparison_results_are_numbers(w: Value) -> None:
    """A comparison is 1.0 or 0.0 and may be returned or computed with."""
    step = mgjit.compile(lambda x: (x > 1, (x <= 1) * w, x == 2, x != 2))
    assert step(2.0) == (1.0, 0.0, 1.0, 0.0)
    assert step(1.0) == (0.0, 2.0, 0.0, 1.0)


def test_05_identity_of_values_stays(w: Value) -> None:
    """`==` of Values is identity inside a step as outside of it: they can be dictionary keys."""

    def plain(x: Any) -> Any:
        loss = w * x
        return {w: 1.0, loss: 2.0}[loss] * x + (loss == w) + (loss == loss)

    assert mgjit.compile(plain)(3.0) == plain(3.0) == 7.0


def test_06_length_of_a_number(w: Value) -> None:
    """Iterating over a number or asking its length fails as it does undecorated: TypeError."""
    for use in (len, iter, list):
        with pytest.raises(TypeError):
            mgjit.compile(lambda x, use=use: use(x))(2.0)


# ---- leaks ------------------------------------------------------------


class Kept:
    """Where a careless step leaves its values."""

    item: Any = None


LEAKED: Any = None
COUNTED: Any


def _leaks(w: Value) -> Iterator[Any]:
    """Traced things that a thread keeps in tuples, where nothing leads: said, and not undone."""
    kept: list[Any] = []
    given, taken = queue.SimpleQueue[Any](), queue.SimpleQueue[Any]()

    def keep() -> None:
        for _ in range(5):
            kept.append((given.get(),))
            taken.put(None)

    def step(x: float) -> Any:
        first = w * x
        for thing in (first, x, first.data, w.data, w.grad):
            given.put(thing)
            taken.get()
        return first * x

    threading.Thread(target=keep, daemon=True).start()
    with pytest.raises(LeakError, match="a tuple"):
        mgjit.compile(step)(3.0)
    yield from (thing for (thing,) in kept)


def _into_a_list(keep: Any, thing: Any) -> None:
    keep["list"].append(thing)


def _into_an_attribute(keep: Any, thing: Any) -> None:
    keep["object"].item = thing


def _into_a_list_of_lists(keep: Any, thing: Any) -> None:
    keep["list"].append([thing])


@pytest.mark.parametrize(
    ("keep", "make"),
    [
        (_into_a_list, lambda w, x: w * x),
        (_into_a_list_of_lists, lambda w, x: w * x),
        (_into_an_attribute, lambda w, x: w * x),
    ],
)
def test_29_leaks_are_reported(w: Value, make: Callable[[Any, Any], Any], keep: Callable[[Any, Any], None]) -> None:
    """At once, with the name of where it was left; and nothing is left there."""
    place = {"list": [], "object": Kept()}
    place["object"].item = None  # type: ignore[attr-defined]

    def step(x: Any) -> Any:
        keep(place, make(w, x))
        return w * x

    refused(LeakError, r"place\b|Kept\.item", step, 1.0, value=w)
    assert place["list"] == []
    assert place["object"].item is None  # type: ignore[attr-defined]
    assert set(place) == {"list", "object"}


@pytest.mark.filterwarnings("ignore::mgjit.errors.SideEffectWarning")
@pytest.mark.parametrize("keep", [_into_a_list, _into_a_list_of_lists])
def test_29a_numbers_are_kept_by_plain_python(keep: Callable[[Any, Any], None]) -> None:
    """A history of numbers that grows is as without mgjit."""

    def make() -> tuple[Any, dict[str, Any]]:
        place: dict[str, Any] = {"list": []}

        def step(x: Any) -> Any:
            keep(place, x * 2.0)
            return x * len(place["list"])

        return step, place

    (mine, my_place), (theirs, their_place) = make(), make()
    step = mgjit.compile(theirs)
    for number in range(5):
        assert step(0.5 * number) == mine(0.5 * number)
        assert their_place == my_place


def test_29b_leaks_in_variables_are_reported(w: Value) -> None:
    """Globals, and variables of enclosing functions."""
    kept_here: Any = None

    def into_a_global(x: Any) -> Any:
        global LEAKED
        LEAKED = w * x
        return w * x

    def into_a_variable(x: Any) -> Any:
        nonlocal kept_here
        kept_here = w * x
        return kept_here * x

    refused(LeakError, "the variable LEAKED", into_a_global, 1.0, value=w)
    refused(LeakError, "the variable kept_here", into_a_variable, 1.0, value=w)
    assert LEAKED is None
    assert kept_here is None


def test_29c_what_is_new_is_there_in_the_next_call(w: Value) -> None:
    """Attributes, entries, globals and attributes of functions that the step makes, and then changes."""

    def made(decorate: Callable[[Any], Any]) -> tuple[Any, Callable[[], Any]]:
        thing: Any = Kept()
        state: dict[str, float] = {}

        def helper() -> None:
            """Has an attribute after the first call."""

        def step(x: float) -> Any:
            global COUNTED
            if not hasattr(thing, "m"):
                thing.m = 0.0
            thing.m = 0.9 * thing.m + x
            state["v"] = state.get("v", 0.0) * 0.5 + x
            state.setdefault("u", 1.0)
            state["u"] += x
            helper.last = thing.m  # type: ignore[attr-defined]
            COUNTED = thing.m * 2.0
            return w.data * x + thing.m

        return decorate(step), lambda: (thing.m, state, helper.last, COUNTED)  # type: ignore[attr-defined]

    plain, plain_state = made(lambda step: step)
    expected = [(plain(x), repr(plain_state())) for x in (1.0, 2.0, 0.5, -3.0)]
    del globals()["COUNTED"]
    step, state = made(mgjit.compile)
    assert [(step(x), repr(state())) for x in (1.0, 2.0, 0.5, -3.0)] == expected
    assert step.stats.plain_calls == 1
    del globals()["COUNTED"]


@pytest.fixture
def queues_are_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put into a queue is looked at no more than what is written to a file, so that it can escape."""
    monkeypatch.setitem(allowed._EFFECTS, "_queue.SimpleQueue", frozenset({"put", "get"}))


@pytest.mark.skipif(PYPY, reason="PyPy counts no references")
@pytest.mark.parametrize(
    "use",
    [
        lambda leaked, w: leaked + 1.0, lambda leaked, w: 1.0 - leaked, lambda leaked, w: -leaked,
        lambda leaked, w: leaked < 1.0, lambda leaked, w: mgjit.maximum(leaked, 1.0), lambda leaked, w: leaked * w,
        lambda leaked, w: w * leaked, lambda leaked, w: float(leaked), lambda leaked, w: setattr(w, "data", leaked),
        lambda leaked, w: mgjit.state([leaked]), lambda leaked, w: f"{leaked:.2f}", lambda leaked, w: mgjit.exp(leaked),
        lambda leaked, w: mgjit.where(leaked, 1.0, 2.0), lambda leaked, w: mgjit.where(True, leaked, 2.0),
    ],
    ids=["add", "rsub", "neg", "less", "maximum", "mul", "rmul", "float", "data", "state", "format", "exp", "where",
         "where chosen"],
)  # fmt: skip
@pytest.mark.usefixtures("queues_are_effects")
def test_30_leaked_then_used_undecorated(w: Value, use: Callable[[Any, Value], Any]) -> None:
    """What a trace left behind refuses to be used, with the line that uses it."""
    for leaked in _leaks(w):
        with pytest.raises((MgjitError, TypeError) if PYPY else MgjitError) as caught:
            use(leaked, w)  # PyPy's buffers replace a TypeError of __float__ by one of their own
        assert HERE.search(str(caught.value)) or not isinstance(caught.value, MgjitError)
    assert w.data == 2.0


@pytest.mark.skipif(PYPY, reason="PyPy counts no references")
@pytest.mark.parametrize(
    "step",
    [
        lambda leaked, w, x: leaked * x, lambda leaked, w, x: x - leaked, lambda leaked, w, x: w * leaked,
        lambda leaked, w, x: w + leaked * 1.0, lambda leaked, w, x: mgjit.where(x, leaked, w),
        lambda leaked, w, x: (w * x, leaked), lambda leaked, w, x: setattr(w, "data", leaked),
    ],
    ids=["left", "right", "with Value", "twice", "where", "returned", "stored"],
)  # fmt: skip
@pytest.mark.usefixtures("queues_are_effects")
def test_31_leaked_then_used_in_another_trace(w: Value, step: Callable[[Any, Value, Any], Any]) -> None:
    """The same inside another step: a LeakError, and the parameter is as it was."""
    for leaked in _leaks(w):
        refused(LeakError, "earlier trace|lives only", lambda x, leaked=leaked: step(leaked, w, x), 1.0, value=w)


@pytest.mark.skipif(PYPY, reason="PyPy counts no references")
@pytest.mark.usefixtures("queues_are_effects")
def test_32_leaked_as_argument(w: Value) -> None:
    """A leaked value passed as an argument, alone or in a list."""
    for leaked in _leaks(w):
        with pytest.raises(MgjitError) as caught:
            mgjit.compile(lambda x: w * x)(leaked)
        assert HERE.search(str(caught.value))
        with pytest.raises(MgjitError):
            mgjit.compile(lambda x: w * x[0])([leaked])


@pytest.mark.skipif(PYPY, reason="PyPy counts no references")
@pytest.mark.usefixtures("queues_are_effects")
def test_33_leaked_number_of_a_leaked_value(w: Value) -> None:
    """`.data` and `.grad` of a leaked Value are where the mistake is noticed."""
    leaked = next(_leaks(w))
    for name in ("data", "grad"):
        with pytest.raises(LeakError) as caught:
            getattr(leaked, name)
        assert HERE.search(str(caught.value))


@pytest.mark.skipif(PYPY, reason="PyPy counts no references")
@pytest.mark.usefixtures("queues_are_effects")
def test_34_values_made_in_a_step(w: Value) -> None:
    """A Value made by a step is a leaf of that step: right inside, refused outside and in other steps."""

    def plain(x: float) -> Any:
        made = Value(1.5)
        y = made * w * x
        y.backward()
        made.data += 1.0
        return made * w, made.grad

    class Kept(tuple):  # type: ignore[type-arg]
        """What an error names."""

    def keeping(x: float) -> Any:
        inbox.put(Kept((Value(x),)))
        outbox.get()
        return w * x

    assert [bits(part) for part in mgjit.compile(plain)(2.0)] == [bits(part) for part in plain(2.0)]
    inbox, outbox, kept = queue.SimpleQueue[Any](), queue.SimpleQueue[Any](), []
    threading.Thread(target=lambda: (kept.append(inbox.get()), outbox.put(None)), daemon=True).start()
    mgjit.compile(keeping)(1.0)  # a Value is no traced object, and what it was made of is gone
    leaked = kept[0][0]
    for use in (lambda: leaked.data, lambda: leaked * 2.0, lambda: w * leaked, lambda: -leaked, lambda: leaked.relu()):
        with pytest.raises(LeakError) as caught:
            use()
        assert HERE.search(str(caught.value))
    refused(LeakError, "lives only|earlier trace", lambda x: leaked * x, 1.0, value=w)
    with pytest.raises(LeakError):
        mgjit.compile(lambda x: w * x)(leaked)


def test_35_results_that_cannot_be_numbers(w: Value) -> None:
    """A set, a generator or a foreign object around traced values is refused, not returned with dead values inside."""
    for wrap in (lambda y: {y}, lambda y: (z for z in [y]), lambda y: lambda: y):
        refused(TraceError, "return|result", lambda x, wrap=wrap: wrap(w * x), 1.0, value=w)


def test_36_a_value_computed_before_the_step(w: Value) -> None:
    """An interior node from outside would lose its history: refused."""
    y = w * 2.0
    refused(TraceError, "inside the step", lambda x: y * x, 1.0, value=w)


# ---- exceptions while tracing ------------------------------------------------------------


class MyError(Exception):
    """The user's own."""


def test_50_exception_of_the_user(w: Value) -> None:
    """It passes through unchanged, and nothing that the step did before it is visible."""
    state = mgjit.state([1.0])
    v = Value(3.0)
    v.grad = 0.25

    def step(x: float) -> Any:
        w.data = w.data * 2.0
        state[0] = 9.0
        v.grad = 1.0
        (w * x * v).backward()
        raise MyError("mine")

    compiled = mgjit.compile(step)
    for _ in range(2):
        with pytest.raises(MyError) as caught:
            compiled(1.0)
        assert caught.value.args == ("mine",)
    assert (w.data, w.grad, v.data, v.grad, state[0]) == (2.0, 0.0, 3.0, 0.25, 1.0)
    assert (compiled.stats.traces, compiled.stats.calls) == (0, 0)
    loss = w * v  # the engine is itself again
    loss.backward()
    assert (loss.data, w.grad) == (6.0, 3.0)
    assert sum([0.5, 0.25]) == 0.75


def test_51_exceptions_that_are_not_errors(w: Value) -> None:
    """KeyboardInterrupt in the middle of a trace restores everything, too."""

    def step(x: float) -> Any:
        w.data = 0.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mgjit.compile(step)(1.0)
    assert (w * 2.0).data == 4.0


def test_52_recursion_into_a_compiled_step(w: Value) -> None:
    """A compiled step that is called in another is part of that one's trace."""
    inner = mgjit.compile(lambda x: w * x)
    outer = mgjit.compile(lambda x: inner(x) + inner(x + 1.0))
    assert outer(2.0) == 10.0
    assert inner(2.0) == 4.0
    assert (inner.stats.traces, outer.stats.traces) == (1, 1)


def test_53_phases_inside_of_a_trace(w: Value) -> None:
    """A phase runs a kernel: it cannot be part of a trace, and the message says so."""
    inner = mgjit.compile(lambda x: w * x)
    refused(MgjitError, r"\.forward", lambda x: inner.forward(x), 2.0, value=w)


def test_54_the_engine_is_restored(w: Value) -> None:
    """After a trace every function of the engine works on Values as before: nothing stays instrumented."""
    before = {name: dict(vars(cls)) for name, cls in (("Value", Value), ("State", mgjit.State))}
    mgjit.compile(lambda x: mgjit.where(x > 0.0, w, 2.0 * w))(1.0)
    assert {name: dict(vars(cls)) for name, cls in (("Value", Value), ("State", mgjit.State))} == before
    y = mgjit.where(w > 0.0, w * 3.0, w)
    y.backward()
    assert (y.data, w.grad) == (6.0, 3.0)
