"""Random step functions as Python source text.

A `Writer` makes every decision with `choose(n)`, a number in `range(n)`, so that Hypothesis (which can shrink
a program) and `random.Random` (which is faster, for long hunts) drive the same grammar.  It keeps track of
what is in scope, with lengths, so that a program is always well formed; what it cannot know is whether
plain-number arithmetic raises, and programs that do are discarded by the test.

The text defines `make()`, which returns `(step, values, states)` over fresh parameters, and `CALLS`, the
arguments of each call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

CALL_COUNT = 3

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 5e-324, -2.5e-310, 1e308, -1e200, float("inf"), float("-inf"), float("nan"))
_CONSTANTS = ("0.5", "2.0", "1.0", "-1.0", "0.1", "-0.7", "3", "0", "1", "2", "0.0", "1e-3", "-0.0")
_EXPONENTS = ("2", "2.0", "3", "-1", "-2", "0.5", "1", "0", "-0.5", "1.5", "-1.0", "3.0")


@dataclass(frozen=True)
class Vector:
    """A name with a length; kind V (Values), N (floats) or I (ints)."""

    name: str
    length: int
    kind: str
    parameter: bool = False


@dataclass(frozen=True)
class Matrix:
    """A list of rows of equal length."""

    name: str
    rows: int
    columns: int
    kind: str
    parameter: bool = False


@dataclass
class Scope:
    """What an expression may use here."""

    values: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)
    matrices: list[Matrix] = field(default_factory=list)
    indices: list[tuple[str, int, int]] = field(default_factory=list)

    def copy(self) -> Scope:
        """A scope that can grow on its own."""
        return Scope(*(list(getattr(self, name)) for name in self.__dataclass_fields__))


@dataclass
class Several:
    """Matrices of which an argument, a list of ints, chooses: how many there are and how many are chosen."""

    name: str
    count: int
    rows: int
    columns: int
    picks: int


class Writer:
    """Writes one program."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.depth = 2
        self.scope = Scope()
        self.data = random.Random(choose(1 << 16))
        self.special = self.chance(20)
        self.wild = self.chance(15)  # no care for the size of numbers
        self.fresh_count = 0
        self.sizes = self.sizes_of_program()
        self.parameters: list[Vector] = []
        self.singles: list[str] = []
        self.states: list[Vector] = []
        self.locals: list[Vector] = []
        self.local_singles: list[str] = []
        self.interior: list[str] = []
        self.index_name = ""
        self.several: Several | None = None
        self.loop_depth = 0

    # ---- decisions ------------------------------------------------------------------------------

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred; a shrunk program takes the False branch."""
        return self.choose(100) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, the first in a shrunk program."""
        return options[self.choose(len(options))]

    def between(self, low: int, high: int) -> int:
        """A number in low .. high."""
        return low + self.choose(high - low + 1)

    def sizes_of_program(self) -> list[int]:
        """Lengths that vectors and loops share, so that they fit together."""
        sizes = [self.between(1, 8) for _ in range(self.between(1, 3))]
        if self.chance(10):
            sizes.append(20)
        return sizes

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self.fresh_count += 1
        return f"{prefix}{self.fresh_count}"

    # ---- text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One line of the step."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement; names that it defines end with it, as far as the grammar is concerned."""
        self.line(head)
        outer, self.scope = self.scope, self.scope.copy()
        self.depth += 1
        self.loop_depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.loop_depth -= 1
        self.depth -= 1
        self.scope = outer

    # ---- data -----------------------------------------------------------------------------------

    def float_(self) -> str:
        """A float literal for parameters and inputs."""
        if self.special and self.data.random() < 0.15:
            return repr(self.data.choice(_SPECIAL)).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
        return repr(round(self.data.uniform(-1.5, 1.5), self.data.choice((1, 3, 6))))

    def floats(self, n: int) -> str:
        """A list of float literals."""
        return f"[{', '.join(self.float_() for _ in range(n))}]"

    # ---- expressions ----------------------------------------------------------------------------

    def size(self) -> int:
        """A length."""
        return self.pick(self.sizes)

    def index(self, length: int) -> str:
        """An index expression that is in range for this length."""
        options = []
        for name, low, high in self.scope.indices:
            if high < length:
                options += [name] * 4
                options.append(f"{length - 1} - {name}")
            options += [f"{name} + {k}" for k in (1, 2) if high + k < length]
            options += [f"{name} - {k}" for k in (1, 2) if low >= k and high - k < length]
            if 2 * high < length:
                options.append(f"2 * {name}")
        names = [(name, high) for name, _, high in self.scope.indices]
        for (one, high_one), (two, high_two) in zip(names, names[1:]):
            if high_one + high_two < length:
                options += [f"{one} + {two}"] * 3
        if options and not self.chance(10):
            return self.pick(options)
        return str(self.pick([*range(length), -1]))

    def element(self, kinds: str) -> str:
        """A name, or an element of a vector or matrix, of one of these kinds; empty when there is none."""
        vectors = [v for v in self.scope.vectors if v.kind in kinds]
        matrices = [m for m in self.scope.matrices if m.kind in kinds]
        scalars = (self.scope.values if "V" in kinds else []) + (self.scope.numbers if "N" in kinds else [])
        groups: list[str] = ["vector"] * 2 * bool(vectors) + ["matrix"] * bool(matrices) + ["scalar"] * bool(scalars)
        if not groups:
            return ""
        group = self.pick(groups)
        if group == "scalar":
            return self.pick(scalars[-6:])
        if group == "vector":
            vector = self.pick(vectors[-6:])
            return f"{vector.name}[{self.index(vector.length)}]"
        matrix = self.pick(matrices)
        return f"{matrix.name}[{self.index(matrix.rows)}][{self.index(matrix.columns)}]"

    def value(self, depth: int = 2) -> str:
        """An expression that is a Value."""
        if depth <= 0 or self.chance(25):
            return self.element("V")
        form = self.choose(24)
        d = depth - 1
        if form < 5:
            return f"{self.operand(d)} * {self.operand(d)}"
        if form < 8:
            return f"({self.value(d)} + {self.value(d)})"
        if form < 10:
            return f"({self.value(d)} - {self.value(d)})"
        if form < 14:
            x = self.number(d, any_kind=True)
            forms = [f"{self.operand(d)} * {x}", f"{x} * {self.operand(d)}", f"({self.value(d)} + {x})"]
            return self.pick(
                [*forms, f"({x} + {self.value(d)})", f"({x} - {self.value(d)})", f"({self.value(d)} - {x})"]
            )
        if form < 18:
            return self.unary(self.value(d))
        if form == 18:
            return f"-{self.operand(d)}"
        if form == 19:
            return self.quotient(d)
        if form == 20:
            return self.power(d)
        if form == 21:
            one, two = self.value(d), self.pick([self.value(d), self.number(d, any_kind=True)])
            name = self.pick(["maximum", "minimum"])
            return self.pick([f"mgjit.{name}({one}, {two})", f"mgjit.{name}({two}, {one})"])
        if form == 22:
            one, two = self.value(d), self.pick([self.value(d), self.number(d, any_kind=True)])
            pair = self.pick([f"{one}, {two}", f"{two}, {one}"])
            return f"mgjit.where({self.condition(d)}, {pair})"
        return self.reduction(d)

    def operand(self, depth: int) -> str:
        """A Value expression that binds tightly."""
        text = self.value(depth)
        return text if "*" not in text and not text.startswith("-") else f"({text})"

    def unary(self, text: str) -> str:
        """A function of a Value."""
        name = self.pick(["tanh", "relu", "exp", "abs", "sqrt", "log", "tanh"])
        if name == "abs":
            return f"abs({text})"
        if not self.wild:
            text = {"exp": f"mgjit.tanh({text})", "sqrt": f"abs({text}) + 0.1", "log": f"abs({text}) + 0.5"}.get(
                name, text
            )
        return f"({text}).{name}()" if self.chance(30) else f"mgjit.{name}({text})"

    def quotient(self, depth: int) -> str:
        """A division with a Value in it."""
        one, two = self.operand(depth), self.value(depth)
        two = f"({two})" if self.wild else f"(abs({two}) + 0.5)"
        return self.pick(
            [f"{one} / {two}", f"{self.number(depth)} / {two}", f"{one} / {self.pick(['3', '2.0', '0.7'])}"]
        )

    def power(self, depth: int) -> str:
        """A power of a Value."""
        base = self.value(depth)
        exponent = self.pick(_EXPONENTS) if not self.chance(25) else f"({self.number(0)})"
        return f"({base}) ** {exponent}" if self.wild or self.chance(40) else f"(abs({base}) + 0.3) ** {exponent}"

    def condition(self, depth: int) -> str:
        """Something for `where`."""
        sign = self.pick(["<", ">", "<=", ">="])
        one, two = self.value(0), self.number(depth)
        form = self.choose(6)
        if form == 0:
            return f"{one} {sign} {self.value(0)}"
        if form == 1:
            return f"{one} {sign} {two}"
        if form == 2:
            return f"{two} {sign} {one}"
        if form == 3:
            return f"{two} {self.pick(['<', '>', '==', '!=', '<=', '>='])} {self.number(0)}"
        return self.pick([two, one])

    def reduction(self, depth: int) -> str:
        """A sum over a generator, or a dot product."""
        vectors = [v for v in self.scope.vectors if v.kind == "V"]
        if self.chance(20) and vectors:
            vector = self.pick(vectors)
            others = [v.name for v in self.scope.vectors if v.length == vector.length]
            return f"mgjit.dot({vector.name}, {self.pick(others)})"
        n = self.span()
        with self.loop_index(n) as (name, text):
            body = self.value(depth)
        start = self.pick(["", "", ", 0.0", f", {self.value(0)}", f", {self.number(0)}"])
        return f"sum(({body} for {name} in {text}){start})" if start else f"sum({body} for {name} in {text})"

    def span(self) -> tuple[str, int, int]:
        """A range: its text, the lowest and the highest index."""
        n = self.size()
        triangular = [i for i in self.scope.indices if i[1] >= 0]
        if triangular and self.chance(15):
            name, _, high = self.pick(triangular)
            return f"range({name} + 1)", 0, high
        form = self.choose(12)
        if form == 0 and n > 1:
            return f"range({n - 1}, -1, -1)", 0, n - 1
        if form == 1 and n > 2:
            return f"range(0, {n}, 2)", 0, n - 1
        if form == 2 and n > 1:
            return f"range(1, {n})", 1, n - 1
        if form == 3 and n > 1:
            return f"range({n - 1})", 0, n - 2
        if form == 4 and n > 2:
            return f"range({n - 2})", 0, n - 3
        if form == 5:
            return f"reversed(range({n}))", 0, n - 1
        return f"range({n})", 0, n - 1

    @contextmanager
    def loop_index(self, span: tuple[str, int, int]) -> Iterator[tuple[str, str]]:
        """A loop variable that expressions inside may use."""
        text, low, high = span
        name = self.fresh("i")
        self.scope.indices.append((name, low, high))
        yield name, text
        self.scope.indices.remove((name, low, high))

    def number(self, depth: int = 1, any_kind: bool = False) -> str:
        """An expression that is a plain float; with `any_kind` perhaps an int (only for Value arithmetic)."""
        if depth <= 0 or self.chance(30):
            form = self.choose(10)
            if form < 2:
                return self.pick(_CONSTANTS[:8]) if any_kind else self.pick(["0.5", "2.0", "-0.7", "0.0"])
            if form < 4:
                return f"{self.element('V')}.{self.pick(['data', 'data', 'data', self.gradient()])}"
            if form < 5 and any_kind and any(v.kind == "I" for v in self.scope.vectors):
                return self.element("I")
            return self.element("N") or "0.25"
        d = depth - 1
        x, y = self.number(d), self.number(d)
        forms = [f"({x} * {y})", f"({x} + {y})", f"({x} - {y})", f"abs({x})", f"mgjit.tanh({x})", f"(-{x})",
                 f"mgjit.maximum({x}, {y})", f"mgjit.minimum({x}, {y})", f"({x} / (abs({y}) + 0.5))",
                 f"({x}) ** {self.pick(['2', '3', '2.0'])}", f"(abs({x}) + 0.2) ** {self.pick(['0.5', '-1', '-0.5'])}",
                 f"mgjit.where({x} {self.pick(['<', '>='])} {y}, {self.number(d)}, {y})", f"({x} < {y})",
                 f"mgjit.sqrt({x})", f"mgjit.exp(mgjit.tanh({x}))"]  # fmt: skip
        if self.wild:
            forms += [f"mgjit.exp({x})", f"mgjit.log({x})", f"({x} / {y})"]
        ints = [v for v in self.scope.vectors if v.kind == "I"]
        if ints:
            vector = self.pick(ints)
            forms.append(f"({vector.name}[{self.index(vector.length)}] * 0.01)")
        return self.pick(forms)

    def gradient(self) -> str:
        """`grad` where it is likely to be interesting."""
        return "grad"

    # ---- statements of the forward part ---------------------------------------------------------

    def define_value(self, text: str) -> str:
        """`v = text`."""
        name = self.fresh("v")
        self.line(f"{name} = {text}")
        self.scope.values.append(name)
        return name

    def define_vector(self, name: str, length: int, kind: str = "V") -> None:
        """A list that has just been written."""
        self.scope.vectors.append(Vector(name, length, kind))

    def statement(self) -> None:
        """One random statement, or a loop of them."""
        forms = [self.assignment, self.comprehension, self.accumulation, self.chain, self.recurrence, self.prefix,
                 self.window, self.product, self.softmax, self.graph, self.detach, self.made_value, self.general_loop,
                 self.general_loop, self.comprehension, self.accumulation, self.matrix_of_values, self.element_loop,
                 self.lookup, self.number_sum]  # fmt: skip
        if self.several is not None:
            forms += [self.chosen_products, self.chosen_products]
        self.pick(forms)()

    def assignment(self) -> None:
        self.define_value(self.value(3))

    def comprehension(self) -> None:
        span = self.span()
        if "i" in span[0].replace("range", ""):
            span = (f"range({self.size()})", 0, 0)
            span = (span[0], 0, int(span[0][6:-1]) - 1)
        with self.loop_index(span) as (name, text):
            body = self.value(3)
        count = _count(text)
        vector = self.fresh("h")
        self.line(f"{vector} = [{body} for {name} in {text}]")
        self.define_vector(vector, count)

    def initial(self) -> str:
        return self.pick(["0", "0.0", self.value(0), self.value(1), "1.0"])

    def accumulation(self) -> None:
        """A sum written as a loop."""
        name = self.fresh("s")
        n = self.size()
        first = self.chance(25) and n > 1
        if first:
            with self.loop_index(("", 0, 0)) as (index, _):
                term = self.value(2)
            self.line(f"{index} = 0")
            self.line(f"{name} = {term}")
            with self.block(f"for {index} in range(1, {n}):"):
                self.scope.indices.append((index, 1, n - 1))
                self.line(f"{name} = {name} + {self.value(2)}")
        else:
            self.line(f"{name} = {self.initial()}")
            with self.loop_index(self.span()) as (index, text), self.block(f"for {index} in {text}:"):
                for _ in range(self.choose(2)):
                    self.assignment()
                e = self.value(2)
                self.line(self.pick([f"{name} = {name} + {e}", f"{name} += {e}", f"{name} = {e} + {name}",
                                     f"{name} = {name} - {e}", f"{name} -= {e}"]))  # fmt: skip
        self.scope.values.append(name)

    def chain(self) -> None:
        """A product, maximum or minimum over a loop."""
        name = self.fresh("c")
        self.line(f"{name} = {self.value(1)}")
        with self.loop_index(self.span()) as (index, text), self.block(f"for {index} in {text}:"):
            e = self.value(2)
            self.line(self.pick([f"{name} = {name} * ({e})", f"{name} = mgjit.maximum({name}, {e})",
                                 f"{name} = mgjit.minimum({e}, {name})", f"{name} = ({e}) * {name}",
                                 f"{name} = mgjit.where({name} > {self.number(0)}, {name}, {e})"]))  # fmt: skip
        self.scope.values.append(name)

    def recurrence(self) -> None:
        """Values carried from one iteration to the next, or over two."""
        one, two = self.fresh("f"), self.fresh("f")
        self.line(f"{one} = {self.value(1)}")
        self.line(f"{two} = {self.value(1)}")
        keep = self.fresh("k") if self.chance(40) else ""
        if keep:
            self.line(f"{keep} = []")
        span = self.span()
        with self.loop_index(span) as (index, text), self.block(f"for {index} in {text}:"):
            e = self.value(1)
            self.line(self.pick([f"{one} = mgjit.tanh({one} * {self.number(0)} + {e})",
                                 f"{one}, {two} = {two}, {one} * {e} + {two} * 0.5",
                                 f"{one}, {two} = mgjit.tanh({one} + {two}), {one} - {e}",
                                 f"{two} = {one} * {e}; {one} = {two} + {one}"]))  # fmt: skip
            if keep:
                self.line(f"{keep}.append({self.pick([one, two])})")
        self.scope.values += [one, two]
        if keep and "i" not in span[0].replace("range", "").replace("reversed", ""):
            self.define_vector(keep, _count(span[0]))

    def prefix(self) -> None:
        """A prefix sum or product whose partial results are kept."""
        name, total = self.fresh("h"), self.fresh("s")
        n = self.size()
        self.line(f"{name} = []")
        self.line(f"{total} = {self.value(1)}")
        with self.loop_index((f"range({n})", 0, n - 1)) as (index, text), self.block(f"for {index} in {text}:"):
            self.line(f"{total} = {total} {self.pick(['+', '*', '-'])} ({self.value(2)})")
            self.line(f"{name}.append({self.pick([total, f'{total} * {self.value(0)}'])})")
        self.define_vector(name, n)
        self.scope.values.append(total)

    def window(self) -> None:
        """A convolution, a triangular sum, or a product with a matrix or its transpose."""
        name = self.fresh("h")
        matrices = [m for m in self.scope.matrices if m.kind == "V"]
        if matrices and self.chance(60):
            m = self.pick(matrices)
            form = self.choose(3)
            if form == 0:
                xs = [v for v in self.scope.vectors if v.length >= m.columns]
                term, rows, columns = f"{m.name}[i][j] * X[j]", m.rows, m.columns
            elif form == 1:
                xs = [v for v in self.scope.vectors if v.length >= m.rows]
                term, rows, columns = f"{m.name}[j][i] * X[j]", m.columns, m.rows
            else:
                xs = [v for v in self.scope.vectors if v.length >= min(m.rows, m.columns)]
                term, rows, columns = f"{m.name}[i][j] * X[j]", min(m.rows, m.columns), -1
            if xs:
                term = term.replace("X", self.pick(xs).name)
                inner = "i + 1" if columns < 0 else str(columns)
                start = self.start_of_sum(rows)
                self.line(f"{name} = [sum(({term} for j in range({inner})){start}) for i in range({rows})]")
                self.define_vector(name, rows)
                return
        vectors = [v for v in self.scope.vectors if v.kind == "V"]
        wide = self.pick(vectors)
        narrow = self.pick([v for v in self.scope.vectors if v.length <= wide.length])
        rows = wide.length - narrow.length + 1
        term = f"{wide.name}[i + k] * {narrow.name}[k]"
        start = self.start_of_sum(rows)
        self.line(f"{name} = [sum(({term} for k in range({narrow.length})){start}) for i in range({rows})]")
        self.define_vector(name, rows)

    def start_of_sum(self, rows: int) -> str:
        biases = [v.name for v in self.scope.vectors if v.kind == "V" and v.length >= rows]
        return self.pick(["", "", f", {self.pick(biases)}[i]" if biases else ", 0.0", ", 0.0"])

    def product(self) -> None:
        """All pairs."""
        vectors = [v for v in self.scope.vectors if v.kind in "VN"]
        one = self.pick([v for v in vectors if v.kind == "V"])
        two = self.pick(vectors)
        if one.length * two.length > 40:
            return self.assignment()
        name = self.fresh("m")
        text = self.pick([f"{one.name}[i] * {two.name}[j]", f"({one.name}[i] - {two.name}[j]) ** 2",
                          f"mgjit.maximum({one.name}[i], {two.name}[j])"])  # fmt: skip
        self.line(f"{name} = [[{text} for j in range({two.length})] for i in range({one.length})]")
        self.scope.matrices.append(Matrix(name, one.length, two.length, "V"))
        return None

    def softmax(self) -> None:
        vector = self.pick([v for v in self.scope.vectors if v.kind == "V"])
        e, name, total = self.fresh("e"), self.fresh("h"), self.fresh("t")
        inner = "x" if self.wild else "mgjit.tanh(x)"
        self.line(f"{e} = [mgjit.exp({inner}) for x in {vector.name}]")
        self.line(f"{total} = sum({e})")
        self.line(f"{name} = [x / {total} for x in {e}]")
        self.define_vector(e, vector.length)
        self.define_vector(name, vector.length)
        self.scope.values.append(total)

    def graph(self) -> None:
        """An irregular part."""
        for _ in range(self.between(2, 6) if not self.chance(2) else 150):
            self.define_value(self.value(2))

    def detach(self) -> None:
        name = self.fresh("n")
        self.line(f"{name} = {self.number(2)}")
        self.scope.numbers.append(name)

    def number_sum(self) -> None:
        """Plain-number arithmetic in loops."""
        name = self.fresh("n")
        with self.loop_index(self.span()) as (index, text):
            body = self.number(2)
        if self.chance(50):
            self.line(f"{name} = sum({body} for {index} in {text})")
        else:
            self.line(f"{name} = 0.0")
            with self.block(f"for {index} in {text}:"):
                self.line(f"{name} += {body}")
        self.scope.numbers.append(name)

    def made_value(self) -> None:
        """Values made inside the step."""
        if self.loop_depth == 0 and self.chance(60):
            name, n = self.fresh("u"), self.size()
            with self.loop_index((f"range({n})", 0, n - 1)) as (index, text):
                self.line(f"{name} = [mgjit.Value({self.number(1)}) for {index} in {text}]")
            self.scope.vectors.append(Vector(name, n, "V"))
            self.locals.append(Vector(name, n, "V"))
        else:
            name = self.fresh("u")
            self.line(f"{name} = mgjit.Value({self.number(1)})")
            self.scope.values.append(name)
            if self.loop_depth == 0:
                self.local_singles.append(name)

    def matrix_of_values(self) -> None:
        r, c = self.size(), self.size()
        if r * c > 40:
            return
        with (
            self.loop_index((f"range({r})", 0, r - 1)) as (i, outer),
            self.loop_index((f"range({c})", 0, c - 1)) as (j, inner),
        ):
            body = self.value(2)
        name = self.fresh("m")
        self.line(f"{name} = [[{body} for {j} in {inner}] for {i} in {outer}]")
        self.scope.matrices.append(Matrix(name, r, c, "V"))

    def element_loop(self) -> None:
        """A loop over elements, not indices."""
        vectors = [v for v in self.scope.vectors if v.kind in "VN"]
        one = self.pick(vectors)
        two = self.pick([v for v in vectors if v.length == one.length])
        x, y, total = self.fresh("p"), self.fresh("q"), self.fresh("s")
        self.line(f"{total} = {self.initial()}")
        order = self.pick(["", "", "[::-1]"])
        with self.block(f"for {x}, {y} in zip({one.name}, {two.name}{order}):"):
            for name, vector in ((x, one), (y, two)):
                (self.scope.values if vector.kind == "V" else self.scope.numbers).append(name)
            self.line(f"{total} = {total} + {self.value(2)}")
        self.scope.values.append(total)

    def lookup(self) -> None:
        if not self.index_name:
            return self.assignment()
        n = self.label_range
        tables = [v for v in self.parameters if v.length == n]
        if tables and self.chance(60):
            self.define_value(f"mgjit.take({self.pick(tables).name}, {self.index_name})")
        else:
            name = self.fresh("n")
            self.line(f"{name} = mgjit.one_hot({self.index_name}, {n})")
            self.define_vector(name, n, "N")
        return None

    def chosen_products(self) -> None:
        """Products with the matrices that numbers choose, one after the other or added up."""
        several = self.several
        assert several is not None
        rows, columns = several.rows, several.columns
        vectors = [v for v in self.scope.vectors if v.kind in "VN" and v.length >= columns]
        x = self.pick(vectors).name if vectors else f"{several.name}[0][0]"
        element = self.pick(["one[i][j]", "one[i][j]", f"one[{rows} - 1 - i][j]"])
        product = f"mgjit.take([{element} for one in {several.name}], pick) * {x}[j]"
        total = f"sum({product} for j in range({columns}))"
        name = self.fresh("h")
        if self.chance(50):
            self.line(f"{name} = [mgjit.tanh({total}) for pick in picks for i in range({rows})]")
            self.define_vector(name, rows * several.picks)
            return
        self.line(f"{name} = [0.0] * {rows}")
        with self.block("for pick in picks:"), self.block(f"for i in range({rows}):"):
            self.line(f"{name}[i] = {name}[i] + {total}")
        self.define_vector(name, rows)

    def general_loop(self) -> None:
        """A loop of random statements, with a list that it fills and names that it carries."""
        if self.loop_depth >= 2:
            return self.assignment()
        name = self.fresh("g")
        count = 0
        if self.loop_depth == 0:
            self.line(f"{name} = []")
        outer_values = self.scope.values[-3:]
        span = self.span()
        with self.loop_index(span) as (index, text), self.block(f"for {index} in {text}:"):
            count = _count(text) if self.loop_depth == 1 else 0
            for _ in range(self.between(1, 2)):
                self.statement()
            if outer_values and self.chance(35):
                carried = self.pick(outer_values)
                if carried.startswith(("v", "s", "f", "c")):
                    start = self.pick([f"{carried} + ", f"{carried} * ", f"mgjit.tanh({carried}) + "])
                    self.line(f"{carried} = {start}({self.value(1)})")
            if self.chance(6):
                self.define_value(self.value(2))
                self.line(f"{self.scope.values[-1]}.backward()")
            if self.loop_depth == 1:
                self.line(f"{name}.append({self.value(1)})")
        if count:
            self.define_vector(name, count)
        return None

    # ---- backward and update --------------------------------------------------------------------

    def backward(self) -> None:
        """One or several backward passes."""
        form = self.choose(10)
        if form < 5:
            loss = self.define_value(self.loss())
            self.line(f"{loss}.backward()")
        elif form < 6:
            self.line(f"{self.element('V')}.backward()")
        elif form < 8:  # a pass a sample
            total = self.fresh("n")
            self.line(f"{total} = 0.0")
            shared = self.chance(50)
            if shared:
                self.assignment()
            with self.loop_index(self.span()) as (index, text), self.block(f"for {index} in {text}:"):
                for _ in range(self.choose(3)):
                    self.statement()
                loss = self.define_value(self.value(3) if self.chance(50) else self.reduction(2))
                self.line(f"{loss}.backward()")
                if self.chance(40):
                    self.line(f"{total} += {loss}.data")
                if self.chance(25):
                    self.update()
                if self.chance(20):
                    self.line(f"{total} += {self.pick(self.scope.values[-4:])}.grad")
            self.scope.numbers.append(total)
        else:
            for _ in range(2):
                loss = self.define_value(self.loss())
                self.line(f"{loss}.backward()")
                if self.chance(40):
                    self.read_gradients()

    def loss(self) -> str:
        """Something that depends on much of what is in scope."""
        vectors = [v for v in self.scope.vectors if v.kind == "V" and not v.parameter]
        terms = [self.pick(self.scope.values[-4:]) for _ in range(self.choose(3))] if self.scope.values else []
        for vector in vectors[-3:]:
            form = self.choose(4)
            if form == 0:
                terms.append(f"sum({vector.name})")
            elif form == 1:
                targets = [v for v in self.scope.vectors if v.length == vector.length]
                terms.append(f"sum((a - b) ** 2 for a, b in zip({vector.name}, {self.pick(targets).name}))")
            elif form == 2:
                terms.append(f"mgjit.tanh(sum(a * 0.1 for a in {vector.name}))")
        terms.append(self.value(2))
        if self.chance(20):
            vector = self.pick(self.parameters)
            terms.append(f"0.01 * sum(p * p for p in {vector.name})")
        return " + ".join(terms)

    def read_gradients(self) -> None:
        """Gradients of interior nodes as numbers."""
        name = self.fresh("n")
        vectors = [v for v in self.scope.vectors if v.kind == "V"]
        if self.chance(50):
            vector = self.pick(vectors)
            if self.chance(50):
                self.line(f"{name} = [v.grad for v in {vector.name}]")
                self.define_vector(name, vector.length, "N")
                return
            self.line(f"{name} = sum(v.grad * v.grad for v in {vector.name})")
        else:
            self.line(f"{name} = {self.element('V')}.grad")
        self.scope.numbers.append(name)

    def reset(self) -> None:
        """Zero (or otherwise set) gradients."""
        for vector in self.parameters:
            if self.chance(60):
                text = self.pick(["0.0", "0.0", "0", "0.5 * p.grad", "1.0", "p.data"])
                with self.block(f"for p in {vector.name}:"):
                    self.line(f"p.grad = {text}")
        for name in self.singles:
            if self.chance(60):
                self.line(f"{name}.grad = {self.pick(['0.0', '-0.0', f'{name}.grad * 0.1'])}")

    def update(self) -> None:
        """Assignments to parameters, gradients, state."""
        form = self.choose(10)
        vector = self.pick(self.parameters)
        states = [s for s in self.states if s.length == vector.length]
        p = self.fresh("p")
        if form < 3:
            text = self.pick([f"{p}.data -= {self.rate()} * {p}.grad",
                              f"{p}.data = {p}.data - {self.rate()} * ({p}.grad + 0.01 * {p}.data)",
                              f"{p}.data += {p}.grad * -0.1"])  # fmt: skip
            with self.block(f"for {p} in {vector.name}:"):
                self.line(text)
                if self.chance(30):
                    self.line(f"{p}.grad = 0.0")
        elif form < 5 and states:
            m = self.pick(states).name
            with self.block(f"for i, {p} in enumerate({vector.name}):"):
                if self.chance(50):
                    self.line(f"{m}[i] = 0.9 * {m}[i] + {p}.grad")
                    self.line(f"{p}.data -= {self.rate()} * {m}[i]")
                else:
                    v = self.pick(states).name
                    self.line(f"{m}[i] = 0.9 * {m}[i] + (1 - 0.9) * {p}.grad")
                    self.line(f"{v}[i] = 0.99 * {v}[i] + (1 - 0.99) * {p}.grad ** 2")
                    self.line(f"{p}.data -= {self.rate()} * {m}[i] / (mgjit.sqrt(abs({v}[i])) + 1e-8)")
        elif form == 5:
            with self.block(f"for {p} in {vector.name}:"):
                self.line(f"{p}.grad = mgjit.maximum(-0.5, mgjit.minimum(0.5, {p}.grad))")
                self.line(f"{p}.data -= 0.1 * {p}.grad")
        elif form == 6:
            old = self.fresh("n")
            i, j = self.index(vector.length), self.index(vector.length)
            a, b = f"{vector.name}[{i}]", f"{vector.name}[{j}]"
            attribute = self.pick(["data", "data", "grad"])
            self.line(f"{old} = {a}.{attribute}")
            self.line(f"{a}.{attribute} = {self.pick([f'{b}.{attribute}', self.number(2), f'{old} * 0.5'])}")
            self.line(f"{b}.{attribute} = {self.pick([old, f'{old} + {a}.{attribute}'])}")
            self.scope.numbers.append(old)
        elif form == 7:
            name = self.fresh("n")
            self.line(f"{name} = mgjit.sqrt(sum(p.grad * p.grad for p in {vector.name})) + 1.0")
            with self.block(f"for {p} in {vector.name}:"):
                self.line(f"{p}.data -= {p}.grad / {name}")
            self.scope.numbers.append(name)
        elif form == 8 and self.states:
            state = self.pick(self.states)
            with self.loop_index((f"range({state.length})", 0, state.length - 1)) as (index, text):  # noqa: SIM117
                with self.block(f"for {index} in {text}:"):
                    self.line(
                        f"{state.name}[{self.index(state.length)}] {self.pick(['=', '+=', '='])} {self.number(2)}"
                    )
        else:
            with self.loop_index((f"range({vector.length})", 0, vector.length - 1)) as (index, text):  # noqa: SIM117
                with self.block(f"for {index} in {text}:"):
                    target = f"{vector.name}[{self.pick([index, index, self.index(vector.length)])}]"
                    self.line(f"{target}.{self.pick(['data', 'data', 'grad'])} = {self.number(2)}")
        if self.singles and self.chance(30):
            name = self.pick(self.singles)
            self.line(f"{name}.data -= {self.rate()} * {name}.grad")

    def rate(self) -> str:
        return self.pick(["lr", "lr", "0.1", "0.05", "(lr * 0.5)"])

    # ---- the program ----------------------------------------------------------------------------

    def program(self) -> str:
        """The whole text."""
        head = self.parameters_and_states()
        signature, calls = self.arguments()
        for _ in range(self.pick([1, 1, 1, 2])):
            if self.chance(40):
                self.reset()
            for _ in range(self.between(1, 4)):
                self.statement()
            if self.chance(30):
                self.reset()
            if self.chance(90):
                self.backward()
            if self.chance(25):
                self.read_gradients()
            for _ in range(self.choose(3)):
                self.update()
        self.result()
        lines = [
            "import mgjit",
            "from array import array",
            "",
            "",
            "def make():",
            *head,
            "",
            f"    def step({signature}):",
        ]
        values = " + ".join([*(v.name for v in self.parameters), f"[{', '.join(self.singles)}]"])
        lines += [*self.lines, "", f"    return step, {values}, [{', '.join(s.name for s in self.states)}]", "", ""]
        lines += ["CALLS = [", *(f"    ({', '.join(call)},)," for call in calls), "]", ""]
        return "\n".join(lines)

    def parameters_and_states(self) -> list[str]:
        lines = []
        for number in range(self.between(1, 3)):
            n, name = self.size(), "abc"[number]
            lines.append(f"    {name} = [mgjit.Value(d) for d in {self.floats(n)}]")
            vector = Vector(name, n, "V", True)
            self.parameters.append(vector)
            self.scope.vectors.append(vector)
        for number in range(self.choose(3)):
            rows, columns, name = self.size(), self.size(), "wu"[number]
            rows = min(rows, 8)
            data = ", ".join(self.floats(columns) for _ in range(rows))
            lines.append(f"    {name} = [[mgjit.Value(d) for d in row] for row in [{data}]]")
            self.scope.matrices.append(Matrix(name, rows, columns, "V", True))
            lines.append(f"    all_{name} = [v for row in {name} for v in row]")
            vector = Vector(f"all_{name}", rows * columns, "V", True)
            self.parameters.append(vector)
            self.scope.vectors.append(vector)
        if self.chance(25):
            several = Several("ms", self.between(2, 4), min(self.size(), 6), min(self.size(), 9), self.between(1, 3))
            made = f"(i * {self.between(2, 9)} + j * 5 + k) % {self.between(3, 13)} * 0.11 - 0.4"
            lines.append(f"    ms = [[[mgjit.Value({made}) for j in range({several.columns})]")
            lines.append(f"            for i in range({several.rows})] for k in range({several.count})]")
            lines.append("    all_ms = [v for one in ms for row in one for v in row]")
            self.parameters.append(Vector("all_ms", several.count * several.rows * several.columns, "V", True))
            self.several = several
        for number in range(self.choose(3)):
            name = "de"[number]
            lines.append(f"    {name} = mgjit.Value({self.float_()})")
            self.scope.values.append(name)
            self.singles.append(name)
        for number in range(self.choose(3)):
            n, name = self.pick(self.parameters).length, "rs"[number]
            zero = self.chance(50)
            lines.append(f"    {name} = mgjit.zeros({n})" if zero else f"    {name} = mgjit.state({self.floats(n)})")
            state = Vector(name, n, "N")
            self.states.append(state)
            self.scope.vectors.append(state)
        return lines

    def arguments(self) -> tuple[str, list[list[str]]]:
        """The signature of the step and the arguments of each call."""
        names, columns = ["lr"], [[repr(self.data.choice((0.1, 0.05, 0.01, 1))) for _ in range(CALL_COUNT)]]
        self.scope.numbers += ["lr"] if all("." in c for c in columns[0]) else []
        for name in "xyz"[: self.between(1, 3)]:
            n = self.size()
            kind = self.pick(["list", "list", "tuple", "array", "bytes", "matrix", "ints", "float32"])
            column = []
            rows = self.size()
            for _ in range(CALL_COUNT):
                if kind in ("list", "tuple"):
                    column.append(self.floats(n) if kind == "list" else f"tuple({self.floats(n)})")
                elif kind == "array":
                    column.append(f"array('d', {self.floats(n)})")
                elif kind == "float32":
                    column.append(f"array('f', {self.floats(n)})" if not self.special else f"array('f', [0.5] * {n})")
                elif kind == "bytes":
                    column.append(f"bytes({[self.data.randrange(256) for _ in range(n)]})")
                elif kind == "ints":
                    column.append(f"array('i', {[self.data.randrange(-9, 10) for _ in range(n)]})")
                else:
                    column.append(f"[{', '.join(self.floats(n) for _ in range(rows))}]")
            names.append(name)
            columns.append(column)
            if kind == "matrix":
                self.scope.matrices.append(Matrix(name, rows, n, "N"))
            else:
                self.scope.vectors.append(Vector(name, n, "I" if kind in ("bytes", "ints") else "N"))
        if self.chance(40):
            self.index_name, self.label_range = "label", self.pick(self.parameters).length
            names.append("label")
            columns.append([str(self.data.randrange(self.label_range)) for _ in range(CALL_COUNT)])
        if self.several is not None:
            of = self.several
            names.append("picks")
            columns.append([repr([self.data.randrange(of.count) for _ in range(of.picks)]) for _ in range(CALL_COUNT)])
        return ", ".join(names), [list(call) for call in zip(*columns)]

    def result(self) -> None:
        """The return statement."""
        names = [
            *self.scope.values[-3:],
            *self.scope.numbers[-2:],
            *(v.name for v in self.scope.vectors[-2:] if not v.parameter),
        ]
        names = [name for name in names if name not in ("lr", *(s.name for s in self.states))] or ["0.0"]
        names = [name for name in names if not any(name == v.name and v.kind == "I" for v in self.scope.vectors)] or [
            "0.0"
        ]
        form = self.choose(5)
        if form == 0:
            self.line(f"return {names[-1]}")
        elif form == 1:
            self.line(f"return [{', '.join(names)}]")
        elif form == 2:
            self.line("return {" + ", ".join(f"{name!r}: {name}" for name in names) + "}")
        elif form == 3:
            self.line(f"return {names[-1]}, {self.number(2)}, {self.value(2)}")
        else:
            self.line(f"return {', '.join(names)}, None, 'text'")


def _count(span: str) -> int:
    """How many numbers a range has."""
    return len(list(eval(span)))  # noqa: S307 - a range of this module's own making
