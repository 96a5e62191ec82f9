"""autograd/symbolic.py: backward passes of other people's classes as one record, with the class's own bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from tests.programs.foreign.running import bits
from tests.tracing.autograd import nodes

SYMBOLIC = "is taken symbolically"
RECORDED = "is recorded operation by operation"


def parameters(kind: Any, count: int, seed: int = 0) -> list[Any]:
    draw = random.Random(seed)
    return [kind(draw.uniform(-1.5, 1.5)) for _ in range(count)]


def data_of(thing: Any) -> float:
    return thing.value if isinstance(thing, nodes.Factors) else thing.data  # type: ignore[no-any-return]


def update(weights: list[Any], rate: float = 0.05) -> None:
    """One step of descent."""
    for weight in weights:
        if isinstance(weight, nodes.Factors):
            weight.value -= rate * weight.grad
        else:
            weight.data -= rate * weight.grad
        weight.grad = 0.0


def check(make: Callable[[], tuple[list[Any], Callable[..., Any]]], expected: str, calls: int = 4) -> str:
    """A step does what the undecorated one does, bit for bit, and says how backward() was taken."""
    mine, undecorated = make()
    theirs, plain = make()
    step = mgjit.compile(plain, compiler="gcc", optimisation="-O1")
    explained = step.lower(0.5).explain()
    assert expected in explained
    for k in range(calls):
        wanted, found = undecorated(0.5 + k), step(0.5 + k)
        assert bits(found) == bits(wanted)
        for a, b in zip(mine, theirs):
            assert bits([data_of(a), a.grad]) == bits([data_of(b), b.grad])
    return explained


OPERATIONS: dict[str, Callable[[Any, Any, float], Any]] = {
    "sum": lambda a, b, x: a + b,
    "difference": lambda a, b, x: a - b,
    "product": lambda a, b, x: a * b,
    "product with a number": lambda a, b, x: a * x,
    "square": lambda a, b, x: a * a,
    "power 2": lambda a, b, x: a**2,
    "power 3": lambda a, b, x: a**3 + b,
    "power -1": lambda a, b, x: a**-1,
    "root": lambda a, b, x: (a * a + x) ** 0.5,
    "power 1": lambda a, b, x: a**1 * b,
    "tanh": lambda a, b, x: a.tanh() * b,
    "exp": lambda a, b, x: a.exp() + b,
    "log": lambda a, b, x: (a * a + x).log(),
    "relu": lambda a, b, x: a.relu() * b + b.relu(),
    "the same sum twice": lambda a, b, x: (a + b) * (a + b),
    "constants": lambda a, b, x: 2.0 * a + 0 + b * 1,
    "a leaf made in the step": lambda a, b, x: a * type(a)(x) + type(a)(3.0) * b,
    "a sum of leaves": lambda a, b, x: (type(a)(x) + type(a)(1.0)) * a,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_01_every_operation(name: str) -> None:
    """Of a class with closures; with 4 parameters and with many."""
    for count in (4, 40):

        def make(count: int = count) -> tuple[list[Any], Callable[..., Any]]:
            weights = parameters(nodes.Closures, count)

            def step(x: float) -> float:
                loss = sum((OPERATIONS[name](a, b, x) for a, b in zip(weights, weights[1:])), nodes.Closures(0.0))
                loss.backward()
                result = loss.data
                update(weights)
                return result  # type: ignore[no-any-return]

            return weights, step

        check(make, SYMBOLIC)


@pytest.mark.parametrize("kind", [nodes.Factors, nodes.Doubled])
def test_02_factors_that_are_no_derivatives(kind: Any) -> None:
    """What the class multiplies with counts, whether or not it is the derivative; divisions of its own, too."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(kind, 20, seed=2)

        def step(x: float) -> float:
            terms = [(a * x + b) * a for a, b in zip(weights, weights[1:])]
            if kind is nodes.Factors:
                terms = [a / (b * b + 1.0) + b.sine() for a, b in zip(terms, weights)]
            loss = sum(terms, kind(0.0))
            loss.backward()
            result = data_of(loss)
            update(weights)
            return result

        return weights, step

    check(make, SYMBOLIC)


