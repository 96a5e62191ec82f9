"""What can be shared and cached: functions of one pointer block, and what the block must contain.

A process that builds code for another one needs no more than this; kernels are in kernel.py.
"""

from __future__ import annotations

import base64
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...base import ffi
from ...ir.parameters import NATURAL, Layouts
from ..codegen.slot import Slot

if TYPE_CHECKING:
    from ..codegen.layout import Layout
    from ..pipeline.pipeline import Lowered


@dataclass
class Code:
    """The executable form of a Program.

    Attributes:
        slots: what each pointer of the block points at.
        scratch_size: elements of scratch memory.
        constants, tables, given: contents of the blocks that belong to the code.
        library: the loaded shared object, or None for Python code.
        source: C or Python.
        separate: whether it consists of the phases of a step, which are run separately.
        gradients: the regions of parameters whose gradients it reads or writes.
        may_be_late: whether calls can leave gradients until somebody looks at them.
        verdict: an output; where it is not 0.0, a call ends before it has written anything that can be seen.  -1 if
            none does that.
    """

    slots: list[Slot]
    scratch_size: int
    constants: array[float]
    tables: array[int]
    library: ffi.Library | None
    source: str
    facts: dict[str, Any] = field(default_factory=dict)
    layouts: Layouts = NATURAL
    separate: bool = False
    given: array[int] = field(default_factory=lambda: array("i"))
    gradients: tuple[int, ...] = ()
    may_be_late: bool = False
    verdict: int = -1

    @property
    def asks_first(self) -> bool:
        """Whether nothing is to be undone of a call that is for another path."""
        return self.verdict >= 0

    @classmethod
    def of_lowered(cls, lowered: Lowered, layout: Layout, source: str) -> Code:
        """Code for a freshly generated source, which is not loaded yet."""
        program, layouts = lowered.program, lowered.memory.layouts
        return cls(
            layout.slots, layout.scratch_size, program.constants, layout.tables, None, source, {}, layouts,
            program.separate, array("i", bytes(4 * len(program.given))), program.regions_of_gradients(),
            bool(program.gradients), program.verdict,
        )  # fmt: skip

    def metadata(self) -> dict[str, Any]:
        """What a cache entry holds besides the binary and the source, as JSON."""
        return {
            "slots": [list(slot) for slot in self.slots],
            "scratch_size": self.scratch_size,
            "constants": base64.b64encode(self.constants.tobytes()).decode("ascii"),
            "tables": base64.b64encode(self.tables.tobytes()).decode("ascii"),
            "facts": self.facts,
            "layouts": self.layouts.to_json(),
            "separate": self.separate,
            "given": list(self.given),
            "gradients": list(self.gradients),
            "may_be_late": self.may_be_late,
            "verdict": self.verdict,
        }

    @classmethod
    def of_metadata(cls, metadata: dict[str, Any], library: ffi.Library | None, source: str) -> Code:
        """Code from a cache entry."""
        slots = [Slot(*slot) for slot in metadata["slots"]]
        constants: array[float] = array(next(slot.format for slot in slots if slot.space == "constant"))
        constants.frombytes(base64.b64decode(metadata["constants"]))
        tables = array("i")
        tables.frombytes(base64.b64decode(metadata["tables"]))
        layouts = Layouts.of_json(metadata["layouts"])
        return cls(
            slots, metadata["scratch_size"], constants, tables, library, source, metadata["facts"], layouts,
            metadata["separate"], array("i", metadata["given"]), tuple(metadata["gradients"]), metadata["may_be_late"],
            metadata["verdict"],
        )  # fmt: skip
