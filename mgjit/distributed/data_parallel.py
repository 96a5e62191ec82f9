"""`data_parallel(step, comm)`: a step for one row becomes a step for a batch, whose rows are spread over processes.

1. The first call makes the kernel of the first row: on rank 0, which builds its code, then on the others, which find it
   in the disk cache.  The ranks compare their programs, and get parameters and state from rank 0 (agreement.py).
2. A call runs forward and backward for this rank's rows, and adds up their gradients and results (sums.py).
3. These sums are added up over the ranks: by one Allreduce, or along a fixed tree (shards.py).  An error on one rank
   travels with them, so that no rank updates anything.
4. Every so many calls the ranks compare what they have, before anything is changed.
5. The sums, divided by the number of rows, become the gradients, and each rank runs the update.

docs/howto/machines.md defines the numbers in plain Python.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Generic, NamedTuple, TypeVar

from .._version import __version__
from ..base.tracebacks import with_short_tracebacks
from ..compiler.cache.key import generator_version
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    CheckpointError,
    ColumnError,
    RanksDifferError,
    described,
    user_location,
)
from ..step.decorator import compile as compile_step
from ..step.inside import Inside
from ..step.step import CompiledStep
from ..tracing.call.columns import Columns
from . import agreement, checkpoint
from .ranks import Alone, on_all_ranks, ranks_of
from .rows import digest, part_of, row_as_bytes, row_of_bytes
from .runner import BatchRunner
from .shards import Tree, Work, cut

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

#: Numbers behind the sums of a block: ranks that have failed, and the number of rows in two digits of this base,
#: because float32 does not hold large ones.
_TAIL, _BASE = 3, 4096


@dataclass(frozen=True)
class Options:
    """The options of `data_parallel`, which must be the same on all ranks."""

    order: str
    shards: int
    rows: str
    check_every: int


class _Share(NamedTuple):
    """The rows of a call.

    Attributes:
        columns: all rows that this rank was given.
        starts: the first row of each rank in the whole batch, and the number of all rows.
    """

    columns: Columns
    starts: Sequence[int]


class _Failure:
    """The error of this rank in a call, which is raised when all ranks know of it."""

    error: BaseException | None = None

    def attempt(self, work: Callable[[], Any]) -> bool:
        """Do some work, unless there was an error; returns whether there was none."""
        if self.error is None:
            try:
                work()
            except BaseException as error:
                self.error = error
        return self.error is None

    def again(self) -> bytes:
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error
        return b""


class DataParallel(Generic[P, R]):
    """A step over batches whose rows are spread over the ranks of a job; made by `data_parallel`.

    Attributes:
        step: the compiled step for one row.
        rank, size: of this process, and how many there are.
        calls: how many calls have been completed, also those before a checkpoint.
    """

    def __init__(self, step: CompiledStep[P, R], ranks: Alone, options: Options) -> None:
        self._inside = Inside(step, "data_parallel")
        self.step, self._ranks, self._options = step, ranks, options
        self.rank, self.size = ranks.rank, ranks.size
        self.calls = 0
        self._runner: BatchRunner | None = None
        self._first_row = b""
        self._loaded: checkpoint.Checkpoint | None = None
        agreement.compare_facts(
            ranks,
            lambda: {
                "mgjit": __version__,
                "a code generator with the hash": generator_version(),
                "a step named": step.__qualname__,
                "the options": repr(options),
            },
            "Start all ranks with the same version of mgjit and the same program.",
        )

    def __repr__(self) -> str:
        return f"<{self.step!r} on rank {self.rank} of {self.size}>"

    @with_short_tracebacks
    def __call__(self, *columns: Any, **named: Any) -> Any:
        """Run the step on a batch; every rank must make the same calls.

        Args:
            columns, named: as for `step.loop`: a list, array or other sequence has one item for each row, everything
                else is the same for all rows.

        Returns:
            What the step returns.  Numbers are means over all rows of all ranks; those that the update computes are
            what it has computed.

        Raises:
            SeparationError: the step's gradient cannot be separated from its update.
            RankError: another rank has raised an error, has ended or does not come; nothing was updated here.
            RanksDifferError: the ranks do not agree.
            ColumnError: the columns differ in length, or there is no row at all.
        """
        return self._inside.run("data_parallel", self._call, columns, named)

    def _call(self, columns: Sequence[Any], named: dict[str, Any]) -> Any:
        if self._runner is None:
            self._runner = self._started(columns, named)
        runner, failure = self._runner, _Failure()
        try:
            is_simple = self._options.order == "fast" and self._options.rows == "all"
            sums, share = (self._simple_sums if is_simple else self._agreed_sums)(runner, columns, named, failure)
            if sums[runner.length]:
                self._ranks.exchange(failure.again)
            failure.again()  # of a rank without rows, on which the others do not wait
            count = share.starts[-1]
            self._refuse_other_rows(count, sums[runner.length :])
            if self.calls % self._options.check_every == 0:
                self._compare(runner, share.columns)
        except BaseException:
            runner.restore_generators()
            raise
        result = runner.update(sums, count)
        self.calls += 1
        return result

    # ---- 1: the first call ---------------------------------------------------------------------------

    def _started(self, columns: Sequence[Any], named: dict[str, Any]) -> BatchRunner:
        """Make the kernel of the first row on all ranks, and give all of them the numbers of rank 0."""
        share = self._agreed_share(columns, named)
        ranks = self._ranks
        runner = BatchRunner(self._inside, ranks.busy, self.size)
        if self._options.rows == "own":
            root = next(rank for rank in range(self.size) if share.starts[rank] < share.starts[rank + 1])
            found = ranks.exchange(lambda: row_as_bytes(share.columns) if root == self.rank else b"")
            self._first_row = found[root]

        def make() -> bytes:
            runner.kernel(self._row_of_another(share.columns), share.columns)
            return b""

        ranks.exchange(make if self.rank == 0 else bytes)  # the others find its code in the cache
        ranks.exchange(make)
        kernel = runner.lead
        assert kernel is not None

        def facts() -> dict[str, Any]:
            return {
                "rows of the structure": kernel.plan.outline(),
                "numbers of the type": kernel.plan.precision.name,
                "so many parameters:": sum(len(storage) for storage in kernel.parameters),
                "a step of the structure": kernel.separation.structure,
                "a layout of parameters": repr(
                    ([storage.layout for storage in kernel.parameters], kernel.code.layouts.states)
                ),
            }

        agreement.compare_facts(ranks, facts, _ABOUT_FACTS)
        memories = agreement.memories_of(kernel, self._inside.function)
        self._apply_loaded(kernel, memories)
        agreement.agree(ranks, kernel, memories)
        return runner

    def _row_of_another(self, columns: Columns) -> tuple[Any, ...]:
        """The arguments of the first row of the batch; where each rank has its own rows, of the first batch."""
        return columns.row(0) if self._options.rows == "all" else row_of_bytes(self._first_row, columns)

    # ---- 2, 3: sums ----------------------------------------------------------------------------------

    def _read(self, columns: Sequence[Any], named: dict[str, Any]) -> Columns:
        table = self._inside.columns(columns, named)
        if self._options.rows == "all" and not table.length:
            raise ColumnError(f"{user_location()}: a batch without rows has no mean.")
        return table

    def _simple_sums(
        self, runner: BatchRunner, columns: Sequence[Any], named: dict[str, Any], failure: _Failure
    ) -> tuple[array[float], _Share]:
        """The sums of a batch that all ranks have, in the order of MPI: one Allreduce is all that is exchanged."""
        sums = runner.new(_TAIL)
        share = _Share(_NO_COLUMNS, [0])

        def work() -> None:
            nonlocal share
            table = self._read(columns, named)
            share = _Share(table, cut(table.length, self.size))
            self._load(runner, share)
            self._run(runner, share, share.starts[self.rank], share.starts[self.rank + 1], sums)

        if not failure.attempt(work):
            sums = runner.new(_TAIL)
            sums[runner.length] = 1
        self._ranks.add(sums)
        return sums, share

    def _agreed_sums(
        self, runner: BatchRunner, columns: Sequence[Any], named: dict[str, Any], failure: _Failure
    ) -> tuple[array[float], _Share]:
        """The sums of a batch of which the ranks first have to know how many rows each of them has."""
        share = self._agreed_share(columns, named)
        first, last = share.starts[self.rank], share.starts[self.rank + 1]
        failure.attempt(lambda: self._load(runner, share))

        def run(low: int, high: int, sums: array[float]) -> None:
            if not failure.attempt(lambda: self._run(runner, share, low, high, sums)):
                sums[runner.length] = 1

        def add(one: array[float], other: array[float]) -> None:
            runner.add(one, other)

        if self._options.order == "fast":
            sums = runner.new(_TAIL)
            run(first, last, sums)
            self._ranks.add(sums)
            return sums, share
        work = Work(lambda: runner.new(_TAIL), run, add)
        sums = Tree(share.starts, self._options.shards, self._ranks, work).total()
        self._ranks.finish()
        return sums, share

    def _agreed_share(self, columns: Sequence[Any], named: dict[str, Any]) -> _Share:
        """The rows of this rank, in a batch of which all ranks know the size."""
        read: list[Columns] = []

        def work() -> bytes:
            read.append(self._read(columns, named))
            return struct.pack("<q", read[0].length)

        counts = [struct.unpack("<q", one)[0] for one in self._ranks.exchange(work)]
        if self._options.rows == "own":
            starts = [sum(counts[:rank]) for rank in range(self.size + 1)]
            if not starts[-1]:
                raise on_all_ranks(ColumnError(f"{user_location()}: no rank has any rows, so that there is no mean."))
        else:
            other = next((rank for rank in range(self.size) if counts[rank] != counts[0]), 0)
            if other:
                raise on_all_ranks(_other_batch(f"rank {other} has {counts[other]} rows, rank 0 has {counts[0]}"))
            starts = self._starts(counts[0])
        return _Share(read[0], starts)

    def _starts(self, count: int) -> list[int]:
        """The first row of each rank, of a batch that all of them have."""
        if self._options.order == "fast":
            return cut(count, self.size)
        edges = cut(count, self._options.shards)
        return [edges[shard] for shard in cut(self._options.shards, self.size)]

    def _load(self, runner: BatchRunner, share: _Share) -> None:
        first, last = share.starts[self.rank], share.starts[self.rank + 1]
        columns = share.columns if self._options.rows == "own" else part_of(share.columns, first, last)
        runner.load(columns, first, last, share.starts[-1])
        if first == last:
            runner.run_first(self._row_of_another(share.columns), share.columns)

    def _run(self, runner: BatchRunner, share: _Share, low: int, high: int, sums: array[float]) -> None:
        """Add rows of the batch, all of them this rank's, to a block of sums."""
        first = share.starts[self.rank]
        runner.run(low - first, high - first, sums)
        sums[-2] += (high - low) % _BASE
        sums[-1] += (high - low) // _BASE

    def _refuse_other_rows(self, count: int, tail: Sequence[float]) -> None:
        total = int(tail[1]) + int(tail[2]) * _BASE
        if total != count:
            raise _other_batch(f"all ranks together have run {total} rows of a batch of {count}")

    # ---- 4: comparisons --------------------------------------------------------------------------------

    def _compare(self, runner: BatchRunner, columns: Columns) -> None:
        """Compare what must be the same on all ranks; nothing has been changed yet."""
        if self.size == 1:
            return
        assert runner.lead is not None
        memories = agreement.memories_of(runner.lead, self._inside.function)
        inputs = runner.update_inputs()
        memories += [
            agreement.Memory(array("d", inputs), lambda k: f"number {k} of the arguments that the update uses"),
            agreement.generator_memory(runner.lead),
        ]
        if self._options.rows == "all":
            number = int.from_bytes(digest(columns)[:6], "little")
            memories.append(agreement.Memory(array("d", [number]), lambda _: _ABOUT_BATCH))
        agreement.compare_numbers(self._ranks, memories)

    # ---- checkpoints -----------------------------------------------------------------------------------

    @with_short_tracebacks
    def save(self, path: str | PathLike[str], **extra: Any) -> None:
        """Write a checkpoint: rank 0 writes, all ranks have to call this, and an error is one on all of them.

        Args:
            path: of the file, which is replaced as a whole.
            extra: what `load` is to return: numbers, strings, lists and dicts, such as the epoch.

        Raises:
            CheckpointError: before the first call.
            OSError: rank 0 cannot write it.
        """

        def write() -> bytes:
            if self._runner is None or self._runner.lead is None:
                raise CheckpointError(f"{user_location()}: before the first call there is nothing to save.")
            if self.rank == 0:
                kernel = self._runner.lead
                memories = agreement.memories_of(kernel, self._inside.function)
                checkpoint.write(fspath(path), self.step.__qualname__, self.calls, extra, kernel, memories)
            return b""

        self._inside.in_turn(self._ranks.exchange, write)

    @with_short_tracebacks
    def load(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Go on from a checkpoint, with any number of ranks; all of them have to call this, rank 0 reads.

        The parameters get their numbers now, or in the first call, if there has been none.

        Returns:
            The `extra` that was given to `save`.

        Raises:
            CheckpointError: the file is damaged, or of another step.
            OSError: rank 0 cannot read it.
        """
        return self._inside.in_turn(self._load_checkpoint, fspath(path))

    def _load_checkpoint(self, path: str) -> dict[str, Any]:
        def read() -> bytes:
            if self.rank:
                return b""
            self._loaded = checkpoint.read(path)
            return json.dumps([self._loaded.head["calls"], self._loaded.head["extra"]]).encode()

        self.calls, extra = json.loads(self._ranks.exchange(read)[0])
        if self._runner is not None and self._runner.lead is not None:
            kernel = self._runner.lead
            memories = agreement.memories_of(kernel, self._inside.function)
            self._apply_loaded(kernel, memories)
            agreement.agree(self._ranks, kernel, memories)
        return extra  # type: ignore[no-any-return]

    def _apply_loaded(self, kernel: Any, memories: list[agreement.Memory]) -> None:
        def apply() -> bytes:
            loaded, self._loaded = self._loaded, None
            if loaded is not None:
                checkpoint.apply(loaded, self.step.__qualname__, kernel, memories)
            return b""

        self._ranks.exchange(apply)


_NO_COLUMNS = Columns([], [], 0, frozenset())
_ABOUT_FACTS = (
    "All ranks must have the same model and pass rows of the same structure; compiled steps that other steps share "
    "their parameters with must have been called on all ranks, in the same order."
)
_ABOUT_BATCH = (
    'the hash of the batch (each rank passes the whole batch, of which it does its share; rows="own" is for ranks that '
    "pass rows of their own)"
)


def _other_batch(text: str) -> RanksDifferError:
    return RanksDifferError(
        f'{user_location()}: {text}. Each rank passes the whole batch, of which it does its share; rows="own" is for '
        "ranks that pass rows of their own."
    )


def data_parallel(
    step: Callable[P, R],
    comm: Any = None,
    *,
    order: str = "fast",
    shards: int = 12,
    rows: str = "all",
    check_every: int = 100,
    timeout: float = 30.0,
) -> DataParallel[P, R]:
    """Spread the rows of batches over the processes of an MPI job; every rank must call this.

    Args:
        step: a step for one row: forward, `backward()`, update. Compiled, or a function that is compiled here.
        comm: an mpi4py communicator, such as `MPI.COMM_WORLD`; None: this process alone.
        order: in which rows are added up. "fast": each rank adds its own, and MPI adds the sums of the ranks. "exact":
            an order that gives the same bits for any number of ranks.
        shards: into how many parts "exact" cuts a batch; more ranks than that have nothing to do.
        rows: "all": each rank passes the whole batch, and does its share. "own": each rank passes rows of its own, or
            none. The batch has those of rank 0 first.
        check_every: after so many calls, parameters and state of all ranks are compared.
        timeout: so many seconds ranks wait for another one before the job is ended.

    Raises:
        ArgumentError, ArgumentValueError: an option has the wrong type or an impossible value.
        RanksDifferError: ranks have other versions of mgjit, or other options.
    """
    _require(order in ("fast", "exact"), 'order must be "fast" or "exact"', order)
    _require(rows in ("all", "own"), 'rows must be "all" or "own"', rows)
    _require(type(shards) is int and shards > 0, "shards must be an int above 0", shards)
    _require(type(check_every) is int and check_every > 0, "check_every must be an int above 0", check_every)
    _require(type(timeout) in (int, float) and timeout > 0, "timeout must be a number of seconds above 0", timeout)
    if not callable(step):
        raise ArgumentError(f"{user_location()}: data_parallel needs a step, not {described(step)}.")
    compiled: Any = step if isinstance(step, CompiledStep) else compile_step(step)
    ranks = ranks_of(comm, timeout)
    return DataParallel(compiled, ranks, Options(order, shards, rows, check_every))


def _require(is_right: bool, text: str, given: Any) -> None:
    if not is_right:
        raise ArgumentValueError(f"{user_location()}: {text}, not {described(given)}.")
