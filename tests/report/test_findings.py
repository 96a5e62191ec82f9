"""Times of parts are divided among statements, and statements among lines."""

from __future__ import annotations

import pytest

import mgjit
from mgjit.compiler.codegen.clock import Part, top_nodes
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.compiler.schedule.cost import cost_when_scheduled
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Array, Index, Load, Loop, Reference, Statement
from mgjit.report.findings import find
from mgjit.report.names import Names, assigned_at
from mgjit.report.source import Function, Sources


def found(step, *arguments, seconds=None):
    """What was found out about a step, as if each part took `seconds(number)`."""
    maker = mgjit.compile(step)._kernels.maker
    noted = maker.noted(maker.plan(arguments))
    lowered = lower(noted.traced.trace, noted.inputs, Processor(4))
    sources = Sources(noted.sites, step)
    names = Names(noted.plan, noted.traced.heap, sources, lowered.program)
    parts = [Part(name, part, "") for name, nodes in lowered.program.phases for part in top_nodes(nodes)]
    times = None if seconds is None else [seconds(k) for k in range(len(parts))]
    return find(parts, times, lowered.schedule, sources, names, {}), parts


def two_loops(xs, ys):
    total = 0.0
    for x in xs:
        total = total + mgjit.exp(x)
    other = 0.0
    for y in ys:
        other = other + y * y * y
    return total, other


def test_measured_times_decide_between_parts():
    arguments = [0.5] * 20, [0.5] * 30

    def shares(seconds):
        findings, _ = found(two_loops, *arguments, seconds=seconds)
        first = two_loops.__code__.co_firstlineno
        return {line.number - first: line.share for line in findings.bodies[0].lines if line.share}

    even = shares(lambda k: 1.0)
    assert sum(even.values()) == pytest.approx(1.0)
    assert set(even) == {3, 6}
    late = shares(lambda k: 1.0 if k else 0.0)
    assert late[3] < even[3]
    nothing = shares(lambda k: 0.0)
    assert nothing == {}


def test_the_cost_model_decides_within_a_part():
    def step(xs):
        return [mgjit.exp(x) + x for x in xs], [x * 2.0 for x in xs]

    findings, parts = found(step, [0.5] * 40, seconds=lambda k: 1.0)
    assert sum(line.share for line in findings.bodies[0].lines) == pytest.approx(1.0)
    assert sum(one.share for one in findings.loops) == pytest.approx(1.0)
    assert {number for one in findings.loops for number in one.parts} == set(range(len(parts)))


def test_an_operation_costs_as_much_in_lanes_as_alone_but_for_scattered_access():
    lane, loop = Loop(8, [], lanes=True), Loop(10, [])
    source, target = Array("x", "input", 800), Array("t", "scratch", 80)

    def statement(step):
        read = Load(Reference(source, Index(0, ((loop, 80), (lane, step)))))
        return Statement("multiply", (read, read), Reference(target, Index(0, ((loop, 8), (lane, 1)))))

    alone = Statement("multiply", tuple(Load(Reference(source, Index(0, ((loop, 8),)))) for _ in range(2)),
                      Reference(target, Index(0, ((loop, 8),))))  # fmt: skip
    assert cost_when_scheduled(statement(1), (loop, lane)) == cost_when_scheduled(alone, (loop,))
    assert cost_when_scheduled(statement(3), (loop, lane)) > 4 * cost_when_scheduled(statement(1), (loop, lane))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    scores = model(x)", "scores"),
        ("p.data -= lr * p.grad", "p.data"),
        ("m[i] = 0.9 * m[i]", "m[i]"),
        ("if a == b:", ""),
        ("return x", ""),
    ],
)
def test_what_a_line_computes_is_called_after_its_variable(line, name):
    assert assigned_at(Function("step", "a.py", "/b/a.py", 7, [line]), 7) == name
    assert assigned_at(Function("step", "a.py", "/b/a.py", 7, [line]), 9) == ""


def test_arrays_have_the_names_of_the_user():
    model = mgjit.nn.MLP(12, [8, 1])
    moments = [0.0] * len(model.parameters())

    def step(features, rate):
        score = model(features)
        model.zero_grad()
        score.backward()
        for i, p in enumerate(model.parameters()):
            moments[i] = 0.9 * moments[i] + p.grad
            p.data -= rate * moments[i]
        return score

    targets = {target for one in found(step, [0.5] * 12, 0.1)[0].loops for target in one.target.split(", ")}
    assert {"score", "gradients", "parameters"} <= targets
    assert any("moments" in target for target in targets)
