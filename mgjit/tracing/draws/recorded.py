"""Record the draws of a traced step: their results are inputs of the kernel.

1. A draw whose arguments are plain constants is added to the plan as it is (draws/plan.py).  A private generator makes
   the same draw once, which raises whatever Python raises for bad arguments, and shows what type the result has.
2. `choice`, `choices`, `sample` and `shuffle` become draws of indices, since the elements make no difference to the
   generator.  The elements are then looked up (autograd/chosen.py), by indices that are in range by construction.
3. If arguments are traced and Python's method is a formula over a draw without them, that draw is planned and the
   formula recorded: `gauss(mu, sigma)` is `mu + z * sigma`.  `choices` with traced weights counts the cumulative
   weights up to a random number, which is where Python's bisection ends.

How many numbers are drawn never depends on a traced number.
"""

from __future__ import annotations

import inspect
import operator
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from types import MethodType
from typing import Any

from ...engine.leaks import PlainCall, is_traced, is_traced_number
from ...engine.value import Value
from ...errors import RandomnessError, user_location
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .plan import Draw, DrawPlan


class Drawing:
    """The draws of one trace.

    Args:
        first: the INPUT index of the first number drawn.
    """

    def __init__(self, recorder: Recorder, types: TracedTypes, first: int) -> None:
        self._recorder, self._types, self._first = recorder, types, first
        self._most = recorder.precision.largest_integer
        self._outcomes: dict[str, Any] = {}
        #: Draws of a float without arguments, by generator and name: random tensors make thousands that are alike.
        self._floats: dict[tuple[int, str], Draw] = {}
        self.plan = DrawPlan()
        #: The functions of the module `random` that were called, and which the step therefore depends on.
        self.called: set[str] = set()
        #: The private generator that tries draws out.
        self.trial = random.Random(0)  # noqa: S311 - not for security

    def draw(
        self, generator: random.Random, name: str, method: Callable[..., Any], given: Sequence[Any],
        options: dict[str, Any],
    ) -> Any:  # fmt: skip
        """The traced result of `generator.name(*given, **options)`; `method` is the function of the library."""
        alike = None if given or options else self._floats.get((id(generator), name))
        if alike is not None:
            return self._types.input_number(self._first + self.plan.add(alike, generator))
        if getattr(vars(random).get(name), "__self__", None) is generator:
            self.called.add(name)
        handler = _OF_SEQUENCES.get(name)
        if handler is None and name not in _FORMULAS:
            given = [_index(x, name) for x in given]
        if handler is None and not any(map(is_traced, (*given, *options.values()))):
            return self._plain(generator, name, given, options)
        if handler is None:
            handler = _FORMULAS.get(name) or _refuse(name)
        bound = inspect.signature(method).bind(generator, *given, **options)
        bound.apply_defaults()
        _, *positional = bound.args
        return handler(self, generator, *positional, **bound.kwargs)

    def _plain(self, generator: random.Random, name: str, given: Sequence[Any], options: dict[str, Any]) -> Any:
        if not all(isinstance(x, (int, float, type(None))) for x in (*given, *options.values())):
            raise RandomnessError(
                f"{user_location()}: the arguments of {name}() must be numbers. Draw outside of the step and pass "
                "what was drawn as an argument."
            )
        outcome = self._outcome(name, given, options)
        if isinstance(outcome, float):
            number = self.number(generator, name, tuple(given), options)
            if not (given or options):
                self._floats[id(generator), name] = self.plan.draws[-1]
            return number
        if isinstance(outcome, int):
            return self.integer(generator, name, tuple(given), options, _range_of(name, given, options, self._most))
        raise RandomnessError(
            f"{user_location()}: {name}() gives {type(outcome).__name__}, and only floats and ints can be drawn in a "
            "compiled step. Draw outside of it and pass what was drawn as an argument."
        )

    def _outcome(self, name: str, given: Sequence[Any], options: dict[str, Any]) -> Any:
        """One possible outcome of a draw; raises what Python raises."""
        key = repr((name, given, options))
        if key not in self._outcomes:
            self._outcomes[key] = getattr(self.trial, name)(*given, **options)
        return self._outcomes[key]

    # ---- noting draws ---------------------------------------------------------------------------------

    def number(
        self,
        generator: random.Random,
        name: str,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        """Draw a float."""
        return self._types.input_number(self._note(generator, name, arguments, options or {}, None))

    def integer(
        self, generator: random.Random, name: str, arguments: tuple[Any, ...], options: dict[str, Any], among: range
    ) -> Any:
        """Draw an int from a range."""
        self._require_exact(name, among)
        return self._integer(self._note(generator, name, arguments, options, None), among)

    def indices(
        self, generator: random.Random, name: str, arguments: tuple[Any, ...], options: dict[str, Any], count: int,
        size: int, call: Callable[..., Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Draw `size` ints in `range(count)` together."""
        first = self._note(generator, name, arguments, options, size, call)
        return [self._integer(first + k, range(count)) for k in range(size)]

    def _note(
        self,
        generator: random.Random,
        name: str,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        size: int | None,
        call: Callable[..., Any] | None = None,
    ) -> int:
        method = _method(generator, name)
        drawn = method if call is None else partial(call, method)
        drawn = partial(drawn, **options) if options else drawn
        key = id(generator), name, repr(arguments), repr(options), size
        return self._first + self.plan.add(Draw(name, drawn, arguments, size, key), generator)

    def _integer(self, place: int, among: range) -> Any:
        number = self._types.input_number(place, True)
        self._recorder.known_integers[number._leaf] = among
        return number

    def known(self, number: Any, among: range) -> Any:
        """A traced int that is known to be in a range."""
        self._recorder.known_integers[self._types.number_operand(number)] = among
        return number

    def _require_exact(self, name: str, among: range) -> None:
        if among and max(abs(among[0]), abs(among[-1])) > self._most:
            raise RandomnessError(
                f"{user_location()}: {name}() draws integers of up to {max(abs(among[0]), abs(among[-1]))}, and a step "
                f"holds them exactly up to {self._most}. Draw smaller ones, or draw outside of the step."
            )

    # ---- choosing -------------------------------------------------------------------------------------

    def is_from_outside(self, thing: Any) -> bool:
        """Whether an object existed before the step."""
        return bool(self._types.gatherer.is_known(thing))

    def pick(self, population: Any, index: Any) -> Any:
        """The element of a population at an index that was drawn from its range."""
        if type(index) is int:
            return population[index]
        if isinstance(population, range):
            among = population if population.step > 0 else population[::-1]
            self._require_exact("choice", among)
            start, step = population.start, population.step
            return self.known(index if (start, step) == (0, 1) else start + step * index, among)
        elements = list(population)
        if all(type(x) is int for x in elements):
            self._require_exact("choice", range(min(elements), max(elements) + 1))
        return index._gatherer.element(elements, index)


def _method(generator: random.Random, name: str) -> Callable[..., Any]:
    """The library's method, whatever subclasses or a trace have put in its place."""
    function = vars(random.Random).get(name)
    base: Any = random.Random.__base__
    if function is None or name in _OF_BASE:
        return getattr(base, name).__get__(generator)  # type: ignore[no-any-return]
    return MethodType(function, generator)


def _range_of(name: str, given: Sequence[Any], options: dict[str, Any], most: int) -> range:
    """The range of ints that a draw can give, as far as it is known."""
    if name == "getrandbits":
        return range(1 << given[0])
    found: list[Any] = [*given, *options.values()]
    if name == "randint":
        return range(min(found), max(found) + 1)
    if name == "randrange" and not options:
        among = range(*(int(x) for x in found if x is not None))
        return among if among.step > 0 else among[::-1]
    return range(-most, most + 1)


def _index(number: Any, name: str = "") -> Any:
    """A number that decides how much is drawn; if it is traced, its value becomes fixed for this trace."""
    if is_traced_number(number) and not isinstance(number, int):
        _refuse(name)
    return operator.index(number) if is_traced(number) else number


def _length(population: Any, name: str) -> int:
    if isinstance(population, (list, tuple, range)):
        return len(population)
    raise RandomnessError(
        f"{user_location()}: {name}() cannot draw from a {type(population).__name__} in a compiled step. Use a list, a "
        "tuple or a range, or draw outside of the step."
    )


# ---- formulas -----------------------------------------------------------------------------------------------


def _uniform(drawing: Drawing, generator: random.Random, a: Any, b: Any) -> Any:
    return a + (b - a) * drawing.number(generator, "random")


def _gauss(drawing: Drawing, generator: random.Random, mu: Any, sigma: Any, name: str = "gauss") -> Any:
    # -0.0 + z * 1.0 is z, also where that is a zero.
    return mu + drawing.number(generator, name, (-0.0, 1.0)) * sigma


def _normal(drawing: Drawing, generator: random.Random, mu: Any, sigma: Any) -> Any:
    return _gauss(drawing, generator, mu, sigma, "normalvariate")


def _log_normal(drawing: Drawing, generator: random.Random, mu: Any, sigma: Any) -> Any:
    return _normal(drawing, generator, mu, sigma).exp()


def _exponential(drawing: Drawing, generator: random.Random, lambd: Any) -> Any:
    return drawing.number(generator, "expovariate", (1.0,)) / lambd


def _refuse(name: str) -> Any:
    raise RandomnessError(
        f"{user_location()}: the arguments of {name}() are traced numbers, which are known only when the compiled step "
        "runs. Draw with constants and compute the rest, such as mu + sigma * random.gauss(0.0, 1.0), or draw outside "
        "of the step."
    )


# ---- sequences ----------------------------------------------------------------------------------------------


def _choice(drawing: Drawing, generator: random.Random, population: Any) -> Any:
    count = _length(population, "choice")
    among = range(count)
    if not count:
        drawing.trial.choice(population)  # raises what Python raises
    return drawing.pick(population, drawing.integer(generator, "choice", (among,), {}, among))


def _sample(drawing: Drawing, generator: random.Random, population: Any, k: Any, *, counts: Any = None) -> list[Any]:
    count, size = _length(population, "sample"), _index(k)
    options = {} if counts is None else {"counts": [_index(x) for x in counts]}
    drawing.trial.sample(range(count), size, **options)
    found = drawing.indices(generator, "sample", (range(count), size), options, count, size)
    return [drawing.pick(population, index) for index in found]


def _shuffle(drawing: Drawing, generator: random.Random, population: Any, *other: Any) -> None:
    if other and other[0] is not None:
        raise RandomnessError(
            f"{user_location()}: shuffle() with its own random function cannot be traced. Call shuffle(x)."
        )
    if drawing.is_from_outside(population) and not all(isinstance(x, (int, float)) for x in population):
        raise PlainCall(f"{user_location()}: the step shuffles a list from outside, whose elements are not numbers")
    count = len(population)
    found = drawing.indices(generator, "shuffle", (count,), {}, count, count, _permutation)
    before = list(population)
    for place, index in enumerate(found):
        population[place] = drawing.pick(before, index)


def _permutation(shuffle: Callable[[list[int]], None], count: int) -> list[int]:
    order = list(range(count))
    shuffle(order)
    return order


def _choices(
    drawing: Drawing, generator: random.Random, population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any
) -> list[Any]:
    count, size = _length(population, "choices"), _index(k)
    weights, cumulative = _numbers(weights), _numbers(cum_weights)
    if any(map(is_traced, [*(weights or ()), *(cumulative or ())])):
        found = _weighted(drawing, generator, count, weights, cumulative, size)
    else:
        options = {"weights": weights, "cum_weights": cumulative, "k": size}
        options = {name: option for name, option in options.items() if option is not None}
        drawing.trial.choices(range(count), **options)
        found = drawing.indices(generator, "choices", (range(count),), options, count, size)
    return [drawing.pick(population, index) for index in found]


def _numbers(weights: Any) -> list[Any] | None:
    if weights is None:
        return None
    return [weight.data if isinstance(weight, Value) else weight for weight in weights]


def _weighted(
    drawing: Drawing,
    generator: random.Random,
    count: int,
    weights: list[Any] | None,
    cumulative: list[Any] | None,
    size: int,
) -> list[Any]:
    """Indices drawn by weights, some of which are traced."""
    if cumulative is None:
        cumulative = list(accumulate(weights or []))
    elif weights is not None:
        raise TypeError("Cannot specify both weights and cumulative weights")
    if len(cumulative) != count:
        raise ValueError("The number of weights does not match the population")
    total = cumulative[-1] + 0.0
    found = []
    for _ in range(size):
        number = drawing.number(generator, "random") * total
        index: Any = 0
        for weight in cumulative[:-1]:
            index = index + (weight <= number)
        found.append(drawing.known(index, range(count)) if count > 1 else 0)
    return found


#: Methods of the class in C.
_OF_BASE = frozenset({"random", "getrandbits"})
_FORMULAS: dict[str, Callable[..., Any]] = {
    "uniform": _uniform, "gauss": _gauss, "normalvariate": _normal, "lognormvariate": _log_normal,
    "expovariate": _exponential,
}  # fmt: skip
_OF_SEQUENCES: dict[str, Callable[..., Any]] = {
    "choice": _choice, "choices": _choices, "sample": _sample, "shuffle": _shuffle,
}  # fmt: skip
