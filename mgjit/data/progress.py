"""A bar that shows how far a loop is, with numbers such as the loss; silent where nobody sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class progress:
    """`for x, y in progress(loader)`: a bar on a terminal, and nothing anywhere else.

    Args:
        iterable: what the loop runs over.
        title: what stands in front of the bar.
    """

    def __init__(self, iterable: Any, title: str = "") -> None:
        from tqdm import tqdm

        self._bar = tqdm(iterable, desc=title or None, disable=None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._bar)

    def __len__(self) -> int:
        return len(self._bar)

    def show(self, **numbers: Any) -> None:
        """Show numbers behind the bar: `bar.show(loss=loss)`."""
        if not self._bar.disable:
            self._bar.set_postfix({name: f"{float(number):.4g}" for name, number in numbers.items()}, refresh=False)
