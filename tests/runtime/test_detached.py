"""Parameters that are ordinary objects during a plain call."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.base.interruption import with_cleanup
from mgjit.engine.leaks import PlainCall
from mgjit.runtime import detached as module
from mgjit.runtime.detached import Detached, attach_all, attach_numbers, is_attached

#: So many that they are moved and not copied.
COUNT = 32


class Slotted:
    __slots__ = ("data", "grad")

    def __init__(self, data: float) -> None:
        self.data, self.grad = data, 0.0


class Derived(Value):
    """Of the user."""


def things(kind: type) -> tuple[Any, list[Any]]:
    """A step, and the parameters that it has moved."""
    if issubclass(kind, Value):
        found = [kind(0.5 + k) for k in range(COUNT)]

        def step(x: float) -> Any:
            loss = sum((p * x for p in found), Value(0.0))
            for p in found:
                p.grad = 0.0
            loss.backward()
            for p in found:
                p.data -= 0.1 * p.grad
            return loss
    else:
        found = [kind(0.5 + k) for k in range(COUNT)]

        def step(x: float) -> Any:
            loss = 0.0
            for p in found:
                loss += p.data * x
                p.grad = x
            for p in found:
                p.data -= 0.1 * p.grad
            return loss

    compiled = mgjit.compile(step)
    compiled(2.0)
    compiled(2.0)
    return compiled, found


class Attributes:
    def __init__(self, data: float) -> None:
        self.data, self.grad = data, 0.0


KINDS = [Value, Derived, Slotted, Attributes]


@pytest.mark.parametrize("kind", KINDS)
def test_01_ordinary_objects_for_a_while(kind: type) -> None:
    """With the numbers of the memory, which afterwards has theirs."""
    step, found = things(kind)
    numbers = [(p.data, p.grad) for p in found]
    detached = Detached(found)

    def plain() -> None:
        assert [type(p) for p in found] == [kind] * COUNT
        assert not any(map(is_attached, found))
        assert [(p.data, p.grad) for p in found] == numbers
        found[0].data, found[1].grad = 7.5, -2.5

    for _ in range(2):
        detached.during(plain)
        assert all(map(is_attached, found))
        assert [p.data for p in found] == [7.5, *(number for number, _ in numbers[1:])]
        assert found[1].grad == -2.5
        found[0].data, found[1].grad = numbers[0][0], numbers[1][1]
    expected = 0.0
    for p in found:
        expected += p.data * 3.0
    result = step(3.0)
    assert getattr(result, "data", result) == expected


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not issubclass(kind, Value)])  # which takes numbers only
def test_02_attributes_that_hold_no_numbers(kind: type) -> None:
    """They stay what they are, and kernels do not take them; a missing attribute becomes 0.0."""
    _, found = things(kind)

    def plain() -> None:
        found[0].grad, found[2].grad = None, "no number"
        del found[1].grad

    before = found[3].grad
    Detached(found).during(plain)
    assert [p.grad for p in found[:4]] == [None, 0.0, "no number", before]
    with pytest.raises(PlainCall, match="where a kernel has a number"):
        attach_numbers()
    found[2].grad = before
    with pytest.raises(PlainCall, match="None"):
        attach_numbers()
    found[0].grad = 0.5
    attach_numbers()
    assert [p.grad for p in found[:4]] == [0.5, 0.0, before, before]


@pytest.mark.parametrize("kind", KINDS)
def test_03_after_an_exception(kind: type) -> None:
    """They are attached, with what they held then."""
    _, found = things(kind)

    def plain() -> None:
        found[3].data = 0.25
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Detached(found).during(plain)
    assert all(map(is_attached, found))
    assert found[3].data == 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_04_what_has_changed_in_between(kind: type) -> None:
    """What was attached elsewhere, or is not attached, is looked at again."""
    _, found = things(kind)
    detached = Detached(found)
    detached.during(lambda: None)
    others = things(kind)[1]
    found[0] = others[0]
    detached._things[0] = others[0]
    detached._groups[0].things[0] = others[0]  # type: ignore[index]
    others[0].data = 3.5
    detached.during(lambda: setattr(others[0], "data", others[0].data + 1.0))
    assert others[0].data == 4.5


@pytest.mark.parametrize("kind", KINDS)
def test_05_calls_of_steps_attach_them(kind: type) -> None:
    """In the middle of a plain call; the rest of it goes on with attached objects."""
    step, found = things(kind)
    numbers = [p.data for p in found]

    def plain() -> None:
        found[0].data = 1.5
        step(1.0)
        assert all(map(is_attached, found))
        assert found[0].data == 1.5 - 0.1
        found[1].data = 9.0

    step._forget_call()
    Detached(found).meanwhile(plain)
    assert found[1].data == 9.0
    assert [p.data for p in found[2:]] == [number - 0.1 for number in numbers[2:]]


def test_06_other_threads() -> None:
    """While there are some, nothing is detached: they may run kernels."""
    _, found = things(Slotted)
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert Detached(found).meanwhile(lambda: all(map(is_attached, found)))
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", range(6))
def test_07_an_interruption_at_any_moment(kind: type, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves all numbers, and all objects attached."""
    _, found = things(kind)
    numbers = [(p.data, p.grad) for p in found]
    real, left = module.deque, [moment]

    def counting(*arguments: Any, **named: Any) -> Any:
        made = real(*arguments, **named)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(module, "deque", counting)
    with contextlib.suppress(KeyboardInterrupt):
        with_cleanup(lambda: Detached(found).during(lambda: None), attach_all)
    assert all(map(is_attached, found))
    assert [(p.data, p.grad) for p in found] == numbers


