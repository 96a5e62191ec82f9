"""Errors: each class is also the standard exception that fits, and names the user's line."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable

import pytest

import mgjit
from mgjit import errors
from mgjit.ir import printer

STANDARD = {
    "MgjitError": Exception,
    "TraceError": TypeError,
    "LeakError": RuntimeError,
    "RandomnessError": RuntimeError,
    "ArgumentError": TypeError,
    "ArgumentValueError": ValueError,
    "IntegerOverflowError": OverflowError,
    "ColumnError": TypeError,
    "IndexRangeError": IndexError,
    "RetraceLimitError": RuntimeError,
    "PhaseError": RuntimeError,
    "SharedWriteError": ValueError,
    "SeparationError": NotImplementedError,
    "RankError": RuntimeError,
    "RanksDifferError": RuntimeError,
    "CheckpointError": ValueError,
    "PrecisionError": TypeError,
    "ShapeError": ValueError,
    "GradientError": RuntimeError,
    "UnsupportedError": NotImplementedError,
    "ExportError": OSError,
    "FreezeError": NotImplementedError,
    "CompilerError": RuntimeError,
    "CompilerTimeout": TimeoutError,
    "CompilerMemoryError": MemoryError,
    "CacheError": OSError,
    "VerificationError": AssertionError,
    "DefectWarning": UserWarning,
    "BackendWarning": UserWarning,
    "PlainWarning": UserWarning,
    "RetraceWarning": UserWarning,
    "SideEffectWarning": UserWarning,
    "MismatchWarning": UserWarning,
}
CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and issubclass(cls, BaseException) and cls.__module__ == errors.__name__
}


def test_01_every_class_is_listed_here() -> None:
    """So that none is added without its standard exception."""
    assert set(CLASSES) == set(STANDARD)


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_02_is_also_a_standard_exception(name: str) -> None:
    """And an MgjitError, unless it is a warning; documented; survives pickling."""
    cls = CLASSES[name]
    assert issubclass(cls, STANDARD[name])
    assert issubclass(cls, Warning) or issubclass(cls, errors.MgjitError)
    assert cls.__doc__
    with pytest.raises(STANDARD[name], match="words"):
        raise cls("words")
    assert str(pickle.loads(pickle.dumps(cls("words")))) == "words"  # noqa: S301


def test_03_location() -> None:
    """The innermost frame that is not mgjit's own."""

    def user_code() -> str:
        return errors.user_location()

    line = user_code.__code__.co_firstlineno + 1
    assert user_code() == f"{__file__}:{line}"
    namespace: dict[str, object] = {"errors": errors}
    exec(compile("where = errors.user_location()", "<cell 3>", "exec"), namespace)  # noqa: S102
    assert namespace["where"] == "<cell 3>:1"


def test_06_what_is_a_defect() -> None:
    """What mgjit's own code raises; not what a signal handler of the user's does in between, nor a lack of memory."""

    def caught(work: Callable[[], object]) -> Exception:
        try:
            work()
        except Exception as error:
            return error
        raise AssertionError

    def handler() -> None:
        raise TimeoutError

    assert errors.is_defect(caught(lambda: printer.print_program(None)))  # type: ignore[arg-type]
    assert not errors.is_defect(caught(handler))
    broken = caught(lambda: printer.print_program(None))  # type: ignore[arg-type]
    assert not errors.is_defect(MemoryError().with_traceback(broken.__traceback__))


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ([1.0, 2.0], "list [1.0, 2.0]"),
        ([0.125] * 20, "list [0.125, 0.125, 0.125, 0.125, 0.125, ...]"),
        ("a" * 50, f"str '{'a' * 39}...'"),
        ([{"a": 1.0, "b": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}], "list [{'a': 1.0, 'b': [2.0, 3.0, 4.0, 5.0, ...]}]"),
        ([slice("it's", (1, 2), "a, b, c, d, e, f, g, h")], "list [slice(\"it's\", (1, 2), ...)]"),
    ],
)
def test_contents_are_not_cut_in_the_middle(thing: object, text: str) -> None:
    assert errors.described(thing) == text


def test_a_repr_in_angles_is_whole() -> None:
    class Long:
        def __repr__(self) -> str:
            return "<something with a text of more than forty characters>"

    assert errors.described([Long(), Long()]) == "list [<something with a text of more than forty characters>...]"
    assert errors.described(Long()) == "Long <something with a text of more than forty characters>"
    assert errors.described({"a": 1.0, "b": Long()}) == "dict {'a': 1.0, ...}"


def test_a_function_of_tensors_that_is_looked_for_at_the_top() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'randn'; .* are in mgjit\.tensor: mgjit\.tensor\.randn$"):
        mgjit.randn  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'rabdn'$"):
        mgjit.rabdn  # noqa: B018
