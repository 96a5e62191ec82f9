"""What a peer is given and what it gives back.

A peer is a file `with_NAME.py` with three names: `PACKAGES`, the distributions it needs; `version()`; and
`forms(problem)`, which returns the ways in which this peer runs the workload, each a `Form`, or raises `Unsupported`
with the reason why it cannot.  Peers run in processes of their own (`serve.py`), so nothing here imports mgjit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable


class Unsupported(Exception):
    """This peer does not do that; the text says why."""


@dataclass
class Problem:
    """A workload as plain data.

    Attributes:
        name: "W1" to "W6x16".
        parameters: initial weights, in the order of `model.parameters()`.
        calls: arguments of the calls, as the step of mgjit gets them.
        single: whether numbers are float32.
        mnist, names: the sources, for a peer that makes the workload itself.
        options: anything a peer is asked for beside that.
    """

    name: str
    parameters: list[float]
    calls: list[tuple[Any, ...]]
    single: bool
    mnist: str | None = None
    names: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        """The name of the number type in numpy and its like."""
        return "float32" if self.single else "float64"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths of the layers; empty for a transformer."""
        return SIZES.get(self.name, ())

    @property
    def documents(self) -> int:
        """How many documents of equal length a step has."""
        return 16 if self.name == "W6x16" else 1

    @property
    def adam(self) -> tuple[float, float] | None:
        """The betas, or None for plain descent."""
        return {"W5": (0.9, 0.999), "W6": (0.85, 0.99), "W6x16": (0.85, 0.99)}.get(self.name)


SIZES = {"W1": (2, 4, 1), "W2": (2, 16, 16, 1), "W3": (784, 50, 10), "W4": (784, 50, 10), "W5": (4, 64, 64, 2)}

WIDTH, HEADS, BLOCK, VOCABULARY = 16, 4, 16, 27
#: Rows and columns of the matrices of microgpt, in the order of its parameters.
MATRICES = {
    "letters": (VOCABULARY, WIDTH),
    "places": (BLOCK, WIDTH),
    "out": (VOCABULARY, WIDTH),
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "mix": (WIDTH, WIDTH),
    "expand": (4 * WIDTH, WIDTH),
    "contract": (WIDTH, 4 * WIDTH),
}

ADAM_EPSILON = 1e-8
L2 = 1e-4


class Form:
    """A way to run steps, one after the other, from the initial weights on.

    Args:
        prepared: given how many steps, returns a function that runs as many and returns losses (the last at least).
            What it does before that is not timed.
        round_to: steps are run in multiples of this.
    """

    def __init__(self, prepared: Callable[[int], Callable[[], Sequence[Any]]], round_to: int = 1) -> None:
        self._prepared = prepared
        self.round_to = round_to

    def losses(self, count: int) -> list[float]:
        """Of the next steps, one at a time."""
        return [float(self._prepared(1)()[-1]) for _ in range(count)]

    def seconds(self, count: int) -> float:
        """A step, on average over the next `count`."""
        run = self._prepared(count)
        started = time.perf_counter()
        float(run()[-1])  # where results come later, this waits for the last
        return (time.perf_counter() - started) / count


def per_call(step: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Form:
    """One Python call a step."""
    rows = _endless(calls)

    def prepared(count: int) -> Callable[[], Sequence[Any]]:
        chosen = [next(rows) for _ in range(count)]

        def run() -> Sequence[Any]:
            for arguments in chosen:
                loss = step(*arguments)
            return (loss,)

        return run

    return Form(prepared, len(calls) if _differ(calls) else 1)


def in_loop(
    loop: Callable[[list[tuple[Any, ...]]], Callable[[], Sequence[Any]]], calls: Sequence[tuple[Any, ...]]
) -> Form:
    """Many steps in one call; `loop` gets the rows beforehand and may arrange them as it likes."""
    rows = _endless(calls)
    return Form(lambda count: loop([next(rows) for _ in range(count)]), len(calls) if _differ(calls) else 1)


def _endless(calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    while True:
        yield from calls


def _differ(calls: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a step's work depends on which call it is: then whole rounds of them are compared."""
    return len({getattr(call[0], "shape", None) or len(call[0]) for call in calls}) > 1
