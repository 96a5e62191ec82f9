"""Writes autograd classes as people write them, each another one.

What differs: where operands are kept and in which order nodes are visited, closures or local derivatives, slots or a
dict, what a gradient is at first, how it is added to, which operations there are and how their derivatives are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

Choose = Callable[[int], int]


class Operation(NamedTuple):
    """A method: its name, lines before, the number, and for each operand the factor, or `/` and the divisor."""

    name: str
    before: str
    number: str
    factors: tuple[str, ...]


#: Each operation in the ways in which it is written; `a` and `b` are the numbers, `n` the result.
BINARY = {
    "__add__": [Operation("__add__", "", "a + b", ("1.0", "1.0")), Operation("__add__", "", "a + b", ("1", "1"))],
    "__sub__": [Operation("__sub__", "", "a - b", ("1.0", "-1.0"))],
    "__mul__": [Operation("__mul__", "", "a * b", ("b", "a"))],
    "__truediv__": [
        Operation("__truediv__", "", "a / b", ("1.0 / b", "-a / (b * b)")),
        Operation("__truediv__", "", "a / b", ("1 / b", "-a / b**2")),
        Operation("__truediv__", "", "a / b", ("/b", "-n / b")),
        Operation("__truediv__", "r = 1.0 / b", "a * r", ("r", "-a * r * r")),
    ],
    "larger": [
        Operation("larger", "", "max(a, b)", ("1.0 if a >= b else 0.0", "0.0 if a >= b else 1.0")),
        Operation("larger", "", "a if a > b else b", ("float(a > b)", "float(a <= b)")),
    ],
}
UNARY = {
    "tanh": [
        Operation("tanh", "", "math.tanh(a)", ("1 - n**2",)),
        Operation("tanh", "", "math.tanh(a)", ("1.0 - n * n",)),
        Operation("tanh", "e = math.exp(2 * a)", "(e - 1) / (e + 1)", ("1 - n**2",)),
    ],
    "exp": [
        Operation("exp", "", "math.exp(a)", ("n",)),
        Operation("exp", "", "math.exp(a)", ("math.exp(a)",)),
    ],
    "log": [
        Operation("log", "", "math.log(a)", ("1 / a",)),
        Operation("log", "", "math.log(a)", ("/a",)),
    ],
    "root": [
        Operation("root", "", "math.sqrt(a)", ("0.5 / n",)),
        Operation("root", "", "a**0.5", ("0.5 * a**-0.5",)),
    ],
    "relu": [
        Operation("relu", "", "0 if a < 0 else a", ("(n > 0)",)),
        Operation("relu", "", "max(0.0, a)", ("1.0 if a > 0 else 0.0",)),
        Operation("relu", "", "a if a > 0 else 0.01 * a", ("1.0 if a > 0 else 0.01",)),
    ],
    "sigmoid": [Operation("sigmoid", "", "1 / (1 + math.exp(-a))", ("n * (1 - n)",))],
    "size": [Operation("size", "", "abs(a)", ("1.0 if a >= 0 else -1.0",))],
    "wave": [Operation("wave", "", "a - a * a * a / 6", ("1 - a * a / 2",))],
    "squared": [
        Operation("squared", "", "a * a", ("2 * a",)),
        Operation("squared", "", "a**2", ("2 * a",)),
        Operation("squared", "", "a**2", ("a * 2.0",)),
    ],
    "strange": [Operation("strange", "", "a * 0.7 + 0.1", ("a * 0.3",))],  # no derivative at all
    "__neg__": [Operation("__neg__", "", "-a", ("-1.0",)), Operation("__neg__", "", "-a", ("-1",))],
}


#: Topological orders without recursion, as people write them, into `order`; OF(node) stands for its operands.
_STACKS = {
    "iterators": """pending = [(self, iter(OF(self)))]
seen.add(id(self))
while pending:
    node, rest = pending[-1]
    for operand in rest:
        if id(operand) not in seen:
            seen.add(id(operand))
            pending.append((operand, iter(OF(operand))))
            break
    else:
        order.append(node)
        pending.pop()""",
    "peeking": """pending = [self]
while pending:
    node = pending[-1]
    rest = [operand for operand in OF(node) if id(operand) not in seen]
    if id(node) in seen:
        pending.pop()
    elif rest:
        pending.append(rest[-1])
    else:
        seen.add(id(node))
        order.append(node)
        pending.pop()""",
    "positions": """pending, at = [self], [0]
