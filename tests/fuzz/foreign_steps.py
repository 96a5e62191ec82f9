"""Writes programs that train something with an autograd class of their own, and know nothing of mgjit."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .foreign_classes import Choose, ClassWriter

_NUMBERS = ("0.5", "-1.5", "0.1", "2.0", "1.0", "3", "-0.0", "0.03")


class ForeignWriter:
    """One program: a class, and `make()`, which returns a step, what can be seen, and what happens between calls.

    Args:
        choose: a number below another one.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._class = ClassWriter(choose)
        self._d, self._g = self._class.data, self._class.gradient
        self._lines: list[str] = []
        self._nodes: list[str] = []
        self._lists: list[str] = []
        self._seen: list[str] = []
        self._made = 0

    def _one_of(self, things: Sequence[str]) -> str:
        return things[self._choose(len(things))]

    def _chance(self, n: int) -> bool:
        return self._choose(n) == 0

    def program(self) -> str:
        """The text."""
        self._count = 4 + self._choose(8) if self._chance(2) else 16 + self._choose(12)
        head = ["import math", "", f"IN_SETS = {self._class.in_sets}", ""]
        return "\n".join([*head, self._class.text(), "", *self._make(), "", *self._calls()]) + "\n"

    # ---- what is around the step --------------------------------------------------------------------

    def _numbers(self, count: int) -> str:
        draw = random.Random(self._choose(1000))
        return "[" + ", ".join(repr(round(draw.uniform(-1.2, 1.2), 3)) for _ in range(count)) + "]"

    def _make(self) -> list[str]:
        count, width = self._count, 2 + self._choose(2)
        self._width = width
        self._kind = self._one_of(["descent", "descent", "momentum", "adam", "clipped", "outside"])
        lines = ["class Net:", "    pass", "", "", "def make():"]
        lines += [f"    p = [P(number) for number in {self._numbers(count)}]"]
        rows = ", ".join(self._numbers(width) for _ in range(4))
        lines += [f"    table = [[P(number) for number in row] for row in [{rows}]]"]
        lines += ["    net = Net()", "    net.w = p[:3]", "    net.named = {'bias': p[3], 'rows': [p[0:2], p[2:4]]}"]
        if self._chance(3):
            lines.append("    net.tied = net.w[1]")
        else:
            lines.append(f"    net.tied = P({self._one_of(_NUMBERS)})")
        lines += ["    parameters = [*p, net.tied, *(q for row in table for q in row)]"]
        if self._chance(2):
            lines.append("    parameters = list(dict.fromkeys(parameters))")
        lines += ["    m = [0.0] * len(parameters)", "    v = [0.0 for _ in parameters]", "    net.t = 0", ""]
        lines += ["    def step(x, y, i, j):", *(f"        {line}" for line in self._body()), ""]
        lines += ["    def look():"]
        lines += [f"        return [[(q.{self._d}, q.{self._g}) for q in parameters], m, v, net.t]", ""]
        lines += ["    def host(k):", *(f"        {line}" for line in self._host()), ""]
        return [*lines, "    return step, look, host"]

    def _host(self) -> list[str]:
        lines = []
        if self._kind == "outside":
            lines += ["for q in parameters:", f"    if q.{self._g} is not None:"]
            lines += [f"        q.{self._d} -= 0.05 * q.{self._g}", f"        q.{self._g} = {self._class.empty}"]
        if self._chance(3):
            lines += [f"p[{self._choose(self._count)}].{self._d} = 0.25 * k"]
        if self._chance(4) and self._class.empty != "None":
            lines += [f"p[{self._choose(self._count)}].{self._g} += 0.5"]
        return lines or ["pass"]

    def _calls(self) -> list[str]:
        draw = random.Random(self._choose(1000))
        calls = [(draw.uniform(-1, 1), draw.uniform(-1, 1), draw.randrange(4), draw.randrange(4)) for _ in range(4)]
        return [f"CALLS = {calls!r}"]

    # ---- the step -------------------------------------------------------------------------------------

    def _body(self) -> list[str]:
        self._lines, self._nodes, self._lists, self._seen = [], [], [], []
        losses = [1, 1, 1, 2, 2, 3][self._choose(6)]
        loop = self._chance(8)
        for number in range(losses):
            if number and self._chance(2):
                self._nodes = [name for name in self._nodes if not self._chance(2)]
            for _ in range(2 + self._choose(6)):
                self._statement()
            self._loss(number)
            if number + 1 < losses:
                self._between()
        self._update("parameters")
        if loop and losses == 1:
            self._lines = ["for _ in range(2):", *(f"    {line}" for line in self._lines)]
        return [*self._lines, f"return [{', '.join(self._seen)}]"]

    def _new(self, text: str, is_list: bool = False) -> str:
        name = f"{'h' if is_list else 'n'}{self._made}"
        self._made += 1
        self._lines.append(f"{name} = {text}")
        (self._lists if is_list else self._nodes).append(name)
        return name

    def _node(self) -> str:
        if self._nodes and not self._chance(3):
            return self._nodes[-1 - self._choose(min(4, len(self._nodes)))]
        kinds = [f"p[{self._choose(self._count)}]"] * 3 + ["net.tied", "net.named['bias']", "net.w[1]"]
        kinds += [f"table[{self._one_of(['0', '3', 'i', 'i', 'j'])}][{self._choose(self._width)}]"]
        kinds += [f"{name}[{self._choose(2)}]" for name in self._lists[-2:]]
        return self._one_of(kinds)

    def _number(self) -> str:
        return self._one_of([*_NUMBERS, "x", "x", "y", "(x * y)"])

    def _list(self) -> str:
        kinds = ["p", "p[1:4]", "net.w", "table[i]", "table[j]", "table[2]", "net.named['rows'][1]", *self._lists * 2]
        return self._one_of(kinds)

    def _statement(self) -> None:
        a, b = self._node(), self._node()
        one, two = self._list(), self._list()
        kind = self._choose(17)
        if kind < 6:
            self._new(
                [
                    f"{a} * {b}",
                    f"{a} + {b}",
                    f"{a} - {b}",
                    f"{a} / ({b} * {b} + 0.5)",
                    f"{a}.larger({b})",
                    f"{a} * {a}",
                ][kind]
            )
        elif kind < 9:
            method = self._one_of(
                ["tanh", "relu", "sigmoid", "size", "wave", "squared", "strange", "exp", "log", "root"]
            )
            inner = {"exp": f"({a} * 0.3)", "log": f"({a} * {a} + 0.1)", "root": f"({a} * {a} + 0.2)"}.get(method, a)
            self._new(f"{inner}.{method}()")
        elif kind == 9:
            self._new(
                self._one_of([f"{a} * {self._number()}", f"{self._number()} - {a}", f"{self._number()} + {a}", f"-{a}"])
            )
        elif kind == 10:
            self._new(
                self._one_of(
                    [f"sum(q * r for q, r in zip({one}, {two}))", f"sum([q * r for q, r in zip({one}, {two})], K(0.0))"]
                )
            )
        elif kind == 11:
            self._new(f"[(q * {self._number()} + r).tanh() for q, r in zip({one}, {two})]", is_list=True)
        elif kind == 12:
            name = self._new(self._one_of(["K(0.0)", a]))
            self._lines += [
                f"for q in {one}:",
                f"    {name} = {self._one_of([f'{name} + q * q', f'{name} + q * {b}', f'{name} * 0.5 + q'])}",
            ]
        elif kind == 13:
            self._new(
                self._one_of(
                    [f"{a}.detached()", f"K({a}.{self._d})", f"{a} * {b}.{self._d}", f"K({a}.{self._d} * x) * {b}"]
                )
            )
        elif kind == 14:
            self._new(f"{a} + {b} + {a} + {self._node()} * {b}")
        elif kind == 15:
            self._new(f"({a} + {b}) + ({self._node()} + {self._node()})")
        elif self._class.has_style and self._lists and self._chance(2):
            self._new(f"{self._lists[-1]}[min(j, 1)]" if self._chance(3) else f"{self._lists[-1]}[(j > 1) * 1]")
        else:
            self._new(f"{a} - {a}" if self._chance(2) else f"{a} * K(x) + {b}")

    def _loss(self, number: int) -> None:
        last = self._nodes[-3:] or [self._node()]
        loss = f"loss{number}"
        self._lines.append(
            f"{loss} = {' + '.join(f'{name} * 0.7' for name in last)} + {self._node()} * {self._node()} * 0.01"
        )
        self._lines.append(f"{loss} = {self._one_of([loss, f'{loss} * {loss}', f'{loss}.tanh()'])} + K(0.0)")
        self._lines.append(f"{loss}.backward()")
        self._seen.append(f"{loss}.{self._d}")
        if self._chance(3):
            name = self._one_of(self._nodes or [loss])
            self._seen.append(f"{name}.{self._g}" if self._class.empty != "None" else f"{name}.{self._d}")
        if self._chance(3) and self._class.empty != "None":
            self._lines.append(f"kept{number} = [q.{self._g} for q in p]")
            self._seen.append(f"kept{number}")

    def _between(self) -> None:
        """Between two losses."""
        kind = self._choose(4)
        if kind == 0:
            self._lines += ["for q in parameters:", f"    q.{self._g} = {self._class.empty}"]
        elif kind == 1 and self._class.empty != "None":
            self._lines += [
                "for q in net.w:",
                f"    q.{self._d} -= 0.1 * q.{self._g}",
                f"    q.{self._g} = {self._class.empty}",
            ]
        elif kind == 2:
            self._lines += [f"{name}.{self._g} = {self._class.empty}" for name in self._nodes[:2] if self._chance(2)]

    def _update(self, those: str) -> None:
        d, g, kind = self._d, self._g, self._kind
        if kind == "outside":
            return
        lines = [f"for k, q in enumerate({those}):", f"    if q.{g} is not None:"]
        if kind == "clipped":
            total = f"sum([q.{g} * q.{g} for q in {those} if q.{g} is not None])"
            way = self._one_of(["min(1.0, 1.0 / (norm + 1e-6))", "1.0 if norm < 1.0 else 1.0 / norm"])
            self._lines += [f"norm = math.sqrt({total})", f"scale = {way}"]
            lines.append(f"        q.{d} -= 0.05 * (q.{g} * scale)")
        elif kind == "momentum":
            lines += [f"        m[k] = 0.9 * m[k] + q.{g}", f"        q.{d} -= 0.02 * m[k]"]
        elif kind == "adam":
            self._lines.append("net.t += 1")
            lines += [f"        m[k] = 0.9 * m[k] + 0.1 * q.{g}", f"        v[k] = 0.99 * v[k] + 0.01 * q.{g} ** 2"]
            lines += [
                f"        q.{d} -= 0.01 * m[k] / (1 - 0.9 ** net.t) / ((v[k] / (1 - 0.99 ** net.t)) ** 0.5 + 1e-3)"
            ]
        else:
            lines.append(f"        q.{d} {self._one_of(['-=', '+= -'])} 0.05 * q.{g}")
        self._lines += lines
        if not self._chance(4):
            self._lines += [f"for q in {those}:", f"    q.{g} = {self._class.empty}"]


def foreign_program(seed: int) -> str:
    """The program of a seed."""
    return ForeignWriter(random.Random(seed).randrange).program()
