"""Tensors as users meet them: views, assignment, types, gradients, indices, errors, interchange."""

from __future__ import annotations

import copy
import math
import pickle
import random
import struct
import sys
from array import array
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.errors import (
    ArgumentError,
    ArgumentValueError,
    GradientError,
    IndexRangeError,
    IntegerOverflowError,
    LeakError,
    MgjitError,
    PlainWarning,
    PrecisionError,
    ShapeError,
    TraceError,
)


@pytest.fixture(autouse=True)
def python_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition, which needs no compiler; what C computes is compared with it elsewhere."""
    from mgjit.tensor import eager

    monkeypatch.setattr(eager, "_functions", {})
    monkeypatch.setattr(eager, "_compile", lambda form, quickly: None)


def step(function: Any, **options: Any) -> Any:
    """A compiled step that needs no compiler."""
    return mgjit.compile(function, background=False, backend="python", **options)


# ---- known mistakes of other libraries ------------------------------------------------------------------


def test_gradients_add_up_where_windows_overlap() -> None:
    x = T.asarray([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    x.unfold(0, 2, 1).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_softmax_subtracts_the_maximum_of_the_row() -> None:
    far = T.softmax(T.asarray([[0.0, 1.0], [1000.0, 1001.0]]))
    assert far[0].tolist() == far[1].tolist()


def test_mean_divides_by_the_number_of_elements_along_the_axis() -> None:
    assert T.mean(T.ones((4, 3)) * 2.0, axis=0).tolist() == [2.0, 2.0, 2.0]


def test_zeros_are_elements_of_their_own() -> None:
    x = T.zeros(3)
    x[1] = 5.0
    assert x.tolist() == [0.0, 5.0, 0.0]


def test_rows_taken_twice_get_both_gradients() -> None:
    table = T.zeros((3, 2), requires_grad=True)
    T.take(table, T.asarray([2, 0, 2])).sum().backward()
    assert table.grad is not None
    assert table.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]


# ---- views and assignment ----------------------------------------------------------------------------------


def test_views_share_memory() -> None:
    x = T.arange(6.0).reshape(2, 3)
    x.mT[1, 0] = 10.0
    x[:, ::-1][1, 0] += 1.0
    assert x.tolist() == [[0.0, 10.0, 2.0], [3.0, 4.0, 6.0]]


def test_an_assignment_reads_everything_first() -> None:
    x = T.arange(4.0)
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0]


def test_reshape_copies_only_where_no_strides_do() -> None:
    x = T.zeros((2, 3))
    x.reshape(6)[0] = 1.0
    x.mT.reshape(6)[1] = 2.0
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_parameter_is_assigned_without_gradients_only() -> None:
    p = T.ones(2, requires_grad=True)
    with pytest.raises(GradientError, match="no_grad"):
        p[0] = 2.0
    with mgjit.no_grad():
        p -= 0.5
    assert p.tolist() == [0.5, 0.5]
    assert p.requires_grad


def test_an_assignment_that_would_lose_a_gradient_is_refused() -> None:
    p, x = T.ones(2, requires_grad=True), T.zeros(2)
    with pytest.raises(GradientError, match="would be lost"):
        x[0] = p.sum()


# ---- types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        (lambda: T.asarray([1, 2]) + 1, "int64"),
        (lambda: T.asarray([1, 2]) + 0.5, "float64"),
        (lambda: T.asarray([1, 2]) / 2, "float64"),
        (lambda: T.asarray([True]) + T.asarray([1.0], dtype="float32"), "float32"),
        (lambda: T.asarray([1.0], dtype="float32") * 2.0, "float32"),
        (lambda: T.asarray([True, True]).sum(), "int64"),
        (lambda: T.asarray([1.0, 2.0]) < 2, "bool"),
        (lambda: T.where(T.asarray([1.0]) > 0, 1, 0), "int64"),
        (lambda: T.asarray([0.5, 2.5]).argmax(), "int64"),
        (lambda: T.asarray([1.9, -1.9]).astype("int64"), "int64"),
    ],
)
def test_types_of_results(made: Any, dtype: str) -> None:
    assert made().dtype.name == dtype


def test_precisions_do_not_mix() -> None:
    with pytest.raises(PrecisionError, match=r"float32 and a float64 tensor.*astype"):
        T.ones(2, dtype="float32") + T.ones(2)


def test_float32_rounds_every_result() -> None:
    third = (T.ones(1, dtype="float32") / 3.0).item()
    assert third == struct.unpack("f", struct.pack("f", 1.0 / 3.0))[0]


# ---- gradients -------------------------------------------------------------------------------------------


def test_backward_adds_to_the_gradients_of_leaves() -> None:
    p = T.asarray([1.0, 2.0], requires_grad=True)
    (p * p).sum().backward()
    (p * 3.0).sum().backward()
    assert p.grad is not None
    assert p.grad.tolist() == [5.0, 7.0]
    p.zero_grad()
    assert p.grad.tolist() == [0.0, 0.0]


def test_backward_of_several_elements_takes_a_gradient() -> None:
    p = T.asarray([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match=r"shape \(2,\)"):
        (p * p).backward()
    (p * p).backward(T.asarray([10.0, 1.0]))
    assert p.grad is not None
    assert p.grad.tolist() == [20.0, 4.0]


def test_a_graph_is_used_once_unless_it_is_retained() -> None:
    p = T.ones(1, requires_grad=True)
    loss = (p * 2.0).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(GradientError, match="retain_graph"):
        loss.backward()


def test_an_operand_that_has_changed_is_noticed() -> None:
    x = T.ones(2)
    p = T.ones(2, requires_grad=True)
    loss = (p * x).sum()
    x[0] = 5.0
    with pytest.raises(GradientError, match="multiply needs an operand"):
        loss.backward()


def test_nothing_is_remembered_without_gradients() -> None:
    p = T.ones(1, requires_grad=True)
    with mgjit.no_grad():
        assert not (p * 2.0).requires_grad
        with mgjit.enable_grad():
            assert (p * 2.0).requires_grad
    assert not (p.detach() * 2.0).requires_grad

    @mgjit.no_grad()
    def double(x: Any) -> Any:
        return x * 2.0

    assert not double(p).requires_grad


def test_jacobian() -> None:
    assert mgjit.jacobian(lambda x: x * x)(T.asarray([1.0, 2.0, 3.0])).tolist() == [
        [2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0],
    ]  # fmt: skip


def test_value_and_grad_by_two_arguments() -> None:
    value, (dx, dy) = mgjit.value_and_grad(lambda x, y: (x * y).sum(), (0, 1))(T.ones(2), T.asarray([3.0, 4.0]))
    assert (value.item(), dx.tolist(), dy.tolist()) == (7.0, [3.0, 4.0], [1.0, 1.0])


# ---- errors name the operation, the shapes and the line ----------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x + T.ones(4), r"add of shapes \(2, 3\) and \(4,\)"),
        (lambda x: x @ x, r"matmul of shapes \(2, 3\) and \(2, 3\)"),
        (lambda x: x.reshape(4), r"reshape of shape \(2, 3\), 6 elements, to \(4,\)"),
        (lambda x: T.concat([x, T.ones((2, 2))]), r"concat along axis 0 of shapes \(2, 3\) and \(2, 2\)"),
        (lambda x: T.stack([x, T.ones(2)]), r"stack of shapes"),
        (lambda x: T.einsum("ij,jk->ik", x, x), r"einsum 'ij,jk->ik'.*label 'j' means 3 and 2"),
        (lambda x: x.unfold(1, 4), r"unfold of shape \(2, 3\)"),
        (lambda x: x.squeeze(0), r"squeeze of shape \(2, 3\)"),
        (lambda x: T.split(x, [1, 2], axis=0), r"split of shape \(2, 3\)"),
    ],
)
def test_shape_errors(call: Any, text: str) -> None:
    with pytest.raises(ShapeError, match=rf"test_tensor\.py:\d+: {text}"):
        call(T.ones((2, 3)))
    with pytest.raises(ShapeError, match=rf"test_tensor\.py:\d+: {text}"):
        step(call)(T.ones((2, 3)))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x[2], IndexRangeError),
        (lambda x: x[0, 0, 0], IndexRangeError),
        (lambda x: x.sum(axis=2), IndexRangeError),
        (lambda x: T.take(x, 5), IndexRangeError),
        (lambda x: x + "a", TypeError),
        (lambda x: T.exp(2.0), ArgumentError),
        (lambda x: x + mgjit.Value(1.0), ArgumentError),
        (lambda x: mgjit.Value(1.0) + x, ArgumentError),
        (lambda x: T.max(x[:0]), ValueError),
        (lambda x: x.astype("int8"), ArgumentError),
    ],
)
def test_other_errors(call: Any, error: type[MgjitError]) -> None:
    with pytest.raises(error):
        call(T.ones((2, 3)))


# ---- in a step -------------------------------------------------------------------------------------------------


class Layer:
    """A layer whose tensors a step reaches through an object."""

    def __init__(self) -> None:
        self.w = T.asarray([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
        self.seen = T.zeros(2)


def test_a_step_trains_tensors_of_an_object_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_VERIFY", raising=False)
    mine, theirs = Layer(), Layer()

    def update(layer: Any, x: Any, lr: Any) -> Any:
        loss = ((x @ layer.w).tanh() ** 2).mean()
        layer.w.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            layer.w -= lr * layer.w.grad
            layer.seen += x.sum(axis=0)
        return loss, layer.seen * 1.0

    compiled = step(lambda x, lr: update(theirs, x, lr), verify="always")
    for k in range(5):
        x = T.asarray([[k * 0.5, 1.0], [-1.0, 0.1 * k]])
        expected, got = update(mine, x, 0.1), compiled(x, 0.1)
        assert got[0].item().hex() == expected[0].item().hex()
        assert got[1].tolist() == expected[1].tolist()
        assert mine.w.tolist() == theirs.w.tolist()
        assert mine.seen.tolist() == theirs.seen.tolist()
    assert compiled.stats.traces == 1
    assert compiled.stats.compared_calls == 1
    assert compiled.stats.mismatches == []


def test_a_replaced_tensor_is_noticed() -> None:
    layer = Layer()
    compiled = step(lambda x: x @ layer.w)
    x = T.ones((1, 2))
    assert compiled(x).tolist() == [[2.5, -0.75]]
    layer.w = T.ones((2, 2), requires_grad=True)
    assert compiled(x).tolist() == [[2.0, 2.0]]


def test_a_tensor_of_another_shape_is_traced_again() -> None:
    compiled = step(lambda x: x.sum(axis=0))
    assert compiled(T.ones((3, 2))).tolist() == [3.0, 3.0]
    assert compiled(T.ones((4, 2)).mT.mT).tolist() == [4.0, 4.0]
    assert compiled(T.ones((2, 3)).mT).tolist() == [3.0, 3.0]
    assert compiled.stats.traces == 2


def test_numbers_and_tensors_mix() -> None:
    def mixed(x: Any, k: Any) -> Any:
        first = x[0].item() * k
        return x * first + k, first, mgjit.exp(x[1].item())

    x = T.asarray([1.5, -2.0])
    expected, got = mixed(x, 0.5), step(mixed)(x, 0.5)
    assert got[0].tolist() == expected[0].tolist()
    assert got[1:] == expected[1:]


def test_integer_labels_choose_rows() -> None:
    table = T.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)

    def rows(labels: Any, k: Any) -> Any:
        table.zero_grad()
        loss = (T.take(table, labels) * 2.0).sum() + table[k].sum()
        loss.backward()
        return loss, table.grad * 1.0, T.one_hot(labels, 3), T.argmax(table, axis=0)

    labels = T.asarray([2, 0, 2])
    expected, compiled = rows(labels, 1), step(rows)
    got = compiled(labels, 1)
    assert [one.tolist() for one in got] == [one.tolist() for one in expected]
    with pytest.raises(IndexRangeError):
        compiled(T.asarray([0, 3, 1]), 1)
    with pytest.raises(IndexRangeError):
        compiled(labels, 3)


def test_rows_of_a_loop() -> None:
    compiled = step(lambda x, y: (x * y).sum())
    x = T.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert list(compiled.loop(x, [1.0, 2.0, 3.0]).tolist()) == [3.0, 14.0, 33.0]


def test_constant_indices_of_a_step() -> None:
    table = T.asarray([1.0, 2.0, 3.0])
    assert step(lambda x: T.take(x, [2, 0]) + x[T.asarray([1, 1])])(table).tolist() == [5.0, 3.0]


def test_indices_that_were_assigned_to_are_checked_again() -> None:
    def change(x: Any) -> Any:
        indices = T.arange(2)
        indices[0] = 9
        return T.take(x, indices)

    with pytest.raises(IndexRangeError):
        change(T.ones(2))
    with pytest.raises(TraceError, match="range is not known"):
        step(change)(T.ones(2))


def test_two_numbers_in_a_float32_step_say_what_to_write() -> None:
    x = T.ones(2, dtype="float32")
    with pytest.raises(PrecisionError, match=r"where\(condition, asarray"):
        step(lambda x: T.where(x > 0, 1.0, 0.0), dtype="float32")(x)
    compiled = step(lambda x: T.where(x > 0, T.asarray(1.0, dtype="float32"), 0.0), dtype="float32")
    assert compiled(x).tolist() == [1.0, 1.0]


def test_gelu_has_two_formulas() -> None:
    x = T.asarray([-1.0, 2.0])
    exact = [number / 2.0 * (1.0 + math.erf(number / math.sqrt(2.0))) for number in (-1.0, 2.0)]
    assert mgjit.nn.functional.gelu(x).tolist() == pytest.approx(exact, abs=1e-15)
    assert mgjit.nn.GELU("tanh")(x).tolist() == x.gelu("tanh").tolist() != x.gelu().tolist()
    with pytest.raises(ArgumentValueError, match="'quick'"):
        T.gelu(x, "quick")


def test_erf_is_that_of_mathematics() -> None:
    xs = [k / 64.0 for k in range(-500, 500)]
    found = T.erf(T.asarray(xs)).tolist()
    assert max(abs(y - math.erf(x)) for x, y in zip(xs, found)) < 5e-16
    special = T.erf(T.asarray([math.inf, -math.inf, -0.0, math.nan, 1e-300])).tolist()
    assert [repr(x) for x in special] == ["1.0", "-1.0", "-0.0", "nan", repr(2e-300 / math.sqrt(math.pi))]


def test_an_assignment_to_data_assigns_to_the_elements() -> None:
    p = mgjit.nn.Parameter([1.0, 2.0])
    alias = p.detach()
    p.data -= 1.0
    p.data[1] = 7.0
    assert alias.tolist() == [0.0, 7.0]
    p.data = T.asarray([3.0, 4.0])
    assert alias.tolist() == [3.0, 4.0]
    assert p.requires_grad
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        p.data = T.zeros(3)


def test_data_is_assigned_in_a_step_as_outside() -> None:
    results = []
    for make in (mgjit.compile, lambda function: function):
        p = mgjit.nn.Parameter([1.0, 2.0])

        def train(x: Any, p: Any = p) -> Any:
            loss = (p * x).exp().sum()
            p.zero_grad()
            loss.backward()
            p.data -= 0.1 * p.grad
            return loss

        compiled = make(train)
        results.append([compiled(T.asarray([0.5, -1.0])).item() for _ in range(4)] + p.tolist())
    assert results[0] == results[1]


_OVERFLOWING = [lambda x: x * x, lambda x: x @ x, T.prod, lambda x: x + 2**53, lambda x: (x / 0).astype("int64")]


@pytest.mark.parametrize("call", _OVERFLOWING)
def test_whole_numbers_that_are_not_exact_are_refused(call: Any) -> None:
    compiled, large = step(lambda x: call(x) * 1), T.asarray([2**40, 2**40])
    with pytest.raises(IntegerOverflowError, match=r"test_tensor.py.*2\*\*53"):
        call(large)
    if call is not _OVERFLOWING[-1] and call is not _OVERFLOWING[3]:
        compiled(T.asarray([1, 2]))
    for _ in range(3):
        with pytest.raises(IntegerOverflowError, match=r"test_tensor.py.*2\*\*53"):
            compiled(large)


#: From outside of the steps below: its numbers are known when they are traced, and may be others later.
_KNOWN = T.ones(2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: 1.0 if x.sum() > 0 else 2.0, TraceError, "where"),
        (lambda x: x.tolist(), TraceError, "not known yet"),
        (lambda x: f"{x * 2}", TraceError, "text of a tensor"),
        (lambda x: str(x) and x, TraceError, "text of a tensor"),
        (lambda x: "%s" % x[0], TraceError, "text of a tensor"),  # noqa: UP031
        (lambda x: f"{_KNOWN}" and x, TraceError, "text of a tensor"),
        (lambda x: x + _KNOWN.tolist()[0], TraceError, "not known yet"),
        (lambda x: T.take(x, [0, 2]), IndexRangeError, r"index 2 is not in range\(2\)"),
        (lambda x: x.astype("float32"), PrecisionError, "float32 in a float64 step"),
    ],
)
def test_what_a_step_cannot_do(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        step(call)(T.ones(2))


def test_messages_of_a_step_have_a_text_of_tensors() -> None:
    with pytest.raises(ArgumentError, match="a tensor of shape"):
        step(lambda x: T.sum([x * 2.0]))(T.ones(2))


def test_a_tensor_that_outlives_its_step_is_refused() -> None:
    kept: list[Any] = [None]

    def keep(x: Any) -> Any:
        kept[0] = x[:1]
        return x.sum()

    with pytest.raises(LeakError):
        step(keep)(T.ones(2))


def test_trace_and_program_do_not_depend_on_sizes() -> None:
    def loss(x: Any, w: Any) -> Any:
        return mgjit.grad(lambda w: ((x @ w).tanh().softmax() ** 2).sum())(w)

    small, large = (step(loss).lower(T.zeros((32, n)), T.zeros((n, n))).lowered for n in (64, 1024))
    assert small.records == large.records < 40
    assert large.statements < 1.5 * small.statements


# ---- interchange --------------------------------------------------------------------------------------------


def test_buffers_become_tensors() -> None:
    assert T.asarray(array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
    assert T.asarray(memoryview(bytes(range(4))).cast("B", (2, 2))).dtype.name == "int64"


def test_numpy_arrays_share_memory() -> None:
    numpy = pytest.importorskip("numpy")
    x = T.arange(6.0).reshape(2, 3)
    x.mT.numpy()[2, 0] = 9.0
    assert x.tolist() == [[0.0, 1.0, 9.0], [3.0, 4.0, 5.0]]
    assert numpy.asarray(x).sum() == 22.0
    assert (numpy.ones(3) + x).tolist()[1] == [4.0, 5.0, 6.0]
    assert T.asarray(numpy.ones((2, 2), dtype="float32")).dtype.name == "float32"


def test_copies_and_pickles_are_leaves_of_their_own() -> None:
    p = T.asarray([1.0, math.inf], requires_grad=True)
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):  # noqa: S301
        assert q.tolist() == p.tolist()
        assert q.requires_grad
        with mgjit.no_grad():
            q[0] = 2.0
    assert p[0].item() == 1.0


def test_text() -> None:
    assert repr(T.asarray([[1, 2]])) == "tensor([[1, 2]], dtype='int64')"
    assert repr(T.ones(1, requires_grad=True)) == "tensor([1.0], requires_grad=True)"


# ---- more of steps --------------------------------------------------------------------------------------------


def test_a_tensor_that_takes_the_place_of_a_changed_one_is_refused_with_a_fix() -> None:
    layer = Layer()

    def replace(x: Any) -> Any:
        layer.seen[0] = 1.0
        layer.seen = layer.seen * 0.9 + x
        return x.sum()

    def assign(x: Any) -> Any:
        layer.seen[...] = layer.seen * 0.9 + x
        return x.sum()

    with pytest.raises(LeakError, match=r"Layer\.seen.*x\[\.\.\.\] = y"):
        step(replace)(T.ones(2))
    assert layer.seen.tolist() == [0.0, 0.0]
    step(assign)(T.ones(2))
    assert layer.seen.tolist() == [1.0, 1.0]


def test_tensors_without_elements() -> None:
    def empty(x: Any) -> Any:
        return x[:0].sum(), x[:0] * 2.0, T.concat([x[:0], x]), x[:0].prod(), x[:0].any()

    x = T.ones(2)
    assert [one.tolist() for one in step(empty)(x)] == [one.tolist() for one in empty(x)]


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_a_step_that_was_traced_with_a_tensor_without_elements_takes_others(dtype: str) -> None:
    @mgjit.compile(background=False, backend="python")
    def step(x: T.Tensor) -> Any:
        return x.sum(), x * 2

    for rows in (0, 2, 0, 3):
        found = step(T.ones((rows, 2), dtype=dtype))
        assert [part.tolist() for part in found] == [2 * rows, [[2, 2]] * rows]
        assert found[1].shape == (rows, 2)
    assert step.stats.traces == 3


def test_a_leaf_without_elements_may_be_made_in_a_step() -> None:
    def made(x: T.Tensor) -> Any:
        w = T.ones((0, 2), requires_grad=True)
        loss = (x * w).sum() + x.sum()
        loss.backward()
        return loss, w.grad

    compiled = step(made)
    assert [part.tolist() for part in compiled(T.ones(2))] == [2.0, []]
    assert compiled.stats.traces == 1


def test_an_axis_needs_no_name() -> None:
    x = T.asarray([[1.0, 3.0], [2.0, 5.0]])
    assert x.sum(0).tolist() == T.sum(x, 0).tolist() == [3.0, 8.0]
    assert (T.concat([x, x], 1).shape, T.stack([x, x], 1).shape) == ((2, 4), (2, 2, 2))
    assert T.take_along_axis(x, T.asarray([[1], [0]]), 1).tolist() == [[3.0], [2.0]]


def test_lists_and_arrays_of_numbers_become_tensors_in_one_record() -> None:
    compiled = step(lambda x, y: (T.asarray(x) * T.asarray(y)).sum())
    assert compiled([1.0, 2.0, 3.0], array("d", [1.0, 10.0, 100.0])).item() == 321.0
    assert compiled.stats.records < 6


def test_scalars_tensors_tables_and_state_in_one_step() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = T.asarray([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
            self.mlp = mgjit.nn.MLP(2, [3, 1])
            self.table = [[mgjit.Value(0.5 * k), mgjit.Value(1.0 - k)] for k in range(3)]
            self.count, self.seen = mgjit.zeros(1), 0.0

        def __call__(self, x: Any, i: Any, lr: Any) -> Any:
            h = (x @ self.w).tanh()
            row = self.table[i]
            loss = (self.mlp([row[0] * h[0].item(), row[1] + h[1].item()]) - 1.0) ** 2
            self.mlp.zero_grad()
            loss.backward()
            squares = (h * h).sum()
            self.w.zero_grad()
            squares.backward()
            for p in self.mlp.parameters():
                p.data -= lr * p.grad
            with mgjit.no_grad():
                self.w -= lr * self.w.grad * loss.data
            self.count[0] = self.count[0] + h[0].item()
            self.seen += squares.item()
            return loss.data, squares

    mine = Model()
    theirs = copy.deepcopy(mine)
    compiled = step(theirs)
    for k in range(4):
        x = T.asarray([0.5 * k, 1.0 - k])
        expected, got = mine(x, k % 3, 0.1), compiled(x, k % 3, 0.1)
        assert (got[0], got[1].item()) == (expected[0], expected[1].item())
        assert (theirs.w.tolist(), theirs.seen, list(theirs.count)) == (mine.w.tolist(), mine.seen, list(mine.count))
        assert [p.data for p in theirs.mlp.parameters()] == [p.data for p in mine.mlp.parameters()]
    assert compiled.stats.plain_calls == 0


def test_frozen_steps_know_tensors() -> None:
    assert mgjit.freeze(step(lambda x: x * 2.0), T.ones(2))(T.ones(2)).tolist() == [2.0, 2.0]


def test_members_of_an_ensemble_have_tensors_of_their_own() -> None:
    layer = Layer()

    def train(x: Any) -> Any:
        layer.seen += x
        return layer.seen * 1.0

    members = mgjit.ensemble(step(train), 3)
    assert members(T.ones(2)).tolist() == [[1.0, 1.0]] * 3
    assert members(T.ones(2)).tolist() == [[2.0, 2.0]] * 3
    assert layer.seen.tolist() == [0.0, 0.0]


def test_rows_on_several_threads_must_not_share_what_a_step_writes() -> None:
    layer = Layer()

    def train(x: Any) -> Any:
        layer.seen += x
        return x.sum()

    with pytest.raises(mgjit.errors.SharedWriteError):
        step(train).loop([T.ones(2), T.ones(2)], threads=2)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers of classes written in Python came with 3.12")
def test_tensors_have_buffers() -> None:
    x = T.arange(6.0).reshape(2, 3)
    view = memoryview(x)
    assert view.shape == (2, 3)
    view[0, 1] = 7.0
    assert x[0, 1].item() == 7.0
    assert memoryview(x.mT).tolist() == x.mT.tolist()


def test_the_floats_of_a_step_are_those_of_its_plain_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float32 step refuses what numbers alone make, compiled or not; the advice works in both."""
    x, one = T.asarray([1.0, -2.0], dtype="float32"), T.asarray(1.0, dtype="float32")
    for disabled in ("", "1"):
        monkeypatch.setenv("MGJIT_DISABLE", disabled)
        refused = mgjit.compile(dtype="float32", background=False)(lambda x: T.where(x > 0, 1.0, 0.0))
        other = mgjit.compile(background=False)(lambda x: x * 2.0)
        advised = mgjit.compile(dtype="float32", background=False)(lambda x: T.where(x > 0, one, 0.0))
        for _ in range(2):
            with pytest.raises(PrecisionError, match="asarray"):
                refused(x)
            with pytest.raises(PrecisionError, match="dtype='float32'"):
                other(x)
            assert advised(x).tolist() == [1.0, 0.0]
    assert T.where(x > 0, 1.0, 0.0).dtype is T.float64


