"""Inspect the disk cache, verify it, and delete entries.

    python -m mgjit cache info              where it is, how large, hits and misses of all processes
    python -m mgjit cache list -v           every entry, and what its key is made of
    python -m mgjit cache verify --json     check every byte of every entry
    python -m mgjit cache gc --limit 200M   delete the least recently used entries
    python -m mgjit cache clear --yes       delete everything

These commands use the same cache as a program started in this environment would (MGJIT_CACHE_DIR is respected).
The exit code is 0; 1 if `verify` found an entry that is damaged or cannot be read, or if `clear` was not confirmed or
could not delete everything; 2 for an error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from mgjit.base import files, settings
from mgjit.base.directories import Candidate, survey
from mgjit.cli.text import STATES, age_text, counted, printable, program, show_help, size_text
from mgjit.compiler.cache import about, sweep, usage
from mgjit.compiler.cache.entry import ContentError, read_entry, read_metadata
from mgjit.compiler.cache.store import SUFFIX
from mgjit.script import remembered

SUMMARY = "inspect the disk cache, verify it, delete entries"


@dataclass(frozen=True)
class Found:
    """One entry on disk."""

    key: str
    path: str
    size: int
    used: float  # time of last use, as by time.time()

    def about(self) -> dict[str, Any]:
        """What the entry records about itself (cache/about.py); empty if it cannot be read."""
        try:
            said = read_metadata(self.path).get(about.NAME)
        except (OSError, ContentError):
            return {}
        return said if isinstance(said, dict) else {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `cache` and their options."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON, for programs")
    commands = parser.add_subparsers(title="commands", dest="action", metavar="COMMAND")
    parser.set_defaults(action=lambda _: show_help(parser))
    for name, action, text in (
        ("info", info, "where it is, how large, hits and misses of all processes"),
        ("list", list_entries, "every entry, the last used first"),
        ("verify", verify, "check every byte of every entry"),
        ("clear", clear, "delete all entries"),
        ("gc", collect, "enforce the size limit now: delete the least recently used entries"),
    ):
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"example: {program()} cache {name} {_EXAMPLES[name]}".rstrip(),
            parents=[shared],
        )
        command.set_defaults(action=action)
        if name == "list":
            command.add_argument("-v", "--verbose", action="store_true", help="show what each key is made of")
        if name == "verify":
            command.add_argument("--delete", action="store_true", help="delete damaged entries")
        if name == "clear":
            command.add_argument("-y", "--yes", action="store_true", help="do not ask")
        if name == "gc":
            command.add_argument("--limit", metavar="SIZE", help="instead of MGJIT_CACHE_SIZE, such as 200M")


_EXAMPLES = {"info": "--json", "list": "-v", "verify": "--delete", "clear": "--yes", "gc": "--limit 200M"}


def run(arguments: argparse.Namespace) -> int:
    """Run one of the commands."""
    code: int = arguments.action(arguments)
    return code


# ------------------------------------------------------------------------------------------ commands


def info(arguments: argparse.Namespace) -> int:
    """`cache info`."""
    candidates, entries, limit = _candidates(), _entries(), settings.cache_size()
    total = _usage()
    report = {
        "directories": [{"path": one.name, "state": one.state, "reason": one.reason} for one in candidates],
        "entries": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "limit": limit,
        **{event: getattr(total, event) for event in usage.EVENTS},
        "used_first": min((entry.used for entry in entries), default=None),
        "used_last": max((entry.used for entry in entries), default=None),
    }
    if arguments.json:
        return _print_json(report)
    looked_up = f"{_hits(total.hits)}, {counted(total.misses, 'miss', 'misses')}"
    rows = [("directory", f"{one.name}: {STATES.get(one.state) or f'not used: {one.reason}'}") for one in candidates]
    rows += [
        ("entries", f"{len(entries):,}, {size_text(report['bytes'])} of at most {size_text(limit)}"),
        ("lookups", f"{looked_up}, in all processes that have ended"),
        ("written", f"{counted(total.puts, 'entry', 'entries')}; found damaged and deleted: {total.corrupt:,}"),
    ]
    if entries:
        now = time.time()
        ages = [age_text(now - one) for one in (report["used_last"], report["used_first"])]
        rows.append(("last used", f"the newest {ages[0]} ago, the oldest {ages[1]} ago"))
    _print_rows(rows)
    return 0


def list_entries(arguments: argparse.Namespace) -> int:
    """`cache list`."""
    hits, now = _usage().hits_of, time.time()
    found = [(entry, entry.about()) for entry in sorted(_entries(), key=lambda entry: -entry.used)]
    if arguments.json:
        return _print_json(
            [
                {
                    "key": one.key,
                    "path": one.path,
                    "bytes": one.size,
                    "used": one.used,
                    "hits": hits[one.key],
                    "about": said,
                }
                for one, said in found
            ]
        )
    if not found:
        print("There is no entry.")
        return 0
    if arguments.verbose:
        for entry, said in found:
            print(entry.key)
            _print_rows(_details(entry, said, hits[entry.key], now), "  ")
        return 0
    table = [("KEY", "STEP", "SIZE", "BUILT", "USED", "HITS", "COMPILER")]
    for entry, said in found:
        built = age_text(now - said["created"]) if isinstance(said.get("created"), (int, float)) else "?"
        names = (str(said.get("step", "?")), size_text(entry.size), built, age_text(now - entry.used))
        table.append((entry.key[:12], *names, str(hits[entry.key]), str(said.get("version", "?"))))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    for row in table:
        print(printable("  ".join([*(f"{text:<{width}}" for text, width in zip(row, widths)), row[-1]])))
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """`cache verify`."""
    from tqdm import tqdm

    entries = _entries()
    damaged: list[tuple[Found, str]] = []
    unreadable: list[tuple[Found, str]] = []
    for entry in tqdm(entries, unit=" entries", leave=False, disable=True if arguments.json else None):
        try:
            read_entry(entry.path, entry.key, use=False)
        except FileNotFoundError:
            continue  # deleted in the meantime
        except OSError as error:
            unreadable.append((entry, error.strerror or str(error)))
        except ContentError as error:
            damaged.append((entry, str(error)))
    deleted = [entry for entry, _ in damaged if arguments.delete and _delete(entry.path)]
    if arguments.json:
        _print_json(
            {
                "entries": len(entries),
                "damaged": [{"path": entry.path, "reason": reason} for entry, reason in damaged],
                "unreadable": [{"path": entry.path, "reason": reason} for entry, reason in unreadable],
                "deleted": [entry.path for entry in deleted],
            }
        )
        return 1 if damaged or unreadable else 0
    for kind, rows in (("damaged", damaged), ("not readable", unreadable)):
        for entry, reason in rows:
            print(printable(f"{entry.path}: {kind}: {reason}{'; deleted' if entry in deleted else ''}"))
    good = len(entries) - len(damaged) - len(unreadable)
    verb = "is" if good == 1 else "are"
    print(f"{good:,} of {counted(len(entries), 'entry', 'entries')} {verb} intact.")
    if len(damaged) > len(deleted):
        print("Damaged entries are never loaded; they are rebuilt when needed. --delete deletes them.")
    return 1 if damaged or unreadable else 0


def clear(arguments: argparse.Namespace) -> int:
    """`cache clear`."""
    entries = _entries()
    size = sum(entry.size for entry in entries)
    to_people = sys.stderr if arguments.json else sys.stdout
    if entries and not arguments.yes and not _is_confirmed(entries, size, to_people):
        print("Nothing was deleted.", file=to_people)
        return 1
    deleted = [entry for entry in entries if _delete(entry.path)]
    for directory in _directories():
        with contextlib.suppress(OSError):
            sweep.sweep(directory, sys.maxsize, SUFFIX)  # temporary files, and the ledger
        usage.compact(directory, frozenset())
    remembered.forget()
    freed = sum(entry.size for entry in deleted)
    if arguments.json:
        _print_json({"deleted": len(deleted), "bytes": freed, "left": len(entries) - len(deleted)})
    else:
        print(f"{counted(len(deleted), 'entry', 'entries')} deleted, {size_text(freed)}.")
        if len(deleted) < len(entries):
            print(f"{len(entries) - len(deleted):,} could not be deleted.")
    return 0 if len(deleted) == len(entries) else 1


def _is_confirmed(entries: list[Found], size: int, to_people: TextIO) -> bool:
    """Ask whether to delete all entries.  The answer may come from a pipe; where there is none, it is no."""
    places = " and ".join(sorted({os.path.dirname(entry.path) for entry in entries}))
    question = f"Delete {counted(len(entries), 'entry', 'entries')} ({size_text(size)}) in {places}? [y/N] "
    print(printable(question), end="", file=to_people, flush=True)
    answer = sys.stdin.readline() if sys.stdin is not None else ""
    if not answer.endswith("\n") or not sys.stdin.isatty():  # where nobody has typed a line, the question has no end
        print(file=to_people)
    return answer.strip().lower() in ("y", "yes")


def collect(arguments: argparse.Namespace) -> int:
    """`cache gc`."""
    limit = settings.size_of("--limit", arguments.limit) if arguments.limit else settings.cache_size()
    entries, size = 0, 0
    for directory in _directories():
        try:
            gone = sweep.sweep(directory, limit, SUFFIX)
        except OSError as reason:
            print(printable(f"{directory}: {reason.strerror or reason}"), file=sys.stderr)
            continue
        entries, size = entries + gone[0], size + gone[1]
    left = _entries()
    for directory in _directories():
        usage.compact(directory, frozenset(entry.key for entry in left))
    kept = sum(entry.size for entry in left)
    if arguments.json:
        return _print_json({"deleted": entries, "bytes": size, "left": len(left), "left_bytes": kept, "limit": limit})
    print(f"{counted(entries, 'entry', 'entries')} deleted, {size_text(size)}; {len(left):,} left, {size_text(kept)}.")
    return 0


# ------------------------------------------------------------------------------------------ what there is


def _candidates() -> list[Candidate]:
    return survey(settings.cache_directories())


def _directories() -> list[str]:
    """The directories that a process would read, if they exist."""
    return [one.directory.path for one in _candidates() if one.directory is not None]


def _entries() -> list[Found]:
    found: list[Found] = []
    for directory in _directories():
        with contextlib.suppress(OSError):
            for used, size, path in sorted(sweep.entries(directory, SUFFIX)):
                found.append(Found(os.path.basename(path)[: -len(SUFFIX)], path, size, used))
    return found


def _usage() -> usage.Usage:
    total = usage.Usage()
    for directory in _directories():
        total.merge(usage.read(directory))
    return total


def _delete(path: str) -> bool:
    try:
        files.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


# ------------------------------------------------------------------------------------------ how it is shown


def _details(entry: Found, said: dict[str, Any], hits: int, now: float) -> Iterator[tuple[str, str]]:
    """The lines for one entry in `list -v`: what it is, and the parts of its key."""
    yield "step", str(said.get("step", "unknown: the entry is damaged, or was not written by mgjit"))
    yield "file", entry.path
    yield "size", size_text(entry.size)
    yield "used", f"{age_text(now - entry.used)} ago, {_hits(hits)}"
    if isinstance(said.get("created"), (int, float)):
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["created"]))
        took = f", in {said['seconds']} s" if said.get("seconds") is not None else ""
        yield "built", f"{date}{took}, by mgjit {said.get('mgjit', '?')} on {said.get('python', '?')}"
        if said.get("compiler"):  # what has been compared with plain Python has none of its own
            yield "compiler", f"{said['compiler']} ({said.get('version', '?')})"
            yield "flags", str(said.get("flags", "?"))
    processor, parts = said.get("processor"), said.get("key")
    if isinstance(processor, dict):
        names = processor.get("flags")
        yield "processor", f"{processor.get('model')}: {' '.join(map(str, names if isinstance(names, list) else []))}"
    for name, part in parts.items() if isinstance(parts, dict) else ():
        yield f"key: {name}", str(part).replace("\n", " | ") or "-"


def _hits(number: int) -> str:
    return counted(number, "hit", "hits")


def _print_rows(rows: Iterable[tuple[str, str]], indent: str = "") -> None:
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(printable(f"{indent}{name:<{width}}  {text}"))


def _print_json(report: object) -> int:
    print(json.dumps(report, indent=2))
    return 0
