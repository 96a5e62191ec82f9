"""Numbers that are copied around calls: in steps, on every path, whatever happens in between."""

from __future__ import annotations

import os
import threading
from array import array
from typing import Any, Callable, ClassVar

import pytest

import mgjit
from mgjit.compiler.toolchain import compilers
from mgjit.errors import ColumnError
from mgjit.runtime import fastcall
from mgjit.tracing.copies.copies import Copied, Copies
from mgjit.tracing.surroundings.places import Entry

COMPILED = pytest.mark.skipif(compilers.find() is None, reason="no C compiler is installed")


class Model:
    """Single numbers, counters and lists of several lengths, in attributes, closures and dicts."""

    def __init__(self) -> None:
        self.rate: Any = 0.5
        self.count: Any = 0
        self.short: Any = [0.25, 0.5, -0.75]
        self.long: Any = [0.1 * k for k in range(40)]
        self.table: Any = [[0.5 * k + j for k in range(20)] for j in range(5)]
        self.memo: Any = {"mean": 0.0, "seen": 3}
        self.step = self.made()

    def made(self) -> Callable[..., Any]:
        total = 0.0

        def step(x: Any, row: Any) -> Any:
            nonlocal total
            self.count += 1
            self.rate = self.rate * 0.99
            for k in range(len(self.short)):
                self.short[k] = self.short[k] * 0.5 + x
            for k in range(len(self.long)):
                self.long[k] = 0.9 * self.long[k] + 0.1 * x
            self.table[row][3] += x * self.rate
            self.memo["mean"] = self.memo["mean"] * 0.5 + sum(self.short)
            self.memo["seen"] += 2
            total += x
            return total, self.count, sum(self.long)

        return step

    def seen(self) -> Any:
        """Everything, with kinds."""
        return repr((self.rate, self.count, self.short, self.long, self.table, self.memo))


class Pair:
    """A compiled model beside an undecorated one."""

    def __init__(self, warm: int = 5, **options: Any) -> None:
        self.mine, self.plain = Model(), Model()
        self.step: Any = mgjit.compile(**options)(self.mine.step)
        for _ in range(warm):
            self.agree()

    def agree(self, x: float = 0.3, row: int = 1) -> None:
        """One more call of both."""
        assert self.step(x, row) == self.plain.step(x, row)
        assert self.mine.seen() == self.plain.seen()

    def change(self, change: Callable[[Model], Any]) -> None:
        """Of both."""
        change(self.mine)
        change(self.plain)


def copied(content: Any, counter: array[int]) -> tuple[dict[str, Any], Copies, Any]:
    holder = {"it": content}
    size = len(content) if isinstance(content, list) else 0
    state = mgjit.zeros(size or 1)
    return holder, Copies(state, [Copied(Entry(holder, "it", "it"), 0, size, assigned=True)], counter), state


def test_01_the_same_as_undecorated() -> None:
    """On the general path and on the generated one."""
    pair = Pair(warm=0)
    for k in range(12):
        pair.agree(0.25 * k - 1.0, k % 5)
    assert pair.step.stats.calls == 12
    assert pair.step.stats.traces == 1


