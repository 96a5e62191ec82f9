"""The C written by hand in `bench/reference/`: built, given the weights of a workload, and called.

1. `build` compiles a file with the C compiler that mgjit finds, strict or fast as the workload is.
2. `Reference(library, instance)` opens a state with the weights of an instance and lays out the rows of its calls.
3. `calls(n)` runs n steps in C, each through a pointer, so that a step costs what a call costs without Python;
   `loop(n)` runs the form of several steps in one function, where the file has one.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
from array import array
from pathlib import Path
from typing import Any

from bench.workloads import Workload
from mgjit.base import settings
from mgjit.compiler.toolchain import build as toolchain
from mgjit.compiler.toolchain import compilers
from tests.workload import Instance

FOLDER = Path(__file__).resolve().parent / "reference"
FILES = {
    "W1": "w1_xor.c",
    "W2": "w2_moons.c",
    "W3": "w3_image.c",
    "W4": "w4_image_batch.c",
    "W5": "w5_policy.c",
    "W6": "w6_microgpt.c",
    "W6x16": "w6_microgpt_batch.c",
}

_COMMON = ("-O3", "-march=native", "-shared", "-fPIC", "-w", "-fvisibility=hidden", "-fno-math-errno")
STRICT_FLAGS = (*_COMMON, "-fno-trapping-math", "-ffp-contract=off", "-fno-builtin-pow", "-fno-builtin-exp")
_REORDER = ("-fassociative-math", "-fno-signed-zeros", "-freciprocal-math")
#: -ffast-math less what changes the meaning of inf and nan in comparisons or the state of the processor.
FAST_FLAGS = (*_COMMON, "-fno-trapping-math", "-ffp-contract=fast", *_REORDER)


class Row(ctypes.Structure):
    """As in harness.h."""

    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("targets", ctypes.c_void_p),
        ("count", ctypes.c_long),
        ("rate", ctypes.c_double),
        ("correction", ctypes.c_double),
    )


def build(workload: Workload) -> ctypes.CDLL:
    """The library of a workload's reference, built with the flags of MGJIT_CFLAGS as well, as mgjit's kernels are.

    Raises:
        CompilerError: there is no C compiler, or it does not build the file.
    """
    return _built(FOLDER / FILES[workload.name], workload.options["mode"], settings.cflags())


@functools.cache
def _built(path: Path, mode: str, more_flags: tuple[str, ...]) -> ctypes.CDLL:
    compiler = compilers.find()
    if compiler is None:
        raise toolchain.CompilerError("no C compiler was found")
    flags = (*(STRICT_FLAGS if mode == "strict" else FAST_FLAGS), *more_flags)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{path.stem}.so"
        code, output = toolchain.run([*compiler.argv, *flags, str(path), "-o", str(target), "-lm"])
        if code != 0:
            raise toolchain.CompilerError(f"{compiler.command} does not build {path.name}:\n{output[:2000]}")
        library = ctypes.CDLL(str(target))
    library.reference_open.restype = ctypes.c_void_p
    return library


class Reference:
    """A state of the reference with the weights and the calls of an instance."""

    def __init__(self, workload: Workload, instance: Instance) -> None:
        self._library = build(workload)
        self._documents = workload.name.startswith("W6")
        self._count = len(instance.parameters)
        self._kept: list[Any] = []
        self.rows = [self._row(*arguments) for arguments in instance.calls]
        numbers = array("d", [p.data for p in instance.parameters])
        self._state = self._library.reference_open(_address(numbers))
        self._next = 0

    def __del__(self) -> None:
        self._library.reference_close(ctypes.c_void_p(self._state))

    @property
    def has_loop(self) -> bool:
        """Whether several steps are one function."""
        return hasattr(self._library, "reference_loop")

    def calls(self, count: int) -> list[float]:
        """The losses of the next `count` steps, one call each."""
        return self._run(self._library.reference_calls, count)

    def loop(self, count: int) -> list[float]:
        """The losses of the next `count` steps, all in one function."""
        return self._run(self._library.reference_loop, count)

    def prepared(self, count: int, loop: bool = False) -> tuple[Any, array[float]]:
        """A function without arguments that runs `count` steps, nothing but a foreign call; and where losses go."""
        function = self._library.reference_loop if loop else self._library.reference_calls
        rows, losses = self._laid_out(count)
        arguments = (ctypes.c_void_p(self._state), rows, ctypes.c_long(count), _address(losses))
        return functools.partial(function, *arguments), losses

    def parameters(self) -> list[float]:
        """In the order of `model.parameters()`."""
        numbers = array("d", bytes(8 * self._count))
        self._library.reference_parameters(ctypes.c_void_p(self._state), _address(numbers))
        return list(numbers)

    def _run(self, function: Any, count: int) -> list[float]:
        rows, losses = self._laid_out(count)
        function(ctypes.c_void_p(self._state), rows, ctypes.c_long(count), _address(losses))
        return list(losses)

    def _laid_out(self, count: int) -> tuple[Any, array[float]]:
        chosen = [self.rows[(self._next + k) % len(self.rows)] for k in range(count)]
        self._next += count
        return (Row * count)(*chosen), array("d", bytes(8 * count))

    def _row(self, inputs: Any, *others: Any) -> Row:
        """The arguments of one call: inputs, targets (a document is its own), then one or two rates."""
        targets, rates = (None, others) if self._documents else (others[0], others[1:])
        addresses = [self._pointer(part) for part in (inputs, targets)]
        return Row(*addresses, len(inputs), *rates)

    def _pointer(self, part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, int):
            part = bytes([part])
        if isinstance(part, float):
            part = [part]
        buffer = array("d", part) if isinstance(part, list) else part
        if isinstance(buffer, bytes):
            buffer = array("B", buffer)
        self._kept.append(buffer)
        return buffer.buffer_info()[0]


def _address(numbers: array[float]) -> ctypes.c_void_p:
    return ctypes.c_void_p(numbers.buffer_info()[0])