def test_08_a_step_whose_plain_calls_are_long(only_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detaches the parameters of its own kernels, and those of others where these make no quick calls meanwhile."""
    monkeypatch.setattr("mgjit.kernels.kernels.SECONDS_TO_DETACH", 0.0)
    step, found = things(Value)
    kernels = step._kernels
    kernels.earnings.note_plain("key", 1.0)
    assert len(kernels.detached(False)) == COUNT
    other = mgjit.compile(lambda x: found[0] * x)
    other(1.0)
    other(1.0)
    kernels._detached = None
    assert kernels.detached(False) is None
    assert set(map(id, found)) <= set(map(id, kernels.detached(True)._things))


@pytest.mark.parametrize("kind", KINDS)
def test_08_a_step_without_kernels_detaches_those_of_others(
    kind: type, only_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plain calls are as quick as without the other step, which then sees their numbers."""
    monkeypatch.setattr("mgjit.kernels.kernels.SECONDS_TO_DETACH", -1.0)  # however short a call is
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 1e6)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._MOST_UNLOOKED", 0)
    monkeypatch.setattr("mgjit.tensor.memory.Memory.exists", False)  # of other tests
    step, found = things(kind)
    before = found[0].data
    seen = []

    @mgjit.compile(background=True)
    def other(x: float) -> Any:
        seen.append(is_attached(found[0]))
        found[0].data += x
        return found[0].data

    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    assert [other(0.5), other(0.25)] == [before + 0.5, before + 0.75]
    assert seen == [False, False]
    step(1.0)
    assert found[0].data == before + 0.75 - 0.1


def test_09_detaching_twice_keeps_what_the_objects_hold() -> None:
    """What they got in between is newer than the memory of the kernel, which gets it when they are attached."""
    _, found = things(Value)
    detached = Detached(found)
    detached.until_attached()
    for k, thing in enumerate(found):
        thing.data = k / 8
    detached.until_attached()
    attach_all()
    assert all(map(is_attached, found))
    assert [thing.data for thing in found] == [k / 8 for k in range(len(found))]


def weighted(found: list[Any], x: float) -> float:
    """What the step of `things` returns, added up in its order."""
    loss = 0.0
    for p in found:
        loss += p.data * x
    return loss


@pytest.fixture
def alternating(only_thread: None, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, list[Any]]:
    """A step with quick calls, another one whose calls are plain, and the parameters of both."""
    monkeypatch.setattr("mgjit.kernels.kernels.SECONDS_TO_DETACH", -1.0)  # however short a call is
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 1e6)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._MOST_UNLOOKED", 0)
    monkeypatch.setattr("mgjit.tensor.memory.Memory.exists", False)  # of other tests
    step, found = things(Slotted)
    for _ in range(30):
        step(0.0)

    @mgjit.compile(background=True)
    def other(x: float, texts: Any = ()) -> Any:
        found[0].data += x
        return found[0].data

    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    return step, other, found


def test_10_they_stay_ordinary_objects_until_a_step_needs_their_memory(
    alternating: tuple[Any, Any, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one plain call to the next nothing is copied; quick calls then have the numbers of the objects."""
    step, other, found = alternating
    before = found[0].data
    other(0.5)
    assert not any(map(is_attached, found))
    monkeypatch.setattr(Detached, "_attach", lambda self: pytest.fail("attached"))
    other(0.25, ["of", ("two", None)])
    monkeypatch.undo()
    found[1].data, found[2].data = 3.0, -1.0
    expected = weighted(found, 2.0)
    assert step(2.0) == expected
    assert all(map(is_attached, found))
    assert (found[0].data, found[1].data, found[2].data) == (before + 0.75 - 0.2, 3.0 - 0.2, -1.0 - 0.2)
    assert step(0.0) == 0.0
    calls = step.stats.calls
    expected = weighted(found, 1.0)
    assert step.__call__(1.0) == expected
    assert step.stats.calls == calls + 1


def test_11_an_argument_may_hold_parameters(alternating: tuple[Any, Any, list[Any]]) -> None:
    """Then they are attached before the call is looked at."""
    _, other, found = alternating
    other(0.5)
    attached: list[bool] = []
    real = other._kernels.maker.plan
    other._kernels.maker.plan = lambda *given: (attached.append(is_attached(found[0])), real(*given))[1]
    for texts in (["a", found[:1]], ["a"]):
        other(0.25, texts)
    assert attached == [True, False]


def test_12_a_thread_that_begins_later_calls_the_step(alternating: tuple[Any, Any, list[Any]]) -> None:
    step, other, found = alternating
    other(0.5)
    found[3].data = 8.0
    thread = threading.Thread(target=step, args=(1.0,))
    thread.start()
    thread.join()
    assert all(map(is_attached, found))
    assert found[3].data == 8.0 - 0.1
