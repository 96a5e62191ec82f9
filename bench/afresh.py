"""A program with code of its own, as in a process of its own.

CPython specialises code for the objects that it meets.  A plain and a decorated program that share code, such as the
methods of their classes, would disturb each other, since the objects of the decorated one may have another layout.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def afresh(file: str) -> Any:
    """The module of a file, executed anew."""
    name = f"{Path(file).stem}_{sum(known.startswith(Path(file).stem) for known in sys.modules)}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
