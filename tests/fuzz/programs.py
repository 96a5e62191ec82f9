"""The random programs, of both grammars: by a seed, or drawn by Hypothesis, which can shrink them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from .models import ModelWriter
from .strategy import Writer


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Random programs that Hypothesis can shrink."""

    def choose(n: int) -> int:
        return draw(st.integers(0, n - 1))

    return (Writer, ModelWriter)[choose(2)](choose).program()


def random_program(seed: int) -> str:
    """The program of a seed, without Hypothesis; every other one trains a model."""
    writer = ModelWriter if seed % 2 else Writer
    return writer(random.Random(seed).randrange).program()
