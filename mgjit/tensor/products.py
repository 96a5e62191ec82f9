"""Products that are summed up: matmul and einsum, and what they are made from.

Each element of a result is `((0.0 + a[0] * b[0]) + a[1] * b[1]) + ...`, in the order of the axes that are summed over.
"""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError, user_location
from ..ir.bodies import REDUCTIONS
from .apply import reduction, result_type
from .shapes import broadcast, broadcast_strides
from .tensor import Tensor, require


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """x @ y, as in NumPy: matrices are the last two axes, the others are broadcast; a vector is a row or a column.

    Raises:
        ShapeError: the inner extents differ.
    """
    x, y = require(x, "matmul"), require(y, "matmul")
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else -1]:
        raise ShapeError(
            f"{user_location()}: matmul of shapes {x.shape} and {y.shape}: the last extent of the first must be the "
            "second last (of a vector the only) extent of the second."
        )
    rows = x if x.ndim > 1 else x.expand_dims(0)
    columns = y if y.ndim > 1 else y.expand_dims(1)
    batch = broadcast("matmul", rows.shape[:-2], columns.shape[:-2])
    m, n, k = rows.shape[-2], columns.shape[-1], rows.shape[-1]
    left, right = (broadcast_strides(one._view, batch + one.shape[-2:]) for one in (rows, columns))
    made = reduction(
        "matmul", REDUCTIONS["dot"],
        [(x, (*left[:-2], left[-2], 0, left[-1])), (y, (*right[:-2], 0, right[-1], right[-2]))],
        (*batch, m, n), (k,), result_type("multiply", (x, y)),
    )  # fmt: skip
    if x.ndim == 1:
        made = made.squeeze(-2)
    return made.squeeze(-1) if y.ndim == 1 else made


def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    """Einstein summation, as in NumPy: `einsum("bij,bjk->bik", x, y)`; without `->`, labels met once, by alphabet.

    A label that occurs twice in one operand means its diagonal.  More than two operands are multiplied from the left,
    two at a time.  `...` stands for further axes, which are broadcast.

    Raises:
        ShapeError: the subscripts do not fit the shapes.
    """
    subscripts, operands = _without_ellipsis(subscripts.replace(" ", ""), operands)
    terms, arrow, result = subscripts.partition("->")
    inputs = terms.split(",")
    if not arrow:
        labels = terms.replace(",", "")
        result = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    shapes = [require(one, "einsum").shape for one in operands]
    extents = _extents(subscripts, inputs, shapes)
    unknown = [label for label in result if label not in extents or result.count(label) > 1]
    if unknown:
        raise ShapeError(f"{user_location()}: einsum {subscripts!r}: the result has the label {unknown[0]!r} "
                         "twice, or no operand has it.")  # fmt: skip
    found, labels = operands[0], inputs[0]
    if len(operands) == 1:
        return _summed("sum", [(found, labels)], result, extents)
    for k in range(1, len(operands)):
        later = set(result).union(*inputs[k + 1 :])
        kept = result if k == len(operands) - 1 else "".join(
            label for label in dict.fromkeys(labels + inputs[k]) if label in later
        )  # fmt: skip
        found, labels = _summed("dot", [(found, labels), (operands[k], inputs[k])], kept, extents), kept
    return found


