"""step/unit.py: a function that is compiled by itself, in plain calls of the step that calls it."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import UnsupportedError
from mgjit.kernels.first_calls import earnings
from mgjit.runtime.kernel import Kernel
from mgjit.step import unit_choice, unit_steps, units
from tests.step.unit_programs import Node, Program, program, sampled

pytestmark = pytest.mark.skipif(os.name != "posix", reason="code is built in the background on POSIX only")


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short calls are, functions are compiled by themselves, as soon as lengths are met."""
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr(earnings, "_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(units, "_SECONDS", 0.0)
    monkeypatch.setattr(unit_choice, "_SHARE", 0.0)  # of times that are too short to compare
    monkeypatch.setattr("mgjit.step.leaving.unlooked", lambda *given: 0)  # each call looks for a kernel
    monkeypatch.setattr(unit_steps, "_PATIENCE", 0.0)
    monkeypatch.setattr(unit_steps, "_HORIZON", 1e9)
    monkeypatch.setattr(unit_steps, "_SHARE", 1e9)


def compared(made: Callable[[], Program], rate: float = 0.05, **options: Any) -> Any:
    """Run a program plainly and compiled, with the code of all lengths from the middle on; returns the step."""
    plain, own = made(), made()
    step: Any = mgjit.compile(**{"backend": "python", **options})(own.step)
    for number, (batch, same) in enumerate(zip(plain.batches, own.batches)):
        if number % 5 == 4:
            step.wait()
        assert step(same, rate).hex() == plain.step(batch, rate).hex(), number
        assert own.numbers() == plain.numbers(), number
    return step


def calls(step: Any) -> list[int]:
    return [one.calls for both in step.stats.units.values() for one in both]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.once) for seed in range(2, 6))])
def test_batches_of_random_lengths_keep_every_bit(seed: int) -> None:
    compared(lambda: program(seed))


@pytest.mark.parametrize("seed", range(4))
def test_samples_of_other_styles_keep_every_bit(seed: int) -> None:
    compared(lambda: sampled(seed), 0.01)


def test_most_samples_run_as_compiled_code_though_every_batch_is_new() -> None:
    step = compared(lambda: program(2, 40), backend="auto")
    assert set(step.stats.units) == {"loss_of"}
    forward, backward = calls(step)
    assert forward > 40
    assert 0 < backward <= forward


def ragged(
    between: Callable[[Any], None] = lambda place: None, after: Callable[[Any], None] = Node.backward
) -> Program:
    """A step in which something happens between forward and backward."""
    made = program(1)
    place = Place()
    weights = made.parameters

    def sample(name: list[int]) -> Any:
        terms = [weights[letter] * weights[letter + 1] * place.factor for letter in name]
        return sum(terms) * weights[0]

    def step(batch: list[list[int]], rate: float) -> float:
        loss = sum(sample(name) for name in batch)
        between(place)
        after(loss)
        for p in weights:
            p.data -= rate * p.grad
            p.grad = 0.0
        return loss.data  # type: ignore[no-any-return]

    return Program(step, weights, made.batches, [place], sample)


class Place:
    """Something that a step reads."""

    def __init__(self) -> None:
        self.factor = 1.5


def test_gradients_that_arrive_twice_flow_as_in_plain_python() -> None:
    def twice(loss: Any) -> None:
        loss.backward()
        loss.backward()

    step = compared(lambda: ragged(after=twice), 1e-3)
    assert min(calls(step)) > 10


def test_a_loss_without_backward_changes_nothing() -> None:
    step = compared(lambda: ragged(after=lambda loss: None))
    assert calls(step)[0] > 10
    assert calls(step)[1] == 0


def test_parameters_that_change_before_backward_do_not_change_the_factors() -> None:
    def made() -> Program:
        found = ragged()
        weights = found.parameters

        def between(place: Any) -> None:
            weights[2].data = weights[2].data + 0.125

        return ragged_with(found, between)

    step = compared(made, 1e-3)
    assert calls(step)[0] > 10


