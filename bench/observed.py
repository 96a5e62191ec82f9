"""A decorated program that is debugged, traced, profiled, covered, interrupted or killed, beside the undecorated one.

    python bench/observed.py                  a table: each row is two processes that have to say the same

1. The program trains for some seconds, and says its numbers in hexadecimal; a decorated one says last whether calls
   were compiled.
2. Each way of running it makes a script of it (`WAYS`): what comes before the training, around it, and from outside.
3. `same` is whether output and exit code are those of the undecorated program; exits with 1 where they are not.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import atexit, cProfile, os, signal, sys, threading, warnings
{decorate}

class Weight:
    def __init__(self, data):
        self.data, self.grad = data, 0.0

weights = [Weight(0.01 * k) for k in range(40)]
events = []

@decorate
def step(x, target):
    {inside}
    error = 0.1
    for w in weights:
        error = error + w.data * x
    error = error - target
    for w in weights:
        w.grad = error * x
        w.data -= 0.001 * w.grad
    return error

def train(calls):
    for k in range(calls):
        error = step(0.1 * (k % 10), 0.5)
    return error

def show(error):
    print(float(error).hex(), *[float(w.data).hex() for w in weights[:3]], flush=True)

show(train(20_000))
getattr(step, "wait", int)()
show(train(2_000))
{around}
show(train(500))
{last}
"""
LAST = "print(step.stats.calls > 0, file=sys.stderr)"


class Way(NamedTuple):
    """A way to run the program: what is in the step, and around the training; its interpreter's options; its input.

    Attributes:
        core: of coverage.py.
    """

    inside: str = "pass"
    around: str = ""
    options: tuple[str, ...] = ()
    given: str = ""
    core: str = ""


_INTERRUPTED = """
try:
    train(100)
    os.kill(os.getpid(), signal.SIGINT)
    train(9)
except KeyboardInterrupt:
    print("Ctrl-C")
"""
_COVERED = ("-m", "coverage", "run", "--data-file=covered")
_HAS_COVERAGE = importlib.util.find_spec("coverage") is not None
_CORES = [] if not _HAS_COVERAGE else ["ctrace", "sysmon"] if hasattr(sys, "monitoring") else ["ctrace"]
WAYS: dict[str, Way] = {
    "as it is": Way(),
    "pdb, continued": Way(options=("-m", "pdb"), given="c\nq\n"),
    "pdb, a breakpoint in the step": Way(
        inside="if sys.argv[1:] == ['stop'] and len(events) == 1: events.append(breakpoint())",
        around="sys.argv.append('stop'); events.append(1); show(train(3)); sys.argv.pop()",
        given="p x, error if 'error' in dir() else 0\nn\nc\n",
    ),
    "sys.settrace": Way(around="sys.settrace(lambda *_: None); show(train(300)); sys.settrace(None)"),
    "sys.setprofile": Way(around="sys.setprofile(lambda *_: None); show(train(300)); sys.setprofile(None)"),
    "threading.settrace, a thread": Way(
        around="threading.settrace(lambda *_: None); t = threading.Thread(target=lambda: show(train(300))); "
        "t.start(); t.join(); threading.settrace(None)"
    ),
    "cProfile": Way(around="profile = cProfile.Profile(); show(profile.runcall(train, 300))"),
    "python -m cProfile": Way(options=("-m", "cProfile", "-o", os.devnull)),
    **({f"coverage, {core}": Way(options=_COVERED, core=core) for core in _CORES}),
    "python -m trace": Way(options=("-m", "trace", "--count", "-C", tempfile.gettempdir())),
    "SIGINT between calls": Way(around=_INTERRUPTED),
    "SIGINT, not caught": Way(around="train(100); os.kill(os.getpid(), signal.SIGINT); train(9)"),
    "an exception in the middle": Way(
        around="try: step('text', 0.5)\nexcept TypeError: print('TypeError')\nshow(train(300))"
    ),
    "sys.exit": Way(around="train(300); sys.exit(3)"),
    "killed": Way(around="train(300); os.kill(os.getpid(), signal.SIGKILL)"),
    "terminated": Way(around="train(300); os.kill(os.getpid(), signal.SIGTERM)"),
    "python -X dev": Way(options=("-X", "dev")),
    "python -O": Way(options=("-O",)),
}  # fmt: skip


def played(way: Way, decorated: bool, folder: Path) -> tuple[str, int, str]:
    """Output, exit code, and what was said last on the standard error."""
    decorate = "import mgjit; decorate = mgjit.compile" if decorated else "decorate = lambda function: function"
    last = LAST if decorated else ""
    script = folder / "program.py"
    script.write_text(PROGRAM.format(decorate=decorate, last=last, inside=way.inside, around=way.around))
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "COVERAGE_CORE": way.core}
    command = [sys.executable, *way.options, str(script)]
    done = subprocess.run(
        command, input=way.given, env=environment, capture_output=True, text=True, cwd=folder, check=False, timeout=300
    )
    out = done.stdout + (_missed(folder) if way.options == _COVERED else "")
    return out, done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def _missed(folder: Path) -> str:
    """The lines of the program that coverage.py has not seen."""
    command = [sys.executable, "-m", "coverage", "json", "-q", "--data-file=covered", "--include=program.py", "-o-"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return f"missed: {json.loads(done.stdout)['files']['program.py']['missing_lines']}\n"


def main() -> int:
    """Print the table."""
    print("| way | exit code | same | calls were compiled |\n|---|---:|---|---|")
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        for title, way in WAYS.items():
            wanted, found = (played(way, decorated, Path(name)) for decorated in (False, True))
            wanted_lines, found_lines = (_without_places(out) for out in (wanted[0], found[0]))
            same = wanted_lines == found_lines and wanted[1] == found[1]
            failures += not same
            compiled = found[2] if found[2] in ("True", "False") else ""
            print(f"| {title} | {found[1]} | {'yes' if same else 'NO'} | {compiled} |", flush=True)
            if not same:
                print(f"\nundecorated:\n{wanted[0]}{wanted[2]}\n\ndecorated:\n{found[0]}{found[2]}\n")
    return 1 if failures else 0


def _without_places(text: str) -> list[str]:
    """The lines that a program has said, without those of a debugger that name files."""
    return [line for line in text.splitlines() if not line.lstrip("(Pdb) ").startswith(("> ", "-> ", "The program"))]


if __name__ == "__main__":
    sys.exit(main())
