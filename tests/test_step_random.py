"""Random numbers drawn in a step: those of the undecorated step, bit for bit, and so is the state of the generator."""

from __future__ import annotations

import random
import struct
import threading
from random import gauss as bound_gauss
from random import random as bound_random
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import ArgumentError, IndexRangeError, RandomnessError, TraceError
from tests.programs.foreign.running import bits, difference

BACKENDS: dict[str, dict[str, Any]] = {
    "gcc": {"compiler": "gcc", "optimisation": "-O1"},
    "tcc": {"compiler": "tcc"},
    "python": {"backend": "python"},
}
backends = pytest.mark.parametrize("options", BACKENDS.values(), ids=BACKENDS)
CALLS = 7  # enough for the generated function to take over

generator = random.Random(1)
other = random.Random(2)
bound_to_generator = generator.random


def seed(number: int) -> None:
    """Seed all generators of this file."""
    random.seed(number)
    generator.seed(number + 1)
    other.seed(number + 2)


def states() -> list[Any]:
    """What the generators will draw next."""
    return [random.getstate(), generator.getstate(), other.getstate()]


def compare(function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> Any:
    """Undecorated and compiled: equal results and states after each call; returns the step."""
    step = mgjit.compile(**options)(function)
    seed(5)
    wanted = [(bits(function(*arguments)), states()) for arguments in calls]
    seed(5)
    for number, (arguments, (result, after)) in enumerate(zip(calls, wanted)):
        found = bits(step(*arguments))
        assert not difference(result, found), number
        assert states() == after, number
    assert len({repr(result) for result, _ in wanted}) > len(calls) // 2, "the calls must differ"
    return step


def numbers(count: int = CALLS) -> list[tuple[float]]:
    """Arguments of calls."""
    return [(0.3 + k / 7,) for k in range(count)]


def noise() -> float:
    """A draw inside of a function that the step calls."""
    return random.gauss(0, 1)


# ---- what can be drawn ------------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[float], Any]] = {
    "random": lambda x: x * random.random(),
    "of a generator": lambda x: x + generator.random() - other.random() + generator.random(),
    "uniform": lambda x: random.uniform(-2, 3) + x,
    "uniform, traced": lambda x: generator.uniform(-x, x * 3),
    "gauss": lambda x: [random.gauss(x, 1.0), random.gauss(1.0, x), random.gauss(0.0, 1.0), random.gauss(x, x)],
    "normalvariate": lambda x: [random.normalvariate(x, 2.0), random.normalvariate(0.0, 1.0)],
    "lognormvariate": lambda x: [random.lognormvariate(x, 0.1), random.lognormvariate(0.0, 1.0)],
    "expovariate": lambda x: [random.expovariate(x), random.expovariate(3.0), random.expovariate(-x)],
    "others": lambda x: [
        x * one
        for one in (
            random.triangular(), random.triangular(0, 1, 0.3), random.betavariate(2, 3), random.gammavariate(2, 3),
            random.vonmisesvariate(1, 2), random.paretovariate(3), random.weibullvariate(1, 2),
        )
    ],
    "integers": lambda x: [
        random.randint(-3, 5), random.randrange(7), random.randrange(2, 90, 11), random.randrange(9, 0, -2),
        random.getrandbits(53), generator.getrandbits(1), random.randint(4, 4), x,
    ],
    "choice": lambda x: [random.choice([1.5, 2.5, x]), random.choice((3, 7)), random.choice(range(5, 50, 4)),
                         random.choice([[x, 1], [2.0, 3]])[0], random.choice([x]), random.choice(range(8))],
    "choices": lambda x: [random.choices([1, 2, 3], k=4), random.choices((x, 2.0), [3, 1], k=2),
                          random.choices(range(3), cum_weights=[1, 2, 9])],
    "choices, traced": lambda x: [
        random.choices(range(4), [x, 1.0, 0.0, 2 * x], k=3), random.choices([5], [x]),
        random.choices(["a", "a"], [x, 2]), random.choices(range(4), cum_weights=[x, 2 * x, 9, 10], k=2),
    ],
    "sample": lambda x: [random.sample([x, 2.0, 3.0], 2), random.sample(range(1000), 30), random.sample([1, 2], k=0)],
    "sample with counts": lambda x: random.sample([1.0, x, 3.0], 5, counts=[3, 2, 4]),
    "mask": lambda x: [x * m / 0.7 for m in [random.random() < 0.7 for _ in range(9)]],
    "mask, chosen": lambda x: [x if m else 0.0 for m in [generator.random() < x / 3 for _ in range(9)]],
    "elsewhere": lambda x: x * noise(),
    "bound names": lambda x: [bound_random(), bound_gauss(0, x), bound_gauss(0, 1), x * bound_to_generator()],
    "many in turn": lambda x: [[random.random(), random.gauss(0, 1), other.random() * x] for _ in range(30)],
    "as an index": lambda x: [[x, 1.0, 2.0, 3.0][random.randrange(4)], [x, x + 1][generator.getrandbits(1)]],
    "chosen as an index": lambda x: [x, 1.0, 2.0][random.choice([0, 2])],
    "before the arguments": lambda x: (random.random() < x, random.random() + x),
}  # fmt: skip