def test_parameters_are_ordinary_objects_once_the_gradients_are_there(
    only_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mgjit.step.unit_steps.SECONDS_TO_DETACH", 0.0)
    released = unit_steps.UnitStep.release
    kinds: list[type] = []

    def watched(step: Any) -> Any:
        found = released(step)
        kinds.append(type(weights[0]))
        return found

    monkeypatch.setattr(unit_steps.UnitStep, "release", watched)
    weights: list[Node] = []

    def made() -> Program:
        found = program(1)
        weights[:] = parameters = found.parameters

        def sample(name: list[int]) -> Any:
            return sum(parameters[letter] * parameters[letter + 1] for letter in name) * parameters[0]

        def step(batch: list[list[int]], rate: float) -> float:
            value = 0.0
            for names in (batch, batch[:1]):  # the second time in the middle of the plain part
                loss = sum(sample(name) for name in names)
                loss.backward()
                value += loss.data
                for p in parameters:
                    p.data -= rate * p.grad
            for p in parameters:
                p.grad = 0.0
            return value

        return Program(step, parameters, found.batches, [], sample)

    assert min(calls(compared(made))) > 10
    assert Node in kinds  # until a kernel of the whole step works on them as well
    assert type(weights[0]) is not Node  # after the step, as after any other


def ragged_with(found: Program, between: Callable[[Any], None]) -> Program:
    """The same program, with something in between."""
    sample, weights = found.sample, found.parameters

    def step(batch: list[list[int]], rate: float) -> float:
        loss = sum(sample(name) for name in batch)
        between(None)
        loss.backward()
        for p in weights:
            p.data -= rate * p.grad
            p.grad = 0.0
        return loss.data  # type: ignore[no-any-return]

    return found._replace(step=step)


def test_what_changes_unnoticed_before_backward_is_an_error() -> None:
    changes: list[float] = []
    found = ragged()
    factors = alias = [1.5]
    weights = found.parameters

    def sample(name: list[int]) -> Any:
        return sum(weights[letter] * weights[letter + 1] * factors[0] for letter in name)

    def step(batch: list[list[int]], rate: float) -> float:
        loss = sum(sample(name) for name in batch)
        for number in changes:
            alias[0] = number  # which nothing tells that `sample` reads
        loss.backward()
        return loss.data  # type: ignore[no-any-return]

    compiled: Any = mgjit.compile(backend="python")(step)
    for batch in found.batches:
        compiled.wait()
        compiled(batch, 1e-3)
    assert min(calls(compiled)) > 10
    changes.append(2.5)
    with pytest.raises(UnsupportedError, match="has changed between"):
        compiled(found.batches[-1], 1e-3)


def test_what_a_function_keeps_for_each_length_may_change_before_backward() -> None:
    """Plain Python makes it in a call with a new length, when others have run as compiled code."""

    def made() -> Program:
        found = program(1)
        weights = found.parameters
        last: dict[int, int] = {}

        def sample(name: list[int]) -> Any:
            if len(name) not in last:
                last[len(name)] = len(name) % 5
            return sum(weights[letter] * weights[letter + 1] for letter in name) * weights[last[len(name)]]

        def step(batch: list[list[int]], rate: float) -> float:
            loss = sum(sample(name) for name in batch)
            loss.backward()
            for p in weights:
                p.data -= rate * p.grad
                p.grad = 0.0
            return loss.data  # type: ignore[no-any-return]

        batches = [[*b, [0, 1] * (5 + k % 4)] if k in (20, 21, 22, 28) else b for k, b in enumerate(found.batches)]
        return Program(step, weights, batches, [], sample)

    assert min(calls(compared(made))) > 10


def test_the_code_of_the_function_is_put_back_after_each_call_and_each_error() -> None:
    found = program(1)
    code = found.sample.__code__
    step = mgjit.compile(backend="python")(found.step)
    for batch in found.batches:
        step.wait()
        step(batch, 0.05)
        assert found.sample.__code__ is code
    with pytest.raises(IndexError):
        step([[0, 1, 99], [0, 1], [0, 1]], 0.05)
    assert found.sample.__code__ is code


@pytest.fixture
def result() -> Any:
    """A result of a function that is compiled by itself."""
    found = ragged()
    step: Any = mgjit.compile(backend="python")(found.step)
    for batch in found.batches:
        step.wait()
        step(batch, 1e-3)
    unit = step._units.unit
    made = unit.during(lambda: unit.call((found.batches[-1][0],), {}))
    return made, found, unit


def test_a_result_is_a_node_like_others(result: Any) -> None:
    made, found, unit = result
    assert type(made) is Node
    assert made.data == unit.original(found.batches[-1][0]).data
    assert type(made.children) is tuple
    assert unit.forward.stats.calls > 0


def test_the_graph_behind_a_result_cannot_be_copied(result: Any) -> None:
    made, _, _ = result
    with pytest.raises(UnsupportedError, match="sample"):
        copy.deepcopy(made)


def test_arguments_that_change_before_backward_are_kept(result: Any) -> None:
    _, found, unit = result
    name = list(found.batches[-1][0])
    for p in found.parameters:
        p.grad = 0.0
    unit.original(list(name)).backward()
    expected = found.numbers()
    for p in found.parameters:
        p.grad = 0.0
    made = unit.during(lambda: unit.call((name,), {}))
    name[:] = [0] * len(name)
    made.backward()
    assert found.numbers() == expected


def test_a_function_that_is_given_up_between_call_and_backward_leaves_its_nodes_usable() -> None:
    def made() -> Program:
        found = ragged()
        weights = found.parameters

        def sample(name: list[int]) -> Any:
            if len(name) > 20:
                return weights[0]  # which is found out by a trace, when there are nodes of other samples
            return sum(weights[letter] * weights[letter + 1] for letter in name) * weights[0]

        def step(batch: list[list[int]], rate: float) -> float:
            loss: Any = sum(sample(name) for name in batch)
            loss.backward()
            for p in weights:
                p.data -= rate * p.grad
                p.grad = 0.0
            return loss.data  # type: ignore[no-any-return]

        batches = [*found.batches, *([*batch[:2], batch[2] * 20] for batch in found.batches[:5])]
        return Program(step, weights, batches, [], sample)

    step = compared(made, 1e-3)
    assert min(calls(step)) > 10
    assert step._units.unit.refused


def test_calls_by_other_threads_are_left_alone(result: Any) -> None:
    _, found, unit = result
    graphs: list[Any] = []

    def work() -> None:
        thread = threading.Thread(target=lambda: graphs.append(found.sample(found.batches[-1][0])))
        thread.start()
        thread.join()

    unit.during(work)
    assert len(graphs[0].children) == 2  # its own, and not the stand-in


def test_defaults_that_change_are_those_of_later_calls(result: Any) -> None:
    _, _, unit = result
    name = [0, 1, 2]
    unit._function.__defaults__ = ([2, 1, 0],)
    made = unit.during(lambda: unit.call((), {}))
    assert made.data == unit.during(lambda: unit.call(([2, 1, 0],), {})).data
    unit._function.__defaults__ = (name,)
    assert unit.during(unit._function).data == unit.original(name).data


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.parametrize("part", ["forward", "backward"])
def test_a_defect_in_one_of_the_two_steps_is_noticed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel is compared with plain Python in the first call after its parameters have moved."""
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    perform = Kernel.perform

    def wrong(self: Kernel, phase: str, *rest: Any) -> None:
        is_first, is_backward = self.move is not None, self.plan.names[0] == "gradient_"
        perform(self, phase, *rest)
        if not is_first and is_backward == (part == "backward"):
            (self.parameters[0].grad if is_backward else self.outputs)[0] += 1e-3

    monkeypatch.setattr(Kernel, "perform", wrong)
    step = compared(lambda: program(1))
    stats = dict(zip(("forward", "backward"), step.stats.units["loss_of"]))
    assert stats[part].mismatches
    assert stats[part].compared_calls > 0
