"""What ranks must have in common: the program, and the numbers that it keeps from call to call.

1. Facts, such as versions and options, are gathered as JSON; the first one that differs from rank 0's is an error that
   names it, on all ranks.
2. Of the numbers, each rank gathers a hash.  Only if the hashes differ does rank 0 send its numbers, so that each rank
   finds the first one that differs, and all ranks name the first of these.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import xxhash

from ..errors import RanksDifferError, user_location
from ..runtime.kernel import Kernel
from ..tracing.draws.plan import restore_state
from ..verification.holders import Storage, described
from ..verification.snapshot import Snapshot
from .ranks import Alone, on_all_ranks


def compare_facts(ranks: Alone, facts: Callable[[], Mapping[str, Any]], advice: str) -> list[dict[str, Any]]:
    """Gather facts about each rank.

    Args:
        facts: of this rank. Those whose names begin with a blank may differ.
        advice: what to do about a difference.

    Raises:
        RanksDifferError: they are not those of rank 0.
    """
    found: list[dict[str, Any]] = [json.loads(text) for text in ranks.exchange(lambda: json.dumps(facts()).encode())]
    for rank, own in enumerate(found):
        for name, fact in found[0].items():
            if own[name] != fact and not name.startswith(" "):
                raise _on_all(f"rank {rank} has {name} {own[name]}, rank 0 has {fact}. {advice}")
    return found


def _on_all(text: str) -> RanksDifferError:
    return on_all_ranks(RanksDifferError(f"{user_location()}: {text}"))


class Memory(NamedTuple):
    """Numbers that a step keeps from call to call.

    Attributes:
        buffer: of float64 or float32. name: of one of them, for messages.
    """

    buffer: Any
    name: Callable[[int], str]


def memories_of(kernel: Kernel, function: Any) -> list[Memory]:
    """The parameters and the state of a step, as they are now.

    Args:
        function: the step, to name them.
    """
    if kernel.copies is not None:
        kernel.copies.copy_in()
    found = [Memory(storage.data, _parameter_name(storage, function)) for storage in kernel.parameters]
    states = zip(kernel.state_buffers, kernel.state_places)
    return found + [Memory(buffer, _state_name(kernel, buffer, places)) for buffer, places in states]


def _parameter_name(storage: Any, function: Any) -> Callable[[int], str]:
    def name(index: int) -> str:
        snapshot = Snapshot([("", function)])
        for holder in snapshot.holders:
            if isinstance(holder, Storage) and holder.thing is storage and (index, False) in holder.known:
                return described(holder.known[index, False])
        return f"parameter {index}"

    return name


def _state_name(kernel: Kernel, buffer: Any, places: Sequence[int]) -> Callable[[int], str]:
    def name(index: int) -> str:
        copies = kernel.copies
        if copies is None or copies.numbers is not buffer:
            return f"element {places.index(index)} of a State"
        for part in copies.parts:
            if index in part.offsets:
                return str(part.place.describe()) + (f"[{index - part.offset}]" if part.size else "")
        return f"the type of a number at {index}"

    return name


def compare_numbers(ranks: Alone, memories: Sequence[Memory]) -> None:
    """Compare numbers with those of rank 0, bit for bit.

    Raises:
        RanksDifferError: a rank has others.
    """
    hashes = ranks.exchange(lambda: b"".join(xxhash.xxh3_64(_bytes(memory.buffer)).digest() for memory in memories))
    if len(set(hashes)) == 1:
        return
    number = next(k for k in range(len(memories)) if len({one[8 * k : 8 * k + 8] for one in hashes}) > 1)
    mine, name = memories[number]
    own = bytes(_bytes(mine))
    first = ranks.text(own, 0)
    size, form = memoryview(mine).itemsize, memoryview(mine).format or "d"
    places = [k for k in range(0, len(own), size) if own[k : k + size] != first[k : k + size]]
    gathered = ranks.exchange(lambda: struct.pack("<q", places[0] // size if places else -1))
    found = [(struct.unpack("<q", one)[0], rank) for rank, one in enumerate(gathered)]
    place, rank = min(one for one in found if one[0] >= 0)
    theirs = ranks.text(own[place * size :][:size], rank)
    ours, others = (struct.unpack(form, one)[0] for one in (first[place * size :][:size], theirs))
    raise _on_all(
        f"the ranks do not agree any more: {name(place)} is {ours!r} on rank 0, and {others!r} on rank {rank}. "
        "Something outside of the step has changed it on one rank only, or it was different from the beginning (an "
        "attribute, an argument)."
    )


def _bytes(buffer: Any) -> memoryview:
    return memoryview(buffer).cast("B")


def generator_states(kernel: Kernel) -> bytes:
    """The states of the random generators that a step draws from."""
    states = [] if kernel.draws is None else kernel.draws.states()
    return json.dumps(states).encode()


def restore_generators(kernel: Kernel, states: bytes) -> None:
    """Restore what `generator_states` has returned."""
    if kernel.draws is None:
        return
    for generator, state in zip(kernel.draws.generators, json.loads(states)):
        restore_state(generator, _tuples(state))


def _tuples(state: Any) -> Any:
    return tuple(map(_tuples, state)) if isinstance(state, list) else state


def agree(ranks: Alone, kernel: Kernel, memories: Sequence[Memory]) -> None:
    """Give all ranks the numbers and the generators of rank 0."""
    for memory in memories:
        ranks.broadcast(memory.buffer, 0)
    restore_generators(kernel, ranks.text(generator_states(kernel), 0))
    if kernel.copies is not None:
        kernel.copies.show()


def generator_memory(kernel: Kernel) -> Memory:
    """The states of the generators as numbers, to be compared."""
    digest = xxhash.xxh3_64_intdigest(generator_states(kernel)) >> 11
    return Memory(array("d", [digest]), lambda index: "the state of a random generator (as a hash)")
