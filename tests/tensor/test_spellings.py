"""What tensors say to attributes of other libraries, and what they make of numpy's arrays."""

from __future__ import annotations

import pickle
import random
import warnings
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ShapeError
from mgjit.tensor import spellings
from mgjit.tensor.spellings import SPELLINGS, array_of, hint

numpy = pytest.importorskip("numpy")


X = T.asarray([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])


def test_no_spelling_is_an_attribute_of_ours() -> None:
    assert [name for name in SPELLINGS if hasattr(mgjit.Tensor, name)] == []
    assert [name for name in SPELLINGS if name in dir(nn)] == []


@pytest.mark.parametrize("name", ["half", "cuda", "register_hook"])
def test_the_error_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match="Tensor object has no attribute") as raised:
        getattr(mgjit.Tensor([1.0, 2.0]), name)
    assert str(raised.value).endswith(f"Write {SPELLINGS[name]}.")
    assert hint("nobody_knows_this") == ""


def test_a_name_that_is_nearly_one_of_ours_is_shown() -> None:
    for thing, name, ours in (
        (X, "unsqeeze", "unsqueeze"), (T, "concatenat", "concatenate"), (nn, "LayerNrom", "LayerNorm"),
        (nn.functional, "cros_entropy", "cross_entropy"), (mgjit.optim, "AdanW", "AdamW"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"Perhaps {ours} is meant"):
            getattr(thing, name)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "argmax", "amax", "logsumexp", "any", "norm"])
def test_axes_have_two_names(name: str) -> None:
    both = [getattr(X, name)(**{axis: 1, keep: True}) for axis, keep in (("axis", "keepdims"), ("dim", "keepdim"))]
    assert both[0].tolist() == both[1].tolist()
    assert getattr(T, name)(X, dim=0).tolist() == getattr(T, name)(X, axis=0).tolist()


def test_the_indices_of_what_has_changed_are_refused() -> None:
    x = X.copy()
    found = x.max(axis=1)
    x[0] = 0.0
    assert found.values.tolist() == [3.0, 6.0]
    with pytest.raises(ArgumentError, match="assigned since"):
        _ = found.indices
    assert not hasattr(X, "indices")


def test_the_default_type_is_float64() -> None:
    T.set_default_dtype(T.get_default_dtype())
    with pytest.raises(ArgumentError, match=r"model\.float\(\)"):
        T.set_default_dtype(T.float32)


def test_axes_of_length_1_in_front_are_dropped_where_elements_are_assigned() -> None:
    x = T.zeros(2, 3)
    x[0] = X[1:]
    assert x.tolist() == [[4.0, 6.0, 5.0], [0.0, 0.0, 0.0]]
    with pytest.raises(ShapeError):
        x[0] = X


def test_dim_means_what_it_means_in_pytorch() -> None:
    values, indices = X.max(dim=1)
    assert (values.tolist(), indices.tolist()) == ([3.0, 6.0], [0, 1])
    assert X.max(axis=1).tolist() == X.max(1).tolist() == [3.0, 6.0]
    assert T.min(input=X, dim=0, keepdim=True).indices.tolist() == [[0, 0, 0]]
    assert (X.max(1).values.tolist(), X.min(1).indices.tolist()) == ([3.0, 6.0], [1, 0])
    assert X.var(dim=1).tolist() == [1.0, 1.0]
    assert X.var(axis=1).tolist() == pytest.approx([2 / 3, 2 / 3])
    assert X.std(dim=0, unbiased=False).tolist() == X.std(axis=0).tolist()


def test_what_may_mean_two_things_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for clear in (X.max, X.min):
            clear(), clear(axis=1), clear(dim=1)
        X.std(axis=0), X.std(dim=0), X.var(correction=1), T.max(X, X * 2.0)
    with pytest.warns(FutureWarning, match=r"test_spellings.py.*dim= for indices"):
        X.max(1)
    with pytest.warns(FutureWarning, match=r"divides by n, .*n - 1"):
        X.std()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert X.max(1).tolist() == [3.0, 6.0]
        assert X.std().item() == X.std(correction=0).item()


def test_an_argument_has_one_of_its_names() -> None:
    with pytest.raises(ArgumentError, match=r"sum with both (dim|axis)= and (dim|axis)="):
        X.sum(dim=1, axis=1)
    with pytest.raises(TypeError, match="sideways"):
        X.sum(sideways=1)


def test_shapes_are_numbers_or_a_tuple() -> None:
    assert T.zeros(2, 3).shape == T.zeros((2, 3)).shape == T.zeros(size=(2, 3)).shape == (2, 3)
    assert X.view(3, 2).tolist() == X.view((3, 2)).tolist() == X.reshape(-1, 2).tolist()
    assert X.unsqueeze(0).expand(4, -1, -1).shape == X.expand((4, 2, 3)).shape == (4, 2, 3)
    assert X.permute(1, 0).tolist() == X.permute((1, 0)).tolist() == X.transpose(0, 1).tolist() == X.t().tolist()


