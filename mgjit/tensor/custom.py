"""Functions of tensors whose derivative the program says: `custom_gradient`, and `Function` as PyTorch writes it.

1. The function runs without a graph.  Its result gets a node in place of a nest: it has operands, a target and a place
   in the order of all, but only Python knows its derivative.
2. A backward pass through such a node is made by operations on tensors (gradients.py), in a step as outside of one.
   When the adjoint of the result is complete, the node asks for what its operands get.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import GradientError, ShapeError, described, user_location
from .apply import access
from .modes import gradients_are_on, no_grad
from .nests import Access, next_in_sequence
from .tensor import Tensor


class Custom:
    """What stands in place of a nest: one call of a function with a derivative of its own.

    Args:
        name: of the function. backward: from the adjoint of the result to those of the operands.
        given: the operands. made: the result.

    Attributes:
        operands, target, sequence, versions: as of a `Nest`.
        gradients: of the operands, once the adjoint of the result is known.
    """

    is_custom = True
    flows = True

    def __init__(self, name: str, backward: Callable[[Tensor], Any], given: Sequence[Tensor], made: Tensor) -> None:
        self.name, self._backward, self._given, self.made = name, backward, given, made
        self.operands = tuple(access(name, one, one.strides, one.shape, True) for one in given)
        self.target = Access(made._memory, 0, made.strides)
        self.sequence = next_in_sequence()
        self.versions = [one._memory.version for one in given]
        self.gradients: list[Tensor | None] = []

    def differentiate(self, adjoint: Tensor) -> None:
        """Ask for the gradients of the operands.

        Raises:
            GradientError, ShapeError: there are others than operands.
        """
        found = self._backward(adjoint)
        self.gradients = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(self.gradients) != len(self.operands):
            raise GradientError(
                f"{user_location()}: the derivative of {self.name} returns {len(self.gradients)} gradients for "
                f"{len(self.operands)} tensors: one for each is needed, or None."
            )
        for number, (gradient, operand) in enumerate(zip(self.gradients, self._given)):
            if gradient is not None and not isinstance(gradient, Tensor):
                raise GradientError(
                    f"{user_location()}: the derivative of {self.name} returns the {described(gradient)}, not a tensor."
                )
            if gradient is not None and gradient.shape != operand.shape:
                raise ShapeError(
                    f"{user_location()}: the derivative of {self.name} returns a gradient of shape {gradient.shape} "
                    f"for tensor {number}, of shape {operand.shape}."
                )


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors with a derivative of its own.

    Args:
        function: returns its result, and a function from the gradient of that to the gradients of the tensors among
            its arguments: one, or a tuple of one for each, or None.

    Examples:
        >>> @mgjit.custom_gradient
        ... def rounded(x):
        ...     return mgjit.tensor.round(x), lambda g: g  # as if it were x
        >>> mgjit.grad(lambda x: (rounded(x) * x).sum())(mgjit.tensor.asarray([1.2, 2.6])).tolist()
        [2.2, 5.6]
    """

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        with no_grad():
            found = function(*arguments, **named)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Tensor) and callable(found[1])):
            raise GradientError(
                f"{user_location()}: {function.__name__} returns the {described(found)}: a tensor and a function that "
                "returns gradients are needed."
            )
        return _linked(function.__name__, found[0], found[1], [x for x in arguments if isinstance(x, Tensor)])

    return called


def _linked(name: str, result: Tensor, backward: Callable[[Tensor], Any], given: Sequence[Tensor]) -> Tensor:
    with no_grad():
        made = result.copy()
    if gradients_are_on() and made.dtype.is_floating and any(one.requires_grad for one in given):
        assert made._memory.made_by is not None
        made._memory.made_by.append(Custom(name, backward, given, made))  # type: ignore[arg-type]
    return made


class Context:
    """What `forward` keeps for `backward`, in attributes as well.

    Attributes:
        saved_tensors: what `save_for_backward` was given.
        needs_input_grad: whether each argument requires a gradient.
    """

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors."""
        self.saved_tensors = tensors


class Function:
    """A function with a derivative of its own, as `torch.autograd.Function`: static methods `forward` and `backward`.

    `forward(ctx, *arguments)` returns a tensor, and `backward(ctx, gradient)` a gradient for each argument.

    Examples:
        >>> class Reverse(mgjit.tensor.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x
        ...     @staticmethod
        ...     def backward(ctx, gradient):
        ...         return -gradient
        >>> mgjit.grad(lambda x: Reverse.apply(x).sum())(mgjit.tensor.asarray([1.0, 2.0])).tolist()
        [-1.0, -1.0]
    """

    forward: Any
    backward: Any
    setup_context: Any = None

    @classmethod
    def apply(cls, *arguments: Any) -> Tensor:
        """The result of `forward`, whose gradient `backward` tells."""
        context = Context()
        context.needs_input_grad = tuple(isinstance(x, Tensor) and x.requires_grad for x in arguments)
        places = [k for k, x in enumerate(arguments) if isinstance(x, Tensor)]

        def backward(gradient: Tensor) -> list[Any]:
            found = cls.backward(context, gradient)
            of_arguments = found if isinstance(found, (tuple, list)) else (found,)
            if len(of_arguments) != len(arguments):
                return list(of_arguments)  # which is refused
            return [of_arguments[k] for k in places]

        with no_grad():
            if cls.setup_context is None:
                result = cls.forward(context, *arguments)
            else:
                result = cls.forward(*arguments)
                cls.setup_context(context, arguments, result)
        if not isinstance(result, Tensor):
            raise GradientError(
                f"{user_location()}: {cls.__name__}.forward returns the {described(result)}, not a tensor. Write a "
                "function for each of several results."
            )
        return _linked(cls.__name__, result, backward, [arguments[k] for k in places])
