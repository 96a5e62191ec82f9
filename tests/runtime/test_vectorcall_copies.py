"""runtime/vectorcall_copies.py: quick calls copy the numbers of the user's objects as the generated functions do."""

from __future__ import annotations

import copy
import gc
import math
import random
import struct
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.runtime import fastcall
from tests.runtime.quick import use_extension


@pytest.fixture(autouse=True)
def extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is there, and calls that are short."""
    use_extension(monkeypatch)
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", math.inf)


def step_of(function: Any) -> Any:
    """A step that is compiled at once."""
    return mgjit.compile(function, background=False, verify="never")


class Slotted:
    """With a slot."""

    __slots__ = ("w",)

    def __init__(self) -> None:
        self.w = [0.5, -0.25]


def world() -> Any:
    """What steps change."""
    return SimpleNamespace(
        w=[0.1, -0.2, 0.3], rows=[[0.5, 0.25], [0.125, -1.0]], bias=0.5, count=0, total=0.0, history=[0.0, 0.0, 0.0],
        table={"scale": 0.75, "m": [0.0] * 20}, pair=([1.0, 2.0], [3.0]), slotted=Slotted(), visits=[0, 3, 5],
    )  # fmt: skip


def in_lists(own: Any, x: float, y: float) -> Any:
    own.w[0] += x * y
    own.w[2] -= 0.5 * own.w[1] * y
    return own.w[0] + own.w[2]


def in_rows(own: Any, x: float, y: float) -> Any:
    for row in own.rows:
        for k in range(2):
            row[k] -= 0.01 * x * (row[k] - y)
    return sum(own.rows[0])


def in_attributes(own: Any, x: float, y: float) -> Any:
    own.bias = 0.9 * own.bias + x
    own.count += 1
    own.slotted.w[1] += y
    return own.bias * own.count


def in_dicts(own: Any, x: float, y: float) -> None:
    own.table["scale"] *= 1.0 - 0.001 * x
    for k in range(20):
        own.table["m"][k] = 0.9 * own.table["m"][k] + y * k


def in_tuples(own: Any, x: float, y: float) -> Any:
    own.pair[0][1] -= x
    own.pair[1][0] += own.pair[0][1] * y
    return own.pair[1][0]


def new_lists(own: Any, x: float, y: float) -> Any:
    own.w = [w - 0.1 * (w * x - y) for w in own.w]
    own.total += own.w[0]
    return own.total


def constant(own: Any, x: float, y: float) -> str:
    own.total += x * y
    return "done"


def several(own: Any, x: float, y: float) -> Any:
    own.total += x * y
    own.count += 1
    return own.total, own.count, "done", own.total > y


def listed(own: Any, x: float, y: float) -> Any:
    own.bias -= 0.01 * x
    return [own.bias * x, own.bias * y]


def counts(own: Any, x: float, y: float) -> Any:
    own.visits[1] += 1
    own.visits[0] -= 2
    own.total += x * own.visits[1]
    return own.total


STEPS = [counts, several, listed, in_lists, in_rows, in_attributes, in_dicts, in_tuples, new_lists, constant]


def bits(thing: Any) -> Any:
    """Numbers by type and bits, but for those of nans, and containers of them."""
    if isinstance(thing, float):
        return struct.pack("d", thing) if thing == thing else "nan"
    if isinstance(thing, (list, tuple)):
        return type(thing), [bits(part) for part in thing]
    if isinstance(thing, dict):
        return {key: bits(part) for key, part in thing.items()}
    if isinstance(thing, SimpleNamespace):
        return bits(vars(thing))
    return bits(thing.w) if isinstance(thing, Slotted) else (type(thing), thing)


def pair_of(step: Any) -> tuple[Any, Any, Any, Any]:
    """Two worlds, the plain step over one, and a compiled one with a quick call over the other."""
    plain, own = world(), world()

    def call(x: Any, y: Any) -> Any:
        return step(own, x, y)

    compiled = step_of(call)
    for k in range(6):
        assert bits(compiled(0.1 * k, 0.3)) == bits(step(plain, 0.1 * k, 0.3))
    assert type(compiled.__call__).__name__ == "QuickCall"
    return plain, own, lambda x, y: step(plain, x, y), compiled


@pytest.mark.parametrize("step", STEPS)
def test_01_everything_is_as_after_the_plain_step(step: Any) -> None:
    plain, own, expected, compiled = pair_of(step)
    numbers = random.Random(3)
    for _ in range(300):
        x, y = numbers.choice([0.0, -0.0, 1e-320, numbers.gauss(0.0, 1.0)]), numbers.gauss(0.0, 1.0)
        assert bits(compiled(x, y)) == bits(expected(x, y))
        assert bits(own) == bits(plain)
    assert type(compiled.__call__).__name__ == "QuickCall"
    assert compiled.stats.all_calls == 306


def replace_list(own: Any) -> None:
    own.w = [1.0, 2.0, 3.0]


def share_list(own: Any) -> None:
    own.table["m"] = own.history = [0.5] * 20
    own.w = own.history[:3]


def make_int(own: Any) -> None:
    own.bias, own.total, own.w[1] = 2, 3, 5


def make_float(own: Any) -> None:
    own.count = 0.5


def make_large(own: Any) -> None:
    own.count = 2**53 + 1


def other_counts(own: Any) -> None:
    own.visits[1], own.visits[2] = 0.5, 7


def grow(own: Any) -> None:
    own.rows.append([7.0, 8.0])


def with_infinity(own: Any) -> None:
    own.w[0], own.bias, own.table["scale"] = math.inf, -math.inf, -0.0


@pytest.mark.parametrize(
    "change", [replace_list, share_list, make_int, make_float, make_large, other_counts, grow, with_infinity]
)
@pytest.mark.parametrize("step", STEPS)
def test_02_what_is_there_may_be_something_else(step: Any, change: Any) -> None:
    plain, own, expected, compiled = pair_of(step)
    change(plain)
    change(own)
    for k in range(5):
        assert bits(compiled(0.25, 0.1 * k)) == bits(expected(0.25, 0.1 * k))
        assert bits(own) == bits(plain)


@pytest.mark.parametrize(
    "change", [lambda own: delattr(own, "w"), lambda own: own.w.pop(), lambda own: own.w.__setitem__(0, "text")]
)
def test_03_what_python_raises_is_raised(change: Any) -> None:
    plain, own, expected, compiled = pair_of(in_lists)
    change(plain)
    change(own)
    with pytest.raises((AttributeError, IndexError, TypeError)) as theirs:
        expected(0.5, 0.25)
    with pytest.raises(theirs.type):
        compiled(0.5, 0.25)


def test_04_a_list_that_is_also_an_argument() -> None:
    """Whichever list it is: a step that adds to it reads what it has written."""

    def made() -> tuple[Any, Any]:
        state = [[0.5, 0.25], [1.0, 2.0]]
        held = SimpleNamespace(w=state[0])

        def step(xs: Any, y: Any) -> Any:
            held.w[0] += y
            return held.w[0] * xs[0] + xs[1]

        return state, step

    (theirs, expected), (mine, step) = made(), made()
    compiled = step_of(step)
    for _ in range(6):
        assert compiled(mine[1], 0.5) == expected(theirs[1], 0.5)
    assert type(compiled.__call__).__name__ == "QuickCall"
    for k in (1, 0, 0, 1, 0):
        assert compiled(mine[k], 0.5) == expected(theirs[k], 0.5)
        assert mine == theirs


def test_05_variables_and_globals() -> None:
    names: dict[str, Any] = {"total": 0.5}
    exec("def step(x):\n    global total\n    total = total * 0.5 + x\n    return total", names)  # noqa: S102
    others = dict(names)
    exec("def step(x):\n    global total\n    total = total * 0.5 + x\n    return total", others)  # noqa: S102
    compiled = step_of(names["step"])
    for k in range(30):
        assert compiled(0.1 * k) == others["step"](0.1 * k)
        assert names["total"] == others["total"]
    assert type(compiled.__call__).__name__ == "QuickCall"


def test_06_numbers_that_somebody_keeps_stay() -> None:
    """Floats are never changed in place, and lists that the step makes are new ones."""
    _plain, own, _expected, compiled = pair_of(new_lists)
    kept, before = own.w, copy.deepcopy(own.w)
    total, was = own.total, struct.pack("d", own.total)
    compiled(0.5, 0.25)
    assert own.w is not kept
    assert (kept, struct.pack("d", total)) == (before, was)


def test_07_nothing_is_kept_or_lost() -> None:
    _plain, _own, _expected, compiled = pair_of(new_lists)
    compiled(0.5, 0.25)
    gc.collect()
    before = sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else len(gc.get_objects())
    for k in range(2000):
        compiled(0.5, 0.001 * k)
    gc.collect()
    after = sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else len(gc.get_objects())
    assert abs(after - before) < 200


def test_08_calls_in_what_is_collected() -> None:
    """A collection that the making of a list causes may call the step itself."""
    plain, own, expected, compiled = pair_of(new_lists)

    class Cycle:
        def __init__(self, call: Any) -> None:
            self.me, self.call = self, call

        def __del__(self) -> None:
            self.call(0.25, 0.5)

    limits = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for k in range(200):
            Cycle(compiled)
            compiled(0.5, 0.001 * k)
    finally:
        gc.set_threshold(*limits)
    gc.collect()
    assert own.total == own.total  # no crash; in which order garbage is collected, nobody says
    own.w, own.total = plain.w[:], plain.total
    assert bits(compiled(0.5, 0.125)) == bits(expected(0.5, 0.125))


def test_09_threads() -> None:
    """Each call is done as a whole, while other threads make calls that are not quick."""
    own = SimpleNamespace(w=[0.0] * 8, calls=0)

    def step(x: Any) -> Any:
        for k in range(8):
            own.w[k] += x
        own.calls += 1
        return own.w[0] - own.w[7]

    compiled = step_of(step)
    for _ in range(6):
        compiled(1.0)
    assert type(compiled.__call__).__name__ == "QuickCall"
    found: list[float] = []

    def work(by_name: bool) -> None:
        found.extend(compiled(x=1.0) if by_name else compiled(1.0) for _ in range(3000))

    threads = [threading.Thread(target=work, args=(k % 2 == 0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {0.0}
    assert own.w == [12006.0] * 8
    assert own.calls == 12006
