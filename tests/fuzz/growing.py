"""Writes programs whose loops grow: triangles, loops that shrink, rows of different lengths, causal attention.

A program has some rows.  In each, loops run as often as a function of the row says, and perhaps loops inside of them as
often as a function of both; they read inputs, parameters, and what earlier rows have left.  `hunt.py --growing` runs
many of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable


def growing_program(seed: int) -> str:
    """The program of a seed."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rows = draw.randrange(4, 8)
        self.width = draw.choice([1, 2, 3, 4, 4, 5])
        self.lengths = [draw.randrange(draw.randrange(2), 8) for _ in range(self.rows)]
        self.trains = draw.random() < 0.7
        self.lines: list[str] = []
        self.names = 0

    def program(self) -> str:
        """The text."""
        draw = self.draw
        size = 2 * self.rows + 12
        body = [self._head(), *self._rows(), *self._end()]
        calls = []
        for _ in range(3):
            xs = [round(draw.uniform(-1.0, 1.0), 3) for _ in range(size)]
            calls.append(f"    ({draw.choice([0.1, 0.01])}, {xs}, {round(draw.uniform(-1.0, 1.0), 3)}),")
        return "\n".join(
            [
                "import mgjit",
                "",
                "",
                "def make():",
                f"    LENGTHS = {self.lengths}",
                f"    W = [mgjit.Value({round(draw.uniform(-0.6, 0.6), 3)} + 0.01 * k) for k in range(40)]",
                f"    M = [W[k * {self.width}:(k + 1) * {self.width}] for k in range({self.width})]",
                f"    S = mgjit.zeros({size})",
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

    def _head(self) -> str:
        total = self.draw.choice(["W[0]", "W[1] * y"] if self.trains else ["0.0", "y", "W[0]"])
        return f"total, kept, seen = {total}, [], []"

    def _rows(self) -> list[str]:
        """The loop over the rows, perhaps for some samples."""
        draw = self.draw
        lines = [f"for i in range({self.rows}):"]
        for _ in range(draw.randrange(1, 4)):
            lines += [f"    {line}" for line in draw.choice(self._kinds)(self)]
        lines.append("    " + draw.choice(["total = total + r", "total = total * 0.5 + r", "total = r - total"]))
        if draw.random() < 0.6:
            lines.append("    kept.append(r)")
        if draw.random() < 0.3:
            lines = [
                f"for n in range({draw.randrange(2, 5)}):",
                *(f"    {line}" for line in (["kept = []"] if "    kept.append(r)" in lines else [])),
                *(f"    {line}" for line in lines),
            ]
        return lines

    # ---- what a row may contain ------------------------------------------------------------------------

    def _count(self) -> str:
        """How often a loop is executed in row i."""
        n = self.rows
        return self.draw.choice(
            ["i + 1", "i + 1", "i", f"{n} - i", f"{n - 1} - i", "2 * i + 1", "LENGTHS[i]", "LENGTHS[i]", "3"]
        )

    def _factor(self, loop: str) -> str:
        """A number of an iteration of a loop in row i."""
        a = self.draw.randrange(4)
        return self.draw.choice(
            [f"x[{loop}]", f"x[i + {loop}]", "x[i]", f"W[{loop}]", f"W[i + {a}]", f"W[{a}]", f"S[{loop}]", "0.5", "y"]
        )

    def _term(self, loop: str) -> str:
        one, other = self._factor(loop), self._factor(loop)
        return self.draw.choice([f"{one} * {other}", f"{one} + {other} * 0.25", f"mgjit.tanh({one} * {other})", one])

    def _chain(self) -> list[str]:
        start = self.draw.choice(["0.0", "x[i]", "W[i]", "W[i] * y"])
        change = self.draw.choice(["r + {}", "r - {}", "r * 0.5 + {}", "mgjit.tanh(r + {})"])
        lines = [f"r = {start}", f"for j in range({self._count()}):"]
        if self.draw.random() < 0.4:
            lines.append(f"    q = {self._term('j')}")
            lines += self._inner("q")
            return [*lines, f"    r = {change.format('q')}"]
        return [*lines, f"    r = {change.format(self._term('j'))}"]

    def _inner(self, name: str) -> list[str]:
        count = self.draw.choice(["j + 1", "j", "i + 1", "3", "4"])
        return [f"    for k in range({count}):", f"        {name} = {name} {self.draw.choice('+-')} {self._term('k')}"]

    def _listed(self) -> list[str]:
        found = [f"a = [{self._term('j')} for j in range({self._count()})]"]
        if self.draw.random() < 0.5:
            found.append(f"a = [{self.draw.choice(['mgjit.exp(v * 0.1)', 'v * v', 'v - y'])} for v in a]")
        found.append(self.draw.choice(["r = sum(a)", "r = sum(a) * 0.5 + y", "r = sum(v * v for v in a)"]))
        return found

    def _earlier(self) -> list[str]:
        """A row that reads those before it."""
        return [f"r = sum((v * {self._factor('0')} for v in kept), {self.draw.choice(['y', 'x[i]', 'W[i]'])})"]

    def _attention(self) -> list[str]:
        key = self.draw.choice(["q", f"[x[i + c] * W[c] for c in range({self.width})]"])
        return [
            "q = [sum(w * x[i + c] for c, w in enumerate(row)) for row in M]",
            f"seen.append({key})",
            "e = [mgjit.exp(sum(a * b for a, b in zip(q, key)) * 0.1) for key in seen]",
            "t = sum(e)",
            "r = sum(v / t * key[0] for v, key in zip(e, seen))",
        ]

    def _dense(self) -> list[str]:
        return ["r = sum(mgjit.tanh(sum(w * x[i + c] for c, w in enumerate(row))) for row in M)"]

    _kinds: tuple[Callable[[_Writer], list[str]], ...] = (
        _chain, _chain, _chain, _listed, _listed, _earlier, _attention, _dense,
    )  # fmt: skip

    def _end(self) -> list[str]:
        lines = []
        if self.draw.random() < 0.3:
            lines += [f"for j in range({self.rows}):", "    S[j] = S[j] * 0.5 + x[j]"]
        if self.trains:
            lines += ["loss = total * total", "for p in W:", "    p.grad = 0.0", "loss.backward()"]
            lines += ["for p in W:", "    p.data -= lr * p.grad"]
        return [*lines, self.draw.choice(["return total", "return total, kept"])]
