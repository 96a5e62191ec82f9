"""Autograd classes in the styles that people write, for the tests of what recognises them."""

from __future__ import annotations

import math
from typing import Any


class Closures:
    """As micrograd, but with a tuple of operands: local derivatives in closures."""

    def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
        self.data = data
        self.grad = 0.0
        self._operands: Any = operands
        self._backward: Any = lambda: None

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Closures) else type(self)(other)
        out = type(self)(self.data + other.data, (self, other))

        def _backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Closures) else type(self)(other)
        out = type(self)(self.data * other.data, (self, other))

        def _backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def __pow__(self, n: float) -> Any:
        out = type(self)(self.data**n, (self,))

        def _backward() -> None:
            self.grad += (n * self.data ** (n - 1)) * out.grad

        out._backward = _backward
        return out

    def tanh(self) -> Any:
        t = math.tanh(self.data)
        out = type(self)(t, (self,))

        def _backward() -> None:
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    def log(self) -> Any:
        out = type(self)(math.log(self.data), (self,))

        def _backward() -> None:
            self.grad += out.grad / self.data

        out._backward = _backward
        return out

    def exp(self) -> Any:
        out = type(self)(math.exp(self.data), (self,))

        def _backward() -> None:
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def relu(self) -> Any:
        out = type(self)(0 if self.data < 0 else self.data, (self,))

        def _backward() -> None:
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def backward(self) -> None:
        order: list[Any] = []
        visited = set()

        def visit(node: Any) -> None:
            if id(node) not in visited:
                visited.add(id(node))
                for operand in node._operands:
                    visit(operand)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node._backward()


class Sets(Closures):
    """As micrograd: operands in a set."""

    def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
        super().__init__(data, operands)
        self._operands = set(operands)


class Factors:
    """As microgpt: local derivatives in tuples, and slots."""

    __slots__ = ("derivatives", "grad", "operands", "value")

    def __init__(self, value: Any, operands: tuple[Any, ...] = (), derivatives: tuple[Any, ...] = ()) -> None:
        self.value, self.grad = value, 0
        self.operands, self.derivatives = operands, derivatives

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Factors) else Factors(other)
        return Factors(self.value + other.value, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Factors) else Factors(other)
        return Factors(self.value * other.value, (self, other), (other.value, self.value))

    def __truediv__(self, other: Any) -> Any:
        quotient = self.value / other.value
        return Factors(quotient, (self, other), (1 / other.value, -quotient / other.value))

    def sine(self) -> Any:
        return Factors(self.value - self.value**3 / 6, (self,), (1 - self.value * self.value / 2,))

    __radd__ = __add__
    __rmul__ = __mul__

    def backward(self) -> None:
        order: list[Any] = []
        visited = {id(self)}
        pending = [(self, 0)]
        while pending:
            node, k = pending.pop()
            if k < len(node.operands):
                pending.append((node, k + 1))
                operand = node.operands[k]
                if id(operand) not in visited:
                    visited.add(id(operand))
                    pending.append((operand, 0))
            else:
                order.append(node)
        self.grad = 1
        for node in reversed(order):
            for operand, derivative in zip(node.operands, node.derivatives):
                operand.grad += derivative * node.grad


TAPE: list[Any] = []


class Tape(Closures):
    """Every node goes to a list, and backward() goes through the list from its end."""

    def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
        super().__init__(data, operands)
        if operands:
            TAPE.append(self)

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(TAPE):
            node._backward()
        TAPE.clear()


class Clipped(Closures):
    """Limits gradients on their way."""

    def backward(self) -> None:
        super().backward()

    def __mul__(self, other: Any) -> Any:
        out = super().__mul__(other)
        plain = out._backward

        def _backward() -> None:
            plain()
            self.grad = max(-1.0, min(1.0, self.grad))

        out._backward = _backward
        return out


class Doubled(Closures):
    """What it passes on through sums is twice the derivative, but a number times the gradient all the same."""

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Closures) else type(self)(other)
        out = type(self)(self.data + other.data, (self, other))

        def _backward() -> None:
            self.grad += 2 * out.grad
            other.grad += out.grad * 2

        out._backward = _backward
        return out

    __radd__ = __add__


class Plain:
    """Numbers and a method backward(), which does something else."""

    def __init__(self, data: float) -> None:
        self.data, self.grad = data, 0.0

    def __mul__(self, other: Any) -> Any:
        return Plain(self.data * other.data)

    def backward(self) -> None:
        self.grad = 7.0
