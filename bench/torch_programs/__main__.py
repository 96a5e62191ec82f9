"""Ten programs as people write them for PyTorch, run by PyTorch and by mgjit.

`programs/` has them as they are for PyTorch.  For mgjit, run.py changes import statements, and decorates each function
at the top level whose name ends in `_step` with `mgjit.compile`; nothing else.

1. Losses: both libraries draw the same numbers (draws.py), in float64.  Shown is the greatest difference of the losses
   of all steps, relative to losses above 1.
2. Times, without that, on one thread: milliseconds from one loss to the next, the median of the last third, the better
   of two processes, taken in turn; and seconds from process start to the first loss.

Run: python -m bench.torch_programs [PROGRAM ...] [--steps 200] [--timed 600]     (PyTorch must be installed)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAMS = (
    "makemore_mlp", "makemore_wavenet", "nanogpt_names", "vae_digits", "wgan_gp_digits", "diffusion_digits",
    "dqn_cartpole", "ppo_cartpole", "lenet_digits", "lstm_tagger",
)  # fmt: skip
#: Losses that differ by more are not the same.
CLOSE = 1e-6


def ran(library: str, program: str, steps: int, *further: str) -> Any:
    """What a process says that runs a program."""
    command = [sys.executable, "-m", "bench.torch_programs.run", library, program, str(steps), *further]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} with {library}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def difference(theirs: list[float], ours: list[float]) -> float:
    """The greatest difference, relative to losses above 1."""
    return max(abs(a - b) / max(abs(a), 1.0) for a, b in zip(theirs, ours))


def milliseconds(found: Any) -> float:
    """From one loss to the next, when everything is ready."""
    times = found["times"][-len(found["times"]) // 3 :]
    return 1000.0 * statistics.median(after - before for before, after in zip(times, times[1:]))


def row(program: str, steps: int, timed: int) -> str:
    """One line of the table."""
    theirs, ours = (ran(library, program, steps, "--same-draws") for library in ("torch", "mgjit"))
    apart = difference(theirs["losses"], ours["losses"])
    runs = [[ran(library, program, timed) for library in ("torch", "mgjit")] for _ in range(2)]
    pair, first = ([min(map(of, side)) for side in zip(*runs)] for of in (milliseconds, lambda run: run["times"][0]))
    plain = ", plain" if any(counts[2] for counts in ours["steps"].values()) else ""
    return (
        f"{program:18}{apart:9.0e} {'same ' if apart <= CLOSE else 'OTHER'}"
        f"{pair[0]:10.3f}{pair[1]:10.3f}{pair[0] / pair[1]:8.2f}{first[0]:9.2f}{first[1]:8.2f}{plain}"
    )


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="PROGRAM")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--timed", type=int, default=600)
    options = parser.parse_args()
    print(f"{'':18}{'losses differ':15}{'ms: torch':>10}{'mgjit':>10}{'ratio':>8}{'first: t':>9}{'m, s':>8}")
    for program in options.programs:
        print(row(program, options.steps, options.timed), flush=True)


if __name__ == "__main__":
    main()
