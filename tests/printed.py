"""The Programs in docs/ir.md, docs/passes.md and docs/how-it-works/index.md: by the real passes and printer.

1. `STEPS` has small steps; a step is traced, and lowered for `PROCESSOR`.
2. A document says what its blocks are: `<!-- fit after phases: backward -->` stands in front of the backward phase of
   the step `fit` after the pass `phases`, `<!-- fit -->` in front of its source, `<!-- fit as recorded -->` in front of
   its records before anything is rolled, `<!-- fit in C -->` in front of what it becomes.
3. `filled(text)` is a document with all such blocks made afresh.

    python -m tests.printed --write     # writes all documents
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.schedule import blocks, rotate
from mgjit.compiler.simplify import late_gradients
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.printer import print_program
from mgjit.ir.program import Program
from tests.lowering import STAGES, Example, numbers

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = DOCS / "ir.md", DOCS / "passes.md", DOCS / "how-it-works" / "index.md"
PROCESSOR = Processor(lanes=4, registers=6)
#: Statements in a block, in these examples.
BLOCK_SIZE = 4
#: Gradients that are worth being late, in these examples.
LEAST_LATE = 40

_BLOCK = re.compile(r"<!-- (?P<what>[a-z][^\n]*?) -->\n```(?:text|python|c)\n.*?```\n", re.DOTALL)
_PROGRAM = re.compile(r"(?P<step>\w+) (?P<when>before|after) (?P<stage>[a-z ]+?)(?:: (?P<phase>\w+))?")


def values(count: int, seed: int = 1) -> list[mgjit.Value]:
    """Parameters."""
    return [mgjit.Value(number) for number in numbers(count, seed)]


def matrix(rows: int, columns: int) -> list[list[mgjit.Value]]:
    """Rows of parameters."""
    return [values(columns, seed) for seed in range(rows)]


def neuron() -> Example:
    """A sum."""
    weights = values(5)

    def neuron(x: Any) -> Any:
        total = 0.1
        for w, element in zip(weights, x):
            total = total + w * element
        return total

    return Example(neuron, numbers(5))


def layer() -> Example:
    """Sums of which each has a row of a matrix."""
    rows = matrix(8, 5)

    def layer(x: Any) -> Any:
        return [mgjit.tanh(sum(w * element for w, element in zip(row, x))) for row in rows]

    return Example(layer, numbers(5))


def deep() -> Example:
    """Layers of equal size, of which the first one reads the arguments."""
    layers = [matrix(5, 5) for _ in range(3)]

    def deep(x: Any) -> Any:
        for rows in layers:
            x = [sum(w * element for w, element in zip(row, x)) for row in rows]
        return x

    return Example(deep, numbers(5))


def features() -> Example:
    """Lists that are made differently and read alike."""
    weights = values(6)

    def features(x: Any) -> Any:
        first, second = [mgjit.exp(w) for w in weights], [mgjit.tanh(w) for w in weights]
        third, fourth = [-w for w in weights], [abs(w) for w in weights]
        return [row[2] * x for row in (first, second, third, fourth)]

    return Example(features, 0.5)


def fit() -> Example:
    """A complete step."""
    weights = values(6)

    def fit(x: Any, y: Any, rate: Any) -> Any:
        error = sum(w * element for w, element in zip(weights, x)) - y
        loss = error * error
        for w in weights:
            w.grad = 0.0
        loss.backward()
        for w in weights:
            w.data -= rate * w.grad
        return loss

    return Example(fit, numbers(6), 0.5, 0.1)


def pixels() -> Example:
    """A layer over bytes."""
    rows = matrix(8, 5)

    def pixels(x: Any) -> Any:
        scaled = [byte / 255.0 for byte in x]
        return [sum(w * element for w, element in zip(row, scaled)) for row in rows]

    return Example(pixels, bytes([0, 255, 17, 3, 200]))


def online() -> Example:
    """A layer that is trained on one sample."""
    rows = matrix(8, 5)

    def online(x: Any, rate: Any) -> Any:
        scores = [sum(w * element for w, element in zip(row, x)) for row in rows]
        loss = sum(score * score for score in scores)
        for row in rows:
            for w in row:
                w.grad = 0.0
        loss.backward()
        for row in rows:
            for w in row:
                w.data -= rate * w.grad
        return loss

    return Example(online, numbers(5), 0.1)


def decay() -> Example:
    """A layer whose parameters are updated by a rule of three operations."""
    rows, biases = matrix(8, 5), values(8)
    parameters = [*biases, *(w for row in rows for w in row)]

    def decay(x: Any, rate: Any) -> Any:
        loss = sum(mgjit.tanh(b + sum(w * element for w, element in zip(row, x))) for b, row in zip(biases, rows))
        loss.backward()
        for w in parameters:
            w.data = w.data - rate * (w.grad + 0.1 * w.data)
        return loss

    return Example(decay, numbers(5), 0.1)


def distances() -> Example:
    """Squares."""
    weights = values(6)

    def distances(x: Any) -> Any:
        loss = sum((w - element) ** 2 for w, element in zip(weights, x))
        loss.backward()
        return loss

    return Example(distances, numbers(6))


def batch() -> Example:
    """A layer for each sample."""
    rows = matrix(6, 6)

    def batch(samples: Any) -> Any:
        loss = 0.0
        for x in samples:
            hidden = [sum(w * element for w, element in zip(row, x)).relu() for row in rows]
            loss = loss + sum(hidden)
        loss.backward()
        return loss

    return Example(batch, [numbers(6, seed) for seed in range(5)])


def samples() -> Example:
    """The same matrix for each sample."""
    rows = matrix(4, 5)

    def samples(batch: Any) -> Any:
        results = []
        for x in batch:
            hidden = [sum(w * element for w, element in zip(row, x)) for row in rows]
            results.append(mgjit.exp(hidden[0]))
        return results

    return Example(samples, [numbers(5, seed) for seed in range(12)])


def softmax() -> Example:
    """Quotients by the same number."""
    weights = values(6)

    def softmax(x: Any) -> Any:
        powers = [mgjit.exp(w * element) for w, element in zip(weights, x)]
        total = sum(powers)
        return [power / total for power in powers]

    return Example(softmax, numbers(6))


def odd() -> Example:
    """No two operations alike."""
    a, b, c = values(3)

    def odd(x: Any) -> Any:
        return mgjit.exp(a * x) + mgjit.tanh(b - x) * mgjit.sqrt(abs(c) + 1.0)

    return Example(odd, 0.5)


def lookup() -> Example:
    """Rows that are chosen at run time."""
    table = matrix(7, 5)

    def lookup(words: Any) -> Any:
        loss = sum(w * w for word in words for w in mgjit.take(table, word))
        loss.backward()
        return loss

    return Example(lookup, bytes([4, 0, 4, 2, 6]))


def scattered() -> Example:
    """Elements without a pattern."""
    weights, order = values(8), (3, 0, 4, 1, 7)

    def scattered(x: Any) -> Any:
        return [weights[k] * element for k, element in zip(order, x)]

    return Example(scattered, numbers(5))


def prefixes() -> Example:
    """Each number with those before it."""
    weights = values(8)

    def prefixes(x: Any) -> Any:
        y = [w * element for w, element in zip(weights, x)]
        sums = []
        for i, a in enumerate(y):
            powers = [mgjit.exp(a * b) for b in y[: i + 1]]
            sums.append(sum(powers))
        return sums

    return Example(prefixes, numbers(8))


STEPS: dict[str, Callable[[], Example]] = {
    make.__name__: cache(make)
    for make in (
        neuron, layer, deep, features, fit, online, decay, distances, batch, samples, softmax, odd, lookup, scattered,
        prefixes, pixels,
    )
}  # fmt: skip


def program(step: str, stage: str) -> Program:
    """The Program of a step after a pass; from `layout` on with this layout, if the step has one that is better."""
    made = STEPS[step]()
    laid_out = step in ("layer", "online", "decay", "pixels") and STAGES.index(stage) >= STAGES.index("layout")
    with pytest.MonkeyPatch.context() as patch:
        if step == "odd":
            patch.setattr(blocks, "BLOCK_SIZE", BLOCK_SIZE)
        if step == "online":
            patch.setattr(late_gradients, "FEWEST", LEAST_LATE)
            patch.setattr(late_gradients, "A_KEPT_NUMBER", 2)
        patch.setattr(rotate, "is_worth_it", lambda saved, scratch: step == "online" and saved > 0)
        return made.lower(
            stage, laid_out=laid_out, processor=PROCESSOR,
            grads=stage not in ("gradients", "quotients", "rotate") or (step, stage) == ("online", "gradients"),
        )  # fmt: skip


def in_c(step: str) -> str:
    """The functions of the phases of a step, without what is around them."""
    made = program(step, "last dead statements")  # as whoever reads gradients needs it
    source = emit_c(made, lay_out(made, STEPS[step]().memory), "strict")
    found = re.findall(r"^static NOINLINE void \w+_on\(.*?^}\n", source, re.MULTILINE | re.DOTALL)
    return "\n".join(found).replace("static NOINLINE ", "").replace("RESTRICT ", "")


def block(what: str) -> str:
    """What is in front of a block says what is in it."""
    if what.endswith(" as recorded"):
        return f"```text\n{print_program(STEPS[what.split()[0]]().lower('lift', rolled=False))}```\n"
    if what.endswith(" in C"):
        return f"```c\n{in_c(what.split()[0])}```\n"
    found = _PROGRAM.fullmatch(what)
    if found is None:
        source = textwrap.dedent(inspect.getsource(STEPS[what]().function))
        return f"```python\n{source.replace(': Any', '').replace(' -> Any', '')}```\n"
    stage = found["stage"]
    made = program(found["step"], stage if found["when"] == "after" else STAGES[STAGES.index(stage) - 1])
    if found["phase"] is not None:
        for name, nodes in made.phases:
            if name != found["phase"]:
                nodes.clear()
    return f"```text\n{print_program(made)}```\n"


def filled(text: str) -> str:
    """A document with its blocks as they should be."""
    return _BLOCK.sub(lambda found: f"<!-- {found['what']} -->\n{block(found['what'])}", text)


def main() -> None:
    """Write the documents."""
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for document in DOCUMENTS:
        document.write_text(filled(document.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
