"""Writes programs like those of growing.py whose number of rows is another one in each call: families of lengths.

The numbers of rows are drawn so that many programs have calls that share a kernel: some of six to eleven rows, then
others in any order, down to one row, and longer ones.  `hunt.py --families` runs many of them.
"""

from __future__ import annotations

import random

from tests.fuzz.growing import _Writer


def family_program(seed: int) -> str:
    """The program of a seed."""
    return _FamilyWriter(random.Random(f"families {seed}")).program()


class _Rows(int):
    """A number of rows that is written as a variable."""

    def __format__(self, specification: str) -> str:
        return "rows"

    def __sub__(self, other: int) -> str:  # type: ignore[override]
        return f"rows - {other}"


class _FamilyWriter(_Writer):
    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw)
        self.rows = _Rows(8)
        self.lengths = [3] * 20 if draw.random() < 0.6 else [draw.randrange(8) for _ in range(20)]

    def program(self) -> str:
        """The text."""
        draw = self.draw
        unit, more = draw.choice([(2, 12), (3, 10)])
        body = [f"rows = (len(x) - {more}) // {unit}", self._head(), *self._rows(), *self._end()]
        rows = [draw.randrange(6, 10), draw.randrange(7, 12), *(draw.randrange(1, 14) for _ in range(8))]
        if draw.random() < 0.3:
            draw.shuffle(rows)
        calls = []
        for count in rows:
            xs = [round(draw.uniform(-1.0, 1.0), 3) for _ in range(unit * count + more)]
            calls.append(f"    ({draw.choice([0.1, 0.01])}, {xs}, {round(draw.uniform(-1.0, 1.0), 3)}),")
        return "\n".join(
            [
                "import mgjit",
                "",
                "",
                "def make():",
                f"    LENGTHS = {self.lengths}",
                f"    W = [mgjit.Value({round(draw.uniform(-0.6, 0.6), 3)} + 0.01 * k) for k in range(60)]",
                f"    M = [W[k * {self.width}:(k + 1) * {self.width}] for k in range({self.width})]",
                "    S = mgjit.zeros(60)",
                "",
                "    def step(lr, x, y):",
                *(f"        {line}" for line in body if line),
                "",
                "    return step, W, [S]",
                "",
                "",
                "CALLS = [",
                *calls,
                "]",
                "",
            ]
        )
