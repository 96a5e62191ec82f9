"""Which part of a loop becomes a step, and what goes in and comes out."""

from __future__ import annotations

import ast

import pytest

from mgjit.script.find import candidates, knowledge_of
from mgjit.script.interface import Outline, Refusal
from mgjit.script.outline import outlined


def outlines(text: str) -> list[Outline]:
    """The steps in all loops of a module."""
    tree = ast.parse(text)
    known = knowledge_of(tree)
    return [outline for candidate in candidates(tree, known) for outline in outlined(candidate, known)]


def only(text: str) -> Outline:
    """The only step."""
    (found,) = outlines(text)
    return found


def lines(outline: Outline) -> list[int]:
    """The lines in which its statements begin."""
    return [statement.lineno for statement in outline.statements]


def test_what_is_printed_between_forward_and_backward_comes_after_the_step() -> None:
    found = only(
        "for step in range(9):\n    loss = f(step)\n    print(step, loss.data)\n    loss.backward()\n    update()\n"
    )
    assert lines(found) == [2, 4]
    assert [one.lineno for one in found.moved] == [3]
    assert (found.arguments, found.results) == (["step"], ["loss"])


def test_a_print_of_what_the_step_changes_divides_it() -> None:
    with pytest.raises(Refusal, match="from before the step"):
        only("for step in range(9):\n    loss = f(w)\n    print(w)\n    loss.backward()\n    w -= 0.1 * g\n")


def test_preparation_stays_outside() -> None:
    found = only(
        "for step in range(9):\n"
        "    name = names[step % len(names)]\n"
        "    tokens = [0] + [letters.index(c) for c in name]\n"
        "    loss = f(tokens)\n"
        "    loss.backward()\n"
    )
    assert lines(found) == [4, 5]
    assert (found.arguments, found.results) == (["tokens"], [])


def test_where_a_text_begins_again_is_decided_in_front_of_the_step() -> None:
    """What is behind the step may move the position that chooses what the next iteration works on."""
    found = only(
        "for step in range(9):\n"
        "    if place + 8 >= len(text):\n"
        "        hidden = [0.0] * size\n"
        "        place = 0\n"
        "    tokens = [letters.index(c) for c in text[place : place + 8]]\n"
        "    loss, hidden = f(tokens, hidden)\n"
        "    loss.backward()\n"
        "    place += 8\n"
    )
    assert lines(found) == [6, 7]
    assert sorted(found.arguments) == ["hidden", "tokens"]


def test_what_a_step_adds_up_begins_in_it() -> None:
    found = only("for step in range(9):\n    total = 0\n    total += f(step)\n    total.backward()\n")
    assert lines(found) == [2, 3, 4]


def test_bits_of_ints_are_looked_at_in_front_of_the_step() -> None:
    found = only(
        "def digits(n):\n    return [(n >> k) & 1 for k in range(8)]\n"
        "for step in range(9):\n"
        "    n = random.randrange(256)\n"
        "    bits = digits(n)\n"
        "    low = n & 1\n"
        "    loss = f(bits, low)\n"
        "    loss.backward()\n"
    )
    assert lines(found) == [7, 8]
    assert (found.arguments, found.results) == (["bits", "low"], [])


def test_a_list_that_is_made_anew_behind_an_update_belongs_to_the_step() -> None:
    found = only(
        "for batch in data:\n"
        "    g = gradient(batch)\n"
        "    v[0] -= 0.1 * g[0]\n"
        "    w = [a + b for a, b in zip(w, v)]\n"
        "    losses.append(w[0])\n"
    )
    assert lines(found)[-1] == 4
    assert found.results == ["w"]


def test_a_list_that_is_filled_is_no_preparation() -> None:
    found = only(
        "for x in data:\n    losses = []\n    losses.append(f(x))\n    loss = sum(losses)\n    loss.backward()\n"
    )
    assert lines(found) == [2, 3, 4, 5]


def test_breaks_and_appends_after_the_step_stay_in_python() -> None:
    found = only(
        "def train(model, data):\n"
        "    history = []\n"
        "    for x in data:\n"
        "        loss = model(x)\n"
        "        loss.backward()\n"
        "        history.append(loss.data)\n"
        "        if loss.data < 1:\n"
        "            break\n"
        "    return history\n"
    )
    assert lines(found) == [4, 5]
    assert (found.arguments, found.results) == (["model", "x"], ["loss"])
    assert found.numbers_only == [True]


def test_the_object_of_a_result_is_noticed() -> None:
    found = only("for x in zip(data):\n    loss = f(x)\n    loss.backward()\ndraw(loss)\n")
    assert found.numbers_only == [False]


def test_names_of_functions_are_not_those_of_the_module() -> None:
    text = "def f(x):\n    loss = Node(x)\n    return loss\n"
    text += "for x in data:\n    loss = f(x)\n    loss.backward()\n    print(loss.data)\n"
    assert only(text).numbers_only == [True]


def test_names_that_functions_read_stay_variables_of_the_module() -> None:
    found = only(
        "\n\n"
        "def forward(x):\n"
        "    return x * scale\n"
        "for x in data:\n"
        "    scale = g(x)\n"
        "    loss = forward(x)\n"
        "    loss.backward()\n"
    )
    assert (found.shared, found.results) == (["scale"], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for x in data:\n    loss = f(x, y)\n    loss.backward()\n    if x:\n        y = x\n", "y may be unbound"),
        ("for x in data:\n    loss = f(x, locals())\n    loss.backward()\n", "locals"),
        (
            "class T:\n    def train(self):\n        for x in self.data:\n            loss = self.__f(x)\n"
            "            loss.backward()\n",
            "two underscores",
        ),
        (
            "def train():\n    def f():\n        return x * 2\n    for y in data:\n        loss = f() - g()\n"
            "        x = loss\n        loss.backward()\n",
            "functions inside of train read x",
        ),
    ],
)  # fmt: skip
def test_refusal(text: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        outlines(text)


def test_loops_without_training_are_no_candidates() -> None:
    assert not outlines("for word in words:\n    counts[word] = counts.get(word, 0) + 1\n")
    assert not outlines("for p in params:\n    p.data -= rate * p.grad\n")


def test_a_loop_that_goes_through_loops_that_train_is_in_reserve() -> None:
    text = (
        "for epoch in range(9):\n    for x in data:\n        loss = f(x)\n        loss.backward()\n    print(epoch)\n"
    )
    tree = ast.parse(text)
    found = candidates(tree, knowledge_of(tree))
    assert [(one.loop.lineno, one.in_reserve) for one in found] == [(1, True), (2, False)]
    assert [lines(one) for one in outlines(text)] == [[2], [3, 4]]


def test_no_loop_in_reserve_beside_one_that_is_named() -> None:
    tree = ast.parse("for epoch in range(9):\n    for x in data:\n        loss = f(x)\n        loss.backward()\n")
    assert [one.loop.lineno for one in candidates(tree, knowledge_of(tree), [2])] == [2]


def test_containers_of_empty_ones_are_made_in_the_step_that_fills_them() -> None:
    """Unless something else has to be chosen after them: that would be part of the step, too."""
    filled = "    caches = [([], []) for _ in layers]\n"
    text = f"for x in data:\n    tokens = x[:4]\n{filled}    loss = f(tokens, caches)\n    loss.backward()\n"
    assert [outline.statements[0].lineno for outline in outlines(text)] == [3]
    text = f"for x in data:\n{filled}    tokens = x[:4]\n    loss = f(tokens, caches)\n    loss.backward()\n"
    assert [outline.statements[0].lineno for outline in outlines(text)] == [4]
