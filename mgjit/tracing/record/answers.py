"""Numbers that a step asks for while it is traced: answered for the call at hand, tested by the kernel at each call.

1. A test, an int or an order that Python needs is worked out for the numbers of this call (evaluation.py), and the
   trace goes on with the answer.  What it then records is one path through the step.
2. Each answer is an assumption: a record says whether it holds.  A number that is infinite or nan fails, since plain
   Python may have raised an error before it asked.  That nothing has raised in the body of a `try` is one, too.
3. Behind everything else comes one more output: 0.0 where all assumptions hold, else the number of the first one that
   does not, counted from 1; negative where that is because of an infinity or nan.  A call for which it is not 0.0 is
   undone (runtime/undo.py), and made on another path, or by plain Python.  Yet another output is what the answer would
   have been there, if that is one number: it tells which path.

Inside of a condition both of whose sides are computed nothing can be assumed, since Python may not ask there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...engine.leaks import NewStructure, PlainCall
from ...errors import user_location
from ...ir import opcodes as ops
from .hazards import hazards

if TYPE_CHECKING:
    from .evaluation import Evaluation
    from .recorder import Recorder

#: A path has so many assumptions at most.
_MOST = 1000
#: The order of so many numbers is told by one number.
_MOST_RANKED = 7
#: Which turns the order of equal floats round, such as 0.0 and -0.0, where a list is sorted in reverse.
_IS_PYPY = sys.implementation.name == "pypy"
_COMPARISONS = frozenset({ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL})


class Unknown(Exception):
    """A number that cannot be worked out while it is traced, such as an element of a tensor."""


class Answer(NamedTuple):
    """What a step was told, and where it had asked: `file:line`."""

    content: int | tuple[int, ...]
    line: str


class _Assumption(NamedTuple):
    """The records of one.

    Attributes:
        holds: not 0.0 where it holds. finite: 0.0 unless all numbers behind it are finite; or NO_OPERAND.
        instead: what the answer would have been; nan where that is more than one number.
        is_of_errors: whether it says no more than that nothing has raised.
    """

    holds: int
    finite: int
    instead: int
    is_of_errors: bool


class Answers:
    """The answers of one trace in progress.

    Args:
        content: the number in a leaf before the call.
    """

    def __init__(self, recorder: Recorder, content: Callable[[int], float]) -> None:
        self._recorder, self._content = recorder, content
        self._evaluation: Evaluation | None = None
        self._assumptions: list[_Assumption] = []
        self._finite: set[int] = set()
        #: All that the step was told, in order.
        self.told: list[Answer] = []

    def truth(self, operand: int) -> bool | None:
        """Whether a number is not zero; None if that cannot be said."""
        number = self._number(operand)
        if number is None:
            return None
        code = ops.EQUAL if number == 0.0 else ops.NOT_EQUAL
        answer, zero = int(number != 0.0), self._recorder.constant(0.0)
        self._assume([self._emit(code, operand, zero)], [operand], answer, self._recorder.constant(1.0 - answer))
        return number != 0.0

    def integer(self, operand: int) -> int | None:
        """A whole number; None if it cannot be said."""
        number = self._number(operand)
        if number is None or number != int(number) or abs(number) > self._recorder.precision.largest_integer:
            return None
        if operand < 0:
            self._recorder.used_as_integers.add(operand)
        now = self._emit(ops.COPY, operand, ops.NO_OPERAND) if operand < 0 else operand
        self._assume([self._emit(ops.EQUAL, now, self._recorder.constant(number))], [operand], int(number), now)
        return int(number)

    def greatest(self, operands: Sequence[int], least: bool = False) -> int | None:
        """Which of several numbers is the first of the greatest, or least ones; None if it cannot be said."""
        numbers = self._all(operands)
        if numbers is None:
            return None
        found, constant, select = numbers.index(min(numbers) if least else max(numbers)), *_methods(self._recorder)
        best, place = operands[0], constant(0.0)
        for k, operand in enumerate(operands[1:], 1):
            is_better = self._emit(ops.LESS, *((operand, best) if least else (best, operand)))
            best, place = select(is_better, operand, best), select(is_better, constant(float(k)), place)
        self._assume([self._emit(ops.EQUAL, place, constant(float(found)))], operands, found, place)
        return found

    def order(self, operands: Sequence[int], descends: bool) -> list[int] | None:
        """The order in which `sorted` has several numbers; None if it cannot be said."""
        numbers = None if descends and _IS_PYPY else self._all(operands)
        if numbers is None:
            return None
        found = sorted(range(len(numbers)), key=numbers.__getitem__, reverse=descends)
        if len(found) <= _MOST_RANKED:
            code = sum(found.index(k) * len(found) ** k for k in range(len(found)))
            now = self._code_of_order(operands, descends)
            self._assume([self._emit(ops.EQUAL, now, self._recorder.constant(float(code)))], operands, code, now)
            return found
        tests = []
        for one, other in zip(found, found[1:]):
            pair = (operands[other], operands[one]) if descends else (operands[one], operands[other])
            tests.append(self._emit(ops.LESS_EQUAL if one < other else ops.LESS, *pair))
        self._assume(tests, operands, tuple(found))
        return found

    def _code_of_order(self, operands: Sequence[int], descends: bool) -> int:
        """A number that tells the order of a few: with a digit for the rank of each."""
        code, constant = self._recorder.constant(0.0), self._recorder.constant
        for k, operand in enumerate(operands):
            for j, other in enumerate(operands):
                if j != k:
                    pair = (operand, other) if descends else (other, operand)
                    is_before = self._emit(ops.LESS_EQUAL if j < k else ops.LESS, *pair)
                    digit = self._emit(ops.MULTIPLY, is_before, constant(float(len(operands) ** k)))
                    code = self._emit(ops.ADD, code, digit)
        return code

    def nothing_raised(self, start: int) -> bool:
        """Assume that no operation recorded from `start` on raises in plain Python; returns whether that can be."""
        found = hazards(self._recorder, start)
        if any(self._number(record) is None for record in found):
            return False
        last = self._assumptions[-1] if self._assumptions else None
        if last is None or not last.is_of_errors:
            if found:
                self._assume([], found, 1)
            return True
        finite = self._all_finite(found)
        if finite != ops.NO_OPERAND:  # both lead to plain Python: one assumption is enough
            both = finite if last.finite == ops.NO_OPERAND else self._emit(ops.MULTIPLY, last.finite, finite)
            self._assumptions[-1] = last._replace(finite=both)
        return True

    def verdict(self) -> tuple[int, int] | None:
        """Append the records of the number of the first assumption that fails, and of what is instead of the answer.

        None where nothing was assumed.
        """
        constant, select = _methods(self._recorder)
        result, answer = constant(0.0), constant(0.0)
        for number in range(len(self._assumptions), 0, -1):
            holds, finite, instead, _ = self._assumptions[number - 1]
            result, answer = select(holds, result, constant(float(number))), select(holds, answer, instead)
            if finite != ops.NO_OPERAND:
                result = select(finite, result, constant(-float(number)))
        return (result, answer) if self._assumptions else None

    # ---- one answer ---------------------------------------------------------------------------------

    def _emit(self, code: int, a: int, b: int) -> int:
        return self._recorder.emit(code | ops.NUMBER, a, b)

    def _number(self, operand: int) -> float | None:
        """The number of an operand; None if it cannot be said, or assumed.

        Raises:
            NewStructure: it depends on an infinity or nan, as that of another call may not.
        """
        if self._recorder.noted or self._recorder.conditions:
            return None
        try:
            asked = list(map(self._evaluated, self._asked(operand)))
            number = self._evaluated(operand)
        except Unknown:
            return None
        if not all(map(math.isfinite, (number, *asked))):
            raise NewStructure(f"{user_location()}: it asks for a number that depends on an infinity or nan")
        return number

    def _evaluated(self, operand: int) -> float:
        if self._evaluation is None:
            from .evaluation import Evaluation  # which imports what Programs are made of; most traces do without

            self._evaluation = Evaluation(self._recorder, self._content)
        return self._evaluation.number(operand)

    def _all(self, operands: Sequence[int]) -> list[float] | None:
        numbers = list(map(self._number, operands))
        return None if None in numbers else [number for number in numbers if number is not None]

    def _asked(self, operand: int) -> list[int]:
        """The numbers on which an answer depends, through comparisons and choices among their results."""
        recorder, found, pending, seen = self._recorder, list[int](), [operand], set[int]()
        while pending:
            part = pending.pop()
            if part in seen or ops.leaf_kind(part) == ops.CONSTANT:
                continue
            seen.add(part)
            code = recorder.op[part] & (ops.NUMBER - 1) if part >= 0 else ops.COPY
            if code in _COMPARISONS:
                pending += [recorder.a[part], recorder.b[part]]
            elif code == ops.SELECT:
                pending += [recorder.a[part], recorder.b[part], recorder.third[part]]
            else:
                found.append(part)
        return found

    def _assume(
        self, tests: Sequence[int], operands: Sequence[int], answer: int | tuple[int, ...], instead: int | None = None
    ) -> None:
        """Note an answer, which is right where all tests are not 0.0, and all numbers finite."""
        if len(self.told) >= _MOST:
            raise PlainCall(f"{user_location()}: it asks for more than {_MOST} numbers on its way")
        holds = tests[0] if tests else self._recorder.constant(1.0)
        for test in tests[1:]:
            holds = self._emit(ops.MULTIPLY, holds, test)
        finite = self._all_finite(operands)
        instead = self._recorder.constant(math.nan) if instead is None else instead
        self._assumptions.append(_Assumption(holds, finite, instead, not tests))
        self.told.append(Answer(answer, user_location()))

    def _all_finite(self, operands: Sequence[int]) -> int:
        """A record that is not 0.0 where all numbers behind operands are finite; NO_OPERAND if that is known by now."""
        asked = dict.fromkeys(part for operand in operands for part in self._asked(operand))
        doubtful = [part for part in asked if part < 0 or part not in self._finite]
        self._finite.update(doubtful)
        differences = [self._emit(ops.SUBTRACT, part, part) for part in doubtful]
        if not differences:
            return ops.NO_OPERAND
        total = differences[0]
        for difference in differences[1:]:
            total = self._emit(ops.ADD, total, difference)
        return self._emit(ops.EQUAL, total, self._recorder.constant(0.0))


def _methods(recorder: Recorder) -> tuple[Callable[[float], int], Callable[[int, int, int], int]]:
    """Those for a constant, and for a choice between numbers."""
    return recorder.constant, lambda test, chosen, other: recorder.select(test, chosen, other, ops.NUMBER)
