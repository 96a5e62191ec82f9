"""Which expressions evaluate a model for numbers alone."""

from __future__ import annotations

import ast

import pytest

from mgjit.script.evaluations import evaluations
from mgjit.script.find import knowledge_of
from mgjit.script.rewrite import rewritten

TRAINING = "def train(x):\n    f(x).backward()\n"


def found(text: str) -> list[tuple[str, list[str]]]:
    """The expressions, and their arguments."""
    tree = ast.parse(TRAINING + text)
    return [(ast.unparse(one.node), one.arguments) for one in evaluations(tree, knowledge_of(tree), [])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for x in xs:\n    print([p.data for p in softmax(model(x))])\n", "[p.data for p in softmax(model(x))]"),
        ("def accuracy(x):\n    return sum(model(x)[0].data > 0 for x in xs)\n", "model(x)[0].data"),
        ("for x in xs:\n    out = model(x)\n    total += out.data\n", "model(x)"),
    ],
)
def test_numbers_of_what_is_called(text: str, expected: str) -> None:
    assert found(text) == [(expected, ["x"])]


@pytest.mark.parametrize(
    "text",
    [
        "print(model(1).data)\n",  # once
        "for x in xs:\n    y = x.data\n    z = len(x).data\n",  # nothing that takes long
        "for x in xs:\n    out = model(x)\n    keep(out, out.data)\n",  # the node itself is used
        "for x in xs:\n    print(open(x).data, (k := model(x)).data)\n",  # noticed; assigns
        "class V:\n    def backward(self):\n        pass\n    def f(self, x):\n        return g(x).data\n",
        "class V:\n    def f(self, x):\n        return g(x).__data + g(x, self.__y).data\n",
        "def f(a):\n    for x in xs:\n        if x:\n            b = x\n        c = [p.data / b for p in model(x)]\n",
    ],
)
def test_left_alone(text: str) -> None:
    assert not found(text)


def test_what_steps_call_is_recorded_with_them() -> None:
    text = "def f(x):\n    return [p.data for p in g(x)]\nfor x in xs:\n    f(x).backward()\n    w -= 0.1 * x\n"
    made = rewritten(text, "<test>")
    assert made is not None
    assert [source.is_value for source in made.steps] == [False]


def test_the_expression_keeps_its_line_and_its_value() -> None:
    text = TRAINING + "def f(x):\n    return [\n        p.data\n        for p in g(x)\n    ]\n"
    made = rewritten(text, "<test>")
    assert made is not None
    (source,) = made.steps
    assert (source.line, source.name) == (4, "value_at_line_4")

    class Section:
        ready = on = True

        def __init__(self) -> None:
            self.results: list[object] = [(("compiled",),), ()]

        def called(self, x: object) -> object:
            assert x == 5
            return self.results.pop(0)

        def noted(self, value: object) -> object:
            return value

        def left(self) -> None:
            """Nothing to do."""

    namespace: dict[str, object] = {"g": lambda x: 1 / 0}
    exec(made.with_sections([Section()]), namespace)  # noqa: S102 - the code of the test
    function = namespace["f"]
    assert callable(function)
    assert function(5) == "compiled"
    with pytest.raises(ZeroDivisionError) as raised:
        function(5)
    assert [entry.lineno + 1 for entry in raised.traceback][1] == 6
