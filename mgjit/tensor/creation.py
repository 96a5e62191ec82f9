"""Make tensors from numbers, buffers and shapes."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Iterable
from typing import Any

from ..errors import (
    ArgumentError,
    ArgumentValueError,
    GradientError,
    ShapeError,
    described,
    user_location,
)
from ..ir.bodies import ELEMENTWISE
from .apply import copy_into, elementwise, fresh, is_number, number_type, recording
from .devices import device
from .dtypes import OF_FORMATS, DType, bool_, common, dtype_of, float64, int64
from .modes import floats_of_step
from .shapes import Shape, shape_from, size_of
from .tensor import Tensor, require

_EXACT = 1 << 53


def asarray(data: Any, *, dtype: Any = None, requires_grad: bool = False, copy: bool = False) -> Tensor:
    """A tensor of numbers, nested lists of numbers, or anything with a buffer, such as a NumPy array (copied).

    Args:
        data: a tensor is returned itself, unless its type is to change or `copy` is set.
        dtype: of the elements; otherwise that of the buffer, or float64 for floats, int64 for ints, bool for bools.
        requires_grad: whether it is a leaf whose `grad` backward passes add up.

    Raises:
        ShapeError: lists have different lengths.
        ArgumentError, ArgumentValueError: there are elements that a tensor cannot hold.
    """
    if isinstance(data, Tensor):
        made = data if dtype is None or dtype_of(dtype) is data.dtype else data.astype(dtype)
        if copy or requires_grad:
            made = (made if made is not data else data).detach().copy()
    elif is_number(data):
        kind = dtype_of(number_type(data) if dtype is None else dtype)
        made = full((), data, dtype=kind)
    elif getattr(data, "is_of_numpy", False):
        made = from_flat(data.flat, data.shape, OF_FORMATS[data.format])
        made = made if dtype is None else made.astype(dtype)
    elif is_array(data):
        made = _from_buffer(data, dtype)
    else:
        made = _from_lists(data.tolist() if isinstance(data, array) else data, dtype)  # of numbers of a step
    if requires_grad:
        made.requires_grad = True
    return made


def of_numpy(thing: Any) -> Tensor | None:
    """A tensor of a numpy array; None of anything else.

    Its floats are those of the step, or float64 outside of one.
    """
    precision = floats_of_step()
    own = float64 if precision is None else dtype_of(precision.name)
    if getattr(thing, "is_of_numpy", False):  # an argument of a step that is traced
        dtype = OF_FORMATS[thing.format]
        return from_flat(thing.flat, thing.shape, own if dtype.is_floating else dtype)
    kind = type(thing)
    if kind.__module__ != "numpy" or kind.__name__ not in ("ndarray", "memmap"):
        return None
    return asarray(thing.astype(own.name) if thing.dtype.kind == "f" else thing)


def is_array(thing: Any) -> bool:
    """Whether something has a buffer of numbers, or stands for one in a trace."""
    if getattr(thing, "is_of_numpy", False):
        return True
    if isinstance(thing, (str, list, tuple)):
        return False
    try:
        memoryview(thing)
    except TypeError:
        return False
    return True


def _from_buffer(data: Any, dtype: Any) -> Tensor:
    view = memoryview(data)
    if view.format == "O":  # of Python numbers
        return _from_lists(data.tolist(), dtype)
    found = OF_FORMATS.get(view.format.lstrip("@=<"))
    if found is None:
        raise ArgumentError(f"{user_location()}: a tensor of a buffer with elements of format {view.format!r}.")
    shape = tuple(view.shape or ())
    if 0 in shape:  # of which there are no casts
        return fresh(shape, found if dtype is None else dtype_of(dtype))
    if view.c_contiguous and view.format == found.format and recording() is None:
        made = fresh(shape, found)
        made._memory.data.cast("B")[:] = view.cast("B")
        return made if dtype is None else made.astype(dtype)
    made = from_flat(_flat(view.tolist()) if shape else [view.tolist()], shape, found)
    return made if dtype is None else made.astype(dtype)


def _flat(nested: Any) -> list[Any]:
    while nested and isinstance(nested[0], list):
        nested = list(itertools.chain.from_iterable(nested))
    return nested  # type: ignore[no-any-return]


def _from_lists(data: Any, dtype: Any) -> Tensor:
    shape: list[int] = []
    level = [data]
    while level and isinstance(level[0], (list, tuple, range)):
        lengths = {len(part) if isinstance(part, (list, tuple, range)) else -1 for part in level}
        if len(lengths) > 1:
            raise ShapeError(f"{user_location()}: a tensor of lists that have different lengths.")
        shape.append(lengths.pop())
        level = [element for part in level for element in part]
    if any(isinstance(part, Tensor) for part in level):
        from .joining import stack

        made = stack([asarray(part) for part in level]).reshape((*shape, *asarray(level[0]).shape))
        return made if dtype is None else made.astype(dtype)
    wrong = next((part for part in level if not is_number(part)), None)
    if wrong is not None or (not level and not shape):
        raise ArgumentError(f"{user_location()}: a tensor is made of numbers, not of the {described(wrong)}.")
    numbers = [number_type(part) for part in level]
    kind = dtype_of(dtype) if dtype is not None else common("asarray", (), set(numbers)) if level else float64
    return from_flat(level, tuple(shape), kind)


def from_numpy(array: Any) -> Tensor:
    """A tensor of the numbers of an array, copied."""
    return asarray(array)


def from_flat(numbers: Iterable[Any], shape: Shape, dtype: DType) -> Tensor:
    """A tensor of these numbers, in row-major order.

    Raises:
        ArgumentValueError: an int beyond 2**53.
    """
    flat = list(numbers)
    if dtype is int64 and any(abs(number) > _EXACT for number in flat if type(number) is int):
        raise ArgumentValueError(f"{user_location()}: a tensor of ints above 2**53, which are not exact in a step.")
    taking = recording()
    if taking is not None:
        traced: Tensor = taking.of_numbers(flat, shape, dtype)
        if dtype is int64 and all(type(number) is int and number >= 0 for number in flat):
            traced._memory.limit = max(flat, default=-1) + 1
        return traced
    made = fresh(shape, dtype)
    kind = float if dtype.is_floating else bool if dtype is bool_ else int
    fill_buffer(made._memory.data, list(map(kind, flat)))
    return made


def fill_buffer(buffer: Any, numbers: list[Any]) -> None:
    """Assign all elements."""
    if numbers:
        code = buffer.format
        buffer.cast("B")[:] = memoryview(array(code, numbers)).cast("B")


def restored(flat: list[Any], shape: Shape, dtype: DType, requires_grad: bool) -> Tensor:
    """A copy, for pickles."""
    made = from_flat(flat, shape, dtype)
    if requires_grad:
        made.requires_grad = True
    return made


def full(shape: Any, value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The same number everywhere; each element has a place of its own."""
    kind = dtype_of(number_type(value) if dtype is None else dtype)
    made = fresh(shape_from(shape, "full"), kind)
    copy_into(made._memory, made._view, value, "full")
    made.requires_grad = requires_grad
    return made


