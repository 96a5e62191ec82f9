"""Bars of µs a step, a panel a workload, on a logarithmic scale; nothing without matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

COLOURS = (("mgjit", "#c23b22"), ("C by hand", "#333333"))
OTHERS = "#8aa6c1"


def plot(beside: Path, panels: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Write an SVG beside a file; returns its name, or an empty text when matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return ""
    matplotlib.use("svg")
    from matplotlib import pyplot

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


def _colour(label: str) -> str:
    return next((colour for part, colour in COLOURS if part in label), OTHERS)
