"""Steps a second on one and two ranks, beside a model on paper of what more machines would give.

    python bench/ranks.py                       the three models, 1 and 2 ranks, with `mpiexec` from PATH
    python bench/ranks.py --ranks 1 2 4 --models image microgpt --batches 16 128

1. Each model is run by `mpiexec -n R`, all numbers of ranks in turn, `--rounds` times: other load then meets all alike.
2. In a job, each batch size is warmed up, and then timed for `--seconds`; rank 0 prints the least seconds of a call,
   which other load on the machine disturbs least, and its least processor time; of the rounds, the median counts.
3. A call takes about  update + rows / R * row + exchange.  The first two come from the processor time of one rank with
   two batch sizes.  On paper, an Allreduce of n bytes takes 2 log2(R) latencies, and sends 2 (R - 1) / R * n bytes
   (Rabenseifner's algorithm, as MPI libraries use it for long messages).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

#: Latency in seconds, bytes a second.
NETWORKS = {"10 GbE": (30e-6, 1.1e9), "InfiniBand": (2e-6, 20e9)}
MODELS = {"image": "MLP 784-50-10", "large": "MLP 784-1024-1024-10", "microgpt": "microgpt d16, 8 positions"}
PARAMETERS = {"image": 39_760, "large": 1_863_690, "microgpt": 4_192}


def program(name: str) -> Any:
    """A step for one row, and a function that makes so many rows."""
    import random

    import mgjit
    from bench import workloads
    from mgjit import nn

    random.seed(1)
    if name == "microgpt":
        model = workloads.MicroGPT()
        adam = workloads.Adam(model.parameters(), 0.85, 0.99)
        step = workloads.microgpt_step(model, adam, 1)
        words = [bytes([0, *(random.randrange(26) for _ in range(7)), 0]) for _ in range(512)]
        return step, lambda count: (words[:count], *adam.corrections(0.01, 1))
    network = nn.MLP(784, [50, 10] if name == "image" else [1024, 1024, 10])
    parameters = network.parameters()

    def step_of_image(pixels: Any, label: Any, rate: Any) -> Any:
        scores = network([x * (1 / 255) for x in pixels])
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10)))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= rate * p.grad
        return loss

    images = [bytes(random.randrange(256) for _ in range(784)) for _ in range(512)]
    labels = [random.randrange(10) for _ in images]
    return step_of_image, lambda count: (images[:count], labels[:count], 1e-6)


def job(name: str, batches: list[int], seconds: float, order: str) -> None:
    """What each rank does; rank 0 prints the least seconds of a call, for each batch size."""
    from mpi4py import MPI

    import mgjit
    from mgjit.distributed import data_parallel

    step, rows = program(name)
    parallel = data_parallel(mgjit.compile(step, grads=False), MPI.COMM_WORLD, order=order, timeout=600)
    found = {}
    for batch in batches:
        arguments = rows(batch)
        parallel(*arguments)
        walls: list[float] = []
        processor: list[float] = []
        while MPI.COMM_WORLD.bcast(len(walls) < 3 or sum(walls) < seconds):
            started, used = time.perf_counter(), time.process_time()
            parallel(*arguments)
            walls.append(time.perf_counter() - started)
            processor.append(time.process_time() - used)
        found[batch] = min(walls), min(processor)
    if parallel.rank == 0:
        print(json.dumps(found), flush=True)


def measured(arguments: argparse.Namespace, name: str, ranks: int) -> dict[int, tuple[float, float]]:
    """Run a job; returns the seconds of a call for each batch size, by the clock and of the processor."""
    command = ["mpiexec", "-n", str(ranks), sys.executable, __file__, "--job", name, "--order", arguments.order]
    command += ["--seconds", str(arguments.seconds), "--batches", *map(str, arguments.batches)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {int(batch): tuple(seconds) for batch, seconds in json.loads(done.stdout.splitlines()[-1]).items()}


def exchange(ranks: int, size: float, network: tuple[float, float]) -> float:
    """Seconds of an Allreduce of so many bytes."""
    latency, bandwidth = network
    return 2 * math.log2(ranks) * latency + 2 * (ranks - 1) / ranks * size / bandwidth


def fitted(times: dict[int, float]) -> tuple[float, float]:
    """Seconds of an update and of a row, from calls of one rank with batches of different sizes."""
    small, large = min(times), max(times)
    row = (times[large] - times[small]) / (large - small)
    return max(times[small] - small * row, 0.0), row


def on_paper(name: str, update: float, row: float) -> list[str]:
    """Rows of a table: how much faster some machines are than one, and from which batch on they are twice as fast."""
    lines = []
    size = 8 * PARAMETERS[name]
    for network, speeds in NETWORKS.items():
        cells = []
        for ranks in (2, 4, 16):
            extra = exchange(ranks, size, speeds)
            alone = [update + batch * row for batch in (16, 128, 1024)]
            together = [update + math.ceil(batch / ranks) * row + extra for batch in (16, 128, 1024)]
            cells.append(" / ".join(f"{a / b:.2f}" for a, b in zip(alone, together)))
        #: Where 2 ranks take as long as one: half of the rows saved are worth the exchange.
        equal = math.ceil(2 * exchange(2, size, speeds) / row)
        lines.append(f"| {MODELS[name]} | {network} | {size / 1e6:.2f} | {equal} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--batches", type=int, nargs="+", default=[2, 16, 128])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each batch size, in each job")
    parser.add_argument("--order", default="fast", choices=["fast", "exact"])
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job(arguments.job, arguments.batches, arguments.seconds, arguments.order)
        return
    paper = []
    print(
        "| model | rows | "
        + " | ".join(f"{ranks} rank{'s' * (ranks > 1)}, ms (processor)" for ranks in arguments.ranks)
        + " |"
    )
    for name in arguments.models:
        runs: dict[int, list[dict[int, tuple[float, float]]]] = {ranks: [] for ranks in arguments.ranks}
        for _ in range(arguments.rounds):
            for ranks in arguments.ranks:
                runs[ranks].append(measured(arguments, name, ranks))
        walls, processor = (
            {
                ranks: {batch: statistics.median(run[batch][kind] for run in found) for batch in arguments.batches}
                for ranks, found in runs.items()
            }
            for kind in (0, 1)
        )
        for batch in arguments.batches:
            cells = " | ".join(
                f"{1e3 * walls[ranks][batch]:.2f} ({1e3 * processor[ranks][batch]:.2f})" for ranks in arguments.ranks
            )
            print(f"| {MODELS[name]} | {batch} | {cells} |", flush=True)
        update, row = fitted(processor[min(arguments.ranks)])
        paper += [
            f"{MODELS[name]}: {1e6 * update:.0f} us a call, {1e6 * row:.1f} us a row",
            *on_paper(name, update, row),
        ]
    print(
        "\n| model | network | MB | rows from which 2 ranks pay | 2 ranks, times as fast at 16 / 128 / 1024 rows | "
        "4 ranks | 16 ranks |"
    )
    print("\n".join(paper))


if __name__ == "__main__":
    main()
