"""Instructions of a step, in mgjit's kernels and in the C by hand: clocks are noisy, counts are not.

    python bench/instructions.py                            all workloads
    python bench/instructions.py --workloads W5 --functions 10   and where most of them are

1. Each side runs in a process of its own under callgrind, which must be installed.  It does not know AVX-512, so both
   are built with `--cflags`, `-march=x86-64-v3` if nothing else is said.  A run without callgrind comes first, which
   fills the cache.
2. The first calls build and warm up; callgrind is switched on for a round of steps.
3. What the kernel and the mathematics of the C library execute is counted, and nothing of Python.  Counts are no
   times: divisions, and what waits for a cache or for the step before, cost more than one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import workloads  # noqa: E402 - found through the line above
from bench.processes import environment  # noqa: E402
from bench.references import Reference  # noqa: E402
from bench.workloads import WORKLOADS, Sources, Workload  # noqa: E402

SIDES = ("C by hand", "mgjit")
STEPS = 64  # one round of the names of W6
#: The libraries whose functions count: kernels have names of hexadecimal digits.
_COUNTED = re.compile(r"libm[.-].*|libmvec[.-].*|[0-9a-f]{32}\.so|w\d_\w+\.so")

_NAME = re.compile(r"(c?(?:ob|fn|fi|fe|fl))=\((\d+)\)(?: (.*))?")


# ---- the process that is measured ----------------------------------------------------------------------------------


def run_side(side: str, workload: Workload, sources: Sources, is_counted: bool) -> None:
    """Build, warm up, and run a round of steps with callgrind switched on."""
    instance = workload.make(sources)
    calls = [instance.calls[k % len(instance.calls)] for k in range(STEPS)]
    if side == "mgjit":
        step = workloads.compiled(instance, workload, grads=False, verify="never")

        def steps() -> None:
            for arguments in calls:
                kernel = step._kernels.known(arguments)
                if kernel.needs_accepting:
                    kernel.accept()
                kernel.run["step"]()

        for arguments in calls:
            step(*arguments)
    else:
        reference = Reference(workload, instance)  # to be kept, as its losses
        steps, _losses = reference.prepared(STEPS)
    steps()
    if is_counted:
        _switch("on")
    steps()
    if is_counted:
        _switch("off")


def _switch(how: str) -> None:
    command = ["callgrind_control", "-i", how, str(os.getpid())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


# ---- the counts ----------------------------------------------------------------------------------------------------


def counted(side: str, options: argparse.Namespace, workload: str, folder: Path) -> Counter[str]:
    """Instructions of each function in a round of steps."""
    program = [sys.executable, __file__, "--side", side, "--workloads", workload]
    for name in ("path", "names"):
        if getattr(options, name):
            program += [f"--{name}", str(getattr(options, name))]
    surroundings = {**environment(folder / "cache"), "MGJIT_CFLAGS": options.cflags}
    output = folder / f"{workload}-{side[:1]}.out"
    subprocess.run(program, env=surroundings, check=True, stdout=subprocess.DEVNULL)
    callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]
    done = subprocess.run(
        [*callgrind, *program, "--counted"], env=surroundings, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return counts_of(output.read_text(encoding="utf-8"))


def counts_of(text: str) -> Counter[str]:
    """Instructions of each function of kernels and of the C library, of a file of callgrind."""
    names: dict[tuple[str, str], str] = {}
    found: Counter[str] = Counter()
    library = function = ""
    is_callee = False
    for line in text.splitlines():
        named = _NAME.fullmatch(line)
        if named:
            kind, number, name = named.groups()
            space = {"b": "ob", "n": "fn"}.get(kind[-1], "file")
            names.setdefault((space, number), name or "")
            if kind == "ob":
                library = Path(names[space, number]).name
            elif kind == "fn":
                function = names[space, number]
        elif line.startswith("calls="):
            is_callee = True  # the next line has what was called cost, which is counted there
        elif line[:1] in "+-*0123456789" and line:
            if not is_callee and _COUNTED.fullmatch(library):
                found[function] += int(line.split()[1])
            is_callee = False
    return found


# ---- the command ---------------------------------------------------------------------------------------------------


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--path", type=Path, metavar="DIR", help="folder with MNIST IDX files; else made-up images")
    parser.add_argument("--names", type=Path, metavar="FILE", help="names, one a line; else made-up names")
    parser.add_argument("--cflags", default="-march=x86-64-v3", help="for both sides (default -march=x86-64-v3)")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="also print the N largest functions")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        sources = Sources(options.path, options.names)
        run_side(options.side, WORKLOADS[options.workloads[0]], sources, options.counted)
        return
    if not shutil.which("valgrind"):
        raise SystemExit("callgrind is needed: install valgrind")
    print(f"instructions a step, {options.cflags}\n\n| | {' | '.join(SIDES)} | mgjit / C |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name in options.workloads:
            found = [counted(side, options, name, Path(place)) for side in SIDES]
            by_hand, ours = (sum(one.values()) / STEPS for one in found)
            print(f"| {name} | {by_hand:,.0f} | {ours:,.0f} | {ours / by_hand:.2f} |", flush=True)
            for side, one in zip(SIDES, found):
                for function, count in one.most_common(options.functions):
                    print(f"    {side}: {count / STEPS:12,.0f} {function}", flush=True)


if __name__ == "__main__":
    main()
