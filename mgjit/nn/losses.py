"""Losses, as functions and as modules.

`reduction` is "mean", "sum" or "none".  The mean of an elementwise loss is over all elements; that of `cross_entropy`
and `nll_loss` is over the labels, so that it does not depend on the number of classes.
"""

from __future__ import annotations

import math

from ..errors import ArgumentError, ArgumentValueError, ShapeError, user_location
from ..tensor import creation, reductions
from ..tensor.apply import recording
from ..tensor.dtypes import int64
from ..tensor.elementwise import maximum, relu, softplus, where
from ..tensor.joining import take, take_along_axis
from ..tensor.tensor import Tensor, require
from .checks import same_shape
from .module import Module

#: The label of elements that do not count, unless another one is given.
_IGNORED = -100


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - target) ** 2"""
    x, target = same_shape("mse_loss", x, target)
    away = x - target
    return _reduced(away * away, reduction)


def l1_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """abs(x - target)"""
    x, target = same_shape("l1_loss", x, target)
    return _reduced(abs(x - target), reduction)


def huber_loss(x: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d ** 2 / 2 where d = abs(x - target) is not above delta, otherwise delta * (d - delta / 2)."""
    x, target = same_shape("huber_loss", x, target)
    away = abs(x - target)
    return _reduced(where(away <= delta, away * away * 0.5, (away - 0.5 * delta) * delta), reduction)


