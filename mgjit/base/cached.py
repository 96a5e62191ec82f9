"""Attributes that are computed once, without the lock that `functools.cached_property` has before Python 3.12.

A process that is forked while another thread computes one of them (code is built in threads) would wait for that lock
for ever.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """As `functools.cached_property`; two threads may both compute it."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            found = vars(instance)
            if self.attrname not in found:
                found[self.attrname] = self.func(instance)
            return found[self.attrname]
