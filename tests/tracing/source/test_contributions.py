"""source/contributions.py: functions that only add to gradients tell what they add, and others do not."""

from __future__ import annotations

import ast
import threading
from types import FunctionType
from typing import Any

import pytest

from mgjit.tracing.autograd import flow as flows
from mgjit.tracing.autograd.flow import Flow, NoFlow, observe
from mgjit.tracing.autograd.node_class import node_class
from mgjit.tracing.source.contributions import observers, observes, told
from mgjit.tracing.source.installed import with_captured_functions
from tests.tracing.autograd import nodes


def call(name: str, place: Any, *arguments: Any) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), place)


def told_form(body: str, arguments: str = "") -> str:
    function: Any = ast.parse(f"def _backward({arguments}):\n" + "".join(f"    {line}\n" for line in body.split("; ")))
    made: list[Any] = told(function.body[0], call)
    assert not made or ast.unparse(made[-1].test) == ast.unparse(made[0].targets[0]) == "__mgjit_contribute__"
    calls = [made[0].value, *made[-1].body] if made else []
    return "; ".join(map(ast.unparse, calls)).replace("__mgjit_contribute__", "contribute")


FORMS = {
    "a.g += o.g": "observes('g', o, a); contribute('*', o, (a,), (1.0,))",
    "a.g += o.g; b.g += o.g": "observes('g', o, a, b); contribute('**', o, (a, b), (1.0, 1.0))",
    "a.g += b.x * o.g; b.g += o.g * a.x": "observes('g', o, a, b); contribute('*r', o, (a, b), (b.x, a.x))",
    "a.g += o.g / b.x": "observes('g', o, a); contribute('/', o, (a,), (b.x,))",
    "a.g += (1 - t ** 2) * o.g": "observes('g', o, a); contribute('*', o, (a,), (1 - t ** 2,))",
    "a.g += (o.x > 0) * o.g": "observes('g', o, a); contribute('*', o, (a,), (o.x > 0,))",
    # What is computed comes after what has been added before.
    "a.g += o.g / b.x; b.g += -a.x * o.g": (
        "observes('g', o, a, b); contribute('/', o, (a,), (b.x,)); contribute('*', o, (b,), (-a.x,))"
    ),
}  # fmt: skip
OTHERS = [
    "a.g = o.g", "a.g -= o.g", "a.g *= o.g", "a[0] += o.g", "g += o.g", "a.g += 1.0", "a.g += a.h", "a.g += o.x * o.h",
    "a.g += o.g * o.g", "a.g += o.g * 2 * t", "a.g += o.g + b.g", "a.g += t / o.g", "a.g += f(t) * o.g",
    "a.g += t[0] * o.g", "a.g += (1 if t else 2) * o.g", "a.g += (0 < t < 1) * o.g", "a.g += (t := 2) * o.g",
    "a.g += (t is u) * o.g", "a.g += o.g; b.g += a.g", "a.g += o.g; b.h += o.h", "a.g += o.g; count[0] += 1",
    "a.b.g += o.g", "a.g += a.o.g", "pass", "return o.g", "a.g += o.g; return 1", "if t: a.g += o.g",
    "a.g += (yield) * o.g", "a.g += (lambda: 2) * o.g", "global a; a.g += o.g", "'text'; a.g += o.g",
]  # fmt: skip


@pytest.mark.parametrize("body", FORMS)
def test_01_what_is_told(body: str) -> None:
    assert told_form(body) == FORMS[body]


@pytest.mark.parametrize("body", OTHERS)
def test_02_other_functions(body: str) -> None:
    """Do more, or need the gradients as objects."""
    assert told_form(body) == ""


def test_03_functions_with_arguments() -> None:
    assert told_form("a.g += o.g", "o") == told_form("a.g += o.g", "*, o=1") == told_form("a.g += o.g", "*o") == ""


# ---- while a pass is observed -----------------------------------------------------------------------------


def rewritten(kind: Any, work: Any) -> Any:
    members = {id(member): member for base in kind.__mro__[:-1] for member in vars(base).values()}.values()
    return with_captured_functions([member for member in members if isinstance(member, FunctionType)], work)


class Counted(nodes.Closures):
    """Some closures compute, some only read."""

    def __truediv__(self, other: Any) -> Any:
        out = type(self)(self.data / other.data, (self, other))

        def _backward() -> None:
            self.grad += out.grad / other.data
            other.grad += (-out.data / other.data) * out.grad

        out._backward = _backward
        return out