@pytest.mark.parametrize("kind", [nodes.Closures, nodes.Factors])
def test_03_the_order_of_additions(kind: Any) -> None:
    """Interleaved as the depth-first search of the class meets them, which is not the order in which they were made."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(kind, 96, seed=3)
        rows = [weights[k : k + 8] for k in range(0, 96, 8)]

        def dot(row: list[Any], xs: list[Any]) -> Any:
            return sum((a * b for a, b in zip(row, xs)), kind(0.0))

        def step(x: float) -> float:
            inputs = [w * x for w in rows[0]]
            queries = [dot(row, inputs) for row in rows[1:5]]
            keys = [dot(row, inputs) for row in rows[5:9]]
            scores = sum((q * k for q, k in zip(queries, keys)), kind(0.0))
            rest = sum((dot(row, inputs) * scores for row in rows[9:]), kind(0.0))
            loss = rest * 0.1 + scores * scores
            loss.backward()
            result = data_of(loss)
            update(weights, 1e-3)
            return result

        return weights, step

    check(make, SYMBOLIC)


def test_04_sets_of_operands() -> None:
    """Python's order differs from process to process: ours is the reverse of the order in which nodes are made."""

    class Ordered(nodes.Sets):
        """As Sets, with the order that is promised."""

        made: list[Any] = []  # noqa: RUF012

        def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
            super().__init__(data, operands)
            Ordered.made.append(self)

        def backward(self) -> None:
            self.grad = 1.0
            for node in reversed(Ordered.made):
                node._backward()

    def make(kind: Any) -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(kind, 40, seed=4)

        def step(x: float) -> float:
            hidden = [sum((w * v for w, v in zip(weights[k : k + 5], weights)), kind(x)) for k in range(5, 40, 5)]
            loss = sum((h * g for h in hidden for g in hidden), kind(0.0))
            loss.backward()
            result = loss.data
            update(weights, 1e-3)
            if kind is Ordered:
                Ordered.made.clear()
            return result  # type: ignore[no-any-return]

        return weights, step

    theirs, plain = make(nodes.Sets)
    mine, undecorated = make(Ordered)
    step = mgjit.compile(plain)
    assert SYMBOLIC in step.lower(0.5).explain()
    for k in range(3):
        assert step(0.5 + k) == undecorated(0.5 + k)
        assert [w.data for w in theirs] == [w.data for w in mine]
    assert step.stats.plain_calls == 0


def test_05_gradients_that_accumulate() -> None:
    """Without setting them to zero between calls; to something else than zero; in two passes."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 24, seed=5)

        def step(x: float) -> float:
            weights[0].grad = x
            for k in range(2):
                loss = sum((a * b * (x + k) for a, b in zip(weights, weights[3:])), nodes.Closures(0.0))
                loss.backward()
            for weight in weights[5:]:
                weight.data -= 0.01 * weight.grad
            return loss.data  # type: ignore[no-any-return]

        return weights, step

    check(make, SYMBOLIC)


def test_06_gradients_of_computed_nodes() -> None:
    """They can be read afterwards, those of leaves that were made in the step with all operations recorded."""

    def make(of_leaf: bool) -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 18, seed=6)

        def step(x: float) -> list[float]:
            leaf = nodes.Closures(x)
            hidden = [(w * leaf).tanh() for w in weights]
            loss = sum((h * h for h in hidden), nodes.Closures(0.0))
            loss.backward()
            result = [loss.data, loss.grad, hidden[3].grad, hidden[4].grad * 2.0, leaf.grad if of_leaf else leaf.data]
            update(weights)
            return result

        return weights, step

    check(lambda: make(False), SYMBOLIC)
    assert "no parameter" in check(lambda: make(True), RECORDED)


def test_07_data_that_several_nodes_share() -> None:
    """A gradient goes where there is an edge: not through copies of data, and through nodes that pass data on."""

    class Passing(nodes.Closures):
        def passed(self) -> Any:
            out = Passing(self.data, (self,))
            out._backward = lambda: setattr(self, "grad", self.grad + out.grad)
            return out

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(Passing, 30, seed=7)

        def step(x: float) -> float:
            detached = [Passing(w.data) * w for w in weights]
            squares = [w * w for w in weights]
            again = [Passing(s.data) * s + s.passed() * w for s, w in zip(squares, weights)]
            shared = [w.passed() + w.passed().passed() for w in weights]
            loss = sum((a * x + b + c for a, b, c in zip(detached, again, shared)), Passing(0.0))
            loss.backward()
            result = loss.data
            update(weights)
            return result  # type: ignore[no-any-return]

        return weights, step

    check(make, SYMBOLIC)


@pytest.mark.parametrize("kind", [nodes.Clipped, nodes.Tape])
def test_08_what_is_recorded_operation_by_operation(kind: Any) -> None:
    """A class that clips gradients on their way; a tape that holds nodes the root does not depend on."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(kind, 20, seed=8)

        def step(x: float) -> float:
            loss = sum((w * w * x for w in weights), kind(0.0))
            unused = loss * 3.0
            loss.backward()
            result = loss.data + unused.data
            update(weights)
            return result  # type: ignore[no-any-return]

        return weights, step

    check(make, RECORDED)
    nodes.TAPE.clear()


