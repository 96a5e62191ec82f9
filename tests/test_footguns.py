"""Every way a tracing JIT can surprise: each is right here, or an error that says where, why and what to write.

The oracle is the undecorated step.  `refused` checks the three parts of a message: this file and line, a reason,
and that no parameter changed by a single bit.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from typing import Any, Callable, Iterator

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import (
    ArgumentError,
    ArgumentValueError,
    IndexRangeError,
    LeakError,
    MgjitError,
    RandomnessError,
    TraceError,
)

RATE = 0.5
HERE = re.compile(r"test_footguns\.py:\d+: ")


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def w() -> Value:
    return Value(2.0)


def bits(number: Any) -> bytes:
    number = float(getattr(number, "data", number))
    return b"nan" if number != number else struct.pack("<d", number)


def refused(
    error: "type[MgjitError]", why: str, function: "Callable[..., Any]", *arguments: Any, value: Value, **options: Any
) -> None:
    """`function` is refused with all three parts of a message; `value` is as it was and still works."""
    before = bits(value.data), bits(value.grad)
    step = mgjit.compile(**options)(function)
    for _ in range(2):  # a failed trace leaves nothing behind that makes the next one pass
        with pytest.raises(error, match=why) as caught:
            step(*arguments)
        assert HERE.search(str(caught.value)), str(caught.value)
    assert (bits(value.data), bits(value.grad)) == before
    assert mgjit.compile(lambda x: value * x)(3.0) == value.data * 3.0


# ---- a traced number is asked for its value ---------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda w, x: x, lambda w, x: w * x], ids=["number", "value"])
@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda x: 1.0 if x > 1 else 2.0, r"mgjit\.where"),
        (lambda x: 1.0 if x else 2.0, r"mgjit\.where"),
        (lambda x: x > 0 and x, r"mgjit\.where"),
        (lambda x: x < 0 or x, r"mgjit\.where"),
        (lambda x: not (x > 0), r"mgjit\.where"),
        (lambda x: 0 < x < 1, r"mgjit\.where"),
        (lambda x: list(itertools.takewhile(lambda k: k < x, [1, 2])), r"mgjit\.where"),
        (lambda x: max(x, 0.0), r"mgjit\.maximum"),
        (lambda x: min([x, 0.0]), r"mgjit\.minimum"),
        (lambda x: sorted([x, 2.0 * x]), r"mgjit\.where"),
        (lambda x: bool(x), r"mgjit\.where"),
        (lambda x: any([x > 0]), r"mgjit\.where"),
        (lambda x: int(x), "as an argument"),
        (lambda x: round(x), "as an argument"),
        (lambda x: math.floor(x), "as an argument"),
        (lambda x: math.trunc(x), "as an argument"),
        (lambda x: float(x), r"mgjit\.exp"),
        (lambda x: math.sin(x), r"mgjit\.exp"),
        (lambda x: math.isnan(x), r"mgjit\.exp"),
        (lambda x: complex(x), r"mgjit\.exp"),
        (lambda x: [0.0 for _ in range(x)], r"mgjit\.take"),
        (lambda x: [1.0, 2.0, 3.0, 4.0, 5.0][x], r"mgjit\.take"),
        (lambda x: [1.0] * x, r"mgjit\.take"),
        (lambda x: f"{x:.3f}", "Return it"),
        (lambda x: format(x), "Return it"),
        (lambda x: x // 2, "outside"),
        (lambda x: x % 2, "outside"),
        (lambda x: 2 % x, "outside"),
        (lambda x: divmod(x, 2), "outside"),
    ],
)
def test_01_needs_a_real_number(
    w: Value, wrap: "Callable[[Any, Any], Any]", use: "Callable[[Any], Any]", instead: str
) -> None:
    """Anything that needs the number itself while tracing: a TraceError, also a TypeError."""
    refused(TraceError, instead, lambda x: use(wrap(w, x)), 2, value=w)


@pytest.mark.parametrize(
    "use", [lambda n: n & 1, lambda n: 1 << n, lambda n: n >> 1, lambda n: n | 1, lambda n: n ^ 1, lambda n: ~n]
)
def test_02_bit_operations(w: Value, use: "Callable[[Any], Any]") -> None:
    """Integer arithmetic that float64 does not have is refused like `//`."""
    refused(TraceError, "outside", lambda n: use(n) * w, 2, value=w)


@pytest.mark.parametrize(
    "use", [lambda n: {1: 2.0, 2: 5.0}[n], lambda n: {1: 2.0}.get(n, 7.0), lambda n: n in {1, 2}, lambda n: {n: 1.0}[n]]
)
def test_03_as_a_key(w: Value, use: "Callable[[Any], Any]") -> None:
    """A run-time number in a dict or set would never be found: refused, not silently absent."""
    refused(TraceError, r"mgjit\.take|static", lambda n: use(n) * w, 2, value=w)


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


# ---- random numbers -----------------------------------------------------------------------------------------

GENERATOR = random.Random(3)


def _draw_from_system() -> float:
    return random.SystemRandom().random()


@pytest.mark.parametrize(
    "draw",
    [random.random, lambda: random.gauss(0.0, 1.0), lambda: random.choice([1.0, 2.0]), lambda: GENERATOR.random(),
     lambda: random.Random().random(), _draw_from_system],
    ids=["random", "gauss", "choice", "own generator", "new generator", "system"],
)  # fmt: skip
def test_10_random_numbers(w: Value, draw: "Callable[[], float]") -> None:
    """Drawn in the step they would be the same in all calls: an error, whichever generator they come from."""

    def step(x: float) -> Any:
        return w * x * draw()

    refused(RandomnessError, "outside of the step", step, 1.0, value=w)


def test_11_numpy_random(w: Value) -> None:
    """The same for numpy's generators, old and new."""
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(1)
    for draw in (numpy.random.rand, generator.random):
        refused(RandomnessError, "outside of the step", lambda x, d=draw: w * x * d(), 1.0, value=w)


