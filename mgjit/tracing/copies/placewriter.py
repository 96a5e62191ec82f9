"""Generate Python source that copies numbers between the user's objects and a State.

It is straight-line code, because it runs at every call:

1. Lists of which all elements are needed are unpacked by one assignment, and so are short lists of numbers.
2. All single numbers and short lists are packed, and unpacked, by one call of `struct`.
3. Longer lists are packed one by one, in the way that is fastest on this interpreter; no number is taken for one that
   only can be made a float.
4. `fill` checks types before it writes anything, and returns False for anything that it was not made for.  It keeps
   the bytes of long lists, so that `show` can leave a list alone of which no bit has changed.
5. Of tables, the rows may be copied that the indices of a call choose (tables.py).
6. Where ints and floats take turns, the code of the type of each number is copied as well.
7. Where a step keeps a list that it was given, `show` puts this very list there, if the call has told it after `fill`.
8. What a step builds anew in each call (built.py), `show` makes at the end.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...base.ffi import PYPY
from ..call.results import SharingResult
from ..surroundings.places import Contents
from .built import Built
from .packers import are_floats, are_integers, are_of_type, are_plain, mixed_copiers, packer
from .tables import Table, copiers

if TYPE_CHECKING:
    from .copies import Copied

#: Lists up to this length are copied together with the single numbers.
FEW = 16
#: Larger integers may not be exact in float64.
EXACT = 2**53 - 1
#: Exceptions which mean that something is not what the function was made for (an OverflowError is an ArithmeticError).
_UNFIT = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, struct.error)

#: The file name of the generated code: inside the package, so that error locations skip its frames.
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<generated copies>")

_HEAD = """\
def fill({arguments}):
    try:
        {fill}
    except unfit:
        return False
    return True

def show():
    {show}
