"""Kill a training run at random places, resume it each time, and compare all bits with those of a run without that.

1. The run: a perceptron with dropout, AdamW, a schedule, batches of a shuffled DataLoader, all random numbers from one
   generator; a compiled step.  After every step it saves everything, and adds the bits of its loss to a log.
2. The process is killed (SIGKILL) at a random moment: in a step, while it saves, while code is built.  The next one
   loads the file and goes on where that was saved.
3. After so many kills, a last process trains to the end.  Its parameters, and all losses of the log, must be those of
   the run that nothing interrupted.

Run: python bench/resume.py [--kills 100] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from mgjit import nn, optim
from mgjit.data import DataLoader, TensorDataset, digits

EPOCH, BATCH = 20, 32


def parts(draw: random.Random) -> dict[str, Any]:
    """The model, and what trains it."""
    random.seed(5)
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 10))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=500)
    return {"model": model, "optimizer": optimizer, "schedule": schedule, "random": draw}


def train(folder: Path, steps: int, pause: float) -> None:
    """Go on with the run in a folder until it has made so many steps; say where it begins."""
    draw = random.Random(3)
    run = parts(draw)
    model, optimizer = run["model"], run["optimizer"]
    images = digits().train
    pixels = [[pixel / 16.0 for pixel in row] for row in images.images[: EPOCH * BATCH]]
    loader = DataLoader(
        TensorDataset(pixels, images.labels[: EPOCH * BATCH]), batch_size=BATCH, shuffle=True, generator=draw
    )

    @mgjit.compile
    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    file, done, order = folder / "run.npz", 0, draw.getstate()
    if file.exists():
        saved = mgjit.load(file)
        for name in ("model", "optimizer", "schedule"):
            run[name].load_state_dict(saved[name])
        done, order = saved["done"], saved["order"]
        draw.setstate(order)
        random.setstate(saved["module"])
    while done < steps:
        if done % EPOCH == 0:
            order = draw.getstate()
        for number, (x, y) in enumerate(loader):
            if number < done % EPOCH:  # batches of this epoch that are done
                continue
            if done == steps:
                break
            loss = float(step(x, y))
            run["schedule"].step()
            done += 1
            with (folder / "log").open("a") as log:
                log.write(f"{done} {loss.hex()}\n")
            saved = {**run, "done": done, "order": draw.getstate() if done % EPOCH == 0 else order}
            mgjit.save({**saved, "module": random.getstate()}, file)
            time.sleep(pause)
    ended = [[x.hex() for x in p.detach().flatten().tolist()] for p in model.parameters()]
    (folder / "end").write_text(json.dumps(ended))


def interrupted(folder: Path, kills: int, steps: int, seed: int) -> int:
    """Let processes go on with a run, and kill all but the last; returns how many began with a file."""
    draw, resumed = random.Random(seed), 0
    for number in range(kills + 1):
        resumed += (folder / "run.npz").exists()
        process = subprocess.Popen([sys.executable, __file__, "--folder", str(folder), "--steps", str(steps)])
        before = _done(folder)
        if number < kills:  # at a random moment of its first three steps, or before them
            goal, deadline = before + draw.randrange(4), time.monotonic() + 60.0
            while _done(folder) < goal and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(draw.random() * 0.05)
            process.kill()
        process.wait()
    return resumed


def _done(folder: Path) -> int:
    return (folder / "log").read_text().count("\n") if (folder / "log").exists() else 0


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        train(options.folder, options.steps, 0.01)
        return
    steps = 4 * options.kills + 50
    with tempfile.TemporaryDirectory() as place:
        whole, pieces = Path(place, "whole"), Path(place, "pieces")
        whole.mkdir()
        pieces.mkdir()
        train(whole, steps, 0.0)
        resumed = interrupted(pieces, options.kills, steps, options.seed)
        losses = set((whole / "log").read_text().splitlines())
        wrong = set((pieces / "log").read_text().splitlines()) ^ losses
        is_same = (whole / "end").read_text() == (pieces / "end").read_text()
    print(f"{options.kills} kills, {resumed} resumed, {steps} steps: {len(wrong)} losses differ, parameters "
          f"{'are the same' if is_same else 'DIFFER'}")  # fmt: skip
    sys.exit(bool(wrong) or not is_same)


if __name__ == "__main__":
    main()
