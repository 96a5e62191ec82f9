"""`data_parallel` in one process: compared, bit for bit, with the definition in plain Python."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import errors, nn
from mgjit.distributed import data_parallel
from tests.distributed.job import Adam, Classifier, Dropout, Ragged
from tests.distributed.test_shards import defined


def by_definition(program: Any, columns: tuple[Any, Any], lr: float, shards: int) -> dict[str, float]:
    """docs/howto/machines.md: gradients of single rows, their sums in the exact order, the mean, one update."""
    parameters = program.model.parameters()
    rows = []
    for x, y in zip(*columns):
        for p in parameters:
            p.grad = 0.0
        loss, other = program.gradient(x, y)
        rows.append([*(p.grad for p in parameters), getattr(loss, "data", loss), float(other)])
    mean = [total / len(rows) for total in defined(rows, shards)]
    for p, gradient in zip(parameters, mean):
        p.grad = gradient
    return {"loss": mean[-2], "one": mean[-1], "norm": program.update(lr)}


class Own:
    """A parameter of a class that is not ours."""

    def __init__(self, data: float, children: tuple[Any, ...] = (), local: tuple[float, ...] = ()) -> None:
        self.data, self.grad, self.children, self.local = data, 0.0, children, local

    def __add__(self, other: Own) -> Own:
        return Own(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Own) -> Own:
        return Own(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[Own] = []
        seen: set[Own] = set()

        def visit(node: Own) -> None:
            if node not in seen:
                seen.add(node)
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, local in zip(node.children, node.local):
                child.grad += local * node.grad


class OwnClass(Classifier):
    """A program over that class, with plain momentum in attributes of the parameters."""

    def __init__(self, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.w = [Own(rng.gauss(0, 1)) for _ in range(4)]
        for p in self.w:
            p.speed = 0.0  # type: ignore[attr-defined]
        self.model = self  # type: ignore[assignment]

    def parameters(self) -> list[Any]:
        return self.w

    def gradient(self, x: Any, y: Any) -> Any:
        out = self.w[0] * Own(x[0])
        for w, number in zip(self.w[1:], x[1:]):
            out = out + w * Own(number)
        error = out + Own(-y)
        loss = error * error
        for p in self.w:
            p.grad = 0.0
        loss.backward()
        return loss.data, out.data

    def update(self, lr: float) -> Any:
        norm = sum(p.grad * p.grad for p in self.w)
        for p in self.w:
            p.speed = 0.9 * p.speed + p.grad
            p.data -= lr * p.speed
        return norm

    def numbers(self) -> list[float]:
        return [n for p in self.w for n in (p.data, p.grad, p.speed)]


PROGRAMS: list[Callable[[], Any]] = [Classifier, Dropout, Ragged, OwnClass]


@pytest.mark.parametrize("backend", ["c", "python"])
@pytest.mark.parametrize("order", ["exact", "fast"])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_numbers_are_those_of_the_definition(make: Callable[[], Any], order: str, backend: str) -> None:
    plain, program = make(), make()
    step = mgjit.compile(program.step, backend=backend, background=False)
    parallel = data_parallel(step, order=order)
    data = random.Random(3)
    for count in (13, 1, 30):
        columns = program.rows(count, data)
        expected = by_definition(plain, columns, 0.1, 12 if order == "exact" else 1)
        found = parallel(*columns, 0.1)
        assert {name: float(n).hex() for name, n in found.items()} == {
            name: float(n).hex() for name, n in expected.items()
        }
        assert list(map(float.hex, map(float, program.numbers()))) == list(map(float.hex, map(float, plain.numbers())))
    assert (parallel.calls, step.stats.calls) == (3, 3)


def test_a_batch_of_one_row_is_a_call_of_the_step() -> None:
    plain, program = Classifier(), Classifier()
    parallel = data_parallel(mgjit.compile(program.step, background=False))
    for x, y in zip(*program.rows(5, random.Random(3))):
        expected, found = plain.step(x, y, 0.1), parallel([x], [y], 0.1)
        assert (found["loss"].data, found["norm"]) == (expected["loss"].data, expected["norm"])
    assert program.numbers() == plain.numbers()


def test_a_function_is_compiled() -> None:
    program = Classifier()
    assert data_parallel(program.step)(*program.rows(3, random.Random(3)), 0.1)["loss"] > 0


def test_an_error_leaves_everything_as_it_was() -> None:
    program = Dropout()
    parallel = data_parallel(mgjit.compile(program.step, background=False))
    xs, ys = program.rows(4, random.Random(3))
    parallel(xs, ys, 0.1)
    before, state = copy.copy(Classifier.numbers(program)), program.rng.getstate()
    with pytest.raises(errors.IndexRangeError):
        parallel(xs, [0, 1, 5, 0], 0.1)
    with pytest.raises(errors.ColumnError):
        parallel(xs, ys[:2], 0.1)
    with pytest.raises(errors.ColumnError, match="no mean"):
        parallel([], [], 0.1)
    with pytest.raises(errors.TraceError):
        parallel(list(map(str, xs)), ys, 0.1)
    assert Classifier.numbers(program) == before
    assert program.rng.getstate() == state
    assert parallel.calls == 1
    parallel(xs, ys, 0.1)


def test_counts_of_calls_are_whole_numbers_and_same_numbers_are_no_means() -> None:
    model = nn.MLP(2, [1])
    adam = Adam(model.parameters())

    @mgjit.compile(background=False)
    def step(x: Any, lr: float) -> Any:
        loss = model(x) ** 2
        model.zero_grad()
        loss.backward()
        adam.update(lr)
        return loss, lr, adam.calls, "text"

    parallel = data_parallel(step)
    results = [parallel([[1.0, 2.0]] * 13, 0.1)[1:] for _ in range(2)]
    assert results == [(0.1, 1, "text"), (0.1, 2, "text")]
    assert type(results[0][1]) is int


# ---- what cannot be separated ------------------------------------------------------------------------


def _program(body: Callable[..., Any]) -> Any:
    model = nn.MLP(2, [1])
    step = mgjit.compile(lambda x, lr: body(model, x, lr), background=False)
    return data_parallel(step)


def _loss(model: Any, x: Any) -> Any:
    loss = model(x) ** 2
    model.zero_grad()
    loss.backward()
    return loss


def _descend(model: Any, lr: Any) -> None:
    for p in model.parameters():
        p.data -= lr * p.grad


def no_backward(model: Any, x: Any, lr: Any) -> Any:
    return model(x)


def update_by_loss(model: Any, x: Any, lr: Any) -> Any:
    loss = _loss(model, x)
    _descend(model, lr / (1 + loss.data))


def update_by_row(model: Any, x: Any, lr: Any) -> Any:
    _loss(model, x)
    _descend(model, lr * x[0])


def two_updates(model: Any, x: Any, lr: Any) -> Any:
    for _ in range(2):
        _loss(model, x)
        _descend(model, lr)


def no_reset(model: Any, x: Any, lr: Any) -> Any:
    (model(x) ** 2).backward()
    _descend(model, lr)


def reads_gradients(model: Any, x: Any, lr: Any) -> Any:
    loss = model(x) ** 2
    for p in model.parameters():
        p.grad *= 0.5
    loss.backward()
    _descend(model, lr)


def draws_in_update(model: Any, x: Any, lr: Any) -> Any:
    _loss(model, x)
    for p in model.parameters():
        p.data -= lr * p.grad + random.gauss(0, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (no_backward, "backward() is not called"),
        (update_by_loss, "depends on x"),
        (update_by_row, "depends on x[0]"),
        (two_updates, "before its last backward()"),
        (no_reset, "never sets"),
        (reads_gradients, "before its last backward()"),
        (draws_in_update, "random numbers"),
    ],
)
def test_what_cannot_be_separated_is_refused(body: Callable[..., Any], reason: str) -> None:
    with pytest.raises(errors.SeparationError) as caught:
        _program(body)([[1.0, 2.0], [2.0, 3.0]], 0.1)
    assert reason in str(caught.value)
    assert "test_data_parallel.py" in str(caught.value)


def test_a_step_for_a_batch_is_refused() -> None:
    step = data_parallel(lambda xs, ys: sum(x * y for x, y in zip(xs, ys)))
    with pytest.raises(errors.ArgumentError, match=r"not iterable\. data_parallel takes a step for one row"):
        step([1.0, 2.0], [3.0, 4.0])


def test_a_learning_rate_for_each_row_is_refused() -> None:
    def body(model: Any, x: Any, lr: Any) -> None:
        _loss(model, x)
        _descend(model, lr)

    with pytest.raises(errors.SeparationError, match=r"depends on lr.*Pass one number"):
        _program(body)([[1.0, 2.0], [2.0, 3.0]], [0.1, 0.2])


def test_an_update_that_depends_on_the_length_of_a_row_is_refused() -> None:
    model = nn.MLP(2, [1])

    def step(xs: Any, lr: Any) -> None:
        loss = sum(model(x) for x in xs)
        model.zero_grad()
        loss.backward()
        _descend(model, lr / len(xs))

    with pytest.raises(errors.SeparationError, match="rows of another length"):
        data_parallel(mgjit.compile(step, background=False))([[[1.0, 2.0]], [[1.0, 2.0]] * 3], 0.1)


@pytest.mark.parametrize(
    "options",
    [{"order": "slow"}, {"rows": "mine"}, {"shards": 0}, {"check_every": 0}, {"timeout": 0}, {"timeout": "1"}],
)
def test_impossible_options_are_refused(options: Any) -> None:
    with pytest.raises(errors.ArgumentValueError, match=next(iter(options))):
        data_parallel(Classifier().step, **options)


def test_a_communicator_must_be_one_of_mpi4py() -> None:
    with pytest.raises(errors.ArgumentError, match=r"MPI\.COMM_WORLD"):
        data_parallel(Classifier().step, 4)


# ---- checkpoints -------------------------------------------------------------------------------------


def _new(make: Callable[[int], Any], seed: int) -> tuple[Any, Any]:
    program = make(seed)
    return program, data_parallel(mgjit.compile(program.step, background=False), order="exact")


@pytest.mark.parametrize("make", [Dropout, Ragged, OwnClass], ids=lambda make: make.__name__)
def test_a_restart_goes_on_with_the_same_bits(make: Callable[[int], Any], tmp_path: Path) -> None:
    path, data = tmp_path / "checkpoint", random.Random(3)
    program, parallel = _new(make, 1)
    batches = [program.rows(9, data) for _ in range(4)]
    for batch in batches[:2]:
        parallel(*batch, 0.1)
    parallel.save(path, batch=2, name="first")
    for batch in batches[2:]:
        parallel(*batch, 0.1)
    expected = program.numbers()
    for calls_before in (0, 1):  # the parameters get their numbers in the first call, or at once
        other, again = _new(make, 2)
        for batch in batches[:calls_before]:
            again(*batch, 0.1)
        assert again.load(path) == {"batch": 2, "name": "first"}
        for batch in batches[2:]:
            again(*batch, 0.1)
        assert again.calls == 4
        assert other.numbers() == expected


def test_bad_checkpoints_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    program, parallel = _new(Classifier, 1)
    with pytest.raises(errors.CheckpointError, match="before the first call"):
        parallel.save(path)
    parallel(*program.rows(3, random.Random(3)), 0.1)
    parallel.save(path)
    other, again = _new(lambda seed: Classifier(seed, size=6), 1)
    again.load(path)
    with pytest.raises(errors.CheckpointError, match="is of another step"):
        again(*other.rows(3, random.Random(3)), 0.1)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(errors.CheckpointError, match="damaged"):
        parallel.load(path)
    with pytest.raises(FileNotFoundError):
        parallel.load(tmp_path / "nothing")
    with pytest.raises(TypeError):
        parallel.save(path, what=object())
    assert list(tmp_path.iterdir()) == [path]
    assert not math.isnan(parallel(*program.rows(3, random.Random(3)), 0.1)["loss"])