# ---- captured numbers and objects ----------------------------------------------------------------------------


def test_20_global_changed(w: Value) -> None:
    """A global learning rate that is assigned is seen, and the report says what changed."""
    global RATE

    def step(x: float) -> Any:
        return w * x * RATE

    compiled = mgjit.compile(step)
    try:
        assert compiled(3.0) == 3.0
        RATE = 2.0
        assert compiled(3.0) == 12.0
        assert "RATE" in compiled.stats.retraces[0]
        RATE = -0.0
        assert bits(compiled(3.0)) == bits(-0.0)
    finally:
        RATE = 0.5
    assert compiled(3.0) == 3.0


def test_21_closure_rebound(w: Value) -> None:
    """A closure variable that is assigned is seen, number or object."""
    rate, model = 0.5, nn.Neuron(2, nonlin=False)

    @mgjit.compile
    def step(x: "list[float]") -> Any:
        return model(x) * rate

    x = [1.0, 2.0]
    assert step(x) == (model(x) * rate).data
    rate = 4.0
    assert step(x) == (model(x) * rate).data
    model = nn.Neuron(2, nonlin=False, generator=random.Random(8))
    assert step(x) == (model(x) * rate).data
    assert ["rate" in step.stats.retraces[0], "model" in step.stats.retraces[1]] == [True, True]


def test_22_a_function_redefined(w: Value) -> None:
    """A helper that is defined again, as in a notebook, is seen."""

    def helper(x: Any) -> Any:
        return x * 2.0

    step = mgjit.compile(lambda x: helper(w * x))
    assert step(1.0) == 4.0

    def helper(x: Any) -> Any:  # noqa: F811
        return x * 3.0

    assert step(1.0) == 6.0
    assert "helper" in step.stats.retraces[0]


def test_23_a_step_that_counts_its_calls(w: Value) -> None:
    """A captured number that the step itself changes: traced at every call, and right."""
    calls = 0

    @mgjit.compile
    def step(x: float) -> Any:
        nonlocal calls
        calls += 1
        return w * x * calls

    assert [float(step(1.0)) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]
    assert all("calls" in reason for reason in step.stats.retraces)


class Settings:
    """An object with a number that steps read."""

    rate = 0.5


