"""Functions that differentiate functions, `grad`, `value_and_grad`, `jacobian`, or repeat them, `vmap`.

The former leave no gradients behind: not in the arguments, and not in what the function captures.

1. What is differentiated by is copied.  Where gradients flow to the original, they flow through the copy: then this is
   a derivative inside of another one.
2. If the result depends on these copies alone, there is a backward pass, which adds up numbers.
3. Otherwise the gradient is made of operations on tensors (gradients.py): it depends on what the result depends on, as
   parameters and the arguments of a derivative around this one, and can be differentiated again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, GradientError, ShapeError, described, user_location
from .apply import fresh
from .autograd import backward, reached
from .joining import stack
from .modes import enable_grad, gradients_are_on, no_grad
from .tensor import Tensor


def value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns `(value, gradient)`: what `function` returns, one number, and its gradient.

    Args:
        function: of tensors.
        argnums: the number of the argument that is differentiated by; with a tuple, there is a tuple of gradients.

    Examples:
        >>> def square(x):
        ...     return (x * x).sum()
        >>> value, gradient = mgjit.value_and_grad(square)(mgjit.tensor.asarray([1.0, 2.0]))
        >>> float(value), gradient.tolist()
        (5.0, [2.0, 4.0])
    """

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        by = _Differentiation(arguments, argnums)
        value = by.call(function, named)
        if value.size != 1:
            raise GradientError(
                f"{user_location()}: the gradient of a function that returns a tensor of shape {value.shape}, not one "
                "number: reduce it with .sum() or .mean(), or use mgjit.jacobian."
            )
        found = by.gradients(value)
        return by.result(value), found[0] if isinstance(argnums, int) else tuple(found)

    return found


def grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the gradient of `function`, which returns one number.

    Args:
        function, argnums: see `value_and_grad`.

    Examples:
        >>> gradient = mgjit.grad(lambda x: (x * x * x).sum())
        >>> gradient(mgjit.tensor.asarray([1.0, 2.0])).tolist()
        [3.0, 12.0]
    """
    both = value_and_grad(function, argnums)

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        return both(*arguments, **named)[1]

    return found


def jacobian(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns all derivatives of what `function` returns, of the shape result.shape + argument.shape.

    There is one backward pass for each element of the result.

    Args:
        function, argnums: see `value_and_grad`; the function may return any shape.

    Examples:
        >>> mgjit.jacobian(lambda x: x * x)(mgjit.tensor.asarray([1.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 6.0]]
    """

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        by = _Differentiation(arguments, argnums)
        result = by.call(function, named)
        with enable_grad():
            flat = result.reshape(-1)
        rows = [by.gradients(flat[k], retain_graph=True) for k in range(flat.size)]
        made = tuple(
            (stack([row[k] for row in rows]) if rows else fresh((0, *leaf.shape), leaf.dtype)).reshape(
                (*result.shape, *leaf.shape)
            )
            for k, leaf in enumerate(by.leaves)
        )
        return made[0] if isinstance(argnums, int) else made

    return found


