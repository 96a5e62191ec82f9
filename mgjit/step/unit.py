"""A function that is compiled by itself, within plain calls of a step that calls it for many samples.

    loss = sum(loss_of(name) for name in batch) * (1 / len(batch))        # batches of any combination of lengths
    loss.backward()

1. Two steps are made of it: one that returns the number, `loss_of(name).data`, and one that computes it again and
   runs `backward()` from a given gradient, `(loss_of(name) * gradient).backward()`.  They only read numbers of
   parameters, and assign nothing but gradients; a trace that does anything else makes no kernel.
2. A call of the function, in a plain call of the step, is the first of these steps.  Its result is a node of the user's
   class with one operand, a stand-in for the graph.  When `backward()` gets there, it adds `1.0 * node.grad` to the
   gradient of that operand: then the second step runs.  In the usual style of graphs, the nodes behind a result
   contribute one after the other, right after it, so this is the place where plain Python would do what it does.
3. Plain Python would not compute the forward part again, with what the parameters are by now.  So the numbers that it
   was computed with are compared.  If they have changed, or gradients arrive a second time, or there is no kernel any
   more, the graph is made as plain Python would have, from those numbers, and gradients flow through it (`Graph`).
   If something else has changed that the function reads, the same is done if a trace shows that it makes no difference,
   as of a dict that keeps what depends on a length; otherwise it is an error.
4. Until both steps have a kernel for the lengths of the arguments, the function runs as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import get_ident
from time import thread_time
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakValueDictionary

from ..base.interruption import with_cleanup
from ..base.lookup import copy_of
from ..compiler.build.options import StepOptions
from ..engine.leaks import PlainCall
from ..engine.progress import is_tracing
from ..errors import MgjitError, UnsupportedError, user_location
from ..runtime.detached import Detached, attach_all
from ..tracing.autograd.node_class import NodeClass
from ..tracing.surroundings.shapes import attributes
from .unit_choice import Choice, is_inner, is_plain
from .unit_graph import Graph, copied, stand_in_class
from .unit_steps import NOTHING, UnitStep

#: By number; the code that is put in the place of a function looks up its unit here.
UNITS: WeakValueDictionary[int, Unit] = WeakValueDictionary()
NAME_OF_UNITS = "__mgjit_units__"
#: The file name of that code: inside the package, so that error locations skip its frames.
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<units>")
_SOURCE = """
def forward({names}):
    return checked(unit({names})).{data}

def backward(gradient_, {names}):
    (unit({names}) * gradient_).backward()
