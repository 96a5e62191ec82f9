"""The results of a step: a tree whose traced leaves are outputs of the kernel.

1. `describe_result` records each traced leaf as an output and returns a `ResultTree` of the same form.
2. Calling the tree with the outputs of one call builds the result of that call.
3. `expression` is the same as Python source, for generated call paths.
4. `columns` builds the result of many calls: the same tree with an `array('d')`, one number a call, in place of
   every number.  Leaves that are no numbers are the same in every call, and stay as they are.

Columns of results that exist already are made by collected.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Any, Callable

from ...engine.leaks import PlainCall, holds_traced, is_traced, leaked, refuse_hidden
from ...engine.state import State
from ...engine.value import Value
from ...tensor.apply import recording
from ...tensor.tensor import Tensor
from ..autograd.chosen_rows import Row
from ..record.counters import Counted
from ..record.mixed import TYPES
from ..record.numpy_numbers import as_result
from ..record.recorder import Recorder
from ..record.traced_array import TracedArray
from ..record.values import TracedTypes
from ..surroundings.places import Place
from .apart import (
    fields_to_return,
    holds_only_numbers,
    is_new,
    is_number_like,
    is_object,
    make_object,
    taken_apart,
)
from .given import GivenPath

#: From this many numbers on, they are taken out of the outputs by one slice.
_ROW = 4


class Result(float):
    """A result that was a Value in the step: a float, with `.data` for code that expects a Value."""

    __slots__ = ()

    @property
    def data(self) -> float:
        """The number itself."""
        return float(self)


class ResultTree:
    """How the result of a call is built from the array of outputs."""

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        """The result of one call, from its outputs and its arguments."""
        raise NotImplementedError

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        """Python source that builds the result of a call.

        Args:
            outputs: source of the array of outputs.
            name_of: makes a name by which the source can refer to an object.
            names: of the arguments in the source.
        """
        raise NotImplementedError

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        """The result of `rows` calls whose outputs, `width` numbers each, follow one another."""
        raise NotImplementedError


class OutputResult(ResultTree):
    """One output: a Value (`make` is Result), an int or a bool, or a float, which needs no `make`."""

    def __init__(self, index: int, make: Callable[[float], Any] | None) -> None:
        self.index, self.make = index, make

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        number = outputs[self.index]
        return number if self.make is None else self.make(number)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        number = f"{outputs}[{self.index}]"
        return number if self.make is None else f"{name_of(self.make)}({number})"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        column = outputs if width == 1 else outputs[self.index :: width]
        return column if column.typecode == "d" else array("d", column)


class MixedResult(ResultTree):
    """A number and the code of its type, which are two outputs that follow each other."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return TYPES[int(outputs[self.index + 1])](outputs[self.index])

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(TYPES)}[{name_of(int)}({outputs}[{self.index + 1}])]({outputs}[{self.index}])"

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return OutputResult(self.index, None).columns(outputs, width, rows)


