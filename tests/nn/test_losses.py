"""Losses: known mistakes, reductions, labels that do not count, extreme numbers, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError, IndexRangeError, ShapeError
from mgjit.nn import functional as F

pytestmark = pytest.mark.usefixtures("python_loops")
LABELS = T.asarray([1, 0, 2])


def test_the_mean_is_over_labels_and_not_over_classes() -> None:
    x = T.zeros((3, 4))
    assert F.cross_entropy(x, LABELS).item() == pytest.approx(math.log(4.0))
    assert F.nll_loss(T.log_softmax(x), LABELS).item() == pytest.approx(math.log(4.0))
    assert F.cross_entropy(T.zeros((3, 4, 5)), T.zeros((3, 5), dtype="int64")).item() == pytest.approx(math.log(4.0))
    assert F.mse_loss(T.zeros((3, 4)), T.ones((3, 4)) * 2.0).item() == 4.0


def test_rows_far_apart_do_not_overflow() -> None:
    x = T.asarray([[0.0, 1.0], [5000.0, 5001.0], [-5000.0, -5001.0]])
    found = F.cross_entropy(x, T.asarray([1, 1, 0]), reduction="none").tolist()
    assert found == pytest.approx([math.log(1.0 + math.exp(-1.0))] * 3)
    assert all(map(math.isfinite, found))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_reductions(reduction: str) -> None:
    each = F.l1_loss(T.asarray([1.0, 4.0]), T.asarray([0.0, 0.0]), reduction)
    assert each.tolist() == {"mean": 2.5, "sum": 5.0, "none": [1.0, 4.0]}[reduction]


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ArgumentValueError, match="'mean', 'sum' or 'none', not 'average'"):
        F.mse_loss(T.ones(1), T.ones(1), "average")


@pytest.mark.parametrize("zero", [-800.0, 0.0, 800.0])
@pytest.mark.parametrize("function", [T.sigmoid, T.silu, T.softplus, F.logsigmoid, F.mish, F.elu])
def test_derivatives_are_right_at_zero_and_finite_far_away(function: Any, zero: float) -> None:
    x = T.asarray([zero], requires_grad=True)
    function(x).sum().backward()
    assert x.grad is not None
    found = x.grad.item()
    expected = {
        T.sigmoid: (0.0, 0.25, 0.0), T.silu: (0.0, 0.5, 1.0), T.softplus: (0.0, 0.5, 1.0),
        F.logsigmoid: (1.0, 0.5, 0.0), F.mish: (0.0, 0.6, 1.0), F.elu: (0.0, 1.0, 1.0),
    }[function][(zero >= 0.0) + (zero > 0.0)]  # fmt: skip
    assert found == (pytest.approx(expected) if function is not F.elu or zero else pytest.approx(1.0))


def test_logits_of_zero_have_half_a_gradient() -> None:
    x = T.zeros(2, requires_grad=True)
    F.binary_cross_entropy_with_logits(x, T.asarray([0.0, 1.0]), reduction="sum").backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, -0.5]


def test_probabilities_of_zero_and_one_are_finite() -> None:
    found = F.binary_cross_entropy(T.asarray([0.0, 1.0, 0.0]), T.asarray([0.0, 1.0, 1.0]), reduction="none")
    assert found.tolist() == [0.0, 0.0, 100.0]


def test_labels_that_do_not_count_change_nothing() -> None:
    x = T.randn((4, 3))
    some = F.cross_entropy(x, T.asarray([0, -100, 2, -100]), ignore_index=-100)
    assert some.item() == F.cross_entropy(x[::2], T.asarray([0, 2])).item()
    y = T.randn((2, 3), requires_grad=True)
    F.cross_entropy(y, T.asarray([-1, 1]), ignore_index=-1).backward()
    assert y.grad is not None
    assert y.grad[0].tolist() == [0.0, 0.0, 0.0]
    assert math.isnan(F.cross_entropy(x, T.asarray([0, 1, 2, 3]), ignore_index=-1).item())


def test_labels_out_of_range_are_refused_also_in_steps() -> None:
    x = T.zeros((3, 3))
    with pytest.raises(IndexRangeError, match="index 3 is not in range"):
        F.cross_entropy(x, T.asarray([0, 1, 3]))
    step = mgjit.compile(lambda x, y: F.cross_entropy(x, y), background=False, backend="python")  # noqa: PLW0108
    step(x, LABELS)
    with pytest.raises(IndexRangeError):
        step(x, T.asarray([0, 1, 3]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.mse_loss(x, T.ones(3)), ShapeError, r"mse_loss of shapes \(3, 4\) and \(3,\)"),
        (lambda x: F.cross_entropy(x, T.asarray([0, 1])), ShapeError, r"labels of shape \(2,\), not \(3,\)"),
        (lambda x: F.cross_entropy(x, T.ones(3)), ArgumentError, "labels of type int64, not float64"),
        (lambda x: F.cross_entropy(x, T.ones((3, 3))), ShapeError, r"\(3, 4\) and \(3, 3\)"),
        (lambda x: F.nll_loss(x, T.ones(3)), ArgumentError, "labels of type int64, not float64"),
        (lambda x: F.cross_entropy(x, LABELS, T.ones(3)), ShapeError, r"weights of shape \(3,\) for 4 classes"),
        (lambda x: nn.CrossEntropyLoss(label_smoothing=2.0)(x, LABELS), ArgumentValueError, "from 0 to 1"),
    ],
)
def test_errors_name_the_loss_and_the_shapes(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=r"test_losses\.py:\d+: .*" + message):
        call(T.zeros((3, 4)))


def test_labels_of_minus_100_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")
    x = T.asarray([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    all_, some = T.asarray([0, 1, 1]), T.asarray([0, -100, 1])
    wanted = F.cross_entropy(x[[0, 2]], T.asarray([0, 1])).item()
    assert F.cross_entropy(x, some).item() == wanted
    assert nn.NLLLoss(reduction="none")(x, some).tolist() == [-1.0, 0.0, 0.0]

    compiled = mgjit.compile(background=False, backend="python")(lambda x, y: F.cross_entropy(x, y) * 1.0)
    assert compiled(x, all_).item() == F.cross_entropy(x, all_).item()
    assert not compiled.stats.plain_calls
    with pytest.warns(mgjit.errors.PlainWarning, match="write ignore_index=-100"):
        assert compiled(x, some).item() == wanted
    assert compiled(x, all_).item() == F.cross_entropy(x, all_).item()
    with pytest.raises(IndexRangeError):
        compiled(x, T.asarray([0, 2, 1]))
    telling = mgjit.compile(background=False, backend="python")
    told = telling(lambda x, y: F.cross_entropy(x, y, ignore_index=-100) * 1.0)
    assert told(x, some).item() == wanted
    assert not told.stats.plain_calls


def test_rows_with_a_label_of_minus_100_in_a_loop() -> None:
    x = [[[1.0, 2.0], [0.5, -1.0]]] * 4
    y = [[0, 1], [1, -100], [1, 1], [0, 0]]
    step = mgjit.compile(background=False, backend="python", refuse="plain")(
        lambda x, y: F.cross_entropy(x, y) * 1.0
    )
    found = step.loop(T.asarray(x), T.asarray(y))
    assert [float(one) for one in found] == [F.cross_entropy(T.asarray(a), T.asarray(b)).item() for a, b in zip(x, y)]
