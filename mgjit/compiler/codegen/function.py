"""Nodes of a Program -> one C function.

1. The emitter writes the lines of the nodes, and notes which arrays they use.
2. Blocks, and parts of a long phase, become functions of their own, which precede the function that calls them.
3. The function gets a pointer to each array that it uses, from the pointer block of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from struct import calcsize
from types import MappingProxyType

from ...engine.library import FUNCTIONS as LIBRARY
from ...engine.operations import OPERATIONS
from ...ir.program import Array, Block, Choice, Load, Loop, Node, Operand, Program, Reference, Register, Statement
from ...ir.substitute import Substitution
from .ahead import asked_for
from .held import Place, held_vectors, place_of
from .idle import Idle, idle_nodes
from .layout import Layout
from .parts import parts_of, registers_into
from .scalar import BINARY, LONG_INTEGERS, ScalarEmitter
from .transpose import Transposition, transposition
from .vectors import Vectors

TYPES = {
    "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int", "I": "unsigned int",
    "l": "long", "L": "unsigned long", "q": "long long", "Q": "unsigned long long", "f": "float", "d": "double",
    "?": "unsigned char",
}  # fmt: skip
"""The C types of the elements of buffers, by struct code."""

#: The elements of vectors of so many lanes, or more, are moved by a loop where they do not follow each other.
_LONG_VECTOR = 8
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: Functions that use more pointers than this have them as local variables instead of parameters.
_MOST_PARAMETERS = 40


class Blocks:
    """Collects the C functions of blocks, which must precede the function that calls them."""

    def __init__(self) -> None:
        self.count = 0
        self.sources: list[str] = []
        #: The functions of parts (codegen/parts.py), by parameters and lines.
        self.parts: dict[tuple[str, str], str] = {}
        #: The functions of the C library (engine/library.py) that some function calls.
        self.called: set[str] = set()

    def take(self) -> list[str]:
        """Return the sources collected so far, and start anew."""
        sources, self.sources = self.sources, []
        return sources


class FunctionEmitter(ScalarEmitter):
    """Writes the body of one C function."""

    has_vectors = True
    types = TYPES

    def __init__(self, program: Program, layout: Layout, blocks: Blocks, vectors: Vectors) -> None:
        super().__init__(program, layout)
        self.blocks, self.vectors = blocks, vectors
        self._vector_names: set[str] = set()
        #: What may be left out of the loops that are open, and the name of what it rests on.
        self._idle: dict[Loop, tuple[Idle, str]] = {}
        #: The vectors of the loop that is open that are held in registers.
        self._held: dict[Place, str] = {}
        self.uses_tables = self.uses_given = self.uses_scratch = False
        self.calls_blocks = self.calls_parts = False
        #: The loop of which this function runs a stretch, shared by threads.
        self._stretch: Loop | None = None
        rotation = program.rotation
        self._origins = {} if rotation is None else {twin: one for one, twin in rotation.following.items()}

    def keep_rolled(self) -> None:
        # gcc 12 with AVX gets sums wrong that run backwards through two loops, the inner of which it unrolls: the terms
        # of a vector come in the wrong order.
        self.line("ROLLED")

    def ask_ahead(self, loop: Loop, behind: Iterable[Node]) -> None:
        for ahead in asked_for(loop, behind):
            for outer in ahead.loops:
                self._loops[outer] = f"i{len(self._loops)}"
                self.open_loop(self._loops[outer], outer)
            for place in ahead.places:
                self.line(f"AHEAD(&{self.reference(_in_lane(place, ahead.lane, 0))});")
            for outer in ahead.loops:
                self.close()
                del self._loops[outer]  # which are emitted later

    def pointers(self) -> list[tuple[str, str]]:
        """Declaration and initial value of a pointer for each array that the function uses."""
        found = []
        for array, (block, one) in zip(self.used, map(self._origin, self.used)):
            if array.space == "scratch":
                source = f"(real *){block}[{self.layout.slot_number('scratch')}] + {self.layout.offset_of[one]}"
                source += f" + me * {self.layout.own[one]}" if one in self.layout.own else ""
                # Not restrict if elements are also reached through a pointer to the whole scratch memory.
                restrict = "" if self.uses_scratch or self.calls_parts else "RESTRICT "
                found.append((f"real *{restrict}const {array.name}", source))
            else:
                constant = "const " if array.space in ("input", "constant") else ""
                kind = constant + self.type_of(array)
                restrict = "" if self.calls_parts else "RESTRICT "  # parts have pointers of their own
                place = f"{block}[{self.layout.slot_of[one]}]"
                found.append((f"{kind} *{restrict}const {array.name}", f"({kind} *){place}"))
        if self.uses_tables:
            found.append(("const int *RESTRICT const table", f"(const int *)m[{self.layout.slot_number('table')}]"))
        if self.uses_given:
            found.append(("const int *RESTRICT const given", f"(const int *)m[{self.layout.slot_number('given')}]"))
        if self.uses_scratch:
            found.append(("real *const scratch", f"(real *)m[{self.layout.slot_number('scratch')}]"))
        return found

    def _origin(self, array: Array) -> tuple[str, Array]:
        """The pointer block that an array is taken from, and the array of the step that it is there."""
        return ("next", self._origins[array]) if array in self._origins else ("m", array)

    def parts(self, nodes: Sequence[Node]) -> None:
        """Emit the nodes of a phase, in several functions if they are many; parts of equal text share one."""
        cut = parts_of(nodes, not self.layout.shared)
        if len(cut) < 2:
            self.nodes(nodes)
            return
        self.calls_blocks = self.calls_parts = True
        for part in cut:
            if isinstance(part[0], Statement):
                self.nodes(part)
                continue
            inner = FunctionEmitter(self.program, self.layout, self.blocks, self.vectors)
            given = [self._names[register] for register in registers_into(part)]
            inner._names = {register: f"u{k}" for k, register in enumerate(registers_into(part))}
            inner.nodes(part)
            self.line(inner.called(given))

    def called(self, given: Sequence[str], numbers: Mapping[str, str] = MappingProxyType({})) -> str:
        """The call of a function with the emitted lines.

        Args:
            given: the registers that it gets, called u0, u1, ... there.
            numbers: the integers that it gets, by what they are called there.
        """
        pointers = self.pointers() + [(f"real u{k}", name) for k, name in enumerate(given)]
        pointers += [(f"const long {name}", number) for name, number in numbers.items()]
        if self.calls_blocks:
            pointers.append(("void *const *m", "m"))
        name = f"part{len(self.blocks.parts)}"
        names = {array.name: f"q{number}" for number, array in enumerate(self.used)}

        def neutral(text: str) -> str:
            return _NAME.sub(lambda found: names.get(found[0], found[0]), text)

        parameters = neutral(", ".join(declaration for declaration, _ in pointers)) or "void"
        key = parameters, neutral("\n".join(self.lines))
        if key not in self.blocks.parts:
            self.blocks.parts[key] = name
            self.blocks.sources.append(f"static NOINLINE void {name}({parameters})\n{{\n{key[1]}\n}}\n")
        return f"{self.blocks.parts[key]}({', '.join(source for _, source in pointers)});"

    def function(self, name: str, parameters: str = "", next_row: str = "") -> str:
        """The emitted lines as a function of the pointer block.

        Args:
            name: of the function.
            parameters: more of them.
            next_row: the parameter that is the pointer block of the next row.
        """
        pointers = self.pointers()
        head = f"static NOINLINE void {name}(void *const *m{next_row}{parameters})"
        if len(pointers) > _MOST_PARAMETERS or parameters:
            declarations = [f"{self.indent_unit}{declaration} = {source};" for declaration, source in pointers]
            declarations += [] if pointers or self.calls_blocks else [f"{self.indent_unit}(void)m;"]
            return "\n".join([head, "{", *declarations, *self.lines, "}", ""])
        # Pointers are parameters, because compilers make the most of `restrict` there.  The function must not be
        # inlined: gcc 12 at -O3 then gets wrong what such pointers may point to, and reads sums too early.
        if self.calls_blocks:
            pointers.append(("void *const *m", "m"))
        inner = f"static NOINLINE void {name}_on({', '.join(declaration for declaration, _ in pointers) or 'void'})"
        call = f"{self.indent_unit}{name}_on({', '.join(source for _, source in pointers)});"
        if not pointers:
            call += " (void)m;"
        return "\n".join([inner, "{", *self.lines, "}", "", head, "{", call, "}", ""])

    def pointer(self, slot: str) -> str:
        self.calls_blocks = True
        return f"((real *)m[{slot}])"

    def define_pointer(self, name: str, pointer: str) -> None:
        self.line(f"real *const {name} = {pointer};")

    def list_of(self, numbers: Sequence[int]) -> str:
        return f"((const short[]){{{', '.join(map(str, numbers))}}})"

    def call(self, operation: str, operands: Sequence[str]) -> str:
        if operation in LIBRARY:
            self.blocks.called.add(operation)
        return call(operation, operands)

    def from_unsigned(self, text: str) -> str:
        return f"FROM_UNSIGNED({text})"

    # ---- vectors ------------------------------------------------------------------------------------

    def open_loop(self, name: str, loop: Loop) -> None:
        if loop is not self._stretch:
            super().open_loop(name, loop)
            return
        self.line(f"for (long {name} = begin; {name} < end; {name}++) {{")
        self.depth += 1

    def _share(self, loop: Loop) -> None:
        """Emit a loop that threads share: a function that runs a stretch of it, and the call that lets them."""
        inner = FunctionEmitter(self.program, self.layout, self.blocks, self.vectors)
        registers = registers_into([loop])
        around = [one for one, name in self._loops.items() if name in self.open_loops]
        inner._stretch = loop
        inner._names = {register: f"u{k}" for k, register in enumerate(registers)}
        inner._loops = {one: f"l{k}" for k, one in enumerate(around)}
        inner.loop(loop)
        numbers = {f"l{k}": f"s->l[{k}]" for k in range(len(around))}
        call = inner.called([f"s->u[{k}]" for k in range(len(registers))], {"begin": "begin", "end": "end", **numbers})
        name = f"share{len(self.blocks.sources)}_{len(self.blocks.parts)}"
        self.blocks.sources.append(
            f"static void {name}(const struct share *s, long me, long begin, long end)\n"
            f"{{\n    void *const *const m = s->m;\n    (void)m, (void)me;\n    {call}\n}}\n"
        )
        given = ", ".join(self._names[register] for register in registers) or "0"
        places = ", ".join(self._loops[one] for one in around) or "0"
        self.line(
            f"{{ const real u[] = {{ {given} }}; const long l[] = {{ {places} }}; "
            f"share({name}, m, u, l, {self.iterations(loop)}); }}"
        )
        self.calls_blocks = self.calls_parts = True

    def loop(self, loop: Loop) -> None:
        if loop in self.layout.shared and loop is not self._stretch:
            self._share(loop)
        elif not loop.lanes:
            copy = transposition(loop)
            if copy is not None and self.vectors.has_transpose and self._is_of_numbers(copy):
                self._transpose(copy)
            else:
                idle = idle_nodes(loop)
                if idle is not None:
                    self._idle[loop] = idle, self._rests_on(idle)
                super().loop(loop)
        else:
            for node in loop.body:
                assert isinstance(node, Statement)
                self._vector_statement(node, loop)

    def body(self, loop: Loop) -> None:
        if loop not in self._idle:
            self._hold(loop)
            super().body(loop)
            self._held = {}
            return
        idle, ordinary = self._idle[loop]
        self.nodes(idle.before)
        self.open_if(f"!{ordinary} || {self.operand(idle.factor)} != {self.constant(0.0)}")
        self.nodes(idle.nodes)
        self.close()
        self.nodes(idle.others)

    def _hold(self, loop: Loop) -> None:
        """Load what several sums of a loop read."""
        if not self._accumulators or not self.vectors.are_held:
            return
        size = self.program.precision.size
        found = held_vectors(list(self.copied(loop.body)), len(self._accumulators), size)
        for place, (reference, lane) in found.items():
            name = self.fresh("h")
            self.define_vector(name, self.vector_load(reference, lane), lane)
            self.line(self.vectors.held(name, lane.count, size))
            self._held[place] = name

    def _rests_on(self, idle: Idle) -> str:
        """Emit whether the numbers that `idle` rests on are finite, and have the signs that they must have."""
        zero = self.constant(0.0)
        lanes = [next((loop for loop in loops if loop.lanes), None) for loops in idle.finite.values()]
        vectors = {lane.count: (self.fresh("z"), lane) for lane in lanes if lane is not None}
        total = self.fresh("z")
        self.define(total, zero)
        for name, one in vectors.values():
            self.define_vector(name, "{0}", one)
        for (operand, loops), lane in zip(idle.finite.items(), lanes):
            around = [loop for loop in loops if loop is not lane]
            for loop in around:
                self._loops[loop] = f"i{len(self._loops)}"
                self.open_loop(self._loops[loop], loop)
            name = total if lane is None else vectors[lane.count][0]
            text = self.operand(operand) if lane is None else self._vector_operand(operand, lane)[0]
            self.assign(name, f"{name} + {text} * {zero}")
            for loop in around:
                self.close()
                del self._loops[loop]
        for count, (name, _) in vectors.items():
            self.line(f"for (long k = 0; k < {count}; k++) {total} = {total} + {name}[k];")
        signs = [f"{self.operand(number)} {'>' if sign > 0 else '<'} {zero}" for number, sign in idle.signs.items()]
        ordinary = self.fresh("z")
        self.line(f"const int {ordinary} = {' && '.join([f'{total} == {zero}', *signs])};")
        return ordinary

    def _is_of_numbers(self, copy: Transposition) -> bool:
        if copy.target.array.joined is not None or copy.source.array.joined is not None:
            return False
        return {self.type_of(copy.target.array), self.type_of(copy.source.array)} == {"real"}

    def _transpose(self, copy: Transposition) -> None:
        to, source = self.reference(copy.target), self.reference(copy.source)
        steps = copy.target_step, copy.source_step
        self.line(f"transpose(&{to}, {steps[0]}, &{source}, {steps[1]}, {copy.rows}, {copy.columns});")

    def _vector_statement(self, statement: Statement, lane: Loop) -> None:
        operands = [self._vector_operand(operand, lane) for operand in statement.operands]
        target = statement.target
        assert target is None or isinstance(target, Reference)
        if statement.update:
            assert target is not None
            accumulator = self._accumulators.get(target)
            old = accumulator or self.vector_load(target, lane)
            new = self._vector_expression(statement.operation, [(old, True), *operands], lane)[0]
            if accumulator:
                self.assign(accumulator, new)
            else:
                self.store_vector(target, lane, new)
            return
        text, is_vector = self._vector_expression(statement.operation, operands, lane)
        name = self._names[statement] = self.fresh("v")
        if is_vector:
            self._vector_names.add(name)
            self.define_vector(name, text, lane)
        else:
            self.define(name, text)
        if target is not None:
            self.store_vector(target, lane, name if is_vector else self.vectors.broadcast(name, lane.count))

    def store_vector(self, target: Reference, lane: Loop, value: str) -> None:
        step = dict(target.index.terms)[lane]
        if step == 1:
            self.assign(self._vector_place(target, lane), value)
            return
        if self._is_long(target.array, lane):
            first = self.reference(_in_lane(target, lane, 0))
            self.line(f"{self.vectors.call('scatter', [f'&{first}', str(step), value], lane.count)};")
            return
        name = self.fresh("w")
        self.define_vector(name, value, lane)
        for k in range(lane.count):
            self.assign(self.reference(_in_lane(target, lane, k)), f"{name}[{k}]")

    def _vector_expression(self, operation: str, operands: list[tuple[str, bool]], lane: Loop) -> tuple[str, bool]:
        """Text of an operation, and whether it is a vector."""
        if not any(is_vector for _, is_vector in operands):
            return self.expression(operation, [text for text, _ in operands]), False
        has_symbol = operation in BINARY and not self.vectors.is_whole(operation, lane.count)
        if has_symbol or operation in ("copy", "negate"):
            return self.expression(operation, [text for text, _ in operands]), True  # C mixes vectors and numbers
        same = [text if is_vector else self.vectors.broadcast(text, lane.count) for text, is_vector in operands]
        if operation in LIBRARY:
            self.blocks.called.add(operation)
        return self.vectors.call(operation, same, lane.count), True

    def _vector_operand(self, operand: Operand, lane: Loop) -> tuple[str, bool]:
        """Text of an operand, and whether it is a vector."""
        if isinstance(operand, Register):
            name = self._names[operand.statement]
            return name, name in self._vector_names
        if isinstance(operand, Choice):
            first, rest = self._vector_operand(operand.first, lane), self._vector_operand(operand.rest, lane)
            if first[1] != rest[1]:
                count = lane.count
                first, rest = [(t if v else self.vectors.broadcast(t, count), True) for t, v in (first, rest)]
            return self.choice(f"{self._loops[operand.loop]} == 0", first[0], rest[0]), first[1]
        if isinstance(operand, Load) and lane in dict(operand.reference.index.terms):
            held = self._held.get(place_of(operand.reference, lane)) if self._held else None
            return held or self.vector_load(operand.reference, lane), True
        return self.operand(operand), False

    def vector_load(self, reference: Reference, lane: Loop) -> str:
        array = reference.array
        step = dict(reference.index.terms)[lane]
        if step != 1 and self._is_long(array, lane):
            first = self.reference(_in_lane(reference, lane, 0))
            return self.vectors.call("gather", [f"&{first}", str(step)], lane.count)
        if step != 1:
            elements = [self.operand(Load(_in_lane(reference, lane, k))) for k in range(lane.count)]
            return f"({self.vectors.type(lane.count)}){{{', '.join(elements)}}}"
        if self.type_of(array) == "real":
            return self._vector_place(reference, lane)
        memory = self.vectors.memory_type(lane.count, TYPES[array.format])
        text = f"*(const {memory} *)&{self.reference(_in_lane(reference, lane, 0))}"
        if array.format in LONG_INTEGERS:
            text = f"__builtin_convertvector({text}, {self.vectors.memory_type(lane.count, 'double')})"
        if calcsize(array.format) < 4:
            text = self.vectors.widened(text, TYPES[array.format], lane.count)
        return f"__builtin_convertvector({text}, {self.vectors.type(lane.count)})"

    def _is_long(self, array: Array, lane: Loop) -> bool:
        """Whether the elements of a vector in distant places are moved by a loop."""
        return lane.count >= _LONG_VECTOR and self.type_of(array) == "real" and array.joined is None

    def _vector_place(self, target: Reference, lane: Loop) -> str:
        memory = self.vectors.memory_type(lane.count)
        constant = "const " if target.array.space in ("input", "constant") else ""
        return f"*({constant}{memory} *)&{self.reference(_in_lane(target, lane, 0))}"

    def define_vector(self, name: str, value: str, lane: Loop) -> None:
        self.line(f"{self.vectors.type(lane.count)} {name} = {value};")

    def table_element(self, index: str) -> str:
        self.uses_tables = True
        return f"table[{index}]"

    def given_number(self, place: int) -> str:
        self.uses_given = True
        return f"given[{place}]"

    def scratch_element(self, index: str) -> str:
        self.uses_scratch = True
        return f"scratch[{index}]"

    def call_block(self, block: Block) -> None:
        self.calls_blocks = True
        number = self.blocks.count
        self.blocks.count += 1
        inner = FunctionEmitter(self.program, self.layout, self.blocks, self.vectors)
        inner.enter_scope(self)
        inner.nodes(block.body)
        parameters = "".join(f", long {name}" for name in self.open_loops)
        self.blocks.sources.append(inner.function(f"block{number}", parameters))
        self.line(f"block{number}({', '.join(['m', *self.open_loops])});")


def call(operation: str, operands: Sequence[str]) -> str:
    """The text of the call of a mathematical function."""
    return f"{OPERATIONS[operation].called}({', '.join(operands)})"


def _in_lane(reference: Reference, lane: Loop, number: int) -> Reference:
    """The element of one lane."""
    return Reference(reference.array, Substitution(lane, None, 1, number).index(reference.index))
