"""Exported C on a Cortex-M4 under QEMU: whether all bits are right, and what it takes, beside emlearn and m2cgen.

    python -m bench.embedded                                what is installed here
    python -m bench.embedded --peers ENV/bin/python         an interpreter with emlearn, m2cgen and scikit-learn

1. The digits 64-50-10 network, trained for 100 steps, is exported: its inference, and its training step.
2. Each export is compiled by gcc, clang and tcc, and run; then for the Cortex-M4 (bench/cortex_m4.py), and run under
   QEMU. It checks itself: ten recorded calls must give the recorded bits.
3. Code, constant data and RAM are those of the C file alone, with -Os; the stack is not counted. Instructions are those
   of one call, counted by QEMU; it does not say how many cycles a processor takes for them.
4. emlearn has no training, and m2cgen no networks: it stands beside the logistic regression 64-10.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import cortex_m4  # noqa: E402
from mgjit import data as datasets  # noqa: E402
from mgjit import nn  # noqa: E402

CALLS, TRAINED = 10, 100
NATIVE = {
    "gcc": ["-std=c99", "-O2", "-ffp-contract=off"],
    "clang": ["-std=c99", "-O2", "-ffp-contract=off"],
    "tcc": ["-std=c99"],
}

_COUNTER = """\
#include <stdio.h>
#include <stdint.h>
{head}
int main(void)
{{
    {before}
    uint32_t first = *(volatile uint32_t *)0xE000E018;
    {call}
    uint32_t last = *(volatile uint32_t *)0xE000E018;
    printf("%lu\\n", (unsigned long)((first - last) & 0xFFFFFF));
    return 0;
}}
"""

_PEERS = r"""
import sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
folder = Path(sys.argv[1])
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
X, y = load_digits(return_X_y=True)
X = X / 16
import emlearn, m2cgen
net = MLPClassifier((50,), max_iter=15, random_state=1).fit(X, y)
emlearn.convert(net, dtype="float").save(file=str(folder / "emlearn_net.h"), name="net")
(folder / "m2cgen_linear.c").write_text(m2cgen.export_to_c(LogisticRegression(max_iter=50).fit(X, y)))
print(emlearn.includedir)
print("emlearn", __import__("importlib.metadata").metadata.version("emlearn"),
      "m2cgen", __import__("importlib.metadata").metadata.version("m2cgen"))