"""


def copying_functions(
    buffer: array[float],
    parts: Sequence[Copied],
    kept: list[bytes],
    tables: Sequence[Table] = (),
    told: Told | None = None,
) -> tuple[Callable[..., bool], Callable[[], None]]:
    """The functions `fill`, which copies into the buffer and returns whether it did, and `show`, which copies back.

    Args:
        kept: gets an entry for each list whose bytes are kept.
        tables: of which the rows are copied that the argument of `fill` chooses: the indices of all tables.
        told: what these functions and the call that uses them tell each other.
    """
    chosen = {id(row) for table in tables for row in table.rows}
    parts = [part for part in parts if id(part) not in chosen]
    writer = _Writer(buffer, parts, kept, Told(parts) if told is None else told)
    writer.distinct(lists_on_their_own(parts))
    short = [part for part in parts if part.size <= FEW and not part.mixed]
    writer.short(short)  # which leaves zeros between them
    for table in tables:
        writer.table(table, indices_of(tables))
    for part in parts:
        if part.mixed:
            writer.mixed(part)
        elif part.size > FEW:
            writer.long(part)
    writer.built()
    return writer.functions("indices" if tables else "")


def indices_of(tables: Sequence[Table]) -> list[int]:
    """The places of the indices of tables among the packed numbers of a call."""
    return sorted({place for table in tables for place in table.inputs})


def lists_on_their_own(parts: Sequence[Copied]) -> list[Copied]:
    """Lists in variables, attributes and entries, where another list may be put; rows of a table are guarded.

    Where a step replaces rows, all lists are among them.
    """
    lists = [part for part in parts if part.size]
    are_replaced = any(part.replaced and part.place.container is not None for part in lists)
    return [part for part in lists if are_replaced or part.place.container is None]


class Told:
    """What the functions and the call that uses them tell each other.

    Args:
        parts: everything that is copied.
        has_containers: whether arguments may be lists.
        built: what is built besides.

    Attributes:
        kept: the lists that the step keeps, of those that it is given.
        paths: where these lie among the arguments, and what else of them it leaves in what it builds.
        given: for each of these, what it is in this call, which is told between `fill` and `show`; None otherwise.
        changed: the lists on their own to whose elements the step assigns, if an argument may be one of them.
        lists: one set: the identities of these, as `fill` has found them.
    """

    def __init__(self, parts: Sequence[Copied], has_containers: bool = False, built: Built | None = None) -> None:
        self.built = Built() if built is None else built
        self.kept = [part for part in parts if part.given is not None]
        self.paths = [*(part.given for part in self.kept if part.given is not None), *self.built.given]
        self.given: list[Any] = [None] * len(self.paths)
        own = lists_on_their_own(parts) if has_containers else []
        self.changed = [part for part in own if part.assigned and not part.replaced]
        self.lists: list[Collection[int]] = [frozenset()]


class _Writer:
    """Writes both functions.

    Attributes:
        objects: the objects they use, by their names in the source.
    """

    def __init__(self, buffer: array[float], parts: Sequence[Copied], kept: list[bytes], told: Told) -> None:
        self._names: dict[int, str] = {}
        self.objects: dict[str, Any] = {"unfit": _UNFIT}
        families = _families(part.place for part in parts)
        self._fill, self._show = _Body(self.name_of, families, True), _Body(self.name_of, families, False)
        self._kept, self._code, self._size = kept, buffer.typecode, buffer.itemsize
        self._memory = buffer
        self._buffer, self._view = self.name_of(buffer), self.name_of(memoryview(buffer).cast("B"))
        self._told = told
        self._given_lists = {id(part): f"{self.name_of(told.given)}[{k}]" for k, part in enumerate(told.kept)}
        if told.paths:
            self._fill.lines.append(f"{self.name_of(told.given)}[:] = {self.name_of((None,) * len(told.paths))}")

    def name_of(self, thing: Any) -> str:
        """The global name of an object."""
        name = self._names.setdefault(id(thing), f"object{len(self._names)}")
        self.objects[name] = thing  # which keeps it alive
        return name

    def functions(self, arguments: str) -> tuple[Callable[..., bool], Callable[[], None]]:
        """The functions."""
        fill, show = "\n        ".join(self._fill.lines), "\n    ".join(self._show.lines or ["pass"])
        text = _HEAD.format(arguments=arguments, fill=fill, show=show)
        exec(compile(text, _FILE, "exec"), self.objects)  # noqa: S102 - names of objects, and nothing of the user's
        return self.objects["fill"], self.objects["show"]

    def distinct(self, parts: Sequence[Copied]) -> None:
        """Require that no two lists have become one, and note which are changed."""
        identity = self.name_of(id)
        found = [f"{identity}({self._fill.expression(part.place)})" for part in parts]
        if len(parts) > 1 and any(part.assigned for part in parts):
            self._fill.require(f"{self.name_of(len)}({{{', '.join(found)}}}) == {len(parts)}")
        if self._told.changed:
            changed = [f"{identity}({self._fill.expression(part.place)})" for part in self._told.changed]
            self._fill.lines.append(f"{self.name_of(self._told.lists)}[0] = {{{', '.join(changed)}}}")

    # ---- 2: single numbers and short lists ----------------------------------------------------------

    def short(self, parts: Sequence[Copied]) -> None:
        """Copy single numbers and short lists; what is between them in the State is for long lists, or unused."""
        given = [number for part in parts for number in self._given(part)]
        if given:
            put = self.name_of(self._form(parts).pack_into)
            self._fill.lines.append(f"{put}({self._buffer}, 0, {', '.join(given)})")
        assigned = [part for part in parts if part.assigned]
        if assigned:
            names = [_number(k) for part in assigned for k in part.offsets]
            get = self.name_of(self._form(assigned).unpack_from)
            self._show.lines.append(f"{', '.join(names)}, = {get}({self._buffer}, 0)")
        for part in assigned:
            numbers = [self._made(part, k, _number(k)) for k in part.offsets]
            if part.positions is not None:
                target = self._show.expression(part.place)
                self._show.lines += [f"{target}[{k}] = {numbers[k]}" for k in part.positions]
            elif part.size and not part.replaced:
                self._show.lines.append(f"{self._show.expression(part.place)}[:] = {', '.join(numbers)},")
            else:
                made = f"[{', '.join(numbers)}]" if part.size else numbers[0]
                self._show.assign(part.place, self._given_or(part, made))

    def _given_or(self, part: Copied, made: str) -> str:
        """The expression of a list that the call was given, or of the one that is made of the numbers."""
        given = self._given_lists.get(id(part))
        return made if given is None else f"{made} if {given} is None else {given}"

    def _made(self, part: Copied, offset: int, number: str) -> str:
        """The expression of a number that the user sees, given that of the float in the State."""
        if offset in part.numpy_floats:
            return f"{self._float64()}({number})"
        return _whole(number) if offset in part.integers else number

    def _float64(self) -> str:
        return self.name_of(sys.modules["numpy"].float64)

    def _form(self, parts: Sequence[Copied]) -> struct.Struct:
        form, end = "=", 0
        for part in sorted(parts, key=lambda part: part.offset):
            form += f"{(part.offset - end) * self._size}x{part.count}{self._code}"
            end = part.offset + part.count
        return struct.Struct(form)

    def _given(self, part: Copied) -> list[str]:
        """Expressions that read the numbers from their places."""
        expression = self._fill.expression(part.place)
        names = [_number(k) for k in part.offsets]
        if part.size:
            expression = self._fill.checked(expression, list)
            self._fill.lines.append(f"{', '.join(names)}, = {expression}")
            others = [_number(k) for k in part.offsets if k not in _typed(part)]
            if len(others) == len(names):
                self._fill.require(f"{self.name_of(are_plain)}({expression})")
            elif others:
                self._fill.require(f"{self.name_of(are_plain)}(({', '.join(others)},))")
        else:
            self._fill.lines.append(f"{names[0]} = {expression}")
        integers, floats = ([_number(k) for k in sorted(given)] for given in (part.given_integers, part.given_floats))
        self._fill.require(*(f"type({n}) is int and {-part.limit} <= {n} <= {part.limit}" for n in integers))
        self._fill.require(*(f"0 <= {_number(k)} < {check.count}" for k, check in part.allowed.items()))
        self._fill.require(*(f"type({n}) is float" for n in floats))
        self._fill.require(*(f"type({_number(k)}) is {self._float64()}" for k in sorted(part.numpy_floats)))
        if not part.size and not integers and not floats and not part.numpy_floats:
            self._fill.require(f"type({names[0]}) is float or {self.name_of(are_plain)}(({names[0]},))")
        return names

    # ---- 3: long lists ------------------------------------------------------------------------------

    def long(self, part: Copied) -> None:
        """Copy one long list."""
        given = self._fill.checked(self._fill.expression(part.place), list)
        if part.given_integers:
            positions = [k - part.offset for k in sorted(part.given_integers)]
            self._fill.require(f"{self.name_of(are_integers)}({given}, {self.name_of(positions)}, {part.limit})")
        for k, check in part.allowed.items():
            self._fill.require(f"0 <= {given}[{k - part.offset}] < {check.count}")
        if part.given_floats:
            positions = [k - part.offset for k in sorted(part.given_floats)]
            self._fill.require(f"{self.name_of(are_floats)}({given}, {self.name_of(positions)})")
        if part.numpy_floats:
            positions = [k - part.offset for k in sorted(part.numpy_floats)]
            arguments = f"{given}, {self.name_of(positions)}, {self._float64()}"
            self._fill.require(f"{self.name_of(are_of_type)}({arguments})")
        others = tuple(k - part.offset for k in part.offsets if k not in _typed(part))
        start, end = part.offset, part.offset + part.size
        if PYPY:
            some = given if len(others) == part.size else f"[{given}[k] for k in {self.name_of(others)}]"
            self._fill.require(f"len({given}) == {part.size}", f"{self.name_of(are_plain)}({some})")
            self._fill.lines += [f"now = {self.name_of(array)}({self._code!r}, {given})"]
            self._fill.lines += [f"{self._buffer}[{start}:{end}] = now", "now = now.tobytes()"]
        else:
            self._fill.lines.append(f"now = {self.name_of(packer(part.size, self._code, others))}({given})")
            self._fill.lines.append(f"{self._view}[{start * self._size}:{end * self._size}] = now")
        if part.assigned:
            self._show_long(part, f"{self._buffer}[{start}:{end}]")

    def _show_long(self, part: Copied, numbers: str) -> None:
        listed = self.name_of(list if PYPY else array.tolist)
        lines = [f"now = {listed}(now)"]
        if len(part.numpy_floats) == part.size:
            lines.append(f"now = [*map({self._float64()}, now)]")
        else:
            made = [(k - part.offset, k) for k in sorted(part.integers | part.numpy_floats)]
            lines += [f"now[{k}] = {self._made(part, offset, f'now[{k}]')}" for k, offset in made]
        if part.replaced:
            lines.insert(0, f"now = {numbers}")
            given = self._given_lists.get(id(part))
            if given is not None:
                lines = [f"now = {given}", "if now is None:", *(f"    {line}" for line in lines)]
            self._show.lines += lines
            self._show.assign(part.place, "now")
            return
        target = self._show.expression(part.place)
        if part.positions is None:
            lines.append(f"{target}[:] = now")
        else:
            lines += [f"for k in {self.name_of(part.positions)}:", f"    {target}[k] = now[k]"]
        self._show.lines.append(f"now = {numbers}")
        if part.integers != part.given_integers:  # ints become floats or the reverse, so it is always assigned
            self._show.lines += lines
            return
        kept = f"{self.name_of(self._kept)}[{len(self._kept)}]"
        self._kept.append(b"")
        self._fill.lines.append(f"{kept} = now")
        self._show.lines += [f"if now.tobytes() != {kept}:", *(f"    {line}" for line in lines)]

    # ---- 5: rows that are chosen ----------------------------------------------------------------------

    def table(self, table: Table, indices: Sequence[int]) -> None:
        """Copy those rows of a table that indices choose."""
        take, put = copiers(self._memory, table, [indices.index(place) for place in table.inputs])
        row = table.rows[0]
        single = len(table.rows) == 1
        rows = [body.expression(row.place) if single else body.holder(row.place) for body in (self._fill, self._show)]
        given = self._fill.checked(rows[0], list) if single else rows[0]
        self._fill.require(f"{self.name_of(take)}({given}, indices)")
        if row.assigned:
            self._show.lines.append(f"{self.name_of(put)}({rows[1]})")

    # ---- 6: numbers that are ints or floats ---------------------------------------------------------

    def mixed(self, part: Copied) -> None:
        """One list, or one number."""
        given = self._fill.expression(part.place)
        given = self._fill.checked(given, list) if part.size else f"[{given}]"
        take, put = mixed_copiers(self._memory, part)
        self._fill.require(f"{self.name_of(take)}({given})")
        if not part.assigned:
            return
        if not part.size:
            self._show.assign(part.place, f"{self.name_of(put)}()[0]")
        elif part.replaced:
            self._show.assign(part.place, self._given_or(part, f"{self.name_of(put)}()"))
        else:
            self._show.lines.append(f"{self._show.expression(part.place)}[:] = {self.name_of(put)}()")

    # ---- 8: what is built anew ----------------------------------------------------------------------

    def built(self) -> None:
        """Make what the step leaves somewhere, and put all of it there."""
        built = self._told.built
        for contents, length in built.lengths:
            self._fill.require(f"len({self.name_of(contents.holder)}) == {length}")
        for one in built.carried:
            self._fill.lines.append(f"found = {self.name_of(array)}({self._code!r})")
            self._fill.require(f"{self.name_of(one.take)}({self._fill.expression(one.place)}, found)")
            self._fill.lines.append(f"{self._buffer}[{one.offset}:{one.offset + one.count}] = found")
        for place in built.places:
            if not isinstance(place, Contents):
                self._fill.lines.append(self._fill.expression(place))
        given = self.name_of(self._told.given)
        names = [f"{given}[{k}]" for k in range(len(self._told.given))][len(self._told.kept) :]
        made = [f"built{k}" for k in range(len(built.places))]
        if built.is_shared:
            tree_of_all = self.name_of(SharingResult(list, built.trees))
            told = "".join(f"{name}, " for name in names)
            self._show.lines.append(f"{', '.join(made)}, = {tree_of_all}({self._buffer}, ({told}))")
        else:
            for name, tree in zip(made, built.trees):
                self._show.lines.append(f"{name} = {tree.expression(self._buffer, self.name_of, names)}")
        for name, place in zip(made, built.places):
            self._show.assign(place, name)


class _Body:
    """The lines of one function.

    Args:
        families: the lengths of lists of which all elements are needed, by the key of their place.
        careful: whether to return False if something is not what it was.
    """

    def __init__(self, name_of: Callable[[Any], str], families: dict[Any, int], careful: bool) -> None:
        self._name_of, self._families, self._careful = name_of, families, careful
        self._taken: dict[Any, str] = {}
        self._locals = 0
        self.lines: list[str] = []

    def require(self, *conditions: str) -> None:
        """Emit a check that returns False unless the conditions hold."""
        self.lines += [f"if not ({condition}): return False" for condition in conditions]

    def expression(self, place: Any) -> str:
        """The expression that reads a place."""
        if place.container is None:
            return str(place.expression(self._name_of))
        name = self.holder(place)
        return f"{name}_{place.name}" if self._families.get(place.container.key) else f"{name}[{place.name}]"

    def holder(self, place: Any) -> str:
        """The name of the list of which a place is an element."""
        holder = place.container
        siblings = self._families.get(holder.key)
        if holder.key not in self._taken:
            self._taken[holder.key] = name = self._new()
            self.lines.append(f"{name} = {self.expression(holder)}")
            if self._careful:
                self.require(f"type({name}) is list or type({name}) is tuple")
            if siblings:
                names = "".join(f"{name}_{k}, " for k in range(siblings))
                self.lines.append(f"{names}= {name}")
        return self._taken[holder.key]

    def assign(self, place: Any, content: str) -> None:
        """Emit the assignment of a place."""
        if place.container is None:
            self.lines.append(place.assignment(self._name_of, content))
            return
        self.expression(place)
        self.lines.append(f"{self._taken[place.container.key]}[{place.name}] = {content}")

    def checked(self, expression: str, kind: type) -> str:
        """A local name for the result of an expression, whose type is checked."""
        if not expression.isidentifier():
            name = self._new()
            self.lines.append(f"{name} = {expression}")
            expression = name
        self.require(f"type({expression}) is {kind.__name__}")
        return expression

    def _new(self) -> str:
        self._locals += 1
        return f"part{self._locals}"


def _families(places: Iterable[Any]) -> dict[Any, int]:
    """The lengths of the lists of which all elements are needed, by the key of their place."""
    found: defaultdict[Any, set[int]] = defaultdict(set)
    lengths: dict[Any, int] = {}
    for place in places:
        inner = place
        while inner.container is not None:
            found[inner.container.key].add(inner.name)
            lengths[inner.container.key] = inner.siblings
            inner = inner.container
    return {key: lengths[key] for key, names in found.items() if len(names) == lengths[key]}


def _typed(part: Copied) -> frozenset[int]:
    """Offsets of the numbers whose types are compared one by one."""
    return part.given_integers | part.given_floats | part.numpy_floats


def _number(offset: int) -> str:
    return f"number{offset}"


def _whole(number: str) -> str:
    """The expression of an int; infinities and nans stay floats."""
    return f"int({number}) if {number} - {number} == 0.0 else {number}"
