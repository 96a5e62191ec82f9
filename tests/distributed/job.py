"""A program for every rank of a job, and for one process: trains small models, or fails in a certain way.

`python job.py train DIR` writes `DIR/rank 0` and so on, with a line for each case: its name, and a hash of all results,
parameters and state.
`python job.py <fault>` does something bad on rank 1 of the job.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import mgjit
from mgjit import nn
from mgjit.distributed import data_parallel

IS_JOB = any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))


def world() -> Any:
    if not IS_JOB:
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


class Adam:
    def __init__(self, parameters: list[Any]) -> None:
        self.parameters, self.calls = parameters, 0
        self.m, self.v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))

    def update(self, lr: float) -> None:
        self.calls += 1
        one, two = 1 - 0.9**self.calls, 1 - 0.99**self.calls
        for k, p in enumerate(self.parameters):
            self.m[k] = 0.9 * self.m[k] + 0.1 * p.grad
            self.v[k] = 0.99 * self.v[k] + 0.01 * p.grad * p.grad
            p.data -= lr * (self.m[k] / one) / ((self.v[k] / two) ** 0.5 + 1e-8)


class Classifier:
    """An MLP, Adam, and a return value with numbers of the rows and of the update."""

    dtype = "float64"

    def __init__(self, seed: int = 1, size: int = 5) -> None:
        random.seed(seed)
        self.model = nn.MLP(4, [size, 2])
        self.adam = Adam(self.model.parameters())
        self.rng = random.Random(seed)

    def gradient(self, x: Any, y: Any) -> Any:
        out = self.model(x)
        loss = sum((o - t) ** 2 for o, t in zip(out, mgjit.one_hot(y, 2)))
        self.model.zero_grad()
        loss.backward()
        return loss, out[0].data > 0.5

    def update(self, lr: float) -> Any:
        norm = sum(p.grad * p.grad for p in self.model.parameters())
        self.adam.update(lr)
        return norm

    def step(self, x: Any, y: Any, lr: float) -> Any:
        loss, is_one = self.gradient(x, y)
        return {"loss": loss, "one": is_one, "norm": self.update(lr)}

    def rows(self, count: int, data: random.Random) -> tuple[list[Any], list[Any]]:
        return [[data.gauss(0, 1) for _ in range(4)] for _ in range(count)], [data.randrange(2) for _ in range(count)]

    def numbers(self) -> list[float]:
        state = [*self.adam.m, *self.adam.v, float(self.adam.calls)]
        return [n for p in self.model.parameters() for n in (p.data, p.grad)] + state


class Single(Classifier):
    """The same in float32."""

    dtype = "float32"


class Dropout(Classifier):
    """Draws random numbers in each row."""

    def gradient(self, x: Any, y: Any) -> Any:
        return super().gradient([n * (self.rng.random() < 0.8) for n in x], y)

    def numbers(self) -> list[float]:
        return [*super().numbers(), self.rng.random()]


class Ragged(Classifier):
    """Rows of different lengths; the state is in attributes and lists, and gradients are set to 0 after the update."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.momentum = [0.0] * len(self.model.parameters())

    def gradient(self, x: Any, y: Any) -> Any:
        hidden = [mgjit.tanh(self.model(part)[0]) for part in x]
        loss = (sum(hidden) - y) ** 2 / len(x)
        loss.backward()
        return loss, hidden[0].data

    def update(self, lr: float) -> Any:
        for k, p in enumerate(self.model.parameters()):
            self.momentum[k] = 0.5 * self.momentum[k] + p.grad
            p.data -= lr * self.momentum[k]
            p.grad = 0.0
        return lr

    def rows(self, count: int, data: random.Random) -> tuple[list[Any], list[Any]]:
        xs = [[[data.gauss(0, 1) for _ in range(4)] for _ in range(data.randrange(1, 4))] for _ in range(count)]
        return xs, [data.randrange(2) for _ in range(count)]

    def numbers(self) -> list[float]:
        return [n for p in self.model.parameters() for n in (p.data, p.grad)] + self.momentum


def parallel_step(program: Classifier, **options: Any) -> Any:
    step = mgjit.compile(program.step, dtype=program.dtype, background=False)
    return data_parallel(step, world(), **options)


def hashed(numbers: Any) -> str:
    return hashlib.sha256(struct.pack(f"<{len(numbers)}d", *map(float, numbers))).hexdigest()


#: How many rows each rank has, in parts of thirteen, where each rank has its own.
OWN = {1: [13], 2: [13, 0], 3: [0, 5, 8], 4: [1, 7, 0, 5]}


def share_of(rows: tuple[list[Any], list[Any]], parallel: Any) -> tuple[list[Any], list[Any]]:
    start = sum(OWN[parallel.size][: parallel.rank])
    end = start + OWN[parallel.size][parallel.rank]
    return rows[0][start:end], rows[1][start:end]


