"""What code is scheduled for; processor.py finds out what it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """The processor that code is scheduled for.

    Attributes:
        lanes: numbers per vector; 1 if the compiler does not support vectors.
        registers: number of vector registers.
        fuses: whether a product and a sum are one operation (in fast mode only).
        is_fast: whether numbers may be computed in other ways that differ in last bits (fast mode).
        spreading: how many operations copy a number from memory to all lanes, beside the load.
        slack: how much more a register block may cost than the best one, if it is smaller. Each of its operations is a
            statement, and C compilers take long over many.
        neglected: the part of the work that nests may have together which keep their order: code that is to be there
            soon has plans for few nests, those with nearly all of the work.
    """

    lanes: int = 8
    registers: int = 32
    fuses: bool = False
    is_fast: bool = False
    spreading: float = 0.0
    slack: float = 1.0
    neglected: float = 0.0
