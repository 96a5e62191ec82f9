"""The columns of results that exist already: of calls that did not all have the same kernel, or ran as plain Python.

1. Each result is looked at before the next call is made, which may change it.
2. Results of one form become one of that form, with an `array('d')`, one number a call, in place of every number.
3. Where the forms differ, there is a list of what was there.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...engine.value import Value
from ...tensor.tensor import Tensor
from .apart import fields_to_return, make_object, may_be_object, taken_apart


def collect_results(results: Iterable[Any]) -> Any:
    """The columns of the results of calls; where these have other structures than the first, a list of them.

    Args:
        results: each is looked at before the next call is made, which may change lists that the one before returned.
    """
    return _columns_of([as_it_is(result) for result in results])


def as_it_is(result: Any) -> Any:
    """A result that no later call changes."""
    if isinstance(result, Value):
        return result.data
    if isinstance(result, Tensor):
        return result.detach().copy()
    found = taken_apart(result)
    return result if found is None else found[0](list(map(as_it_is, found[1])))


def _columns_of(results: Sequence[Any]) -> Any:
    if not results:
        return array("d")
    first = results[0]
    if all(isinstance(result, (int, float)) for result in results):
        return array("d", results)
    if len(results) > 1 and all(result is first for result in results):
        return first
    if all(isinstance(result, Tensor) for result in results):
        return _stacked(results)
    found = [taken_apart(result) or _object_taken_apart(result) for result in results]
    make, parts = found[0] or (None, [])
    if make is None:
        return first if all(type(x) is type(first) and x == first for x in results) else list(results)
    rows = [one[1] for one, x in zip(found, results) if one is not None and _are_alike(first, x)]
    if len(rows) < len(results) or any(len(row) != len(parts) for row in rows):
        return list(results)
    return make([_columns_of(column) for column in zip(*rows)])


def _stacked(results: Sequence[Tensor]) -> Any:
    """Tensors of one shape and type as one; a list of others."""
    from ...tensor.joining import stack

    return list(results) if len({(one.shape, one.dtype) for one in results}) > 1 else stack(results)


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two containers or objects are of one class and have parts of the same names."""
    return type(one) is type(other) and (type(one) is not dict or list(one) == list(other))


def _object_taken_apart(returned: Any) -> tuple[Callable[[list[Any]], Any], list[Any]] | None:
    """How to make an object of the user's that holds numbers, such as a loss, and its parts; None for others."""
    if not may_be_object(returned):
        return None
    fields = fields_to_return(returned)
    if not any(isinstance(part, (int, float)) for part in fields.values()):
        return None
    return make_object(type(returned), list(fields)), list(fields.values())
