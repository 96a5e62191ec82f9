"""Gradients that are made by operations on tensors, through which gradients flow again.

A backward pass (autograd.py) leaves numbers in `grad`.  This one returns tensors, as what they are: functions of all
that the differentiated number depends on.  Derivatives of derivatives are gradients of such gradients.

1. Collect the nests behind the root that lead to what is differentiated by.
2. Go through them in reverse order.  When all that reads a memory has been seen, its adjoint is an empty sum, to which
   one nest for each reader adds what derivative.py says, element by element: where windows overlap, and where indices
   repeat, several terms go to one element.
3. The maximum of several elements is the one that argmax finds; of a product, each term has the product of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import GradientError, user_location
from ..ir.bodies import COPY, REDUCTIONS, Body, define
from .apply import fresh, new_memory, perform, tensor_of
from .derivative import contribution, is_product, product_of_others
from .dtypes import int64
from .memory import Memory
from .modes import gradients_are_on
from .nests import Access, Nest
from .shapes import View
from .tensor import Tensor

_EXTREMES = {REDUCTIONS[name]: REDUCTIONS[found] for name, found in (
    ("max", "argmax"), ("greatest", "argmax"), ("min", "argmin"), ("least", "argmin")
)}  # fmt: skip
#: What the chosen element of a maximum gets: of the index of that, its own index, and the adjoint.
_OF_CHOSEN = define(lambda chosen, k, g: chosen.apply("equal", k).apply("select", g, 0.0))


def gradients(root: Tensor, nests: Sequence[Nest], leaves: Sequence[Tensor]) -> list[Tensor]:
    """The derivatives of one number by some tensors, each with a memory of its own.

    Args:
        nests: what the root depends on (autograd.reached), last ones first.
    """
    found = _Pass(nests, [leaf._memory for leaf in leaves])
    found.begin(root)
    for nest in nests:
        found.read(nest)
    return [found.gradient(leaf) for leaf in leaves]


class _Term(NamedTuple):
    """What one nest adds to an adjoint, element by element."""

    name: str
    body: Body
    loops: tuple[int, ...]
    operands: tuple[Access, ...]
    target: Access


def _require_last(nest: Nest, number: int) -> None:
    """Raise an error if something has been added, after a nest has read a memory, to what it has read."""
    memory = nest.operands[number].memory
    assert memory is not None
    if memory.version != nest.versions[number] and any(one.adds for one in memory.made_by or ()):
        raise GradientError(
            f"{user_location()}: a second derivative through {nest.name}, to whose operand something has been added in "
            "place since. Write x = x + y in place of x += y."
        )


class _Pass:
    def __init__(self, nests: Sequence[Nest], leaves: Sequence[Memory]) -> None:
        self._leading = set(map(id, leaves))
        for nest in reversed(nests):
            assert nest.target.memory is not None
            if any(one.flows and id(one.memory) in self._leading for one in nest.operands):
                self._leading.add(id(nest.target.memory))
        #: By the identity of a memory: the nests that read it, each with the number of the operand.
        self._readers: dict[int, list[tuple[Nest, int]]] = {}
        self._adjoints: dict[int, Memory] = {}

    def begin(self, root: Tensor) -> None:
        """The adjoint of the root is 1.0."""
        memory = root._memory
        adjoint = self._adjoints[id(memory)] = new_memory(memory.size, memory.dtype)
        whole = tensor_of(adjoint, View(0, (memory.size,), (1,)))
        whole[...] = 0.0
        whole[root._view.offset : root._view.offset + 1] = 1.0

    def read(self, nest: Nest) -> None:
        """Note what a nest reads; all that reads what it has written has been noted."""
        target = nest.target.memory
        assert target is not None
        for number, operand in enumerate(nest.operands):
            if operand.memory is target and operand.flows and not nest.is_custom:
                self._readers.setdefault(id(target), []).append((nest, number))
        adjoint = self._adjoint(target)
        if adjoint is None:
            return
        if nest.is_custom:
            node: Any = nest
            node.differentiate(tensor_of(adjoint, node.made._view))
        for number, operand in enumerate(nest.operands):
            if operand.flows and id(operand.memory) in self._leading and operand.memory is not target:
                if not nest.is_custom:
                    _require_last(nest, number)
                self._readers.setdefault(id(operand.memory), []).append((nest, number))

    def gradient(self, leaf: Tensor) -> Tensor:
        """The adjoint of a leaf, or zeros."""
        adjoint = self._adjoint(leaf._memory)
        if adjoint is None:
            made = fresh(leaf.shape, leaf.dtype)
            made[...] = 0.0
            return made
        return tensor_of(adjoint, leaf._view)

    def _adjoint(self, memory: Memory) -> Memory | None:
        """The adjoint of a memory all of whose readers have been noted; None if there are none."""
        if id(memory) not in self._adjoints and id(memory) in self._readers:
            readers = self._readers.pop(id(memory))
            own = [reader for reader in readers if reader[0].target.memory is memory]
            terms = [term for reader in readers if reader not in own for term in self._terms(*reader)]
            if terms:
                self._adjoints[id(memory)] = self._sum(memory, terms)
                for nest, number in own:
                    self._scan_back(memory, nest, number)
        return self._adjoints.get(id(memory))

    def _sum(self, memory: Memory, terms: Sequence[_Term]) -> Memory:
        """0.0, and all terms."""
        made = new_memory(memory.size, memory.dtype)
        flowing = next((one for term in terms for one in term.operands if one.flows), None)
        whole = Access(made, 0, (1,))
        anything = Access(memory, 0, (0, 0)) if flowing is None else flowing._replace(strides=(0, 0), chosen=None)
        perform(Nest("zeros", REDUCTIONS["sum"], (memory.size,), (0,), (anything,), whole))
        for term in terms:
            target = term.target._replace(memory=made)
            perform(Nest(term.name, term.body, term.loops, (), term.operands, target, adds=True))
        return made

    def _scan_back(self, memory: Memory, nest: Nest, number: int) -> None:
        """Let a sum of all elements so far (scans.py) pass each adjoint on to that of the element before."""
        adjoint, loops = self._adjoints[id(memory)], nest.outer
        flows = gradients_are_on() and adjoint.differentiates

        def reversed_(access: Access, flows: bool) -> Access:
            offset = access.offset + sum((count - 1) * stride for count, stride in zip(loops, access.strides))
            return Access(adjoint, offset, tuple(-stride for stride in access.strides), flows)

        source, target = reversed_(nest.target, flows), reversed_(nest.operands[number], False)
        perform(Nest(f"{nest.name} backward", COPY, loops, (), (source,), target, adds=True))

    def _terms(self, nest: Nest, number: int) -> list[_Term]:
        """What a nest adds to the adjoint of an operand: one term, or none."""
        if nest.is_custom:
            node: Any = nest
            gradient = node.gradients[number]
            if gradient is None or 0 in gradient.shape:
                return []
            flows = gradients_are_on() and gradient.requires_grad
            operand = Access(gradient._memory, gradient._view.offset, gradient.strides, flows)
            target = nest.operands[number]._replace(memory=None, flows=False)
            return [_Term(f"{nest.name} backward", COPY, gradient.shape, (operand,), target)]
        loops, inner = (*nest.outer, *nest.inner), nest.inner
        if 0 in loops:
            return []
        adjoint = self._of_target(nest)
        operands = tuple(self._access(one) for one in nest.operands)
        body: Body | None
        if nest.body in _EXTREMES:
            operands = (self._chosen(nest), _numbers(inner[0], len(nest.outer), len(loops)), adjoint)
            body = _OF_CHOSEN
        else:
            if nest.body.initial and not nest.body.is_sum:
                operands += adjoint, self._others(nest, operands)
            else:
                operands += (adjoint,)
            body = contribution(nest.body, number, tuple(one.flows for one in nest.operands))
        if body is None:
            return []
        target = nest.operands[number]._replace(memory=None, flows=False)
        return [_Term(f"{nest.name} backward", body, loops, operands, target)]

    def _access(self, operand: Access) -> Access:
        """An operand that is read once more."""
        memory = operand.memory
        flows = operand.flows and memory is not None and gradients_are_on() and memory.differentiates
        return operand._replace(flows=flows)

    def _of_target(self, nest: Nest) -> Access:
        """The adjoint of what an iteration computes."""
        target = nest.target
        assert target.memory is not None
        memory = self._adjoints[id(target.memory)]
        flows = gradients_are_on() and memory.differentiates
        strides = target.strides + (0,) * len(nest.inner)
        return Access(memory, target.offset, strides, flows, chosen=target.chosen)

    def _chosen(self, nest: Nest) -> Access:
        """The number of the element that a maximum or minimum has found."""
        made = fresh(nest.outer, int64)
        operands = tuple(one._replace(flows=False) for one in nest.operands)
        body = _EXTREMES[nest.body]
        perform(Nest("argmax", body, nest.outer, nest.inner, operands, Access(made._memory, 0, made.strides)))
        return Access(made._memory, 0, (*made.strides, 0))

    def _others(self, nest: Nest, operands: Sequence[Access]) -> Access:
        """Of each term of a product, the product of the others."""
        if not is_product(nest.body) or any(one.chosen is not None for one in operands):
            raise _unknown(nest)
        outer, (count,) = nest.outer, nest.inner
        assert nest.target.memory is not None
        made = fresh((*outer, count), nest.target.memory.dtype)
        rank = len(outer)
        terms = tuple(one._replace(strides=(*one.strides[:rank], 0, *one.strides[rank:])) for one in operands)
        own, other = _numbers(count, rank, rank + 2), _numbers(count, rank + 1, rank + 2)
        target = Access(made._memory, 0, made.strides)
        body = product_of_others(nest.body)
        perform(Nest("prod backward", body, (*outer, count), (count,), (*terms, own, other), target))
        flows = gradients_are_on() and made._memory.differentiates
        return Access(made._memory, 0, made.strides, flows)


def _numbers(count: int, loop: int, loops: int) -> Access:
    """0, 1, 2, ... along a loop."""
    from .creation import arange

    strides = tuple(int(k == loop) for k in range(loops))
    return Access(arange(count)._memory, 0, strides)


def _unknown(nest: Nest) -> GradientError:
    return GradientError(
        f"{user_location()}: the gradient of {nest.name} is not known as operations on tensors, which derivatives of "
        "derivatives need. Compute it from other operations, or take the gradient with backward()."
    )
