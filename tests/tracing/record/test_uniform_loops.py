"""Which loops do the same to each of many objects, as far as their text tells."""

from __future__ import annotations

import ast

import pytest

from mgjit.tracing.record.uniform_loops import Use, use_of


def found(text: str) -> tuple[str, Use, list[str]] | None:
    """How the names of a loop are used."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.For)
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}

    def computes(function: ast.expr) -> bool:
        return isinstance(function, ast.Name) and function.id == "sqrt"

    use = use_of(node, names, lambda name: name in ("enumerate", "range", "zip"), computes)
    return None if use is None else (use[0], use[2], use[3])


def test_attributes_of_an_object() -> None:
    assert found("for p in ps: p.data -= rate * p.grad") == (
        "each",
        Use(("object",), ((0, "data", True, True), (0, "grad", True, False)), (), (0,), ()),
        ["rate"],
    )


def test_elements_that_belong_to_an_object() -> None:
    assert found("for i, p in enumerate(ps): m[i] = b.one * m[i] + p.grad") == (
        "enumerate",
        Use(("index", "object"), ((1, "grad", True, False),), ((1, True, True),), (), ((0, ("one",)),)),
        ["b", "m"],
    )


def test_numbers_and_functions() -> None:
    assert found("for x, p in zip(xs, ps): p.data = sqrt(x)") == (
        "zip",
        Use(("number", "object"), ((1, "data", False, True),), (), (), ()),
        [],
    )


@pytest.mark.parametrize(
    "text",
    [
        "for p in ps: total = total + p.data",
        "for p in ps: total += p.data; p.data = 1.0",
        "for p in ps: p.data = x; x = p.grad",
        "for p in ps: show(p)",
        "for p in ps: p.data = show(p.data)",
        "for p in ps: p.data = p.inner.data",
        "for p in ps: p.step()",
        "for p in ps: seen[p.name] = p.data",
        "for p in ps: p.data = xs[0]",
        "for i, p in enumerate(ps): m[i + 1] = p.data",
        "for i, p in enumerate(ps): p.data = i",
        "for i, p in enumerate(ps, 1): m[i] = p.data",
        "for i in range(2, 9): m[i] = m[i] * 2.0",
        "for p in ps:\n    if p.grad: p.data = 1.0",
        "for p in ps:\n    p.data = 1.0\n    break",
        "for p in ps: p = p.data",
        "for p in ps: p.data, p.grad = p.grad, p.data",
        "for p in ps: p.data = q.data = 1.0",
        "for p.x in ps: p.data = 1.0",
        "for (a, b), p in zip(xs, ps): p.data = a",
        "for p in ps: p.data = 'text'",
        "for p in ps: p.data = [p.grad]",
        "for p in ps: pass",
    ],
)
def test_other_loops_are_left_as_they_are(text: str) -> None:
    assert found(text) is None
