"""What a workload is, what it is compiled with, and how two runs are compared, bit by bit."""

from __future__ import annotations

import math
import random
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mgjit

CALLS = 20


@dataclass
class Instance:
    """A step, the arguments of its calls, and everything it changes.

    Attributes:
        one_pass: the results are known before the only backward pass (or there is none).
    """

    step: Callable[..., Any]
    calls: list[tuple[Any, ...]]
    parameters: list[mgjit.Value]
    states: list[mgjit.State] = field(default_factory=list)
    one_pass: bool = True

    def observe(self) -> dict[str, list[float]]:
        """Every parameter, gradient and state element."""
        return {
            "parameter": [p.data for p in self.parameters],
            "gradient": [p.grad for p in self.parameters],
            "state": [number for state in self.states for number in state],
        }


Factory = Callable[[], Instance]

WORKLOADS: dict[str, Factory] = {}


def workload(name: str) -> Callable[[Factory], Factory]:
    """Register a factory under `name`."""

    def register(make: Factory) -> Factory:
        WORKLOADS[name] = make
        return make

    return register


# ---- the backends -----------------------------------------------------------------------------------

#: Arguments of mgjit.compile; a name's first word is the compiler that must be there.
BACKENDS: dict[str, dict[str, Any]] = {
    "gcc": {"backend": "c", "compiler": "gcc"},
    "gcc -O0": {"backend": "c", "compiler": "gcc", "optimisation": "-O0"},
    "gcc -O2": {"backend": "c", "compiler": "gcc", "optimisation": "-O2"},
    "gcc -O3 -march=native": {"backend": "c", "compiler": "gcc", "optimisation": "-O3 -march=native"},
    "clang -O2": {"backend": "c", "compiler": "clang", "optimisation": "-O2"},
    "tcc": {"backend": "c", "compiler": "tcc"},
    "python": {"backend": "python"},
}


def missing(backend: str) -> str:
    """The compiler that a backend needs and this machine does not have; else empty."""
    name = backend.split()[0]
    return "" if name == "python" or shutil.which(name) else name


# ---- comparing --------------------------------------------------------------------------------------


@dataclass
class Snapshot:
    """What one call returned and left behind, by kind."""

    numbers: dict[str, list[float]]

    def __len__(self) -> int:
        return sum(map(len, self.numbers.values()))

    def differences(self, other: Snapshot) -> Iterator[str]:
        """Each number whose bits differ, in words."""
        for kind, mine in self.numbers.items():
            theirs = other.numbers[kind]
            if len(mine) != len(theirs):
                yield f"{len(mine)} numbers in {kind}, then {len(theirs)}"
            elif packed(mine) != packed(theirs):
                for index, (a, b) in enumerate(zip(mine, theirs)):
                    if packed([a]) != packed([b]):
                        yield f"{kind} {index}: {a!r} became {b!r}"


def packed(numbers: Iterable[float]) -> bytes:
    """The bits of numbers; every nan counts as the same, because C leaves its sign open."""
    listed = [number if number == number else math.nan for number in numbers]
    return struct.pack(f"{len(listed)}d", *listed)


def leaves(tree: Any) -> Iterator[float]:
    """The numbers of a result, in order; a Value counts as its data."""
    if isinstance(tree, dict):
        for key in tree:
            yield from leaves(tree[key])
    elif isinstance(tree, (list, tuple)):
        for element in tree:
            yield from leaves(element)
    elif isinstance(tree, mgjit.Value):
        yield tree.data
    else:
        yield float(tree)


def snapshot(instance: Instance, result: Any) -> Snapshot:
    """What is observed after a call."""
    return Snapshot({"result": list(leaves(result)), **instance.observe()})


def run(make: Factory, calls: int, **options: Any) -> list[Snapshot]:
    """Snapshots of the first calls of a fresh instance: compiled with `options`, undecorated without."""
    instance = make()
    step = mgjit.compile(**options)(instance.step) if options else instance.step
    return [snapshot(instance, step(*arguments)) for arguments in instance.calls[:calls]]


def run_single(make: Factory, calls: int) -> list[Snapshot]:
    """What the undecorated step of a fresh instance gives when every number rounds itself to float32."""
    from tests.single import single_precision, with_singles  # imports numpy, which most users of this file do without

    with single_precision():
        instance = make()
        for parameter in instance.parameters:
            parameter.data, parameter.grad = parameter.data, parameter.grad
        step = with_singles(instance.step)
        return [snapshot(instance, step(*arguments)) for arguments in instance.calls[:calls]]


def compare(expected: list[Snapshot], got: list[Snapshot]) -> tuple[int, list[str]]:
    """How many numbers were compared, and every difference."""
    assert len(expected) == len(got)
    found = [
        f"call {number}, {difference}"
        for number, (a, b) in enumerate(zip(expected, got), 1)
        for difference in a.differences(b)
    ]
    return sum(map(len, expected)), found


# ---- numbers and parameters -------------------------------------------------------------------------


def values(draw: random.Random, n: int, scale: float = 1.0) -> list[mgjit.Value]:
    """`n` parameters, uniform in [-scale, scale)."""
    return [mgjit.Value(draw.uniform(-scale, scale)) for _ in range(n)]


def numbers(draw: random.Random, n: int) -> list[float]:
    """`n` numbers, uniform in [-1, 1)."""
    return [draw.uniform(-1.0, 1.0) for _ in range(n)]


def reset(parameters: list[mgjit.Value]) -> None:
    """Gradients to zero."""
    for p in parameters:
        p.grad = 0.0


def descend(parameters: list[mgjit.Value], lr: Any) -> None:
    """Plain gradient descent."""
    for p in parameters:
        p.data -= lr * p.grad


def points(draw: random.Random, n: int, width: int) -> tuple[list[list[float]], list[float]]:
    """A batch of inputs and one target each."""
    xs = [numbers(draw, width) for _ in range(n)]
    return xs, [math.sin(3.0 * x[0]) + 0.5 * x[-1] for x in xs]


def regression(seed: int, n: int, width: int) -> list[tuple[Any, ...]]:
    """Arguments (inputs, targets, learning rate) of every call."""
    draw = random.Random(seed)
    return [(*points(draw, n, width), 0.05 / (1 + k)) for k in range(CALLS)]
