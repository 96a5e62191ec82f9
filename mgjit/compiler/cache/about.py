"""Facts about an entry for people to read (`python -m mgjit cache list -v`); nothing depends on them."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._version import __version__
from ..toolchain import features

if TYPE_CHECKING:
    from ..toolchain.build import Built

NAME = "about"
"""Its key in the metadata of an entry."""


def about(step: str, parts: Mapping[str, str], built: Built) -> dict[str, Any]:
    """When, by which mgjit and with which compiler the entry was made, and the parts of its key.

    Args:
        step: a readable name of the step.
        parts: the parts of the key.
        built: how the binary was made.
    """
    processor = features.cpu_features()
    return {
        **origin(step, parts),
        "compiler": built.compiler.command,
        "version": built.compiler.version(),
        "flags": " ".join(built.flags),
        "seconds": round(built.seconds, 3),
        "processor": {"model": processor.model, "flags": list(processor.flags)},
    }


def origin(step: str, parts: Mapping[str, str]) -> dict[str, Any]:
    """When and by which mgjit an entry without a binary was made; arguments as of `about`."""
    return {
        "step": step,
        "created": int(time.time()),
        "mgjit": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "key": dict(parts),
    }
