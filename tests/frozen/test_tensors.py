"""Frozen steps over tensors: the bits of the undecorated forward part, whatever becomes of the model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import FreezeError
from tests.export.compiling import checked


def bits(result: Any) -> Any:
    """The bits of a result: tensors, floats, or lists of them."""
    if isinstance(result, (list, tuple)):
        return [bits(x) for x in result]
    return bits(result.tolist()) if isinstance(result, T.Tensor) else float(result).hex()


class Classifier:
    """Two layers and a running mean, which `forward` leaves as it is unless it is training."""

    def __init__(self, dtype: str = "float64") -> None:
        generator = random.Random(4)
        self.w = T.randn((4, 5), generator=generator).astype(dtype)
        self.v = T.randn((5, 3), generator=generator).astype(dtype)
        self.mean = T.zeros(5, dtype=dtype)
        self.w.requires_grad = self.v.requires_grad = True
        self.is_training = False

    def __call__(self, x: T.Tensor) -> T.Tensor:
        hidden = (x @ self.w).tanh()
        if self.is_training:
            with mgjit.no_grad():
                self.mean[...] = self.mean * 0.5 + hidden.mean(axis=0) * 0.5
        return T.log_softmax((hidden - self.mean.detach()) @ self.v)


def training(model: Classifier, clears: bool = True, **options: Any) -> Any:
    @mgjit.compile(background=False, verify="never", **options)
    def train(x: Any, labels: Any, rate: float) -> Any:
        logits = model(x)
        loss = -(logits * T.one_hot(labels, 3, dtype=logits.dtype)).sum() / len(x)
        for p in (model.w, model.v):
            if clears:
                p.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            for p in (model.w, model.v):
                p[...] = p - rate * p.grad
        return loss, logits

    return train


def batch(n: int, seed: int = 0, dtype: str = "float64") -> T.Tensor:
    return T.randn((n, 4), generator=random.Random(seed)).astype(dtype)


LABELS = T.asarray([0, 2, 1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_01_training_does_not_reach_it(dtype: str) -> None:
    """A model, and the forward part of its training step, also of other batch sizes, and in `.loop`."""
    model = Classifier(dtype)
    train = training(model, dtype=dtype)
    x, longer = batch(3, dtype=dtype), batch(7, 1, dtype)
    expected, of_longer = bits(model(x)), bits(model(longer))
    predict = mgjit.freeze(mgjit.compile(dtype=dtype)(model.__call__), x)
    evaluate = mgjit.freeze(train, x, LABELS, 0.1)
    loss = bits(train(x, LABELS, 0.1)[0])
    for _ in range(3):
        assert bits(predict(x)) == expected
        assert bits(evaluate(x, LABELS, 0.1)) == [loss, expected]
        train(x, LABELS, 0.1)
    assert bits(predict(longer)) == of_longer  # traced only now
    assert bits(predict.loop([x, x])) == [expected, expected]
    assert bits(model(x)) != expected
    assert "backward" not in evaluate.lower(x, LABELS, 0.1).graph
    assert "frozen: 40 numbers of the model" in predict.explain()


def test_02_arguments_may_be_lists_and_arrays() -> None:
    """Where the example was a tensor, what comes is made into one of its type; a weight that is returned is a copy."""
    model, x = Classifier(), batch(3)
    predict = mgjit.freeze(model, x)
    expected = bits(model(x))
    rows = x.tolist()
    assert bits(predict(rows)) == bits(predict(x=rows)) == expected
    assert bits(predict.loop([rows, rows])) == [expected, expected]
    kept = mgjit.freeze(lambda x: (model.w, model.w * x.sum()), x)
    before = bits(model.w)
    training(model)(x, LABELS, 0.1)
    assert bits(kept(x)[0]) == before != bits(model.w)


def test_03_numpy_arrays() -> None:
    """As lists."""
    numpy = pytest.importorskip("numpy")
    model, x = Classifier(), batch(3)
    predict = mgjit.freeze(model, x)
    expected, given = bits(model(x)), numpy.array(x.tolist())
    assert bits(predict(given)) == expected
    assert bits(predict.loop(numpy.stack([given, given]))) == [expected, expected]


def test_04_a_forward_part_that_assigns_tensors_shares_them() -> None:
    """Running statistics of a model in training mode, and keys and values in a tensor: as in plain Python."""
    models = [Classifier() for _ in range(2)]
    for model in models:
        model.is_training = True
    frozen, x = mgjit.freeze(models[1], batch(3)), batch(3)
    assert "shares with the program what it assigns: a tensor of 5 numbers" in frozen.explain()
    for _ in range(3):
        assert bits(frozen(x)) == bits(models[0](x))
        assert bits(models[1].mean) == bits(models[0].mean)
    models[0].mean[...] = 0.25
    models[1].mean[...] = 0.25  # which the program may do between two calls
    assert bits(frozen(x)) == bits(models[0](x))


def test_05_a_cache_of_keys_and_values() -> None:
    """A token at a time, drawn tokens fed back: kept in a tensor, or passed in and returned."""
    table = T.randn((5, 4), generator=random.Random(2), requires_grad=True)
    places = T.arange(6)

    def attend(token: Any, place: Any, cache: T.Tensor) -> tuple[Any, Any]:
        row = T.take(table, token).detach()
        chosen = (places.astype("float64") == place).expand_dims(-1)
        cache = T.where(chosen, row, cache)
        scores = T.where(places.astype("float64") <= place, cache @ row, -1e30)
        return table.detach() @ (T.softmax(scores) @ cache), cache

    def drawn(logits: Any) -> Any:
        return random.choices(range(5), weights=[logits[k].exp().item() for k in range(5)])[0]

    def functions() -> list[Any]:
        kept = T.zeros((6, 4))

        def keeping(token: Any, place: Any) -> Any:
            logits, new = attend(token, place, kept)
            kept[...] = new
            return drawn(logits)

        def passing(token: Any, place: Any, cache: T.Tensor) -> Any:
            logits, new = attend(token, place, cache)
            return drawn(logits), new

        return [keeping, passing]

    def tokens(keeping: Any, passing: Any) -> list[int]:
        random.seed(5)
        found, cache = [1], T.zeros((6, 4))
        for place in range(6):
            found.append(keeping(found[-1], place))
        for place in range(6):
            token, cache = passing(found[-1], place, cache)
            found.append(token)
        return found

    places = places.astype("float64")
    keeping, passing = functions()
    frozen = mgjit.freeze(keeping, 0, 0), mgjit.freeze(passing, 0, 0, T.zeros((6, 4)))
    assert tokens(*frozen) == tokens(*functions())


def test_06_what_is_refused() -> None:
    """Results that only training computes, updates without a backward pass, and tensors that came later."""
    model, x = Classifier(), batch(3)

    def updated(x: Any, labels: Any) -> Any:
        loss = -(model(x) * T.one_hot(labels, 3)).sum()
        loss.backward()
        return loss, model.w.grad

    with pytest.raises(FreezeError, match="needs what only training computes"):
        mgjit.freeze(updated, x, LABELS)

    def shrunk(x: Any) -> Any:
        with mgjit.no_grad():
            model.w *= 0.9
        return model(x)

    with pytest.raises(FreezeError, match="without a call of backward"):
        mgjit.freeze(shrunk, x)
    predict = mgjit.freeze(model, x)
    model.w = T.randn((4, 5), requires_grad=True)
    with pytest.raises(FreezeError, match="w is another object than when the step was traced"):
        predict(batch(2))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_07_exported(dtype: str, tmp_path: Path) -> None:
    """The forward part as C with constant weights, and the training step, give the recorded bits."""
    model, x = Classifier(dtype), batch(3, dtype=dtype)
    train = training(model, dtype=dtype)
    mgjit.freeze(train, x, LABELS, 0.1).export(tmp_path / "frozen", "net", calls=[(x, LABELS, 0.1)])
    train.export(tmp_path / "train", "net", calls=[(x, LABELS, 0.1)] * 3)
    for part in ("frozen", "train"):
        assert "all bits as recorded" in checked(tmp_path / part, "net")
    text = (tmp_path / "frozen/net.c").read_text()
    kind = "float" if dtype == "float32" else "double"
    assert f"static const {kind} net_parameters0[20]" in text
    assert "net_init" not in text
    assert "gradients" not in (tmp_path / "train/net.h").read_text()


def test_08_gradients_that_add_up_are_exported(tmp_path: Path) -> None:
    """A training step that clears no gradients keeps them in the memory from call to call."""
    train = training(Classifier(), clears=False)
    train.export(tmp_path, "net", calls=[(batch(3), LABELS, 0.1)] * 3)
    assert "double model_w_grad[4][5]" in (tmp_path / "net.h").read_text()
    assert "all bits as recorded" in checked(tmp_path, "net")


def network() -> Any:
    random.seed(6)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 3))


def test_09_modules(tmp_path: Path) -> None:
    """A model of layers in evaluation mode: later training does not reach it, and it is exported with its weights."""
    model, x = network().eval(), batch(3)
    expected = bits(model(x))
    predict = mgjit.freeze(model, x)
    assert "draws" not in predict.explain()
    with mgjit.no_grad():
        for p in model.parameters():
            p[...] = p * 0.5
    model.train()
    assert bits(predict(x.tolist())) == expected
    with pytest.raises(FreezeError, match="training was False, is True"):
        predict(batch(2))
    model.eval()
    assert bits(predict(batch(2, 5))) != bits(model(batch(2, 5)))
    predict.export(tmp_path, "net", calls=[(x,)])
    assert "all bits as recorded" in checked(tmp_path, "net")


def test_10_dropout_in_training_mode() -> None:
    """It is frozen as it is: each call draws as plain Python would, and `explain()` says so."""
    model, x = network(), batch(3)
    predict = mgjit.freeze(model, x)
    assert "frozen: draws 18 random numbers a call: random 18 x (a model with dropout" in predict.explain()
    drawn = []
    for function in (model, predict):
        random.seed(1)
        drawn.append([bits(function(x)) for _ in range(3)])
    assert drawn[0] == drawn[1]


def test_11_layers_of_images(tmp_path: Path) -> None:
    """Convolution, normalisation and pooling in evaluation mode; `math.inf` in a layer is no number of the model."""
    random.seed(8)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 3),
        nn.LayerNorm(3),
    )
    x = T.randn((2, 1, 6, 6), generator=random.Random(3))
    model(x)  # which gives it running statistics
    expected = bits(model.eval()(x))
    predict = mgjit.freeze(model, x)
    predict.export(tmp_path, "net", calls=[(x,)])
    model.train()(x)
    assert bits(predict(x)) == expected
    assert "shares with the program what it assigns: nothing" in predict.explain()
    assert "all bits as recorded" in checked(tmp_path, "net")
