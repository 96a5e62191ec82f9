"""Elements that tensors, lists and masks choose, with NumPy's rules."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.errors import ArgumentError, BackendWarning, GradientError, IndexRangeError, MgjitError, ShapeError
from mgjit.nn import functional as F
from mgjit.tensor import eager
from tests.tensor.cases import numbers


@pytest.fixture(autouse=True)
def python_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition, which needs no compiler."""
    monkeypatch.setattr(eager, "_functions", {})
    monkeypatch.setattr(eager, "_compile", lambda form, quickly: None)


def step(function: Any, **options: Any) -> Any:
    """A compiled step that needs no compiler."""
    return mgjit.compile(function, background=False, backend="python", **options)


def table() -> Any:
    """0, 1, ..., in three rows."""
    return T.arange(12.0).reshape(3, 4)


def test_arrays_choose_pairs() -> None:
    x = table()
    for i, j in (([0, 2], [1, 3]), (T.asarray([0, 2]), T.asarray([1, 3])), (T.asarray([0, 2]), [1, -1])):
        assert x[i, j].tolist() == [1.0, 11.0]
    assert x[[[0], [2]], [1, 3]].tolist() == [[1.0, 3.0], [9.0, 11.0]]
    assert x[range(3), [0, 1, 2]].tolist() == [0.0, 5.0, 10.0]
    assert x[[0, 2]].tolist() == [x[0].tolist(), x[2].tolist()]
    assert x[[]].shape == (0, 4)


def test_masks_choose_what_is_true() -> None:
    x = table()
    assert x[x > 9.0].tolist() == [10.0, 11.0]
    assert x[T.asarray([True, False, True])].tolist() == x[[0, 2]].tolist()
    assert x[[False, True, False], 1:].tolist() == [[5.0, 6.0, 7.0]]
    assert (x[True].shape, x[False].shape, x[True, 0].shape) == ((1, 3, 4), (0, 3, 4), (1, 4))
    assert x[T.asarray([True, False, True]), [0, 3]].tolist() == [0.0, 11.0]


def test_the_place_of_the_axes_of_arrays() -> None:
    x = T.zeros((2, 3, 4, 5))
    assert x[:, [0, 1], [2, 3]].shape == (2, 2, 5)
    assert x[[0, 1], :, [2, 3]].shape == (2, 3, 5)
    assert x[0, :, [1, 2, 3]].shape == (3, 3, 5)
    assert x[:, 0, [1, 2, 3]].shape == (2, 3, 5)
    assert x[..., [1], None, 0].shape == (1, 2, 3, 1)


def test_the_usual_spelling_of_a_cross_entropy() -> None:
    logits, labels = T.randn((4, 3), generator=random.Random(1)), T.asarray([0, 2, 1, 1])

    def both(logits: Any, labels: Any) -> Any:
        by_pairs = mgjit.value_and_grad(lambda z: -z.log_softmax()[T.arange(4), labels].mean())
        return by_pairs(logits)

    value, gradient = both(logits, labels)
    expected, its = mgjit.value_and_grad(lambda z: F.cross_entropy(z, labels))(logits)
    assert value.item() == pytest.approx(expected.item())
    assert gradient.tolist_flat() == pytest.approx(its.tolist_flat())
    compiled = step(both)
    assert numbers(compiled(logits, labels)) == numbers((value, gradient))
    for again in ([2, 2, 0, -1], [-3, 0, 0, 0]):
        assert numbers(compiled(logits, T.asarray(again))) == numbers(both(logits, T.asarray(again)))
    with pytest.raises(IndexRangeError, match="3"):
        compiled(logits, T.asarray([0, 0, 0, 3]))
    assert compiled.stats.plain_calls == 0


def test_gradients_add_up_where_a_pair_repeats() -> None:
    for compute in (mgjit.grad(lambda x: (x[[0, 0, 1], [2, 2, 0]] * T.asarray([1.0, 2.0, 4.0])).sum()),):
        expected = [[0.0, 0.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0], [0.0] * 4]
        assert compute(table()).tolist() == step(compute)(table()).tolist() == expected
    hessian = mgjit.jacobian(mgjit.grad(lambda x: x[[0, 0, 1], [1, 1, 0]].prod()))
    x = T.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert hessian(x).tolist() == step(hessian)(x).tolist()
    assert hessian(x)[0, 1].tolist() == [[0.0, 6.0], [4.0, 0.0]]


def test_the_gradient_of_what_a_mask_chooses() -> None:
    x = T.asarray([1.0, -2.0, 3.0])
    assert mgjit.grad(lambda x: (x[x > 0.0] ** 2).sum())(x).tolist() == [2.0, 0.0, 6.0]


def test_a_mask_in_a_step_makes_the_call_plain() -> None:
    compiled = step(lambda x: x[x > 0.0].sum())
    for numbers_ in ([1.0, -2.0, 3.0], [1.0, 2.0, 3.0]):
        with pytest.warns(BackendWarning, match="how many elements a mask chooses") if compiled.stats.plain_calls == 0 \
                else _nothing():  # fmt: skip
            assert compiled(T.asarray(numbers_)).item() == sum(x for x in numbers_ if x > 0.0)


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