def test_09_parameters_that_change_within_the_step() -> None:
    """Inner steps of descent: the second pass sees new numbers."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 20, seed=9)

        def step(x: float) -> float:
            total = 0.0
            for _ in range(3):
                loss = sum((w * w * x for w in weights), nodes.Closures(0.0))
                loss.backward()
                update(weights)
                total += loss.data
            return total

        return weights, step

    check(make, RECORDED)


def test_10_two_passes_through_the_same_nodes() -> None:
    """Their gradients add up, as the class's own do."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 20, seed=10)

        def step(x: float) -> float:
            trunk = [w * x for w in weights]
            first = sum((t * t for t in trunk), nodes.Closures(0.0))
            second = sum((t * w for t, w in zip(trunk, weights)), nodes.Closures(0.0))
            first.backward()
            second.backward()
            update(weights)
            return first.data + second.data  # type: ignore[no-any-return]

        return weights, step

    check(make, RECORDED)


def test_11_look_ups_and_choices() -> None:
    """Rows of parameters chosen by an argument, more than once, also the same; nodes chosen by an argument."""

    def make(chosen: bool) -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Factors, 60, seed=11)
        table = [weights[k : k + 6] for k in range(0, 36, 6)]
        rows = [weights[k : k + 6] for k in range(36, 60, 6)]

        def step(x: float, first: int = 1, second: int = 1) -> float:
            inputs = [a * b + c for a, b, c in zip(table[first], table[second], table[first])]
            outputs = [sum((a * b for a, b in zip(row, inputs)), nodes.Factors(0.0)) for row in rows]
            total = sum((o * o for o in outputs), nodes.Factors(1.0))
            loss = (outputs[second] if chosen else outputs[1]) / total + total * 0.01
            loss.backward()
            result = data_of(loss) * x
            update(weights)
            return result

        return weights, step

    for chosen in (False, True):
        check(lambda chosen=chosen: make(chosen), SYMBOLIC)  # type: ignore[misc]
        mine, undecorated = make(chosen)
        theirs, plain = make(chosen)
        step = mgjit.compile(plain)
        for first, second in ((0, 1), (2, 2), (5, 0), (3, 3), (1, 3)):
            assert step(1.5, first, second) == undecorated(1.5, first, second)
            assert [[w.value, w.grad] for w in mine] == [[w.value, w.grad] for w in theirs]
        assert step.stats.traces == 1


