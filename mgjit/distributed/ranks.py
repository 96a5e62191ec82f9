"""The ranks of a job: an mpi4py communicator whose operations end with an error where another rank does not come.

MPI itself waits for ever, so every operation here is a nonblocking one, which is tested again and again:

1. `exchange(work)` does local work and gathers what it returns.  If it has raised an error on any rank, every rank
   raises one: the same error where it was raised, a RankError that quotes it elsewhere.  So all ranks go on, or none.
2. Ranks also send each other notes, which are read while they wait: `busy` (a rank builds code, be patient), `ended`
   (with the exception, if there was one), and `waiting`.
3. A rank that has waited for `timeout` seconds asks who else is waiting, and raises a RankError that names the others.
4. A rank that ends with an exception says so, gives the others a moment to raise theirs (launchers kill them when the
   first process has ended), and aborts the job unless all have the same error: MPI's finalization would wait for ranks
   that never come.  Without an exception, it says that it has ended.

One process without MPI is a job of one rank.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from array import array
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar

from ..errors import ArgumentError, RankError, described, user_location

_BUSY, _ENDED, _FAILED, _WAITING = range(4)
_NOTE_TAG, _SUM_TAG = 1, 2
_NOTE_SIZE = 512
#: Seconds in which an operation may still complete without a rank that has ended, or has failed.
_GRACE = {_ENDED: 3.0, _FAILED: 0.3}
#: Seconds for the others to raise their errors before a job is aborted, and to say that they wait.
_MOMENT = 0.7
#: Seconds in which processes may start one after another.
_START_SECONDS = 60.0
#: For so many seconds a rank only tests; then it lets others run in between; at last it pauses.
_EAGER_SECONDS, _BUSY_SECONDS, _PAUSE = 0.0002, 1.0, 0.001
_give_way: Callable[[], Any] = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))


class Alone:
    """The job of one process."""

    rank, size = 0, 1

    def exchange(self, work: Callable[[], bytes]) -> list[bytes]:
        """What `work()` returns on each rank."""
        return [work()]

    def add(self, block: Any) -> None:
        """Add up the blocks of all ranks, in the order that MPI chooses."""

    def broadcast(self, block: Any, root: int) -> None:
        """Overwrite the block of every rank with that of one."""

    def text(self, text: bytes | None, root: int) -> bytes:
        """The bytes that one rank gives, on every rank."""
        assert text is not None
        return text

    def send(self, block: Any, to: int) -> None:
        """Send a block, which must not change until `finish`."""
        raise AssertionError("there is no other rank")

    def receive(self, block: Any, source: int) -> None:
        """Receive a block."""
        raise AssertionError("there is no other rank")

    def finish(self) -> None:
        """Wait until everything is sent."""

    def busy(self, seconds: float) -> None:
        """Tell the others that this rank will be busy for up to so many seconds; 0: that it is not, any more."""


class Ranks(Alone):
    """The ranks of an mpi4py communicator.

    Args:
        comm: an intracommunicator, which is duplicated.
        timeout: the longest time in seconds that ranks wait for another one.
    """

    def __init__(self, comm: Any, timeout: float) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._timeout = timeout
        self._patience: dict[int, float] = {}
        self._sent: list[Any] = []
        self._notes: dict[int, tuple[int, str, float]] = {}
        self._waiting: set[int] = set()
        self._has_said = False
        self._is_broken = False
        self._kept: list[Any] = []  # what an operation that was given up still refers to
        self._comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        duplicate, request = comm.Idup()
        self._timeout = max(timeout, _START_SECONDS)
        self._wait(request, notes=False)
        self._timeout = timeout
        self._comm = duplicate
        _at_end(self)

    # ---- operations ---------------------------------------------------------------------------------

    def exchange(self, work: Callable[[], bytes]) -> list[bytes]:
        error: BaseException | None = None
        try:
            mine = b"\0" + work()
        except BaseException as raised:
            error, mine = raised, b"\1" + _told(raised).encode()
        found = self._gather(mine)
        failed = [rank for rank, text in enumerate(found) if text[:1] == b"\1"]
        if failed:
            raised_here: BaseException = error or RankError(
                f"{user_location()}: rank {failed[0]} has raised {found[failed[0]][1:].decode().rstrip('.')}. Nothing "
                "was updated on any rank."
            )
            raise on_all_ranks(raised_here)
        return [text[1:] for text in found]

    def _gather(self, mine: bytes) -> list[bytes]:
        lengths = array("q", [0]) * self.size
        self._wait(self._comm.Iallgather([array("q", [len(mine)]), self._mpi.INT64_T], [lengths, self._mpi.INT64_T]))
        starts = [sum(lengths[:rank]) for rank in range(self.size)]
        everything = bytearray(sum(lengths))
        target = [everything, list(lengths), starts, self._mpi.BYTE]
        self._wait(self._comm.Iallgatherv([mine, self._mpi.BYTE], target), everything)
        return [bytes(everything[start : start + length]) for start, length in zip(starts, lengths)]

    def add(self, block: Any) -> None:
        self._wait(self._comm.Iallreduce(self._mpi.IN_PLACE, self._typed(block), self._mpi.SUM), block)

    def broadcast(self, block: Any, root: int) -> None:
        self._wait(self._comm.Ibcast(self._typed(block), root), block)

    def text(self, text: bytes | None, root: int) -> bytes:
        is_here = text is not None and self.rank == root
        length = array("q", [len(text) if is_here and text is not None else 0])
        self.broadcast(length, root)
        block = bytearray(text if is_here and text is not None else length[0])
        self.broadcast(block, root)
        return bytes(block)

    def send(self, block: Any, to: int) -> None:
        self._sent.append((self._comm.Isend(self._typed(block), to, _SUM_TAG), block))

    def receive(self, block: Any, source: int) -> None:
        self._wait(self._comm.Irecv(self._typed(block), source, _SUM_TAG), block)

    def finish(self) -> None:
        while self._sent:
            request, block = self._sent.pop(0)
            self._wait(request, block)

    def busy(self, seconds: float) -> None:
        self._tell(_BUSY, str(seconds))

    def _typed(self, block: Any) -> list[Any]:
        types = {"d": self._mpi.DOUBLE, "f": self._mpi.FLOAT, "q": self._mpi.INT64_T, "B": self._mpi.BYTE}
        return [block, types[memoryview(block).format or "B"]]

    # ---- waiting -------------------------------------------------------------------------------------

    def _wait(self, request: Any, block: Any = None, notes: bool = True) -> None:
        """Wait for an operation.

        Args:
            block: what it works on.
            notes: whether notes can be read.

        Raises:
            RankError: another rank has ended, or does not come.
        """
        if self._is_broken:
            raise RankError(f"{user_location()}: this job has failed before: start it again.")
        started = next_look = perf_counter()
        self._has_said = False
        while not request.Test():
            now = perf_counter()
            if now >= next_look:
                next_look = now + 0.002
                try:
                    self._look(started, now, notes)
                except RankError:
                    self._kept += [request, block]
                    raise
            if now - started > _BUSY_SECONDS:
                time.sleep(_PAUSE)
            elif now - started > _EAGER_SECONDS:
                _give_way()

    def _look(self, started: float, now: float, notes: bool) -> None:
        """Read notes, and find out whether there is anything to wait for."""
        if notes:
            self._read_notes()
        for rank, (kind, text, since) in self._notes.items():
            if now - max(started, since) < _GRACE[kind]:
                continue
            if kind == _FAILED:
                raise self._broken(f"rank {rank} has ended with {text}")
            raise self._broken(
                f"rank {rank} has ended, while this one waits for it: all ranks must make the same calls, in the same "
                "order"
            )
        if now > max([started + self._timeout, *self._patience.values()]):
            raise self._late(notes)

    def _late(self, notes: bool) -> RankError:
        if not notes:
            return self._broken(f"not all ranks have come to data_parallel within {self._timeout:g} s")
        self._say_waiting()
        until = perf_counter() + _MOMENT
        while perf_counter() < until:
            self._read_notes()
            time.sleep(0.01)
        missing = sorted({*range(self.size)} - self._waiting - {self.rank})
        names = " and ".join(f"rank {rank}" for rank in missing) or "some rank"
        return self._broken(
            f"{names} did not come to the same call within {self._timeout:g} s: it hangs, is stopped, makes other "
            "calls, or needs more time (timeout=)"
        )

    def _broken(self, reason: str) -> RankError:
        self._is_broken = True
        return RankError(f"{user_location()}: {reason}. The job cannot go on.")

    # ---- notes ---------------------------------------------------------------------------------------

    def _tell(self, kind: int, text: str = "") -> None:
        note = bytes([kind]) + text.encode()[: _NOTE_SIZE - 1]
        for rank in range(self.size):
            if rank != self.rank:
                request = self._comm.Isend([note, self._mpi.BYTE], rank, _NOTE_TAG)
                self._kept = [*self._kept[-4 * self.size :], (request, note)]

    def _say_waiting(self) -> None:
        if not self._has_said:
            self._has_said = True
            self._tell(_WAITING)

    def _read_notes(self) -> None:
        status = self._mpi.Status()
        while self._comm.Iprobe(self._mpi.ANY_SOURCE, _NOTE_TAG, status):
            note, rank = bytearray(status.Get_count(self._mpi.BYTE)), status.Get_source()
            self._comm.Recv([note, self._mpi.BYTE], rank, _NOTE_TAG)
            kind, text = note[0], note[1:].decode(errors="replace")
            if kind == _BUSY:
                self._patience[rank] = perf_counter() + float(text)
            elif kind == _WAITING:
                self._waiting.add(rank)
                self._say_waiting()
            else:
                self._notes[rank] = kind, text, perf_counter()

    # ---- the end of a process ----------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> None:
        """Say that this process ends, and abort the job if it ends with an error that the others need not have."""
        if self._mpi.Is_finalized():
            return
        if error is None and not self._is_broken:
            self._tell(_ENDED)
            return
        if not self._is_broken:
            self._tell(_FAILED, "an error" if error is None else _told(error))
        sys.stdout.flush()
        sys.stderr.flush()
        until = perf_counter() + _MOMENT
        while perf_counter() < until:  # MPI sends only while it is called
            self._comm.Iprobe(self._mpi.ANY_SOURCE, _NOTE_TAG)
            time.sleep(0.01)
        if not getattr(error, "_mgjit_on_all_ranks", False):
            self._comm.Abort(1)


E = TypeVar("E", bound=BaseException)


def on_all_ranks(error: E) -> E:
    """Mark an error that all ranks raise, so that none of them has to end the job."""
    error._mgjit_on_all_ranks = True  # type: ignore[attr-defined]
    return error


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[: _NOTE_SIZE - 1]


_all: list[Ranks] = []


def _at_end(ranks: Ranks) -> None:
    """Have `ranks.end` called when this process ends."""
    if not _all:
        before = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
            before(kind, error, traceback)
            for one in _all:
                one.end(error)
            _all.clear()

        def leave() -> None:
            for one in _all:
                one.end(None)

        sys.excepthook = hook
        atexit.register(leave)
    _all.append(ranks)


def ranks_of(comm: Any, timeout: float) -> Alone:
    """The ranks of a communicator; None is one process without MPI.

    Raises:
        ArgumentError: it is no communicator of mpi4py.
    """
    if comm is None:
        return Alone()
    if not hasattr(comm, "Idup") or not hasattr(comm, "Iallreduce"):
        raise ArgumentError(
            f"{user_location()}: comm must be a communicator of mpi4py, not {described(comm)}. Write `from mpi4py "
            "import MPI` and pass MPI.COMM_WORLD; None is one process."
        )
    if comm.Is_inter():
        raise ArgumentError(f"{user_location()}: comm is an intercommunicator; pass comm.Merge().")
    return Ranks(comm, timeout) if comm.Get_size() > 1 else Alone()
