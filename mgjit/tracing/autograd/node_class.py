"""Recognise classes whose objects are nodes of an autograd graph, by their behaviour.

The test is to multiply two objects and call `backward()`.  If each then holds the other factor in some attribute, that
attribute is the gradient, and the one that holds the factors themselves is the data.  Nothing else is assumed: how the
graph is kept, in which order `backward()` visits it, and what it adds up, is observed while it runs (autograd/flow.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from ...engine.leaks import PlainCall
from ...memory.live import Field, field_of
from ..draws.plan import undrawn
from ..source.effects import WRITES, without_effects
from ..surroundings.code import read
from ..surroundings.ownership import is_of_user
from ..surroundings.shapes import attributes
from .graph_style import GraphStyle, style_of

_known: dict[type, NodeClass | None] = {}
_CONTAINERS = (set, frozenset, tuple, list)


@dataclass(frozen=True)
class NodeClass:
    """What is known about a class of nodes.

    Attributes:
        kind: the class.
        data, gradient: where its objects keep these numbers.
        is_ordered: whether every run of a program visits the operands of a node in the same order.  It does not if
            they are in a set, whose order depends on the addresses of the objects.
        style: how it keeps its graph; None if that is not known.
    """

    kind: type
    data: Field
    gradient: Field
    is_ordered: bool
    style: GraphStyle | None = None


def node_class(kind: type) -> NodeClass | None:
    """What is known about a class, or its nearest base class that has nodes; None if its objects are not nodes."""
    for base in kind.__mro__ if callable(getattr(kind, "backward", None)) else ():
        if base not in _known:
            is_own = is_of_user(base) and "_mgjit_original" not in vars(base) and not _writes(base)
            _known[base] = _without_side_effects(base, _tried) if is_own else None
        known = _known[base]
        if known is not None:
            return known
    return None


def was_tried(kind: type) -> bool:
    """Whether a class and its bases have already been tried out."""
    return not callable(getattr(kind, "backward", None)) or kind in _known


def _writes(kind: type) -> bool:
    """Whether methods of a class may write to files, which could not be undone."""
    codes = [method.__code__ for method in vars(kind).values() if isinstance(method, FunctionType)]
    return any(not WRITES.isdisjoint(read(code).names) for code in codes)


def _without_side_effects(kind: type, attempt: Callable[[Any], NodeClass | None]) -> NodeClass | None:
    """The outcome of an attempt, or None if it raises, prints or logs.  Counters in the class are restored."""
    before = {name: content for name, content in vars(kind).items() if isinstance(content, (int, float))}
    try:
        return without_effects(lambda: undrawn(kind, lambda: attempt(kind)))
    except (Exception, PlainCall):
        return None
    finally:
        for name, content in before.items():
            if vars(kind).get(name) is not content:
                setattr(kind, name, content)


def _tried(kind: Any) -> NodeClass | None:
    a, b = kind(0.5), kind(0.25)
    product = a * b
    product.backward()
    data = _holding(0.5, a, 0.25, b, 0.125, product)
    gradient = _holding(0.25, a, 0.5, b, 1, product)
    if data is None or gradient is None or type(product) is not kind:
        return None
    containers = [type(part) for part in attributes(product).values() if isinstance(part, _CONTAINERS) and a in part]
    is_ordered = not containers or any(issubclass(container, (tuple, list)) for container in containers)
    known = NodeClass(kind, field_of(kind, data), field_of(kind, gradient), is_ordered)
    return replace(known, style=style_of(known))


def _holding(*numbers_and_things: Any) -> str | None:
    """The one attribute that has these numbers in these objects."""
    pairs = list(zip(numbers_and_things[::2], map(attributes, numbers_and_things[1::2])))
    names = [name for name in pairs[0][1] if all(_is(found.get(name), number) for number, found in pairs)]
    return names[0] if len(names) == 1 else None


def _is(content: Any, number: float) -> bool:
    return type(content) in (int, float) and content == number
