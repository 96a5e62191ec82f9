"""Results that are used with their graph: plain Python makes the iterations after which that happens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.script.running import SCRIPTS, explained
from tests.script.test_outline import only
from tests.script.test_run import compiled_calls, written

BODY = "        loss = f(x)\n        loss.backward()\n"


@pytest.mark.parametrize(
    ("text", "stops", "without_last"),
    [
        ("    for x in data:\nBODY        if loss.data < 1:\n            return loss\n", 1, False),
        ("    for x in range(9):\nBODY    return loss\n", 0, True),
        ("    for x in data:\nBODY        if x > 3:\n            break\n    return loss\n", 1, True),
        ("    while True:\nBODY        if loss.data < 1:\n            break\n    return loss\n", 1, False),
    ],
)
def test_iterations_for_python(text: str, stops: int, without_last: bool) -> None:
    found = only("def train(data, x):\n" + text.replace("BODY", BODY))
    assert (len(found.stops), found.without_last) == (stops, without_last)
    assert found.leaving >= 0


@pytest.mark.parametrize(
    "text",
    [
        "    while x:\nBODY    return loss\n",  # which iteration is the last one?
        "    for x in zip(data, data):\nBODY    return loss\n",
        "    for x in data:\nBODY        keep(loss)\n",  # each
        "    for x in data:\n        if x:\n            break\nBODY    return loss\n",  # the last but one
        "    for x in data:\nBODY        x = 2\n        if x:\n            keep(loss)\n",  # another x
        "    try:\n        for x in data:\n    BODY    finally:\n        keep(loss)\n",
    ],
)
def test_objects_that_are_always_used(text: str) -> None:
    text = text.replace("    BODY", "".join(f"    {line}\n" for line in BODY.splitlines())).replace("BODY", BODY)
    found = only("def train(data, x):\n" + text)
    assert found.leaving < 0
    assert not all(found.numbers_only)


SCRIPT = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from engine import MLP, SGD, digest
data = [([i / 6, (5 - i) / 6], i % 3 / 3) for i in range(6)]
def made():
    m = MLP([2, 5, 1], 7)
    return m, SGD(m.parameters(), 0.05)
def until(limit):
    m, o = made()
    for step in range(30):
        loss = sum((m(x)[0] - y) ** 2 for x, y in data)
        o.zero_grad(); loss.backward(); o.step()
        if loss.data < limit:
            return m, loss
        if step == 20:
            break
    return m, loss
def keeping(limit):
    m, o = made()
    kept = []
    for batch in [data[:3], data[3:]] * 10:
        loss = sum((m(x)[0] - y) ** 2 for x, y in batch)
        o.zero_grad(); loss.backward(); o.step()
        if loss.data > limit:
            kept.append(loss)
    for one in kept:
        one.backward()
    return m, loss
for m, loss in (until(0.2), until(0.0), keeping(0.2), keeping(0.24)):
    print(loss, digest(m.parameters()))
    loss.backward()
    print([p.grad for p in m.parameters()])
"""


@pytest.mark.skipif(shutil.which("tcc") is None and shutil.which("gcc") is None, reason="needs a compiler")
def test_graphs_of_results(tmp_path: Path) -> None:
    assert compiled_calls(explained(tmp_path, written(tmp_path, SCRIPT))) > 30


NUMBERS = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from engine import MLP, SGD
data = [([i / 6, (5 - i) / 6], i % 2) for i in range(6)]
m = MLP([2, 5, 1], 7)
o = SGD(m.parameters(), 0.05)
def f():
    scores = [m(x)[0] for x, y in data]
    total = sum((s - y) ** 2 for s, (x, y) in zip(scores, data))
    return total, sum((s.data > 0.5) == (y > 0.5) for s, (x, y) in zip(scores, data)) / len(data)
for step in range(8):
    loss, accuracy = f()
    o.zero_grad(); loss.backward(); o.step()
    if step % 1 == 0:
        print(step, loss.data, f"{{accuracy * 100}} %")
"""


@pytest.mark.skipif(shutil.which("tcc") is None and shutil.which("gcc") is None, reason="needs a compiler")
def test_numbers_have_no_graph_to_leave(tmp_path: Path) -> None:
    """`accuracy * 100` might make a node of a node, for all that the syntax tells; a trace shows that it does not."""
    text = explained(tmp_path, written(tmp_path, NUMBERS))
    assert compiled_calls(text) == 7
    assert "undone" not in text


LEFT = """
class Node:
    def __init__(self, data, operands=()):
        self.data, self.grad, self.operands = data, 0.0, operands

    def __add__(self, other):
        return Node(self.data + other.data, (self, other))

    def __mul__(self, other):
        return Node(self.data * other.data, (self, other))

    def backward(self):
        self.grad = 1.0
        pending = [self]
        while pending:
            node = pending.pop()
            pending += node.operands


class Model:
    def __init__(self):
        self.weight, self.state = Node(1.0), []

    def __call__(self, x):
        self.state = [Node(x)]
        for _ in range(300):
            self.state = [self.weight * h for h in self.state]
        return self.state[0]


model = Model()
for step in range(40):
    loss = model(0.5 + step)
    loss.backward()
    model.weight.data -= 1e-3 * loss.grad
print(model.weight.data, loss.data)
"""


def test_a_graph_that_is_left_in_objects_is_not_traced(tmp_path: Path) -> None:
    """That a step leaves it is seen at what the iteration before has left, before the whole of it is parameters."""
    told = explained(tmp_path, written(tmp_path, LEFT))
    assert "0 compiled calls" in told
    assert "left nodes with their graph, which compiled calls do not: Model.state" in told
