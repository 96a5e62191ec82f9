"""The process of one peer: reads requests from standard input, a JSON object a line, and answers each with one.

    {"do": "version"}                                  -> {"version": "..."}
    {"do": "open", "problem": FILE}                    -> {"forms": {NAME: [losses]}, "seconds": {...}, ...}
    {"do": "time", "form": NAME, "count": n}           -> {"seconds": seconds a step}
    {"do": "close"}                                    -> {}

An answer {"error": "..."} says what went wrong.  Whatever a library prints goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]

from bench.peers.common import Form, Problem, Unsupported  # noqa: E402 - found through the lines above


class Server:
    """The forms of the workload that is open."""

    def __init__(self, peer: str) -> None:
        self._peer: Any = importlib.import_module(f"bench.peers.with_{peer}")
        self._forms: dict[str, Form] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked for."""
        what = request["do"]
        if what == "version":
            return {"version": self._peer.version()}
        if what == "open":
            return self._open(Path(request["problem"]), request["compared"])
        if what == "time":
            return {"seconds": self._forms[request["form"]].seconds(request["count"])}
        self._forms = {}
        gc.collect()
        return {}

    def _open(self, path: Path, compared: int) -> dict[str, Any]:
        problem: Problem = pickle.loads(path.read_bytes())  # noqa: S301 - written by the parent of this process
        losses, seconds, skipped = {}, {}, {}
        self._forms = {}
        for name, make in self._peer.forms(problem).items():
            started = time.perf_counter()
            try:
                form = make()
                losses[name] = form.losses(1)
                seconds[name] = time.perf_counter() - started
                losses[name] += form.losses(compared - 1)
            except Unsupported as reason:
                skipped[name] = str(reason)
                continue
            except Exception as error:  # the other forms may work
                skipped[name] = f"{type(error).__name__}: {str(error)[:300]}"
                continue
            self._forms[name] = form
        round_to = {name: form.round_to for name, form in self._forms.items()}
        return {"forms": losses, "seconds": seconds, "skipped": skipped, "round_to": round_to}


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server: Server | None = None
    for line in sys.stdin:
        try:
            server = server or Server(sys.argv[1])
            answer = server.answer(json.loads(line))
        except Unsupported as reason:
            answer = {"error": str(reason)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    sys.setrecursionlimit(200_000)  # micrograd recurses over its graph
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
