"""The random programs, of all grammars: by a seed, or drawn by Hypothesis, which can shrink them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from .descents import DescentWriter
from .models import ModelWriter
from .strategy import Writer


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Random programs that Hypothesis can shrink."""

    def choose(n: int) -> int:
        return draw(st.integers(0, n - 1))

    return (Writer, ModelWriter, DescentWriter)[choose(3)](choose).program()


def random_program(seed: int) -> str:
    """The program of a seed, without Hypothesis: half of them train a model, of which half by plain descent."""
    writer = (Writer, ModelWriter, Writer, DescentWriter)[seed % 4]
    return writer(random.Random(seed).randrange).program()


def descent_program(seed: int) -> str:
    """A program that trains a model by plain gradient descent."""
    return DescentWriter(random.Random(seed).randrange).program()
