"""Exceptions at lines of a call of an ensemble: all members have made the same whole number of steps, which is counted.

As tests/faults/robustness/injection.py does for steps.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.parallel import calls
from tests.faults.robustness.injection import KINDS, Lines, process

MEMBERS, ROWS = 3, 4
XS = [0.3, -0.2, 0.7, 0.1]
RATES = [0.1, 0.05, 0.02]


class Situation:
    """A step, its ensemble, and the call that is interrupted."""

    def __init__(self, options: dict[str, Any], is_plain: bool) -> None:
        self.weights = [Value(0.3 * k) for k in range(3)]
        self.moments, self.last, self.count = mgjit.zeros(3), [0.0, 0.0], 0
        self.rng, self.log = random.Random(4), [0]
        weights, moments, last, rng, log = self.weights, self.moments, self.last, self.rng, self.log

        def step(x: float, rate: float) -> Any:
            self.count += 1
            loss = (sum((w * x for w in weights), Value(0.0)) - rng.random()) ** 2
            for w in weights:
                w.grad = 0.0
            loss.backward()
            for k, w in enumerate(weights):
                moments[k] = 0.9 * moments[k] + w.grad
                w.data -= rate * moments[k]
            last[1] = x * 2.0
            if is_plain:
                log.append(len(log))
            return loss

        self.step = step
        self.ensemble = mgjit.ensemble(mgjit.compile(**options)(step), MEMBERS, init=self.begin, threads=2)

    def begin(self, k: int) -> None:
        """Let member k be another one."""
        self.weights[1].data = 1.0 + k
        self.rng.seed(k)

    def numbers(self) -> Any:
        """Everything that the step changes."""
        values = [(w.data, w.grad) for w in self.weights]
        return values, list(self.moments), list(self.last), self.count, self.rng.getstate(), list(self.log)

    def members(self) -> list[Any]:
        """The numbers of all members."""
        found = []
        for member in self.ensemble:
            with member:
                found.append(self.numbers())
        return found

    def call(self, number: int) -> Any:
        """The call of a row."""
        return self.ensemble(XS[number], mgjit.each(RATES))


def _loop(made: Situation) -> Any:
    return made.ensemble.loop(XS, mgjit.each(RATES))


#: For each situation: options, whether the step runs as plain Python, how many calls come before, and what is then
#: interrupted.
SITUATIONS: dict[str, tuple[dict[str, Any], bool, int, Callable[[Situation], Any]]] = {
    "the first call": ({}, False, 0, lambda made: made.call(0)),
    "the second call": ({}, False, 1, lambda made: made.call(1)),
    "a settled call": ({}, False, 3, lambda made: made.call(3)),
    "the first loop": ({}, False, 0, _loop),
    "the first call, plain Python": ({}, True, 0, lambda made: made.call(0)),
    "a loop, plain Python": ({}, True, 0, _loop),
    "a call of the Python backend": ({"backend": "python"}, False, 2, lambda made: made.call(2)),
}


def after(is_plain: bool) -> list[list[Any]]:
    """The numbers of all members after so many steps."""
    found = []
    for k in range(MEMBERS):
        alone = Situation({}, is_plain)
        alone.begin(k)
        numbers = [alone.numbers()]
        for x in XS:
            alone.step(x, RATES[k])
            numbers.append(alone.numbers())
        found.append(numbers)
    return [list(column) for column in zip(*found)]


def situation(name: str) -> Situation:
    """Just before the call."""
    options, is_plain, before, _ = SITUATIONS[name]
    made = Situation(options, is_plain)
    for number in range(before):
        made.call(number)
    return made


def interrupted(name: str, by: Lines, expected: Sequence[Any]) -> str:
    """Interrupt the call; what is wrong afterwards, or nothing."""
    made = situation(name)
    quiet, own = process(), made.numbers()
    with contextlib.suppress(*KINDS):
        by.run(lambda: SITUATIONS[name][3](made))
    where = f"{by.kind.__name__} at {by.where}: "
    if process() != quiet:
        return where + f"the process is {process()}"
    if made.numbers() != own:
        return where + "the step's own objects are others"
    done = made.ensemble.calls
    if made.members() != expected[done]:
        return where + f"{done} steps are counted, and the members are others"
    if done < ROWS:
        made.call(done)
        if made.members() != expected[done + 1]:
            return where + "the next call went wrong"
    return ""


@pytest.mark.filterwarnings("ignore::mgjit.errors.SideEffectWarning")
@pytest.mark.parametrize("name", SITUATIONS)
def test_01_at_lines_of_the_package(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The numbers are those of whole steps, the step's own objects are untouched, the next call is right."""
    monkeypatch.setattr(calls, "SECONDS_FOR_THREADS", 0.0)
    expected = after(SITUATIONS[name][1])
    situation(name)
    lines, made = Lines(), situation(name)
    lines.run(lambda: SITUATIONS[name][3](made))
    assert lines.count > 100
    chosen = random.Random(name).sample(range(1, lines.count + 1), 5)
    wrong = [interrupted(name, Lines(at, KINDS[at % len(KINDS)]), expected) for at in chosen]
    assert [text for text in wrong if text] == []
