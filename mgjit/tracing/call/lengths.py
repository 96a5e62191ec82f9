"""Whether two arguments differ only in the lengths of what they contain, such as two sentences.

1. The form of a node is its structure without lengths: a list of things of one form is `list of form`, whatever their
   number; one of several forms is a row, which has a form for each.
2. Forms match if they are equal, where what an empty list would contain may be anything.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from .containers import DataclassNode, MappingNode, SequenceNode
from .inputs import BufferNode, NumbersNode
from .known import KnownNode, ValueNode
from .node import Node


class _Many(NamedTuple):
    """A sequence of a class, of any length, whose elements have one form; None where it has none."""

    kind: str
    form: Any


class _Row(NamedTuple):
    """A container of a class with a form for each of its parts."""

    kind: Hashable
    forms: tuple[Any, ...]


def differ_in_lengths(one: Node, other: Node) -> bool:
    """Whether two nodes are alike but for lengths."""
    return _match(_form(one), _form(other))


def _form(node: Node) -> Any:
    if isinstance(node, KnownNode):
        return _form(node.inner)
    if isinstance(node, NumbersNode) and not node.whole:
        form: Any = "number"
        for kind in reversed(node.kinds):
            form = _Many(kind.__name__, form)
        return form
    if isinstance(node, BufferNode):
        return "buffer", node.type, node.format, len(node.shape)
    if isinstance(node, SequenceNode):
        forms = [_form(part) for part in node.parts]
        if all(_match(forms[0], form) for form in forms[1:]) and not hasattr(node.kind, "_fields"):
            return _Many(node.kind.__name__, _fullest(forms))
        return _Row(node.kind, tuple(forms))
    if isinstance(node, MappingNode):
        return _Row(tuple(node.keys), tuple(map(_form, node.parts.values())))
    if isinstance(node, DataclassNode):
        return _Row((node.kind, *node.parts), tuple(map(_form, node.parts.values())))
    return "value" if isinstance(node, ValueNode) else node.key


def _match(one: Any, other: Any) -> bool:
    if isinstance(one, _Many) and isinstance(other, _Many):
        is_empty = one.form is None or other.form is None
        return one.kind == other.kind and (is_empty or _match(one.form, other.form))
    if isinstance(one, _Row) and isinstance(other, _Row):
        are_alike = one.kind == other.kind and len(one.forms) == len(other.forms)
        return are_alike and all(map(_match, one.forms, other.forms))
    return bool(one == other)


def _fullest(forms: list[Any]) -> Any:
    """Of forms that match, one that says what is inside, if there is one; None if there are none."""
    full = [form for form in forms if not (isinstance(form, _Many) and form.form is None)]
    return next(iter([*full, *forms]), None)


def lengths_of(arguments: Sequence[Any]) -> Hashable:
    """A cheap key that usually tells structures of arguments apart: types, lengths of sequences and of their rows."""
    return tuple([
        (len(a), len(a[0]) if len(a) and type(a[0]) in WITH_LENGTH else 0) if type(a) in WITH_LENGTH else type(a)
        for a in arguments
    ])  # fmt: skip


def are_ragged(arguments: Iterable[Any]) -> bool:
    """Whether among arguments there is a list of sequences of different lengths, such as a batch of sentences."""
    return any(len({len(row) for row in a if type(row) in WITH_LENGTH}) > 1 for a in arguments if type(a) in _LISTS)


def hold_objects(things: Iterable[Any]) -> bool:
    """Whether arguments may hold objects, such as parameters, and not just numbers, texts and buffers."""
    return any(
        type(thing) not in _WITHOUT_OBJECTS and not (type(thing) in _LISTS and not hold_objects(thing))
        for thing in things
    )


_LISTS = frozenset({list, tuple})
_WITHOUT_OBJECTS = frozenset({int, float, bool, str, type(None), bytes, bytearray, array})
#: Arguments of these types usually differ in length between calls.
WITH_LENGTH = frozenset({list, tuple, bytes, bytearray, array})
