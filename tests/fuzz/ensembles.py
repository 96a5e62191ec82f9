"""Runs a program's text in the members of an ensemble, whose parameters begin with different numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mgjit
from mgjit.errors import ArgumentError
from mgjit.tracing.call.collected import collect_results
from tests.fuzz import oracle

MEMBERS = 3
#: What each member multiplies its parameters with.
FACTORS = (1.0, 0.75, -1.5)

#: For each call, the results of all members, and for each member what it has then.
Course = list[Any]


def undecorated(text: str) -> Course | None:
    """One program after the other; None when Python raises where C does not, or when there are several steps."""
    programs = [oracle.load(text) for _ in range(MEMBERS)]
    if len(programs[0].steps) > 1:
        return None
    for program, factor in zip(programs, FACTORS):
        scale(program.values, factor)
    course = []
    try:
        for number in range(len(programs[0].calls)):
            results, numbers = [], []
            for program in programs:
                program.host[number](program.values, program.states)
                arguments = programs[0].calls[number]  # results that are arguments are one object for all members
                if oracle.argument_values(arguments):
                    arguments = program.calls[number]
                results.append(program.steps[0](*arguments))
                numbers.append(numbers_of(program, number))
            course.append([oracle.bits(collect_results(results)), numbers])
    except oracle.UNDEFINED:
        return None
    return course


def ensemble(text: str, threads: int = 2, **options: Any) -> Course | None:
    """All members at once; None when the step changes arguments that they share."""
    program = oracle.load(text)
    members = mgjit.ensemble(
        mgjit.compile(**options)(program.steps[0]), MEMBERS, init=lambda k: scale(program.values, FACTORS[k]),
        threads=threads,
    )  # fmt: skip
    course = []
    for number, arguments in enumerate(program.calls):
        for member in members:
            with member:
                program.host[number](program.values, program.states)
        try:
            results = members(*arguments)
        except ArgumentError as error:
            if "the same for all members" in str(error):
                return None
            raise
        numbers = []
        for member in members:
            with member:
                numbers.append(numbers_of(program, number))
        course.append([oracle.bits(results), numbers])
    return course


def scale(values: Sequence[Any], factor: float) -> None:
    """Multiply parameters."""
    for value in values:
        value.data *= factor


def numbers_of(program: oracle.Loaded, number: int) -> Any:
    """The bits of all parameters, gradients and states."""
    values = program.values + oracle.argument_values(program.calls[number])
    return [
        oracle.bits([v.data for v in values]),
        oracle.bits([v.grad for v in values]),
        oracle.bits([list(s) for s in program.states]),
    ]
