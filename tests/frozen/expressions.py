"""Random expressions over tensors, frozen and exported: the bits of eager tensors, in the process and as C.

    python -m tests.frozen.expressions 300          # so many, from seed 0
    python -m tests.frozen.expressions 300 5000     # from seed 5000

Two of the three operands are parameters, which training changes afterwards.  Each expression is frozen, alone and as
the forward part of a training step.  Both, and the training step itself, are exported, compiled (by tcc and gcc in
turn) and run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import mgjit
from tests.export.compiling import checked
from tests.tensor.cases import numbers
from tests.tensor.expressions import Expressions


def mismatch(seed: int, compiles: bool = True) -> str:
    """What differs from eager tensors; empty if nothing does.

    Args:
        compiles: whether exported C is compiled and run as well.
    """
    expressions = Expressions(seed)
    first, second, given = expressions.operands()
    expressions.grow([first, second, given], expressions.random.randint(2, 7))
    clears = seed % 4 != 3
    parameters = [first, second]
    for p in parameters:
        p.requires_grad = True

    def forward(x: Any) -> Any:
        return expressions.run([first, second, x])

    def train(x: Any, rate: Any) -> Any:
        loss = forward(x)
        if clears:
            for p in parameters:
                p.zero_grad()
        if loss.requires_grad:
            loss.backward()
        with mgjit.no_grad():
            for p in parameters:
                p[...] = p - rate * p.grad
        return loss

    def compiled(function: Any) -> Any:
        return mgjit.compile(function, background=False, dtype=expressions.dtype, compiler="tcc", verify="never")

    expected, step = numbers(forward(given)), compiled(train)
    frozen = [("the model", mgjit.freeze(compiled(forward), given), (given,))]
    if forward(given).requires_grad:
        frozen.append(("the training step", mgjit.freeze(step, given, 0.01), (given, 0.01)))
    if compiles:
        with tempfile.TemporaryDirectory() as folder:
            exported = [*frozen, ("training", step, (given, 0.01))]
            for number, (what, one, arguments) in enumerate(exported):
                one.export(Path(folder), f"net{number}", calls=[arguments] * 2)
                try:
                    checked(Path(folder), f"net{number}", "gcc" if seed % 2 else "tcc")
                except AssertionError as error:
                    return f"exported C of {what}: {error}"[:200]
    for trained in (False, True):
        for what, one, arguments in frozen:
            if numbers(one(*arguments)) != expected:
                return f"{what}, frozen" + ", after training" * trained
        step(given, 0.01)
    return ""


def main() -> None:
    """Compare as many expressions as the first argument says."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = [(seed, what) for seed in range(first, first + count) if (what := mismatch(seed))]
    print(f"{count} expressions, {len(found)} mismatches {found[:10]}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