# ---- nan, and what has no finite derivative -----------------------------------------------------------------

_NAN = math.nan


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max", ["nan", "nan", "3.0", "-inf"]),
        ("min", ["nan", "nan", "1.0", "-inf"]),
        ("argmax", ["1", "0", "2", "0"]),
        ("argmin", ["1", "0", "0", "0"]),
    ],
)
def test_nan_is_taken_before_all_numbers(name: str, expected: list[str]) -> None:
    x = T.asarray([[1.0, _NAN, _NAN], [_NAN, 5.0, -1.0], [1.0, 2.0, 3.0], [-math.inf] * 3])
    for one in (x, x.astype("float32")):
        assert list(map(str, getattr(T, name)(one, axis=1).tolist())) == expected
        compiled = step(lambda x: getattr(T, name)(x, axis=1), dtype=one.dtype.name)
        assert list(map(str, compiled(one).tolist())) == expected


@pytest.mark.parametrize("function", [T.maximum, T.minimum])
def test_nan_stays_in_a_maximum_of_two(function: Any) -> None:
    x, y = T.asarray([1.0, _NAN, 2.0]), T.asarray([_NAN, 1.0, 2.0])
    assert list(map(str, function(x, y).tolist())) == ["nan", "nan", "2.0"]
    assert list(map(str, function(0.5, x).tolist()))[1] == "nan"
    assert list(map(str, function(x, 0.5).tolist()))[1] == "nan"
    assert list(map(str, function(x, _NAN).tolist())) == ["nan"] * 3


