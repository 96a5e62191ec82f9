"""Pictures, if matplotlib is installed: bars of µs a step, a panel a workload; what is done over time as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = (("mgjit", "#c23b22"), ("C by hand", "#333333"))
OTHERS = "#8aa6c1"


def plot(beside: Path, panels: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Write an SVG beside a file; returns its name, or an empty text when matplotlib is not installed."""
    pyplot = _pyplot()
    if pyplot is None:
        return ""
    rows = [max(1, len(bars)) for _, bars in panels]
    figure, axes = pyplot.subplots(
        len(panels), 1, figsize=(9, 0.24 * sum(rows) + 0.7 * len(panels)), squeeze=False,
        gridspec_kw={"height_ratios": rows},
    )  # fmt: skip
    for axis, (title, bars) in zip(axes[:, 0], panels):
        named = sorted(bars.items(), key=lambda bar: -bar[1])
        axis.barh(
            [label for label, _ in named], [time for _, time in named], color=[_colour(label) for label, _ in named]
        )
        axis.set_xscale("log")
        axis.set_title(f"{title}, µs a step", fontsize=9, loc="left")
        axis.tick_params(labelsize=7)
        for spine in ("top", "right"):
            axis.spines[spine].set_visible(False)
    figure.tight_layout()
    target = beside.with_suffix(".svg")
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)
    return target.name


def curves(target: Path, lines: Mapping[str, Sequence[tuple[float, float]]], axes: tuple[str, str]) -> str:
    """Draw named curves into a file; returns its name, or an empty text when matplotlib is not installed."""
    pyplot = _pyplot()
    if pyplot is None:
        return ""
    figure, axis = pyplot.subplots(figsize=(8, 4.5))
    for label, points in lines.items():
        axis.plot([x for x, _ in points], [y for _, y in points], label=label, linewidth=1.5)
    axis.set_xlabel(axes[0])
    axis.set_ylabel(axes[1])
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    for spine in ("top", "right"):
        axis.spines[spine].set_visible(False)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    pyplot.close(figure)
    return target.name


def _pyplot() -> Any:
    """Matplotlib without a screen; None where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    from matplotlib import pyplot

    return pyplot


def _colour(label: str) -> str:
    return next((colour for part, colour in COLOURS if part in label), OTHERS)