def zeros(shape: Any, *, dtype: Any = float64, requires_grad: bool = False) -> Tensor:
    """Zeros."""
    return full(shape, 0.0, dtype=dtype, requires_grad=requires_grad)


def ones(shape: Any, *, dtype: Any = float64, requires_grad: bool = False) -> Tensor:
    """Ones."""
    return full(shape, 1.0, dtype=dtype, requires_grad=requires_grad)


def zeros_like(x: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape and type of another tensor."""
    return zeros(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)


def ones_like(x: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape and type of another tensor."""
    return ones(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)


def full_like(x: Tensor, value: Any, *, dtype: Any = None) -> Tensor:
    """One number, in the shape and type of another tensor."""
    return full(x.shape, value, dtype=dtype or x.dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """start, start + step, ... below stop: element k is `start + k * step`; from 0 if there is one argument."""
    low, high = (0, start) if stop is None else (start, stop)
    count = max(math.ceil((high - low) / step), 0)
    kind = common("arange", (), map(number_type, (low, high, step))) if dtype is None else dtype_of(dtype)
    made = from_flat([low + k * step for k in range(count)], (count,), kind)
    if kind is int64 and low >= 0 and step > 0:
        made._memory.limit = low + (count - 1) * step + 1
    return made


def linspace(start: float, stop: float, count: int, *, dtype: Any = float64, requires_grad: bool = False) -> Tensor:
    """Numbers at equal distances, from `start` to `stop`, both included: counted from the nearer end."""
    step = (stop - start) / (count - 1) if count > 1 else 0.0
    found = [start + step * k if 2 * k < count else stop - step * (count - 1 - k) for k in range(count)]
    return _with_gradient(from_flat(map(float, found), (count,), dtype_of(dtype)), requires_grad)


def eye(rows: int, columns: int | None = None, *, dtype: Any = float64) -> Tensor:
    """1 on the diagonal, 0 elsewhere."""
    width = rows if columns is None else columns
    return one_hot(arange(rows), width, dtype)


def one_hot(labels: Tensor, classes: int, dtype: Any = "float64") -> Tensor:
    """1 at the label of each element, 0 elsewhere: one more axis, of length `classes`.

    A label that is no number from 0 to `classes - 1` has zeros only.
    """
    made = elementwise("equal", ELEMENTWISE["equal"], (require(labels, "one_hot").expand_dims(-1), arange(classes)))
    return made.astype(dtype)


def randint(low: int, high: Any = None, shape: Any = None, *, dtype: Any = int64, generator: Any = None) -> Tensor:
    """Whole numbers that are not below `low`, and below `high`: `generator.randrange(low, high)` for each element.

    Args:
        high: without it, or with a shape in its place, these are below `low`, from 0 on.
        generator: a `random.Random` to draw from, instead of the module `random`.
    """
    if shape is None and isinstance(high, (tuple, list)):
        high, shape = None, high
    start, stop = (0, low) if high is None else (low, high)
    extents, draw = shape_from(() if shape is None else shape, "randint"), (generator or random).randrange
    made = from_flat([draw(start, stop) for _ in range(size_of(extents))], extents, dtype_of(dtype))
    if start >= 0 and made.dtype is int64:
        made._memory.limit = stop
    return made


def empty(shape: Any, *, dtype: Any = float64, requires_grad: bool = False) -> Tensor:
    """Zeros, to be assigned to."""
    return zeros(shape, dtype=dtype, requires_grad=requires_grad)


def empty_like(x: Tensor, *, dtype: Any = None) -> Tensor:
    """Zeros of the shape and type of another tensor, to be assigned to."""
    return zeros_like(x, dtype=dtype)


def rand_like(x: Tensor, *, dtype: Any = None, generator: Any = None) -> Tensor:
    """Uniform random numbers from 0 to 1, of the shape and type of another tensor."""
    return rand(x.shape, dtype=dtype or x.dtype, generator=generator)


def randn_like(x: Tensor, *, dtype: Any = None, generator: Any = None) -> Tensor:
    """Normally distributed random numbers, of the shape and type of another tensor."""
    return randn(x.shape, dtype=dtype or x.dtype, generator=generator)


def bernoulli(x: Tensor, *, generator: Any = None) -> Tensor:
    """1 with the probability that each element says, otherwise 0."""
    x = require(x, "bernoulli")
    return (rand(x.shape, dtype=x.dtype, generator=generator) < x.detach()).astype(x.dtype)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, *, generator: Any = None) -> Tensor:
    """mean + std * z, where z is normally distributed; of numbers with a shape, or of tensors."""
    like = next((one for one in (mean, std) if isinstance(one, Tensor)), None)
    if shape is None and like is not None:
        found = randn_like(like, generator=generator)
    else:
        found = randn(() if shape is None else shape, generator=generator)
    scaled: Tensor = found * std + mean
    return scaled


class Generator(random.Random):
    """A source of random numbers with PyTorch's methods; any `random.Random` will do as well."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(None if isinstance(seed, (str, device)) else seed)  # a device, the only one

    def manual_seed(self, seed: int) -> Generator:
        """Begin anew, with numbers that depend on the seed alone."""
        self.seed(seed)
        return self


def manual_seed(seed: int) -> None:
    """Let the module `random`, from which numbers are drawn by default, begin anew: `random.seed(seed)`."""
    random.seed(seed)


def uniform(shape: Any, low: float = 0.0, high: float = 1.0, *, dtype: Any = float64, requires_grad: bool = False,
            generator: Any = None) -> Tensor:  # fmt: skip
    """`low + (high - low) * random()` for each element, in row-major order.

    Args:
        generator: a `random.Random` to draw from, instead of the module `random`.
    """
    draw = (generator or random).random
    return _drawn(shape, lambda: low + (high - low) * draw(), dtype, requires_grad)


def rand(shape: Any, *, dtype: Any = float64, requires_grad: bool = False, generator: Any = None) -> Tensor:
    """Uniform random numbers from 0 to 1, drawn in row-major order."""
    return _drawn(shape, (generator or random).random, dtype, requires_grad)


def randn(shape: Any, *, dtype: Any = float64, requires_grad: bool = False, generator: Any = None) -> Tensor:
    """Normally distributed random numbers: `generator.gauss(0.0, 1.0)` for each element, in row-major order."""
    draw = (generator or random).gauss
    return _drawn(shape, lambda: draw(0.0, 1.0), dtype, requires_grad)


def _drawn(shape: Any, draw: Any, dtype: Any, requires_grad: bool) -> Tensor:
    extents, kind = shape_from(shape, "a random tensor"), dtype_of(dtype)
    if not kind.is_floating:
        raise GradientError(f"{user_location()}: random tensors are of floats, not {kind}.")
    return _with_gradient(from_flat([draw() for _ in range(size_of(extents))], extents, kind), requires_grad)


def _with_gradient(made: Tensor, requires_grad: bool) -> Tensor:
    made.requires_grad = requires_grad
    return made