def test_the_gradient_of_a_maximum_goes_to_the_nan() -> None:
    x = T.asarray([[1.0, _NAN, 2.0], [0.0, 1.0, 1.0]])
    assert mgjit.grad(lambda x: x.max(axis=1).sum())(x).tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("zero", [0, 0.0, "tensor"])
def test_the_gradient_of_a_power_of_zero_is_0(zero: Any) -> None:
    x = T.asarray([0.0, -2.0, 3.0])
    exponent = T.zeros(3) if zero == "tensor" else zero
    for compute in (mgjit.grad(lambda x: (x**exponent).sum()), step(mgjit.grad(lambda x: (x**exponent).sum()))):
        assert compute(x).tolist() == [0.0, 0.0, 0.0]
    assert (x**exponent).tolist() == [1.0, 1.0, 1.0]


def test_the_gradient_of_a_power_by_its_exponent() -> None:
    y = T.asarray([0.0, 1.0, -1.0, 2.0])
    assert mgjit.grad(lambda y: (0.0**y).sum())(y).tolist() == [0.0, 0.0, -math.inf, 0.0]
    assert mgjit.grad(lambda y: (2.0**y).sum())(y).tolist() == [math.log(2.0) * 2.0**k for k in (0, 1, -1, 2)]
    assert list(map(str, mgjit.grad(lambda y: ((-3.0) ** y).sum())(y).tolist())) == ["nan"] * 4


