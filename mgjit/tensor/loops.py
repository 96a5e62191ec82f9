"""The text of a nest, as Python and as C, from the same definition: forward, and the backward pass of one nest.

The numbers of iterations, offsets and strides are read at run time from `n`, so there is one function for each body,
number of loops and element types:

    n = [iterations of all loops, then offset and strides of each operand and of the target, then strides of choices]
    m = [n, operands, target]                                   forward
    m = [n, operands, adjoint of the target, gradients of the operands to which they flow, scratch]      backward

A backward pass runs through the loops in reverse, and in each iteration through the steps in reverse.  It adds what
ir/derivatives.py says to the adjoint of each operand, first operand first, exactly as a compiled step does:

1. The adjoint of what a step has computed is 0.0, plus its contributions.
2. A sum gives the adjoint of the total to every term.
3. Any other reduction is run again first, and what it carries is kept for each of its iterations.

A function returns 1 at the first whole number that it computes and that is not exact (dtypes.py), otherwise 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.codegen import function, prologue, scalar
from ..compiler.codegen import python as python_text
from ..engine.library import FUNCTIONS as LIBRARY
from ..engine.precision import FLOAT64, PRECISIONS, Precision
from ..ir.bodies import Carried, Element, Result, Source, Step
from ..ir.derivatives import RULES, Emitter
from ..ir.operations import EXACT
from ..ir.program import Constant
from .dtypes import INTEGERS_END
from .nests import Form

_C_TYPES = {"d": "double", "f": "float", "q": "long long", "?": "unsigned char"}


def python_source(form: Form) -> str:
    """A Python function `kernel(m)`."""
    return _Python(form).function()


def c_source(form: Form) -> str:
    """The same as C: `int kernel(void *const *m)`."""
    return _C(form).function()


class _Text(Emitter):
    """Writes the loops; the languages differ in a few lines."""

    def __init__(self, form: Form) -> None:
        self.form, self.body = form, form.body
        self.precision: Precision = PRECISIONS[form.precision]
        self.lines: list[str] = []
        self.depth = 1
        self._fresh = 0
        #: The operations that occur.
        self.called: set[str] = set()
        self._rank = form.outer + form.inner
        self._loops = [f"i{k}" for k in range(self._rank)]

    # ---- what languages say in their own way ----------------------------------------------------------

    #: Of a statement.
    end = ""

    def open_loop(self, name: str, count: str, reverse: bool) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def assign(self, name: str, text: str, is_new: bool = True) -> None:
        """A local number."""
        raise NotImplementedError

    def store(self, place: str, text: str, format: str) -> None:
        raise NotImplementedError

    def load(self, place: str, format: str) -> str:
        raise NotImplementedError

    def integer(self, text: str) -> str:
        raise NotImplementedError

    def constant(self, value: float) -> str:
        raise NotImplementedError

    def operation(self, name: str, operands: Sequence[str]) -> str:
        """The text of an operation, rounded to the precision when it is assigned."""
        raise NotImplementedError

    def add_to(self, place: str, text: str, format: str) -> None:
        """Add a number to an element, in the precision of the element."""
        if format == self.precision.format:
            self.store(place, self._named(self.operation("add", [self.load(place, format), text])), format)
        else:
            self.line(f"{place} = {place} + {text}{self.end}")

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # ---- places in n ------------------------------------------------------------------------------------

    def _number(self, access: int, what: int) -> int:
        """The place in n of the offset (0) or of the stride of a loop (from 1 on) of an operand or of the target."""
        return self._rank + access * (self._rank + 1) + what

    def _place(self, array: str, access: int) -> str:
        """The element of an array with the layout of an operand or of the target."""
        is_target = access == self.body.operands
        loops = self._loops[: self.form.outer] if is_target else self._loops
        index = " + ".join([f"o{access}", *(f"{name} * s{access}_{k}" for k, name in enumerate(loops))])
        if self.form.chosen[access] >= 0:
            index += f" + {self.integer(f'x{self.form.chosen[access]}')} * h{access}"
        return f"{array}[{index}]"

    def declared(self) -> list[tuple[str, int]]:
        """The integers that are read from n first."""
        count = self.body.operands
        found = [(f"e{k}", k) for k in range(self._rank)]
        for access in range(count + 1):
            found.append((f"o{access}", self._number(access, 0)))
            strides = self.form.outer if access == count else self._rank
            found += [(f"s{access}_{k}", self._number(access, k + 1)) for k in range(strides)]
        choosing = [access for access in range(count + 1) if self.form.chosen[access] >= 0]
        return found + [(f"h{access}", self._number(count + 1, k)) for k, access in enumerate(choosing)]

    # ---- forward --------------------------------------------------------------------------------------------

    def nest(self) -> None:
        """All lines."""
        if self.form.flows:
            self._backward()
            return
        body, target = self.body, self.body.operands
        self._open(range(self.form.outer))
        for k, number in enumerate(body.initial):
            self.assign(f"c{k}", self.constant(number))
        self._open(range(self.form.outer, self._rank))
        self._elements()
        self._steps(body.steps)
        if body.initial:
            self._carry_on()
        self._close(self.form.inner)
        result = f"c{body.result}" if body.initial else f"r{len(body.steps) - 1}"
        store = self.add_to if self.form.adds else self.store
        store(self._place("y", target), result, self.form.formats[target])
        self._close(self.form.outer)

    def _open(self, loops: range, reverse: bool = False) -> None:
        for k in loops:
            self.open_loop(self._loops[k], f"e{k}", reverse)

    def _close(self, count: int) -> None:
        for _ in range(count):
            self.close()

    def _elements(self) -> None:
        choosing = set(self.form.chosen)
        for k in sorted(range(self.body.operands), key=lambda k: k not in choosing):
            self.assign(f"x{k}", self.load(self._place(f"a{k}", k), self.form.formats[k]))

    def _steps(self, steps: Sequence[Step]) -> None:
        for number, step in enumerate(steps):
            operands = [self._text(one) for one in step.operands]
            text = self.operation("copy", operands[:1]) if step.operation == "link" else self.operation(
                step.operation, operands
            )  # fmt: skip
            self.assign(f"r{number}", text)

    def _carry_on(self) -> None:
        for k, step in enumerate(self.body.carried):
            self.assign(f"c{k}", f"r{step}", is_new=False)

    def _text(self, source: Source) -> str:
        if isinstance(source, Element):
            return f"x{source.number}"
        if isinstance(source, Result):
            return f"r{source.number}"
        return f"c{source.number}" if isinstance(source, Carried) else self.constant(source)

    # ---- backward -------------------------------------------------------------------------------------------

    def _backward(self) -> None:
        body, outer, inner = self.body, range(self.form.outer), range(self.form.outer, self._rank)
        self._open(outer, reverse=True)
        is_early = self.form.adds or self.form.chosen[body.operands] >= 0
        if is_early:
            self._elements()  # which may choose the one of the target
        self.assign("g", self.load(self._place("y", body.operands), self.form.formats[body.operands]))
        if body.initial and not body.is_sum:
            self._run_again(inner)
            self.assign("dc", "g")
        self._open(inner, reverse=True)
        if not is_early:
            self._elements()
        if body.initial and not body.is_sum:
            self._loop_of_scan()
        self._steps(body.steps[:-1] if body.is_sum else body.steps)
        self._contributions()
        self._close(self._rank)

    def _run_again(self, inner: range) -> None:
        self.assign("c0", self.constant(self.body.initial[0]))
        self._open(inner)
        self.store(f"w[{self._loops[-1]}]", "c0", self.precision.format)
        self._elements()
        self._steps(self.body.steps)
        self._carry_on()
        self._close(len(inner))

    def _loop_of_scan(self) -> None:
        self.assign("c0", self.load(f"w[{self._loops[-1]}]", self.precision.format), is_new=False)
        self.assign("before", self.constant(0.0))

    def _contributions(self) -> None:
        body = self.body
        last = len(body.steps) - 1
        adjoints = {last: "dc" if body.initial and not body.is_sum else "g"}
        if body.is_sum:
            del adjoints[last]
            self._contribute(body.steps[last].operands[1], "g", adjoints)
            last -= 1
        for number in range(last, -1, -1):
            if number not in adjoints:
                continue
            step = body.steps[number]
            operands = [one if not isinstance(one, float) else Constant(one) for one in step.operands]
            named = [one if isinstance(one, Constant) else self._text(one) for one in operands]
            if step.operation not in RULES:
                continue
            targets = [self._leads(one) for one in step.operands]
            if step.operation == "power":
                targets[1] = False
            found = RULES[step.operation](self, named, f"r{number}", adjoints[number]) if any(targets) else []
            for source, contribution, wanted in zip(step.operands, found, targets):
                if wanted and contribution is not None:
                    self._contribute(source, self._operand(contribution), adjoints)
        if body.initial and not body.is_sum:
            self.assign("dc", "before", is_new=False)

    def _leads(self, source: Source) -> bool:
        """Whether gradients flow to something."""
        if isinstance(source, Element):
            return self.form.flows[source.number]
        if isinstance(source, Result):
            step = self.body.steps[source.number]
            return step.operation in RULES and any(map(self._leads, step.operands))
        return isinstance(source, Carried)

    def _contribute(self, source: Source, text: str, adjoints: dict[int, str]) -> None:
        """Add to the adjoint of something."""
        if isinstance(source, Element):
            if self.form.flows[source.number]:
                self.add_to(self._place(f"d{source.number}", source.number), text, self.form.formats[source.number])
        elif isinstance(source, Result):
            name = f"dr{source.number}"
            if source.number not in adjoints:
                adjoints[source.number] = name
                self.assign(name, self.constant(0.0))
            self.assign(name, self.operation("add", [name, text]), is_new=False)
        elif isinstance(source, Carried):
            self.assign("before", self.operation("add", ["before", text]), is_new=False)

    def emit(self, operation: str, *operands: Any) -> str:
        """One operation of a derivative."""
        return self._named(self.operation(operation, [self._operand(one) for one in operands]))

    def _operand(self, operand: Any) -> str:
        return self.constant(operand.value) if isinstance(operand, Constant) else str(operand)

    def _named(self, text: str) -> str:
        self._fresh += 1
        self.assign(f"t{self._fresh}", text)
        return f"t{self._fresh}"

    def arrays(self) -> list[tuple[str, str]]:
        """Names and formats of the buffers in m, behind n."""
        count, form = self.body.operands, self.form
        found = [(f"a{k}", form.formats[k]) for k in range(count)]
        found.append(("y", form.formats[count]))
        if form.flows:
            own = self.precision.format
            found += [(f"d{k}", form.formats[k] if flows else own) for k, flows in enumerate(form.flows)]
            found.append(("w", own))
        return found


class _Python(_Text):
    def function(self) -> str:
        self.nest()
        head = ["def kernel(m):", f"    n, {', '.join(name for name, _ in self.arrays())} = m"]
        head += [f"    {name} = n[{place}]" for name, place in self.declared()]
        if self.precision is not FLOAT64:
            head.append("    single = new_single()")
        return "\n".join([*head, *self.lines, "    return 0", ""])

    def open_loop(self, name: str, count: str, reverse: bool) -> None:
        self.line(f"for {name} in range({count} - 1, -1, -1):" if reverse else f"for {name} in range({count}):")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1

    def assign(self, name: str, text: str, is_new: bool = True) -> None:
        if text.startswith("single ="):
            self.line(f"single[0] = {text[9:]}")
            text = "single[0]"
        self.line(f"{name} = {text}")

    def store(self, place: str, text: str, format: str) -> None:
        if format == "q":
            self.line(f"if not {-INTEGERS_END} < {text} < {INTEGERS_END}:")
            self.line("    return 1")
        self.line(f"{place} = {text if format in 'df' else f'int({text})'}")

    def load(self, place: str, format: str) -> str:
        if format == self.precision.format:
            return place
        return f"float({place})" if self.precision is FLOAT64 else f"float32({place})"

    def integer(self, text: str) -> str:
        return f"int({text})"

    def constant(self, value: float) -> str:
        text = repr(self.precision.rounded(value)).replace("inf", "infinity")
        return f"({text})" if text.startswith("-") else text

    def operation(self, name: str, operands: Sequence[str]) -> str:
        text = python_text.expression(name, operands, self.precision)
        return text if self.precision is FLOAT64 or name in EXACT else f"single = {text}"


class _C(_Text):
    end = ";"

    def function(self) -> str:
        self.nest()
        names = self.arrays()
        head = [f"    const long long *const n = (const long long *)m[0];"]  # noqa: F541
        for k, (name, format) in enumerate(names, 1):
            is_written = name[0] in "dw" or (name == "y" and not self.form.flows)
            kind = f"{'' if is_written else 'const '}{_C_TYPES[format]}"
            head.append(f"    {kind} *const {name} = ({kind} *)m[{k}]; (void){name};")
        head += [f"    const long {name} = (long)n[{place}]; (void){name};" for name, place in self.declared()]
        called = self.called & LIBRARY.keys()
        start = [*prologue.prologue(self.precision), *prologue.prototypes(called)]
        kernel = "EXPORT int kernel(void *const *m)"
        return "\n".join([*start, f"{kernel};", kernel, "{", *head, *self.lines, "    return 0;", "}", ""])

    def open_loop(self, name: str, count: str, reverse: bool) -> None:
        span = f"{name} = {count} - 1; {name} >= 0; {name}--" if reverse else f"{name} = 0; {name} < {count}; {name}++"
        self.line(f"for (long {span}) {{")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def assign(self, name: str, text: str, is_new: bool = True) -> None:
        self.line(f"{'real UNUSED ' if is_new else ''}{name} = {text};")

    def store(self, place: str, text: str, format: str) -> None:
        if format == "q":
            self.line(f"if (!({text} > {-INTEGERS_END} && {text} < {INTEGERS_END})) return 1;")
        self.line(f"{place} = ({_C_TYPES[format]})({text});")

    def load(self, place: str, format: str) -> str:
        return place if format == self.precision.format else f"(real){'(double)' if format == 'q' else ''}{place}"

    def integer(self, text: str) -> str:
        return f"(long)({text})"

    def constant(self, value: float) -> str:
        return scalar.float_literal(self.precision.rounded(value), self.precision)

    def operation(self, name: str, operands: Sequence[str]) -> str:
        self.called.add(name)
        return scalar.expression(name, operands, self.precision, function.call)