def _without_ellipsis(subscripts: str, operands: tuple[Tensor, ...]) -> tuple[str, tuple[Tensor, ...]]:
    """Labels in place of `...`, and operands that have these axes in full."""
    if "..." not in subscripts:
        return subscripts, operands
    terms, arrow, result = subscripts.partition("->")
    inputs = terms.split(",")
    counts = [
        require(one, "einsum").ndim - len(term.replace("...", "")) if "..." in term else 0
        for term, one in zip(inputs, operands)
    ]
    if len(inputs) != len(operands) or min(counts) < 0:
        raise ShapeError(f"{user_location()}: einsum {subscripts!r} of {len(operands)} operands with too few axes.")
    free = [label for label in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if label not in subscripts]
    most = free[: max(counts)]
    places = [term.find("...") for term in inputs]
    shared = broadcast("einsum", *(one.shape[p : p + n] for p, n, one in zip(places, counts, operands) if n))
    whole = []
    for term, place, count, one in zip(inputs, places, counts, operands):
        shape = one.shape
        wide = (*shape[:place], *shared[len(shared) - count :], *shape[place + count :]) if count else shape
        whole.append(one.broadcast_to(wide))
        inputs[len(whole) - 1] = term.replace("...", "".join(most[len(most) - count :]))
    labels = "".join(inputs)
    if not arrow:
        result = "..." + "".join(sorted(one for one in set(labels) - set(most) if labels.count(one) == 1))
    return f"{','.join(inputs)}->{result.replace('...', ''.join(most))}", tuple(whole)


def _extents(subscripts: str, inputs: list[str], shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """The extent of each label."""
    if len(inputs) != len(shapes) or any(len(labels) != len(shape) for labels, shape in zip(inputs, shapes)):
        raise ShapeError(
            f"{user_location()}: einsum {subscripts!r} does not fit the shapes {' and '.join(map(str, shapes))}: "
            "one label for each axis, and a comma between operands."
        )
    extents: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes):
        for label, extent in zip(labels, shape):
            if not label.isalpha() or extents.setdefault(label, extent) != extent:
                raise ShapeError(
                    f"{user_location()}: einsum {subscripts!r} of shapes {' and '.join(map(str, shapes))}: the label "
                    f"{label!r} "
                    + ("is no letter." if not label.isalpha() else f"means {extents[label]} and {extent}.")
                )
    return extents


def _summed(name: str, operands: list[tuple[Tensor, str]], result: str, extents: dict[str, int]) -> Tensor:
    """The sum over all labels that the result has not."""
    over = [label for label in dict.fromkeys("".join(labels for _, labels in operands)) if label not in result]
    loops = [*result, *over]
    accesses = []
    for one, labels in operands:
        strides = dict.fromkeys(loops, 0)
        for label, stride in zip(labels, one._view.strides):
            strides[label] += stride
        accesses.append((one, tuple(strides.values())))
    dtype = result_type("multiply", [one for one, _ in operands])
    outer, inner = (tuple(extents[label] for label in part) for part in (result, over))
    return reduction("einsum", REDUCTIONS[name], accesses, outer, inner, dtype)


def vecdot(x: Tensor, y: Tensor, axis: int = -1) -> Tensor:
    """The sum of products along an axis."""
    x, y = require(x, "vecdot").moveaxis(axis, -1), require(y, "vecdot").moveaxis(axis, -1)
    return matmul(x.expand_dims(-2), y.expand_dims(-1)).squeeze(-1).squeeze(-1)


def outer(x: Tensor, y: Tensor) -> Tensor:
    """All products of an element of x and one of y, two vectors."""
    if require(x, "outer").ndim != 1 or require(y, "outer").ndim != 1:
        raise ShapeError(f"{user_location()}: outer of shapes {x.shape} and {y.shape}: both must be vectors.")
    return x.expand_dims(1) * y


def tensordot(x: Tensor, y: Tensor, axes: Any = 2) -> Tensor:
    """The sum of products over the last axes of x and the first of y, or over two lists of axes."""
    x, y = require(x, "tensordot"), require(y, "tensordot")
    left, right = (range(x.ndim - axes, x.ndim), range(axes)) if isinstance(axes, int) else axes
    letters = "abcdefghijklmnopqrstuvwxyz"
    mine, theirs = list(letters[: x.ndim]), list(letters[x.ndim : x.ndim + y.ndim])
    for one, other in zip(left, right):
        theirs[other] = mine[one]
    kept = [label for label in mine if label not in theirs] + [label for label in theirs if label not in mine]
    return einsum(f"{''.join(mine)},{''.join(theirs)}->{''.join(kept)}", x, y)
