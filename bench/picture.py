"""The picture of the README: one training step by mgjit, PyTorch, JAX, plain Python and micrograd, from RESULTS.json.

    python bench/picture.py     # writes docs/speed.svg

It is drawn without a library, so that a test can compare it with the figures.  Times differ by factors of thousands:
the axis is logarithmic, and each bar says its time and how many times that of mgjit it is.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PICTURE = ROOT / "bench" / "RESULTS.json", ROOT / "docs" / "speed.svg"
WORKLOAD = "W2"  # the only one of them that all five can run
TITLE = "One training step: 2-16-16-1 network, a batch of 100 points"
BARS = {
    "mgjit": "mgjit",
    "jax jit": "JAX, jit",
    "torch eager": "PyTorch",
    "undecorated": "plain Python",
    "micrograd": "micrograd",
}
WIDTH, LEFT, RIGHT, TOP, ROW = 720, 110, 190, 46, 30
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}"
    ".grid{stroke:#d0d7de}rect{fill:#8aa6c1}.ours{fill:#c23b22}.back{fill:#fff}"
    "@media(prefers-color-scheme:dark){.back{fill:#131416}text{fill:#e6edf3}.small{fill:#9da7b1}.grid{stroke:#3d444d}}"
)


def time_text(seconds: float) -> str:
    """A time with two digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def picture(results: Path = RESULTS) -> str:
    """The SVG."""
    found = json.loads(results.read_text("utf-8"))
    measured, summary = found["workloads"][WORKLOAD]["seconds"], min if found["is_least"] else statistics.median
    times = {label: summary(measured[name]) for name, label in BARS.items()}
    first = math.floor(math.log10(min(times.values())))
    last = math.ceil(math.log10(max(times.values())))
    scale = (WIDTH - LEFT - RIGHT) / (last - first)
    bottom = TOP + ROW * len(times)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 34}" '
        f'viewBox="0 0 {WIDTH} {bottom + 34}" role="img">',
        f"<title>{TITLE}</title><style>{STYLE}</style>",
        f'<text x="0" y="18" font-weight="600">{TITLE}</text>',
    ]
    lines.insert(2, '<rect class="back" width="100%" height="100%"/>')
    for power in range(first, last + 1):
        x = LEFT + scale * (power - first)
        lines.append(f'<path class="grid" d="M{x:.0f} {TOP - 8}V{bottom}"/>')
        lines.append(
            f'<text class="small" x="{x:.0f}" y="{bottom + 14}" text-anchor="middle">'
            f"{time_text(10.0**power * 1.0000001).replace('.0', '')}</text>"
        )
    for row, (label, time) in enumerate(times.items()):
        y, length = TOP + ROW * row, scale * (math.log10(time) - first)
        times_ours = time / times["mgjit"]
        multiple = f"{float(f'{times_ours:.2g}'):,.0f} × mgjit"  # two digits
        beside = time_text(time) if label == "mgjit" else f"{time_text(time)}, {multiple}"
        lines.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{label}</text>')
        ours = ' class="ours"' if label == "mgjit" else ""
        lines.append(f'<rect{ours} x="{LEFT}" y="{y}" width="{length:.0f}" height="{ROW - 9}" rx="2"/>')
        lines.append(f'<text x="{LEFT + length + 6:.0f}" y="{y + 15}">{beside}</text>')
    lines.append(f'<text class="small" x="0" y="{bottom + 30}">time of a step, logarithmic; one core</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