def test_assignments_to_what_is_chosen() -> None:
    def assigned(i: Any, value: Any) -> Any:
        x = table()
        x[i] = value
        return x

    assert assigned(([0, 2], [1, 3]), -1.0).tolist_flat() == [0, -1, *range(2, 11), -1]
    assert assigned(([0, 0], [1, 1]), T.asarray([5.0, 6.0]))[0].tolist() == [0.0, 6.0, 2.0, 3.0]
    assert assigned([2], [9.0, 8.0, 7.0, 6.0])[2].tolist() == [9.0, 8.0, 7.0, 6.0]
    assert assigned(table() > 5.0, 0.0).sum().item() == 15.0
    assert assigned(table() > 9.0, T.asarray([1.0, 2.0]))[2].tolist() == [8.0, 9.0, 1.0, 2.0]
    assert assigned(T.asarray([True, False, False]), 0.0).sum().item() == 60.0
    x = table()
    x[[0, 1]] = x[[1, 0]]
    x[[2, 2], [0, 0]] += 1.0
    assert x[:, 0].tolist() == [4.0, 0.0, 9.0]
    with pytest.raises(ShapeError):
        x[[0, 1]] = T.zeros((3, 4))
    with pytest.raises(GradientError):
        T.zeros(2, requires_grad=True)[[0]] = 1.0


def test_assignments_in_a_step() -> None:
    buffer = T.zeros((3, 4))

    def put(i: Any, j: Any, value: Any) -> Any:
        buffer[i, j] = value
        x = buffer * 2.0
        x[i] = 5.0
        x[x > 7.0] = -1.0
        return x

    compiled = step(put)
    draw = random.Random(2)
    for _ in range(4):
        i, j = (T.asarray([draw.randrange(-n, n) for _ in range(2)]) for n in (3, 4))
        given = i, j, T.asarray([draw.random() * 8.0, draw.random()])
        before = buffer.copy()
        expected = numbers(put(*given)), buffer.tolist()
        buffer[...] = before
        assert (numbers(compiled(*given)), buffer.tolist()) == expected
    assert compiled.stats.plain_calls == 0


@pytest.mark.parametrize(
    "index", ["x", 1.0, [0.5], (0, "x"), {1: 2}, object(), (..., ...), [3], ([0], [5]), ([0, 1], [0, 1, 2])]
)
def test_what_is_no_index(index: Any) -> None:
    with pytest.raises((ArgumentError, IndexRangeError, ShapeError), match=r"test_indexing\.py"):
        table()[index]
    with pytest.raises((ArgumentError, IndexRangeError, ShapeError), match=r"test_indexing\.py"):
        table()[index] = 1.0


class Indices:
    """Makes a random index of an array of NumPy."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shape = tuple(self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(0, 4)))

    def index(self, np: Any) -> Any:
        """Ints, slices, None, `...`, bools, arrays, lists and masks."""
        draw, parts, axis, has_dots = self.random, [], 0, False
        while axis < len(self.shape) and draw.random() < 0.85:
            if draw.random() < 0.15:
                parts.append(None)
            if draw.random() < 0.05:
                parts.append(draw.random() < 0.7)
            if not has_dots and draw.random() < 0.15:
                has_dots, axis = True, draw.randint(axis, len(self.shape))
                parts.append(...)
                continue
            width = min(draw.choice((1, 1, 1, 2)), len(self.shape) - axis)
            parts.append(self._part(np, self.shape[axis : axis + width]))
            axis += width if self._is_mask(np, parts[-1]) else 1
        return tuple(parts) if len(parts) != 1 or draw.random() < 0.5 else parts[0]

    def _part(self, np: Any, shape: Any) -> Any:
        draw, extent = self.random, shape[0]
        kind = draw.randrange(6)
        if kind == 0:
            return draw.randrange(-extent, extent)
        if kind == 1:
            return slice(
                draw.choice((None, 0, 1, -1)), draw.choice((None, 2, -1, 5)), draw.choice((None, 1, 2, -1, -2))
            )
        if kind == 2:
            return np.array([draw.random() < 0.5 for _ in range(math.prod(shape))], dtype=bool).reshape(shape)
        extents = draw.choice([(2,), (1,), (3, 1), (2, 2), (0,), ()])
        numbers = [draw.randrange(-extent, extent) for _ in range(math.prod(extents))]
        found = np.array(numbers, dtype=np.int64).reshape(extents)
        return found.tolist() if draw.random() < 0.4 and extents else found

    @staticmethod
    def _is_mask(np: Any, part: Any) -> bool:
        return isinstance(part, np.ndarray) and part.dtype == bool


@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_random_indices_mean_what_numpy_says(seed: int) -> None:
    np = pytest.importorskip("numpy")
    for number in range(seed, seed + 10):
        made = Indices(number)
        array = np.arange(float(math.prod(made.shape))).reshape(made.shape)
        index = made.index(np)
        parts = index if isinstance(index, tuple) else (index,)
        ours: Any = tuple(T.asarray(one) if isinstance(one, np.ndarray) else one for one in parts)
        ours = ours if isinstance(index, tuple) else ours[0]
        x = T.asarray(array)
        try:
            expected = array[index]
        except IndexError:
            with pytest.raises(MgjitError):
                x[ours]
            continue
        found = x[ours]
        assert (found.shape, found.tolist()) == (expected.shape, expected.tolist()), index
        values = np.arange(float(expected.size)).reshape(expected.shape) - 100.0
        array[index] = values
        x[ours] = T.asarray(values)
        assert x.tolist() == array.tolist(), index


def test_numbers_of_a_step_choose_what_is_assigned() -> None:
    buffer = T.zeros((3, 4))

    def put(k: int, x: Any) -> Any:
        buffer[k] = x
        buffer[k, 1] = 9.0
        y = buffer * 1.0
        y[:, k] = -x[0]
        y[k, [0, 1]] = 5.0
        return y, buffer[k]

    compiled = step(put)
    for k in (0, 2, 1):
        x = T.arange(4.0) * (k + 1.0)
        before = buffer.copy()
        expected = numbers(put(k, x)), buffer.tolist()
        buffer[...] = before
        assert (numbers(compiled(k, x)), buffer.tolist()) == expected
    with pytest.raises(IndexRangeError):
        compiled(3, T.zeros(4))
    assert compiled.stats.plain_calls == 0
