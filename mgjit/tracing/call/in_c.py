"""Functions for lists in C, where there are any: an extension (runtime/vectorcall.py) comes later, or never."""

from __future__ import annotations

from typing import Any


class InC:
    """What has functions for lists in C.

    Attributes:
        extension: that for quick calls, which sets this.
    """

    extension: Any = None


in_c = InC()
