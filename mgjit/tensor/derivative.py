"""The derivative of an operation's definition (bodies.py), as a definition: what second derivatives are made from.

`contribution(body, k, flows)` computes, from all operands of an iteration and the adjoint of its result, what the
iteration adds to the adjoint of operand k:

1. The steps of the body are taken over, and the rules of ir/derivatives.py add further ones, in reverse.
2. A sum passes the adjoint on to each of its terms.  A product of terms gives each of them the product of the others,
   which is one more operand.
3. Steps that the contribution does not need are dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..engine.precision import FLOAT64
from ..ir.bodies import Body, Carried, Element, Result, Source, Step
from ..ir.derivatives import RULES, Emitter
from ..ir.program import Constant


def is_product(body: Body) -> bool:
    """Whether a reduction multiplies what does not depend on what is carried."""
    last = body.steps[-1]
    return (
        body.initial == (1.0,)
        and body.carried == (len(body.steps) - 1,)
        and (last.operation == "multiply" and last.operands[0] == Carried(0))
        and all(Carried(0) not in step.operands for step in body.steps[:-1])
    )


@functools.lru_cache(maxsize=4096)
def contribution(body: Body, operand: int, flows: tuple[bool, ...]) -> Body | None:
    """What an iteration adds to the adjoint of an operand; None if that is nothing.

    Its operands are those of `body`, the adjoint of the result and, of a product, the product of the other terms.

    Args:
        flows: for each operand, whether anything will be differentiated by it.
    """
    derivative = _Derivative(body, flows)
    adjoint: Source = Element(body.operands)
    steps = len(body.steps)
    if body.initial:
        steps -= 1
        if is_product(body):
            adjoint = derivative.emit("multiply", adjoint, Element(body.operands + 1))
    found = derivative.through(steps, operand, adjoint)
    count = body.operands + 1 + (bool(body.initial) and not body.is_sum)
    return None if found is None else _pruned(count, derivative.steps, found)


@functools.lru_cache(maxsize=4096)
def product_of_others(body: Body) -> Body:
    """The product of the terms of all iterations but one: the operands of `body`, the number of that, and of the other.

    It runs through the terms in one more loop.
    """
    *steps, last = body.steps
    is_own = len(steps)
    term = last.operands[1]
    steps += [
        Step("equal", (Element(body.operands), Element(body.operands + 1))),
        Step("select", (Result(is_own), 1.0, term)),
        Step("multiply", (Carried(0), Result(is_own + 1))),
    ]
    return Body(body.operands + 2, tuple(steps), body.initial, (is_own + 2,))


class _Derivative(Emitter):
    """Adds the steps of a derivative to those of a body."""

    precision = FLOAT64

    def __init__(self, body: Body, flows: tuple[bool, ...]) -> None:
        self._body, self._flows = body, flows
        self.steps = list(body.steps[:-1] if body.initial else body.steps)

    def emit(self, operation: str, *operands: Any) -> Source:
        """One more step; a power whose exponent is differentiated by as well says how."""
        sources = [one.value if isinstance(one, Constant) else one for one in operands]
        result = self._step(operation, *sources)
        if operation != "power" or not self._leads(sources[1], lambda k: self._flows[k]):
            return result
        x, exponent = sources
        is_zero, is_flat = self._step("equal", x, 0.0), self._step("less_equal", 0.0, exponent)
        slope = self._step("multiply", result, self._step("log", x))
        slope = self._step("select", self._step("multiply", is_zero, is_flat), 0.0, slope)
        return self._step("link", result, exponent, slope)

    def _step(self, operation: str, *sources: Source) -> Result:
        self.steps.append(Step(operation, sources))
        return Result(len(self.steps) - 1)

    def _again(self, link: Step, result: Result) -> Source:
        """The derivative that a link declares, computed from the link: so that it has that derivative as well."""
        found: dict[Source, Source] = {link.operands[0]: result}

        def again(source: Source) -> Source:
            if source not in found:
                step = self.steps[source.number] if isinstance(source, Result) else None
                moved = tuple(map(again, step.operands)) if step is not None else ()
                found[source] = source if step is None or moved == step.operands else self._step(step.operation, *moved)
            return found[source]

        return again(link.operands[2])

    def _leads(self, source: Source, wanted: Callable[[int], bool]) -> bool:
        if isinstance(source, Element):
            return source.number < len(self._flows) and wanted(source.number)
        if isinstance(source, Result):
            return any(self._leads(one, wanted) for one in self.steps[source.number].operands)
        return False

    def through(self, count: int, operand: int, adjoint: Source) -> Source | None:
        """The adjoint of an operand, from that of what `count` steps have computed."""
        body = self._body
        adjoints: dict[Source, Source] = {}

        def add(source: Source, term: Source) -> None:
            if self._leads(source, lambda k: k == operand):
                adjoints[source] = self.emit("add", adjoints[source], term) if source in adjoints else term

        add(body.steps[-1].operands[1] if body.initial else Result(count - 1), adjoint)
        for number in range(count - 1, -1, -1):
            step, found = body.steps[number], adjoints.get(Result(number))
            if found is None or step.operation not in RULES:
                continue
            if step.operation == "link":
                step = step._replace(operands=(*step.operands[:2], self._again(step, Result(number))))
            operands = [Constant(one) if isinstance(one, float) else one for one in step.operands]
            for source, term in zip(step.operands, RULES[step.operation](self, operands, Result(number), found)):
                if term is not None:
                    add(source, term.value if isinstance(term, Constant) else term)
        return adjoints.get(Element(operand))


def _pruned(operands: int, steps: list[Step], result: Source) -> Body:
    """The steps that a result needs, it being the last one."""
    needed: set[int] = set()
    pending = [result]
    while pending:
        source = pending.pop()
        if isinstance(source, Result) and source.number not in needed:
            needed.add(source.number)
            pending.extend(steps[source.number].operands)
    places = {number: place for place, number in enumerate(sorted(needed))}

    def moved(source: Source) -> Source:
        return Result(places[source.number]) if isinstance(source, Result) else source

    kept = [Step(steps[k].operation, tuple(map(moved, steps[k].operands))) for k in sorted(needed)]
    if not isinstance(result, Result) or result.number != max(needed):
        kept.append(Step("copy", (moved(result),)))
    return Body(operands, tuple(kept))