@pytest.mark.parametrize(("own", "other"), [("float64", "float32"), ("float32", "float64")])
def test_gradients_through_astype(own: str, other: str) -> None:
    x = T.asarray([1.0, 2.0, 3.0, 4.0], dtype=own, requires_grad=True)
    weights = T.asarray([1.0, 10.0, 100.0, 1000.0], dtype=other)
    ((x * 2.0)[::-1].astype(other) * weights).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype.name == own
    assert x.grad.tolist() == [2000.0, 200.0, 20.0, 2.0]


def test_gradients_through_astype_add_up_in_the_precision_of_the_operand() -> None:
    x = T.asarray([1.0], requires_grad=True)
    (x * (1.0 + 2.0**-40)).sum().backward()
    x.astype("float32").sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0 + 2.0**-40]


class Masked(mgjit.nn.Module):
    """A module that keeps bools and whole numbers."""

    def __init__(self) -> None:
        self.register_buffer("mask", T.asarray([True, False, True]))
        self.register_buffer("places", T.asarray([2, 0, 1]))
        self.register_buffer("hidden", T.asarray([1]), persistent=False)
        self.weight = mgjit.nn.Parameter([1.0, 2.0, 3.0])

    def forward(self, x: Any) -> Any:
        return (x * self.weight).masked_fill(self.mask == 0, -1.0)[self.places] + self.places


