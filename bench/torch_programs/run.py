"""Run one program with one library, and say as JSON what came of it: losses, and when each of them was there.

Run: python -m bench.torch_programs.run torch|mgjit PROGRAM STEPS [--same-draws] [--show]
"""

from __future__ import annotations

import time

BEGIN = time.perf_counter()

import argparse  # noqa: E402 - the clock comes first
import contextlib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

HERE = Path(__file__).resolve().parent / "programs"
#: What stands in import statements, and what stands there for mgjit.
_IMPORTS = (
    (r"^import torch$", "import mgjit\nfrom mgjit import tensor as torch"),
    (r"^import torch\.utils\.data$", ""),
    (r"^import torch\.autograd as (\w+)$", r"from mgjit.tensor import autograd as \1"),
    (r"^from torch\.utils\.data import", "from mgjit.data import"),
    (r"^from torch\.distributions\.\w+ import", "from mgjit.distributions import"),
    (r"^(import|from) torch\b", r"\1 mgjit"),
)
#: Each step is a function at the top level of its program.
_STEP = r"^(?=def \w+_step\()"


class Losses(list[float]):
    """Losses, with the times at which they were there."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def append(self, loss: float) -> None:
        """One more."""
        super().append(loss)
        self.times.append(time.perf_counter() - BEGIN)


def text_for(library: str, program: str) -> str:
    """The text of a program: as it is, or with other imports and compiled steps."""
    text = (HERE / f"{program}.py").read_text(encoding="utf-8")
    if library == "mgjit":
        for pattern, ours in _IMPORTS:
            text = re.sub(pattern, ours, text, flags=re.MULTILINE)
        text = re.sub(_STEP, "@mgjit.compile\n", text, flags=re.MULTILINE)
    return text


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["torch", "mgjit"])
    parser.add_argument("program")
    parser.add_argument("steps")
    parser.add_argument("--same-draws", action="store_true")
    parser.add_argument("--show", action="store_true", help="what the program prints")
    options = parser.parse_args()
    if options.library == "torch":
        import torch

        torch.set_default_dtype(torch.float64)
        if options.same_draws:
            from . import draws

            draws.share()
    sys.path.insert(0, str(HERE))
    sys.argv = [options.program, options.steps]
    names: dict[str, Any] = {"__name__": "__main__", "Losses": Losses}
    text = text_for(options.library, options.program).replace("losses = []", "losses = Losses()")
    file = Path(tempfile.mkdtemp()) / f"{options.program}.py"  # where its source is looked for
    file.write_text(text, encoding="utf-8")
    code = compile(text, str(file), "exec")
    shown = contextlib.nullcontext() if options.show else contextlib.redirect_stdout(io.StringIO())
    with shown, warnings.catch_warnings(record=not options.show) as caught:
        warnings.simplefilter("default")
        exec(code, names)  # noqa: S102 - our own programs
    found = {name: one.stats for name, one in names.items() if name.endswith("_step") and hasattr(one, "stats")}
    print(json.dumps({
        "losses": names["losses"], "times": names["losses"].times,
        "warnings": [str(one.message) for one in caught or ()],
        "steps": {name: [one.traces, one.calls, one.plain_calls, one.waiting_calls] for name, one in found.items()},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
