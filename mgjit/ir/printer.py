"""Programs as readable text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .program import (
    Array,
    Backward,
    Block,
    Bound,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
)

_VARIABLES = "ijklmnopqrstuvwxyz"


def print_program(program: Program, note: Callable[[Statement], str] | None = None) -> str:
    """All phases of a Program.

    Args:
        note: what is to be said at the end of the line of a statement.
    """
    printer = _Printer(note)
    for number, given in enumerate(program.given):
        name = printer.names[given] = f"n{number}"
        printer.lines.append(f"given {name} in 0 .. {given.count - 1}")
    for name, nodes in program.phases:
        if nodes:
            printer.lines.append(f"{name}:")
            printer.nodes(nodes, 1)
    if program.rotation is not None:
        printer.lines.append("between two rows of a loop:")
        printer.nodes(program.rotation.nodes, 1)
    if program.row is not None:
        printer.lines.append("a row of a loop:")
        printer.nodes(program.row.nodes, 1)
    for array in printer.arrays:
        if array.padded_rows:
            rows = ", ".join(f"{count} x {used} of {pitch}" for _, used, pitch, count in array.padded_rows)
            printer.lines.append(f"padded rows of {array.name}: {rows}")
    if len(program.tables):
        printer.lines.append(f"tables: {len(program.tables)} entries")
    return "\n".join(printer.lines) + "\n"


def _way(loop: Loop) -> str:
    """How the iterations of a loop are executed."""
    if loop.lanes or loop.beside:
        return ", as lanes" if loop.lanes else ", side by side"
    return f", {loop.at_once} at once" if loop.at_once > 1 else ""


class _Printer:
    def __init__(self, note: Callable[[Statement], str] | None = None) -> None:
        self.note = note
        self.lines: list[str] = []
        self.names: dict[Loop, str] = {}
        self.registers: dict[int, str] = {}
        self.arrays: dict[Array, None] = {}

    def nodes(self, nodes: Sequence[Node], depth: int) -> None:
        indent = "    " * depth
        for node in nodes:
            if isinstance(node, Loop):
                letter = _VARIABLES[(depth - 1) % len(_VARIABLES)]
                name = self.names[node] = letter if depth <= len(_VARIABLES) else f"{letter}{depth}"
                last = str(node.count - 1) if node.bound is None else self.last(node.bound)
                span = f"{last} .. 0" if node.reverse else f"0 .. {last}"
                most = "" if node.bound is None else f" ({node.count} at most)"
                self.lines.append(f"{indent}for {name} in {span}{most}{_way(node)}:")
                self.nodes(node.body, depth + 1)
            elif isinstance(node, Block):
                self.lines.append(f"{indent}block:")
                self.nodes(node.body, depth + 1)
            elif isinstance(node, Backward):
                self.lines.append(f"{indent}backward from {self.operand(node.root)}")
            else:
                note = "" if self.note is None else self.note(node)
                self.lines.append(indent + self.statement(node) + (f"  # {note}" if note else ""))

    def last(self, bound: Bound) -> str:
        """The last iteration of a loop, before the first one if there is none."""
        return self.index(Index(bound.base - 1, bound.terms, bound.table))

    def statement(self, statement: Statement) -> str:
        operands = [self.operand(operand) for operand in statement.operands]
        name = self.registers[id(statement)] = f"%{len(self.registers)}"
        if statement.update:
            target = self.target(statement.target)
            return f"{target} = {statement.operation}({', '.join([target, *operands])})"
        text = f"{statement.operation}({', '.join(operands)})"
        if statement.target is None:
            return f"{name} = {text}"
        return f"{name} = {self.target(statement.target)} = {text}"

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Constant):
            return repr(operand.value)
        if isinstance(operand, Load):
            return self.reference(operand.reference)
        if isinstance(operand, Register):
            return self.registers.get(id(operand.statement), "%?")
        if isinstance(operand, Choice):
            first, rest = self.operand(operand.first), self.operand(operand.rest)
            return f"({first} if {self.loop(operand.loop)} == 0 else {rest})"
        return self.mixed(operand.arrays, operand)

    def target(self, target: Target) -> str:
        if target is None:
            return "nothing"
        if isinstance(target, Reference):
            return self.reference(target)
        if isinstance(target, TargetChoice):
            first, rest = self.target(target.first), self.target(target.rest)
            return f"({first} if {self.loop(target.loop)} == 0 else {rest})"
        return self.mixed([a for a in target.arrays if a is not None], target)

    def mixed(self, arrays: Sequence[Array], operand: object) -> str:
        selector, position = operand.selector, operand.position  # type: ignore[attr-defined]
        return f"one of {', '.join(a.name for a in arrays)} [{self.entry(selector)}][{self.entry(position)}]"

    def reference(self, reference: Reference) -> str:
        self.arrays[reference.array] = None
        return f"{reference.array.name}[{self.index(reference.index)}]"

    def index(self, index: Index) -> str:
        parts = self.terms(index.terms)
        if index.table is not None:
            parts.append(self.entry(index.table))
        if index.dynamic is not None:
            parts.append(f"{index.dynamic.stride}*{self.operand(index.dynamic.operand)}")
        return _sum(parts, index.base)

    def entry(self, entry: TableEntry) -> str:
        return f"table[{_sum(self.terms(entry.terms), entry.offset)}]"

    def terms(self, terms: Sequence[tuple[Loop, int]]) -> list[str]:
        return [self.loop(loop) if c == 1 else f"{c}*{self.loop(loop)}" for loop, c in terms]

    def loop(self, loop: Loop) -> str:
        return self.names.get(loop, "?")


def _sum(parts: list[str], base: int) -> str:
    """Parts and a number that is left out if it is 0 and not alone."""
    text = "".join(f" - {part[1:]}" if part[0] == "-" else f" + {part}" for part in parts)
    if base or not parts:
        text += f" - {-base}" if base < 0 else f" + {base}"
    return text[3:] if text.startswith(" + ") else f"-{text[3:]}"
