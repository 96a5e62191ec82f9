"""What an operation does with the scalars of one iteration of its loop nest: the definition of every operation.

A `Body` is a short list of scalar operations, those of record/opcodes.py.  It is written as a Python function, which
runs once, with stand-ins for the scalars:

    define(lambda x, y: x + y)                                     elementwise
    define(lambda total, x, y: total + x * y, initial=(0.0,))      a reduction: `total` is carried along

Everything else follows from it: the loops in Python (the oracle), the C of eager calls (loops.py), what a compiled step
consists of (lift/nests.py), and the gradients of all three (ir/derivatives.py).

A reduction runs through its innermost loops in order, from the initial value on; so `sum` is
`((0.0 + x[0]) + x[1]) + ...`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, NamedTuple, Union

from ..engine.elementary import ELEMENTARY, Elementary
from ..engine.library import FUNCTIONS as LIBRARY
from ..engine.library import is_available
from ..engine.operations import OPERATIONS


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
    """One scalar operation: a name of ir/opcodes.py, and what it is applied to."""

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

    # What the functions of engine/functions.py and elementary.py call.

    def _select(self, condition: _Scalar, chosen: Any, other: Any) -> _Scalar:
        return condition.apply("select", chosen, other)

    def _library(self, name: str, operands: tuple[_Scalar, ...]) -> _Scalar:
        return self.apply(name)


def _add_method(operation: str, method: str) -> None:
    setattr(_Scalar, method, lambda self: self.apply(operation))


for _name, _operation in OPERATIONS.items():
    if _operation.method:
        _add_method(_name, _operation.method)


def _exp(x: _Scalar) -> _Scalar:
    return x.apply("exp")


def _select(condition: _Scalar, chosen: Any, other: Any) -> _Scalar:
    return condition.apply("select", chosen, other)


def _or_nan(operation: str, x: _Scalar, y: _Scalar) -> _Scalar:
    """The maximum or minimum; nan if one of them is, where the operation itself says so of x only."""
    return _select(y.apply("not_equal", y), y, x.apply(operation, y))


def _is_before(x: _Scalar, y: _Scalar, best: _Scalar) -> _Scalar:
    """Whether x < y, or one of them is the first nan that takes the place of the best element."""
    found = y if x is best else x
    return (x < y).apply("maximum", found.apply("not_equal", found) * best.apply("equal", best))


def _first_of(is_better: _Scalar, best: _Scalar, where: _Scalar, k: _Scalar, x: _Scalar) -> tuple[_Scalar, ...]:
    return _select(is_better, x, best), _select(is_better, k, where), k + 1.0


def _power(x: _Scalar, y: _Scalar) -> _Scalar:
    """x ** y, whose derivative by x is 0 where y is, also where that of the power would be nan."""
    return _select(y.apply("equal", 0.0), 1.0, x).apply("power", y)


def _power_of_two(x: _Scalar, y: _Scalar) -> _Scalar:
    """The same, with a derivative by y, which is 0 where x is, and y not below."""
    found = _power(x, y)
    is_flat = x.apply("equal", 0.0) * _Scalar(x.steps, 0.0).apply("less_equal", y)
    return found.apply("link", y, _select(is_flat, 0.0, found * x.apply("log")))


def sigmoid(x: _Scalar) -> _Scalar:
    """1 / (1 + exp(-x)), written so that exp does not overflow, whose derivative would then be nan."""
    e = _exp(_select(x > 0.0, -x, x))  # never above 1
    return _select(x > 0.0, 1.0, e) / (1.0 + e)


def _sign(x: _Scalar) -> _Scalar:
    return (x > 0.0) - (x < 0.0)


def _constant(x: _Scalar) -> _Scalar:
    """x itself, through which no gradient flows: its own sign is copied to it."""
    return x.apply("copysign", x)


def _of_library(name: str, derivative: Callable[[_Scalar, _Scalar], Any], x: _Scalar) -> _Scalar:
    """A function of the C library; `derivative` is that of x and of the result."""
    found = x.apply(name)
    return found.apply("link", x, derivative(x, found))


def _elementary(function: Elementary, x: _Scalar) -> _Scalar:
    """A function of engine/elementary.py."""
    found: _Scalar = function.value(x)
    return found if function.derivative is None else found.apply("link", x, function.derivative(x, found))


def _remainder(x: _Scalar, y: Any) -> _Scalar:
    """x - floor(x / y) * y, with the sign of y, as `%` of Python."""
    found = x.apply("fmod", y)
    is_beside = found.apply("not_equal", 0.0) * (found < 0.0).apply("not_equal", y < 0.0)
    found = _constant(_select(is_beside, found + y, found))
    linked = found.apply("link", x, 1.0)
    return linked.apply("link", y, -(((x - found) / y).apply("rint"))) if isinstance(y, _Scalar) else linked


def _fmod(x: _Scalar, y: _Scalar) -> _Scalar:
    """x - trunc(x / y) * y, with the sign of x."""
    found = x.apply("fmod", y)
    return found.apply("link", x, 1.0).apply("link", y, -(((x - found) / y).apply("rint")))


def _floor_divide(x: _Scalar, y: Any) -> _Scalar:
    """floor(x / y), as `//` of Python: from the exact remainder, so that no rounding leads to the next whole number."""
    quotient = (x - _remainder(x, y)) / y
    found: _Scalar = quotient.apply("floor") + (quotient - quotient.apply("floor") > 0.5)
    return found


@functools.lru_cache(maxsize=1024)
def divided_by(name: str, y: float) -> Body:
    """The remainder or `floor_divide` by one number, of which it is known that it is not 0."""
    definition = _remainder if name == "remainder" else _floor_divide
    return define(lambda x: definition(x, y))


#: Numerators and denominators of rational functions, lowest powers first, from fdlibm's erf (Sun Microsystems 1993).
_ERF = (
    (
        (0.128379167095512558561, -0.325042107247001499370, -0.0284817495755985104766, -0.00577027029648944159157,
         -2.37630166566501626084e-05),
        (1.0, 0.397917223959155352819, 0.0650222499887672944485, 0.00508130628187576562776, 0.000132494738004321644526,
         -3.96022827877536812320e-06),
    ),
    (
        (-0.00236211856075265944077, 0.414856118683748331666, -0.372207876035701323847, 0.318346619901161753674,
         -0.110894694282396677476, 0.0354783043256182359371, -0.00216637559486879084300),
        (1.0, 0.106420880400844228286, 0.540397917702171048937, 0.0718286544141962662868, 0.126171219808761642112,
         0.0136370839120290507362, 0.0119844998467991074170),
    ),
    (
        (-0.00986494403484714822705, -0.693858572707181764372, -10.5586262253232909814, -62.3753324503260060396,
         -162.396669462573470355, -184.605092906711035994, -81.2874355063065934246, -9.81432934416914548592),
        (1.0, 19.6512716674392571292, 137.657754143519042600, 434.565877475229228821, 645.387271733267880336,
         429.008140027567833386, 108.635005541779435134, 6.57024977031928170135, -0.0604244152148580987438),
    ),
    (
        (-0.00986494292470009928597, -0.799283237680523006574, -17.7579549177547519889, -160.636384855821916062,
         -637.566443368389627722, -1025.09513161107724954, -483.519191608651397019),
        (1.0, 30.3380607434824582924, 325.792512996573918826, 1536.72958608443695994, 3199.85821950859553908,
         2553.05040643316442583, 474.528541206955367215, -22.4409524465858183362),
    ),
)  # fmt: skip


def _rational(x: _Scalar, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> _Scalar:
    parts = []
    for given in coefficients:
        found: Any = given[-1]
        for one in reversed(given[:-1]):
            found = x * found + one
        parts.append(found)
    quotient: _Scalar = parts[0] / parts[1]
    return quotient


def _erf(x: _Scalar) -> _Scalar:
    """The error function, to an absolute error of 2e-16, from operations that are the same everywhere.

    Python has an erf of its own before 3.11, and so does PyPy.
    """
    size = x.apply("absolute")
    square = x * x
    inverse = 1.0 / square
    small = x + x * _rational(square, _ERF[0])
    middle = 0.845062911510467529297 + _rational(size - 1.0, _ERF[1])
    tail = _select(size < 1.0 / 0.35, _rational(inverse, _ERF[2]), _rational(inverse, _ERF[3]))
    far = _select(size < 6.0, 1.0 - _exp((tail - 0.5625) - square) / size, 1.0)
    above = _select(size < 1.25, middle, far)
    found = _select(size < 0.84375, small, _select(x < 0.0, -above, above))
    found = _constant(_select(x.apply("equal", x), found, x))
    return found.apply("link", x, (2.0 / math.sqrt(math.pi)) * _exp(-square))


def _gelu_of_erf(x: _Scalar) -> _Scalar:
    return 0.5 * x * (1.0 + _erf(x * math.sqrt(0.5)))


#: Functions of the C library, with their derivatives: of x, and of the result.
_DERIVATIVES: dict[str, Callable[[_Scalar, _Scalar], Any]] = {
    "tan": lambda x, found: 1.0 + found * found,
    "asin": lambda x, found: 1.0 / (1.0 - x * x).apply("sqrt"),
    "acos": lambda x, found: -1.0 / (1.0 - x * x).apply("sqrt"),
    "atan": lambda x, found: 1.0 / (1.0 + x * x),
    "sinh": lambda x, found: x.apply("cosh"),
    "cosh": lambda x, found: x.apply("sinh"),
    "expm1": lambda x, found: found + 1.0,
    "log2": lambda x, found: 1.0 / (x * math.log(2.0)),
    "log10": lambda x, found: 1.0 / (x * math.log(10.0)),
}


def define(
    definition: Callable[..., Any], initial: tuple[float, ...] = (), result: int = 0, operands: int | None = None
) -> Body:
    """The steps that a definition consists of.

    Args:
        definition: takes the carried numbers, then an element of each operand; returns the result, or the next
            carried numbers.
        initial: the carried numbers at first.
        result: the one that is the result.
        operands: how many there are, where that cannot be seen from the definition.
    """
    steps: list[Step] = []
    operands = definition.__code__.co_argcount - len(initial) if operands is None else operands
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
    """Of so many operands: max(max(-inf, x[0]), x[1]), ..., and nan if one of them is."""
    steps: list[Step] = []
    found = _Scalar(steps, -math.inf)
    for k in range(count):
        found = _or_nan("maximum", found, _Scalar(steps, Element(k)))
    return Body(count, tuple(steps))


COPY = _one("copy", 1)
#: Elementwise operations by name; those of the first lines are operations of the IR.
ELEMENTWISE: dict[str, Body] = {
    **{name: _one(name, 2) for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")},
    **{name: _one(name, 2) for name in ("less", "less_equal", "equal", "not_equal")},
    **{name: _one(name, 1) for name in ("negate", "absolute", "exp", "log", "tanh", "sqrt", "relu")},
    **{name: _one(name, LIBRARY[name].arity) for name in LIBRARY if is_available(name)},
    **{name: define(functools.partial(_of_library, name, d), operands=1) for name, d in _DERIVATIVES.items()},
    **{name: define(functools.partial(_elementary, one), operands=1) for name, one in ELEMENTARY.items()},
    "where": _one("select", 3),
    **{f"{name}_or_nan": define(functools.partial(_or_nan, name), operands=2) for name in ("maximum", "minimum")},
    "power_or_one": define(_power),
    "power_of_two": define(_power_of_two),
    "square": define(lambda x: x * x),
    "reciprocal": define(lambda x: 1.0 / x),
    "sigmoid": define(sigmoid),
    "silu": define(lambda x: x * sigmoid(x)),
    "rsqrt": define(lambda x: 1.0 / x.apply("sqrt")),
    "sign": define(_sign),
    "erf": define(_erf),
    "remainder": define(_remainder),
    "fmod": define(_fmod),
    "floor_divide": define(_floor_divide),
    "isnan": define(lambda x: x.apply("not_equal", x)),
    "isinf": define(lambda x: x.apply("absolute").apply("equal", math.inf)),
    "isfinite": define(lambda x: (x - x).apply("equal", 0.0)),
    "gelu_of_erf": define(_gelu_of_erf),
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
    "max": define(lambda best, x: _or_nan("maximum", best, x), (-math.inf,)),
    "min": define(lambda best, x: _or_nan("minimum", best, x), (math.inf,)),
    # Of what is not nan: quicker, for whole numbers, and where nan comes back from elsewhere.
    "greatest": define(lambda best, x: best.apply("maximum", x), (-math.inf,)),
    "least": define(lambda best, x: best.apply("minimum", x), (math.inf,)),
    "any": define(lambda found, x: found.apply("maximum", x.apply("not_equal", 0.0)), (0.0,)),
    "all": define(lambda found, x: found.apply("minimum", x.apply("not_equal", 0.0)), (1.0,)),
    # The first of several best ones, a nan being better than all numbers; carried are the best, its number, and the
    # number of the next element.
    "argmax": define(
        lambda best, where, k, x: _first_of(_is_before(best, x, best), best, where, k, x),
        (-math.inf, 0.0, 0.0),
        result=1,
    ),
    "argmin": define(
        lambda best, where, k, x: _first_of(_is_before(x, best, best), best, where, k, x),
        (math.inf, 0.0, 0.0),
        result=1,
    ),
}
