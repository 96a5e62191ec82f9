"""Where records come from: `mgjit.tracing.tracer.sites` and `mgjit.ir.sites`."""

import sys
from array import array

import mgjit
from mgjit import nn
from mgjit.compiler.cache.key import structure_hash
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.rewrite import with_surroundings
from mgjit.ir.sites import NOWHERE, repeat_sites, sites_of_records
from mgjit.tracing.tracer.sites import Sites


def traced(step, *arguments):
    """The trace of a call with and without sites, the inputs, and the sites."""
    maker = mgjit.compile(step)._kernels.maker
    plan = maker.plan(arguments)
    sites = Sites()
    without, _ = maker._trace(plan, None)
    noted, _ = maker._trace(plan, None, sites)
    return without.trace, noted.trace, plan.regions(0), sites


def lines_of(trace, sites, step):
    """How many records come from each line of the step, counted from its first one."""
    found = {}
    for number in trace.sites:
        line = sites.stack(number)[0].line - step.__code__.co_firstlineno
        found[line] = found.get(line, 0) + 1
    return found


def test_each_record_comes_from_the_line_that_appends_it():
    model = nn.MLP(5, [4, 1])

    def step(x, rate):
        score = model(x)
        loss = (score - 1.0) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    without, noted, _inputs, sites = traced(step, [0.5] * 5, 0.1)
    count = len(model.parameters())
    assert lines_of(noted, sites, step) == {1: 4 * 11 + 8, 2: 2 + 1, 3: count, 4: 1, 6: 3 * count}
    assert without.sites is None
    assert len(noted.sites) == len(noted)


def test_sites_change_neither_the_trace_nor_its_structure_hash():
    model = nn.MLP(3, [4, 1])
    moments = [0.0] * len(model.parameters())

    def step(x):
        loss = model(x) * 2.0
        model.zero_grad()
        loss.backward()
        for i, p in enumerate(model.parameters()):
            moments[i] = 0.9 * moments[i] + p.grad
            p.data -= 0.1 * moments[i]
        return loss

    without, noted, inputs, _ = traced(step, [1.0, 2.0, 3.0])
    assert (without.op, without.a, without.b) == (noted.op, noted.a, noted.b)
    assert structure_hash(without, inputs) == structure_hash(noted, inputs)


def test_a_function_that_is_called_from_two_lines_has_two_sites():
    def square(x):
        return x * x

    def step(x):
        a = square(x)
        return a + square(a)

    _, noted, _, sites = traced(step, 2.0)
    stacks = [[(site.code.co_name, site.line - step.__code__.co_firstlineno) for site in sites.stack(number)]
              for number in noted.sites]  # fmt: skip
    inner = square.__code__.co_firstlineno + 1 - step.__code__.co_firstlineno
    assert stacks[0] == [("step", 1), ("square", inner)]
    assert stacks[1] == [("step", 2), ("square", inner)]
    assert stacks[-1][0] == ("step", 2)


def test_recursion_adds_no_sites():
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * x

    def step(x):
        return power(x, 50)

    _, noted, _, sites = traced(step, 2.0)
    assert len(sites.all) < 8
    assert {sites.stack(number)[1].code.co_name for number in noted.sites} == {"power"}


def test_generators_and_exceptions_leave_the_caller_where_it_is():
    def halves(x):
        yield x * 0.5
        yield x * 0.25

    def fails(x):
        raise KeyError(x)

    def step(x):
        total = 0.0
        for half in halves(x):
            total = total + half
        try:
            fails(x)
        except KeyError:
            total = total * 3.0
        return total

    _, noted, _, sites = traced(step, 2.0)
    lines = lines_of(noted, sites, step)
    assert lines[2] == 2
    assert lines[3] == 2
    assert lines[7] >= 1


def test_the_debugger_of_the_program_is_put_back():
    def debugger(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        traced(lambda x: x * 2.0, 1.0)
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is debugger


def test_every_statement_of_a_lowered_step_has_an_origin():
    model = nn.MLP(20, [16, 3])

    def step(x, label, rate):
        scores = model(x)
        loss = sum((s - t) ** 2 for s, t in zip(scores, mgjit.one_hot(label, 3)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss, [mgjit.exp(s) for s in scores]

    _, noted, inputs, _ = traced(step, [0.5] * 20, 1, 0.1)
    program = lower(noted, inputs, Processor(4)).program
    origins = [s.origin for _, nodes in program.phases for s, _ in with_surroundings(nodes)]
    assert all(origin.sites for origin in origins)
    assert any(origin.is_gradient for origin in origins)
    assert not all(origin.is_gradient for origin in origins)


def test_growing_loops_keep_their_origin():
    def step(xs):
        total = 0.0
        for i in range(len(xs)):
            for j in range(i + 1):
                total = total + xs[i] * xs[j]
        return total * 2.0

    _, noted, inputs, sites = traced(step, [float(k) for k in range(12)])
    program = lower(noted, inputs, Processor(4)).program
    origins = [s.origin for _, nodes in program.phases for s, _ in with_surroundings(nodes)]
    lines = {sites.all[number].line - step.__code__.co_firstlineno for o in origins for number in o.sites}
    assert lines == {4, 5}


def test_marks_that_were_taken_back_do_not_count():
    marks = [(0, 7), (2, 8), (5, 9), (3, 4), (3, 6), (4, NOWHERE)]
    operands = array("i", [-1, -1, -1, -1, 1])
    assert list(sites_of_records(marks, operands)) == [7, 7, 8, 6, 7]


def test_repeated_records_have_the_sites_of_the_first_ones():
    marks = [(0, 1), (4, 2), (5, 3), (6, 1)]
    repeat_sites(marks, 4, 2, 3)
    assert list(sites_of_records(marks, array("i", [-1] * 11))) == [1, 1, 1, 1, 2, 3, 2, 3, 2, 3, 1]
