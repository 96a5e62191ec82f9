"""The recorder: leaves, stores, late reads, look-ups."""

from __future__ import annotations

import math
from array import array

import pytest

from mgjit import Value, state
from mgjit.engine.precision import FLOAT32
from mgjit.errors import PrecisionError, TraceError
from mgjit.ir import opcodes as ops
from mgjit.ir.trace import NEW_BASE
from mgjit.memory.buffers import bind
from mgjit.tracing.record.recorder import Recorder


def test_01_constants_are_shared_by_bits() -> None:
    """Equal numbers share a leaf; zeros of different sign do not; all nans are one."""
    recorder = Recorder()
    leaves = [recorder.constant(x) for x in (1, 1.0, 0.0, -0.0, 0.0, math.nan, -math.nan, math.inf, True)]
    assert len({leaves[0], leaves[1], leaves[8]}) == 1
    assert leaves[2] == leaves[4] != leaves[3]
    assert leaves[5] == leaves[6]
    assert len(recorder.constants) == 5


def test_02_parameters_are_numbered_by_creation() -> None:
    """The distance of two parameters is their distance in order of creation, whichever was met first."""
    values = [Value(float(k)) for k in range(5)]
    recorder = Recorder()
    leaves = {k: recorder.parameter(values[k]) for k in (3, 0, 4)}
    assert ops.leaf_index(leaves[3]) == NEW_BASE
    assert ops.leaf_index(leaves[0]) == NEW_BASE - 3
    assert ops.leaf_index(leaves[4]) == NEW_BASE + 1
    assert [value for _, value in recorder.finish().new_parameters] == [values[0], values[3], values[4]]


def test_03_interior_nodes_are_refused() -> None:
    """Their history is outside of the trace."""
    with pytest.raises(TraceError, match=r"test_recorder\.py:\d+: .*outside"):
        Recorder().parameter(Value(1.0) * 2.0)


def test_04_gradient_leaves() -> None:
    """A parameter's or a local Value's gradient has the same index in another memory."""
    for kind, gradient in ((ops.PARAMETER, ops.GRADIENT), (ops.LOCAL, ops.LOCAL_GRADIENT)):
        assert Recorder.gradient_leaf(ops.leaf(kind, 7)) == ops.leaf(gradient, 7)
    leaves = array(
        "i", [ops.leaf(ops.PARAMETER, index) for index in (0, 1, 255, 1 << 24, (1 << 24) + 5, ops.INDEX_MASK)]
    )
    assert list(Recorder.gradient_leaves(leaves)) == list(map(Recorder.gradient_leaf, leaves))


def test_05_states_lie_side_by_side() -> None:
    """Each is registered once."""
    recorder = Recorder()
    first, second = state([1.0, 2.0]), state([3.0])
    leaves = [recorder.state(s) for s in (first, second, first)]
    assert [ops.leaf_index(leaf) for leaf in leaves] == [0, 2, 0]
    assert [start for start, _ in recorder.finish().states] == [0, 2]


def test_06_select_has_a_third_operand() -> None:
    """Only then there is a third column."""
    recorder = Recorder()
    one = recorder.constant(1.0)
    recorder.emit(ops.ADD, one, one)
    assert recorder.finish().c is None
    recorder.select(0, one, one)
    trace = recorder.finish()
    assert trace.c is not None
    assert list(trace.c) == [ops.NO_OPERAND, 0]


def test_09_backward_from_a_leaf() -> None:
    """A parameter's own gradient becomes 1; a constant has none."""
    recorder = Recorder()
    p = recorder.parameter(Value(1.0))
    recorder.backward(p)
    recorder.backward(recorder.constant(2.0))
    trace = recorder.finish()
    assert [ops.operation_name(code) for code in trace.op] == ["store"]
    assert trace.a[0] == recorder.gradient_leaf(p)


def test_10_look_ups_need_a_regular_table() -> None:
    """Leaves of one memory at equal distances."""
    recorder = Recorder()
    table = [ops.leaf(ops.PARAMETER, k) for k in (4, 7, 10)]
    index = ops.leaf(ops.INPUT, 0)
    recorder.take(table, index, True)
    recorder.take(table, index, True)
    recorder.take(table[:2], index, True)
    trace = recorder.finish()
    assert [tuple(layout) for layout in trace.layouts] == [(3, 3), (3, 2)]
    for wrong in ([table[0], table[1], table[1]], [table[0], ops.leaf(ops.STATE, 7)], [0, 1]):
        with pytest.raises(TraceError, match="equal"):
            recorder.take(wrong, index, True)