def test_24_number_in_a_captured_container(w: Value) -> None:
    """A number in a captured dict, list or object is seen when it changes, or refused; never silently old."""
    table, items, holder = {"rate": 0.5}, [0.5], Settings()
    steps: list[tuple[str, Callable[[float], Any], Callable[[], None]]] = [
        ("dict", lambda x: w * x * table["rate"], lambda: table.update(rate=4.0)),
        ("list", lambda x: w * x * items[0], lambda: items.__setitem__(0, 4.0)),
        ("attribute", lambda x: w * x * holder.rate, lambda: setattr(holder, "rate", 4.0)),
        ("class", lambda x: w * x * Settings.rate, lambda: setattr(Settings, "rate", 4.0)),
    ]
    stale = []
    for name, plain, change in steps:
        step = mgjit.compile(plain)
        step(1.0)
        try:
            change()
            if step(1.0) != plain(1.0).data:
                stale.append(name)
        finally:
            Settings.rate = 0.5
    assert stale == []


def test_25_number_of_self(w: Value) -> None:
    """`self.rate` of a method is seen when it changes."""

    class Trainer:
        def __init__(self) -> None:
            self.rate = 0.5

        @mgjit.compile
        def step(self, x: float) -> Any:
            return w * x * self.rate

    trainer = Trainer()
    assert trainer.step(1.0) == 1.0
    trainer.rate = 4.0
    assert trainer.step(1.0) == 8.0


def test_26_parameter_replaced_in_a_model() -> None:
    """A Value that takes the place of another in a captured model is the one that is used."""
    model = nn.Neuron(2, nonlin=False)
    step = mgjit.compile(lambda x: model(x))
    step([1.0, 2.0])
    model.w[0] = Value(10.0)
    assert step([1.0, 2.0]) == model([1.0, 2.0]).data


def test_27_default_arguments(w: Value) -> None:
    """A default is an argument like any other: a run-time input."""

    def plain(x: float, rate: float = 0.5) -> Any:
        return w * x * rate

    step = mgjit.compile(plain)
    assert [float(step(1.0)), float(step(1.0, 2.0)), float(step(1.0, rate=3.0))] == [1.0, 4.0, 6.0]
    assert step.stats.traces == 1


# ---- leaks ----------------------------------------------------------------------------------------------------


class Kept:
    """Where a careless step leaves its values."""

    item: Any = None


LEAKED: Any = None


def _leaks(w: Value) -> "Iterator[Any]":
    """Traced things kept in a list, an attribute, a global and a closure."""
    global LEAKED
    kept: list[Any] = []
    kept_here: Any = None

    def step(x: float) -> Any:
        global LEAKED
        nonlocal kept_here
        kept.append(w * x)
        Kept.item = x
        LEAKED = kept[0].data
        kept_here = w.data
        kept.append(w.grad)
        return kept[0] * x

    mgjit.compile(step)(3.0)
    yield from (kept[0], Kept.item, LEAKED, kept_here, kept[1])


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
def test_30_leaked_then_used_undecorated(w: Value, use: "Callable[[Any, Value], Any]") -> None:
    """What a trace left behind refuses to be used, with the line that uses it."""
    for leaked in _leaks(w):
        with pytest.raises(MgjitError) as caught:
            use(leaked, w)
        assert HERE.search(str(caught.value))
    assert w.data == 2.0


@pytest.mark.parametrize(
    "step",
    [
        lambda leaked, w, x: leaked * x, lambda leaked, w, x: x - leaked, lambda leaked, w, x: w * leaked,
        lambda leaked, w, x: w + leaked * 1.0, lambda leaked, w, x: mgjit.where(x, leaked, w),
        lambda leaked, w, x: (w * x, leaked), lambda leaked, w, x: setattr(w, "data", leaked),
    ],
    ids=["left", "right", "with Value", "twice", "where", "returned", "stored"],
)  # fmt: skip
def test_31_leaked_then_used_in_another_trace(w: Value, step: "Callable[[Any, Value, Any], Any]") -> None:
    """The same inside another step: a LeakError, and the parameter is as it was."""
    for leaked in _leaks(w):
        refused(LeakError, "earlier trace|lives only", lambda x, leaked=leaked: step(leaked, w, x), 1.0, value=w)


def test_32_leaked_as_argument(w: Value) -> None:
    """A leaked value passed as an argument, alone or in a list."""
    for leaked in _leaks(w):
        with pytest.raises(MgjitError) as caught:
            mgjit.compile(lambda x: w * x)(leaked)
        assert HERE.search(str(caught.value))
        with pytest.raises(MgjitError):
            mgjit.compile(lambda x: w * x[0])([leaked])