def observed(kind: Any, root: Any) -> Flow:
    known = node_class(kind)
    assert known is not None
    return observe(root, [known], root.backward)


def edges(flow: Flow, things: list[Any]) -> list[Any]:
    """With things by number, and the types of factors."""
    number: dict[int, int] = {}
    for thing in things:
        number.setdefault(id(thing), len(number))
    return [(number[id(s.thing)], number[id(t.thing)], repr(factor), d) for s, t, factor, d in flow.edges]


def expression(kind: Any) -> list[Any]:
    """All nodes of a graph; the root is the last."""
    a, b, c = (kind(number) for number in (0.5, -1.25, 0.75))
    d = a * b
    e = d + c
    f = e.exp()
    g = (f * f).tanh()
    h = g / (e + e)
    return [a, b, c, d, e, f, f * 2, g, h, h + a]


def both(kind: Any, made: Any = expression) -> tuple[list[Any], list[Any]]:
    """The edges as functions tell them, and by symbols."""

    node_class(kind)  # which tries it out

    def as_told() -> list[Any]:
        things = made(kind)
        return edges(observed(kind, things[-1]), [*things, *nodes_of(things[-1])])

    first = rewritten(kind, as_told)
    return first, as_told()


def nodes_of(root: Any) -> list[Any]:
    found: list[Any] = []
    for operand in root._operands:
        found += [*nodes_of(operand), operand]
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contributions that are told."""
    found: list[str] = []
    contribute = flows._Observer.contribute

    def counted(self: Any, forms: str, *arguments: Any) -> None:
        found.append(forms)
        contribute(self, forms, *arguments)

    monkeypatch.setattr(flows._Observer, "contribute", counted)
    return found


def test_10_the_same_edges(calls: list[str]) -> None:
    first, second = both(Counted)
    assert first == second
    assert sorted(calls) == ["*", "*", "*", "**", "**", "**", "**", "**", "/"]


def test_11_the_same_gradients_without_an_observer() -> None:
    """Rewritten functions do what they did."""

    def gradients() -> list[float]:
        things = expression(Counted)
        things[-1].backward()
        return [thing.grad for thing in things]

    assert rewritten(Counted, gradients) == gradients()
    assert not observers


class Assigning(Counted):
    """Assigning a gradient does more."""

    def __setattr__(self, name: str, content: Any) -> None:
        super().__setattr__(name, content)


class Asking(Counted):
    """So does reading one."""

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


@pytest.mark.parametrize("kind", [Assigning, Asking])
def test_12_classes_that_are_asked(kind: Any, calls: list[str]) -> None:
    first, second = both(kind)
    assert first == second
    assert calls == []


def test_13_one_node_of_another_class(calls: list[str]) -> None:
    """Functions that reach it run as they stand."""

    def mixed(kind: Any) -> list[Any]:
        a, b = kind(0.5), Assigning(0.25)
        c = a * a
        return [a, b, c, c * b]

    known = [node_class(Counted), node_class(Assigning)]

    def as_told() -> list[Any]:
        things = mixed(Counted)
        return edges(observe(things[-1], known, things[-1].backward), things)  # type: ignore[arg-type]

    assert rewritten(Counted, as_told) == as_told()
    assert calls == ["**"]


def test_14_a_node_that_adds_to_itself(calls: list[str]) -> None:
    """Is refused, as by symbols."""

    def looped() -> None:
        a = Counted(0.5)
        out = a + 1.0
        out._backward.__closure__[1].cell_contents = out
        out._backward.__closure__[0].cell_contents = out
        out._backward.__closure__[2].cell_contents = out
        observed(Counted, out)

    for run in (looped, lambda: rewritten(Counted, looped)):
        with pytest.raises(NoFlow):
            run()
    assert calls == []


class Half(float):
    """A number that multiplies in its own way."""

    def __mul__(self, other: Any) -> Any:
        return other * (float(self) / 2)


def test_15_factors_that_multiply_in_their_own_way() -> None:
    first, second = both(Counted, lambda kind: [a := kind(Half(0.5)), b := kind(0.25), a * b])
    assert first == second
    assert any("0.25" in edge[2] for edge in first[1:])


def test_16_a_gradient_from_before(calls: list[str]) -> None:
    """What was read before a contribution is out of date after it."""

    class Keeping(Counted):
        def backward(self) -> None:
            self.grad = 1.0
            before = self._operands[0].grad
            self._backward()
            self._operands[0].grad = before + self.grad

    for run in (lambda work: work(), lambda work: rewritten(Keeping, work)):
        with pytest.raises(NoFlow, match="before something was added"):
            run(lambda: observed(Counted, Keeping(0.5) * 2.0))


def test_17_contributions_after_a_gradient_was_used() -> None:
    """Functions in a wrong order."""

    class Wrong(Counted):
        def backward(self) -> None:
            self.grad = 1.0
            self._operands[0]._backward()
            self._backward()

    for run in (lambda work: work(), lambda work: rewritten(Wrong, work)):
        with pytest.raises(NoFlow):
            run(lambda: observed(Counted, Wrong(0.5) * 2.0 * 3.0))


def test_18_exceptions_that_backward_catches() -> None:
    """What a function has added before one is added."""

    class Failing(Counted):
        def __truediv__(self, other: Any) -> Any:
            out = Failing(self.data, (self, other))

            def _backward() -> None:
                self.grad += out.grad / other.data
                other.grad += (1 // other.data) * out.grad

            out._backward = _backward
            return out

        def backward(self) -> None:
            self.grad = 1.0
            try:
                self._backward()
            except ZeroDivisionError:
                self._operands[1].grad += 3.0 * self.grad

    first, second = both(Failing, lambda kind: [a := kind(0.5), b := kind(0.0), a / b])
    assert first == second == [(2, 0, "0.0", True), (2, 1, "3.0", False)]


def test_19_other_threads() -> None:
    """Contribute nothing to a pass that is observed in this one."""
    known = node_class(Counted)
    assert known is not None
    a = Counted(0.5)
    root = a * 3.0
    answers: list[bool] = []

    def run() -> None:
        thread = threading.Thread(target=lambda: answers.append(bool(observes("grad", root, a))))
        thread.start()
        thread.join()
        answers.append(bool(observes("grad", root, a)))
        root.backward()

    observe(root, [known], run)
    assert answers == [False, True]
    assert not observes("grad", root, a)


# ---- loops over links, and single statements --------------------------------------------------------------


class Linked(Counted):
    """Nodes that hold pairs of an operand and the derivative by it."""

    def __init__(self, data: Any, operands: Any = ()) -> None:
        super().__init__(data, operands)
        self.links: Any = ()

    def __mul__(self, other: Any) -> Any:
        out = super().__mul__(other)
        out.links = [(out._operands[0], out._operands[1].data), (out._operands[1], self.data)]
        return out

    def __add__(self, other: Any) -> Any:
        out = super().__add__(other)
        out.links = tuple((operand, 1.0) for operand in out._operands)
        return out

    def tape(self) -> list[Any]:
        return [*dict.fromkeys([*nodes_of(self), self])]

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(self.tape()):
            for operand, factor in node.links:
                operand.grad += factor * node.grad


class One(Linked):
    """The factor comes first, and a list is a link."""

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(self.tape()):
            for factor, operand in [[link[1], link[0]] for link in node.links]:
                operand.grad += node.grad * factor


class Single(Linked):
    """Each contribution by itself, as the loop does more."""

    def backward(self) -> None:
        self.grad, self.count = 1.0, 0
        for node in reversed(self.tape()):
            for operand, factor in node.links:
                operand.grad += factor * node.grad
                self.count += 1


class Read(Linked):
    """The last factor is read behind the loop."""

    last = 0.0

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(self.tape()):
            for operand, factor in node.links:
                operand.grad += factor * node.grad
            if node.links:
                self.last = factor


class Once(Linked):
    """What gives the links can be gone through once."""

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(self.tape()):
            for operand, factor in iter(node.links):
                operand.grad += factor * node.grad


def linked(kind: Any) -> list[Any]:
    a, b, c = (kind(number) for number in (0.5, -1.25, 0.75))
    d = a * b
    e = d + c
    return [a, b, c, d, e, e * e, e * e + d]


@pytest.mark.parametrize(
    ("kind", "told_by"), [(Linked, {"**"}), (One, {"rr"}), (Single, {"*"}), (Read, {"*"}), (Once, {"*"})]
)
def test_30_links(kind: Any, told_by: set[str], calls: list[str]) -> None:
    """The same edges, whether they are told or not, and what else the loop does is done."""
    first, second = both(kind, linked)
    assert first == second
    assert set(calls) == told_by
    things = linked(kind)
    rewritten(kind, things[-1].backward)
    expected = linked(kind)
    expected[-1].backward()
    assert [(t.grad, getattr(t, "count", 0), getattr(t, "last", 0)) for t in things] == [
        (t.grad, getattr(t, "count", 0), getattr(t, "last", 0)) for t in expected
    ]