@COMPILED
@pytest.mark.parametrize("seconds", [-1.0, 1.0])
def test_02_the_generated_path(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes such calls, with the GIL and without it."""
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", seconds)
    monkeypatch.setenv("MGJIT_VERIFY", "never")  # no function around it counts calls until the next comparison
    pair = Pair()
    assert pair.step.__call__.__code__.co_filename == fastcall._FILE
    for k in range(5):
        pair.agree(row=k)
    assert pair.step.stats.calls == 10


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "rate", -0.0),
        lambda m: setattr(m, "count", 1000),
        lambda m: setattr(m, "count", 0.5),
        lambda m: setattr(m, "count", float("inf")),
        lambda m: setattr(m, "short", [7.5, 8.5, 9.5]),
        lambda m: m.short.__setitem__(1, -2.5),
        lambda m: m.long.reverse(),
        lambda m: m.short.append(1.0),
        lambda m: m.long.pop(),
        lambda m: setattr(m, "long", [1.0] * 40),
        lambda m: m.table.reverse(),
        lambda m: m.table.__setitem__(1, [0.5] * 20),
        lambda m: setattr(m, "table", [[0.25] * 20 for _ in range(5)]),
        lambda m: m.memo.update(mean=2.5, seen=1),
        lambda m: m.memo.update(seen=1.5),
        lambda m: setattr(m, "count", 2**53),
    ],
)
def test_03_changes_between_calls(change: Callable[[Any], Any]) -> None:
    """Count in the next one; a float where an int was is another step."""
    pair = Pair()
    pair.change(change)
    for _ in range(5):
        pair.agree()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: m.long.__setitem__(5, "a"), TypeError, "can't multiply sequence|unsupported operand type"),  # PyPy
        (lambda m: setattr(m, "rate", None), TypeError, "unsupported operand type"),
    ],
)
@pytest.mark.parametrize("warm", [1, 5])
def test_04_what_is_refused(change: Callable[[Any], Any], error: type[Exception], message: str, warm: int) -> None:
    """What is no number any more makes another step, here one that raises as plain Python; nothing has changed."""
    pair = Pair(warm)
    change(pair.mine)
    before, calls = pair.mine.seen(), pair.step.stats.calls
    for _ in range(2):
        with pytest.raises(error, match=message):
            pair.step(0.3, 1)
        assert pair.mine.seen() == before
    assert pair.step.stats.calls == calls


def test_05_single_precision() -> None:
    """The numbers of a float32 step, whichever path."""
    pair = Pair(warm=0, dtype="float32")
    found = [pair.step(0.25 * k, k % 5) for k in range(8)]
    other = Model()
    general: Any = mgjit.compile(dtype="float32")(other.step)
    general._choose_call = lambda kernel: general._call
    assert found == [general(0.25 * k, k % 5) for k in range(8)]
    assert other.seen() == pair.mine.seen()


def test_06_an_int_that_moves_on() -> None:
    """What was an int before the first call only, and is kept or returned as it was, is none later."""

    class Loss:
        before: Any = 0
        now: Any = 0

    def made(loss: Any) -> Callable[[float], Any]:
        def step(x: float) -> Any:
            old = loss.now
            loss.before = loss.now
            loss.now = loss.now * 0.5 + x
            return old

        return step

    mine, plain = Loss(), Loss()
    mine.before = mine.now = plain.before = plain.now = 0
    step, expected = mgjit.compile(made(mine)), made(plain)
    for k in range(6):
        assert repr(step(0.25 * k)) == repr(expected(0.25 * k))
        assert repr(vars(mine)) == repr(vars(plain))


def test_07_what_is_owed() -> None:
    """Is shown once the counter has moved, only then, and only once."""
    counter = array("q", [5])
    holder, copies, state = copied([1.0, 2.0], counter)
    copies.copy_in()
    state[0] = 9.0
    copies.owed[0] = 5
    copies.recover()  # the call has not come to the code
    assert holder["it"] == [1.0, 2.0]
    copies.owed[0] = 5
    counter[0] = 6
    copies.recover()
    assert holder["it"] == [9.0, 2.0]
    state[0] = 10.0
    counter[0] = 7  # another kernel of the step
    copies.recover()
    assert holder["it"] == [9.0, 2.0]


def test_08_owed_before_the_next_call() -> None:
    """The next call begins with what the one before has done."""
    counter = array("q", [1])
    holder, copies, state = copied(1.0, counter)
    state[0], copies.owed[0] = 3.0, 0
    copies.copy_in()
    assert (holder["it"], state[0]) == (3.0, 3.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_09_fork() -> None:
    """The child shows what another thread had not shown yet."""
    counter = array("q", [1])
    holder, copies, state = copied(1.0, counter)
    state[0], copies.owed[0] = 3.0, 0
    child = os.fork()
    if child == 0:
        os._exit(0 if holder["it"] == 3.0 and copies.owed[0] == -1 else 1)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0
    assert holder["it"] == 1.0


@pytest.mark.parametrize("order", ["ababab", "bababa", "aaaaaabbbbbbaaabbbab", "bbbbbbaaaaaabab"])
@pytest.mark.parametrize("slotted", [True, False])
def test_10_two_steps_over_the_same_objects(order: str, slotted: bool) -> None:
    """Copied in the step that knows few of them, in kernel memory in the one that knows many: as undecorated."""

    class Scalar:
        if slotted:
            __slots__ = ("data",)

        def __init__(self, data: float) -> None:
            self.data = data

    def made() -> tuple[Callable[[float], Any], Callable[[float], Any], list[Scalar]]:
        many = [Scalar(0.5 * k) for k in range(24)]
        few = many[20:]

        def narrow(x: float) -> Any:
            for scalar in few:
                scalar.data = scalar.data * 0.5 + x
            return sum(scalar.data for scalar in few)

        def wide(x: float) -> Any:
            for scalar in many:
                scalar.data = scalar.data * 0.25 + x
            return sum(scalar.data for scalar in many)

        return narrow, wide, many

    *functions, mine = made()
    *plain, expected = made()
    steps = [mgjit.compile(function) for function in functions]
    for k, letter in enumerate(order):
        number = "ab".index(letter)
        assert steps[number](0.1 * k) == plain[number](0.1 * k)
        assert [scalar.data for scalar in mine] == [scalar.data for scalar in expected]


def test_11_some_of_few_in_kernel_memory() -> None:
    """A step over few objects of which another one has moved some, not the first."""

    class Scalar:
        def __init__(self, data: float) -> None:
            self.data = data

    def made() -> tuple[Callable[[], Any], Callable[[], Any], list[Scalar]]:
        many = [Scalar(0.5 * k) for k in range(20)]
        few = [Scalar(7.5), many[3], Scalar(8.5)]

        def wide() -> Any:
            for scalar in many:
                scalar.data = scalar.data * 0.25 + 1.0
            return many[3].data * 1.0

        def narrow() -> Any:
            for scalar in few:
                scalar.data = scalar.data * 0.5 + 2.0
            return sum(scalar.data for scalar in few)

        return wide, narrow, few + many

    *functions, mine = made()
    *plain, expected = made()
    steps = [mgjit.compile(function) for function in functions]
    for k in range(12):
        assert steps[k % 2]() == plain[k % 2]()
        assert [scalar.data for scalar in mine] == [scalar.data for scalar in expected]


@COMPILED
@pytest.mark.parametrize("seconds", [-1.0, 1.0])
def test_12_threads(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call is lost, whoever makes it."""
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", seconds)
    counts = [0.0] * 20

    def plain(x: float) -> Any:
        for k in range(len(counts)):
            counts[k] += x
        return counts[0]

    step = mgjit.compile(plain)
    for _ in range(5):
        step(1.0)
    threads = [threading.Thread(target=lambda: [step(1.0) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2005.0] * 20
    assert step.stats.calls == 2005


def test_13_arguments_changed_in_place_in_a_loop() -> None:
    """One list for all rows is the same list again and again; other lists in other rows are refused."""

    def plain(xs: list[float], rate: float) -> float:
        for k in range(len(xs)):
            xs[k] = xs[k] * rate
        return sum(xs)

    step = mgjit.compile(plain)
    mine, expected, rates = [1.0, 2.0], [1.0, 2.0], [0.5, 0.25, 3.0]
    with pytest.raises(ColumnError, match=r"xs was \[1\.0, 2\.0\], is \[3\.0\].* changes xs in place.*\[xs\] \* n"):
        step.loop([mine, [3.0]], 0.5)
    assert mine == expected
    assert list(step.loop([mine] * 3, rates)) == [plain(expected, rate) for rate in rates]
    assert mine == expected


class Base:
    """With numbers in a list."""

    numbers: ClassVar[list[float]] = [1.0, 2.0]


def test_14_an_attribute_of_a_class_is_deleted() -> None:
    """Then that of the base class is meant; what is nowhere else is Python's own error."""
    derived: Any = type("Derived", (Base,), {"numbers": [5.0, 6.0]})

    @mgjit.compile(background=False, backend="python")
    def step(x: float) -> float:
        derived.numbers[0] += x
        return derived.numbers[0] * 2.0

    assert [step(1.0) for _ in range(4)] == [12.0, 14.0, 16.0, 18.0]
    del derived.numbers
    assert [step(1.0) for _ in range(3)] == [4.0, 6.0, 8.0]
    numbers = Base.numbers
    del Base.numbers
    with pytest.raises(AttributeError, match="numbers"):
        step(1.0)
    Base.numbers = numbers
    assert step(1.0) == 10.0