def test_33_leaked_number_of_a_leaked_value(w: Value) -> None:
    """`.data` and `.grad` of a leaked Value are where the mistake is noticed."""
    leaked = next(_leaks(w))
    for name in ("data", "grad"):
        with pytest.raises(LeakError) as caught:
            getattr(leaked, name)
        assert HERE.search(str(caught.value))


def test_34_values_made_in_a_step(w: Value) -> None:
    """A Value made by a step is a leaf of that step: right inside, refused outside and in other steps."""
    made: list[Value] = []

    def plain(x: float) -> Any:
        made.append(Value(1.5))
        y = made[-1] * w * x
        y.backward()
        made[-1].data += 1.0
        return made[-1] * w, made[-1].grad

    expected = [bits(part) for part in plain(2.0)]
    made.clear()
    step = mgjit.compile(plain)
    assert [bits(part) for part in step(2.0)] == expected
    leaked = made[0]
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


# ---- memory ----------------------------------------------------------------------------------------------------


def both(
    make: "Callable[[], tuple[Callable[..., Any], list[Value]]]", *calls: "tuple[Any, ...]", **options: Any
) -> None:
    """Undecorated and compiled from equal beginnings: equal results, data and gradients after every call."""
    plain, plain_values = make()
    function, values = make()
    step = mgjit.compile(**options)(function)
    for arguments in calls:
        expected, got = plain(*arguments), step(*arguments)
        expected_parts = expected if isinstance(expected, tuple) else (expected,)
        got_parts = got if isinstance(got, tuple) else (got,)
        assert [bits(x) for x in got_parts] == [bits(x) for x in expected_parts]
        assert [bits(v.data) for v in values] == [bits(v.data) for v in plain_values]
        assert [bits(v.grad) for v in values] == [bits(v.grad) for v in plain_values]


BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


@BACKENDS
def test_40_aliasing(backend: str) -> None:
    """Numbers read before an assignment keep their old value, however often memory changes afterwards."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a, b = Value(1.25), Value(-2.5)

        def step(x: float) -> Any:
            old, old_grad = a.data, a.grad
            a.data = b.data
            b.data = old + x
            older = a.data
            (a * b * x).backward()
            a.data, b.data = b.data, a.data
            a.grad = old_grad + a.grad
            return old, older, a.data - old, b.grad

        return step, [a, b]

    both(make, (0.25,), (0.5,), (-1.0,), backend=backend)


@BACKENDS
def test_41_state_aliasing(backend: str) -> None:
    """The same for State elements."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        s, w = mgjit.state([1.0, 2.0, 3.0]), Value(0.5)

        def step(x: float) -> Any:
            first = s[0]
            s[0], s[1] = s[1], s[0] + x
            s[-1] = first * s[-1]
            return (w * s[0] + s[1] * s[2], first, *s)

        return step, [w]

    both(make, (0.25,), (3.0,), backend=backend)


@BACKENDS
def test_42_the_same_operand_twice(backend: str) -> None:
    """`a + a`, `a * a`, `a - a`: both operands get their gradient, in order."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a = Value(0.3)

        def step(x: float) -> Any:
            b = a * x
            loss = (a + a) * (b * b) + (b - b) + mgjit.maximum(b, b) + (b + b) * (a + b)
            loss.backward()
            return loss, b.grad

        return step, [a]

    both(make, (0.7,), (-1.1,), backend=backend)


@BACKENDS
def test_43_no_backward(backend: str) -> None:
    """A step without a backward pass leaves gradients alone."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a = Value(0.3)
        a.grad = 7.0
        return (lambda x: a * x + 1.0), [a]

    both(make, (0.7,), (1.0,), backend=backend)


@BACKENDS
def test_44_loss_independent_of_a_parameter(backend: str) -> None:
    """Its gradient is 0, also when zero_grad is what sets it, and parameters update with it."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a, b = Value(0.3), Value(-0.4)
        b.grad = 5.0

        def step(x: float) -> Any:
            a.grad = b.grad = 0.0
            unused = b * math.inf
            loss = a * x
            loss.backward()
            for p in (a, b):
                p.data -= 0.1 * p.grad
            return loss, unused

        return step, [a, b]

    both(make, (0.7,), (1.0,), backend=backend)


@BACKENDS
def test_45_nan_and_infinity_flow_through(backend: str) -> None:
    """As in Python: nothing is clipped, skipped or folded away; relu of nan is nan."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a = Value(0.5)

        def step(x: float, y: float) -> Any:
            a.grad = 0.0
            loss = (a * x).relu() + (a - y) * 0.0 + mgjit.maximum(a * y, x) + mgjit.where(y > x, a * y, a)
            loss.backward()
            return loss, x * 0.0, x - y, -x, a.grad

        return step, [a]

    inf, nan = math.inf, math.nan
    both(make, (inf, 1.0), (-inf, 1.0), (nan, 1.0), (1.0, nan), (0.0, -0.0), (-0.0, inf), (5e-324, inf), backend=backend)


