"""Random Programs whose loops have bounds: triangles both ways, by several loops, by tables, without iterations.

They are those of `tests/nests.py` otherwise: carried values, sums, choices of the first iteration, registers that cross
loops.  Indices are inside of arrays in the iterations that are executed, and often only there.
"""

from __future__ import annotations

import random
from typing import Any

from mgjit.ir.domain import extent
from mgjit.ir.program import Array, Bound, Index, Loop, Program, TableEntry, TargetChoice, statements
from tests.handmade import SPECIAL
from tests.nests import _TABLE, _Writer

#: Numbers of iterations in the tables: from here on, for counts 1, 2, ...
_LARGEST = 12
_EACH = 32


class _BoundedWriter(_Writer):
    """Draws Programs with bounds."""

    def program(self) -> Program:
        made = super().program()
        made.tables.extend(self.draw.randrange(count + 1) for count in range(1, _LARGEST + 1) for _ in range(_EACH))
        for statement in (s for _, nodes in made.phases for s in statements(nodes)):
            target = statement.target
            if isinstance(target, TargetChoice) and not statement.update:  # only an update may write nowhere
                statement.target = TargetChoice(target.loop, target.first or target.rest, target.rest or target.first)
        return made

    def new_loop(self, around: tuple[Loop, ...]) -> Loop:
        loop = super().new_loop(around)
        if around and self.draw.random() < 0.7:
            self.draw.choice((self.triangle, self.triangle, self.look_up, self.several))(loop, around)
        return loop

    def triangle(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """As many iterations as a loop around has run, or has to run, more or less."""
        outer = self.draw.choice(around)
        step = self.draw.choice((1, 1, 1, -1, -1, 2))
        base = self.draw.choice((0, 0, 1, 1, 2)) - min(0, step * (outer.count - 1))
        self.within(loop, base, ((outer, step),), around)

    def several(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """By all loops around."""
        terms = tuple((outer, self.draw.choice((1, -1, 1))) for outer in around)
        base = self.draw.choice((0, 1)) - sum(min(0, step * (outer.count - 1)) for outer, step in terms)
        self.within(loop, base, terms, around)

    def within(self, loop: Loop, base: int, terms: tuple[tuple[Loop, int], ...], around: tuple[Loop, ...]) -> None:
        """Bounds that leave something to be executed, with a count that is large enough, and now and then too large."""
        most = base + sum(max(0, step * (outer.count - 1)) for outer, step in terms)
        if 0 < most <= 2 * _LARGEST:
            loop.count, loop.bound = most + self.draw.choice((0, 0, 0, 1)), Bound(base, terms)

    def look_up(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """By a table, by one or two loops; a triangle besides now and then."""
        outer = self.draw.choice(around)
        if loop.count <= _LARGEST and outer.count <= _EACH // 2:
            offset = 2 * _TABLE + (loop.count - 1) * _EACH + self.draw.randrange(_EACH // 2)
            loop.bound = Bound(0, (), TableEntry(offset, ((outer, 1),)))
            if self.draw.random() < 0.2:
                loop.count, loop.bound = loop.count + outer.count - 1, loop.bound._replace(terms=((outer, 1),))

    def index(self, array: Array, loops: tuple[Loop, ...]) -> Index:
        if self.draw.random() < 0.7 or not any(loop.bound for loop in loops):
            return super().index(array, loops)
        length = array.shape[-1] if array.shape else 8
        for _ in range(10):
            steps = (1, 1, -1, length, length + 1, length - 1, 0)
            terms = tuple((loop, step) for loop in loops for step in (self.draw.choice(steps),) if step)
            found = None
            if not any(loop.bound is not None and loop.bound.table is not None for loop in loops):
                found = extent(0, terms, loops, ())
            if found is not None and found[1] - found[0] < array.size:
                return Index(-found[0] + self.draw.randrange(array.size - (found[1] - found[0])), terms)
        return super().index(array, loops)


def random_bounded(seed: int, plain: bool = False) -> Program:
    """The Program of a seed.

    Args:
        seed: any number.
        plain: only affine accesses, which most passes can do more with.
    """
    return _BoundedWriter(seed, plain).program()


def contents(arrays: list[Array], seed: int) -> dict[Array, list[Any]]:
    """Memory to run a Program on; every other seed has infinities, nans and zeros of both signs."""
    draw = random.Random(seed)
    return {
        array: [
            draw.choice(SPECIAL) if seed % 2 and draw.random() < 0.3 else draw.uniform(-2.0, 2.0)
            for _ in range(array.size)
        ]
        for array in arrays
    }
