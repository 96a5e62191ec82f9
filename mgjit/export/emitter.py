"""Program -> the functions of exported C: scalar C99, without extensions of any compiler.

1. Numbers are `float` or `double`.  Every conversion is a cast, so that no compiler warns of one.
2. Functions of the C library are those on doubles, whose results are rounded: that is what float32 means in mgjit.  In
   fast mode, a float32 step calls those on floats.
3. Operands of these functions that are constants, and all those of `pow`, pass through a volatile variable: compilers
   know such calls, and replace `pow(x, 2.0)` by `x * x`, or compute `exp(1.0)` themselves, with other roundings.
4. Arrays are local pointers, without `restrict`: compilers have been wrong about what such pointers may point to once
   functions are inlined (see codegen/function.py), and sums are in local variables anyway.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ..compiler.codegen.layout import Layout
from ..compiler.codegen.scalar import ScalarEmitter
from ..engine.arithmetic import SQUARE_IS_PRODUCT
from ..engine.precision import FLOAT32, FLOAT64
from ..ir.program import Array, Block, Node, Program
from ..tracing.tracer.sites import Sites
from .lines import as_comment, line_of

TYPES = {
    "b": "int8_t", "B": "uint8_t", "h": "int16_t", "H": "uint16_t", "i": "int32_t", "I": "uint32_t",
    "q": "int64_t", "Q": "uint64_t", "f": "float", "d": "double", "?": "uint8_t",
}  # fmt: skip
"""The C types of the elements of buffers, by struct code; of `l` and `L`, see `portable_format`."""

NUMBERS = {FLOAT64: "double", FLOAT32: "float"}
"""The C type of all numbers of a step, by its precision."""

_LITERAL = re.compile(r"-?[\d(]")
_NAMES = {"absolute": "fabs", "power": "pow"}
#: What rounds to the number type by itself: these have a version on floats with the same numbers.
_EXACT_ON_FLOATS = frozenset({"sqrt", "absolute", "floor", "ceil", "trunc", "rint", "copysign", "fmod"})

_POWER = """\
static {number} {prefix}_power({number} x, {number} y)
{{
    volatile {wide} base = ({wide})x, exponent = ({wide})y; /* no power that a compiler knows how to replace */
{special}\
    return {result};
}}
"""
_SPECIAL_FLOAT32 = """\
    if (y == 2.0f) return x * x;
    if (y == 1.0f) return x;
    if (y == -1.0f) return 1.0f / x;
    if (y == 0.5f) return x < -0x1.fffffep+127f ? 1.0f / 0.0f : sqrtf(x) + 0.0f;
