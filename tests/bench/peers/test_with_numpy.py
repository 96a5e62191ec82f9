"""numpy's forms have the losses of the undecorated steps."""

from __future__ import annotations

import pytest

from bench import workloads
from bench.peers.common import Problem
from bench.workloads import WORKLOADS, Sources

pytest.importorskip("numpy")


@pytest.mark.parametrize("name", ["W1", "W2", "W6"])
def test_losses(name: str) -> None:
    from bench.peers import with_numpy

    workload = WORKLOADS[name]
    instance = workload.make(Sources())
    numbers = [p.data for p in instance.parameters]
    problem = Problem(name, numbers, instance.calls, workload.options["dtype"] == "float32")
    losses = with_numpy.forms(problem)["numpy"]().losses(3)
    expected = [float(instance.step(*arguments).data) for arguments in instance.calls[:3]]
    assert losses == pytest.approx(expected, rel=1e-5 if problem.single else 1e-12)


def test_every_workload_is_a_problem() -> None:
    assert set(WORKLOADS) == {"W1", "W2", "W3", "W4", "W5", "W6", "W6x16"}
    assert workloads.VOCABULARY == 27
