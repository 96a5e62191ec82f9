"""Which line a message names where a step has left something."""

from __future__ import annotations

import pytest

from mgjit.tracing.source.leaving import line_that_fills

history: list[float] = []
table = {"loss": history}


class Trainer:
    def __init__(self) -> None:
        self.log: list[float] = []

    def note(self, loss: float) -> None:
        print(self.log, loss)
        self.log.append(loss)


def step(trainer: Trainer, loss: float) -> None:
    global total
    print(history, table)
    table["loss"][0] = loss
    history.append(
        loss,
    )
    total = loss


@pytest.mark.parametrize(("name", "function", "line"), [
    ("history", step, 5), ("table", step, 4), ("total", step, 8), ("log", Trainer.note, 3), ("loss", step, 4),
    ("print", step, None),
])  # fmt: skip
def test_the_first_line_that_may_do_it(name: str, function: object, line: int | None) -> None:
    code = step.__code__ if function is step else Trainer.note.__code__
    expected = "" if line is None else f"{code.co_filename}:{code.co_firstlineno + line - 1}"
    assert line_that_fills(name, [Trainer.note, step]) == expected  # type: ignore[list-item]
