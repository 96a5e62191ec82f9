"""Steps that append to lists from outside: a log that grows is no reason to be plain, as long as nobody reads it."""

from __future__ import annotations

import threading
from array import array
from types import SimpleNamespace
from typing import Any, Callable

import pytest

import mgjit

HEAD = """\
from types import SimpleNamespace
w = [0.5, -0.25]
log, other, best = [], [], [9.0]
run = SimpleNamespace(last=[0.0], losses=[], by_name={"loss": [], "all": [[], []]})
def error(x):
    found = w[0] * x + w[1] - 0.125
    w[0] -= 0.05 * found * x
    w[1] -= 0.05 * found
    return found * found
"""

#: What a step does, and whether it is compiled.
STEPS = {
    "a number": ("log.append(error(x))", True),
    "to a list of an object": ("run.losses.append(error(x))", True),
    "to lists in a dict": ("run.by_name['loss'].append(error(x)); run.by_name['all'][1].append(x)", True),
    "to two lists": ("log.append(error(x)); other.append(w[0])", True),
    "a dict with a list": ("log.append({'loss': error(x), 'w': [*w], 'name': 'a'})", True),
    "extended": ("log.extend([error(x), 1, True])", True),
    "added in place": ("global log; log += [error(x), x]", True),
    "by a method under another name": ("add = log.append; add(error(x)); add(2)", True),
    "in a loop": ("for k in range(3): log.append(error(x) * k)", True),
    "what is returned as well": ("p = [error(x), x]; log.append(p); p[1] = 7.0; return p, p", True),
    "what is kept as well": ("run.last = [error(x)]; log.append(run.last)", True),
    "on one side": ("e = error(x)\n    if e < best[0]:\n        best[0] = e; log.append(('best', e))", True),
    "a text": ("log.append('called'); return error(x)", True),
    "and is read": ("log.append(error(x)); return sum(log[-2:])", False),
    "and is counted": ("log.append(error(x)); return len(log)", False),
    "and is shortened": ("log.append(error(x))\n    if len(log) > 3: log.pop(0)", False),
    "and its type is asked for": ("log.append(error(x) if type(log) is list else 0.0)", False),
    "and is returned": ("log.append(error(x)); return log", False),
    "and is compared": ("log.append(error(x)); return log is other", False),
    "an object": ("log.append(SimpleNamespace(e=error(x)))", False),
}


def made(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "logs"}
    exec(compile(f"{HEAD}def step(x):\n    {text}\n", f"<{text}>", "exec"), space)  # noqa: S102
    return space


def shown(space: dict[str, Any], result: Any) -> str:
    kept = [space[name] for name in ("w", "log", "other", "best", "run")]
    return repr((result, kept))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning", "ignore::mgjit.errors.SideEffectWarning")
def test_as_plain_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the list is emptied, or becomes another one, or has two names, between two calls."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    text, is_compiled = STEPS[name]
    theirs, mine = made(text), made(text)
    step = mgjit.compile(mine["step"], backend="python")
    calls = 0
    for k in range(24):
        for space in (theirs, mine):
            if k == 8:
                space["log"].clear()
            if k == 12:
                space["log"] = [1.0]
            if k == 16:
                space["log"] = space["other"]
            if k == 20:
                space["log"] = space["w"]
        x = (7 * k) % 5 / 4 - 0.5
        assert shown(mine, step(x)) == shown(theirs, theirs["step"](x)), k
        calls = step.stats.calls if k == 7 else calls
    assert (calls >= 6) is is_compiled


def plain_and_compiled(**options: Any) -> tuple[Any, Any, Any, Any]:
    spaces = [made("e = error(x); log.append(e); return e") for _ in range(2)]
    return spaces[0], spaces[1], spaces[0]["step"], mgjit.compile(spaces[1]["step"], backend="python", **options)


def test_rows_of_a_loop() -> None:
    theirs, mine, plain, step = plain_and_compiled()
    xs = array("d", [(7 * k) % 5 / 4 - 0.5 for k in range(30)])
    assert list(step.loop(xs)) == [plain(x) for x in xs]
    assert shown(mine, None) == shown(theirs, None)
    assert len(mine["log"]) == 30


def test_a_call_that_is_compared_appends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    theirs, mine, plain, step = plain_and_compiled()
    for k in range(12):
        assert step(k / 8) == plain(k / 8)
    assert shown(mine, None) == shown(theirs, None)
    assert step.stats.compared_calls
    assert not step.stats.mismatches


@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning")
def test_the_list_is_an_argument_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is read behind the append: not by a kernel that knows them as two."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    text = "log.append(x[0]); return sum(x) + len(x) * error(x[-1])"
    theirs, mine = made(text), made(text)
    step = mgjit.compile(mine["step"], backend="python")
    for k in range(12):
        results = []
        for space, call in ((theirs, theirs["step"]), (mine, step)):
            space["log"][:] = [1.0, 2.0]
            results.append(call(space["log"] if k % 3 == 2 else [0.5, float(k)]))
        assert results[0] == results[1]
        assert shown(mine, None) == shown(theirs, None)


def test_threads_lose_nothing() -> None:
    space = SimpleNamespace(**made("log.append(x * 2.0)"))
    step = mgjit.compile(space.step, backend="python")
    step(1.0)
    step(1.0)

    def work(number: int) -> None:
        for _ in range(50):
            step(float(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    run_all(threads)
    assert sorted(space.log) == sorted([2.0, 2.0] + [2.0 * n for n in range(4) for _ in range(50)])


def run_all(threads: list[threading.Thread]) -> None:
    act: Callable[[threading.Thread], None]
    for act in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            act(thread)
