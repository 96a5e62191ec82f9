"""What tells of the world outside of a program is no constant of a kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning


def module_of_clocks(x: Any) -> Any:
    import time

    return x + time.time()


def renamed_module_of_clocks(x: Any) -> Any:
    import time as clocks

    return x + clocks.time()


def clock(x: Any) -> Any:
    from time import perf_counter as now

    return x + now()


def date(x: Any) -> Any:
    from datetime import datetime

    return x + datetime.now().timestamp()


def used_time(x: Any) -> Any:
    return x + os.times().user + time.thread_time()


def written(x: Any) -> Any:
    with open(os.devnull, "w", encoding="utf-8") as file:
        return x + file.fileno()


def folder(x: Any) -> Any:
    return x + len(os.listdir("."))


@pytest.mark.parametrize("step", [module_of_clocks, renamed_module_of_clocks, clock, date, used_time, folder, written])
def test_01_what_tells_of_the_world_outside(step: Callable[[Any], Any]) -> None:
    """Is no constant of the kernel, also where the step itself imports it."""
    compiled = mgjit.compile(step, background=False)
    with pytest.warns(PlainWarning, match="may answer something else at each call"):
        compiled(1.0)
    assert compiled.stats.plain_calls == 1


def added(x: Any) -> Any:
    found = 1.0
    found += float(os.environ.get("MGJIT_NOBODY", "2.0")) * x
    return found


def test_02_variables_that_are_added_to() -> None:
    """They are operands, whatever is added."""
    compiled = mgjit.compile(added, background=False)
    assert [compiled(x) for x in (1.0, 2.0, 3.0)] == [3.0, 5.0, 7.0]
