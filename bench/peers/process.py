"""The parent's side of a peer: starts its process, asks, waits no longer than it should."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

SERVE = Path(__file__).resolve().parent / "serve.py"

#: One thread everywhere, and nothing on an accelerator.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class PeerError(Exception):
    """The peer cannot do what it was asked; the text says why."""


class Peer:
    """A running peer.

    Args:
        name: of the file `with_NAME.py`.
        python: the interpreter that has its packages.
        core: the core to stay on, or None.
    """

    def __init__(self, name: str, python: str, core: int | None, log: Path) -> None:
        self.name = name
        environment = {**os.environ, **ENVIRONMENT}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [python, str(SERVE), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        if core is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self._process.pid, {core})
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, time_limit: float, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            PeerError: the peer says no, ends, or takes too long (then it is ended).
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=time_limit)
        except queue.Empty:
            self.end()
            raise PeerError(f"took more than {time_limit:.0f} s") from None
        except OSError:
            line = ""
        if not line:
            self._process.wait()
            raise PeerError(f"its process ended with exit code {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
