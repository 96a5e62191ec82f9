"""Parts of arguments that are known by identity, or compared."""

from __future__ import annotations

from mgjit import Value
from mgjit.tracing.call.known import StaticNode, ValueNode
from mgjit.tracing.call.node import Frame


def make(place: int, integer: bool) -> tuple[int, bool]:
    """Stands for the number of a trace."""
    return place, integer


def test_09_values() -> None:
    """Known by identity, or by slot; the same one twice stays the same one twice."""
    value, other = Value(1.0), Value(1.0)
    frame = Frame(0, 0, 2)
    known = ValueNode(value, None)
    assert known.pack(value, frame)
    assert not known.pack(other, frame)
    slot, again = ValueNode(value, 1), ValueNode(value, 1, again=True)
    assert slot.pack(other, frame)
    assert frame.values == [None, other]
    assert again.pack(other, frame)
    assert not again.pack(value, frame)
    assert not slot.pack(1.0, frame)
    assert known.traced(make) is slot.traced(make) is value
    assert slot.describe() == "a Value"


def test_10_static_things() -> None:
    """Plain ones are compared by value and type, others by identity."""
    for node, same, others in (
        (StaticNode("text"), "te" + "xt", ["other", b"text"]),
        (StaticNode(True), True, [1, 1.0, False]),
        (StaticNode(range(3)), range(3), [range(4), [0, 1, 2]]),
        (StaticNode(frozenset([1])), frozenset([1]), [{1}, frozenset()]),
    ):
        assert node.pack(same, Frame(0, 0, 0))
        assert not any(node.pack(other, Frame(0, 0, 0)) for other in others)
        assert node.traced(make) is node.argument
    thing = object()
    assert StaticNode(thing).pack(thing, Frame(0, 0, 0))
    assert not StaticNode(thing).pack(object(), Frame(0, 0, 0))
    assert StaticNode("x" * 100).describe() == "'" + "x" * 59
