"""A loss curve, as text in the terminal and as a PNG file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from mgjit.errors import MgjitError

_EIGHTHS = " ▁▂▃▄▅▆▇█"


class PlotError(MgjitError, RuntimeError):
    """The curve cannot be saved: matplotlib is not installed, or the file cannot be written."""


def can_print(text: str, encoding: str | None) -> bool:
    """Whether a stream with this encoding can take `text`."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def columns(values: Sequence[float], width: int) -> list[float]:
    """At most `width` numbers: the means of equal stretches of `values`.

    Means are of the finite values only; a stretch without any is NaN, and shows as a gap.
    """
    count = min(width, len(values))
    result = []
    for k in range(count):
        stretch = values[k * len(values) // count : (k + 1) * len(values) // count]
        finite = [v for v in stretch if math.isfinite(v)]
        result.append(sum(finite) / len(finite) if finite else math.nan)
    return result


def render(values: Sequence[float], *, width: int = 64, height: int = 8, encoding: str | None = "utf-8") -> str:
    """`values` as filled columns above a base line of zero (or of the lowest value, when it is negative).

    Args:
        values: what to draw, in order.
        width: columns of the drawing, without the axis.
        height: lines of the drawing, without the base line.
        encoding: of the stream that the text goes to; block characters only if it can take them.
    """
    means = columns(values, width)
    finite = [v for v in means if math.isfinite(v)]
    if not finite:
        return "(no finite value to draw)"
    low, high = min(0.0, *finite), max(0.0, *finite)
    half_span = (high / 2 - low / 2) or 1.0  # halves, because the difference of the largest floats overflows
    blocks = can_print(_EIGHTHS, encoding)
    steps = 8 if blocks else 1
    levels = [round((v / 2 - low / 2) / half_span * height * steps) if math.isfinite(v) else 0 for v in means]
    label_width = max(len(f"{v:.4g}") for v in (low, high))
    corner, side, base = ("└", "┤", "─") if can_print("└┤─", encoding) else ("+", "|", "-")
    lines = []
    for row in range(height - 1, -1, -1):
        label = f"{high:.4g}" if row == height - 1 else ""
        cells = (max(0, min(steps, level - row * steps)) for level in levels)
        drawing = "".join(_EIGHTHS[cell] if blocks else " #"[cell] for cell in cells)
        lines.append(f"{label:>{label_width}} {side}{drawing}".rstrip())
    lines.append(f"{low:>{label_width}.4g} {corner}{base * len(means)}")
    return "\n".join(lines)


def check_png(path: Path) -> None:
    """Find out before a long training whether the curve can be saved after it.

    Raises:
        PlotError: it cannot; the text says what to do.
    """
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise PlotError(f"--plot needs matplotlib: python -m pip install 'mgjit[plot]' ({error})") from error
    if not path.absolute().parent.is_dir():
        raise PlotError(f"cannot save {path}: its folder does not exist")


def save_png(path: Path, values: Sequence[float], *, title: str, xlabel: str, ylabel: str) -> None:
    """Save the curve as a PNG file, without a display.

    Raises:
        PlotError: matplotlib is not installed, or the file cannot be written.
    """
    check_png(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    means = columns(values, 400)
    axes.plot([(k + 0.5) * len(values) / len(means) for k in range(len(means))], means, linewidth=1)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise PlotError(f"cannot save {path}: {error}") from error
