"""Backward passes over tensors.

1. Collect the nests that the root depends on, through memory to which gradients flow.
2. The adjoint of everything computed begins with 0.0, that of the root with 1.0; gradients of leaves go on adding up.
3. Run the nests backwards in reverse order of creation (eager.py).
4. If there are functions among them with derivatives of their own (custom.py), the gradients are made by operations on
   tensors instead (gradients.py), and added up.

A compiled step has the same order: it records one BACKWARD, and its Program is read backwards
(simplify/differentiate.py).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import GradientError, ShapeError, user_location
from . import eager
from .apply import recording, tensor_of
from .memory import Memory, zeros
from .nests import Nest
from .shapes import View

if TYPE_CHECKING:
    from .tensor import Tensor

#: What is differentiated by these needs no operand.
_LINEAR = frozenset({"add", "subtract", "negate", "copy"})


def backward(root: Tensor, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
    """See `Tensor.backward`."""
    if create_graph:
        raise GradientError(
            f"{user_location()}: backward(create_graph=True) leaves numbers in grad, which are no part of a graph. "
            "Write gradients = mgjit.tensor.autograd.grad(loss, parameters, create_graph=True), and use these."
        )
    if not root.requires_grad:
        raise GradientError(
            f"{user_location()}: backward() of a tensor that does not depend on any with requires_grad=True, or was "
            "computed inside of no_grad()."
        )
    if gradient is not None:
        if gradient.shape != root.shape:
            raise ShapeError(
                f"{user_location()}: backward() of shape {root.shape} with a gradient of shape {gradient.shape}."
            )
        root = (root * gradient.detach()).sum()
    if root.size != 1:
        raise GradientError(
            f"{user_location()}: backward() of a tensor of shape {root.shape}. Reduce it to one number, as with "
            ".sum() or .mean(), or pass gradient=, a tensor of that shape."
        )
    memory, taking = root._memory, recording()
    if memory.is_leaf or (taking is not None and taking.is_wide(memory)):
        root, memory = (copied := root.copy()), copied._memory
    nests = reached(memory)
    if any(nest.is_custom for nest in nests):
        _add_gradients(root, nests)
    elif taking is not None:
        taking.backward(memory.leaf - root._view.offset)
    else:
        _run(root, nests)
    if not retain_graph:
        for nest in nests:
            assert nest.target.memory is not None
            nest.target.memory.made_by = None


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The derivatives of a number by some tensors; nothing is added to their `grad`.

    Args:
        outputs: a tensor of one element, or with `grad_outputs` of any shape; of several, the sum is differentiated.
        inputs: a tensor, or several.
        grad_outputs: what is differentiated is `(outputs * grad_outputs).sum()`; one for each output, or None.
        retain_graph, allow_unused: the graph stays; where nothing depends on an input, the gradient is zeros.
        only_inputs: as it is.
        create_graph: whether gradients flow through the results.

    Raises:
        GradientError: there is nothing to differentiate.
    """
    from .gradients import gradients
    from .modes import enable_grad, no_grad

    roots, weights, leaves = map(_several, (outputs, grad_outputs, inputs))
    with enable_grad():
        terms = [
            root if weight is None else (root * weight).sum()
            for root, weight in itertools.zip_longest(roots, weights) if root.requires_grad
        ]  # fmt: skip
        other = next((one for one in terms if one.size != 1), None) if terms else roots[0]
        if other is not None:
            raise GradientError(
                f"{user_location()}: grad of a tensor of shape {other.shape}, which is not one number, or does not "
                "depend on a tensor with requires_grad=True."
            )
        root = terms[0] if len(terms) == 1 else functools.reduce(operator.add, (one.reshape(()) for one in terms))
    with enable_grad() if create_graph else no_grad():
        return tuple(gradients(root, reached(root._memory), leaves))


def _several(given: Any) -> list[Any]:
    """The parts of a tuple or list, or one thing alone, or nothing."""
    return list(given) if isinstance(given, (tuple, list)) else [] if given is None else [given]


def reached(root: Memory, ends: Iterable[Memory] = ()) -> list[Nest]:
    """The nests behind a memory, last ones first.

    Args:
        ends: memories behind which nothing is looked for.

    Raises:
        GradientError: the graph has been used or changed.
    """
    found: dict[int, Nest] = {}
    seen = {id(root), *map(id, ends)}
    pending = [root]
    while pending:
        memory = pending.pop()
        if memory.made_by is None:
            raise GradientError(
                f"{user_location()}: a backward pass has already gone through this graph. Compute it again, or pass "
                "retain_graph=True to the first backward()."
            )
        for nest in memory.made_by:
            found[nest.sequence] = nest
            for operand, version in zip(nest.operands, nest.versions):
                if operand.memory is not None and operand.memory.version != version and _needs_operands(nest):
                    raise GradientError(
                        f"{user_location()}: the derivative of {nest.name} needs an operand to which something has "
                        "been assigned since. Assign after backward(), or to a copy()."
                    )
                if operand.flows and id(operand.memory) not in seen and not operand.memory.is_leaf:  # type: ignore[union-attr]
                    seen.add(id(operand.memory))
                    pending.append(operand.memory)  # type: ignore[arg-type]
    return [found[number] for number in sorted(found, reverse=True)]


def _needs_operands(nest: Nest) -> bool:
    return nest.is_custom or any(step.operation not in _LINEAR for step in nest.body.steps)


def _add_gradients(root: Tensor, nests: list[Nest]) -> None:
    """Add gradients that operations on tensors make to those of all leaves."""
    from .gradients import gradients
    from .modes import no_grad

    read = (one.memory for nest in nests for one in nest.operands if one.flows)
    leaves = list({id(memory): memory for memory in read if memory is not None and memory.is_leaf}.values())
    whole = [View(0, (memory.size,), (1,)) for memory in leaves]
    with no_grad():
        found = gradients(root, nests, [tensor_of(memory, view) for memory, view in zip(leaves, whole)])
        for memory, view, gradient in zip(leaves, whole, found):
            total = tensor_of(memory.gradient(), view)
            total[...] = total + gradient


def _run(root: Tensor, nests: list[Nest]) -> None:
    memory = root._memory
    adjoints: dict[int, Any] = {}
    for one in (memory, *(operand.memory for nest in nests for operand in nest.operands if operand.flows)):
        assert one is not None
        if id(one) not in adjoints:
            adjoints[id(one)] = one.grad if one.is_leaf else zeros(one.size, one.dtype)
    adjoints[id(memory)][root._view.offset] = 1.0
    for nest in nests:
        eager.run_backward(nest, adjoints)


def __getattr__(name: str) -> Any:
    from .spellings import missing

    if name == "Function":
        from .custom import Function  # which needs tensors

        return Function

    raise missing(__name__, globals(), name)