def test_size_is_an_int_that_can_be_called() -> None:
    assert X.size == 6
    assert X.size() == (2, 3)
    assert X.size(-1) == X.size(dim=1) == 3
    assert range(X.size)[-1] == 5
    assert T.arange(7)[X.size].item() == 6
    assert type(pickle.loads(pickle.dumps(X.size))) is int  # noqa: S301 - our own

    @mgjit.compile
    def step(x: Any) -> Any:
        batch, width = x.size()
        return x.sum() / x.size + batch * width, x.size(0)

    assert [float(step(X)[0]) for _ in range(3)] == [9.5] * 3
    assert step(X)[1] == 2


def test_a_size_that_a_step_keeps_can_still_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")

    class Kept:
        size: Any = 0

    kept, factor = Kept(), X.size

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        kept.size = x.size
        return x.sum() * factor, factor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [step(X) for _ in range(3)]
    assert [(float(total), size()) for total, size in found] == [(126.0, (2, 3))] * 3
    assert kept.size() == (2, 3)


def test_the_module_makes_a_tensor() -> None:
    for make in (mgjit.tensor, T, T.tensor):
        made = make([1.0, 2.0], requires_grad=True)  # type: ignore[operator]
        assert isinstance(made, mgjit.Tensor)
        assert made.requires_grad
    copied = T.tensor(X)
    assert copied.tolist() == X.tolist()
    assert copied._memory is not X._memory


def test_a_device_is_the_processor() -> None:
    device = T.device("cuda" if T.cuda.is_available() else "cpu")
    assert X.to(device) is X
    assert str(X.device) == "cpu"
    assert T.zeros(2, device=device).tolist() == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="computes on the processor"):
        X.to("cuda:0")
    with pytest.raises(ArgumentError, match="computes on the processor"):
        nn.Linear(2, 2).to("cuda")


def test_a_number_of_a_tensor_is_text_in_a_form() -> None:
    assert f"{X.mean():.2f} {X[0, 0]:5.1f}" == "3.50   3.0"
    assert f"{X[0]}" == str(X[0])
    with pytest.raises(ShapeError, match="one element"):
        format(X, ".2f")


@pytest.mark.parametrize(("name", "given", "wanted"), [
    ("zero_", (), 0.0), ("fill_", (2.5,), 2.5), ("add_", (1.0,), 4.0), ("mul_", (2.0,), 6.0), ("clamp_", (0, 1), 1.0),
    ("masked_fill_", (X > 2.0, -1.0), -1.0),
])  # fmt: skip
def test_names_with_a_line_assign_to_the_elements(name: str, given: Any, wanted: float) -> None:
    x = X.clone()
    first = x[0]
    assert getattr(x, name)(*given) is x
    assert first[0].item() == wanted


def test_types_have_the_names_of_pytorch() -> None:
    assert (X.long().dtype, X.float().dtype, X.double() is X, X.bool().dtype) == (T.int64, T.float32, True, T.bool_)
    assert T.zeros(2, dtype=T.long).dtype is T.int64
    assert X.to(T.float32).to(X).dtype is T.float64


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_an_array_of_numpy_is_a_tensor_where_one_is_wanted(kind: str) -> None:
    layer = nn.Linear(3, 2)
    rows = [[0.5, 1.0, -2.0], [0.25, 3.0, 1.5]]
    wanted = layer(mgjit.Tensor(rows)).tolist()
    assert layer(numpy.array(rows, kind)).tolist() == wanted
    with pytest.raises(ArgumentError, match=r"Linear needs a tensor, not the list"):
        layer(rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("ints", ["int64", "int32", "uint8"])
def test_arrays_of_numpy_are_inputs_of_a_step_that_makes_tensors_of_them(kind: str, ints: str) -> None:
    draw = numpy.random.default_rng(1)
    batches = [
        (draw.standard_normal((5, 6)).astype(kind)[:, ::2], draw.integers(0, 2, 5).astype(ints)) for _ in range(4)
    ]
    results = []
    for wrap in (lambda step: step, mgjit.compile(background=False)):
        layer, table = nn.Linear(3, 2, generator=random.Random(1)), nn.Embedding(2, 2, generator=random.Random(2))

        def step(x: Any, y: Any) -> Any:
            loss = nn.functional.cross_entropy(layer(x) + table(y), y)  # noqa: B023 - called in this turn only
            loss.backward()
            if kind == "float64":
                x[0, 0] = x[0, 1]  # of which the tensor that was made before knows nothing
            more = layer(x[1:3]).sum() + (y - layer.bias[0]).sum()  # noqa: B023
            for p in (*layer.parameters(), *table.parameters()):  # noqa: B023
                p.data -= 0.1 * p.grad
                p.grad = 0.0
            return loss.detach(), more.detach()

        compiled = wrap(step)
        given = [(numpy.copy(x), numpy.copy(y)) for x, y in batches]
        results.append([tuple(map(float, compiled(*batch))) for batch in given] + [x[0, 0] for x, _ in given])
    assert results[0] == results[1]
    assert compiled.stats.plain_calls == 0


def test_a_tensor_of_another_library_is_named_with_the_cure() -> None:
    other = type("Tensor", (), {"__module__": "torch", "__repr__": lambda self: "tensor([1.])"})()
    assert array_of(other) == "x.detach().numpy()"
    with pytest.raises(ArgumentError, match=r"mgjit.tensor.asarray\(x.detach\(\).numpy\(\)\) makes"):
        nn.Linear(3, 2)(other)
