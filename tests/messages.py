"""Every message with which mgjit refuses a call of a step, and the program of a table that gets it.

1. `found()` walks through the sources of what a call of a step goes through, and yields the text of each refusal: of an
   error, or of a `PlainCall`.  Where a refusal relays a text from elsewhere, that is found where it is made.
2. Programs are those of `tests/programs/traps/cases`, which run with `refuse="error"` and by default, with the numbers
   of plain Python and one warning (`tests/test_footguns.py`), and those of `tests/faults/robustness/cases`.
3. `without_program()` says which messages neither have one nor a reason in `REASONS`.

    python -m tests.messages      counts them, and lists those without a program
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import mgjit
from mgjit.tracing.record import refused
from tests.faults.robustness import bad_inputs
from tests.programs.traps import traps

SOURCES = Path(mgjit.__file__).parent
#: What a call of a step goes through, and what refuses it.
FOLDERS = ("engine", "kernels", "memory", "runtime", "step", "tracing")
KINDS = {
    "ArgumentError", "ArgumentValueError", "IndexRangeError", "LeakError", "NewStructure", "PlainCall",
    "PrecisionError", "RandomnessError", "RetraceLimitError", "TraceError", "UnsupportedError",
}  # fmt: skip
#: So much of the longest part of a text without numbers and names is looked for; shorter ones tell nothing.
_MOST, _LEAST = 40, 9

_MISUSE = "of what plain Python does not have: a method of the step, or a function that is compiled by itself"
_MOVED = "seen only where another thread, or what is called in between, changes an object between a look and a call"
_SIZE = "takes tables, parameters or tensors that are too large for a test"
_PLATFORM = "seen on interpreters only whose functions differ from the C library"
_SECOND = "a second line of defence: what comes before it refuses all programs that are known"
#: Why a message has no program, by a part of its text.
REASONS = {
    "this Value was made inside a compiled step": _SECOND,
    "a Value and a tensor, whose gradient would be lost": "plain Python raises it as well",
    "the arguments changed while the step was traced": _MOVED,
    "where a kernel has a number. Put a number there": _MOVED,
    "only some objects have": _SECOND,
    "traces of it have each shown that another one is needed": "a bound, which a defect alone can reach",
    "cannot run its forward part alone": _MISUSE,
    "() needs a kernel, and with these arguments": _MISUSE,
    "it uses the graph behind a result of": _MISUSE,
    "() reads, other than numbers of parameters, has changed": _MISUSE,
    "returns no node of its own": _MISUSE,
    "(), which is compiled by itself, cannot be copied": _MISUSE,
    "that another one has chosen, so that the order of backward()": _SECOND,
    "two of the lists to which the step appends are one list": _MOVED,
    "is a part of a tensor that the step assigns": _SECOND,
    "numbers when the step was traced. Keep its length": _MOVED,
    ". Call step.clear() to trace anew.": _MOVED,
    "shuffle() with its own random function": "before Python 3.11 only",
    "it asks for a number that depends on an infinity or nan": "the next call is traced again, and is told nothing",
    "before the call,": "the next call finds what this one has left, and is traced again",
    "an operation on tensors with more than": _SIZE,
    "float32 does not hold all indices": _SIZE,
    "parameters were created more than 16 million Values apart": _SIZE,
    "numbers in small tensors.": _SIZE,
    "in its own way, so that a compiled step would not give the same bits": _PLATFORM,
    "has no derivative here. Take it of the number": "plain Python raises a TypeError as well",
    "this Python computes // and % of floats in its own way": _PLATFORM,
    "a traced Value cannot be made by hand": _SECOND,
    ", and its source is not there to be followed": "of functions without a file; code from exec() keeps its text",
    "both sides of many conditions on traced numbers": _SIZE,
    "the step asks whether an argument is": _SECOND,
    "in a way that a compiled call cannot repeat": _SECOND,
    ", which cannot be looked into and put back": _SECOND,
    "two names become one new list": _SECOND,
    "ints and numbers of numpy's take turns in": _SECOND,
    "the step leaves a comparison of numpy's in": _SECOND,
    ", and a compiled call would leave one of Python's there. Keep int(x)": _SECOND,
    "it writes an array as text": _SECOND,
    "a traced value cannot be pickled": "plain Python raises a TypeError as well",
    "//, % and divmod of Values have no derivative": "plain Python raises a TypeError as well",
}


class Message(NamedTuple):
    """A refusal in the sources."""

    place: str
    kind: str
    text: str


def found() -> Iterator[Message]:
    """All refusals, with the longest part of each text; nothing of those that relay one."""
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        if name.partition("/")[0] in FOLDERS:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                kind = _kind(node)
                if kind:
                    text = max(_parts(node), key=len, default="")
                    if len(text) >= _LEAST:
                        yield Message(f"{name}:{node.lineno}", kind, text)  # type: ignore[attr-defined]
    for text in refused._EXPLANATIONS.values():
        yield Message("tracing/record/refused.py", "TraceError", text)


def _kind(node: ast.AST) -> str:
    """The class of a refusal that an expression makes, or nothing."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and bool(node.args)
    name = node.func.id if is_call else ""  # type: ignore[attr-defined]
    return name if name in KINDS else ""


def _parts(node: ast.AST) -> list[str]:
    """The parts of the text of a refusal between numbers and names."""
    texts = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]  # type: ignore[attr-defined]
    return [" ".join(text.split()).lstrip(": ") for text in texts if isinstance(text, str)]


def texts() -> list[str]:
    """What programs of tables are told."""
    told = [trap.message for cases in traps.load().values() for trap in cases]
    told += [case.message for cases in bad_inputs.load().values() for case in cases]
    return [" ".join(text.split()) for text in told]


def without_program() -> list[Message]:
    """Messages that no program of a table gets."""
    told = texts()
    return [each for each in found() if not any(each.text[:_MOST] in text for text in told)]


def reason(message: Message) -> str:
    """Why a message has no program; nothing if that is not known."""
    return next((why for part, why in REASONS.items() if part in message.text), "")


if __name__ == "__main__":
    every, left = list(found()), without_program()
    for each in left:
        print(f"{each.place}: {each.kind}: {each.text[:90]} ({reason(each) or 'UNKNOWN'})")
    print(f"{len(every)} messages, {len(every) - len(left)} with a program, {len(left)} without one")