"""
_SPECIAL_PYPY = "    if (y == 2.0) return x * x;\n"

_FROM_UNSIGNED = """\
static double {prefix}_from_unsigned(uint64_t n) /* not every small compiler converts these correctly */
{{
    return n >> 63 ? 2.0 * (double)(int64_t)(n >> 1 | (n & 1)) : (double)(int64_t)n;
}}
"""

_ROLLED = """\
/* The next loop is not to be unrolled: gcc 12 with AVX adds the terms of some of them up in the wrong order. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define {macro}_ROLLED _Pragma("GCC unroll 1")
#else
#define {macro}_ROLLED
#endif
"""


class Helpers:
    """What the functions of one export call.

    Attributes:
        sources: the functions of blocks, in order.
        used: the arrays that some function uses.
        uses_math: whether functions of the C library are called.
        uses_tables: whether index tables are looked up.
    """

    def __init__(self, prefix: str, program: Program, mode: str, sites: Sites) -> None:
        self.sites = sites
        self.prefix, self.number = prefix, NUMBERS[program.precision]
        self.is_single = program.precision is FLOAT32
        self.is_fast = mode == "fast"
        self.sources: list[str] = []
        self.used: set[Array] = set()
        self.uses_math = self.uses_tables = self.has_power = self.has_unsigned = self.has_rolled_loops = False
        self.blocks = 0
        self.line = ""  # of the user's, from which the last node came

    def take(self) -> list[str]:
        """The functions of blocks collected so far; begins anew."""
        taken, self.sources = self.sources, []
        return taken

    def definitions(self) -> list[str]:
        """The text of helper functions that are called."""
        found = []
        if self.has_power:
            on_floats = self.is_single and self.is_fast
            special = _SPECIAL_FLOAT32 if self.is_single else _SPECIAL_PYPY if SQUARE_IS_PRODUCT else ""
            result = "powf(base, exponent)" if on_floats else "pow(base, exponent)"
            found.append(
                _POWER.format(
                    number=self.number,
                    prefix=self.prefix,
                    special=special,
                    wide="float" if on_floats else "double",
                    result=f"(float){result}" if self.is_single and not on_floats else result,
                )
            )
        if self.has_unsigned:
            found.append(_FROM_UNSIGNED.format(prefix=self.prefix))
        if self.has_rolled_loops:
            found.insert(0, _ROLLED.format(macro=self.prefix.upper()))
        return found


class ExportEmitter(ScalarEmitter):
    """Emits one function of an export.

    Args:
        sources: for each array that is not scratch, the C expression for its first element.
        constants: those of them that no function changes.
        parameters: the C parameters that all functions take: declaration and name.
    """

    types = TYPES

    def __init__(
        self,
        program: Program,
        layout: Layout,
        helpers: Helpers,
        sources: Mapping[Array, str],
        constants: Collection[Array],
        parameters: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__(program, layout)
        self.helpers, self.number = helpers, helpers.number
        self._sources, self._constants, self._parameters = sources, constants, parameters
        self._uses_scratch = self._calls_blocks = False

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Outside of all loops, with comments that say where they come from."""
        if self.open_loops:
            super().nodes(nodes)
            return
        for node in nodes:
            line = line_of(node, self.helpers.sites)
            if line not in ("", self.helpers.line):
                self.line(as_comment(line))
                self.helpers.line = line
            super().nodes([node])

    def call(self, operation: str, operands: Sequence[str]) -> str:
        helpers = self.helpers
        helpers.uses_math = True
        if operation == "power":
            helpers.has_power = True
            return f"{helpers.prefix}_power({', '.join(operands)})"
        name = _NAMES.get(operation, operation)
        operands = [self._hidden(text) if _LITERAL.match(text) else text for text in operands]
        if helpers.is_single and (helpers.is_fast or operation in _EXACT_ON_FLOATS):
            return f"{name}f({', '.join(operands)})"
        if helpers.is_single:
            return f"(float){name}({', '.join(f'(double){text}' for text in operands)})"
        return f"{name}({', '.join(operands)})"

    def _hidden(self, text: str) -> str:
        """A variable with the number, which compilers do not know."""
        name = self.fresh("c")
        self.line(f"volatile {self.number} {name} = {text};")
        return name

    def from_unsigned(self, text: str) -> str:
        self.helpers.has_unsigned = True
        return f"{self.helpers.prefix}_from_unsigned({text})"

    def keep_rolled(self) -> None:
        self.helpers.has_rolled_loops = True
        self.line(f"{self.helpers.prefix.upper()}_ROLLED")

    def table_element(self, index: str) -> str:
        self.helpers.uses_tables = True
        return f"{self.helpers.prefix}_table[{index}]"

    def scratch_element(self, index: str) -> str:
        self._uses_scratch = True
        return f"memory->scratch[{index}]"

    def call_block(self, block: Block) -> None:
        number = self.helpers.blocks
        self.helpers.blocks += 1
        inner = ExportEmitter(self.program, self.layout, self.helpers, self._sources, self._constants, self._parameters)
        inner.enter_scope(self)
        inner.nodes(block.body)
        loops = [f"long {name}" for name in self.open_loops]
        self.helpers.sources.append(inner.function(f"block{number}", loops))
        names = [name for _, name in self._parameters]
        self.line(f"{self.helpers.prefix}_block{number}({', '.join([*names, *self.open_loops])});")
        self._calls_blocks = True

    def function(self, name: str, loops: Sequence[str] = ()) -> str:
        """The emitted lines as a static function of the parameters.

        Args:
            loops: declarations of the variables of loops around it.
        """
        self.helpers.used.update(self.used)
        declarations, used = self._pointers()
        unused = [] if self._calls_blocks else [name for _, name in self._parameters if name not in used]
        spoken = " ".join(["\n".join(self.lines), "["])
        unused += [name for name in (loop.split()[-1] for loop in loops) if not re.search(rf"\b{name}\b", spoken)]
        indent = self.indent_unit
        parameters = ", ".join([*(declaration for declaration, _ in self._parameters), *loops])
        return "\n".join([
            f"static void {self.helpers.prefix}_{name}({parameters or 'void'})",
            "{",
            *(f"{indent}{line};" for line in declarations),
            *(f"{indent}(void){name};" for name in unused),
            *self.lines,
            "}",
            "",
        ])  # fmt: skip

    def _pointers(self) -> tuple[list[str], set[str]]:
        """Declarations of the pointers to the arrays that are used, and the names of the parameters used for them."""
        found, used = [], {"memory"} if self._uses_scratch else set()
        for array in self.used:
            if array.space == "scratch":
                source = f"memory->scratch + {self.layout.offset_of[array]}"
            else:
                source = self._sources[array]
            used.update(re.findall(r"\w+", source))
            if source == array.name:  # it is a parameter
                continue
            constant = "const " if array in self._constants else ""
            found.append(f"{constant}{self.type_of(array)} *const {array.name} = {source}")
        return found, used