def smooth_l1_loss(x: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d ** 2 / (2 * beta) where d = abs(x - target) is not above beta, otherwise d - beta / 2."""
    if beta == 0.0:
        return l1_loss(x, target, reduction)
    return huber_loss(x, target, reduction, beta) / beta


def hinge_loss(x: Tensor, target: Tensor, reduction: str = "mean", margin: float = 1.0) -> Tensor:
    """max(0, margin - target * x), as of a support vector machine.

    Args:
        target: 1 or -1.
    """
    x, target = same_shape("hinge_loss", x, target)
    return _reduced(relu(margin - target * x), reduction)


def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-(target * log(x) + (1 - target) * log(1 - x)); logarithms are not below -100.

    Args:
        x: probabilities. target: from 0 to 1. weight: of each element.
    """
    x, target = same_shape("binary_cross_entropy", x, target)
    found = -(target * maximum(x.log(), -100.0) + (1.0 - target) * maximum((1.0 - x).log(), -100.0))
    return _reduced(found if weight is None else found * weight, reduction)


def binary_cross_entropy_with_logits(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """softplus(x) - x * target: the binary cross entropy of sigmoid(x).

    Args:
        x: any numbers. target: from 0 to 1. weight: of each element. pos_weight: of the terms where the target is 1.
    """
    x, target = same_shape("binary_cross_entropy_with_logits", x, target)
    if pos_weight is None:
        found = softplus(x) - x * target
    else:
        found = (1.0 - target) * x + ((pos_weight - 1.0) * target + 1.0) * softplus(-x)
    return _reduced(found if weight is None else found * weight, reduction)


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - x), 0 where the target is.

    Args:
        x: logarithms of probabilities. target: probabilities.
        reduction: "mean", "sum", "none", or "batchmean": the sum divided by the first extent.
        log_target: whether the target consists of logarithms as well.
    """
    x, target = same_shape("kl_div", x, target)
    if log_target:
        found = target.exp() * (target - x)
    else:
        is_zero = target == 0.0
        found = target * (where(is_zero, 1.0, target).log() - x)
    if reduction == "batchmean":
        return reductions.sum(found) / x.shape[0]
    return _reduced(found, reduction)


def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int | None = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """logsumexp(x) - x[target]: minus the logarithm of the probability that softmax gives to the label.

    Args:
        x: of shape (classes,), (N, classes) or (N, classes, ...), any numbers.
        target: labels, int64, of the shape of x without its classes; or probabilities, of the shape of x.
        weight: of each class, (classes,); the mean is divided by the weights of all labels.
        ignore_index: the label of elements that do not count.  Then a label that is no class otherwise gives nan.
            Without one it is -100, which a compiled step does not look for: a call with such labels is plain Python.
        label_smoothing: how much of each label is spread over all classes.

    Raises:
        ShapeError: the shapes do not go together.
        IndexRangeError: a label is no class (and there is no `ignore_index`); nothing was computed.
    """
    x, target = require(x, "cross_entropy"), require(target, "cross_entropy")
    axis = 0 if x.ndim == 1 else 1
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentValueError(f"{user_location()}: label_smoothing is from 0 to 1, not {label_smoothing!r}.")
    total = reductions.logsumexp(x, axis=axis, keepdims=True)
    if target.dtype.is_floating and target.ndim == x.ndim:
        return _of_probabilities(x, target, weight, reduction, label_smoothing, total, axis)
    labels = _Labels("cross_entropy", x, target, ignore_index, axis)
    found = (1.0 - label_smoothing) * (total.squeeze(axis) - labels.chosen(x))
    each = labels.weights(weight)
    found = found if each is None else found * each
    if label_smoothing:
        spread = total - x
        spread = spread if weight is None else spread * _along(weight, x, axis)
        found = found + (label_smoothing / x.shape[axis]) * reductions.sum(spread, axis=axis)
    return labels.reduced(found, each, reduction)


def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean"
) -> Tensor:
    """-x[target], of logarithms of probabilities; arguments and errors as those of `cross_entropy`."""
    x, target = require(x, "nll_loss"), require(target, "nll_loss")
    labels = _Labels("nll_loss", x, target, ignore_index, 0 if x.ndim == 1 else 1)
    found, each = -labels.chosen(x), labels.weights(weight)
    return labels.reduced(found if each is None else found * each, each, reduction)


def _of_probabilities(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, total: Tensor, axis: int
) -> Tensor:
    same_shape("cross_entropy", x, target)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / x.shape[axis]
    each = target * (total - x)
    found = reductions.sum(each if weight is None else each * _along(weight, x, axis), axis=axis)
    return _reduced(found, reduction)


def _along(weight: Tensor, x: Tensor, axis: int) -> Tensor:
    """The weights of classes, to be multiplied with x."""
    return weight.reshape((-1, *(1,) * (x.ndim - axis - 1)))


class _Labels:
    """The labels of a loss: which element of x each of them chooses, and which of them count."""

    def __init__(self, name: str, x: Tensor, target: Tensor, ignore: int | None, axis: int) -> None:
        if target.dtype is not int64:
            raise ArgumentError(f"{user_location()}: {name} needs labels of type int64, not {target.dtype}.")
        wanted = (*x.shape[:axis], *x.shape[axis + 1 :])
        if not x.ndim or target.shape != wanted:
            raise ShapeError(
                f"{user_location()}: {name} of shape {x.shape} with labels of shape {target.shape}, not {wanted}."
            )
        limit = target._memory.limit
        if ignore is None and (taking := recording()) is not None:
            if limit is None or limit > x.shape[axis]:
                taking.require_in_range(target, x.shape[axis], plain=_IGNORED)
        elif ignore is None and _IGNORED in target.tolist_flat():
            ignore = _IGNORED
        self.target, self.ignore, self.axis, self.classes = target, ignore, axis, x.shape[axis]
        self.counts = None if ignore is None else target != ignore

    def chosen(self, x: Tensor) -> Tensor:
        """The element of each label."""
        places = self.target.expand_dims(self.axis)
        if self.counts is None:
            return take_along_axis(x, places, axis=self.axis).squeeze(self.axis)
        classes = creation.arange(self.classes).reshape((-1, *(1,) * (x.ndim - self.axis - 1)))
        found = reductions.sum(where(places == classes, x, 0.0), axis=self.axis)
        is_class = (self.target >= 0) & (self.target < self.classes)
        return where(is_class | ~self.counts, found, math.nan)

    def weights(self, weight: Tensor | None) -> Tensor | None:
        """The weight of each label; None if all count as one."""
        if weight is None:
            return None
        if require(weight, "weight").shape != (self.classes,):
            raise ShapeError(
                f"{user_location()}: weights of shape {weight.shape} for {self.classes} classes: one for each."
            )
        if self.counts is None:
            return take(weight, self.target)
        places = self.target.expand_dims(-1) == creation.arange(self.classes)
        return reductions.sum(where(places, weight, 0.0), axis=-1)

    def reduced(self, found: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
        """The loss of all labels that count."""
        if self.counts is not None:
            found = where(self.counts, found, 0.0)
            weights = self.counts.astype(found.dtype) if weights is None else where(self.counts, weights, 0.0)
        if weights is None or reduction != "mean":
            return _reduced(found, reduction)
        return reductions.sum(found) / reductions.sum(weights)


def _reduced(each: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return reductions.mean(each)
    if reduction == "sum":
        return reductions.sum(each)
    if reduction == "none":
        return each
    raise ArgumentValueError(f"{user_location()}: reduction is 'mean', 'sum' or 'none', not {reduction!r}.")


class _Loss(Module):
    """A loss as a module: `loss(x, target)`.

    Args:
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction


class MSELoss(_Loss):
    """See `functional.mse_loss`."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return mse_loss(x, target, self.reduction)


class L1Loss(_Loss):
    """See `functional.l1_loss`."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return l1_loss(x, target, self.reduction)


class HuberLoss(_Loss):
    """See `functional.huber_loss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return huber_loss(x, target, self.reduction, self.delta)


class SmoothL1Loss(_Loss):
    """See `functional.smooth_l1_loss`."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return smooth_l1_loss(x, target, self.reduction, self.beta)


class HingeLoss(_Loss):
    """See `functional.hinge_loss`."""

    def __init__(self, reduction: str = "mean", margin: float = 1.0) -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return hinge_loss(x, target, self.reduction, self.margin)


class KLDivLoss(_Loss):
    """See `functional.kl_div`."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return kl_div(x, target, self.reduction, self.log_target)


class BCELoss(_Loss):
    """See `functional.binary_cross_entropy`."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy(x, target, None, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """See `functional.binary_cross_entropy_with_logits`."""

    def __init__(self, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.pos_weight = pos_weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(x, target, None, self.reduction, self.pos_weight)


class NLLLoss(_Loss):
    """See `functional.nll_loss`."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_Loss):
    """See `functional.cross_entropy`."""

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)