@backends
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.sampled
def test_01_draws(name: str, options: dict[str, Any]) -> None:
    """Each method, as it stands: equal results, equal states after every call."""
    if name == "sample with counts" and not hasattr(random.Random, "randbytes"):
        pytest.skip("since Python 3.9")
    assert compare(DRAWS[name], *numbers(), **options).stats.traces == 1


@pytest.mark.parametrize("method", ["uniform", "gauss", "normalvariate", "lognormvariate", "expovariate"])
def test_02_formulas(method: str) -> None:
    """What is computed in the trace is what the library computes: random arguments, infinities, zeros of both signs."""
    draw = random.Random(8)
    special = [0.0, -0.0, 1e308, -1e308, 5e-324, float("inf"), float("nan")]
    count = 1 if method == "expovariate" else 2

    def argument() -> float:
        return draw.choice(special) if draw.random() < 0.2 else draw.uniform(-5, 5)

    def function(a: float, b: float) -> Any:
        return getattr(generator, method)(*[a, b][:count])

    step = mgjit.compile(backend="python")(function)
    for number in range(400):
        a, b = argument(), argument()
        generator.seed(number)
        try:
            wanted = function(a, b)
        except (OverflowError, ZeroDivisionError):  # where Python raises, a kernel has an infinity or nan
            continue
        after = generator.getstate()
        generator.seed(number)
        assert bits(step(a, b)) == bits(wanted), (a, b)
        assert generator.getstate() == after


@backends
def test_03_shuffle(options: dict[str, Any]) -> None:
    """Of a list that the step makes, of numbers or rows, and of a list that it keeps."""

    def function(x: float) -> Any:
        xs = [x, 1.0, 2.0, 3.0, 4.0]
        rows = [[k, x * k] for k in range(6)]
        empty: list[float] = []
        for one in (xs, rows, empty, [x]):
            random.shuffle(one)
        return xs, [row[1] for row in rows], empty

    compare(function, *numbers(), **options)
    found = []
    for decorate in (lambda f: f, mgjit.compile(**options)):
        kept = [float(k) for k in range(6)]
        order = list(range(5))

        def keep(x: float, kept: list[float] = kept, order: list[int] = order) -> float:
            generator.shuffle(kept)
            generator.shuffle(order)
            kept[0] += x
            return kept[0]

        seed(3)
        step = decorate(keep)
        found.append([bits([step(x), kept, order]) for (x,) in numbers()] + states())
    assert found[0] == found[1]


# ---- what is drawn from: parameters, objects, samples --------------------------------------------------------------


