"""All passes together, and every prefix of them, against the undecorated step in the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.pipeline import order, pipeline
from mgjit.compiler.pipeline.order import OPTIONAL, PASSES, Pass, Work
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.compiler.simplify.simplify import delete_dead_statements
from mgjit.compiler.toolchain.target import Processor
from mgjit.errors import DefectWarning, VerificationError
from mgjit.ir.opcodes import OUTPUT
from mgjit.ir.printer import print_program
from mgjit.ir.program import Block, Loop, walk
from tests.compiler.schedule.test_blocks import irregular as irregular_code
from tests.handmade import at, define, load
from tests.lowering import SCALAR, WIDE, Example, numbers, sgd

pytestmark = pytest.mark.once


def perceptron() -> Example:
    """One sample through a small network, squared error, SGD."""
    model = nn.MLP(5, [7, 4])

    def step(x: Any, y: Any, rate: Any) -> Any:
        loss = sum((s - t) ** 2 for s, t in zip(model(x), y))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    return Example(step, numbers(5), numbers(4, 2), 0.1)


def batch() -> Example:
    """A batch loop with regularisation; several results."""
    model = nn.MLP(2, [6, 1])

    def step(xs: Any, ys: Any, rate: Any) -> Any:
        scores = [model(x) for x in xs]
        losses = [(1 - y * s).relu() for s, y in zip(scores, ys)]
        loss = sum(losses) * (1 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss, scores

    return Example(step, [numbers(2, k) for k in range(9)], numbers(9), 0.1)


def recurrence() -> Example:
    """A state that each time step computes from the last one."""
    into, back, out = ([mgjit.Value(v) for v in numbers(4, k)] for k in range(3))

    def step(xs: Any, rate: Any) -> Any:
        h = mgjit.Value(0.1)
        for x in xs:
            h = mgjit.tanh(sum(a * x * h + b for a, b in zip(into, back)) * out[0] + h * out[1])
        loss = h * h
        for p in (*into, *back, *out):
            p.grad = 0.0
        loss.backward()
        sgd([*into, *back, *out], rate)
        return loss

    return Example(step, numbers(12), 0.1)


def adam() -> Example:
    """State, a power of a run-time number, a square root."""
    ps = [mgjit.Value(v) for v in numbers(6)]
    m, v = mgjit.zeros(6), mgjit.zeros(6)

    def step(xs: Any, t: Any) -> Any:
        loss = sum(p * x for p, x in zip(ps, xs)) ** 2
        for p in ps:
            p.grad = 0.0
        loss.backward()
        for i, p in enumerate(ps):
            m[i] = 0.9 * m[i] + 0.1 * p.grad
            v[i] = 0.99 * v[i] + 0.01 * p.grad**2
            p.data -= 0.1 * (m[i] / (1 - 0.9**t)) / (mgjit.sqrt(v[i] / (1 - 0.99**t)) + 1e-8)
        return loss

    return Example(step, numbers(6, 4), 3)


def passes_in_a_loop() -> Example:
    """A backward pass for each sample, gradients accumulate."""
    model = nn.Neuron(3)

    def step(xs: Any) -> Any:
        model.zero_grad()
        total = 0.0
        for x in xs:
            loss = model(x) ** 2
            loss.backward()
            total += loss.data
        sgd(model.parameters(), 0.01)
        return total

    return Example(step, [numbers(3, k) for k in range(6)])


def tables() -> Example:
    """Look-ups by run-time indices, and their scattered gradients."""
    table = [[mgjit.Value(v) for v in numbers(3, k)] for k in range(5)]

    def step(tokens: Any) -> Any:
        rows = [mgjit.take(table, token) for token in tokens]
        loss = sum(row[k] * row[k - 1] for row in rows for k in range(3))
        loss.backward()
        return loss

    return Example(step, bytes([4, 0, 4, 2]))


def irregular() -> Example:
    """No two operations alike."""
    a, b, c = (mgjit.Value(v) for v in (0.3, -0.7, 1.1))

    def step(x: Any) -> Any:
        loss = mgjit.maximum(a * x, b).relu() + mgjit.exp(b * c) / (c + 2.0) - abs(a - x) + mgjit.log(c * c)
        loss = mgjit.where(x > 0.2, loss * a, loss - b) + mgjit.minimum(loss, 0.5) - mgjit.tanh(-loss) * mgjit.sqrt(c)
        loss.backward()
        return loss, loss.grad, b.grad * 2.0

    return Example(step, 0.25)


EXAMPLES = [perceptron, batch, recurrence, adam, passes_in_a_loop, tables, irregular]


@pytest.mark.parametrize("rolled", [True, False], ids=["rolled", "flat"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_01_every_prefix_of_the_passes_is_exact(example: Callable[[], Example], rolled: bool) -> None:
    """Each pass takes and leaves a Program that computes the undecorated step, bit for bit."""
    made, is_whole = example(), False
    for stage, program in made.after_each_pass(rolled):
        is_whole |= stage == "differentiate"  # before, gradients are missing
        if is_whole:
            try:
                made.check(program)
            except AssertionError as error:
                raise AssertionError(f"after {stage}: {error}") from None
    assert is_whole


@pytest.mark.parametrize("example", EXAMPLES)
def test_02_the_pipeline(example: Callable[[], Example]) -> None:
    """`lower` is the same passes, and reports sizes."""
    made = example()
    lowered = lower(made.trace, made.regions)
    assert lowered.records == len(made.trace)
    assert lowered.statements > 0
    made.memory = lowered.memory
    made.check(lowered.program)


PROCESSORS = [
    SCALAR,
    Processor(lanes=2, registers=16),
    Processor(lanes=4, registers=16),
    Processor(lanes=8, registers=32),
    Processor(lanes=16, registers=32),
]


@pytest.mark.parametrize("grads", [True, False], ids=["gradients", "no gradients"])
@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: f"{processor.lanes} lanes")
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.sampled
def test_02_processors(example: Callable[[], Example], processor: Processor, grads: bool) -> None:
    """Vectors of every width, with gradients and without: `lower`, and the stages that the tests know."""
    made = example()
    lowered = lower(made.trace, made.regions, processor, grads)
    made.memory, made.grads = lowered.memory, grads
    made.check(lowered.program)
    moved = lowered.memory.layouts.parameters is not None
    again = example().lower(laid_out=moved, processor=processor, grads=grads)
    assert print_program(again) == print_program(lowered.program)


def test_03_fallback_is_noted_and_exact() -> None:
    """A pass that reaches into an earlier iteration cannot stand in a loop: another form, with a note."""
    w = mgjit.Value(0.7)

    def step(xs: Any) -> Any:
        before: Any = w * 1.0
        for x in xs:
            h = w * x
            (h * before).backward()
            before = h
        return before

    made = Example(step, numbers(8))
    lowered = lower(made.trace, made.regions)
    assert lowered.notes
    made.memory = lowered.memory
    made.check(lowered.program)


def test_04_size_does_not_grow_with_the_model() -> None:
    """Four times the sizes: the same number of statements."""

    def statements(scale: int) -> int:
        model = nn.MLP(8 * scale, [16 * scale, 8 * scale])

        def step(x: Any) -> Any:
            loss = sum(s * s for s in model(x))
            model.zero_grad()
            loss.backward()
            sgd(model.parameters(), 0.1)
            return loss

        made = Example(step, numbers(8 * scale))
        return lower(made.trace, made.regions).statements

    assert statements(1) == statements(4) < 400


@pytest.mark.parametrize("processor", [SCALAR, WIDE], ids=["scalar", "vectors"])
def test_05_long_code(processor: Processor) -> None:
    """Code that is cut into blocks, by the same passes as well."""
    made = irregular_code(400)
    lowered = lower(made.trace, made.regions, processor)
    made.memory = lowered.memory
    made.check(lowered.program)
    assert any(isinstance(node, Block) for node in walk(lowered.program.forward))
    assert print_program(irregular_code(400).lower(processor=processor)) == print_program(lowered.program)


# ---- a pass with a defect ------------------------------------------------------------------------------------


def raises(work: Work) -> None:
    """A pass that fails, as by an oversight in it."""
    delete_dead_statements(None)  # type: ignore[arg-type]


def damages(work: Work) -> None:
    """A pass that leaves a statement outside of the loop that it uses."""
    result = work.memory.regions[OUTPUT][0][1]
    for _, nodes in work.program.phases:
        nodes.append(define(at(result), "copy", load(result, (Loop(3, []), 1))))


@contextmanager
def broken(name: str, defect: Callable[[Work], object]) -> Iterator[None]:
    """With a defect in one pass."""

    def with_defect(one: Pass) -> Pass:
        return one._replace(run=lambda work: (one.run(work), defect(work)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pipeline, "PASSES", tuple(with_defect(one) if one.name == name else one for one in pipeline.PASSES)
        )
        yield


@pytest.mark.parametrize(
    "number", [pytest.param(number, id=one.name) for number, one in enumerate(PASSES) if one.optional]
)
def test_06_a_pass_is_left_out(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly the one that is broken, with a warning that names it; the rest of them do their work."""
    name, defect = PASSES[number].name, (raises, damages)[number % 2]
    monkeypatch.setenv("MGJIT_CHECK", "01"[number // 2 % 2])
    made = batch()
    with broken(name, defect), pytest.warns(DefectWarning, match=f"its pass '{name}' fails") as caught:
        lowered = lower(made.trace, made.regions, WIDE, grads=False)
    assert len(caught) == 1
    assert [note.partition(":")[0] for note in lowered.notes] == [f"the pass '{name}' fails"]
    made.memory, made.grads = lowered.memory, False
    made.check(lowered.program)
    assert lowered.loops > 0


@pytest.mark.parametrize("name", ["find_reductions", "choose_layout"])
def test_07_before_the_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done while a trace is lifted can be left out as well."""
    monkeypatch.setattr(order, name, lambda *_: delete_dead_statements(None))  # type: ignore[arg-type]
    made = batch()
    with pytest.warns(DefectWarning, match="reductions|layout"):
        lowered = lower(made.trace, made.regions, WIDE)
    made.memory = lowered.memory
    made.check(lowered.program)


@pytest.mark.parametrize("defect", [raises, damages])
def test_08_several(defect: Callable[[Work], None]) -> None:
    """One after the other; without any of them the Program is right as well."""
    made = batch()
    with broken("vectorise", defect), broken("hoist", defect), pytest.warns(DefectWarning) as caught:
        assert lower(made.trace, made.regions, WIDE).notes
    assert {name for name in OPTIONAL if any(f"'{name}'" in str(one.message) for one in caught)} == {
        "hoist", "vectorise",
    }  # fmt: skip
    simple = lower(made.trace, made.regions, WIDE, simply=True)
    assert simple.loops == 0
    made.memory = simple.memory
    made.check(simple.program)


@pytest.mark.parametrize("name", [one.name for one in PASSES if not one.optional])
def test_09_a_pass_that_is_necessary(name: str) -> None:
    """It has another chance without loops; then nothing is left."""

    def damages_loops(work: Work) -> None:
        if any(isinstance(node, Loop) for node in walk(work.program.forward)):
            damages(work)

    made = batch()
    with broken(name, damages_loops), pytest.warns(DefectWarning, match=f"'{name}' .* with fewer loops"):
        lowered = lower(made.trace, made.regions, WIDE)
    made.memory = lowered.memory
    made.check(lowered.program)
    with broken(name, damages), pytest.warns(DefectWarning), pytest.raises(VerificationError, match="not well formed"):
        lower(made.trace, made.regions, WIDE)


def test_10_what_happens_once() -> None:
    """A failure that does not come again is reported, and the Program is as it should be."""
    made, calls = batch(), []

    def once(work: Work) -> None:
        calls.append(1)
        if len(calls) == 1:
            raises(work)

    with broken("hoist", once), pytest.warns(DefectWarning, match="it does not fail again"):
        lowered = lower(made.trace, made.regions, WIDE)
    assert print_program(lowered.program) == print_program(lower(made.trace, made.regions, WIDE).program)


def test_11_exceptions_of_the_user() -> None:
    """A signal handler that raises is no defect."""

    def handler(work: Work) -> None:
        raise TimeoutError("the user's")

    made = batch()
    with broken("hoist", handler), pytest.raises(TimeoutError):
        lower(made.trace, made.regions, WIDE)


def test_12_every_pass_is_checked_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_CHECK verifies after each, otherwise once."""
    made = batch()
    counts = []
    for check in ("0", "1"):
        calls: list[int] = []
        monkeypatch.setenv("MGJIT_CHECK", check)
        monkeypatch.setattr(pipeline, "verify", lambda program, calls=calls: calls.append(1))
        lower(made.trace, made.regions, WIDE)
        counts.append(len(calls))
    assert counts[0] == 1
    assert counts[1] >= len(PASSES)


@pytest.mark.parametrize("in_block", [False, True])
def test_13_a_trace_in_the_wrong_order(in_block: bool) -> None:
    """Nothing is made of it: it would read what is not there yet."""
    made = batch()
    block = made.trace.blocks[0]
    position = block.start if in_block else block.end
    made.trace.b[position] = position
    with pytest.raises(VerificationError, match="comes after it"):
        lower(made.trace, made.regions, WIDE)
