"""The bad inputs, by chapter."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case
from tests.faults.robustness.cases import (
    arguments,
    engine,
    environment,
    exports,
    layers,
    lookups,
    loops,
    options,
    parallel,
    steps,
)

CHAPTERS: dict[str, list[Case]] = {
    "Options": options.OPTIONS,
    "What is decorated": options.DECORATED,
    "Arguments": arguments.ARGUMENTS,
    "Steps": steps.STEPS,
    "Steps: look-ups and state": lookups.LOOKUPS,
    "Steps: arrays, functions and other steps": lookups.OTHER,
    "Loops": loops.LOOP,
    "Phases": loops.PHASES,
    "Exported C and frozen tensors": exports.EXPORTS,
    "Many cores": parallel.PARALLEL,
    "State, Values, functions and networks": engine.STATE_AND_ENGINE,
    "Layers and losses over tensors": layers.LAYERS,
    "Environment variables": environment.ENVIRONMENT,
    "Command line": environment.CLI,
}
