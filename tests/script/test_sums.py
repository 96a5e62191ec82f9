"""Which updates of variables only add something up."""

from __future__ import annotations

import ast

import pytest

from mgjit.script.find import candidates, is_update, knowledge_of
from mgjit.script.sums import sums

SUM = """
def scan(gate, moved):
    y = 0.0
    for c, x in zip(gate, moved):
        y = y + c * x
    return y
"""
AFRESH = """
for row in rows:
    loss = 0.0
    for p, t in row:
        loss -= t * log(p)
    print(loss)
"""
DESCENT = """
w = 0.0
for x, t in data:
    error = w * x - t
    w = w - 0.1 * error * x
"""
BY_A_FUNCTION = """
def error_of(x):
    return w * x
w = 0.0
for x in data:
    w = w - 0.1 * error_of(x)
"""
STEP = """
def updated(w, g):
    w = w - 0.1 * g
    return w
"""
ELSEWHERE = """
def scale(norm):
    total = 1.0
    total = total - 0.5 * norm
    return total
"""
TEST = """
x = 1.0
while x > 0.1:
    x -= 0.1 * rate
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [(SUM, 1), (AFRESH, 1), (DESCENT, 0), (BY_A_FUNCTION, 0), (STEP, 0), (ELSEWHERE, 1), (TEST, 0)],
    ids=["a sum", "afresh in each iteration", "descent", "read by a function", "a parameter", "a local", "a test"],
)
def test_sums(text: str, number: int) -> None:
    assert len(sums(ast.parse(text), is_update)) == number


def test_a_loop_that_calls_a_function_with_a_sum_does_not_train() -> None:
    tree = ast.parse(SUM + "for row in rows:\n    out = scan(gate, [v * 2 for v in row])\n")
    known = knowledge_of(tree)
    assert not known.trains
    assert not candidates(tree, known)
