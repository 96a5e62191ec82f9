"""A member of an ensemble: its contents, and its memory while compiled code works on that."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ..kernels.side_by_side.memory import Memory
from ..kernels.side_by_side.worlds import Contents, World, containers_of
from ..runtime.kernel import Kernel

#: After so many calls in memory, ints that the step counts up are looked at again.
_CALLS = 1 << 20


class MemberState:
    """What a member is.

    Args:
        contents: of everything that the step can reach.

    Attributes:
        memory: the numbers that are newer than those of the contents, or None.
        calls_left: how many calls may be made in memory before ints are looked at.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self.memory: Memory | None = None
        self.calls_left = 0

    def load(self) -> None:
        """Put everything into the user's objects; may be repeated."""
        self._contents.load()
        if self.memory is not None:
            self.memory.put()

    def become(self, contents: Contents | Memory) -> None:
        """Be these from now on, or be this memory and the contents as before; may be repeated."""
        if isinstance(contents, Memory):
            self.memory, self.calls_left = contents, _CALLS
        else:
            self._contents, self.memory = contents, None

    def drawn(self, kernel: Kernel, count: int) -> tuple[array[float] | None, list[Any]]:
        """What the next calls of a kernel draw, and the states of the generators after that."""
        assert self.memory is not None
        return (None, []) if kernel.draws is None else self.memory.drawn(kernel, count)

    def go_on(self, kernel: Kernel, states: Sequence[Any], calls_left: int) -> None:
        """Calls have been made in memory, after which the generators are in these states; may be repeated."""
        self.calls_left = calls_left
        if self.memory is not None:
            self.memory.note_drawn(kernel, states)


class Visit:
    """Loads members into the user's objects, one after the other, and puts back in the end what was there.

    Args:
        world: what the members have in common.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._before: Contents | None = None

    def load(self, member: MemberState) -> None:
        """Let the user's objects be those of a member."""
        if self._before is None:
            self._before = self._world.save()
        member.load()

    def end(self) -> None:
        """Put back what was there; may be repeated."""
        if self._before is not None:
            self._before.load()

    def widen(self, members: Sequence[MemberState]) -> None:
        """After something has been added to the world: it is, for all members, what it is now."""
        self.end()
        self._before = self._world.save()
        found = []
        for member in members:
            self.end()
            member.load()
            found.append(self._world.save_member())
        self.end()
        for member, contents in zip(members, found):
            member.become(contents)

    def memory(self, member: MemberState, kernel: Kernel) -> Memory | None:
        """The memory of a member on which the code of a kernel can work; None if the kernel does not fit the member."""
        memory = member.memory
        if memory is not None and member.calls_left > 0 and memory.hand_over(kernel):
            return memory
        self.load(member)
        if not _fits(kernel):
            return None
        if memory is None or memory.would_lose(kernel):
            known = [] if memory is None else memory.kernels
            if memory is not None:
                member.become(self._world.save_member())
            memory = Memory(known)
        memory.take(kernel)
        member.become(memory)
        return memory

    def left(self, member: MemberState, kernel: Kernel | None) -> Contents | Memory:
        """What a member is after a call in the user's objects.

        Args:
            kernel: that has made the call; None if it was plain Python, which can change anything.
        """
        before = Memory() if member.memory is None else member.memory
        if kernel is None or before.would_lose(kernel) or not _fits(kernel):
            return self._world.save_member()
        return before.taken_anew(kernel)


def _fits(kernel: Kernel) -> bool:
    """Whether a kernel can go on with the user's objects, without looking at them again for many calls."""
    is_usual = kernel.move is None and runs_anywhere(kernel)
    return is_usual and kernel.guard.holds() and kernel.copies_stay_exact(_CALLS)


def runs_anywhere(kernel: Kernel) -> bool:
    """Whether the code of a kernel can work on the memory of any member: a call changes nothing besides."""
    is_simple = kernel.values is None and kernel.objects is None and kernel.writes is None
    return is_simple and kernel.code.library is not None and not kernel.guard.expired


def changes(kernel: Kernel, arguments: Sequence[Any]) -> bool:
    """Whether a kernel changes data among the arguments of a call."""
    changed = kernel.changed_now()
    if not changed:
        return False
    return any(key in changed for argument in arguments for key in containers_of(argument))