def trained(make: Callable[[], Classifier], order: str, rows: str, count: int = 13) -> str:
    program = make()
    parallel = parallel_step(program, order=order, rows=rows, check_every=2)
    data, seen = random.Random(7), []
    for _ in range(3):
        batch = program.rows(count, data)
        result = parallel(*(share_of(batch, parallel) if rows == "own" else batch), 0.1)
        seen += [float(result[name]) for name in ("loss", "one", "norm")]
    return hashed([*seen, *program.numbers()])


CASES: list[tuple[str, Callable[[], Classifier], str, str, int]] = [
    ("classifier exact", Classifier, "exact", "all", 13),
    ("classifier exact, own rows", Classifier, "exact", "own", 13),
    ("classifier exact, few rows", Classifier, "exact", "all", 2),
    ("classifier fast", Classifier, "fast", "all", 13),
    ("classifier fast, own rows", Classifier, "fast", "own", 13),
    ("classifier fast, one row", Classifier, "fast", "all", 1),
    ("float32 exact", Single, "exact", "all", 13),
    ("dropout exact", Dropout, "exact", "all", 13),
    ("ragged exact", Ragged, "exact", "all", 13),
    ("ragged exact, own rows", Ragged, "exact", "own", 13),
]


def train() -> None:
    comm = world()
    rank = 0 if comm is None else comm.Get_rank()
    with open(os.path.join(sys.argv[2], f"rank {rank}"), "w", encoding="utf-8") as file:
        for name, make, order, rows, count in CASES:
            # Ranks begin with different numbers: those of rank 0 count.
            print(f"{name}: {trained(lambda: make(1 + rank), order, rows, count)}", file=file)  # noqa: B023
        print(f"restarted: {checkpointed(rank, os.path.join(sys.argv[2], 'checkpoint'))}", file=file)


def checkpointed(rank: int, path: str) -> str:
    """The numbers after a checkpoint, from which another program goes on."""
    data = random.Random(3)
    batches = [Dropout().rows(9, data) for _ in range(4)]
    before = parallel_step(Dropout(), order="exact")
    for batch in batches[:2]:
        before(*batch, 0.1)
    before.save(path, batch=2)
    program = Dropout(5 + rank)
    after = parallel_step(program, order="exact")
    start = after.load(path)["batch"]
    for batch in batches[start:]:
        after(*batch, 0.1)
    assert after.calls == 4
    return hashed(program.numbers())


# ---- faults ----------------------------------------------------------------------------------------


def _replaced(owner: Any, name: str, fault: Callable[[], Any], on_rank: int = 1) -> None:
    """Something bad happens when a function is called for the third time, on one rank."""
    original, calls = getattr(owner, name), []

    def replacement(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == 3 and world().Get_rank() == on_rank:
            fault()
        return original(*args, **kwargs)

    setattr(owner, name, replacement)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise() -> None:
    raise ValueError("a bad file")


def fault(kind: str) -> None:
    from mgjit.distributed import agreement, ranks, runner

    module: Any = importlib.import_module("mgjit.distributed.data_parallel")
    rank = world().Get_rank()
    options: dict[str, Any] = {"timeout": 5.0 if kind in ("stop", "hang outside") else 60.0, "check_every": 2}
    program = Classifier(size=6 if kind == "model" and rank == 1 else 5)
    batch = program.rows(13, random.Random(7))
    if kind == "version" and rank == 1:
        module.__version__ = "0.0.1"
    if kind == "kill in start" and rank == 1:
        agreement.agree = lambda *arguments: _kill()  # type: ignore[assignment]
    places = {
        "kill in rows": (runner.BatchRunner, "run", _kill),
        "kill in sum": (ranks.Ranks, "add", _kill),
        "kill in update": (runner.BatchRunner, "update", _kill),
        "stop": (runner.BatchRunner, "run", _stop),
        "raise": (runner.BatchRunner, "run", _raise),
    }
    if kind in places:
        _replaced(*places[kind])
    parallel = parallel_step(program, **options)
    for number in range(5):
        if rank == 1 and number == 3:
            if kind == "raise outside":
                _raise()
            if kind == "hang outside":
                time.sleep(60)
            if kind == "end":
                return
            if kind == "rows":
                batch = ([tuple(x) for x in batch[0]], batch[1])
            if kind == "number of rows":
                batch = (batch[0][:5], batch[1][:5])
            if kind == "parameter":
                program.model.layers[1].neurons[0].w[2].data += 1e-9
            if kind == "state":
                program.adam.calls += 1
            if kind == "learning rate":
                parallel(*batch, 0.2)
        parallel(*batch, 0.1)
    print(f"{rank}: done", flush=True)


if __name__ == "__main__":
    train() if sys.argv[1] == "train" else fault(sys.argv[1])
