"""Networks of many widths on the default compiler: short loops of odd lengths are where optimisers go wrong.

gcc 12 at -O3 has read sums before they were complete, once `restrict` pointers had been inlined (see
`function` in mgjit/compiler/codegen/function.py); a third of these networks had wrong gradients then.
"""

from __future__ import annotations

import random

import pytest

import mgjit
from mgjit.compiler.toolchain import compilers
from tests.refusals import bits

pytestmark = pytest.mark.once

DRAW = random.Random(5)
WIDTHS = [[DRAW.choice([7, 9, 11, 13, 15, 17, 21, 31]) for _ in range(DRAW.choice([3, 3, 4]))] for _ in range(12)]


@pytest.mark.parametrize("widths", [[7, 7, 7], [14, 11, 15], *WIDTHS], ids=str)
def test_01_networks_of_odd_widths(widths: list[int]) -> None:
    """Three steps of SGD, compiled with the flags of every day: every parameter and gradient."""
    if compilers.find() is None:
        pytest.skip("no C compiler is installed")
    draw = random.Random(7)
    x = [draw.uniform(-1.0, 1.0) for _ in range(widths[0])]
    y = [draw.uniform(-1.0, 1.0) for _ in range(widths[-1])]

    def numbers(decorate: bool) -> list[bytes]:
        model = mgjit.nn.MLP(widths[0], widths[1:], seed=35)

        def step(x: list[float], y: list[float]) -> None:
            loss = sum((o - t) ** 2 for o, t in zip(model(x), y))
            loss.backward()
            for p in model.parameters():
                p.data -= 0.01 * p.grad

        run = mgjit.compile(backend="c", cache=False)(step) if decorate else step
        for _ in range(3):
            run(x, y)
        return [bits(n) for p in model.parameters() for n in (p.data, p.grad)]

    assert numbers(decorate=True) == numbers(decorate=False)
