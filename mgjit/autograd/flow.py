"""Observe what a class's own `backward()` adds to which gradient.

While it runs, the attribute that holds gradients is a property of the class: reading the gradient of a node gives a
symbol, and what `backward()` computes from symbols is interpreted as follows:

1. A number times the gradient of a node, or that gradient divided by a number, is a contribution of that node.
2. Assigning to a gradient its own symbol plus contributions makes an edge of the flow for each of them: from the
   contributing node, with the number as factor, to the node that is assigned to.
3. Zero may be assigned to a gradient that has received nothing yet, and 1 to that of the root, once.
4. A symbol stands for the gradient at the time when it was read, and is invalid once that has changed.

Anything else (clipping a gradient, multiplying two, comparing one) cannot be expressed as such edges and raises
`NoFlow`, as does using symbols after the pass.  Nothing is assumed about `backward()` itself: it may be recursive or
not, use closures or lists of local derivatives, and visit nodes in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from ..interruption import with_cleanup
from ..record.leaks import Symbol, is_numeric

if TYPE_CHECKING:
    from .graph_style import GraphStyle
    from .node_class import NodeClass


class NoFlow(BaseException):
    """A backward pass does more than add up gradients times numbers; the text says what.

    Attributes:
        count: how many there have been, including any that the user's code has caught.
    """

    count = 0

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        NoFlow.count += 1


#: `target.gradient += factor * source.gradient`, or `source.gradient / factor`: source, target, factor, divides.
Edge = tuple[Any, Any, Any, bool]


class Node:
    """A node of a flow.

    Attributes:
        thing: the user's object.
        got, gave: whether something was added to its gradient, and that was added to another one.

    The others are for autograd/symbolic.py:
        known: what is known about its class (a NodeClass); None before the rest is known.
        operand: its data.
        is_parameter: whether its data and gradient are in the memory of parameters.
        edges: where its gradient flows, as far as it may be read there.
        has_gradient: whether a gradient flows through it that may be read.
        value: the operand that stands for it in records through which gradients flow.
        senders: the records that contribute to its gradient, the last contribution first.
        candidates: the parameters of which a traced index chooses one; empty for other nodes.
    """

    __slots__ = (
        "candidates", "edges", "gave", "got", "has_gradient", "is_parameter", "known", "operand", "senders", "thing",
        "value",
    )  # fmt: skip
    operand: int
    value: int
    is_parameter: bool
    has_gradient: bool

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.got = self.gave = False
        self.known: Any = None
        self.edges: Sequence[Any] = ()
        self.senders: list[int] = []
        self.candidates: Sequence[Node] = ()


class Given:
    """Where contributions come from that are numbers already: its gradient is 1, and they are the factors."""


@dataclass
class Flow:
    """What a backward pass does, in order.

    Attributes:
        root: the node whose gradient is 1.
        edges: the contributions, from Node to Node.
        zeroed: the objects whose gradients were set to zero before they received anything, by identity.
        seed: the 1 that was assigned to the root's gradient; None before that.
        returned: the result of `backward()`.
        nodes: by identity of the object.
        given: the source of contributions that are numbers already; None if there are none.
        style, things: in place of edges, objects, operands before what is computed from them, and how they keep these.
    """

    root: Any
    edges: list[Edge] = field(default_factory=list)
    zeroed: dict[int, Any] = field(default_factory=dict)
    seed: Any = None
    returned: Any = None
    nodes: dict[int, Node] = field(default_factory=dict)
    given: Given | None = None
    style: GraphStyle | None = None
    things: Sequence[Any] = ()

    @classmethod
    def along(cls, edges: Iterable[Edge], given: Given) -> Flow:
        """The flow along edges from object to object."""
        flow = cls(None, given=given)
        node, append = flow.node, flow.edges.append
        for source, target, factor, divides in edges:
            append((node(source), node(target), factor, divides))
        return flow

    @classmethod
    def through(cls, things: Sequence[Any], style: GraphStyle, root: Any = None) -> Flow:
        """The flow of what objects contribute to the gradients of their operands, the last object first."""
        return cls(root, seed=None if root is None else style.seed, style=style, things=things)

    def node(self, thing: Any) -> Node:
        """The node of an object."""
        known = self.nodes.get(id(thing))
        if known is None:
            known = self.nodes[id(thing)] = Node(thing)
        return known


def _observer(flow: Flow) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
    """What reads the gradient of an object, and what assigns it, while a flow is observed."""
    current: dict[int, _Gradient] = {}  # the symbols of gradients as they are now, by object
    root, nodes, append = flow.root, flow.nodes, flow.edges.append

    def read(thing: Any) -> Any:
        try:
            return current[id(thing)]
        except KeyError:
            known = current[id(thing)] = new(_Gradient)
            known.node = nodes[id(thing)] = Node(thing)
            known.is_current = True
            return known

    def assign(thing: Any, content: Any) -> None:
        before = add(thing, content.gradient, content.terms) if type(content) is _Sum else start(thing, content)
        if before is not None:
            before.is_current = False
            made = current[id(thing)] = new(_Gradient)
            made.node, made.is_current = before.node, True

    def add(thing: Any, gradient: _Gradient, terms: Sequence[Any]) -> _Gradient:
        if gradient.node.thing is not thing and len(terms) == 1 and type(terms[0]) is _Gradient:
            gradient, terms = terms[0], (gradient,)  # a + b is b + a
        target = gradient.node
        if target.thing is not thing:
            raise NoFlow("it assigns the gradient of another node")
        if not gradient.is_current:
            raise NoFlow(_STALE)
        for term in terms:
            if type(term) is _Contribution:
                given = term.gradient
                source = given.node
                append((source, target, term.factor, term.divides))
            else:
                given, source = term, term.node
                append((source, target, 1.0, False))
            if not given.is_current:
                raise NoFlow(_STALE)
            if target.gave or source is target or thing is root:
                raise NoFlow("it uses a gradient before all contributions to it are there")
            if not source.got and source.thing is not root:
                raise NoFlow("it uses the gradients of nodes that the root does not depend on")
            target.got = source.gave = True
        return gradient

    def start(thing: Any, content: Any) -> _Gradient | None:
        before = current.get(id(thing))
        may_start = thing is not root or flow.seed is None
        if type(content) is _Gradient and content.node.thing is thing:
            if not content.is_current:
                raise NoFlow(_STALE)
        elif may_start and _is_number(content, 0.0) and not (before is not None and before.node.got):
            flow.zeroed[id(thing)] = thing
        elif may_start and thing is root and _is_number(content, 1.0) and not flow.edges:
            flow.seed = content
        else:
            raise NoFlow("it assigns gradients something else than sums of gradients times numbers")
        return before

    return read, assign


_STALE = "it uses what a gradient was before something was added to it"


def observe(root: Any, classes: Iterable[NodeClass], run: Callable[[], Any]) -> Flow:
    """Run a backward pass from `root`; returns what it does.

    Args:
        root: a node.
        classes: the classes of all nodes.
        run: the call of the class's own `backward()`.

    Raises:
        NoFlow: it does something that is not a flow of gradients along edges.
    """
    flow = Flow(root)
    gradient = property(*_observer(flow))
    replaced = [(kind, name, vars(kind).get(name)) for kind, name in _holders(classes)]

    def watched() -> None:
        for kind, name, _ in replaced:
            setattr(kind, name, gradient)
        flow.returned = run()

    def restore() -> None:
        for kind, name, member in replaced:
            if member is not None:
                setattr(kind, name, member)
            elif name in vars(kind):
                delattr(kind, name)

    before = NoFlow.count
    try:
        with_cleanup(watched, restore)
    except Exception as reason:  # raised by the user's code, which cannot handle symbols
        raise NoFlow(f"{type(reason).__name__}: {reason}") from None
    if NoFlow.count != before:
        raise NoFlow("it goes on where something else is done with gradients")
    if isinstance(flow.returned, _Symbol):
        raise NoFlow("it returns a gradient")
    if flow.seed is None:
        raise NoFlow("it does not give its root a gradient of 1")
    return flow


def _holders(classes: Iterable[NodeClass]) -> Iterable[tuple[type, str]]:
    """The classes of nodes, and their subclasses that have their own property for the gradient."""
    for known in classes:
        name = known.gradient.name
        pending = [known.kind]
        yield known.kind, name
        while pending:
            derived: list[type] = pending.pop().__subclasses__()
            pending += derived
            yield from ((kind, name) for kind in derived if name in vars(kind))


new: Any = object.__new__  # quicker than classes with an `__init__`


class _Symbol(Symbol):
    """Stands for a value that is not known as a number; any operation that needs the number raises NoFlow."""

    __slots__ = ()

    def refuse(self, *_: Any) -> NoReturn:
        """Called for operations other than adding up gradients times numbers."""
        raise NoFlow("it does something else with gradients than adding them up, times numbers")

    __str__ = __format__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __round__ = refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __floordiv__ = __mod__ = __divmod__ = refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rfloordiv__ = __rmod__ = __rdivmod__ = refuse

    def __hash__(self) -> int:
        raise NoFlow("it uses gradients as keys")

    def __bool__(self) -> bool:
        raise NoFlow("it asks whether a gradient is zero")

    def __eq__(self, other: object) -> Any:
        raise NoFlow("it compares gradients")

    def __pos__(self) -> Any:
        return self


class _Gradient(_Symbol):
    """The gradient of a node, from one assignment to the next.

    Attributes:
        is_current: whether it has not been assigned since.
    """

    __slots__ = ("is_current", "node")
    node: Node
    is_current: bool

    def __mul__(self, factor: Any) -> Any:
        if is_numeric(type(factor)) or isinstance(factor, (int, float)):
            return self.times(factor)
        return self.refuse()

    __rmul__ = __mul__

    def times(self, factor: Any) -> Any:
        made = new(_Contribution)
        made.gradient, made.factor, made.divides = self, factor, False
        return made

    def __truediv__(self, divisor: Any) -> Any:
        Symbol.divisions += 1
        if is_numeric(type(divisor)) or isinstance(divisor, (int, float)):
            return _Contribution(self, divisor, divides=True)
        return self.refuse()

    def __neg__(self) -> Any:
        return _Contribution(self, -1.0)

    def __add__(self, other: Any) -> Any:
        if type(other) in _TERMS:
            made = new(_Sum)
            made.gradient, made.terms = self, (other,)
            return made
        return self.refuse()

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) in _TERMS else self.refuse()


class _Contribution(_Symbol):
    """A number times the gradient of a node, or that gradient divided by a number."""

    __slots__ = ("divides", "factor", "gradient")

    def __init__(self, gradient: _Gradient, factor: Any, divides: bool = False) -> None:
        self.gradient, self.factor, self.divides = gradient, factor, divides

    def __neg__(self) -> Any:
        return _Contribution(self.gradient, -self.factor, self.divides)

    def __add__(self, other: Any) -> Any:
        return _Sum(other, (self,)) if type(other) is _Gradient else self.refuse()


_TERMS = (_Gradient, _Contribution)


class _Sum(_Symbol):
    """A gradient plus contributions, added one after the other."""

    __slots__ = ("gradient", "terms")

    def __init__(self, gradient: _Gradient, terms: tuple[Any, ...]) -> None:
        self.gradient, self.terms = gradient, terms

    def __add__(self, other: Any) -> Any:
        return _Sum(self.gradient, (*self.terms, other)) if type(other) in _TERMS else self.refuse()

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) in _TERMS else self.refuse()


def _is_number(content: Any, number: float) -> bool:
    return type(content) in (int, float) and content == number and math.copysign(1.0, content) > 0.0