"""

HEADER = (
    "| what | numbers | code | constants | RAM | instructions a call | bits on the Cortex-M4 |\n"
    "|---|---|---:|---:|---:|---:|---|"
)


class Row(NamedTuple):
    """One line of the table."""

    what: str
    numbers: str
    code: int
    constants: int
    ram: int
    instructions: int
    bits: str

    def __str__(self) -> str:
        numbers = (f"{number:,}" for number in (self.code, self.constants, self.ram, self.instructions))
        return f"| {self.what} | {self.numbers} | {' | '.join(numbers)} | {self.bits} |"


def digits_steps(dtype: str) -> tuple[Any, Any, list[tuple[Any, ...]]]:
    """The training step and the inference of the network 64-50-10, after some training, and calls of the first."""
    data = datasets.digits()
    draw = random.Random(1)
    images = [draw.randrange(len(data.train)) for _ in range(TRAINED + CALLS)]
    model = nn.MLP(64, [50, 10], seed=1)

    @mgjit.compile(dtype=dtype, background=False)
    def train(pixels: Any, label: Any, rate: Any) -> Any:
        scores = model([pixel / 16 for pixel in pixels])
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    @mgjit.compile(dtype=dtype, background=False)
    def predict(pixels: Any) -> Any:
        return model([pixel / 16 for pixel in pixels])

    calls = [(data.train.images[k], data.train.labels[k], 0.01) for k in images]
    for call in calls[:TRAINED]:
        train(*call)
    return train, mgjit.freeze(predict, calls[0][0]), calls[TRAINED:]


def linear_step(dtype: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """The logistic regression 64-10, without its softmax, as m2cgen exports it."""
    draw = random.Random(2)
    weights = [[mgjit.Value(draw.gauss(0.0, 1.0)) for _ in range(64)] for _ in range(10)]
    bias = [mgjit.Value(draw.gauss(0.0, 1.0)) for _ in range(10)]

    def scores(pixels: Any) -> Any:
        return [b + mgjit.dot(row, pixels) for row, b in zip(weights, bias)]

    calls = [([draw.random() for _ in range(64)],) for _ in range(CALLS)]
    return mgjit.freeze(mgjit.compile(dtype=dtype)(scores), *calls[0]), calls


def exported(what: str, name: str, dtype: str, step: Any, calls: list[tuple[Any, ...]], folder: Path) -> Row | None:
    """Export a step, check it on all compilers, and measure it."""
    step.export(folder, name, calls=calls)
    source, check = folder / f"{name}.c", folder / f"{name}_check.c"
    for compiler, flags in NATIVE.items():
        if shutil.which(compiler) is None:
            print(f"{what}: {compiler} is not installed")
            continue
        program = folder / f"{name}_{compiler}"
        subprocess.run([compiler, *flags, str(source), str(check), "-o", str(program), "-lm"], check=True)
        done = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=False)
        print(f"{what}, {dtype}, {compiler}: {done.stdout.strip()}")
    if cortex_m4.missing():
        return None
    code, said = cortex_m4.ran(cortex_m4.built(folder, [source, check]))
    print(f"{what}, {dtype}, Cortex-M4: {said.strip()}")
    size = cortex_m4.sizes(folder, source)
    header = (folder / f"{name}.h").read_text("ascii")
    memory = int(header.split("_MEMORY_SIZE ")[1].split()[0])
    head = check.read_text("ascii").split("int main(void)")[0]
    names = [f"in_{one}[0]" for one in ("pixels", "label", "rate")[: len(calls[0])]]
    count = counted(
        folder,
        [source],
        head + f"static {'float' if dtype == 'float32' else 'double'} result[{name.upper()}_SIZE_OF_RESULT];",
        f"{name}_init(&memory);" if f"{name}_init" in header else "",
        f"{name}_run(&memory, {', '.join(names)}, result);",
    )
    bits = "as recorded" if code == 0 else "DIFFERENT"
    return Row(what, dtype, size[".text"], size[".rodata"], memory + size[".data"] + size[".bss"], count, bits)


def counted(folder: Path, sources: list[Path], head: str, before: str, call: str, includes: Any = ()) -> int:
    """The instructions of one call."""
    caller = folder / "counter.c"
    caller.write_text(_COUNTER.format(head=head, before=before, call=call))
    _, said = cortex_m4.ran(cortex_m4.built(folder, [*sources, caller], includes), counting=True)
    return int(said) * cortex_m4.INSTRUCTIONS_PER_TICK


def peers(python: str, folder: Path) -> list[Row]:
    """The rows of emlearn and m2cgen, made by an interpreter that has them."""
    command = [python, "-c", _PEERS, str(folder)]  # emlearn writes into the current folder
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=folder)
    if done.returncode or cortex_m4.missing():
        print("emlearn and m2cgen: not measured")
        return []
    includes, versions = done.stdout.strip().splitlines()[-2:]
    print(versions)
    fill = "for (int k = 0; k < 64; k++) x[k] = (k * 37 % 64) / 64.0;"
    network = folder / "emlearn_net.c"
    network.write_text(
        '#include <stdint.h>\n#include "emlearn_net.h"\n'
        "int run(const float *x, float *y) { return net_regress(x, 64, y, 10); }\n"
    )
    linear = folder / "m2cgen_linear.c"
    found = []
    float_head = "int run(const float *, float *);\nstatic float x[64], y[10];"
    double_head = "void score(double *, double *);\nstatic double x[64], y[10];"
    for what, numbers, source, head, call in (
        ("emlearn: 64-50-10, inference", "float32", network, float_head, "run(x, y);"),
        ("m2cgen: 64-10, inference", "float64", linear, double_head, "score(x, y);"),
    ):  # fmt: skip
        size = cortex_m4.sizes(folder, source, [Path(includes)])
        count = counted(folder, [source], head, fill, call, [Path(includes)])
        ram = size[".data"] + size[".bss"]
        found.append(Row(what, numbers, size[".text"], size[".rodata"], ram, count, "not claimed"))
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, help="an interpreter with emlearn, m2cgen, scikit-learn")
    options = parser.parse_args()
    for name in cortex_m4.missing():
        print(f"{name} is not installed: nothing is measured for the Cortex-M4")
    rows: list[Row | None] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        train, predict, calls = digits_steps("float32")
        shorter = [call[:1] for call in calls]
        rows.append(exported("mgjit: 64-50-10, inference", "predict", "float32", predict, shorter, folder))
        rows.append(exported("mgjit: 64-50-10, training step", "train", "float32", train, calls, folder))
        for dtype in ("float32", "float64"):
            step, inputs = linear_step(dtype)
            rows += [exported("mgjit: 64-10, inference", "linear", dtype, step, inputs, folder)]
        rows += peers(options.peers, folder)
    print(f"\n{HEADER}")
    for row in rows:
        if row is not None:
            print(row)
    return 0 if all(row is None or row.bits != "DIFFERENT" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
