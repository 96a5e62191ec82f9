"""Run a script that knows nothing of mgjit: its training loops become compiled steps.

    python -m mgjit run train.py --epochs 10          as `python train.py --epochs 10`, faster
    python -m mgjit run --explain train.py            says afterwards, on stderr, what became of each loop
    python -m mgjit run --report out.html train.py    writes a page: the time of each line, and what became of it
    python -m mgjit run --loop train.py:40 train.py   the loop at line 40, and no other
    python -m mgjit run -m package.train              as `python -m package.train`; also `-c CODE`, and `-` for stdin

Output, numbers, files, tracebacks and the exit code are those of `python train.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mgjit.script.report import Report

_FLAGS = ("--eager", "--explain")
SUMMARY = "run a script that knows nothing of mgjit: its training loops become compiled steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.usage = (
        "%(prog)s [-h] [--loop FILE:LINE] [--eager] [--explain] [--report FILE]\n"
        "                            {script.py | -m MODULE | -c CODE | -} [arguments]"
    )
    parser.add_argument(
        "--loop",
        action="append",
        metavar="FILE:LINE",
        help="compile the body of this loop, and of no other but those named",
    )
    parser.add_argument("--eager", action="store_true", help="try steps at once, however short a loop seems to be")
    parser.add_argument("--explain", action="store_true", help="say on stderr, at the end, what became of each loop")
    parser.add_argument("--report", metavar="FILE", help="write a page about the steps, with the time of each line")
    parser.add_argument("script", help="the script; or `-m` and a module, `-c` and a text, `-` for standard input")
    arguments = parser.add_argument("arguments", nargs="...", help="its own arguments")
    arguments.required = False  # or argparse names them, too, where the script is missing


def run(arguments: argparse.Namespace | SimpleNamespace, kind: str = "") -> int:
    """Run the script, or what else `kind` says (script/start.py); returns its exit code."""
    from mgjit.script.load import INTERRUPTED, end_by_interruption, run_script
    from mgjit.script.report import Report
    from mgjit.script.section import Section

    report = Report()
    try:
        lines = _lines(arguments.loop)
        if not kind and not os.path.isfile(arguments.script):
            print(f"mgjit: can't open file {arguments.script!r}: no such file", file=sys.stderr)
            return 2
    except ValueError as error:
        print(f"mgjit: error: {error}", file=sys.stderr)
        return 2
    Section.is_eager = arguments.eager
    try:
        code = run_script(arguments.script, arguments.arguments, lines, report, kind)
    finally:
        if arguments.explain:
            with contextlib.suppress(Exception):  # the script may have closed either
                sys.stdout.flush()
                print(report.text(), file=sys.stderr, flush=True)
        if arguments.report:
            _write(report, arguments.report)
    return end_by_interruption() if code == INTERRUPTED else code


def _write(report: Report, path: str) -> None:
    from mgjit.script.report_page import write_report

    try:
        write_report(report, path)
    except OSError as error:  # the script has its exit code, whatever becomes of the report
        print(f"mgjit: error: the report cannot be written: {error}", file=sys.stderr)


def _lines(loops: list[str] | None) -> dict[str, list[int]] | None:
    """The lines of named loops, by file.

    Raises:
        ValueError: one is no FILE:LINE.
    """
    if loops is None:
        return None
    found: dict[str, list[int]] = {}
    for loop in loops:
        file, _, line = loop.rpartition(":")
        if not file or not line.isdigit() or not os.path.isfile(file):
            raise ValueError(f"--loop {loop}: write FILE:LINE, such as train.py:40, with a file that exists")
        found.setdefault(os.path.realpath(file), []).append(int(line))
    return found


def main(words: list[str]) -> int:
    """`python -m mgjit run`, without the other commands; and without a parser where nothing but flags are in front."""
    count = _ours(words)
    ours, kind, others = words[:count], "", words[count:]
    if others[:1] == ["-"] or (others[:1] in (["-m"], ["-c"]) and len(others) > 1):
        kind, others = others[0], others if others[0] == "-" else others[1:]
    is_named = bool(others) and (kind != "" or not others[0].startswith("-"))
    if is_named and not set(ours).difference(_FLAGS):
        script, *others = others
        chosen = {flag[2:]: flag in ours for flag in _FLAGS}
        return run(SimpleNamespace(script=script, arguments=others, loop=None, report=None, **chosen), kind)
    import argparse

    from mgjit.cli.text import program

    parser = argparse.ArgumentParser(
        prog=f"{program()} run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    if kind:
        parsed = parser.parse_args([*ours, "script"])
        parsed.script, *parsed.arguments = others
        return run(parsed, kind)
    return run(parser.parse_args(words))


def _ours(words: list[str]) -> int:
    """How many words are options of this command, in front of what is to be run."""
    count = 0
    while count < len(words) and words[count].startswith("--"):
        count += 2 if words[count] in ("--loop", "--report") else 1
    return min(count, len(words))