"""


class Unit:
    """A function that is compiled by itself.

    Args:
        choice: which one. options: of the step that calls it.

    Attributes:
        refused: why it is left to plain Python after all; empty if it is not.
        forward, backward: its two steps.
    """

    def __init__(self, choice: Choice, options: StepOptions) -> None:
        function: Any = choice.function
        self._known = choice.known
        assert self._known.style is not None
        self._style, self._ratio = self._known.style, choice.ratio
        self._function, self._code = function, function.__code__
        self.name = function.__name__
        self.original = copy_of(function)
        self.refused = ""
        self._arity = function.__code__.co_argcount
        names = function.__code__.co_varnames[: self._arity]
        space = {"__name__": function.__globals__.get("__name__"), "unit": self.original,
            "checked": _checking(self._known, self.name)}  # fmt: skip
        source = _SOURCE.format(names=", ".join(names), data=self._known.data.name)
        exec(compile(source, f"<{self.name} by itself>", "exec"), space)  # noqa: S102 - of names that are identifiers
        options = replace(
            options, code=replace(options.code, grads=True), static=frozenset(), limit=None, warn_after=sys.maxsize,
            background=True,
        )  # fmt: skip
        self.forward = UnitStep(_named(space["forward"], self.name), options, False, self)
        self.backward = UnitStep(_named(space["backward"], f"{self.name}, backward"), options, True, self)
        self._containers = [type(getattr(choice.example, n)) for n in (self._style.operands, self._style.derivatives)]
        self._stand_in = stand_in_class(self._known.kind, self._known.gradient.name)
        UNITS[id(self)] = self
        self._left = 0  # results to which no gradient has flown yet
        self._detached: Detached | None = None
        self._thread = 0  # in which the step runs; calls by others are none of its calls
        self._replacement = _replacement(id(self), len(function.__code__.co_freevars))

    def during(self, work: Callable[[], Any]) -> Any:
        """Return `work()`, run while calls of the function come here."""
        function = self._function
        if self.refused or function.__code__ is not self._code:
            return work()
        self.forward.look_at_everything()  # plain Python may have changed anything

        def run() -> Any:
            self._thread, self._left = get_ident(), 0
            function.__code__ = self._replacement
            return work()

        def put_back() -> None:
            if function.__code__ is self._replacement:
                function.__code__ = self._code
            if self._detached is not None:
                self._detached.end()

        return with_cleanup(run, put_back)

    # ---- forward ------------------------------------------------------------------------------------------------

    def call(self, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """A call of the function."""
        if self._function.__defaults__ != self.original.__defaults__:
            self.refused, self.original.__defaults__ = "its defaults have changed", self._function.__defaults__
        defaults = self.original.__defaults__ or ()
        given = (*arguments, *defaults[len(arguments) - self._arity + len(defaults) :])
        is_usual = not named and self._arity - len(defaults) <= len(arguments) <= self._arity
        is_refused = self.refused or self._thread != get_ident() or is_tracing()
        if is_refused or not is_usual or not all(map(is_plain, given)):
            return self.original(*arguments, **named)
        try:
            keys = [self.backward.missing((0.5, *given)), None]
            if self.backward.is_settled():  # the forward part works in the same memory
                keys[1] = self.forward.missing(given)
            if keys[1] is not None:
                self.backward.look_at_everything()  # both refer to the same things
            number = NOTHING if any(keys) else self.forward(*given)
            if type(number) is float:
                self._left += 1
                return self._node(number, Graph(copied(given), self.forward.memory()))
        except (MgjitError, PlainCall) as error:
            if not isinstance(error, IndexError):
                self.refused = str(error)
            return self.original(*arguments)
        started = thread_time()
        result = self.original(*arguments)
        seconds = thread_time() - started
        for step, key, share in zip((self.backward, self.forward), keys, (self._ratio, 1.0)):
            if key is not None:
                step.note_plain(key, share * seconds)
        return result

    def _node(self, number: float, graph: Graph) -> Any:
        """The result of a call: a node with one operand, the stand-in for its graph."""
        kind, style = self._known.kind, self._style
        node, like, stand_in = kind(number), kind(number), object.__new__(self._stand_in)
        for name in self._attributes(like):
            setattr(stand_in, name, getattr(like, name))
        stand_in.unit_, stand_in.graph_ = self, graph
        setattr(node, style.operands, self._containers[0]((stand_in,)))
        setattr(node, style.derivatives, self._containers[1]((1.0,)))
        return node

    def _attributes(self, node: Any) -> Iterator[str]:
        return (name for name in attributes(node) if name != self._known.gradient.name)

    # ---- backward -----------------------------------------------------------------------------------------------

    def flow(self, graph: Graph, gradient: Any) -> None:
        """Let a gradient flow through the graph behind a result."""
        attach_all()
        if is_tracing():
            raise PlainCall(f"it uses the graph behind a result of {self.name}()")
        is_same = self.forward.holds(graph.arguments)
        if not is_same and not self.backward.traces_the_same((0.5, *graph.arguments)):
            raise UnsupportedError(
                f"{user_location()}: something that {self.name}() reads, other than numbers of parameters, has changed "
                f"between the call of {self.name}() and backward(), and {self.name}() is compiled by itself. Change it "
                "before the call, or after backward()."
            )
        if is_same and not graph.gradients and type(gradient) is float and graph.memory.is_unchanged():
            graph.gradients.append(gradient)
            if self._has_flown(gradient, graph):
                self._left -= 1
                if not self._left:  # the rest of the step is plain Python, such as updates of parameters
                    self._detached = self.backward.release()
                return
            graph.gradients.pop()
        graph.flow(lambda: self.original(*graph.arguments), gradient, self._style)

    def _has_flown(self, gradient: float, graph: Graph) -> bool:
        """Let a gradient flow by compiled code; returns whether there is any."""
        try:
            return self.backward(gradient, *graph.arguments) is not NOTHING
        except MgjitError as error:
            self.refused = str(error)
            return False


def _checking(known: NodeClass, name: str) -> Callable[[Any], Any]:
    """Make what hands on a result if it is a new node; guards see what it refers to, so that is not the unit."""

    def checked(result: Any) -> Any:
        if not is_inner(result, known):
            raise PlainCall(f"{name} returns no node of its own")
        return result

    return checked


def _named(function: FunctionType, name: str) -> FunctionType:
    function.__name__ = function.__qualname__ = name
    return function


def _replacement(number: int, captured: int) -> CodeType:
    """The code that is put in the place of a function that captures so many variables."""
    names = [f"captured_{k}" for k in range(captured)]
    source = (
        f"def outer({', '.join(names)}):\n"
        " def function(*arguments, **named):\n"
        f"  return {NAME_OF_UNITS}[{number}].call(arguments, named)\n"
        f"  {', '.join(['0', *names])}\n"
        " return function\n"
    )
    space: dict[str, Any] = {}
    exec(compile(source, _FILE, "exec"), space)  # noqa: S102 - of numbers
    return space["outer"](*names).__code__  # type: ignore[no-any-return]
