"""Parse the command line and run one command.

A command is a module with `SUMMARY`, `add_arguments(parser)` and `run(arguments) -> exit code`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mgjit._version import __version__
from mgjit.cli import cache, demo, doctor, run
from mgjit.cli.text import program, show_help
from mgjit.errors import MgjitError

_EPILOG = """\
examples:
    mgjit demo                  see it work, in half a minute
    mgjit run train.py          run a script, its training loops compiled
    mgjit doctor                see which compiler is used, and why
    mgjit cache info            see what is kept on disk
    mgjit COMMAND --help        all about a command

`mgjit` and `python -m mgjit` are the same."""
COMMANDS = {"demo": demo, "run": run, "doctor": doctor, "cache": cache}


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog=program(),
        description="Training steps in plain scalar Python, run as C, bit for bit the same numbers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mgjit {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    parser.set_defaults(run=lambda _: show_help(parser))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv`; the exit code is 0 for success, 1 for a finding, 2 for an error."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        if words[:1] == ["run"]:
            return run.main(words[1:])
        arguments = build_parser().parse_args(words)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except MgjitError as error:
        print(f"mgjit: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mgjit: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has left.  Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
