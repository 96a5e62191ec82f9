"""Which kernel was last used for arguments that look alike: found without a plan.

1. Arguments look alike if their types and lengths are the same (`lengths_of`).
2. If two kernels have arguments that look alike, such as two models, or True and False, they are told apart by what
   kernels know: texts and bools by value, objects by identity; and numbers by value where a kernel is for one number,
   such as an index of a text.

What is found is a guess: the kernel itself checks its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ..tracing.call.known import StaticNode
from ..tracing.call.lengths import WITH_LENGTH, lengths_of

if TYPE_CHECKING:
    from ..runtime.kernel import Kernel

#: So many arguments that look alike are remembered.
_MOST = 1024
_NUMBERS = frozenset({int, float})


class Members:
    """The kernels of a step, by what the arguments look like that they were last used for."""

    def __init__(self) -> None:
        self._by_lengths: dict[Hashable, Kernel] = {}
        self._by_identity: dict[Hashable, Kernel] = {}
        self._are_ambiguous = False
        self._by_value: frozenset[int] = frozenset()  # the positions of arguments that kernels know by value

    def find(self, arguments: Sequence[Any], lengths: Hashable = None) -> Kernel | None:
        """The kernel that was last used for such arguments.

        Args:
            lengths: of them, if known.
        """
        if self._are_ambiguous:
            found = self._by_identity.get(_identities(arguments, self._by_value))
            if found is not None:
                return found
        return self._by_lengths.get(lengths_of(arguments) if lengths is None else lengths) if self._by_lengths else None

    def put(self, arguments: Sequence[Any], lengths: Hashable, kernel: Kernel) -> None:
        """A kernel has been used for these arguments."""
        if self._by_lengths.get(lengths, kernel) is not kernel:
            self._are_ambiguous = True
        self._by_lengths[lengths] = kernel
        if self._are_ambiguous:
            if len(self._by_identity) >= _MOST:
                self._by_identity.clear()
            known = {k for k, node in enumerate(kernel.plan.nodes) if type(node) is StaticNode and node.by_value}
            if not known <= self._by_value:
                self._by_value |= known
                self._by_identity.clear()
            self._by_identity[_identities(arguments, self._by_value)] = kernel

    def forget(self, kernel: Kernel) -> None:
        """A kernel is used no more."""
        for known in (self._by_lengths, self._by_identity):
            for looks in [looks for looks, member in known.items() if member is kernel]:
                del known[looks]


def _identities(arguments: Sequence[Any], by_value: Collection[int]) -> Hashable:
    return tuple([
        (kind if k not in by_value else (kind, a)) if (kind := type(a)) in _NUMBERS
        else (kind, len(a), len(a[0]) if len(a) and type(a[0]) in WITH_LENGTH else 0) if kind in WITH_LENGTH
        else (kind, a) if kind is str or kind is bool
        else id(a)
        for k, a in enumerate(arguments)
    ])  # fmt: skip