def test_bools_and_whole_numbers_that_a_module_keeps_are_constants_that_are_watched() -> None:
    numpy = pytest.importorskip("numpy")
    module, x = Masked(), T.asarray([1.0, 2.0, 3.0])
    assert list(module.state_dict()) == ["mask", "places", "weight"]
    compiled = step(lambda x: module(x) * 1.0)

    def is_right() -> bool:
        return all(compiled(x).tolist() == module(x).tolist() for _ in range(2))

    assert is_right()
    assert not compiled.stats.plain_calls
    module.mask[0] = False
    assert is_right()
    module.places = T.asarray([0, 0, 1])  # type: ignore[attr-defined]
    assert is_right()
    array = numpy.asarray(module.places)
    assert is_right()
    array[1] = 2
    assert is_right()
    assert module(x).tolist() == [-1.0, 11.0, 0.0]


def test_a_step_that_assigns_to_whole_numbers_that_a_module_keeps_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")
    module = Masked()

    def counting(x: Any) -> Any:
        module.places[0] = 1
        return module(x)

    compiled = step(counting)
    with pytest.warns(PlainWarning, match="int64 that is no argument"):
        assert compiled(T.asarray([1.0, 2.0, 3.0])).tolist() == [0.0, 1.0, 0.0]
    assert module.places.tolist() == [1, 0, 1]


