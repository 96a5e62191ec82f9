"""Iterators and files that existed before a step are no constants of a kernel."""

from __future__ import annotations

import copy
import functools
import io
import itertools
import operator
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError


def line_of(file: Any) -> str:
    return str(file.readline())


def beginning_of(file: Any) -> str:
    return str(file.read(2))


@pytest.mark.parametrize("take", [line_of, next, beginning_of])
def test_02_lines_of_an_open_file(take: Callable[[Any], str], tmp_path: Path) -> None:
    """They are no constants of the kernel, and none is lost by the refusal."""
    (tmp_path / "numbers.txt").write_text("1\n2\n3\n")
    with open(tmp_path / "numbers.txt") as file:
        places = {"data": file}

        @mgjit.compile(background=False)
        def step(x: Any) -> Any:
            return x * float(take(places["data"]))

        with pytest.raises(TraceError, match=r"takes the next element of .*which existed before it"):
            step(1.0)
        assert places["data"] is file
        assert file.readline() == "1\n"


class Counted:
    """A node with a number of its own."""

    numbers = itertools.count(10)

    def __init__(self, data: Any) -> None:
        self.data, self.number = data, next(self.numbers)


@pytest.mark.parametrize("is_read", [False, True])
def test_03_a_trace_takes_nothing_from_a_count(monkeypatch: pytest.MonkeyPatch, is_read: bool) -> None:
    """Each call takes what plain Python takes, also where the trace is refused behind it."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    counter = itertools.count()
    other_name = counter
    weights = [1.0]

    @mgjit.compile(background=False, verify="never")
    def step(x: Any) -> Any:
        weights[0] += Counted(x).number + next(other_name) * x
        return weights[0] + (os.getpid() * 0 if is_read else 0), next(counter)

    first, total = next(Counted.numbers) + 1, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(5):
            total += first + k + 3 * k * 1.5
            assert step(1.5) == (total, 3 * k + 1)
            assert next(counter) == 3 * k + 2
    assert next(Counted.numbers) == first + 5


def partial_of(iterator: Any) -> Any:
    return functools.partial(next, iterator)


def bound(iterator: Any) -> Any:
    return iterator.__next__


def in_tuple(iterator: Any) -> Any:
    held = (iterator, 1)
    return lambda: next(held[0])


def of_two_names(iterator: Any) -> Any:
    again = iterator
    return lambda: next(again) if iterator is not None else 0.0


def hint(iterator: Any) -> Any:
    return lambda: operator.length_hint(iterator) + next(iterator)


def copied(iterator: Any) -> Any:
    return lambda: next(iterator) + next(copy.copy(iterator))


@pytest.mark.parametrize("way", [partial_of, bound, in_tuple, of_two_names, hint, copied])
@pytest.mark.parametrize("kind", [iter, itertools.cycle, lambda numbers: itertools.count(1)])
def test_04_iterators_behind_something(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[Any], Any], kind: Callable[[Any], Any]
) -> None:
    """Where nothing can take the place of an iterator, or the step asks for its state, plain Python makes the calls."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    numbers = [float(k) for k in range(12)]
    taken = way(plain := kind(numbers))
    expected = [2.0 * taken() for _ in range(5)]
    take = way(iterator := kind(numbers))

    @mgjit.compile(background=False, verify="never")
    def step(x: Any) -> Any:
        return x * take()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [step(2.0) for _ in range(5)] == expected
    assert next(iterator) == next(plain)


class Trainer:
    """Keeps its batches in iterators, from which it takes outside of the step."""

    def __init__(self) -> None:
        self.weights = [0.0, 1.0]
        self.batches = self.pairs([(1.0, 2.0), (3.0, 1.0)] * 9)
        self.zipped = zip(iter([1.0] * 50), itertools.count())

    def pairs(self, data: Any) -> Any:
        yield from data

    def next(self) -> Any:
        return next(self.batches), next(self.zipped)

    def train(self, x: Any, y: Any) -> Any:
        error = self.weights[0] * x + self.weights[1] - y
        self.weights[0] -= 0.1 * error * x
        return error


def test_05_iterators_that_a_step_leaves_alone() -> None:
    """They are no reason to run as plain Python, and no reason to trace again when the program takes from them."""
    trainer, plain = Trainer(), Trainer()

    @mgjit.compile(background=False)
    def step(x: Any, y: Any) -> Any:
        return trainer.train(x, y)

    for _ in range(6):
        (x, y), _ = trainer.next()
        assert ((x, y), _) == plain.next()
        assert step(x, y) == plain.train(x, y)
    assert trainer.weights == plain.weights
    assert (step.stats.traces, step.stats.calls) == (1, 6)


def test_06_files_whose_contents_a_step_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in a file is no constant of the kernel."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    out = io.StringIO()

    @mgjit.compile(background=False, verify="never")
    def step(x: Any) -> Any:
        return x * len(out.getvalue())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(4):
            out.write("a")
            assert step(2.0) == 2.0 * (k + 1)
