"""Notebooks in a real kernel: cells that define, redefine and extend a model, and train in between.

The same cells run twice, once with `MGJIT_DISABLE=1`; every number that they show must be the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")

from tests import notebooks  # noqa: E402 - it needs what was asked for above

CELLS = [
    """
import math, random, warnings
import mgjit
warnings.simplefilter("error", UserWarning)
def show(*numbers):
    print(*[float(getattr(number, "data", number)).hex() for number in numbers])
""",
    # An engine of the user's own, with functions that only take real numbers.
    """
class Node:
    def __init__(self, data, children=(), factors=()):
        self.data, self.grad = data, 0.0
        self.children, self.factors = children, factors
    def __add__(self, other):
        return Node(self.data + other.data, (self, other), (1.0, 1.0))
    def __mul__(self, other):
        return Node(self.data * other.data, (self, other), (other.data, self.data))
    def tanh(self):
        t = math.tanh(self.data)
        return Node(t, (self,), (1.0 - t * t,))
    def backward(self):
        order, seen = [], set()
        def visit(node):
            if node not in seen:
                seen.add(node)
                for child in node.children:
                    visit(child)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, factor in zip(node.children, node.factors):
                child.grad += factor * node.grad
""",
    """
random.seed(3)
weights = [Node(random.uniform(-1, 1)) for _ in range(3)]
lr = 0.1
""",
    """
@mgjit.compile
def step(x, y):
    out = Node(0.0)
    for w in weights:
        out = (out + w * Node(x)).tanh()
    loss = (out + Node(-y)) * (out + Node(-y))
    for w in weights:
        w.grad = 0.0
    loss.backward()
    for w in weights:
        w.data -= lr * w.grad
    return loss.data if loss.data > 1e-9 else 0.0
""",
    "show(*[step(0.5, 0.25) for _ in range(5)], *[w.data for w in weights])",
    # A parameter more, and another learning rate.
    "weights.append(Node(0.125))\nlr = 0.05",
    "show(*[step(0.5, 0.25) for _ in range(5)], *[w.data for w in weights])",
    # A method of the class is written again, then the whole class, while objects of the old one live on.
    """
def tanh(self):
    t = math.tanh(2.0 * self.data)
    return Node(t, (self,), (2.0 * (1.0 - t * t),))
Node.tanh = tanh
""",
    "show(*[step(0.5, 0.25) for _ in range(5)], *[w.data for w in weights], *[w.grad for w in weights])",
    """
class Node(Node):
    def tanh(self):
        s = 1.0 / (1.0 + math.exp(-self.data))
        return Node(s if self.data < 2.0 else 0.5, (self,), (s * (1.0 - s),))
weights = [Node(w.data) for w in weights]
""",
    "show(*[step(0.5, 0.25) for _ in range(5)], *[w.data for w in weights])",
    # The cell of the step itself, edited.
    """
@mgjit.compile
def step(x, y):
    out = Node(x)
    for w in weights:
        out = (out * w).tanh()
    for w in weights:
        w.grad = 0.0
    out.backward()
    for w in weights:
        w.data -= lr * w.grad * y
    return max(out.data, 0.1)
""",
    "show(*[step(0.5, 0.25) for _ in range(5)], *[w.data for w in weights])",
    """
from mgjit import nn
model = nn.MLP(2, [3, 1])
@mgjit.compile
def train(a, b, lr):
    loss = (model([a, b]) - 1.0) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= lr * p.grad
    return loss
show(*[train(0.5, -0.25, 0.1) for _ in range(4)], *train.loop([0.1, 0.2], [0.3, 0.4], 0.1))
""",
    "print('traces', step.stats.calls, train.stats.calls)",
]


def run(cells: list[str], where: Path, **environment: str) -> list[Any]:
    """What each cell shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebooks.run(notebook, where, **environment)
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]


def test_01_as_plain(tmp_path: Path) -> None:
    """Bit for bit, in cells that are run in order, run again, edited and added."""
    plain = run(CELLS[:-1], tmp_path, MGJIT_DISABLE="1")
    compiled = run(CELLS, tmp_path)
    assert len([cell for cell in plain if "0x" in cell]) == 6
    assert compiled[:-1] == plain
    assert compiled[-1] == "traces 5 6\n"


def test_02_errors_name_the_cell(tmp_path: Path) -> None:
    """What cannot be compiled is reported with the line of the cell."""
    cells = [
        "import mgjit",
        "@mgjit.compile\ndef step(x):\n    return len(f'{x}')",
        "try:\n    step(4.0)\nexcept mgjit.errors.TraceError as error:\n    print(error)",
    ]
    assert ":3: " in run(cells, tmp_path)[-1]