@pytest.mark.parametrize("call", [lambda n: n % 3, lambda n: n % -3, lambda n: n // 2, lambda n: (n * 7) // -4 % 5])
def test_whole_numbers_divided_by_an_int_stay_in_the_kernel(call: Any) -> None:
    numbers = T.arange(-9, 9)
    python = [call(n) for n in range(-9, 9)]
    compiled = step(call)
    assert call(numbers).tolist() == compiled(numbers).tolist() == python
    assert not compiled.stats.plain_calls


def test_a_remainder_is_an_index() -> None:
    table = T.asarray([1.0, 2.0, 4.0])
    compiled = step(lambda n: table[n % 3].sum())
    assert compiled(T.arange(-5, 5)).item() == table[T.arange(-5, 5) % 3].sum().item()
    assert not compiled.stats.plain_calls


@pytest.mark.parametrize("kind", ["float64", "int64"])
def test_rows_are_sorted_as_python_sorts_them(kind: str) -> None:
    draw = random.Random(4)
    rows = [[float(draw.randrange(4)) for _ in range(9)] for _ in range(3)]
    x = T.asarray(rows).astype(kind)
    for descending in (False, True):
        wanted = [sorted(range(9), key=row.__getitem__, reverse=descending) for row in rows]
        assert x.argsort(descending=descending).tolist() == wanted
        compiled = step(lambda x, way=descending: T.sort(x, descending=way))
        values, indices = compiled(x)
        assert indices.tolist() == wanted
        assert values.tolist() == [[row[k] for k in order] for row, order in zip(x.tolist(), wanted)]
        assert not compiled.stats.plain_calls


def test_nan_is_greater_than_all_numbers() -> None:
    x = T.asarray([math.nan, 1.0, math.inf, math.nan, -math.inf])
    for make in (lambda function: function, step):
        assert make(lambda x: x.argsort())(x).tolist() == [4, 1, 2, 0, 3]
        assert make(lambda x: x.argsort(descending=True))(x).tolist() == [0, 3, 2, 1, 4]


def test_random_choices_are_those_that_can_be_drawn() -> None:
    T.manual_seed(5)
    weights = T.asarray([[0.0, 1.0, 0.0, 3.0], [5.0, 0.0, 0.0, 0.0]])
    drawn = weights.multinomial(400, replacement=True)
    counts = [drawn[0].tolist().count(k) for k in range(4)]
    assert counts[0] == counts[2] == 0
    assert 60 < counts[1] < 140
    assert drawn[1].tolist() == [0] * 400
    without = [tuple(sorted(T.multinomial(T.ones(4), 3).tolist())) for _ in range(50)]
    assert {len(set(one)) for one in without} == {3}
    assert sorted(T.randperm(6).tolist()) == list(range(6))
    numbers = T.randint(2, 5, (200,)).tolist()
    assert set(numbers) == {2, 3, 4}


def test_random_numbers_in_a_step_are_those_of_plain_python() -> None:
    def drawing(x: Any) -> Any:
        return x.softmax(0).multinomial(2), T.randperm(4), T.randint(7, (3,)), T.bernoulli(x.sigmoid())

    compiled, x = step(drawing), T.asarray([0.5, -1.0, 2.0])
    for seed in range(3):
        T.manual_seed(seed)
        wanted = [one.tolist() for one in drawing(x)]
        T.manual_seed(seed)
        assert [one.tolist() for one in compiled(x)] == wanted


def test_sums_so_far_have_second_derivatives() -> None:
    def penalty(x: Any) -> Any:
        return (mgjit.grad(lambda z: (z.cumsum(0) ** 3).sum())(x) ** 2).sum()

    x = T.asarray([0.5, -1.0, 2.0])
    found = mgjit.grad(penalty)(x).tolist()
    for k in range(3):
        values = []
        for shift in (1e-5, -1e-5):
            moved = x.clone()
            moved[k] += shift
            values.append(penalty(moved).item())
        assert found[k] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-6)
    (gradient,) = T.autograd.grad((x.requires_grad_().cumsum(0) ** 2).sum(), x)
    assert gradient.tolist() == [3.0, 2.0, 3.0]
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_an_adjoint_of_zero_that_leads_nowhere_is_not_divided_by_zero() -> None:
    def slopes(x: Any) -> Any:
        z = x.detach().copy()
        z.requires_grad = True
        (T.fmod(z, 0.0) + T.erf(z)).sum().backward()
        return z.grad

    x = T.asarray([0.0, 1.0])
    wanted = [1.0 + 2.0 / math.sqrt(math.pi) * math.exp(-number) for number in (0.0, 1.0)]
    assert slopes(x).tolist() == step(slopes)(x).tolist() == pytest.approx(wanted)


def test_float_and_int_of_a_tensor_inside_of_a_step() -> None:
    """They are numbers of the step, as `item()` gives them."""

    def step(x: Any, row: list[float]) -> Any:
        return float((x * 2.0).sum()), row[int(T.argmax(x))]

    compiled = mgjit.compile(step)
    for numbers in ([1.0, 3.0, 2.0], [5.0, -1.0, 0.25]):
        assert compiled(T.asarray(numbers), [7.0, 8.0, 9.0]) == step(T.asarray(numbers), [7.0, 8.0, 9.0])
    assert compiled.stats.calls == 2
