"""Causal attention as it is lifted from the trace of a step: positions, heads, and a backward pass over all of it."""

from __future__ import annotations

import math

from mgjit.ir.builders import row_major
from mgjit.ir.program import (
    Array,
    Backward,
    Bound,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    Term,
)


class CausalAttention:
    """`positions` vectors of `heads * size` numbers, each of which attends to itself and those before it.

    Its three matrices are parameters; the loss is the sum of the squares of the results.
    """

    def __init__(self, positions: int = 16, heads: int = 4, size: int = 4) -> None:
        self.positions, self.heads, self.size, self.width = positions, heads, size, heads * size
        count = 3 * self.width * self.width
        self.parameters, self.gradients = Array("p", "parameter", count), Array("g", "gradient", count)
        self.input, self.output = Array("x", "input", positions * self.width), Array("y", "output", 1)
        self._count = 0

    @property
    def arrays(self) -> list[Array]:
        """All memory that can be seen."""
        return [self.parameters, self.gradients, self.input, self.output]

    def gradient(self, one: Array) -> Array | None:
        """As the memory of a step has them."""
        return self.gradients if one is self.parameters else None

    def program(self) -> Program:
        """The Program."""
        width = self.width
        t, loss = Loop(self.positions, []), Array("loss", "scratch", 1, shape=())
        vectors = self._array(t, count=3 * width)
        r = Loop(3 * width, [])
        c = Loop(width, [])
        p = self._at(self.parameters, ((r, width), (c, 1)))
        x = self._at(self.input, ((t, width), (c, 1)))
        products = self._sum(self._at(vectors, ((t, 3 * width), (r, 1))), c, (t, r), p, x)
        r.body = products
        h = Loop(self.heads, [])
        h.body, mixed = self._head(t, h, vectors)
        k = Loop(width, [])
        one = self._at(mixed, ((t, width), (k, 1)))
        squares = self._sum(self._at(loss, ()), k, (t,), one, one)[1:]
        t.body = [r, h, *squares]
        every = Loop(self.parameters.size, [])
        p, g = (self._at(array, ((every, 1),)) for array in (self.parameters, self.gradients))
        step = Statement("multiply", (Load(g), Constant(0.125)))
        every.body = [step, Statement("subtract", (Load(p), Register(step)), p)]
        clear = Loop(self.gradients.size, [])
        clear.body = [Statement("copy", (Constant(0.0),), self._at(self.gradients, ((clear, 1),)))]
        begin, read = self._copy(Constant(0.0), self._at(loss, ())), Load(self._at(loss, ()))
        result = Statement("copy", (read,), self._at(self.output, ()))
        return Program([begin, t, result, clear, Backward(read, 0, frozenset({0})), every])

    def _head(self, t: Loop, h: Loop, vectors: Array) -> tuple[list[Node], Array]:
        width, size = self.width, self.size
        scores, powers, weights = (self._array(t, h, count=self.positions) for _ in range(3))
        sums, inverses = self._array(t, h), self._array(t, h)
        a, b, e, f = (Loop(self.positions, [], bound=Bound(1, ((t, 1),))) for _ in range(4))

        def row(one: Array, j: Loop) -> Reference:
            return self._at(one, ((t, self.heads * self.positions), (h, self.positions), (j, 1)))

        d = Loop(size, [])
        query = self._at(vectors, ((t, 3 * width), (h, size), (d, 1)))
        key = self._at(vectors, ((a, 3 * width), (h, size), (d, 1)), width)
        a.body = [
            *self._sum(row(scores, a), d, (t, h, a), query, key),
            self._statement("exp", row(powers, a), Load(row(scores, a))),
        ]
        total = self._at(sums, ((t, self.heads), (h, 1)))
        b.body = [Statement("add", (Load(row(powers, b)),), total, update=True, passes=frozenset({0}))]
        inverse = self._at(inverses, ((t, self.heads), (h, 1)))
        e.body = [self._statement("multiply", row(weights, e), Load(row(powers, e)), Load(inverse))]
        n, mixed = Loop(size, []), self._array(t, count=width)
        value = self._at(vectors, ((f, 3 * width), (h, size), (n, 1)), 2 * width)
        place = self._at(mixed, ((t, width), (h, size), (n, 1)))
        n.body = self._sum(place, f, (t, h, n), row(weights, f), value)
        power = self._statement("power", inverse, Load(total), Constant(-1.0))
        return [a, self._copy(Constant(0.0), total), b, power, e, n], mixed

    def _sum(
        self, target: Reference, loop: Loop, around: tuple[Loop, ...], one: Reference, other: Reference
    ) -> list[Node]:
        """`target = 0.0; for loop: product = one * other; target += product`."""
        loops = (*around, loop)
        product = Reference(self._array(*loops), Index(0, row_major(loops)[0]))
        add = Statement("add", (Load(product),), target, update=True, passes=frozenset({0}))
        loop.body = [self._statement("multiply", product, Load(one), Load(other)), add]
        return [self._copy(Constant(0.0), target), loop]

    def _array(self, *loops: Loop, count: int = 1) -> Array:
        shape = (*(loop.count for loop in loops), *((count,) if count > 1 else ()))
        self._count += 1
        return Array(f"t{self._count}", "scratch", math.prod(shape), shape=shape)

    @staticmethod
    def _at(one: Array, terms: tuple[Term, ...], base: int = 0) -> Reference:
        return Reference(one, Index(base, terms))

    @staticmethod
    def _statement(operation: str, target: Reference, *operands: Operand) -> Statement:
        return Statement(operation, operands, target, passes=frozenset({0}))

    def _copy(self, operand: Operand, target: Reference) -> Statement:
        return self._statement("copy", target, operand)
