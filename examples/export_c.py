"""Learn to export a trained step as C99 without Python, which checks itself, and goes on learning where it is compiled.

Run: python examples/export_c.py [directory]
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "2000"))
model = nn.MLP(2, [8, 1])


@mgjit.compile(dtype="float32")
def train_step(x, y, target, rate):
    loss = (model([x, y]) - target) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


draw = random.Random(1)


def example():
    """A point, and whether it is inside of a circle."""
    x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
    return x, y, float(x * x + y * y < 0.5), 0.02


total = 0.0
for step in range(1, STEPS + 1):
    total += train_step(*example())
    if step % (STEPS // 4) == 0:
        print(f"step {step:5}  mean loss {4 * total / STEPS:.4f}")
        total = 0.0

directory = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
files = train_step.export(directory, name="circle", calls=[example() for _ in range(20)])
print("written:", ", ".join(os.path.basename(file) for file in files))

compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
if compiler is None:
    print("there is no C compiler here, so they are not compiled")
else:
    sources = [os.path.join(directory, name) for name in ("circle.c", "circle_check.c")]
    program = os.path.join(directory, "circle_check")
    subprocess.run([compiler, "-std=c99", "-O2", "-ffp-contract=off", *sources, "-lm", "-o", program], check=True)
    subprocess.run([program], check=True)
if len(sys.argv) == 1:
    shutil.rmtree(directory)
