"""The command line of a hunt: random programs by their seeds, of which those that fail are told, and kept."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mgjit.step.leaving import Leaving
from mgjit.tracing.surroundings import guard


def hunt(description: str | None, fails: Callable[..., str], source: Callable[[int], str]) -> int:
    """Run what the command line asks for; returns the exit code.

    Args:
        description: of the hunt.
        fails: what is wrong about the program of a seed, with some options of `mgjit.compile`; empty if nothing is.
        source: the program of a seed.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--backend", default="python", help="as of mgjit.compile")
    parser.add_argument("--keep", type=Path, help="folder for the programs that fail")
    options: Any = parser.parse_args()
    guard._MUCH = guard._FIRST_SECONDS = math.inf  # nothing is noticed late, as in tests
    Leaving._is_weighed = False  # a clock would decide
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    failed = 0
    for seed in range(options.seed, options.seed + options.programs):
        reason = fails(seed, backend=options.backend, verify="never")
        if reason:
            failed += 1
            print(f"seed {seed}: {reason}", flush=True)
            if options.keep:
                (options.keep / f"{seed}.py").write_text(source(seed), encoding="utf-8")
    print(f"{options.programs} programs, {failed} failed")
    return int(failed > 0)


def hunt_and_count(description: str | None, fails: Callable[..., str], source: Callable[[int], str]) -> int:
    """The same, for a hunt that counts what became of the steps, in `counts=` of `fails`; prints that."""
    counts = Counter[str]()
    code = hunt(description, partial(fails, counts=counts), source)
    for text, count in counts.most_common(40):
        print(f"{count:5} {text}")
    return code