def vmap(function: Callable[..., Any], in_dims: Any = 0, out_dims: int = 0) -> Callable[..., Any]:
    """A function of tensors with one more axis, along which `function` is called for each place.

    The numbers are those of these calls, one after the other.

    Args:
        function: returns a tensor or a tuple of them.
        in_dims: which axis of each argument that is, or None for those that each call gets whole.
        out_dims: which axis of the results.

    Examples:
        >>> weights = mgjit.tensor.asarray([1.0, 2.0])
        >>> slopes = mgjit.vmap(mgjit.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))
        >>> slopes(weights, mgjit.tensor.asarray([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(function)
    def found(*arguments: Any, **named: Any) -> Any:
        axes = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(arguments)
        moved, count = _moved_to_the_front(arguments, axes)
        results = [
            function(*(x if axis is None else x[k] for x, axis in zip(moved, axes)), **named) for k in range(count)
        ]
        first = results[0]
        if not all(isinstance(part, Tensor) for part in (first if isinstance(first, tuple) else (first,))):
            raise ArgumentError(
                f"{user_location()}: vmap of a function that returns the {described(first)}: a tensor or a tuple of "
                "tensors is needed."
            )
        if isinstance(first, tuple):
            return tuple(stack(list(parts), out_dims) for parts in zip(*results))
        return stack(results, out_dims)

    return found


def _moved_to_the_front(arguments: Sequence[Any], axes: Sequence[Any]) -> tuple[list[Any], int]:
    """The arguments of vmap, with the axis that calls go along as the first one; and how many calls there are."""
    if len(axes) != len(arguments):
        raise ArgumentError(f"{user_location()}: vmap with {len(axes)} in_dims and {len(arguments)} arguments.")
    for number, (x, axis) in enumerate(zip(arguments, axes)):
        if axis is not None and not (isinstance(x, Tensor) and x.ndim and type(axis) is int):
            raise ArgumentError(
                f"{user_location()}: vmap along axis {axis!r} of argument {number}, the {described(x)}: give "
                "in_dims=None for what each call gets whole, and the number of an axis for tensors."
            )
    moved = [x if axis is None else x.moveaxis(axis, 0) for x, axis in zip(arguments, axes)]
    counts = {len(x) for x, axis in zip(moved, axes) if axis is not None}
    if len(counts) != 1 or 0 in counts:
        found = " and ".join(map(str, sorted(counts))) or "no"
        raise ShapeError(f"{user_location()}: vmap along axes of {found} places, where all need the same number.")
    return moved, counts.pop()


class _Differentiation:
    """One call of a function, and its derivatives by some arguments.

    Attributes:
        leaves: copies of these arguments.
    """

    def __init__(self, arguments: tuple[Any, ...], argnums: int | tuple[int, ...]) -> None:
        self._given, self.leaves = list(arguments), []
        self._is_on = gradients_are_on()
        #: Copies through which no gradient flows to the original.
        self._own: list[Tensor] = []
        self._depends = False
        for number in (argnums,) if isinstance(argnums, int) else argnums:
            self._given[number] = leaf = self._copied(number, arguments[number])
            self.leaves.append(leaf)

    def _copied(self, number: int, original: Any) -> Tensor:
        if not isinstance(original, Tensor):
            raise ArgumentError(
                f"{user_location()}: argument {number} is differentiated by and is a {type(original).__name__}, "
                "not a tensor: mgjit.tensor.asarray makes one."
            )
        if self._is_on and original.requires_grad:
            self._depends = True
            return original.copy()
        leaf = original.detach().copy()
        leaf.requires_grad = True
        self._own.append(leaf)
        return leaf

    def call(self, function: Callable[..., Any], named: dict[str, Any]) -> Tensor:
        """What the function returns."""
        with enable_grad():
            value = function(*self._given, **named)
        if not isinstance(value, Tensor):
            raise GradientError(f"{user_location()}: the function returns a {type(value).__name__}, not a tensor.")
        self._ends = [leaf._memory for leaf in self.leaves]
        found = reached(value._memory, self._ends) if value.requires_grad else []
        own = {id(leaf._memory) for leaf in self._own}
        read = [one.memory for nest in found for one in nest.operands if one.flows]
        others = [memory for memory in [*read, value._memory] if memory is not None and memory.is_leaf]
        self._depends |= any(id(memory) not in own for memory in others)
        for leaf in self._own if self._depends else ():
            leaf._memory.become_leaf(False)
        return value

    def gradients(self, value: Tensor, retain_graph: bool = False) -> list[Tensor]:
        """The derivatives of one number."""
        if self._depends:
            from .gradients import gradients  # with what it takes of the code generator

            with (enable_grad if self._is_on else no_grad)():
                root = value.copy() if any(value._memory is end for end in self._ends) else value
                nests = reached(root._memory, self._ends) if root._memory.made_by else []
                return gradients(root, nests, self.leaves)
        if value.requires_grad:
            with enable_grad():
                backward(value, retain_graph=retain_graph)
        found = []
        for leaf in self.leaves:
            gradient = leaf.grad
            assert gradient is not None
            found.append(gradient.copy())
            leaf.zero_grad()
        return found

    def result(self, value: Tensor) -> Tensor:
        """The value; without a graph, if nothing else than the copies is behind it."""
        return value if self._depends and self._is_on else value.detach()