@BACKENDS
def test_46_deep_and_wide(backend: str) -> None:
    """A chain of 3,000 operations and a value with 3,000 uses: no recursion limit anywhere."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a = Value(0.999)

        def step(x: float) -> Any:
            a.grad = 0.0
            y = a * x
            for _ in range(3000):
                y = y * a + 0.001
            for k in range(3000):
                y = y + a * (0.001 * k)
            y.backward()
            return y

        return step, [a]

    both(make, (0.7,), backend=backend)


def test_47_compensated_sum(w: Value) -> None:
    """`sum` of floats is compensated since Python 3.12; a traced one follows the interpreter that it runs under."""

    def make() -> "tuple[Callable[..., Any], list[Value]]":
        a = Value(0.5)

        def step(xs: "list[float]", start: float) -> Any:
            return a * sum(xs), sum(xs), sum(xs, start), sum(x * x for x in xs), sum(xs[:1]), sum([start, 1, *xs])

        return step, [a]

    both(make, ([1.0, 1e100, 1.0, -1e100], 0.1), ([0.1] * 3 + [1e-17], -0.0), ([math.inf, 1.0, 2.0, -1.0], 1e16))
    both(make, ([0.1] * 10, 0.1))


def test_48_sum_of_integers_and_floats(w: Value) -> None:
    """Python sums ints exactly and floats in floats; a number of the step is a float from the beginning."""
    step = mgjit.compile(lambda xs: sum(xs) * w)
    assert step([1, 2, 3]) == 12.0
    assert step([1, 2.5, 3]) == 13.0
    assert step.stats.traces == 1


def test_49_division_by_zero(w: Value) -> None:
    """Documented: compiled arithmetic never raises; it gives what IEEE 754 says."""
    step = mgjit.compile(lambda x, y: (x / y, w / y, mgjit.log(x), mgjit.exp(x)))
    assert [float(x) for x in step(1.0, -0.0)][:2] == [-math.inf, -math.inf]
    assert math.isnan(step(0.0, 0.0)[0])
    assert [float(x) for x in step(0.0, 1.0)][2] == -math.inf
    assert step(1000.0, 1.0)[3] == math.inf


# ---- exceptions while tracing -------------------------------------------------------------------------------------


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
        raise MyError("mine", x)

    compiled = mgjit.compile(step)
    for _ in range(2):
        with pytest.raises(MyError) as caught:
            compiled(1.0)
        assert caught.value.args[0] == "mine"
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


# ---- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: {1.0}, lambda: 1j, lambda: (x for x in [1.0]), lambda: iter([1.0])],
    ids=["set", "complex", "generator", "iterator"],
)  # fmt: skip
def test_60_impossible_arguments(w: Value, make: "Callable[[], Any]") -> None:
    """Named with its path."""
    refused(ArgumentError, r"argument x is a", lambda x: w, make(), value=w)
    refused(ArgumentError, r"argument x\['k'\]\[1\] is a", lambda x: w, {"k": ["text", make()]}, value=w)


@pytest.mark.parametrize(
    "wrap", [lambda n: n, lambda n: [n], lambda n: [[1.0], [n]], lambda n: {"a": (n, "b")}],
    ids=["number", "list", "nested", "mixed"],
)  # fmt: skip
@pytest.mark.parametrize("number", [2**53 + 1, -(2**60), 10**400])
def test_61_huge_integers(w: Value, wrap: "Callable[[int], Any]", number: int) -> None:
    """float64 cannot hold them: an ArgumentValueError, wherever they are, never a rounded number."""
    refused(ArgumentValueError, r"2\*\*53", lambda x: w, wrap(number), value=w)


def test_62_huge_integers_later(w: Value) -> None:
    """The same in a call that finds a kernel."""
    step = mgjit.compile(lambda x, xs: w * x + xs[0])
    assert step(2**53, [1, 2]) == 2.0**54 + 1.0
    for arguments in ((2**53 + 1, [1, 2]), (1, [2**53 + 1, 2])):
        with pytest.raises(ArgumentValueError):
            step(*arguments)


def test_63_strings_none_and_bools(w: Value) -> None:
    """They shape the trace: another one is another kernel, not an error, and bools are not numbers."""

    def plain(x: float, mode: Any) -> Any:
        return w * x if mode in ("a", None, True) else w + x

    step = mgjit.compile(plain)
    for mode in ("a", "b", None, True, False, "a", None):
        assert step(3.0, mode) == plain(3.0, mode).data
    assert step.stats.traces == 5
    assert step.stats.retraces[0] == "mode was 'a', is 'b'"


def test_64_other_length_and_type(w: Value) -> None:
    """A list of another length, or a list where there was a number: traced again, never cut or padded."""

    def plain(x: Any) -> Any:
        return w * sum(x) if isinstance(x, (list, tuple)) else w * x

    step = mgjit.compile(plain)
    for x in ([1.0, 2.0], [1.0, 2.0, 3.0], 4.0, (1.0, 2.0), [0.5, 0.5]):
        assert step(x) == plain(x).data
    assert step.stats.traces == 4


@pytest.mark.parametrize("index", [-1, 3, 1.5, math.nan, math.inf, -math.inf])
def test_65_index_out_of_range(w: Value, index: float) -> None:
    """Of take and one_hot: an IndexRangeError before anything is written, at the line in the step."""
    table = [Value(1.0), Value(2.0), Value(3.0)]

    def by_take(i: Any) -> Any:
        w.data = 5.0
        return mgjit.take(table, i) * w

    def by_one_hot(i: Any) -> Any:
        w.data = 5.0
        return sum((p * w for p in mgjit.one_hot(i, 3)), w)

    for function in (by_take, by_one_hot):
        step = mgjit.compile(function)
        for _ in range(2):
            with pytest.raises(IndexRangeError) as caught:
                step(index)
            assert HERE.search(str(caught.value))
            assert isinstance(caught.value, IndexError)
        assert w.data == 2.0
        step(1)
        assert w.data == 5.0
        w.data = 2.0


def test_66_wrong_number_of_arguments(w: Value) -> None:
    """Python's own TypeError."""
    step = mgjit.compile(lambda x, y: w * x * y)
    for arguments in ((), (1.0,), (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError):
            step(*arguments)
    with pytest.raises(TypeError):
        step(1.0, z=2.0)


def test_67_numpy_scalars(w: Value) -> None:
    """They are numbers; a 0-d array and a numpy bool are what Python makes of them."""
    numpy = pytest.importorskip("numpy")
    step = mgjit.compile(lambda x: w * x)
    for x in (numpy.float64(1.5), numpy.float32(1.1), numpy.int32(-7), numpy.uint8(200), numpy.array(2.5)):
        assert step(x) == 2.0 * float(x)
    assert mgjit.compile(lambda x: w * x[0] * x[1])([numpy.float64(3.0), numpy.float32(0.1)]) == 6.0 * numpy.float32(0.1)
    flagged = mgjit.compile(lambda x, flag: w * x if flag else w)
    assert [float(flagged(3.0, numpy.bool_(True))), float(flagged(3.0, numpy.bool_(False)))] == [6.0, 2.0]


def test_68_numpy_constants_in_the_step(w: Value) -> None:
    """A numpy scalar on the left of a Value or a number is a constant of the step."""
    numpy = pytest.importorskip("numpy")
    three = numpy.float64(3.0)
    plain = lambda x: three * (w * x) + three * x + x / three  # noqa: E731
    assert mgjit.compile(plain)(0.1) == plain(0.1).data


def test_69_whole_array_arithmetic(w: Value) -> None:
    """Numpy arithmetic on an argument is refused with the loop to write."""
    numpy = pytest.importorskip("numpy")
    refused(TraceError, "Loop over its elements", lambda x: (x * 2.0)[0] * w, numpy.ones(3), value=w)
    refused(TraceError, "Loop over its elements", lambda x: x.sum() * w, numpy.ones(3), value=w)
