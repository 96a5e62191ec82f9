"""Writes programs over sequences: embeddings and positions, attention with heads, matrices that are chosen at run time.

They compute with plain floats, with mgjit.Value, or with an autograd class of their own, forward only or as training
steps.  Several indices that are known only at run time choose in one loop, also matrices that are written in between;
steps return one thing or several.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from .foreign_classes import Choose, ClassWriter

_FLOATS = """P = K = float


def tanh(x):
    return math.tanh(x)


def exp(x):
    return math.exp(x)


def relu(x):
    return x if x > 0.0 else 0.0
"""
_METHODS = """def tanh(x):
    return x.tanh()


def exp(x):
    return x.exp()


def relu(x):
    return x.relu()
"""


class SequenceWriter:
    """Writes one program: `make()` returns a step, what can be seen, and what happens between calls.

    Args:
        choose: a number below another one.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._engine = self._one_of(["float", "float", "Value", "class", "class"])
        self._class = ClassWriter(choose)
        self._d, self._g = ("data", "grad") if self._engine == "Value" else (self._class.data, self._class.gradient)
        self._empty = "0.0" if self._engine == "Value" else self._class.empty
        self._heads, self._part = self._one_of(["1", "2", "2", "3"]), 1 + choose(4)
        self._width = int(self._heads) * self._part
        self._length, self._count, self._words = 1 + choose(7), 2 + choose(3), 3 + choose(5)
        self._pairs = 1 + choose(3)
        self._trains = self._engine != "float" and not self._chance(3)
        self._lines: list[str] = []
        self._made: list[str] = []

    def _one_of(self, things: Sequence[str]) -> str:
        return things[self._choose(len(things))]

    def _chance(self, n: int) -> bool:
        return self._choose(n) == 0

    def program(self) -> str:
        """The text."""
        # A chosen Value is a node of its own, whose gradient is added to the table's at once:
        # docs/reference/differences.md.
        in_sets = (self._engine == "class" and self._class.in_sets) or (self._engine == "Value" and self._trains)
        engine = {"float": _FLOATS, "Value": "from mgjit import Value as P\n\nK = P\n\n\n" + _METHODS}
        text = engine.get(self._engine) or self._class.text() + "\n\n" + _METHODS
        head = ["import math", "", f"IN_SETS = {in_sets}", "", text]
        return "\n".join([*head, "", *self._make(), "", "", *self._calls()]) + "\n"

    # ---- what is around the step ----------------------------------------------------------------------

    def _table(self, rows: int, columns: int) -> str:
        draw = random.Random(self._choose(1000))
        numbers = [[round(draw.uniform(-0.7, 0.7), 3) for _ in range(columns)] for _ in range(rows)]
        return f"[[P(x) for x in row] for row in {numbers!r}]"

    def _make(self) -> list[str]:
        d = self._width
        lines = ["def make():", f"    W = [{', '.join(self._table(d, d) for _ in range(self._count))}]"]
        tied = self._chance(4)
        lines.append(f"    U = {'W' if tied else f'[{self._table(d, d)} for _ in range({self._count})]'}")
        lines += [f"    E = {self._table(self._words, d)}", f"    POSITIONS = {self._table(self._length + 1, d)}"]
        lines += [f"    B = {self._table(self._count, d)}", f"    HEAD = {self._table(self._words, d)}"]
        if self._engine == "float" and self._chance(2):
            lines += ["    for t in (*W, *U, E, B):", "        for row in t:", "            row[0] = 0.25"]
        lines.append(f"    tables = [*W, {'' if tied else '*U, '}E, POSITIONS, B, HEAD]")
        lines += ["    parameters = [q for table in tables for row in table for q in row]", ""]
        lines += ["    def linear(w, x):", f"        return {self._linear()}", ""]
        lines += ["    def step(tokens, pairs, experts, x):", *(f"        {line}" for line in self._body()), ""]
        lines += ["    def look():"]
        if self._engine == "float":
            lines.append("        return tables")
        else:
            lines.append(f"        return [(q.{self._d}, q.{self._g}) for q in parameters]")
        return [*lines, "", "    def host(k):", "        pass", "", "    return step, look, host"]

    def _linear(self) -> str:
        return self._one_of([
            "[sum(a * b for a, b in zip(row, x)) for row in w]",
            f"[sum(w[i][j] * x[j] for j in range({self._width})) for i in range({self._width})]",
            f"[sum(w[j][i] * x[j] for j in range({self._width})) for i in range({self._width})]",
        ])  # fmt: skip

    def _calls(self) -> list[str]:
        draw = random.Random(self._choose(1000))

        def call() -> tuple[object, ...]:
            tokens = [draw.randrange(self._words) for _ in range(self._length)]
            pairs = [(draw.randrange(self._count), draw.randrange(self._count)) for _ in range(self._pairs)]
            experts = [draw.randrange(self._count) for _ in range(self._length)]
            return tokens, pairs, experts, [round(draw.uniform(-1, 1), 3) for _ in range(self._width)]

        return [f"CALLS = {[call() for _ in range(4)]!r}"]

    # ---- the step -------------------------------------------------------------------------------------

    def _body(self) -> list[str]:
        self._lines, self._made = [], []
        self._lines.append(f"h = {self._embedding()}")
        forms = [self._attention, self._chosen_layers, self._experts, self._in_place, self._residual, self._chosen_sums]
        for _ in range(1 + self._choose(3)):
            forms[self._choose(len(forms))]()
        self._loss()
        return [*self._lines, f"return {self._result()}"]

    def _embedding(self) -> str:
        return self._one_of([
            "[[a + b for a, b in zip(E[t], POSITIONS[i])] for i, t in enumerate(tokens)]",
            "[[a * b for a, b in zip(E[t], x)] for t in tokens]",
            f"[[E[tokens[i]][j] + POSITIONS[i][j] * 0.5 for j in range({self._width})] for i in range({self._length})]",
            f"[[a * x[0] + b for a, b in zip(POSITIONS[i], B[0])] for i in range({self._length})]",
        ])  # fmt: skip

    def _attention(self) -> None:
        d, n = self._part, self._length
        whose = [self._one_of(["W", "U"]) for _ in range(3)]
        which = [self._one_of(["0", "1", "pairs[0][0]", "experts[0]"]) for _ in range(3)]
        names = self._one_of(["q k v", "h h h", "q k k"]).split()
        for name, table, index in zip(names, whose, which):
            if name != "h":
                self._lines.append(f"{name} = [linear({table}[{index}], row) for row in h]")
        q, k, v = names
        seen = self._one_of(["i + 1", "i + 1", str(n)])
        scale = self._one_of(["", " * 0.5", f" / {d}**0.5"])
        softmax = [
            ["e = [exp(one) for one in s]", "z = sum(e)", f"s = [one * {self._inverse('z')} for one in e]"],
            ["total = sum(s) * 0.1", "s = [one + total for one in s]"],
            [],
        ][self._choose(3)]
        column = f"head * {d} + c"
        lines = [f"for head in range({self._heads}):"]
        if self._chance(2):
            product = f"sum({q}[i][{column}] * {k}[j][{column}] for c in range({d}))"
            lines += [f"    s = [{product}{scale} for j in range({seen})]"]
        else:
            part = f"[head * {d} : head * {d} + {d}]"
            lines += [f"    mine = {q}[i]{part}", f"    theirs = [row{part} for row in {k}[: {seen}]]"]
            lines += [f"    s = [sum(a * b for a, b in zip(mine, row)){scale} for row in theirs]"]
        lines += [f"    {line}" for line in softmax]
        total = f"sum(s[j] * {v}[j][{column}] for j in range({seen}))"
        lines.append(
            f"    out += [{total} for c in range({d})]"
            if self._chance(2)
            else f"    for c in range({d}):\n            {' ' * 8}out.append({total})"
        )
        self._lines += ["attended = []", f"for i in range({n}):", "    out = []", *(f"    {line}" for line in lines)]
        last = "out" if self._chance(2) else "linear(U[1], out)"
        self._lines += [f"    attended.append({last})"]
        self._lines.append(
            self._one_of(["h = attended", "h = [[a + b for a, b in zip(r, s)] for r, s in zip(h, attended)]"])
        )

    def _inverse(self, name: str) -> str:
        return f"(1.0 / {name})" if self._engine == "float" else f"(K(1.0) / {name})"

    def _layer(self, index: str, row: str) -> str:
        table, d = self._one_of(["W", "W", "U"]), self._width
        total = self._one_of([
            f"sum({table}[{index}][i][j] * {row}[j] for j in range({d}))",
            f"sum({table}[{index}][j][i] * {row}[j] for j in range({d}))",
            f"sum(a * b for a, b in zip({table}[{index}][i], {row})) + B[{index}][i]",
        ])  # fmt: skip
        function = self._one_of(["tanh", "tanh", "relu", ""])
        return f"[{function}({total}) for i in range({d})]"

    def _chosen_layers(self) -> None:
        """One matrix after the other, each chosen by an index of its own."""
        self._lines += ["for a, b in pairs:", f"    h = [{self._layer('a', 'row')} for row in h]"]
        if self._chance(2):
            self._lines.append(f"    h = [{self._layer('b', 'row')} for row in h]")

    def _experts(self) -> None:
        """Another matrix for each position."""
        self._lines.append(f"h = [{self._layer('e', 'row')} for e, row in zip(experts, h)]")

    def _chosen_sums(self) -> None:
        d = self._width
        total = self._one_of([f"sum(w[i][j] * x[j] for j in range({d}))", "sum(a * b for a, b in zip(w[i], h[0]))"])
        self._lines += ["sums = []", "for pair in pairs:", f"    c = [0.0] * {d}", "    for e in pair:"]
        self._lines += [f"        w = {self._one_of(['W', 'U'])}[e]", f"        for i in range({d}):"]
        self._lines += [f"            c[i] = c[i] + {total}", "    sums.append(c)"]
        self._lines.append("h = [[a + b * 0.3 for a, b in zip(row, sums[-1])] for row in h]")

    def _in_place(self) -> None:
        """Write a matrix that was chosen, and will be."""
        if self._engine != "float":
            self._residual()
            return
        d = self._width
        place = self._one_of([
            "W[pairs[0][0]][k][k]", "W[experts[-1]][0][k]", "B[experts[0]][k]", "U[pairs[-1][1]][k][0]", "W[1][k][0]",
        ])  # fmt: skip
        self._lines += [f"for k in range({d}):", f"    {place} {self._one_of(['-=', '+=', '='])} h[0][k] * 0.1"]

    def _residual(self) -> None:
        form = self._one_of([
            "h = [[a + b for a, b in zip(row, x)] for row in h]",
            "h = [[a * 0.5 + b for a, b in zip(row, h[0])] for row in h]",
            "h = [linear(W[0], row) for row in h]",
            "h = [[tanh(a + 0.0 * b) for a, b in zip(row, x)] for row in h]",
            "h = h[::-1]",
        ])  # fmt: skip
        self._lines.append(form)

    def _loss(self) -> None:
        form = self._choose(4)
        if form == 0 and (self._engine == "float" or (self._engine == "class" and self._class.has_style)):
            self._lines += ["loss = K(0.0)", "for i, t in enumerate(tokens):"]
            self._lines += ["    scores = [exp(sum(a * b for a, b in zip(row, h[i]))) for row in HEAD]"]
            self._lines += [f"    loss = loss + scores[t] * {self._inverse('sum(scores)')}"]
        elif form == 1:
            self._lines.append("loss = sum(a * a for row in h for a in row)")
        elif form == 2:
            self._lines.append("loss = sum(sum(a * b for a, b in zip(row, HEAD[0])) for row in h)")
        else:
            self._lines += ["loss = K(0.0)", "for row in h:", "    for a, b in zip(row, x):"]
            self._lines += ["        loss = loss + (a - b) * (a - b)"]
        self._lines.append("loss = loss * 0.1 + K(0.0)")
        if self._trains:
            d, g = self._d, self._g
            self._lines += ["loss.backward()", "for q in parameters:", f"    if q.{g} is not None:"]
            self._lines += [f"        q.{d} -= 0.02 * q.{g}", f"        q.{g} = {self._empty}"]

    def _result(self) -> str:
        loss = "loss" if self._engine == "float" else f"loss.{self._d}"
        last = "h[-1]" if self._engine == "float" else f"[q.{self._d} for q in h[-1]]"
        rows = "h" if self._engine == "float" else f"[[q.{self._d} for q in row] for row in h]"
        return self._one_of([
            loss, f"{loss}, {last}", f"[{loss}, {rows}]", "{'loss': " + loss + ", 'rows': (" + rows + ", 1)}",
            f"({loss}, None, {last}, x[0])", rows,
        ])  # fmt: skip


def sequence_program(seed: int) -> str:
    """The program of a seed."""
    return SequenceWriter(random.Random(seed).randrange).program()
