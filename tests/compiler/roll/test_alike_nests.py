"""Operations on tensors that repeat, such as time steps, are one loop: alike_nests.py, nest_places.py, nests.py."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.compiler.roll.forest import Fold, Item
from mgjit.compiler.roll.reach import reach
from mgjit.compiler.roll.roll import roll

pytestmark = pytest.mark.once

Step = Callable[..., Any]
LETTERS, WIDTH, BATCH, TIMES = 5, 6, 3, 7


class Model:
    """Parameters of a recurrent network."""

    def __init__(self, seed: int, parts: int = 1) -> None:
        draw = random.Random(seed)

        def made(*shape: int) -> T.Tensor:
            return T.uniform(shape, -0.5, 0.5, requires_grad=True, generator=draw)

        self.table, self.bias = made(LETTERS, WIDTH), made(WIDTH)
        self.inner, self.outer = made(WIDTH, WIDTH), made(WIDTH, WIDTH)
        self.parts = [made(WIDTH, WIDTH) for _ in range(parts)]
        self.parameters = [self.table, self.bias, self.inner, self.outer, *self.parts]

    def finish(self, loss: Any) -> Any:
        """The backward pass and the update."""
        for p in self.parameters:
            p.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            for p in self.parameters:
                p[...] = p - 0.1 * p.grad
        return loss


def recurrent(model: Model) -> Step:
    """The state goes from one step to the next, the loss is added up."""

    def step(letters: Any) -> Any:
        h, loss = T.zeros((BATCH, WIDTH)), 0.0
        for t in range(TIMES):
            h = T.tanh(T.take(model.table, letters[:, t]) @ model.inner + h @ model.outer + model.bias)
            loss = loss + (h * h).sum()
        return model.finish(loss)

    return step


def gated(model: Model) -> Step:
    """Several uses of each state, and of constants."""

    def step(letters: Any) -> Any:
        h = T.zeros((BATCH, WIDTH))
        states = []
        for t in range(TIMES):
            x = T.take(model.table, letters[:, t])
            z = T.sigmoid(x @ model.inner + h @ model.outer)
            h = (1.0 - z) * T.tanh(x + h @ model.parts[0]) + z * h
            states.append(h)
        return model.finish(T.softmax(T.stack(states)[:, :, :4]).max(axis=-1).sum())

    return step


def two_layers(model: Model) -> Step:
    """The second layer runs through the states of the first, which were computed before; one of them backwards."""

    def step(letters: Any) -> Any:
        h, first = T.zeros((BATCH, WIDTH)), []
        for t in range(TIMES):
            h = T.tanh(T.take(model.table, letters[:, t]) + h @ model.inner)
            first.append(h)
        back, h = T.zeros((BATCH, WIDTH)), T.ones((BATCH, WIDTH))
        for t in range(TIMES):
            h = T.tanh(first[t] @ model.outer + h)
            back = T.tanh(first[-1 - t] @ model.parts[0] - back)
        return model.finish((h * back).sum())

    return step


def looks_back(model: Model) -> Step:
    """Each step reads the two states before it, and the first one again."""

    def step(letters: Any) -> Any:
        states = [T.take(model.table, letters[:, t]) for t in (0, 1)]
        for t in range(2, TIMES):
            states.append(T.tanh(states[-1] @ model.inner - states[-2] @ model.outer + states[0] * float(t)))
        return model.finish(states[-1].sum() / 3.0)

    return step


def out_of_order(model: Model) -> Step:
    """What is read follows no order."""

    def step(letters: Any) -> Any:
        states = [T.tanh(T.take(model.table, letters[:, t]) @ model.inner) for t in range(TIMES)]
        loss = 0.0
        for a, b in ((3, 1), (0, 6), (6, 2), (1, 5), (5, 0)):
            loss = loss + ((states[a] * states[b]) @ model.outer).sum()
        return model.finish(loss)

    return step


def layers(model: Model) -> Step:
    """Other parameters in each iteration."""

    def step(letters: Any) -> Any:
        h = T.take(model.table, letters[:, 0])
        for w in model.parts:
            h = T.tanh(h @ w + model.bias)
        return model.finish(h.sum())

    return step


def blocks(model: Model) -> Step:
    """Two parameters of its own in each iteration, and one that all have; what was learned before decays."""
    learned = [T.zeros(w.shape) for w in model.parts]

    def step(letters: Any) -> Any:
        h = T.take(model.table, letters[:, 0])
        for up, down in zip(model.parts[::2], model.parts[1::2]):
            y = h - h.mean(axis=-1, keepdims=True)
            h = h + T.relu(y @ up + model.bias) @ down
        loss = model.finish((h * h).sum())
        with mgjit.no_grad():
            for w, before in zip(model.parts, learned):
                before[...] = 0.9 * before + w.grad
                w[...] = w - 0.01 * before
        return loss

    return step


def there_and_back(model: Model) -> Step:
    """The parameters of layers in one order, in the other one, and in none; transposed, and by rows."""

    def step(letters: Any) -> Any:
        h = T.take(model.table, letters[:, 0])
        for w in model.parts:
            h = T.tanh(h @ w)
        for w in reversed(model.parts):
            h = T.tanh(h @ w.T + w[2])
        for k in (1, 0, 3, 2, 5, 4):
            h = T.tanh(h @ model.parts[k])
        return model.finish(h.sum())

    return step


def nested(model: Model) -> Step:
    """Loops in loops: some steps inside of each time step; and numbers of the step."""

    def step(letters: Any) -> Any:
        h, loss = T.zeros((BATCH, WIDTH)), 0.0
        for t in range(TIMES):
            x = T.take(model.table, letters[:, t])
            for _ in range(4):
                h = T.tanh(h @ model.inner + x * loss)
            loss = h.sum().item() * 0.1
        return model.finish(h.sum())

    return step


def in_place(model: Model) -> Step:
    """Iterations write to one tensor, or to parts of one."""

    def step(letters: Any) -> Any:
        total, rows = T.zeros((BATCH, WIDTH)), T.zeros((TIMES, WIDTH))
        with mgjit.no_grad():
            for t in range(TIMES):
                total += T.take(model.table, letters[:, t]) @ model.inner
                rows[t] = total.sum(axis=0)
        return model.finish(((model.inner * rows[:WIDTH]) + model.bias).sum() + (total @ model.outer).sum().item())

    return step


STEPS = [recurrent, gated, two_layers, looks_back, out_of_order, layers, blocks, there_and_back, nested, in_place]
#: How many nests are in loops at least, for those that fold.
FOLDED = {
    recurrent: 6, gated: 10, two_layers: 8, looks_back: 4, layers: 6, blocks: 15, there_and_back: 9, nested: 4,
    in_place: 3,
}  # fmt: skip


def letters(seed: int) -> T.Tensor:
    """An argument."""
    draw = random.Random(seed)
    return T.asarray([[draw.randrange(LETTERS) for _ in range(TIMES)] for _ in range(BATCH)])


@pytest.mark.parametrize("options", [{"backend": "python"}, {"compiler": "tcc"}, {"compiler": "gcc"}], ids=str)
@pytest.mark.parametrize("make", STEPS, ids=lambda make: make.__name__)
@pytest.mark.sampled(one_of=3)
def test_01_the_numbers_are_those_of_the_undecorated_step(make: Callable[[Model], Step], options: Any) -> None:
    mine, other = Model(1, 6), Model(1, 6)
    plain, compiled = make(mine), mgjit.compile(make(other), background=False, verify="never", **options)
    for seed in range(3):
        assert float(plain(letters(seed))).hex() == float(compiled(letters(seed))).hex()
    assert [p.tolist() for p in mine.parameters] == [p.tolist() for p in other.parameters]
    assert [p.grad.tolist() for p in mine.parameters] == [p.grad.tolist() for p in other.parameters]
    assert compiled.stats.plain_calls == 0


def folds(items: list[Item]) -> list[Fold]:
    """All loops."""
    found = [item for item in items if isinstance(item, Fold)]
    return [*found, *(inner for fold in found for inner in folds(list(fold.body)))]


@pytest.mark.parametrize("make", FOLDED, ids=lambda make: make.__name__)
def test_02_what_repeats_is_a_loop(make: Callable[[Model], Step]) -> None:
    lowering = mgjit.compile(make(Model(1, 6))).lower(letters(1))
    assert lowering.lowered.notes == []
    trace = lowering.noted.traced.trace
    found = folds(roll(trace, reach(trace).marks))
    assert sum(1 for fold in found for item in fold.body if item in lowering_nests(trace)) >= FOLDED[make]


def lowering_nests(trace: Any) -> set[int]:
    """The positions of nests."""
    from mgjit.ir.opcodes import NEST

    return {position for position, code in enumerate(trace.op) if code == NEST}


def test_03_more_steps_are_no_more_statements() -> None:
    def statements(times: int) -> int:
        model, draw = Model(2), random.Random(3)

        def step(x: Any) -> Any:
            h = T.zeros((BATCH, WIDTH))
            for t in range(times):
                h = T.tanh(x[t] @ model.inner + h @ model.outer)
            return model.finish(h.sum())

        lowering: Any = mgjit.compile(step).lower(T.uniform((times, BATCH, WIDTH), generator=draw))
        return int(lowering.lowered.statements)

    assert statements(24) <= statements(8) * 1.2


def test_03_more_layers_are_no_more_statements() -> None:
    def statements(layers: int) -> int:
        lowering: Any = mgjit.compile(blocks(Model(2, 2 * layers))).lower(letters(1))
        assert lowering.lowered.notes == []
        return int(lowering.lowered.statements)

    assert statements(9) <= statements(4) * 1.2


def test_03_parameters_of_several_sizes_are_no_loop() -> None:
    """Though the operations on them are: the fourth weight has columns that are not used."""
    draw = random.Random(6)

    def made() -> list[T.Tensor]:
        shapes = [(WIDTH, WIDTH + 2 * (k == 3)) for k in range(6)]
        return [T.uniform(shape, -0.5, 0.5, requires_grad=True, generator=draw) for shape in shapes]

    weights = made()

    def step(x: Any) -> Any:
        for w in weights:
            x = T.tanh(x @ w[:, :WIDTH] + 1.0)
        return x.sum()

    lowering: Any = mgjit.compile(step).lower(T.ones((BATCH, WIDTH)))
    assert lowering.lowered.notes == []
    x = T.ones((BATCH, WIDTH))
    assert float(mgjit.compile(step, background=False, verify="never")(x)).hex() == float(step(x)).hex()


def test_04_what_no_loop_can_express_is_lowered_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as an operand in several arguments: the loops of nests are given up, not all loops."""
    model = Model(4)

    def step(*rows: Any) -> Any:
        h = T.zeros((BATCH, WIDTH))
        for row in rows:
            h = T.tanh(row @ model.inner + h)
        return model.finish(h.sum())

    draw = random.Random(5)
    rows = [T.uniform((BATCH, WIDTH), generator=draw) for _ in range(6)]
    compiled = mgjit.compile(step, background=False, verify="never")
    before = [p.copy() for p in model.parameters]
    got = float(compiled(*rows))
    after = [p.tolist() for p in model.parameters]
    with mgjit.no_grad():
        for p, old in zip(model.parameters, before):
            p[...] = old
    assert float(step(*rows)) == got
    assert [p.tolist() for p in model.parameters] == after