@backends
def test_04_learning(options: dict[str, Any]) -> None:
    """Dropout, a sampled row of data, noise on the target, moments in lists; backward passes through look-ups."""

    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        draw = random.Random(4)
        weights = [Value(draw.gauss(0, 1)) for _ in range(4)]
        table = [[Value(draw.gauss(0, 1)) for _ in range(4)] for _ in range(5)]
        data = [([draw.random() for _ in range(4)], draw.random()) for _ in range(6)]
        moments = [0.0] * 4

        def step(lr: float, rate: float) -> Any:
            xs, y = random.choice(data)
            keep = [random.random() > rate for _ in xs]
            token = random.randrange(5)
            other_token = random.choices(range(5), weights=[row[0].data ** 2 for row in table])[0]
            hidden = [w * x * k / 0.5 + e for w, x, k, e in zip(weights, xs, keep, table[token])]
            hidden = [h * e for h, e in zip(hidden, table[other_token])]
            loss = (sum(hidden) - y - random.gauss(0, 0.1)) ** 2
            loss.backward()
            for i, w in enumerate(weights):
                moments[i] = 0.9 * moments[i] + 0.1 * w.grad + 0.001 * generator.gauss(0, lr)
                w.data -= lr * moments[i]
                w.grad = 0.0
            for e in [e for row in table for e in row]:
                e.data -= lr * e.grad
                e.grad = 0.0
            return loss, token, other_token

        return step, lambda: ([w.data for w in weights], [e.data for row in table for e in row], moments)

    found = []
    for decorate in (lambda f: f, mgjit.compile(**options)):
        step, observe = make()
        step = decorate(step)
        seed(9)
        results = []
        for k in range(12):
            loss, *rest = step(0.05 + k / 100, 0.5)
            results.append(bits([float(loss.data), rest, observe()]))
        found.append([results, states()])
    assert not difference(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def step_with(noisy: Any, closure: random.Random, closure_draw: Callable[[], float]) -> Callable[..., Any]:
    """A step that captures these, and gets others."""
    default_generator = random.Random(12)

    def step(x: float, rng: random.Random, draw: Callable[[], float], default: Any = default_generator) -> Any:
        return noisy(x), closure.random() + closure_draw(), rng.randrange(9), draw() * x, default.gauss(0, 1)

    return step


@backends
def test_05_generators_at_hand(options: dict[str, Any]) -> None:
    """As an attribute, in a closure, as an argument, as a default; bound methods in all these places; subclasses."""

    class Derived(random.Random):
        pass

    class Noisy:
        def __init__(self) -> None:
            self.rng, self.draw, self.table = Derived(3), random.Random(6).random, {"draw": random.Random(7).random}

        def __call__(self, x: float) -> float:
            return x * self.rng.gauss(0, 1) + self.draw() + self.table["draw"]()

    found = []
    for decorate in (lambda f: f, mgjit.compile(**options)):
        noisy, closure, argument = Noisy(), random.Random(8), random.Random(9)
        closure_draw, argument_draw = random.Random(10).random, random.Random(11).random

        step = decorate(step_with(noisy, closure, closure_draw))
        results = [bits(step(x, argument, argument_draw)) for (x,) in numbers()]
        found.append([results, [one.getstate() for one in (noisy.rng, closure, argument, noisy.draw.__self__)]])  # type: ignore[attr-defined]
    assert not difference(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


# ---- how it is called -------------------------------------------------------------------------------------------


@backends
def test_06_loop(options: dict[str, Any]) -> None:
    """Rows draw in order; the loop leaves the generators where the calls would."""

    def function(x: float) -> float:
        return x * random.random() + generator.gauss(0, x) + random.sample(range(9), 3)[1]

    columns = [x for (x,) in numbers(300)]
    step = mgjit.compile(**options)(function)
    seed(5)
    wanted, after = [function(x) for x in columns], states()
    for part in ([300], [1, 3, 296], [7] * 42 + [6]):
        seed(5)
        found: list[float] = []
        for size in part:
            found += step.loop(columns[len(found) : len(found) + size])
        assert found == wanted
        assert states() == after
    assert step.stats.traces == 1


def failing_the_third_time(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does what it should, and then is interrupted."""
    calls: list[Any] = []

    def failing(*arguments: Any) -> Any:
        calls.append(original(*arguments))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return calls[-1]

    return failing


def test_07_an_interrupted_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn for rows that have not been run is put back."""
    monkeypatch.setattr("mgjit.runtime.loop._SECONDS_A_CHUNK", 1e-6)

    def function(x: float) -> float:
        return x * generator.random()

    for options in BACKENDS.values():
        step = mgjit.compile(**options)(function)
        columns = [float(k) for k in range(2000)]
        seed(1)
        step.loop(columns)
        seed(1)
        holder: Any = step._kernels.last if "backend" in options else step._kernels.last.draws
        name = "draw" if "backend" in options else "rows"
        setattr(holder, name, failing_the_third_time(getattr(holder, name)))
        before = step.stats.calls
        with pytest.raises(KeyboardInterrupt):
            step.loop(columns)
        rows = step.stats.calls - before
        assert 0 < rows < 2000
        wanted = random.Random(2)
        for _ in range(rows):
            wanted.random()
        assert generator.getstate() == wanted.getstate()


@backends
def test_08_phases(options: dict[str, Any]) -> None:
    """The forward phase draws; backward and update go on with that."""
    weight = Value(2.0)
    seed(4)
    wanted = random.random()

    @mgjit.compile(**options)
    def step(x: float) -> Any:
        loss = weight * x * random.random()
        loss.backward()
        weight.data -= 0.1 * weight.grad
        weight.grad = 0.0
        return loss

    seed(4)
    assert float(step.forward(3.0)) == 2.0 * 3.0 * wanted
    after = random.getstate()
    step.backward()
    assert weight.grad == 3.0 * wanted
    step.update()
    assert weight.data == 2.0 - 0.1 * (3.0 * wanted)
    assert random.getstate() == after


@backends
def test_09_steps_in_turn_and_nested(options: dict[str, Any]) -> None:
    """Two steps draw from the same generators; a step that another calls draws as part of it."""
    found = []
    for decorate in (lambda f: f, mgjit.compile(**options)):

        @decorate
        def inner(x: float) -> Any:
            return x + random.random()

        @decorate
        def outer(x: float) -> Any:
            return random.random() * inner(x) + generator.gauss(0, 1)

        seed(6)
        found.append([bits([outer(x), inner(x), random.random()]) for (x,) in numbers()] + states())
    assert found[0] == found[1]


@backends
def test_10_shapes_and_static_arguments(options: dict[str, Any]) -> None:
    """Each structure has draws of its own: lengths, static names, ints that become lengths."""

    def function(xs: list[float], mode: str, count: int) -> Any:
        drawn = [x * random.random() for x in xs]
        return drawn, [generator.gauss(0, 1) if mode == "normal" else generator.random() for _ in range(count)]

    calls = [([1.0] * (1 + k % 3), ("normal", "uniform")[k % 2], k % 4) for k in range(20)]
    step = compare(function, *calls, static=("mode",), warn_after=100, **options)
    assert step.stats.traces > 3

    def sizes(xs: list[float], count: int) -> Any:
        return random.sample(xs, count), random.choices(xs, k=count), random.randrange(count + 1)

    compare(sizes, *[([1.0, 2.0, 3.0], k % 3) for k in range(9)], **options)


def test_11_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_DISABLE runs the function itself."""
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    assert compare(DRAWS["gauss"], *numbers()).stats.traces == 0


def test_12_single_precision() -> None:
    """What is drawn is rounded, as arguments are; great integers are refused."""
    step = mgjit.compile(dtype="float32", backend="python")(lambda: [random.random(), random.randrange(9)])
    seed(3)
    first, second = step()
    seed(3)
    assert first == struct.unpack("f", struct.pack("f", random.random()))[0]
    assert second == random.randrange(9)
    with pytest.raises(RandomnessError, match="holds them exactly"):
        mgjit.compile(dtype="float32", backend="python")(lambda: random.getrandbits(25))()


def test_13_threads() -> None:
    """Calls of several threads share a generator: together they draw what one thread would draw."""
    step = mgjit.compile(backend="auto")(lambda x: x * random.random())
    step(1.0)
    seed(2)
    wanted = sorted(random.random() for _ in range(400))
    seed(2)
    found: list[float] = []

    def work() -> None:
        found.extend(step(1.0) for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == wanted


# ---- what else may happen ---------------------------------------------------------------------------------------


def test_14_refused_calls_draw_nothing() -> None:
    """A bad argument or an index out of range: the generators are as they were before the call."""
    step = mgjit.compile()(lambda x, i: random.random() * [x, 1.0][i])
    for _ in range(2):
        for _ in range(CALLS):
            step(2.0, 1)
        state = random.getstate()
        with pytest.raises(IndexRangeError):
            step(1.0, 2)
        with pytest.raises(ArgumentError):
            step({1.0}, 0)
        with pytest.raises(TypeError):
            step(1.0)  # type: ignore[call-arg]
        with pytest.raises(IndexRangeError):
            step.loop([1.0, 2.0], [0, 2])
        assert random.getstate() == state


@pytest.mark.usefixtures("no_paths")
def test_15_failed_traces_draw_nothing() -> None:
    """Errors of the trace, of the library and of the user."""

    def failing(x: float) -> Any:
        random.random()
        raise KeyError("the user's")

    cases: list[tuple[type[Exception], str, Callable[[float], Any]]] = [
        (KeyError, "the user's", failing),
        (TraceError, "asks for a number", lambda x: branch(random.random())),
        (RandomnessError, "traced numbers", lambda x: random.betavariate(x, 1.0)),
        (RandomnessError, "traced numbers", lambda x: random.triangular(0.0, x)),
        (RandomnessError, "traced numbers", lambda x: random.randint(0, x)),
        (RandomnessError, "gives bytes", lambda x: random.randbytes(3)),
        (RandomnessError, "holds them exactly", lambda x: random.getrandbits(54)),
        (RandomnessError, "holds them exactly", lambda x: random.choice([1, 2**60])),
        (RandomnessError, "from a str", lambda x: random.choice("abc")),
        (TraceError, "not alike|several|objects", lambda x: random.choice(["a", "b"])),
        (TraceError, "Draw or compute it in range", lambda x: [x, 1.0][random.randint(0, 2)]),
        (TraceError, "Draw or compute it in range", lambda x: [x, 1.0][random.randint(-1, 1)]),
        (IndexError, "empty|range", lambda x: random.choice([])),
        (ValueError, "weights", lambda x: random.choices([1, 2], [x])),
        (ValueError, "weights", lambda x: random.choices([1, 2], [1])),
        (ValueError, "larger", lambda x: random.sample([x], 2)),
        (ValueError, "empty range", lambda x: random.randrange(0)),
        (TypeError, "both", lambda x: random.choices([1, 2], [x, 1], cum_weights=[1, 2])),
        (TypeError, "argument", lambda x: random.gauss(x, 1, 2)),
        (RandomnessError, "seed", lambda x: random.seed(1)),
    ]  # fmt: skip
    state = random.getstate()
    for error, why, function in cases:
        step = mgjit.compile(backend="python")(function)
        for _ in range(2):
            with pytest.raises(error, match=why) as caught:
                step(0.5)
            if issubclass(error, (RandomnessError, TraceError)):
                assert f"{__file__}:" in str(caught.value)
        assert random.getstate() == state


def branch(x: float) -> bool:
    """Asks for a number."""
    while x > 0.5:
        x = x - 1.0
    return x > 0.0


def test_16_another_generator() -> None:
    """A name that means another generator later: the step is traced again."""
    namespace: dict[str, Any] = {"rng": random.Random(1), "draw": random.Random(2).random, "random": random}
    exec("def function(x):\n return x * rng.random() + draw() + random.random()", namespace)  # noqa: S102
    step = mgjit.compile()(namespace["function"])
    for _ in range(CALLS):
        step(1.0)
    namespace["rng"], namespace["draw"] = random.Random(5), random.Random(6).random
    seed(1)
    for _ in range(CALLS):
        wanted = step(2.0)
    assert step.stats.traces == 2
    namespace["rng"].seed(5)
    namespace["draw"].__self__.seed(6)
    seed(1)
    assert [namespace["function"](2.0) for _ in range(CALLS)][-1] == wanted


def test_17_a_function_in_place_of_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests put constants in place of `random.random`: seen, and put back."""
    step = mgjit.compile(backend="python")(lambda x: x * random.random())
    for _ in range(2):
        step(1.0)
        with monkeypatch.context() as patch:
            patch.setattr(random, "random", lambda: 0.25)
            assert step(3.0) == 0.75
        seed(1)
        found = step(1.0)
        seed(1)
        assert found == random.random()


def test_18_explained() -> None:
    """`explain()` says how much is drawn, and draws nothing."""
    step = mgjit.compile()(lambda x: x * random.random() + random.gauss(0, 1))
    state = random.getstate()
    assert "draws 2 random numbers a call: random 1 x, gauss 1 x" in step.lower(1.0).explain()
    other = mgjit.compile()(lambda x: x * 2.0)  # its explanation has the line that it is on
    assert "draws" not in other.lower(1.0).explain()
    assert random.getstate() == state


class Tagged:
    """A node that draws a tag when it is made."""

    def __init__(self, data: Any, children: Any = (), local: Any = ()) -> None:
        self.data, self.grad, self._children, self._local = data, 0.0, children, local
        self.tag = generator.random()

    def __add__(self, other: Tagged) -> Tagged:
        return Tagged(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Tagged) -> Tagged:
        return Tagged(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        """Depth first."""
        order: list[Tagged] = []
        seen: set[int] = set()

        def build(node: Tagged) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for child in node._children:
                    build(child)
                order.append(node)

        build(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, factor in zip(node._children, node._local):
                child.grad += factor * node.grad


@backends
def test_19_nodes_that_draw(options: dict[str, Any]) -> None:
    """Classes are tried out, which draws nothing; their nodes draw in every call."""
    found = []
    for decorate in (lambda f: f, mgjit.compile(**options)):
        seed(8)
        weights = [Tagged(random.gauss(0, 1)) for _ in range(20)]

        def step(x: float, weights: list[Tagged] = weights) -> Any:
            loss = weights[0]
            for w in weights[1:]:
                loss = loss + w * Tagged(x)
            loss.backward()
            for w in weights:
                w.data -= 0.01 * w.grad
                w.grad = 0.0
            return loss.data, loss.tag

        step = decorate(step)
        found.append([bits([step(x), [w.data for w in weights]]) for (x,) in numbers()] + states())
    assert found[0] == found[1]
