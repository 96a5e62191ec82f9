"""What tests say about objects that a trace has left behind."""

from __future__ import annotations

from typing import Any

from mgjit.engine.leaks import Traced
from tests.remains import living_traced, path_to


class Stand(Traced):
    __slots__ = ("__weakref__", "content")


KEPT: dict[str, Any] = {}


def test_01_found_with_the_way_to_them() -> None:
    """In a container of a module, and not after it has gone."""
    before = len(living_traced())
    KEPT["list"] = [1.0, (Stand(), 2.0)]
    found = [thing for thing in living_traced() if type(thing) is Stand]
    assert len(living_traced()) == before + 1
    assert path_to(found[0]).startswith(f"{__name__}.Stand <- ")
    del found
    KEPT.clear()
    assert len(living_traced()) == before
