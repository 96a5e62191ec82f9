"""allowance.py: a process that builds code has so much memory, and so much time."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from mgjit.compiler.build.options import Options
from mgjit.kernels.building import allowance, background, worker
from mgjit.kernels.building.allowance import OutOfTime, limited_time
from mgjit.kernels.building.background import Answer, Request

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")


def test_memory_is_limited() -> None:
    script = """
    from mgjit.kernels.building.allowance import limit_memory
    most = limit_memory()
    assert most >= 1 << 20
    try:
        bytearray(most)
    except MemoryError:
        print("refused")
    """
    lines = "\n".join(line.strip() if not line.startswith("        ") else line[4:] for line in script.splitlines())
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


@pytest.mark.parametrize(
    ("there", "most"), [(64 << 30, 8 << 30), (8 << 30, 3 << 29), (2 << 30, 1 << 30)], ids=["64 GB", "8 GB", "2 GB"]
)
def test_how_much_memory(there: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: there // 4096 if name == "SC_PHYS_PAGES" else 4096)
    assert allowance.most_memory() == most


def test_time_is_limited() -> None:
    started = time.monotonic()
    with limited_time(0.05), pytest.raises(OutOfTime):
        time.sleep(60.0)
    assert time.monotonic() < started + 30.0


@pytest.mark.parametrize(
    ("error", "reason"), [(OutOfTime(), "takes longer than 300 s"), (MemoryError(), None)], ids=["time", "memory"]
)
def test_what_takes_too_much_is_plain(
    error: BaseException, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory: `main` answers, since not even reading a request may succeed."""

    def build(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(worker, "build", build)
    request = Request(None, [], Options(quick=True), "step", {}, ".")  # type: ignore[arg-type]
    monkeypatch.setattr("os.environ", dict(worker.os.environ))
    if reason is None:
        with pytest.raises(MemoryError):
            worker._answered(request)
        return
    others = list(background._jobs)  # which earlier tests have left
    answer = worker._answered(request)
    assert isinstance(answer, Answer)
    assert reason in answer.plain
    assert not [job for job in background._jobs if job not in others]