class ConstantResult(ResultTree):
    """A part of the result that was not traced."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self.returned

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return name_of(self.returned)

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return array("d", [self.returned]) * rows if isinstance(self.returned, (int, float)) else self.returned


class ObjectResult(ResultTree):
    """A container or tensor of the program's, instead of one that is made from outputs.

    Attributes:
        parts: the result that its contents would be, for the columns of many calls.
    """

    parts: ResultTree

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return self.parts.columns(outputs, width, rows)


class GivenResult(ObjectResult):
    """A container or tensor that the step was given and returns: the object itself.

    Args:
        path: where it lies among the arguments.
        parts: as of ObjectResult.
    """

    def __init__(self, path: GivenPath, parts: ResultTree) -> None:
        self.path, self.parts = path, parts

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self.path.find(arguments)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return self.path.expression(names, name_of)


class KnownResult(ObjectResult, ConstantResult):
    """A list, dict or tensor that existed before the step, which returns it: the object itself.

    Args:
        parts: as of ObjectResult.
    """

    def __init__(self, returned: Any, parts: ResultTree) -> None:
        super().__init__(returned)
        self.parts = parts


class KeptResult(ObjectResult):
    """A list of numbers that the step makes, keeps in place of another, and returns: the list that is kept.

    Args:
        place: where it is kept once the numbers of the call have been written back.
        parts: as of ObjectResult.
    """

    def __init__(self, place: Place, parts: ResultTree) -> None:
        self._place, self.parts = place, parts

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self._place.read()

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return self._place.expression(name_of)


class ChosenResult(ObjectResult):
    """A row of a table that a traced index chooses: the list that lies in the table.

    Args:
        rows: of the table. index: the output that says which one.
        parts: as of ObjectResult.
    """

    def __init__(self, rows: list[ResultTree], index: int, parts: ResultTree) -> None:
        self._rows, self._index, self.parts = rows, index, parts

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        return self._rows[int(outputs[self._index])](outputs, arguments)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        rows = ", ".join(row.expression(outputs, name_of, names) for row in self._rows)
        return f"({rows},)[{name_of(int)}({outputs}[{self._index}])]"


class CompositeResult(ResultTree):
    """A container of further parts.

    Attributes:
        is_shared: whether it has several places in a result, which then is a `SharingResult`.
    """

    is_shared = False
    #: Of a dict.
    keys: tuple[Any, ...] | None = None

    def __init__(self, make: Callable[[list[Any]], Any], parts: list[ResultTree]) -> None:
        self.make, self.parts = make, parts

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        made = arguments.made if self.is_shared and isinstance(arguments, _Making) else {}
        if self not in made:
            made[self] = self.make([part(outputs, arguments) for part in self.parts])
        return made[self]

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        row = self.row()
        if row is None:
            parts = f"[{', '.join(part.expression(outputs, name_of, names) for part in self.parts)}]"
        else:
            (first, last), make = row
            parts = f"{outputs}[{first}:{last}].tolist()"
            parts = parts if make is None else f"{name_of(list)}({name_of(map)}({name_of(make)}, {parts}))"
        return parts if self.make is list else f"{name_of(self.make)}({parts})"

    def row(self) -> tuple[tuple[int, int], Any] | None:
        """The outputs, from the first to behind the last, if the parts are numbers in a row, all made in one way."""
        outputs = [part for part in self.parts if isinstance(part, OutputResult)]
        if len(outputs) < max(len(self.parts), _ROW) or len({part.make for part in outputs}) > 1:
            return None
        first, last = outputs[0].index, outputs[0].index + len(outputs)
        return (
            ((first, last), outputs[0].make) if [part.index for part in outputs] == list(range(first, last)) else None
        )

    def columns(self, outputs: array[float], width: int, rows: int) -> Any:
        return self.make([part.columns(outputs, width, rows) for part in self.parts])


class _Making(tuple):  # type: ignore[type-arg]
    """The arguments of a call, with what has been made of its result so far.

    Attributes:
        made: what has several places in the result.
    """

    made: dict[CompositeResult, Any]


class SharingResult(CompositeResult):
    """A result in which a container has several places: each call makes it once."""

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        making = _Making(arguments)
        making.made = {}
        return super().__call__(outputs, making)

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        return f"{name_of(self)}({outputs}, ({''.join(f'{name}, ' for name in names)}))"


def describe_result(
    returned: Any,
    recorder: Recorder,
    types: TracedTypes,
    is_known: Callable[[Any], bool] = lambda thing: False,
    number_of: Callable[[Counted], Any] = lambda counter: counter.value,
    path_of: Callable[[Any], GivenPath | None] = lambda thing: None,
    kept_at: Callable[[Any], Place | None] = lambda thing: None,
) -> ResultTree:
    """Record every traced leaf of `returned` as an output and return how to rebuild the tree.

    Args:
        is_known: whether an object existed before the step: then it is returned itself.
        number_of: the traced number of a counter.
        path_of: where the container lies among the arguments for which an object stands; None for others.
        kept_at: where the step keeps a list that it has made; None for others.
    """
    describer = Describer(recorder, types, is_known, number_of, path_of, kept_at)
    tree = describer.describe(returned)
    return SharingResult(tree.make, tree.parts) if describer.shares and isinstance(tree, CompositeResult) else tree


class Describer:
    """Describes results that may have parts in common; the arguments are those of `describe_result`.

    Attributes:
        shares: whether a container has several places in them.
        tells_tuples: whether tuples are told apart as well.
    """

    tells_tuples = False
    #: How the elements of a tensor become a result.
    numbers_of: Callable[[Tensor], ResultTree]

    def __init__(
        self,
        recorder: Recorder,
        types: TracedTypes,
        is_known: Callable[[Any], bool],
        number_of: Callable[[Counted], Any],
        path_of: Callable[[Any], GivenPath | None],
        kept_at: Callable[[Any], Place | None],
    ) -> None:
        self._recorder, self._types, self._is_known = recorder, types, is_known
        self._number_of, self._path_of, self._kept_at = number_of, path_of, kept_at
        #: By identity: what is described, which is kept, and how; None while that is found out.
        self._met: dict[int, tuple[Any, ResultTree | None]] = {}
        self.shares = False
        self.numbers_of = _outputs_of

    def describe(self, returned: Any) -> ResultTree:
        """The tree of a part of the result."""
        if isinstance(returned, Value) or is_traced(returned):
            return self._describe(returned)
        if isinstance(returned, tuple) and not self.tells_tuples:
            return self._describe(returned)
        if id(returned) not in self._met:
            self._met[id(returned)] = returned, None
            self._met[id(returned)] = returned, self._describe(returned)
            return self._met[id(returned)][1]  # type: ignore[return-value]
        _, known = self._met[id(returned)]
        if known is None:
            raise PlainCall(f"the step returns a {type(returned).__name__} that contains itself")
        if type(known) is CompositeResult:
            known.is_shared = self.shares = True
        return known

    def _describe(self, returned: Any) -> ResultTree:
        types = self._types
        if isinstance(returned, Row):
            return self._describe_row(returned)
        if type(returned) is Counted:
            returned = self._number_of(returned)
        if isinstance(returned, Tensor):
            return self._describe_tensor(returned)
        if is_traced(returned) and not isinstance(returned, (types.value, types.number)):
            leaked()
        if isinstance(returned, Value):
            return OutputResult(self._recorder.output(types.lift(returned)), Result)
        if issubclass(type(returned), types.number):
            return _describe_number(returned, self._recorder, types)
        return self._describe_object(returned)

    def _describe_row(self, row: Row) -> ResultTree:
        candidates, index = row.choice()
        paths = list(map(self._path_of, candidates))
        if not all(path is not None or self._is_known(each) for each, path in zip(candidates, paths)):
            raise PlainCall("the step returns a row that an index chooses from a table of its own. Write list(row)")
        rows: list[ResultTree] = [
            ConstantResult(each) if path is None else GivenResult(path, ConstantResult(None))
            for each, path in zip(candidates, paths)
        ]
        parts = CompositeResult(list, list(map(self.describe, row)))
        return ChosenResult(rows, self._recorder.output(self._types.number_operand(index)), parts)

    def _describe_tensor(self, returned: Tensor) -> ResultTree:
        from .tensors import ViewResult

        place = self._kept_at(returned)
        numbers = self.numbers_of(returned)
        path = self._path_of(returned)
        if path is not None:
            return GivenResult(path, numbers)
        if place is not None:
            return KeptResult(place, numbers)
        if not isinstance(returned, recording().kind):
            return KnownResult(returned, numbers)
        return ViewResult(returned, numbers) if returned._memory.trace is None else numbers  # type: ignore[arg-type]

    def _describe_object(self, returned: Any) -> ResultTree:
        path, is_known = self._path_of(returned), self._is_known
        if path is None and type(returned) is TracedArray:
            returned.refuse_to_return()
        if path is not None and is_number_like(returned):
            return GivenResult(path, ConstantResult(None))
        if is_known(returned) and not (isinstance(returned, tuple) or holds_only_numbers(returned)):
            return ConstantResult(returned)
        found = None if is_number_like(returned) else taken_apart(returned)
        if found is not None:
            make, parts = found
            composite = CompositeResult(make, list(map(self.describe, parts)))
            if type(returned) is dict and not any(type(key) is Counted for key in returned):
                composite.keys = tuple(returned)
            if path is not None:
                return GivenResult(path, composite)
            place = self._kept_at(returned)
            if place is not None:
                return KeptResult(place, composite)
            return KnownResult(returned, composite) if is_known(returned) else composite
        if is_object(returned):
            fields = fields_to_return(returned)
            made = CompositeResult(make_object(type(returned), list(fields)), list(map(self.describe, fields.values())))
            place = self._kept_at(returned)
            return made if place is None else KeptResult(place, made)
        if not isinstance(returned, State):
            refuse_hidden(returned)
            if holds_traced(returned, is_known):
                raise PlainCall(f"the step returns a {type(returned).__name__} with traced values inside")
            if is_new(returned, is_known):
                raise PlainCall(f"the step makes the {type(returned).__name__} that it returns")
        return ConstantResult(returned)


def _outputs_of(tensor: Tensor) -> ResultTree:
    from .tensors import TensorResult

    return TensorResult(recording().output(tensor), tensor.shape, tensor.dtype, tensor.size)


def _describe_number(returned: Any, recorder: Recorder, types: TracedTypes) -> ResultTree:
    kind_of: Callable[[], int] | None = getattr(returned, "_kind", None)
    operand = types.number_operand(returned)
    if kind_of is not None:
        index = recorder.output(operand)
        recorder.output(kind_of())
        return MixedResult(index)
    kind: Any = as_result(returned)
    if kind is None and isinstance(returned, types.integer):
        kind = bool if isinstance(returned, types.boolean) else int
    if kind is int:
        recorder.used_as_integers.add(operand)
        kind = integer if recorder.has_undefined_integers else int
    return OutputResult(recorder.output(operand), kind)


def averaged(tree: ResultTree, outputs: Any, exact: Collection[int], arguments: Sequence[Any] = ()) -> Any:
    """The result of a call whose outputs are means of those of several calls: ints and bools become floats.

    Args:
        exact: the outputs that are those of one call.
    """
    if isinstance(tree, CompositeResult):
        return tree.make([averaged(part, outputs, exact, arguments) for part in tree.parts])
    if isinstance(tree, MixedResult) and tree.index not in exact:
        return outputs[tree.index]
    if isinstance(tree, OutputResult) and tree.index not in exact and tree.make is not Result:
        return outputs[tree.index]
    return tree(outputs, arguments)


def constants(tree: ResultTree) -> list[Any]:
    """The numbers and strings in results that are the same in every call."""
    if isinstance(tree, CompositeResult):
        return [found for part in tree.parts for found in constants(part)]
    is_constant = isinstance(tree, ConstantResult) and isinstance(tree.returned, (int, float, str))
    return [tree.returned] if is_constant else []  # type: ignore[attr-defined]


def integer(number: float) -> float:
    """An int; an infinity or nan, where Python would have raised an error, stays what it is."""
    return int(number) if number - number == 0.0 else number
