"""The public microgpt script, unmodified except for a decorator around the body of its training loop.

    python bench/microgpt.py microgpt.py names.txt                    500 steps, CPython and PyPy beside
    python bench/microgpt.py microgpt.py names.txt --steps 50 --ways cold warm

`microgpt.py` is the script as it was published, which is not part of this project.  Five lines make a step of its loop:

    import mgjit
    @mgjit.compile
    def train_step(step, tokens):
        (what was the body of the loop, from `n = ...` on)
        return loss
    ... and in the loop: loss = train_step(step, tokens)

and five more a function that samples with a compiled forward pass.  Losses, parameters, moments and sampled names are
compared bit for bit with those of the undecorated script; each way runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOOP = "for step in range(num_steps):\n"
BODY, SHOWN = "    n = min(block_size", '    print(f"step'
SAMPLING = "temperature = 0.5"
CALL = (
    "        logits = gpt(token_id, pos_id, keys, values)\n        probs = softmax([l / temperature for l in logits])\n"
)
STEP = "import mgjit\n@mgjit.compile\ndef train_step(step, tokens):\n{body}    return loss\n"
FORWARD = """@mgjit.compile
def probabilities(tokens):
    keys, values = [[] for _ in range(n_layer)], [[] for _ in range(n_layer)]
    for pos_id, token_id in enumerate(tokens): logits = gpt(token_id, pos_id, keys, values)
    return softmax([l / temperature for l in logits])
"""
#: What tells the numbers of a run, in every variant.
NOTE = "    _note(loss.data, globals())\n"
WAYS = {"CPython": "plain", "PyPy": "plain", "cold": "compiled", "warm": "compiled"}


def compiled(source: str) -> str:
    """The script with a compiled step and a compiled forward pass."""
    before, loop, after = source.partition(LOOP)
    start, end = after.index(BODY), after.index(SHOWN)
    body = after[start:end]
    source = (
        before + STEP.format(body=body) + loop + after[:start] + "    loss = train_step(step, tokens)\n" + after[end:]
    )
    sampling = source.index("\n", source.index(SAMPLING)) + 1
    source = source[:sampling] + FORWARD + source[sampling:]
    shown = "tokens = [BOS] + [uchars.index(ch) for ch in sample]"
    return source.replace(CALL, f"        {shown}\n        probs = probabilities(tokens)\n")


def prepared(script: Path, way: str, steps: int) -> str:
    """The text of a variant that tells its numbers."""
    source = script.read_text().replace("num_steps = 1000", f"num_steps = {steps}")
    source = compiled(source) if way == "compiled" else source
    lines = source.splitlines(keepends=True)
    return "".join(NOTE if line.startswith(SHOWN) else line for line in lines)


CHILD = """
import hashlib, json, sys, time
started = last = time.perf_counter()
losses, seconds, traces = [], [], []
def _note(loss, names):
    global last
    now = time.perf_counter()
    losses.append(loss.hex()); seconds.append(now - last)
    step = names.get("train_step")
    traces.append(step.stats.traces if step is not None else 0)
    last = time.perf_counter()
path, target = sys.argv[1:]
names = {"_note": _note, "__name__": "__main__"}
sys.setrecursionlimit(100000)
text = open(path).read()
exec(compile(text, path, "exec"), names)
trained = sum(seconds)
state = [p.data for p in names["params"]] + list(names["m"]) + list(names["v"]) + [p.grad for p in names["params"]]
digest = hashlib.sha256(",".join(float(x).hex() for x in state).encode()).hexdigest()
json.dump({"losses": losses, "seconds": seconds, "traces": traces, "state": digest, "trained": trained,
           "all": time.perf_counter() - started}, open(target, "w"))
"""


def run(way: str, arguments: argparse.Namespace, cache: Path) -> dict[str, Any]:
    """One variant in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        script, child, target = (Path(folder) / name for name in ("microgpt.py", "child.py", "numbers.json"))
        script.write_text(prepared(arguments.script, WAYS[way], arguments.steps))
        child.write_text(CHILD)
        shutil.copy(arguments.names, Path(folder) / "input.txt")
        python = arguments.pypy if way == "PyPy" else sys.executable
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MGJIT_CACHE_DIR": str(cache)}
        command = [python, str(child), str(script), str(target)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{way}: {done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(target.read_text())
    found["sampled"] = done.stdout[done.stdout.index("--- inference") :]
    return found


def steady(found: dict[str, Any]) -> float:
    """The median time of a step that was not traced, in seconds."""
    traces = [0, *found["traces"]]
    times = [t for t, before, after in zip(found["seconds"], traces, traces[1:]) if before == after]
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path, help="the published microgpt.py")
    parser.add_argument("names", type=Path, help="a text file with a name a line")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--pypy", default=shutil.which("pypy3"), help="a PyPy to compare with")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    arguments = parser.parse_args()
    if arguments.pypy is None:
        arguments.ways = [way for way in arguments.ways if way != "PyPy"]
    with tempfile.TemporaryDirectory() as cache:
        found = {}
        for way in arguments.ways:
            found[way] = run(way, arguments, Path(cache))
            mine = found[way]
            first = found[arguments.ways[0]]
            equal = all(mine[key] == first[key] for key in ("losses", "state", "sampled"))
            print(
                f"{way:8} {arguments.steps} steps: {mine['trained']:8.2f} s, with sampling {mine['all']:8.2f} s, "
                f"{steady(mine) * 1e6:10,.1f} us a step once traced ({max(mine['traces'])} traces), "
                f"{'equal to ' + arguments.ways[0] if equal else 'DIFFERS'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