def test_11_index_checks() -> None:
    """Only inputs can be checked before anything runs; the same check is kept once."""
    recorder = Recorder()
    computed = recorder.emit(ops.DIVIDE | ops.NUMBER, ops.leaf(ops.INPUT, 2), ops.leaf(ops.INPUT, 3))
    for count in (3, 3, 4):
        recorder.check_index(ops.leaf(ops.INPUT, 2), count)
    checks = recorder.finish().checks
    assert [(check.input_index, check.count) for check in checks] == [(2, 3), (2, 4)]
    assert "test_recorder.py" in checks[0].location
    with pytest.raises(TraceError, match="argument of the step"):
        recorder.check_index(computed, 3)


@pytest.mark.parametrize("kind", range(len(ops.KINDS)))
@pytest.mark.parametrize("index", [0, 1, 1 << 20, ops.INDEX_MASK])
def test_12_leaves_are_reversible(kind: int, index: int) -> None:
    """Kind and index of a leaf come back, also from its top byte."""
    operand = ops.leaf(kind, index)
    if operand != ops.NO_OPERAND and operand < 0:
        assert (ops.leaf_kind(operand), ops.leaf_index(operand)) == (kind, index)
        assert ops.KIND_OF_TOP_BYTE[(operand & 0xFFFFFFFF) >> 24] == kind
    assert ops.leaf_kind(12345) == ops.TEMPORARY


def test_memory_of_another_precision() -> None:
    """Bound parameters and states belong to steps of one precision; large tables need float64."""
    value, moments = Value(1.0), state([0.0])
    bind([value], [0], 1, FLOAT32)
    moments._precision = FLOAT32
    Recorder(FLOAT32).parameter(value)
    Recorder(FLOAT32).state(moments)
    with pytest.raises(PrecisionError, match="a parameter of a float32 step"):
        Recorder().parameter(value)
    with pytest.raises(PrecisionError, match="a state of a float32 step"):
        Recorder().state(moments)
    for recorder in (Recorder(), Recorder(FLOAT32)):
        recorder.check_index(ops.leaf(ops.INPUT, 0), 2**24)
    with pytest.raises(TraceError, match="float32 does not hold"):
        recorder.check_index(ops.leaf(ops.INPUT, 0), 2**24 + 1)


@pytest.mark.parametrize("count", [3, 400])
def test_13_look_ups_are_found_by_their_opcodes(count: int) -> None:
    """Also where the layouts are so many that their opcodes have all lowest bytes."""
    recorder, index = Recorder(), ops.leaf(ops.INPUT, 0)
    expected = []
    for stride in range(1, count + 1):
        table = [ops.leaf(ops.PARAMETER, stride * k) for k in range(3)]
        expected.append(recorder.look_up(table, index, engine=stride % 2 == 0))
        recorder.store(ops.leaf(ops.PARAMETER, 0), index)
        recorder.put(table, index, recorder.emit(ops.ADD | ops.NUMBER, index, index))
        expected.append(len(recorder.op) - 1)
        recorder.backward(expected[-2])
    assert recorder.look_ups() == expected


def test_14_leaves_are_told_from_records() -> None:
    leaves = {ops.leaf(kind, index) for kind in range(len(ops.KINDS)) for index in (0, 1, ops.INDEX_MASK)}
    assert Recorder.leaves_in(array("i", [0, 5, *leaves, 1 << 24, 2**31 - 1, *leaves])) == leaves


def test_15_the_leaves_behind_a_number() -> None:
    """Each once, through any number of operations and the third operand; constants are not among them."""
    recorder = Recorder()
    x, y, z = (recorder.parameter(Value(float(k))) for k in range(3))
    one = recorder.constant(1.0)
    both = recorder.emit(ops.MULTIPLY, recorder.emit(ops.ADD, x, one), x)
    chosen = recorder.select(both, y, z)
    assert set(recorder.leaves_behind(one)) == set()
    assert set(recorder.leaves_behind(x)) == {x}
    assert set(recorder.leaves_behind(both)) == {x}
    assert set(recorder.leaves_behind(recorder.emit(ops.MULTIPLY, chosen, one))) == {x, y, z}


def test_16_leaves_behind_a_number_are_told_from_the_nearest_on() -> None:
    """Who needs to know only whether there is a certain leaf does not walk through the whole trace."""
    recorder = Recorder()
    far, near, last = (recorder.parameter(value) for value in map(Value, (0.0, 1.0, 2.0)))
    number = recorder.emit(ops.ADD | ops.NUMBER, far, recorder.constant(3.0))
    for _ in range(5):
        number = recorder.emit(ops.MULTIPLY | ops.NUMBER, number, near)
        number = recorder.emit(ops.ADD | ops.NUMBER, number, number)
    number = recorder.emit(ops.ADD | ops.NUMBER, number, last)
    assert list(recorder.leaves_behind(number)) == [last, near, far]