seen.add(id(self))
while pending:
    node, k = pending[-1], at[-1]
    operands = list(OF(node))
    if k < len(operands):
        at[-1] += 1
        if id(operands[k]) not in seen:
            seen.add(id(operands[k]))
            pending.append(operands[k])
            at.append(0)
    else:
        order.append(pending.pop())
        at.pop()""",
    "counts": """users = dict()
found = [self]
for node in found:
    for operand in OF(node):
        if id(operand) not in users:
            users[id(operand)] = 0
            found.append(operand)
        users[id(operand)] += 1
ready = [self]
while ready:
    node = ready.pop()
    order.append(node)
    for operand in OF(node):
        users[id(operand)] -= 1
        if users[id(operand)] == 0:
            ready.append(operand)
order.reverse()""",
}


class ClassWriter:
    """Writes one class.

    Attributes:
        data, gradient: the names of the attributes.
        empty: what gradients are at first, as source.
        in_sets: whether operands are in sets, so that the order is nobody's.
        has_style: whether nodes can be chosen by a number.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.data = self._one_of(["data", "data", "value", "x"])
        self.gradient = self._one_of(["grad", "grad", "grad", "g"])
        self.empty = self._one_of(["0", "0", *["0.0"] * 7, "None"])
        self._slots = self._chance(3)
        self._container = "tuple" if self._chance(2) else self._one_of(["list", "set", "dict", "pair"])
        self._closures = self._container == "set" or self._chance(2)
        self._walk = self._one_of([*["recursive", "iterative"] * 4, *_STACKS, *_STACKS, "tape", "numbered"])
        self._zeroes = self.empty != "None" and self._chance(6)
        self._backwards = self._chance(4)  # the second operand first
        self._extra = self._one_of(["", "", "label", "count", "depth"])
        self._returns = self._one_of(["", "", "", "return self", "return len(order)"])
        self.in_sets = self._container == "set" and self._walk != "tape"
        self.has_style = not self._closures and self._container in ("tuple", "list") and self._walk == "recursive"
        self.has_style = self.has_style and not (self._zeroes or self._returns or self._backwards)
        self.has_style = self.has_style and self.gradient == "grad" and self.empty != "None"

    def _one_of(self, things: Sequence[str]) -> str:
        return things[self._choose(len(things))]

    def _chance(self, n: int) -> bool:
        return self._choose(n) == 0

    def text(self) -> str:
        """The class K, and P, which parameters are of."""
        lines = ["TAPE = []", "", "", "class K:"]
        names = [self.data, self.gradient, "operands", "factors" if not self._closures else "push"]
        names += [self._extra] if self._extra in ("label", "depth") else []
        names += ["number"] if self._walk == "numbered" else []
        if self._slots:
            lines.append(f"    __slots__ = {tuple(names)!r}")
        if self._extra == "count":
            lines.append("    count = 0")
        lines += self._initialiser()
        operations = [ways[self._choose(len(ways))] for ways in [*BINARY.values(), *UNARY.values()]]
        for operation in operations:
            lines += ["", *self._method(operation)]
        lines += ["", "    __radd__ = __add__", "    __rmul__ = __mul__", ""]
        lines += ["    def __rsub__(self, other):", "        return K(other) - self", ""]
        lines += ["    def detached(self):", f"        return K(self.{self.data})", ""]
        lines += self._backward()
        lines += ["", "", "class P(K):", "    pass" if not self._slots else "    __slots__ = ()"]
        if self._chance(2):
            lines += ["", "", "P = K"]
        return "\n".join(lines) + "\n"

    def _initialiser(self) -> list[str]:
        last = "push" if self._closures else "factors"
        lines = ["", f"    def __init__(self, {self.data}, operands=(), {last}={'None' if self._closures else '()'}):"]
        lines += [f"        self.{self.data} = {self.data}", f"        self.{self.gradient} = {self.empty}"]
        kept = {"tuple": "operands", "list": "list(operands)", "set": "set(operands)", "pair": "operands"}
        kept["dict"] = "{k: o for k, o in enumerate(operands)}"
        lines += [f"        self.operands = {kept[self._container]}", f"        self.{last} = {last}"]
        if self._extra == "label":
            lines.append("        self.label = ''")
        if self._extra == "depth":
            lines.append("        self.depth = 1 + max((o.depth for o in operands), default=0)")
        if self._extra == "count":
            lines.append("        K.count += 1")
        if self._walk == "numbered":
            lines += ["        self.number = 1 + max((o.number for o in operands), default=0)"]
        if self._walk == "tape":
            lines += ["        if operands:", "            TAPE.append(self)"]
        return lines

    def _method(self, operation: Operation) -> list[str]:
        is_binary = len(operation.factors) == 2
        lines = [f"    def {operation.name}(self{', other' if is_binary else ''}):"]
        if is_binary:
            lines.append("        other = other if isinstance(other, K) else K(other)")
        lines += [f"        a = self.{self.data}"] + ([f"        b = other.{self.data}"] if is_binary else [])
        lines += [f"        {operation.before}"] if operation.before else []
        lines.append(f"        n = {operation.number}")
        operands = "(self, other)" if is_binary else "(self,)"
        if not self._closures:
            factors = [f"1.0 / {f[1:]}" if f[0] == "/" else f for f in operation.factors]
            return [*lines, f"        return K(n, {operands}, ({', '.join(factors)},))"]
        lines += [f"        out = K(n, {operands})", "", "        def push():"]
        targets = list(zip(["self", "other"], operation.factors))
        for target, factor in targets[::-1] if self._backwards else targets:
            lines += [f"            {line}" for line in self._addition(target, self._share(factor))]
        return [*lines, "", "        out.push = push", "        return out"]

    def _share(self, factor: str) -> str:
        gradient = f"out.{self.gradient}"
        if factor[0] == "/":
            return f"{gradient} / {factor[1:]}"
        if factor in ("1", "1.0"):
            return gradient
        if factor in ("-1", "-1.0") and self._chance(2):
            return f"-{gradient}"
        return self._one_of([f"({factor}) * {gradient}", f"{gradient} * ({factor})"])

    def _addition(self, target: str, share: str) -> list[str]:
        place = f"{target}.{self.gradient}"
        if self.empty == "None":
            return [f"{place} = {share} if {place} is None else {place} + {share}"]
        return [self._one_of([f"{place} += {share}", f"{place} += {share}", f"{place} = {place} + {share}"])]

    def _backward(self) -> list[str]:
        lines = ["    def backward(self):", *self._order()]
        if self._zeroes:
            lines += ["        for node in order:", f"            node.{self.gradient} = 0.0"]
        lines += [f"        self.{self.gradient} = {self._one_of(['1', '1.0'])}"]
        lines += ["        for node in reversed(order):"]
        if self._closures:
            lines += ["            if node.push is not None:", "                node.push()"]
        else:
            operands = "node.operands.values()" if self._container == "dict" else "node.operands"
            pairs = f"zip({operands}, node.factors)"
            if self._backwards:
                pairs = f"reversed(list({pairs}))"
            lines.append(f"            for operand, factor in {pairs}:")
            share = self._one_of([f"factor * node.{self.gradient}", f"node.{self.gradient} * factor"])
            lines += [f"                {line}" for line in self._addition("operand", share)]
        if self._walk == "tape":
            lines.append("        TAPE.clear()")
        return [*lines, f"        {self._returns}"] if self._returns else lines

    def _order(self) -> list[str]:
        operands = "node.operands.values()" if self._container == "dict" else "node.operands"
        if self._walk == "tape":
            return ["        order = list(TAPE)"]
        lines = ["        order, seen = [], set()"]
        if self._walk in _STACKS:
            text = re.sub(r"OF\((\w+)\)", lambda found: operands.replace("node", found[1]), _STACKS[self._walk])
            return [*lines, *(f"        {line}" for line in text.split("\n"))]
        if self._walk == "iterative":
            lines += ["        pending = [(self, False)]", "        while pending:"]
            lines += ["            node, is_done = pending.pop()", "            if is_done:"]
            lines += ["                order.append(node)", "            elif id(node) not in seen:"]
            lines += ["                seen.add(id(node))", "                pending.append((node, True))"]
            return [*lines, f"                pending.extend((operand, False) for operand in {operands})"]
        lines += ["", "        def visit(node):", "            if id(node) not in seen:"]
        lines += ["                seen.add(id(node))", f"                for operand in {operands}:"]
        lines += ["                    visit(operand)", "                order.append(node)"]
        lines += ["", "        visit(self)"]
        if self._walk == "numbered":
            lines.append("        order.sort(key=lambda node: node.number)")
        return lines
