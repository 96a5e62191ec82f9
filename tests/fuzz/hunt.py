"""Hunt: run many random programs without Hypothesis, and cut down those that fail.

    python tests/fuzz/hunt.py --programs 2000 --seed 1 --ways tcc,python --keep DIRECTORY
    python tests/fuzz/hunt.py --foreign --ways tcc,python-recorded,python-loop
    python tests/fuzz/hunt.py --sequences --ways gcc,clang,tcc,lanes8
    python tests/fuzz/hunt.py --growing --ways gcc,tcc,python,lanes8
    python tests/fuzz/hunt.py --lengths --ways tcc,swapped
    python tests/fuzz/hunt.py --looking --programs 200 --ways tcc,again
    python tests/fuzz/hunt.py --families --ways tcc,gcc,again
    python tests/fuzz/hunt.py --descents --ways kept-idle,kept-idle-tcc,kept-loop-idle

The second one is about programs with autograd classes of their own (foreign.py), the third about sequences, attention
and matrices that are chosen at run time (sequences.py), the fourth about loops that grow (growing.py), the fifth and
the sixth about steps that look at lengths (lengths.py), the seventh about lengths that share kernels (families.py),
the last one about gradient descent in which rows are left out (descents.py).
Prints a line for each defect and writes the shortened program to DIRECTORY.  It is not collected by pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, os.environ.get("MGJIT_HUNT_ROOT", str(Path(__file__).resolve().parents[2])))
os.environ.setdefault("MGJIT_VERIFY", "never")  # a kernel that is found out and replaced would hide its defect
os.environ.setdefault("MGJIT_BACKGROUND", "0")  # nothing is found in calls that wait for their kernel

from mgjit.errors import DefectWarning
from tests.fuzz import exported, foreign, oracle
from tests.fuzz.families import family_program
from tests.fuzz.foreign_steps import foreign_program
from tests.fuzz.growing import growing_program
from tests.fuzz.lengths import lengths_program, looking_program
from tests.fuzz.programs import descent_program, random_program
from tests.fuzz.sequences import sequence_program


def failure(text: str, way: str) -> str:
    """A difference, or an exception that the undecorated program does not raise; empty when all is well."""
    if "\nIN_SETS = " in text:
        return foreign_failure(text, way)
    try:
        expected = oracle.expected(text, way)
    except Exception as error:
        return f"generator: {type(error).__name__}: {error}" if way == "generator" else ""
    if expected is None:
        return ""
    try:
        return oracle.difference(expected, oracle.WAYS[way](text))
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "mgjit" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"raises {type(error).__name__} at {place}: {str(error)[:300]}"


def foreign_failure(text: str, way: str) -> str:
    """The same of a program with a class of its own."""
    try:
        found = foreign.outcome(text, way)
    except Exception as error:
        return f"generator: {type(error).__name__}: {error}"
    outcomes[f"{way}: {found[:80]}"] += 1
    return "" if found.startswith(("same", "refused", "discarded")) else found


#: What has become of programs with classes of their own.
outcomes: Counter[str] = Counter()


def kind(message: str) -> str:
    """What failures must have in common to be one defect."""
    if message.startswith("raises"):
        return re.sub(r"[\d]+", "#", message.split(" at ")[0] + message.partition(": ")[2])[:80]
    return message.partition(":")[0].split(" ")[0] if message else ""


def shortened(text: str, way: str, seconds: float = 30.0) -> str:
    """The text with as many lines left out as still fail in the same way."""
    wanted = kind(failure(text, way))
    end = time.perf_counter() + seconds
    lines = text.split("\n")
    size = len(lines) // 2
    while size and time.perf_counter() < end:
        position = 0
        while position < len(lines):
            shorter = lines[:position] + lines[position + size :]
            if kind(failure("\n".join(shorter), way)) == wanted:
                lines = shorter
            else:
                position += 1
        size //= 2
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ways", default="tcc,python")
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--foreign", action="store_true")
    parser.add_argument("--sequences", action="store_true")
    parser.add_argument("--growing", action="store_true")
    parser.add_argument("--lengths", action="store_true")
    parser.add_argument("--looking", action="store_true")
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--descents", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("MGJIT_CHECK", "1")
    os.environ.setdefault("MGJIT_VERIFY", "never")  # which would hide what is hunted
    warnings.simplefilter("error", DefectWarning)
    kinds = {
        "foreign": foreign_program,
        "sequences": sequence_program,
        "growing": growing_program,
        "lengths": lengths_program,
        "looking": looking_program,
        "families": family_program,
        "descents": descent_program,
    }
    program_of = next((program for name, program in kinds.items() if getattr(options, name)), random_program)
    seen: Counter[str] = Counter()
    discarded = finite = failed = idle = 0
    started = time.perf_counter()
    for seed in range(options.seed, options.seed + options.programs):
        text = program_of(seed)
        try:
            expected: object = "foreign" if options.foreign or options.sequences else oracle.reference(text)
        except Exception as error:
            print(f"seed {seed}: the generator wrote a wrong program: {type(error).__name__}: {error}", flush=True)
            continue
        if expected is None:
            discarded += 1
            continue
        finite += '"nan"' not in repr(expected).replace("'", '"')
        loops = oracle.idle_loops["idle"]
        for way in options.ways.split(","):
            message = failure(text, way)
            if not message:
                continue
            failed += 1
            seen[kind(message)] += 1
            print(f"seed {seed} {way}: {message}", flush=True)
            if options.keep is not None and seen[kind(message)] <= (3 if message.startswith("raises") else 8):
                counted = outcomes.copy()
                short = shortened(text, way)
                outcomes.clear()
                outcomes.update(counted)
                path = options.keep / f"seed{seed}_{way}.py"
                path.write_text(f"# {way}: {failure(short, way)}\n{short}\n")
                print(f"    -> {path} ({short.count(chr(10))} lines)", flush=True)
            break
        idle += oracle.idle_loops["idle"] > loops
        if failed >= options.failures:
            break
    seconds = time.perf_counter() - started
    run = seed + 1 - options.seed
    print(f"{run} programs, {discarded} discarded, {finite} without nan, {failed} failed, {seconds:.0f} s")
    if oracle.idle_loops:
        print(f"{idle} programs in which a zero leaves something out, {dict(oracle.idle_loops)}")
    if any(way.startswith("export") for way in options.ways.split(",")):
        print(", ".join(f"{count} calls {what}" for what, count in exported.counts.items()))
    for text, count in outcomes.most_common() + seen.most_common():
        print(f"{count:5} x {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
