"""Finishing a trace: numbers that are read late are copied in front of the store."""

from __future__ import annotations

import random

from mgjit import Value
from mgjit.ir import opcodes as ops
from mgjit.tracing.record.finished import Finishing
from mgjit.tracing.record.recorder import Recorder


def test_07_late_read() -> None:
    """A number that is used after its memory was overwritten: copied in front of the store, once."""
    recorder = Recorder()
    p = recorder.parameter(Value(1.0))
    one = recorder.constant(1.0)
    late = [recorder.late_read(p, 0), recorder.late_read(p, 0)]
    recorder.store(p, one)
    recorder.emit(ops.ADD | ops.NUMBER, late[0], late[1])
    recorder.emit(ops.ADD | ops.NUMBER, 1, one)
    trace = recorder.finish()
    assert [ops.operation_name(code) for code in trace.op] == ["copy", "store", "add", "add"]
    assert trace.a[0] == p
    assert (trace.a[2], trace.b[2]) == (0, 0)
    assert trace.a[3] == 2  # earlier records moved


def test_08_late_read_of_a_gradient() -> None:
    """A backward pass writes all gradients."""
    recorder = Recorder()
    p = recorder.parameter(Value(1.0))
    gradient = recorder.gradient_leaf(p)
    record = recorder.emit(ops.MULTIPLY, p, p)
    late = recorder.late_read(gradient, len(recorder.op))
    recorder.backward(record)
    recorder.output(late)
    names = [ops.operation_name(code) for code in recorder.finish().op]
    assert names == ["multiply", "copy", "backward", "store"]


def test_13_many_late_reads() -> None:
    """Each is copied in front of the next record that changes it: a store, or for a gradient a backward pass."""
    for seed in range(30):
        draw = random.Random(seed)
        recorder = Recorder()
        leaves = [recorder.parameter(Value(float(k))) for k in range(4)]
        leaves += [ops.leaf(ops.GRADIENT, ops.leaf_index(operand)) for operand in leaves]
        reads = []
        for number in range(60):
            kind = draw.randrange(4)
            if kind == 0:
                recorder.emit(ops.STORE, draw.choice(leaves), recorder.constant(float(number)))
            elif kind == 1:
                recorder.emit(ops.BACKWARD, leaves[0], ops.NO_OPERAND)
            else:
                reads.append((draw.choice(leaves), len(recorder.op)))
        for operand in leaves:
            recorder.emit(ops.STORE, operand, recorder.constant(-1.0))
        recorder.late = reads

        def changes(position: int, operand: int, recorder: Recorder = recorder) -> bool:
            if recorder.op[position] == ops.BACKWARD:
                return ops.leaf_kind(operand) == ops.GRADIENT
            return recorder.op[position] == ops.STORE and recorder.a[position] == operand

        assert Finishing(recorder)._next_writes() == [
            next(position for position in range(read_at, len(recorder.op)) if changes(position, operand))
            for operand, read_at in reads
        ]
