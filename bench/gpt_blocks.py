"""What a step costs that has equal blocks of a transformer one after the other, over mgjit.Tensor.

    python bench/gpt_blocks.py                                    1, 2, 4 and 8 blocks
    python bench/gpt_blocks.py --blocks 1 8 --width 64 --heads 4 --context 32 --batch 8 --mode fast

1. A GPT has an embedding, places, the blocks (layer norm, attention with a causal mask, layer norm, perceptron of four
   times the width), a layer norm and a head; it is trained by Adam.  The data is random.
2. Each number of blocks is a process of its own, with an empty disk cache.  Statements, loops and the parts of building
   are those of the best code, which the first call waits for (background=False).
3. With --check, losses and parameters of some calls are compared with those of the undecorated step, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import environment  # noqa: E402 - found through the line above

SYMBOLS, CALLS = 27, 300


def made(options: argparse.Namespace) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    """The step, its arguments, and the model."""
    from mgjit import nn, optim
    from mgjit import tensor as T

    random.seed(1)
    width = options.width

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = nn.MultiheadAttention(width, options.heads, batch_first=True)
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            x = x + self.attention(y, y, y, need_weights=False, is_causal=True)[0]
            return x + self.perceptron(self.second(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(SYMBOLS, width), nn.Embedding(options.context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(options.blocks[0])))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, SYMBOLS)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.blocks(self.letters(x) + self.places.weight)))

    model = GPT()
    if options.dtype == "float32":
        model = model.float()
    optimizer = optim.Adam(model.parameters(), lr=0.001)

    def step(x: Any, wanted: Any) -> Any:
        loss = nn.functional.cross_entropy(model(x).swapaxes(1, 2), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    rows = [[random.randrange(SYMBOLS) for _ in range(options.context)] for _ in range(options.batch)]
    x = T.asarray(rows)
    return step, (x, x), model


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """What one number of blocks costs, in this process."""
    import mgjit
    from mgjit.runtime.stats import Stats

    facts: dict[str, Any] = {}
    note_code = Stats.note_code

    def noting(stats: Stats, found: dict[str, Any], *more: Any) -> None:
        facts.update(found)
        note_code(stats, found, *more)

    Stats.note_code = noting  # type: ignore[method-assign]
    step, arguments, model = made(options)
    compiled = mgjit.compile(step, dtype=options.dtype, mode=options.mode, background=False)
    started = time.perf_counter()
    losses = [compiled(*arguments).item()]
    first = time.perf_counter() - started
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        losses.append(compiled(*arguments).item())
        times.append(time.perf_counter() - started)
    found = {**facts, "first": first, "trace": compiled.stats.trace_seconds, "call": min(times)}
    if options.check:
        plain, arguments, other = made(options)
        expected = [plain(*arguments).item() for _ in losses]
        trained = zip(model.parameters(), other.parameters())
        found["equal"] = losses == expected and all(one.tolist() == two.tolist() for one, two in trained)
    return found


def main() -> None:
    """Measure and print, each number of blocks in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--mode", choices=["strict", "fast"], default="strict")
    parser.add_argument("--check", action="store_true", help="compare with the undecorated step (float64, strict)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options), default=str))
        return
    print(
        f"width {options.width}, {options.heads} heads, context {options.context}, batch {options.batch}, "
        f"{options.dtype}, {options.mode}"
    )
    for blocks in options.blocks:
        given = [*sys.argv[1:], "--here", "--blocks", str(blocks)]
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, *given]
            done = subprocess.run(command, env=environment(Path(cache)), check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{blocks:3} blocks: {found['statements']:5} statements, best code in {found['first']:6.2f} s (trace "
            f"{found['trace']:.2f}, passes {found['lower_seconds']:.2f}, compiler {found['compile_seconds']:.2f}), "
            f"{found['call'] * 1e3:7.3f} ms a call{', equal: ' + str(found['equal']) if 'equal' in found else ''}",
            flush=True,
        )


if __name__ == "__main__":
    main()
