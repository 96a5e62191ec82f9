"""Observe what a class's own `backward()` adds to which gradient.

While it runs, the attribute that holds gradients is a property of the class: reading the gradient of a node gives a
symbol, and what `backward()` computes from symbols is interpreted as follows:

1. A number times the gradient of a node, or that gradient divided by a number, is a contribution of that node.
2. Assigning to a gradient its own symbol plus contributions makes an edge of the flow for each of them: from the
   contributing node, with the number as factor, to the node that is assigned to.
3. Zero may be assigned to a gradient that has received nothing yet, and 1 to that of the root, once.
4. A symbol stands for the gradient at the time when it was read, and is invalid once that has changed.
5. Functions that only do 1 and 2, such as the closures of micrograd, tell so instead (source/contributions.py).

Anything else (clipping a gradient, multiplying two, comparing one) cannot be expressed as such edges and raises
`NoFlow`, as does using symbols after the pass.  Nothing is assumed about `backward()` itself: it may be recursive or
not, use closures or lists of local derivatives, and visit nodes in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, islice, repeat
from operator import attrgetter, le
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

from ...base.interruption import with_cleanup
from ...engine.leaks import PlainCall, Symbol, Traced, is_numeric
from ..source.contributions import Contribute, observers

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
        "candidates", "edges", "has_gradient", "is_parameter", "known", "operand", "senders", "thing", "value",
    )  # fmt: skip
    operand: int
    value: int
    is_parameter: bool
    has_gradient: bool

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.known: Any = None
        self.edges: Sequence[Any] = ()
        self.senders: list[int] = []
        self.candidates: Sequence[Node] = ()


class Given:
    """Where contributions come from that are numbers already: its gradient is 1, and they are the factors."""


#: What contributes to the gradients of which things, with which factors; by thing, whether its gradient is multiplied
#: from the right ("*") or left ("r"), or divided ("/").
Step = tuple[Any, Sequence[Any], Sequence[Any], str]


@dataclass
class Flow:
    """What a backward pass does.

    Attributes:
        root: the node whose gradient is 1.
        steps: the contributions of things, in order.
        operands_first: the same the other way around, if each thing contributes only once; otherwise None.
        zeroed: the objects whose gradients were set to zero before they received anything, by identity.
        seed: the 1 that was assigned to the root's gradient; None before that.
        returned: the result of `backward()`.
        nodes: by identity of the object.
        given: the source of contributions that are numbers already; None if there are none.
    """

    root: Any
    steps: list[Step] = field(default_factory=list)
    operands_first: Iterable[Step] | None = None
    zeroed: dict[int, Any] = field(default_factory=dict)
    seed: Any = None
    returned: Any = None
    nodes: dict[int, Node] = field(default_factory=dict)
    given: Given | None = None

    @classmethod
    def along(cls, edges: Iterable[Edge], given: Given) -> Flow:
        """The flow along edges from object to object."""
        steps: list[Step] = [
            (source, (target,), (factor,), "/" if divides else "*") for source, target, factor, divides in edges
        ]
        return cls(None, steps, given=given)

    @classmethod
    def through(cls, things: Sequence[Any], style: GraphStyle, root: Any = None) -> Flow:
        """The flow of what objects contribute to the gradients of their operands, the last object first."""
        operands = list(map(attrgetter(style.operands), things))
        computed = list(compress(things, operands))
        derivatives = map(attrgetter(style.derivatives), computed)
        steps = zip(computed, filter(None, operands), derivatives, repeat(""))
        return cls(root, operands_first=steps, seed=None if root is None else style.seed)

    @property
    def edges(self) -> Iterator[Edge]:
        """The contributions, from Node to Node."""
        node = self.node
        for thing, targets, factors, forms in self.steps:
            source = node(thing)
            for target, factor, form in zip(targets, factors, forms):
                yield source, node(target), factor, form == "/"

    def node(self, thing: Any) -> Node:
        """The node of an object."""
        known = self.nodes.get(id(thing))
        if known is None:
            known = self.nodes[id(thing)] = Node(thing)
        return known


class _Observer:
    """Notes what reads and assigns gradients while a flow is observed."""

    def __init__(self, flow: Flow) -> None:
        self._flow, self._root, self._steps = flow, flow.root, flow.steps
        self._last: Any = None  # what has contributed in the last step
        self._current: dict[int, _Gradient] = {}  # the symbols of gradients as they are now, by object
        self._got: set[int] = set()  # whose gradients the first `_seen` steps contribute to
        self._seen = 0
        self._kinds: dict[str, set[type]] = {}  # by name of an attribute, the classes for which `observes` is true
        self._numbers: set[type] = {bool, int, float}  # the types of factors that are certain to be numbers

    def read(self, thing: Any) -> _Gradient:
        """The symbol of a gradient."""
        found = self._current.get(id(thing))
        if found is None:
            found = self._current[id(thing)] = new(_Gradient)
            found.thing, found.is_current = thing, True
        return found

    def assign(self, thing: Any, content: Any) -> None:
        """Note what is assigned to the gradient of an object."""
        if type(content) is _Sum:
            gradient, terms = content.gradient, content.terms
            if gradient.thing is not thing and len(terms) == 1 and type(terms[0]) is _Gradient:
                gradient, terms = terms[0], (gradient,)  # a + b is b + a
            if gradient.thing is not thing:
                raise NoFlow("it assigns the gradient of another node")
            for term in terms:
                if type(term) is _Contribution:
                    given, factor, form = term.gradient, term.factor, "/" if term.divides else "*"
                else:
                    given, factor, form = term, 1.0, "*"
                if not (given.is_current and gradient.is_current):
                    raise NoFlow(_STALE)
                self._note(given.thing, (thing,), (factor,), form)
        else:
            self._start(thing, content)
        symbol = self._current.pop(id(thing), None)
        if symbol is not None:
            symbol.is_current = False

    def _note(self, source: Any, targets: Sequence[Any], factors: Sequence[Any], forms: str) -> None:
        if source is self._last:
            _, earlier, its_factors, its_forms = self._steps.pop()
            targets, factors, forms = (*earlier, *targets), (*its_factors, *factors), its_forms + forms
        self._last = source
        self._steps.append((source, targets, factors, forms))

    def _start(self, thing: Any, content: Any) -> None:
        flow = self._flow
        may_start = thing is not self._root or flow.seed is None
        if type(content) is _Gradient and content.thing is thing:
            if not content.is_current:
                raise NoFlow(_STALE)
        elif may_start and _is_number(content, 0.0) and not self._has_got(thing):
            flow.zeroed[id(thing)] = thing
        elif may_start and thing is self._root and _is_number(content, 1.0) and not self._steps:
            flow.seed = content
        else:
            raise NoFlow("it assigns gradients something else than sums of gradients times numbers")

    def _has_got(self, thing: Any) -> bool:
        """Whether something has been added to the gradient of an object."""
        for _, targets, _, _ in islice(self._steps, max(self._seen - 1, 0), None):  # the last one may have grown
            self._got.update(map(id, targets))
        self._seen = len(self._steps)
        return id(thing) in self._got

    # ---- what code that only adds to gradients tells (source/contributions.py) -------------------------

    def observes(self, name: str, source: Any, targets: Sequence[Any]) -> Contribute | None:
        """`contribute`, if the attribute of these objects is only a gradient, and the targets are other objects."""
        kinds = self._kinds.get(name, ())
        for target in targets:
            if target is source or (type(target) not in kinds and not self._knows(type(target), name)):
                return None
        return self.contribute if type(source) in kinds or self._knows(type(source), name) else None

    def _knows(self, kind: Any, name: str) -> bool:
        """Whether reading and assigning an attribute of objects of a class calls `read` and `assign`, nothing else."""
        member = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        is_plain = kind.__getattribute__ is object.__getattribute__ and kind.__setattr__ is object.__setattr__
        if is_plain and getattr(member, "fget", None) == self.read:
            self._kinds.setdefault(name, set()).add(kind)
            return True
        return False

    def contribute(self, forms: str, source: Any, targets: Sequence[Any], factors: Sequence[Any]) -> None:
        """Note contributions of an object to the gradients of others, as by assignments one after the other."""
        if not self._numbers.issuperset(map(type, factors)):
            self._numbers.update(kind for kind in map(type, factors) if is_numeric(kind) and issubclass(kind, Traced))
            if not self._numbers.issuperset(map(type, factors)):
                self._compute(forms, source, targets, factors)
                return
        if "/" in forms:
            Symbol.divisions += 1
        if self._current:
            for symbol in map(self._current.pop, map(id, targets), repeat(None)):
                if symbol is not None:
                    symbol.is_current = False
        self._note(source, targets, factors, forms)

    def _compute(self, forms: str, source: Any, targets: Sequence[Any], factors: Sequence[Any]) -> None:
        """As `contribute`, where only the factors themselves know what multiplying them with symbols is."""
        for form, target, factor in zip(forms, targets, factors):
            before, gradient = self.read(target), self.read(source)
            if form == "*":
                added = factor * gradient
            else:
                added = gradient * factor if form == "r" else gradient / factor
            self.assign(target, before + added)

    # ---- the end ------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Check that every gradient is complete before it is used."""
        flow, steps, order = self._flow, self._steps, range(len(self._steps))
        sources = [id(source) for source, _, _, _ in steps]
        targets = [targets for _, targets, _, _ in steps]
        places = chain.from_iterable(map(repeat, order, map(len, targets)))
        got = dict(zip(map(id, chain.from_iterable(targets)), places))  # the last step that adds to each
        gave = dict(zip(reversed(sources), reversed(order)))  # the first step of each
        is_once = len(gave) == len(steps)
        gave.pop(id(self._root), None)
        if not got.keys() >= gave.keys():
            raise NoFlow("it uses the gradients of nodes that the root does not depend on")
        if id(self._root) in got or any(map(le, gave.values(), map(got.__getitem__, gave))):
            raise NoFlow("it uses a gradient before all contributions to it are there")
        if is_once:
            flow.operands_first = reversed(steps)


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
    observer, thread = _Observer(flow), get_ident()
    outer = observers.get(thread)
    gradient = property(observer.read, observer.assign)
    replaced = [(kind, name, vars(kind).get(name)) for kind, name in _holders(classes)]

    def watched() -> None:
        for kind, name, _ in replaced:
            setattr(kind, name, gradient)
        observers[thread] = observer
        flow.returned = run()

    def restore() -> None:
        if outer is None:
            observers.pop(thread, None)
        else:
            observers[thread] = outer
        for kind, name, member in replaced:
            if member is not None:
                setattr(kind, name, member)
            elif name in vars(kind):
                delattr(kind, name)

    before = NoFlow.count
    try:
        with_cleanup(watched, restore)
    except PlainCall:  # of sides, which assign to no property
        raise NoFlow("it assigns gradients under a condition on a traced number") from None
    except Exception as reason:  # raised by the user's code, which cannot handle symbols
        raise NoFlow(f"{type(reason).__name__}: {reason}") from None
    if NoFlow.count != before:
        raise NoFlow("it goes on where something else is done with gradients")
    if isinstance(flow.returned, _Symbol):
        raise NoFlow("it returns a gradient")
    if flow.seed is None:
        raise NoFlow("it does not give its root a gradient of 1")
    observer.finish()
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
        thing: the node.
        is_current: whether it has not been assigned since.
    """

    __slots__ = ("is_current", "thing")
    thing: Any
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
