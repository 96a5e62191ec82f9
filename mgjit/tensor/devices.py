"""Where tensors live: in the memory of this process.  Programs that ask for a device get this one."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, described, user_location


class device:
    """The processor, the only device: `device("cpu")`.

    Raises:
        ArgumentError: another one is asked for.
    """

    type, index = "cpu", None

    def __init__(self, name: Any = "cpu") -> None:
        if name is not None and not isinstance(name, device) and str(name).partition(":")[0] != "cpu":
            raise ArgumentError(
                f"{user_location()}: mgjit computes on the processor, there is no device {described(name)}. Write "
                "'cpu', or leave it out."
            )

    def __str__(self) -> str:
        return "cpu"

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) or other == "cpu"

    def __hash__(self) -> int:
        return hash("cpu")


class _Absent:
    """What programs ask for the devices that are not there."""

    @staticmethod
    def is_available() -> bool:
        """Whether there is such a device: never."""
        return False

    @staticmethod
    def device_count() -> int:
        """0"""
        return 0

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """There is nothing to seed."""


cuda = mps = _Absent()