def test_12_the_trace_is_several_times_shorter() -> None:
    """Which is what it is for."""

    def make(kind: Any) -> Callable[..., Any]:
        weights = parameters(kind, 100, seed=12)

        def step(x: float) -> float:
            hidden = [sum((w * v for w, v in zip(weights[k : k + 10], weights)), kind(x)) for k in range(0, 100, 10)]
            loss = sum((h * h for h in hidden), kind(0.0))
            loss.backward()
            return loss.data  # type: ignore[no-any-return]

        return step

    symbolic = mgjit.compile(make(nodes.Closures)).lower(1.0).lowered.records
    recorded = mgjit.compile(make(nodes.Clipped)).lower(1.0).lowered.records
    assert symbolic * 2 < recorded


def test_13_random_graphs() -> None:
    """Sums, products, powers and functions of random nodes: the class's own gradients."""
    draw = random.Random(13)
    for seed in range(6):
        kind = (nodes.Closures, nodes.Factors)[seed % 2]
        plan = [(draw.random(), draw.randrange(1 << 30), draw.randrange(1 << 30)) for _ in range(60)]

        def make(kind: Any = kind, plan: Any = plan, seed: int = seed) -> tuple[list[Any], Callable[..., Any]]:
            weights = parameters(kind, 17, seed)

            def step(x: float) -> float:
                made = [w * x for w in weights]
                for choice, i, j in plan:
                    a, b = made[i % len(made)], made[j % len(made)]
                    if choice < 0.3:
                        made.append(a + b)
                    elif choice < 0.6:
                        made.append(a * b * 0.5)
                    elif choice < 0.8:
                        made.append(a * choice + weights[i % 17])
                    elif kind is nodes.Closures:
                        made.append([a.tanh, a.relu, lambda a=a: a**2][j % 3]())
                    else:
                        made.append([a.sine, lambda a=a, b=b: a / (b * b + 1.0)][j % 2]())
                loss = sum(made[-9:], kind(0.0))
                loss.backward()
                result = data_of(loss)
                update(weights, 1e-4)
                return result

            return weights, step

        check(make, SYMBOLIC, calls=3)


def test_15_data_of_a_chosen_parameter_that_is_read_once() -> None:
    """One look-up, two nodes: the two gradients are added one after the other, to what is there."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Factors, 24, seed=15)
        for weight in weights:
            weight.grad = 0.0

        def step(x: float, k: int = 3) -> float:
            chosen = weights[k]
            data = chosen.value
            pieces = [nodes.Factors(data * f, (chosen,), (f,)) for f in (x, 0.7, -1.3)]
            loss = sum((p * p for p in pieces), nodes.Factors(0.0)) + chosen * 0.3
            loss.backward()
            result = data_of(loss)
            for weight in weights:
                weight.value -= 0.01 * weight.grad
            return result

        return weights, step

    check(make, RECORDED)
    mine, undecorated = make()
    theirs, plain = make()
    step = mgjit.compile(plain)
    for k in (3, 0, 23, 3):
        assert step(0.5, k) == undecorated(0.5, k)
        assert [[w.value, w.grad] for w in mine] == [[w.value, w.grad] for w in theirs]


def test_16_gradients_of_a_memory() -> None:
    """Of rows that are sums of different lengths, in one loop: what does not fold is no reason for a flat trace."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights, norms = parameters(nodes.Closures, 24, seed=6), [0.25] * 7

        def step(x: float) -> list[float]:
            starts = [(5 * k + k * k) % 11 for k in range(7)]
            memory = [
                [
                    sum((w * x for w in weights[start + j : start + 3 * j + 4 : j + 1]), nodes.Closures(0.5))
                    for j in (0, 1)
                ]
                for start in starts
            ]
            scores = [(a * weights[0] + b * weights[1]).exp() for a, b in memory]
            total = sum(scores[1:], scores[0])
            loss = sum((s * a * total**-1 for s, (a, _) in zip(scores, memory)), nodes.Closures(0.0))
            loss.backward()
            for k, row in enumerate(memory):
                norms[k] = 0.9 * norms[k] + sum(m.grad * m.grad for m in row)
            update(weights)
            return [loss.data, *norms]

        return weights, step

    assert "slower path" not in check(make, SYMBOLIC)
