"""Random programs of plain gradient descent: sparse inputs, relu, and updates by outer products.

The rows of such an update whose factor is zero change nothing, and may be left out (codegen/idle.py).  What is varied
here is what decides whether they may: zeros of both signs, factors that are not finite, rates of every kind, weights
that are -0.0, where gradients are zeroed and how the update is written.
"""

from __future__ import annotations

from collections.abc import Callable

from .models import ModelWriter

_INPUTS, _UNITS, _OUTPUTS = (16, 17, 20, 24, 33), (9, 12, 8, 4, 16), (2, 4, 3, 6, 8, 1)
_RATES = ("0.1", "0.05", "0.01", "1", "-0.1", "0.0", "-0.0", "5e-324", 'float("inf")', 'float("nan")', "1e308")
_SPECIAL = ('float("inf")', 'float("-inf")', 'float("nan")', "5e-324", "-5e-324", "1e308")


class DescentWriter(ModelWriter):
    """Writes one program of one step."""

    others = (0,)
    batches = (0, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    host = ()

    def __init__(self, choose: Callable[[int], int]) -> None:
        super().__init__(choose)
        self.is_mlp = self.chance(90)

    def widths(self) -> list[int]:
        hidden = [self.pick((*_UNITS, *_UNITS, *_INPUTS)) for _ in range(self.pick((1, 1, 1, 0, 2)))]
        return [self.pick(_INPUTS), *hidden, self.pick(_OUTPUTS)]

    def model(self) -> list[str]:
        lines = super().model()
        if self.chance(40):
            number = self.pick(("-0.0", "-0.0", "0.0", "1e-310", *(_SPECIAL if self.special else ())))
            lines.append(f"    for p in PS[::{self.between(2, 7)}]:")
            lines.append(f"        p.data = {number}")
        return lines

    def call(self, n: int, with_values: bool) -> str:
        xs = [self.sparse(n) for _ in range(self.batch or 1)]
        x = f"[{', '.join(xs)}]" if self.batch else xs[0]
        if with_values:
            x = f"[mgjit.Value(d) for d in {x}]"
        rate = self.data.choice(_RATES[:3] if self.data.random() < 0.7 else _RATES)
        return f"({rate}, {x}, {self.floats(self.classes)}, {self.data.randrange(self.classes)})"

    def sparse(self, n: int) -> str:
        """A list of numbers, of which most are zero."""
        share = self.data.choice((0.3, 0.6, 0.9, 1.0))
        zeros = self.data.choice((("0.0",), ("0.0", "-0.0")))
        made = [self.data.choice(zeros) if self.data.random() < share else self.float_() for _ in range(n)]
        if self.special and self.data.random() < 0.3:
            made[self.data.randrange(n)] = self.data.choice(_SPECIAL)
        return f"[{', '.join(made)}]"

    def forward(self, x: str, scope_it: bool = True) -> str:
        if not self.is_mlp or self.chance(10):
            return super().forward(x, scope_it)
        name = self.fresh("o")
        self.line(f"{name} = {'model(x)' if self.classes > 1 else '[model(x)]'}")
        return name

    def training_step(self) -> list[str]:
        self.lines = []
        target = self.pick(["y", f"mgjit.one_hot(label, {self.classes})"])
        zeroed = self.pick(
            (0, 0, 0, 0, 0, 0, 2, 2, 1, 3)
        )  # before the backward pass, after the update, both, or nowhere
        if not self.batch:
            self.sample("x", target, zeroed)
        elif self.chance(80):  # one update a sample
            with self.block("for x in xs:"):
                self.sample("x", target, zeroed)
        else:
            self.line("total = 0.0")
            with self.block("for x in xs:"):
                outputs = self.forward("x", scope_it=False)
                self.line(f"total = total + {self.loss_of(outputs, target)}")
            self.line("loss = total * 0.5")
            self.learned(zeroed)
        self.line(f"return {self.pick(['loss', 'loss', '[loss, PS[0].grad]', '{1: loss, 2: PS[-1].data}'])}")
        return self.lines

    def sample(self, x: str, target: str, zeroed: int) -> None:
        """The loss of a sample, and an update."""
        outputs = self.forward(x, scope_it=False)
        self.line(f"loss = {self.loss_of(outputs, target)}")
        if self.chance(10):
            self.line(f"loss = loss + {self.regularised()}")
        self.learned(zeroed)

    def learned(self, zeroed: int) -> None:
        """Gradients, and plain descent."""
        if zeroed in (0, 2):
            self.cleared()
        self.line("loss.backward()")
        rate = self.pick(["lr", "lr", "lr", "lr", "0.1", "(lr * 0.5)"])
        forms = [f"p.data -= {rate} * p.grad", f"p.data -= {rate} * p.grad", f"p.data = p.data - {rate} * p.grad",
                 f"p.data -= p.grad * {rate}", f"p.data += -{rate} * p.grad", "p.data = p.data + p.grad * lr",
                 "p.data += -0.1 * p.grad", f"p.data -= {rate} * (p.grad + 0.01 * p.data)"]  # fmt: skip
        with self.block(f"for p in {self.pick(['PS'] * 9 + ['PS[::-1]', 'PS[1:]'])}:"):
            self.line(self.pick(forms))
        if zeroed in (1, 2):
            self.cleared()

    def cleared(self) -> None:
        """Gradients that are zero."""
        if self.chance(10):
            self.zero(100)
        else:
            with self.block("for p in PS:"):
                self.line(self.pick(["p.grad = 0.0"] * 9 + ["p.grad = -0.0"]))
