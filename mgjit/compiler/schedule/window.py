"""Keep what a nest adds to at scattered places in an array in which its vectors lie side by side.

    for n: for c: for x: for d:          for n:
        r[n,c,x+d] += v[n,x] * w[c,d]        for p: for c: window[p,c] = r[n,c,p]
                                     ->      for c in lanes: for x: for d: window[x+d,c] += v[n,x] * w[c,d]
                                             for p: for c: r[n,c,p] = window[p,c]

The gradient of the input of a convolution is such a nest: images overlap, so that only channels are independent, and
their elements are far apart.

1. The window is every element that the loops inside the vector loop reach, whether they access it or not: places from
   the least to the greatest, each for all iterations of the vector loop.
2. It is copied right before these loops and back behind them.  The nest has no other access to the array, and different
   places for different elements, so that what is not accessed gets back what it was.
3. It has room for whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builders import nested
from ...ir.dependence import plain
from ...ir.domain import full_range
from ...ir.nest import Nest
from ...ir.program import Array, Index, Load, Loop, Node, Operand, PaddedRows, Reference, Statement, Term, statements
from ...ir.rewrite import rewrite_operands
from ...ir.substitute import Substitution
from .expand import Arrays

#: The most elements of a window.
_MOST_ELEMENTS = 1 << 17


class Window:
    """What loops of a nest reach of an array, for all iterations of its vector loop.

    Args:
        target: what the nest adds to.
        vector: its vector loop.
        inside: the loops of the nest that are in the window.
        lanes: of a vector.
    """

    def __init__(self, target: Reference, vector: Loop, inside: Sequence[Loop], lanes: int) -> None:
        self.target, self.vector = target, vector
        self.inner = [(loop, step) for loop, step in target.index.terms if loop in inside and loop is not vector]
        self.step = dict(target.index.terms)[vector]
        spans = [step * (loop.count - 1) for loop, step in self.inner]
        self.low = sum(span for span in spans if span < 0)
        self.places = sum(abs(span) for span in spans) + 1
        self.pitch = -(-vector.count // lanes) * lanes

    @property
    def elements(self) -> int:
        """How many it has, with room for whole vectors."""
        return self.places * self.pitch

    def array(self, arrays: Arrays) -> Array:
        """A new array for it."""
        array = arrays.new(self.elements, (self.places, self.vector.count))
        array.padded_rows = (PaddedRows(0, self.vector.count, self.pitch, self.places),)
        return array

    def hold(self, nodes: Sequence[Node], array: Array, copied: Substitution) -> tuple[list[Node], list[Node]]:
        """Let copies of nodes of the nest use the window, in place; the loops that copy it, before and behind them.

        Args:
            nodes: in the vector loop.
            array: of the window.
            copied: what has become of the loops of the nest.
        """
        moved = copied.target(self.target)
        assert isinstance(moved, Reference)
        vector = copied.copies[self.vector]
        inner = [(copied.copies[loop], step) for loop, step in self.inner]
        terms = [(vector, 1), *((loop, step * self.pitch) for loop, step in inner)]
        held = Reference(array, Index(-self.low * self.pitch, tuple(terms)))

        def replace(operand: Operand) -> Operand:
            return Load(held) if isinstance(operand, Load) and operand.reference == moved else operand

        for statement in statements(nodes):
            rewrite_operands(statement, replace)
            if statement.target == moved:
                statement.target = held
        outer = [term for term in moved.index.terms if term[0] is not vector and term not in inner]
        return self._copy(array, moved, outer, True), self._copy(array, moved, outer, False)

    def _copy(self, array: Array, moved: Reference, outer: Sequence[Term], into: bool) -> list[Node]:
        place, lane = Loop(self.places, []), Loop(self.vector.count, [])
        far = Reference(moved.array, Index(moved.index.base + self.low, (*outer, (lane, self.step), (place, 1))))
        near = Reference(array, Index(0, ((place, self.pitch), (lane, 1))))
        copy = Statement("copy", (Load(far),), near) if into else Statement("copy", (Load(near),), far)
        return nested([lane, place], [copy])


def window_of(nest: Nest, vector: Loop, inside: Sequence[Loop], lanes: int) -> Window | None:
    """The window of what a nest adds to along a vector loop; None if there is none, or it cannot be copied.

    Args:
        nest: its iterations of `vector` are independent.
        vector: of the band.
        inside: the loops of the nest that are in the window, `vector` among them.
        lanes: of a vector.
    """
    targets = {use.reference for use in nest.uses if use.writes and use.statement.update}
    for target in targets:
        steps = dict(target.index.terms)
        if steps.get(vector, 0) in (0, 1) or plain(target.index) is None or target.array.space == "input":
            continue
        if any(use.reference.array is target.array and use.reference != target for use in nest.uses):
            continue
        window = Window(target, vector, inside, lanes)
        low, high = full_range(target.index)
        # Loops that repeat one element at every turn are sums, which are better kept in registers.
        if not window.inner or window.elements > _MOST_ELEMENTS or window.places > abs(window.step):
            continue
        if low >= 0 and high < target.array.least:
            return window
    return None
