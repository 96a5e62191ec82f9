"""Which loops train."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mgjit.script.find import is_carried
from mgjit.script.rewrite import rewritten
from tests.script.running import explained
from tests.script.test_run import compiled_calls, written

CARRIED = [
    "theta = gradient_step(theta, g, -rate)",
    "w = 0.1 * dw + w",
    "p = [a - 0.1 * b for a, b in zip(p, g)]",
    "self.w = [(1 - eta) * w + eta * x for w, x in zip(self.w, xs)]",
    "net = [[step(n, g, -rate) for n, g in zip(layer, gs)] for layer, gs in zip(net, grads)]",
]
OTHERS = ["x = layer(x)", "x = max(x, y)", "x = x + 1", "theta = step(w, g)", "x, y = y, x", "w = [a for a in w]",
          "w = [[shown(a) for a in row] for row in w]", "w = [max(a, b) for a, b in zip(w, v)]"]  # fmt: skip


@pytest.mark.parametrize("text", CARRIED + OTHERS)
def test_what_computes_a_variable_from_itself(text: str) -> None:
    assert is_carried(ast.parse(text).body[0]) == (text in CARRIED)


FITTED = """
def added(v, w):
    return [a + b for a, b in zip(v, w)]
def moved(v, gradient, size):
    return added(v, [size * a for a in gradient])
points = [(0.1 * k, 0.3 * k - 0.7) for k in range(20)]
theta = [0.5, 0.25]
for number in range(40):
    gradient = [0.0, 0.0]
    for x, y in points:
        error = theta[0] * x + theta[1] - y
        gradient = [gradient[0] + error * x, gradient[1] + error]
    theta = moved(theta, gradient, -0.01)
    if number % 10 == 0:
        print(number, theta)
print(theta)
"""


def test_an_update_by_a_function_is_a_step(tmp_path: Path) -> None:
    assert compiled_calls(explained(tmp_path, written(tmp_path, FITTED))) > 30


MIXTURE = """
def weights(data, means):
    return [[1.0 / (1e-3 + (x - m) ** 2) for m in means] for x in data]
def update(data, rows):
    sums = [sum(row[k] for row in rows) for k in range(2)]
    return [sum(row[k] * x for row, x in zip(rows, data)) / sums[k] for k in range(2)], sums
data = [0.1 * k for k in range(12)] + [3.0 + 0.1 * k for k in range(9)]
means, sums = [0.5, 1.0], [1.0, 1.0]
for number in range(60):
    rows = weights(data, means)
    means, sums = update(data, rows)
print(means, sums)
"""


def test_what_the_next_iteration_begins_with_is_a_step(tmp_path: Path) -> None:
    assert compiled_calls(explained(tmp_path, written(tmp_path, MIXTURE))) > 30


@pytest.mark.parametrize("line", ["for number in range(40):", "    for x, y in points:"])
def test_a_comment_leaves_a_loop_alone(line: str) -> None:
    assert rewritten(FITTED, "<test>") is not None
    assert rewritten(FITTED.replace(line, f"{line}  # mgjit: off"), "<test>") is None


def test_a_comment_leaves_a_function_alone() -> None:
    body = "".join(f"    {line}\n" for line in FITTED.splitlines())
    assert rewritten(f"def main():\n{body}\nmain()\n", "<test>") is not None
    assert rewritten(f"def main():  # mgjit: off\n{body}\nmain()\n", "<test>") is None


LAYERS = """
class Layer:
    def __init__(self, k):
        self.w, self.g = [0.1 * k, 0.3, -0.2], [0.0, 0.0, 0.0]
    def forward(self, x):
        self.x = [1.0 * v for v in x]
        return [w * v for w, v in zip(self.w, x)]
    def backward(self, gradient):
        self.g = [g * v for g, v in zip(gradient, self.x)]
        return [g * w for g, w in zip(gradient, self.w)]
    def move(self, rate):
        for j in range(3):
            self.w[j] -= rate * self.g[j]
layers = [Layer(2), Layer(5)]
for number in range(40):
    x = y = [1.0, 0.5 + 0.01 * number, -1.0]
    for layer in layers:
        y = layer.forward(y)
    gradient = [a - b for a, b in zip(y, [0.5, 1.0, 0.0])]
    for layer in reversed(layers):
        gradient = layer.backward(gradient)
    for layer in layers:
        layer.move(0.05)
    print(y)
"""


def test_a_backward_of_layers_by_hand_is_no_walk_through_a_graph(tmp_path: Path) -> None:
    assert "from before the step" not in explained(tmp_path, written(tmp_path, LAYERS))
