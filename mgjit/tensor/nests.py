"""A loop nest over scalars: what every operation on tensors is.

    for each index of the outer loops:
        carried = initial
        for each index of the inner loops:
            carried = steps(carried, elements of the operands)
        target = carried                   or, of a nest that adds: target = target + carried

An elementwise operation has no inner loops.  Operands and target are addressed by an offset and a stride for each loop,
so a broadcast is a stride of 0, a transpose is another order of strides, and a convolution is a view whose windows
overlap.  Outer loops run in row-major order; backward passes run through all loops in reverse.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from ..engine.precision import FLOAT32, FLOAT64, Precision
from ..ir.bodies import Body
from .memory import Memory

#: The numbers of operations, in order of creation.
next_in_sequence = itertools.count().__next__


class Chosen(NamedTuple):
    """Elements that another operand chooses: its number, what one more is worth in elements, and the limit."""

    operand: int
    stride: int
    extent: int


class Access(NamedTuple):
    """Which elements of a memory the iterations read or write, or one number for all of them.

    Attributes:
        memory: None for a number.
        offset: of the first iteration.
        strides: for each loop, outer ones first.
        flows: whether gradients flow to it.
        number: the number: a float, or a traced one.
        chosen: what is added to the place at run time.
    """

    memory: Memory | None
    offset: int
    strides: tuple[int, ...]
    flows: bool = False
    number: Any = None
    chosen: Chosen | None = None


class Nest:
    """One operation on tensors.

    Attributes:
        name: of the operation, for messages and reports.
        body: what an iteration does.
        outer, inner: the numbers of iterations.
        operands, target: what is read and written.
        adds: whether results are added to what the target has: an elementwise operation, of which several results may
            go to one element.
        precision: of the arithmetic.
        flows: whether gradients flow through it.
        sequence: nests are counted, in order of creation.
        versions: of the memory of the operands, when it ran.
    """

    __slots__ = (
        "adds",
        "body",
        "flows",
        "inner",
        "name",
        "operands",
        "outer",
        "precision",
        "sequence",
        "target",
        "versions",
    )

    #: Whether it is a function with a derivative of its own, in place of a nest (custom.py).
    is_custom = False

    def __init__(
        self, name: str, body: Body, outer: tuple[int, ...], inner: tuple[int, ...],
        operands: tuple[Access, ...], target: Access, adds: bool = False,
    ) -> None:  # fmt: skip
        self.adds = adds
        self.name, self.body, self.outer, self.inner = name, body, outer, inner
        self.operands, self.target = operands, target
        memories = [one.memory for one in (*operands, target) if one.memory is not None]
        self.precision: Precision = FLOAT32 if any(m.dtype.precision is FLOAT32 for m in memories) else FLOAT64
        self.flows = any(operand.flows for operand in operands)
        self.sequence = next_in_sequence()
        self.versions = [one.memory.version if one.memory is not None else 0 for one in operands]

    def is_empty(self) -> bool:
        """Whether it has no iteration."""
        return 0 in self.outer


class Form(NamedTuple):
    """What decides the text of a function.

    Attributes:
        body: of the nest.
        outer, inner: how many loops there are.
        formats: of the operands and of the target.
        chosen: for each operand, and for the target, the one that chooses its elements, or -1.
        flows: for each operand whether gradients flow to it; empty for the forward function.
        precision: the name of that of the arithmetic.
        adds: whether results are added to what the target has.
    """

    body: Body
    outer: int
    inner: int
    formats: tuple[str, ...]
    chosen: tuple[int, ...]
    flows: tuple[bool, ...]
    precision: str
    adds: bool
