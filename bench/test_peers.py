"""The workloads of `compare.py` under pytest-benchmark: mgjit, C by hand, and the peers of this interpreter.

    python -m pytest bench/test_peers.py --benchmark-only -k "W3 and mgjit"

Data is made up, weights are the same everywhere, and before anything is timed the first losses are compared with those
of the C written by hand, which in strict workloads are those of the undecorated step.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import math
from collections.abc import Iterator
from typing import Any

import pytest

from bench.compare import COMPARED, PEERS, difference
from bench.peers.common import Form, Problem, Unsupported
from bench.workloads import WORKLOADS, Sources

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(max_time=0.5, min_rounds=5, warmup=False)]

#: The forms of each peer; asking the peer itself would need it installed.
FORMS = {
    "mgjit": ("mgjit", "mgjit .loop", "mgjit, gradients kept"),
    "c": ("C by hand", "C by hand, loop"),
    "numpy": ("numpy",),
    "numba": ("numba", "numba loop"),
    "jax": ("jax jit", "jax scan"),
    "torch": ("torch eager", "torch.compile"),
    "pytensor": ("pytensor",),
    "casadi": ("casadi",),
    "drjit": ("drjit",),
    "micrograd": ("micrograd",),
}

STEPS = 64  # of a round in a loop form


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(("peer", "form"), [(peer, form) for peer in PEERS for form in FORMS[peer]])
def test_step(workload: str, peer: str, form: str, benchmark: Any) -> None:
    for package in PEERS[peer]:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
    made = make(peer, form, workload)
    wrong = difference(form, WORKLOADS[workload], losses_of_c(workload), made.losses(COMPARED))
    assert not wrong
    looping = form.endswith("loop") or form == "jax scan"
    steps = math.ceil((STEPS if looping else 1) / made.round_to) * made.round_to
    benchmark.group, benchmark.name = WORKLOADS[workload].title, form
    benchmark.extra_info["steps a round"] = steps
    rounds = benchmark.pedantic if made.seconds(steps) * steps > 0.1 else None
    if rounds:
        rounds(made.seconds, (steps,), rounds=3)
    else:
        benchmark(made.seconds, steps)


def make(peer: str, form: str, workload: str) -> Form:
    """A form of a peer, or a skip that says why there is none."""
    module = importlib.import_module(f"bench.peers.with_{peer}")
    try:
        return module.forms(problem(workload))[form]()  # type: ignore[no-any-return]
    except Unsupported as reason:
        pytest.skip(str(reason))


@functools.lru_cache(maxsize=1)
def problem(name: str) -> Problem:
    """The workload on made-up data."""
    workload = WORKLOADS[name]
    instance = workload.make(Sources())
    single = workload.options["dtype"] == "float32"
    return Problem(name, [p.data for p in instance.parameters], instance.calls, single)


@functools.cache
def losses_of_c(workload: str) -> list[float]:
    """What the others are compared with."""
    return make("c", "C by hand", workload).losses(COMPARED)
