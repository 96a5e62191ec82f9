"""Jobs of several processes, by MPI; skipped where there is none: `pip install mpi4py mpich` is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

try:
    import mpi4py

    mpi4py.rc.initialize = False  # this process is not one of a job
    from mpi4py import MPI  # noqa: F401 - whether its library is found
except (ImportError, RuntimeError) as reason:
    pytest.skip(f"no jobs of several processes without mpi4py and an MPI: {reason}", allow_module_level=True)

JOB = Path(__file__).with_name("job.py")
ROOT = JOB.parent.parent.parent
#: Open MPI asks for these where several ranks share a processor, or run as root; MPICH ignores them.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


#: Each job takes some seconds: CI runs one of each kind.
SLOW = pytest.mark.long


def launcher() -> str:
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec: no jobs of several processes")
    return found


def started(ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A job, or one process without MPI for 0 ranks."""
    environment = {**os.environ, **OPEN_MPI, "PYTHONPATH": str(ROOT), "MGJIT_VERIFY": "never"}
    command = [sys.executable, str(JOB), *arguments]
    if ranks:
        command = [launcher(), "-n", str(ranks), *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The results of one process."""
    directory = tmp_path_factory.mktemp("alone")
    done = started(0, "train", str(directory))
    assert done.returncode == 0, done.stderr
    return read(directory / "rank 0")


def read(path: Path) -> dict[str, str]:
    return dict(line.split(": ") for line in path.read_text().splitlines())  # type: ignore[misc]


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=SLOW), 2, pytest.param(3, marks=SLOW), 4])
def test_any_number_of_ranks_gives_the_same_bits(ranks: int, alone: dict[str, str], tmp_path: Path) -> None:
    done = started(ranks, "train", str(tmp_path))
    assert done.returncode == 0, done.stderr
    results = [read(tmp_path / f"rank {rank}") for rank in range(ranks)]
    assert all(found == results[0] for found in results)
    for name, found in results[0].items():
        if "fast" not in name or "one row" in name:
            assert found == alone[name], name


@pytest.mark.parametrize(
    "phase",
    [pytest.param("start", marks=SLOW), pytest.param("rows", marks=SLOW), "sum", pytest.param("update", marks=SLOW)],
)
def test_a_killed_rank_ends_the_job(phase: str) -> None:
    done = started(2, f"kill in {phase}")
    assert done.returncode != 0
    assert "done" not in done.stdout


@pytest.mark.parametrize(
    ("fault", "texts"),
    [
        ("raise", ["ValueError: a bad file", "RankError", "rank 1 has raised ValueError: a bad file"]),
        pytest.param(
            "raise outside",
            ["ValueError: a bad file", "RankError", "rank 1 has ended with ValueError: a bad file"],
            marks=SLOW,
        ),
        ("hang outside", ["RankError", "rank 1 did not come to the same call within 5 s"]),
        pytest.param("stop", ["RankError", "rank 1 did not come to the same call within 5 s"], marks=SLOW),
        pytest.param("end", ["RankError", "rank 1"], marks=SLOW),
        (
            "rows",
            ["ColumnError", "x was 4 numbers, is 4 numbers in a tuple", "rank 1 has raised ColumnError"],
        ),
        pytest.param("number of rows", ["RanksDifferError", "a batch of 13", 'rows="own"'], marks=SLOW),
        ("parameter", ["RanksDifferError", "self.model.layers[1].neurons[0].w[2].data is", "on rank 0", "on rank 1"]),
        pytest.param("state", ["RanksDifferError", ".data is"], marks=SLOW),
        pytest.param("learning rate", ["RanksDifferError", ".data is"], marks=SLOW),
        pytest.param("model", ["RanksDifferError", "44, rank 0 has 37"], marks=SLOW),
        ("version", ["RanksDifferError", "rank 1 has mgjit 0.0.1"]),
    ],
)
def test_a_fault_on_one_rank_is_an_error(fault: str, texts: list[str]) -> None:
    done = started(2, fault)
    assert done.returncode != 0
    assert "done" not in done.stdout
    for text in texts:
        assert text in done.stderr
