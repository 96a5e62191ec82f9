"""Code that kernels of one step share, whose calls differ in the lengths of sequences (lengths/family.py).

1. The first lengths get code of their own.  `Kin` keeps their traces.  When another length comes, they become what they
   would be if they were made now, when their parameters are in the storage of a kernel (`Alone`).
2. When the next trace and one of these are a family, one Program is built for both, and for all lengths in between and
   somewhat beyond.  It is an entry of the cache of its own.
3. A later trace is proved to be a member, which takes about as long as lifting it; its code is that library, with a
   number and constants of its own.  On disk, this is an entry without a library, which names that of the family.
4. What is no member gets code of its own.  When that is because it is longer, the next family has room for it.
"""

from __future__ import annotations

import base64
import pickle
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...ir.opcodes import PARAMETER, leaf
from ...ir.trace import BOUND_BASE, InputRegion, Trace

if TYPE_CHECKING:
    from ..lengths.family import Row
    from .code import Code
    from .options import Options

#: How many families are tried.
_MOST_FAMILIES = 3
#: After so many traces that are no family with an earlier one, none is looked for until a longer one comes.
_MOST_FAILURES = 3
#: How many traces that have code of their own a later one is compared with.
_MOST_ALONE = 3
#: Traces of fewer records are built alone: that does not take long.
FEWEST_RECORDS = 100
#: So are those of more: to keep them takes 12 bytes for each.
_MOST_RECORDS = 4_000_000

#: The names of what is special in the metadata of entries: of a family, and of a member.
FAMILY, LIBRARY = "family", "library"
#: The names of facts: that a trace has been compared with others in vain; with whom code is shared, or why it is not.
FAILED, SHARING = "failed", "sharing"


@dataclass
class Alone:
    """A trace with code of its own, kept for those of other lengths.

    Attributes:
        trace: all parameters of which are in the storages of kernels.
        inputs: the regions of its inputs.
        shift: from the leaves that its operands have for new parameters to those for this storage; 0 when that is done.
    """

    trace: Trace
    inputs: Sequence[InputRegion]
    shift: int = 0

    def bound(self) -> Trace:
        """The trace as it would be made now: it takes longer than a call to find out, so not before it is needed."""
        if self.shift:
            self.trace, self.shift = self.trace.shifted(self.shift), 0
        return self.trace


@dataclass
class Kin:
    """What earlier kernels of a step leave for later ones.

    Attributes:
        alone: traces with code of their own: the longest one and the last ones, of different lengths.
        failures: how many have been compared with others in vain, since the longest one.
        families: the keys of the code that members share, with the options of the code, as texts.
    """

    alone: list[Alone] = field(default_factory=list)
    failures: int = 0
    families: list[tuple[str, str]] = field(default_factory=list)

    def note(self, trace: Trace, inputs: Sequence[InputRegion], storage: Any, facts: dict[str, Any]) -> None:
        """A kernel has got its code.

        Args:
            trace: of it.
            inputs: the regions of its inputs.
            storage: where its new parameters are now.
            facts: of the code.
        """
        family = tuple(facts.get(FAMILY, ()))
        if not family:
            is_longest = all(len(trace) > len(one.trace) for one in self.alone)
            self.failures = 0 if is_longest else self.failures + facts.get(FAILED, 0)
            if FEWEST_RECORDS <= len(trace) <= _MOST_RECORDS and not (trace.new_parameters and trace.bound_storages):
                known = [*(one for one in self.alone if len(one.trace) != len(trace)), kept(trace, inputs, storage)]
                longest = max(range(len(known)), key=lambda k: len(known[k].trace))
                others = range(len(known))[1 - _MOST_ALONE :] if self.failures < _MOST_FAILURES else ()
                self.alone = [known[k] for k in sorted({longest, *others})]
        elif family not in self.families:
            self.families = [*self.families, family][-_MOST_FAMILIES:]

    def others(self, trace: Trace) -> list[Alone]:
        """The traces that are kept, of other lengths: one that is as long is perhaps the same, with other code."""
        hopeless = self.failures >= _MOST_FAILURES  # but for longer ones, which may show loops that others do not
        return [
            one for one in self.alone if len(one.trace) < len(trace) or (len(one.trace) > len(trace) and not hopeless)
        ]

    def keys(self, options: Options) -> list[str]:
        """The families of such code, the latest first."""
        return [key for other, key in reversed(self.families) if other == repr(options)]


def kept(trace: Trace, inputs: Sequence[InputRegion], storage: Any) -> Alone:
    """A trace to be kept, without the parameters of the user's program."""
    if not trace.new_parameters:
        return Alone(trace, inputs)
    shift = leaf(PARAMETER, BOUND_BASE) - leaf(PARAMETER, trace.new_parameters[0][0])
    return Alone(replace(trace, new_parameters=[], bound_storages=[(BOUND_BASE, storage)]), inputs, shift)


def as_metadata(family: object) -> str:
    """A family as a text in the metadata of its entry."""
    return base64.b64encode(pickle.dumps(family, protocol=pickle.HIGHEST_PROTOCOL)).decode("ascii")


def of_metadata(text: str) -> Any:
    """The family of such a text, which was written by this version of mgjit, into a file that only this user writes."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301


def code_of_row(shared: Code, row: Row) -> Code:
    """The code of a member: that of the family, and what it is given."""
    return replace(shared, given=array("i", [row.number]), constants=row.constants, facts=dict(shared.facts))
