"""The script of bench/microgpt.py, as a small one of the same form: run in processes in several ways, compared."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import pytest

from bench import microgpt
from bench.microgpt import Run

#: What the published script consists of, as far as it is rewritten.
SCRIPT = """
import random
random.seed(1)
docs = open("input.txt").read().split()
class Value:
    def __init__(self, data, children=(), local_grads=()):
        self.data, self.grad, self._children, self._local_grads = data, 0, children, local_grads
    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), (other.data, self.data))
    def backward(self):
        self.grad = 1
        for child, local_grad in zip(self._children, self._local_grads):
            child.grad += local_grad * self.grad
block_size, vocab_size, n_layer, temperature = 4, 3, 1, 0.0
params = [Value(random.gauss(0, 1)) for _ in range(3)]
m = [0.0] * len(params)
v = [0.0] * len(params)
def softmax(logits):
    return logits
def gpt(token_id, pos_id, keys, values):
    return [p * Value(float(pos_id + 1)) for p in params]
num_steps = 1000 # number of training steps
for step in range(num_steps):
    doc = docs[step % len(docs)]
    tokens = [0, 1, 2]
    n = min(block_size, len(tokens) - 1)
    loss = params[0] * params[1]
    loss.backward()
    for i, p in enumerate(params):
        m[i] = 0.9 * m[i] + p.grad
        p.data -= 0.1 * m[i] * (1 - step / num_steps)
        p.grad = 0
    print(f"step {step+1:4d} / {num_steps:4d} | loss {loss.data:.4f}")
temperature = 0.5 # in (0, 1]
uchars, BOS = ["a", "b"], 2
print("--- inference ---")
for sample_idx in range(2):
    keys, values = [[] for _ in range(n_layer)], [[] for _ in range(n_layer)]
    token_id = BOS
    sample = []
    for pos_id in range(2):
        logits = gpt(token_id, pos_id, keys, values)
        probs = softmax([l / temperature for l in logits])
        sample.append(uchars[token_id % 2])
    print("".join(sample), [p.data for p in probs])
""".replace("    def backward", "    def __truediv__(self, x):\n        return self * Value(1 / x)\n    def backward")


def made(*seconds: float, losses: str = "", rest: str = "same") -> Run:
    return Run(list(losses or "x" * len(seconds)), list(seconds), list(rest), 9.0, 8.0)


def test_all_variants_are_run_and_compared(tmp_path: Path) -> None:
    script, names = tmp_path / "script.py", tmp_path / "names.txt"
    script.write_text(SCRIPT)
    names.write_text("ab\nba\n")
    options = argparse.Namespace(script=script, names=names, steps=5, limit=120.0, pypy=None)
    plain, *others = (microgpt.run(way, options, tmp_path / "cache") for way in ("CPython", "cold", "decorated"))
    assert plain.rest[-1].startswith("state ")
    for found in others:
        assert len(plain.steps) == len(found.steps) == 5
        assert found.rest == plain.rest
        assert not found.differs(plain)
    assert plain.seconds == sorted(plain.seconds)
    assert plain.seconds[-1] <= plain.wall


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    script, names = tmp_path / "script.py", tmp_path / "names.txt"
    script.write_text(SCRIPT + "\nimport time\ntime.sleep(60)\n")
    names.write_text("ab\n")
    options = argparse.Namespace(script=script, names=names, steps=3, limit=1.0, pypy=None)
    found = microgpt.run("CPython", options, tmp_path / "cache")
    assert found.rest == []
    assert found.wall < 50.0


def test_a_run_that_was_ended_is_compared_as_far_as_it_has_come() -> None:
    assert not made(1.0, rest="", losses="a").differs(made(1.0, 2.0, losses="ab"))
    assert made(1.0, rest="", losses="b").differs(made(1.0, 2.0, losses="ab"))
    assert made(1.0, losses="a", rest="other").differs(made(1.0, losses="a"))


def test_the_ratio_of_steps_is_the_smallest_from_a_moment_on() -> None:
    first = made(*(float(k) for k in range(1, 21)))
    found = made(11.5, 11.6, 11.7, 11.8, 19.5)
    assert microgpt.least_ratio(found, first) == 0.0
    assert microgpt.least_ratio(found, first, 12.0) == 4 / 19
    assert math.isnan(microgpt.least_ratio(found, made(1.0, 2.0)))


def test_the_command_draws_a_picture_and_tells_whether_all_are_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microgpt, "PAUSE", 0.0)
    runs = {"CPython": made(1.0, 2.0), "cold": made(0.5, 0.6)}
    monkeypatch.setattr(microgpt, "run", lambda way, *_: runs[way])
    words = ["script.py", "names.txt", "--pypy", sys.executable, "--ways", "CPython", "cold"]
    assert microgpt.main([*words, "--picture", str(tmp_path / "curves.svg")]) == 0
    printed = capsys.readouterr().out
    assert "equal to CPython" in printed
    assert (tmp_path / "curves.svg").exists() == ("curves.svg" in printed)
    runs["cold"] = made(0.5, 0.6, rest="other")
    assert microgpt.main(words) == 1
    assert "DIFFERS" in capsys.readouterr().out
