"""Which statements between a forward and a backward pass come after the step."""

from __future__ import annotations

import pytest

from mgjit.script.interface import Outline
from tests.script.test_outline import lines, only, outlines


def with_statement(text: str, before: str = "", rest: str = "    opt.step()\n") -> Outline:
    """The step of a loop with a statement between its passes."""
    body = f"    loss = f(x)\n{text}    loss.backward()\n{rest}"
    return only(f"{before}for x in data:\n{body}")


@pytest.mark.parametrize(
    "text",
    [
        "    print(loss.data)\n",
        "    losses.append(loss.data)\n",
        "    log['loss'].append(loss.data)\n",
        "    if loss.data < best:\n        best = loss.data\n",
        "    if k % 10 == 0:\n        with open('log', 'a') as file:\n            file.write(f'{loss.data}')\n",
    ],
)
def test_moves(text: str) -> None:
    found = with_statement(text, "k = 0\nbest = 1.0\nlosses = []\nlog = {'loss': []}\n")
    assert len(found.moved) == 1
    assert not found.stops


def test_an_attribute_moves_that_no_other_function_uses() -> None:
    text = (
        "class T:\n    def __init__(self):\n        self.log = []\n    def train(self):\n        for x in data:\n"
        "            loss = f(x)\n            self.log.append(loss.data)\n            loss.backward()\n"
    )
    assert len(only(text).moved) == 1
    used = text + "    def f(self):\n        return self.log\n"
    with pytest.raises(Exception, match="from before the step"):
        only(used)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("    losses.append(loss.data)\n", "losses = []\ndef step():\n    return losses\n"),
        ("    print(w.data)\n", ""),
        ("    p = params[0]\n    print(p.data)\n", ""),
        ("    save(loss)\n    write(loss)\n", ""),
    ],
)
def test_stays_where_functions_or_the_rest_of_the_step_may_change_it(text: str, before: str) -> None:
    with pytest.raises(Exception, match="from before the step"):
        with_statement(text, before + "def write(x):\n    print(x)\n")


@pytest.mark.parametrize(
    "text",
    [
        "    if loss.data > 100:\n        break\n",
        "    if not loss.data < 1e-3:\n        skipped += 1\n        continue\n",
        "    assert loss.data == loss.data, 'nan'\n",
    ],
)
def test_what_leaves_the_step_is_a_reason_to_stop(text: str) -> None:
    found = with_statement(text)
    assert found.stops == ["stop_0_of_mgjit"]
    assert "stop_0_of_mgjit" not in found.results


def test_after_the_backward_pass_it_is_cut_instead() -> None:
    text = "for x in data:\n    loss = f(x, w)\n    loss.backward()\n    norm = g(loss)\n"
    text += "    if norm > 1:\n        scale(norm)\n    w -= 0.1 * norm\n"
    assert [lines(outline) for outline in outlines(text)] == [[2, 3], [7]]
