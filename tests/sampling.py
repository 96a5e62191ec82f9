"""Tables of cases at full length take long: of each, every run has a sample; `pytest -m long` runs the rest.

A test that is marked `sampled` has several parameters.  Its sample contains each value of each of them; with
`sampled(pairs=True)` each pair of values of two of them, as most defects need no more than two (Kuhn, Wallace, Gallo,
IEEE Trans. Software Engineering 30, 2004).  `sampled(one_of=N)` takes one case of N from a table of one parameter.

1. The cases of a test are put in an order that mixes their parameters, and is the same in every run.
2. A case joins the sample if it has a value, or pair, that the sample does not have yet.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations
from typing import Any

import pytest


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Mark as `long` what is not in the samples."""
    tables: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and hasattr(item, "callspec"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for cases in tables.values():
        _mark_long_of_table(sorted(cases, key=_mixed), cases[0].get_closest_marker("sampled").kwargs)


def in_part(item: pytest.Item, part: str) -> bool:
    """Whether a test belongs to part K of N, where `part` is "K/N"; the parts mix all files and tables."""
    place, count = map(int, part.split("/"))
    if not 1 <= place <= count:
        raise pytest.UsageError(f"--part {part}: K/N with K from 1 to N is needed")
    return int(_mixed(item), 16) % count == place - 1


def _mixed(item: pytest.Item) -> str:
    return hashlib.sha256(item.nodeid.encode("utf-8", "replace")).hexdigest()


def _mark_long_of_table(cases: list[Any], choice: dict[str, Any]) -> None:
    seen: set[Hashable] = set()
    for place, case in enumerate(cases):
        if "one_of" in choice:
            is_new = place % choice["one_of"] == 0
        else:
            shown = set(_shown(case.callspec.params, bool(choice.get("pairs"))))
            is_new = not shown <= seen
            seen |= shown
        if not is_new:
            case.add_marker("long")


def _shown(parameters: dict[str, Any], pairs: bool) -> Iterator[Hashable]:
    """What a case shows: the values of its parameters, or the pairs of them."""
    values = [(name, value if _is_plain(value) else id(value)) for name, value in sorted(parameters.items())]
    return combinations(values, 2) if pairs and len(values) > 1 else iter(values)


def _is_plain(value: Any) -> bool:
    """Whether equal values are the same one of a table; others are so if they are one object."""
    return isinstance(value, (str, int, float, tuple)) and all(map(_is_plain, value if type(value) is tuple else ()))
