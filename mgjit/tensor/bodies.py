"""What an operation does with the scalars of one iteration of its loop nest: the definition of every operation.

A `Body` is a short list of scalar operations, those of record/opcodes.py.  It is written as a Python function, which
runs once, with stand-ins for the scalars:

    define(lambda x, y: x + y)                                     elementwise
    define(lambda total, x, y: total + x * y, initial=(0.0,))      a reduction: `total` is carried along

Everything else follows from it: the loops in Python (the oracle), the C of eager calls (loops.py), what a compiled step
consists of (passes/nests.py), and the gradients of all three (passes/derivatives.py).

A reduction runs through its innermost loops in order, from the initial value on; so `sum` is
`((0.0 + x[0]) + x[1]) + ...`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Union

from ..engine.library import FUNCTIONS as LIBRARY
from ..engine.library import is_available


class Element(NamedTuple):
    """The element of operand `number` in this iteration."""

    number: int
    kind: str = "element"  # named tuples of different classes are equal otherwise


class Result(NamedTuple):
    """What step `number` of this iteration has computed."""

    number: int
    kind: str = "result"


class Carried(NamedTuple):
    """What the iteration before has left for this one."""

    number: int
    kind: str = "carried"


Source = Union[Element, Result, Carried, float]


class Step(NamedTuple):
    """One scalar operation: a name of record/opcodes.py, and what it is applied to."""

    operation: str
    operands: tuple[Source, ...]


class Body(NamedTuple):
    """The scalar operations of an iteration.

    Attributes:
        operands: how many tensors or numbers they read.
        steps: the operations, in order.
        initial: what the first iteration finds as carried numbers; empty for elementwise operations.
        carried: the steps whose results the next iteration finds there, after all others.
        result: the carried number that is the result; without any, that is what the last step computes.
    """

    operands: int
    steps: tuple[Step, ...]
    initial: tuple[float, ...] = ()
    carried: tuple[int, ...] = ()
    result: int = 0

    @property
    def is_sum(self) -> bool:
        """Whether it adds up what does not depend on the total: then the adjoint of each term is that of the total."""
        last = self.steps[-1]
        return self.carried == (len(self.steps) - 1,) and (
            last.operation == "add"
            and last.operands[0] == Carried(0)
            and all(Carried(0) not in step.operands for step in self.steps[:-1])
        )


class _Scalar:
    """Stands for a scalar while a definition runs."""

    def __init__(self, steps: list[Step], source: Source) -> None:
        self.steps, self.source = steps, source

    def apply(self, operation: str, *others: Any) -> _Scalar:
        """One more step, whose first operand this is."""
        operands = [other.source if isinstance(other, _Scalar) else float(other) for other in (self, *others)]
        self.steps.append(Step(operation, tuple(operands)))
        return _Scalar(self.steps, Result(len(self.steps) - 1))

    def _reflected(self, operation: str, other: float) -> _Scalar:
        return _Scalar(self.steps, float(other)).apply(operation, self)

    def __add__(self, other: Any) -> _Scalar:
        return self.apply("add", other)

    def __radd__(self, other: float) -> _Scalar:
        return self._reflected("add", other)

    def __sub__(self, other: Any) -> _Scalar:
        return self.apply("subtract", other)

    def __rsub__(self, other: float) -> _Scalar:
        return self._reflected("subtract", other)

    def __mul__(self, other: Any) -> _Scalar:
        return self.apply("multiply", other)

    def __rmul__(self, other: float) -> _Scalar:
        return self._reflected("multiply", other)

    def __truediv__(self, other: Any) -> _Scalar:
        return self.apply("divide", other)

    def __rtruediv__(self, other: float) -> _Scalar:
        return self._reflected("divide", other)

    def __neg__(self) -> _Scalar:
        return self.apply("negate")

    def __lt__(self, other: Any) -> _Scalar:
        return self.apply("less", other)

    def __gt__(self, other: Any) -> _Scalar:
        return other.apply("less", self) if isinstance(other, _Scalar) else self._reflected("less", other)


def _exp(x: _Scalar) -> _Scalar:
    return x.apply("exp")


def _select(condition: _Scalar, chosen: Any, other: Any) -> _Scalar:
    return condition.apply("select", chosen, other)


def sigmoid(x: _Scalar) -> _Scalar:
    """1 / (1 + exp(-x)), written so that exp does not overflow, whose derivative would then be nan."""
    e = _exp(_select(x > 0.0, -x, x))  # never above 1
    return _select(x > 0.0, 1.0, e) / (1.0 + e)


def define(definition: Callable[..., Any], initial: tuple[float, ...] = (), result: int = 0) -> Body:
    """The steps that a definition consists of.

    Args:
        definition: takes the carried numbers, then an element of each operand; returns the result, or the next
            carried numbers.
        initial: the carried numbers at first.
        result: the one that is the result.
    """
    steps: list[Step] = []
    operands = definition.__code__.co_argcount - len(initial)
    carried = [_Scalar(steps, Carried(k)) for k in range(len(initial))]
    found = definition(*carried, *(_Scalar(steps, Element(k)) for k in range(operands)))
    if not initial:
        return Body(operands, tuple(steps))
    after = found if isinstance(found, tuple) else (found,)
    return Body(operands, tuple(steps), initial, tuple(one.source.number for one in after), result)


def _one(operation: str, operands: int) -> Body:
    """The body of a single step."""
    return Body(operands, (Step(operation, tuple(map(Element, range(operands)))),))


def greatest(count: int) -> Body:
    """Of so many operands: max(max(-inf, x[0]), x[1]), ..."""
    steps = [Step("maximum", (Result(k - 1) if k else -math.inf, Element(k))) for k in range(count)]
    return Body(count, tuple(steps))


COPY = _one("copy", 1)
#: Elementwise operations by name; those of the first lines are operations of the IR.
ELEMENTWISE: dict[str, Body] = {
    **{name: _one(name, 2) for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")},
    **{name: _one(name, 2) for name in ("less", "less_equal", "equal", "not_equal")},
    **{name: _one(name, 1) for name in ("negate", "absolute", "exp", "log", "tanh", "sqrt", "relu")},
    **{name: _one(name, LIBRARY[name].arity) for name in LIBRARY if is_available(name)},
    "where": _one("select", 3),
    "square": define(lambda x: x * x),
    "reciprocal": define(lambda x: 1.0 / x),
    "sigmoid": define(sigmoid),
    "silu": define(lambda x: x * sigmoid(x)),
    "softplus": define(lambda x: _select(x > 0.0, x, 0.0) + (1.0 + _exp(_select(x > 0.0, -x, x))).apply("log")),
    "gelu": define(lambda x: 0.5 * x * (1.0 + (math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))).apply("tanh"))),
    "leaky_relu": define(lambda x, slope: _select(x < 0.0, slope * x, x)),
    "logical_not": define(lambda x: x.apply("equal", 0.0)),
    "logical_and": define(lambda x, y: x.apply("not_equal", 0.0) * y.apply("not_equal", 0.0)),
    "logical_or": define(lambda x, y: x.apply("not_equal", 0.0).apply("maximum", y.apply("not_equal", 0.0))),
    "as_bool": define(lambda x: x.apply("not_equal", 0.0)),
}
#: Reductions by name.
REDUCTIONS: dict[str, Body] = {
    "sum": define(lambda total, x: total + x, (0.0,)),
    "dot": define(lambda total, x, y: total + x * y, (0.0,)),
    "prod": define(lambda product, x: product * x, (1.0,)),
    "max": define(lambda best, x: best.apply("maximum", x), (-math.inf,)),
    "min": define(lambda best, x: best.apply("minimum", x), (math.inf,)),
    "any": define(lambda found, x: found.apply("maximum", x.apply("not_equal", 0.0)), (0.0,)),
    "all": define(lambda found, x: found.apply("minimum", x.apply("not_equal", 0.0)), (1.0,)),
    # The first of several best ones; carried are the best, its number, and the number of the next element.
    "argmax": define(
        lambda best, where, k, x: (_select(best < x, x, best), _select(best < x, k, where), k + 1.0),
        (-math.inf, 0.0, 0.0),
        result=1,
    ),
    "argmin": define(
        lambda best, where, k, x: (_select(x < best, x, best), _select(x < best, k, where), k + 1.0),
        (math.inf, 0.0, 0.0),
        result=1,
    ),
}
