"""Random programs of the shape of real training: models of several layers, a training step and other steps.

The statements of `strategy.Writer` appear among them.  What is varied here is what decides about the layout of
parameters and the order of loops: which way a matrix is walked, in which order its parameters were created, where
gradients are zeroed, how many backward passes there are, and which of several steps meets a parameter first.

Besides `make()` (which returns several steps) and `CALLS`, the text defines `ORDER`, the step that each call is of,
and `HOST`, what Python does to parameters and state before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .strategy import Matrix, Scope, Vector, Writer

MODEL_CALL_COUNT = 4

_SIZES = (8, 8, 9, 12, 16, 17, 20, 3, 4, 7, 1, 2)
_HOST = (
    "lambda values, states: None",
    "lambda values, states: None",
    "lambda values, states: [setattr(v, 'grad', 0.0) for v in values]",
    "lambda values, states: [setattr(v, 'grad', -0.0) for v in values[::2]]",
    "lambda values, states: [setattr(v, 'data', v.data * 0.5) for v in values[1::3]]",
    "lambda values, states: setattr(values[-1], 'data', values[0].grad)",
    "lambda values, states: [s.__setitem__(0, 0.25) for s in states]",
    "lambda values, states: [setattr(v, 'grad', v.grad * 2.0) for v in values]",
)


@dataclass(frozen=True)
class Dense:
    """A layer: the names of its weights and biases, and how they are written."""

    weights: str
    biases: str
    inputs: int
    outputs: int
    transposed: bool


class ModelWriter(Writer):
    """Writes one program of several steps over one model.

    Attributes:
        others: how many steps there may be besides the one that trains.
        batches: how many samples an argument may be; 0 for one that is no batch.
        host: what Python may do between calls.
    """

    others: tuple[int, ...] = (0, 0, 1, 1, 2)
    batches: tuple[int, ...] = (0, 0, 2, 3, 9)
    host: tuple[str, ...] = _HOST

    def __init__(self, choose: Callable[[int], int]) -> None:
        super().__init__(choose)
        self.wild = False
        self.layers: list[Dense] = []
        self.is_mlp = self.chance(30)
        self.batch = 0
        self.classes = 1

    def sizes_of_program(self) -> list[int]:
        return [self.pick(_SIZES) for _ in range(self.between(2, 3))]

    # ---- the model ------------------------------------------------------------------------------

    def model(self) -> list[str]:
        """The lines that make the parameters; fills the scope."""
        lines = []
        widths = self.widths()
        self.classes = widths[-1]
        if self.is_mlp:
            lines.append(f"    model = mgjit.nn.MLP({widths[0]}, {widths[1:]}, seed={self.choose(100)})")
            lines.append("    PS = model.parameters()")
            for number, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
                layer = f"model.layers[{number}].neurons"
                lines.append(f"    W{number}, B{number} = [n.w for n in {layer}], [n.b for n in {layer}]")
                self.layers.append(Dense(f"W{number}", f"B{number}", inputs, outputs, False))
        else:
            layers = [self.dense(number, *pair) for number, pair in enumerate(zip(widths, widths[1:]))]
            self.layers += layers
            creations = [(self.creation_of_weights(layer), self.creation_of_biases(layer)) for layer in layers]
            texts = [text for pair in creations for text in (pair if self.chance(70) else pair[::-1])]
            if self.chance(25):
                texts.reverse()
            for text in texts:
                lines.append(f"    {text}")
                if self.chance(10):
                    lines.append(f"    HOLE = [mgjit.Value(0.0) for _ in range({self.pick([1, 3, 1500])})]")
            natural = [f"[v for row in {layer.weights} for v in row] + {layer.biases}" for layer in layers]
            lines.append(f"    PS = {' + '.join(natural)}")
        count = sum(layer.outputs * (layer.inputs + 1) for layer in self.layers)
        for layer in self.layers:
            self.parameters.append(Vector(layer.biases, layer.outputs, "V", True))
        self.parameters.append(Vector("PS", count, "V", True))
        for name in ("M", "R")[: self.choose(3)]:
            lines.append(f"    {name} = mgjit.zeros({count})")
            self.states.append(Vector(name, count, "N"))
        return lines

    def widths(self) -> list[int]:
        """The numbers of inputs, of the units of each layer, and of outputs."""
        return [self.size() for _ in range(self.between(2, 4))]

    def dense(self, number: int, inputs: int, outputs: int) -> Dense:
        return Dense(f"W{number}", f"B{number}", inputs, outputs, self.chance(35))

    def creation_of_weights(self, layer: Dense) -> str:
        rows, columns = (layer.inputs, layer.outputs) if layer.transposed else (layer.outputs, layer.inputs)
        value = f"mgjit.Value(((i * 7 + j * 5) % {self.between(3, 13)}) * 0.11 - 0.4)"
        row = self.pick([f"[{value} for j in range({columns})]", f"[{value} for j in range({columns})]",
                         f"[{value} for j in range({columns})][::-1]"])  # fmt: skip
        form = self.choose(5)
        if form == 3:
            return f"{layer.weights} = [{row} for i in range({rows})][::-1]"
        if form == 4:  # created column by column
            by_columns = f"[[{value} for i in range({rows})] for j in range({columns})]"
            return f"{layer.weights} = [list(row) for row in zip(*{by_columns})]"
        return f"{layer.weights} = [{row} for i in range({rows})]"

    def creation_of_biases(self, layer: Dense) -> str:
        order = self.pick(["", "", "[::-1]"])
        return f"{layer.biases} = [mgjit.Value(0.03 * i - 0.1) for i in range({layer.outputs})]{order}"

    # ---- forward ----------------------------------------------------------------------------------

    def layer_text(self, layer: Dense, x: str) -> str:
        """Defines the outputs of a layer, before its activation; returns their name."""
        name = self.fresh("h")
        w = f"{layer.weights}[j][i]" if layer.transposed else f"{layer.weights}[i][j]"
        product = self.pick([f"{w} * {x}[j]", f"{w} * {x}[j]", f"{x}[j] * {w}"])
        span = self.pick([f"range({layer.inputs})"] * 3 + [f"reversed(range({layer.inputs}))"])
        bias, outputs = f"{layer.biases}[i]", f"range({layer.outputs})"
        form = self.choose(8)
        if form < 3:
            self.line(f"{name} = [sum(({product} for j in {span}), {bias}) for i in {outputs}]")
        elif form == 3:
            self.line(f"{name} = [sum({product} for j in {span}) + {bias} for i in {outputs}]")
        elif form == 4 and not layer.transposed:
            self.line(f"{name} = [mgjit.dot(row, {x}) + b for row, b in zip({layer.weights}, {layer.biases})]")
        elif form == 5:  # the other order of the loops
            self.line(f"{name} = {self.pick([f'list({layer.biases})', f'[0.0] * {layer.outputs}'])}")
            with self.block(f"for j in {span}:"), self.block(f"for i in {outputs}:"):
                self.line(f"{name}[i] = {name}[i] + {product}")
        elif form == 6:  # one unit after the other
            self.line(f"{name} = []")
            with self.block(f"for i in {outputs}:"):
                self.line(f"s = {self.pick([bias, '0.0', f'0.5 * {bias}'])}")
                with self.block(f"for j in {span}:"):
                    self.line(f"s = s + {product}")
                self.line(f"{name}.append({self.pick(['s', f's + {bias}', 's.relu()'])})")
        else:
            self.line(f"{name} = [sum({product} for j in {span}) for i in {outputs}]")
        return name

    def forward(self, x: str, scope_it: bool = True) -> str:
        """All layers; returns the name of the outputs."""
        if self.is_mlp and self.chance(70):
            name = self.fresh("o")
            self.line(f"{name} = model({x})")
            if self.classes == 1:
                self.line(f"{name} = [{name}]")
            if scope_it:
                self.define_vector(name, self.classes)
            return name
        for layer in self.layers:
            name = self.layer_text(layer, x)
            form = self.pick(["tanh", "relu", "relu", "", "softmax"])
            x = self.fresh("h")
            if form == "softmax":
                self.line(f"e = [mgjit.exp(mgjit.tanh(v)) for v in {name}]")
                self.line("t = sum(e)")
                self.line(f"{x} = [v / t for v in e]")
            else:
                self.line(f"{x} = [{f'mgjit.{form}(v)' if form else 'v * 1.0'} for v in {name}]")
            if scope_it:
                self.define_vector(name, layer.outputs)
                self.define_vector(x, layer.outputs)
            if scope_it and self.chance(15):
                self.statement()
        if scope_it and self.chance(15):  # tied weights: the transposed walk of the last matrix
            layer = self.layers[-1]
            w = f"{layer.weights}[i][j]" if layer.transposed else f"{layer.weights}[j][i]"
            back = self.fresh("h")
            self.line(f"{back} = [sum({w} * {x}[j] for j in range({layer.outputs})) for i in range({layer.inputs})]")
            self.define_vector(back, layer.inputs)
        return x

    def loss_of(self, outputs: str, target: str) -> str:
        """An expression for the loss of one sample."""
        form = self.choose(6)
        pairs = f"zip({outputs}, {target})"
        if form == 3:
            return f"-mgjit.log(sum(mgjit.exp(mgjit.tanh(o)) * y for o, y in {pairs}) + 1.5)"
        if form == 4:
            return f"sum(mgjit.maximum(1.0 - o * y, 0.0) for o, y in {pairs})"
        if form == 5:
            return f"sum(abs(o - y) for o, y in {pairs}) * 0.5"
        return f"sum((o - y) ** 2 for o, y in {pairs})"

    # ---- a training step ----------------------------------------------------------------------------

    def zero(self, percent: int) -> None:
        if not self.chance(percent):
            return
        form = self.choose(6)
        if form == 0 and self.is_mlp:
            self.line("model.zero_grad()")
        elif form == 1:
            for layer in self.layers:
                with self.block(f"for row in {layer.weights}:"), self.block("for p in row:"):
                    self.line("p.grad = 0.0")
                if self.chance(70):
                    with self.block(f"for p in {layer.biases}:"):
                        self.line("p.grad = 0.0")
        else:
            order = self.pick(["PS", "PS", "PS", "reversed(PS)", "PS[::2]"])
            with self.block(f"for p in {order}:"):
                self.line(self.pick(["p.grad = 0.0"] * 4 + ["p.grad = 0.5 * p.grad"]))

    def regularised(self) -> str:
        layer = self.pick(self.layers)
        return self.pick(["0.01 * sum(p * p for p in PS)", "0.01 * sum(p ** 2 for p in PS[::-1])",
                          f"0.01 * sum(p * p for row in {layer.weights} for p in row)",
                          f"0.1 * sum(abs(p) for p in {layer.biases})"])  # fmt: skip

    def learn(self) -> None:
        """Zero, forward, backward, in one of many orders."""
        target = self.pick(["y", f"mgjit.one_hot(label, {self.classes})"])
        self.zero(40)
        form = self.choose(6)
        if self.batch and form < 4:
            inner = Scope(*(list(getattr(self.scope, name)) for name in self.scope.__dataclass_fields__))
            each = form < 2  # a backward pass a sample: gradients accumulate
            self.line("total = 0.0")
            with self.block("for x in xs:"):
                if self.chance(15):
                    self.zero(100)
                outputs = self.forward("x", scope_it=False)
                self.line(f"loss = {self.loss_of(outputs, target)}")
                if each:
                    self.line("loss.backward()")
                    self.line(f"total += {self.pick(['loss.data', 'loss.data', '1.0'])}")
                    if self.chance(20):
                        self.descend()
                else:
                    self.line("total = total + loss")
            self.scope = inner
            if each:
                return
            self.line("loss = total * 0.1")
        else:
            if self.batch:
                self.line("x = xs[0]")
            outputs = self.forward("x")
            self.line(f"loss = {self.loss_of(outputs, target)}")
            self.line("total = loss")
        if self.chance(25):
            self.line(f"loss = loss + {self.regularised()}")
        if self.chance(15):
            self.line(f"loss = loss + {self.value(2)}")
        self.zero(50)
        self.line("loss.backward()")
        if self.chance(15):
            self.line(f"loss2 = loss * 0.5 + {self.regularised()}")
            self.zero(20)
            self.line("loss2.backward()")
        if self.chance(8):
            self.line("loss.backward()")

    def descend(self) -> None:
        """An update of all or some parameters."""
        form = self.choose(9)
        layer = self.pick(self.layers)
        if form < 3:
            with self.block(f"for p in {self.pick(['PS', 'PS', 'PS', 'PS[::-1]', 'PS[1:]'])}:"):
                self.line(self.pick(["p.data -= lr * p.grad", "p.data = p.data - lr * (p.grad + 0.01 * p.data)"]))
                if self.chance(25):
                    self.line("p.grad = 0.0")
        elif form == 3:
            with self.block(f"for row in {layer.weights}:"), self.block("for p in row:"):
                self.line("p.data -= lr * p.grad")
        elif form == 4:
            with self.block(f"for p in {layer.biases}:"):
                self.line("p.data -= lr * p.grad")
                self.line("p.grad = 0.0")
        elif form == 5:
            self.line("norm = mgjit.sqrt(sum(p.grad * p.grad for p in PS)) + 1.0")
            with self.block("for p in PS:"):
                self.line("p.data -= lr * p.grad / norm")
        elif form < 8 and self.states:
            with self.block("for i, p in enumerate(PS):"):
                self.line("M[i] = 0.9 * M[i] + (1 - 0.9) * p.grad")
                if len(self.states) > 1:
                    self.line("R[i] = 0.99 * R[i] + (1 - 0.99) * p.grad ** 2")
                    self.line("p.data -= lr * M[i] / (R[i] ** 0.5 + 1e-8)")
                else:
                    self.line("p.data -= lr * M[i]")
        else:
            self.update()

    def training_step(self) -> list[str]:
        self.lines = []
        for _ in range(self.pick([1, 1, 1, 2])):
            self.learn()
            if self.chance(15):
                self.read_gradients()
            if self.chance(90):
                self.descend()
            if self.chance(15):
                self.zero(100)
        if self.chance(20):
            self.statement()
        if self.chance(20):
            self.line("x = xs[-1]" if self.batch else "x = x[::-1]")
            outputs = self.forward("x", scope_it=False)
            self.line(f"return total, {outputs}")
        else:
            self.line(f"return {self.pick(['total', 'total', '[total, PS[0].grad]', '{1: total, 2: PS[-1].data}'])}")
        return self.lines

    def other_step(self) -> list[str]:
        """A step that walks the same parameters in its own way."""
        self.lines = []
        if self.batch:
            self.line("x = xs[0]")
        form = self.choose(4)
        if form < 2:
            outputs = self.forward("x", scope_it=False)
            self.line(f"return {outputs}")
        elif form == 2:
            layer = self.pick(self.layers)
            w = f"{layer.weights}[i][j]" if layer.transposed else f"{layer.weights}[j][i]"
            self.line(f"s = [sum({w} for j in range({layer.outputs})) for i in range({layer.inputs})]")
            self.line("loss = sum(v * v for v in s)")
            self.zero(50)
            self.line("loss.backward()")
            self.descend()
            self.line("return s")
        else:
            self.line(f"loss = {self.regularised()}")
            self.line("loss.backward()")
            self.line("return loss, sum(p.grad for p in PS)")
        return self.lines

    # ---- the program ----------------------------------------------------------------------------------

    def program(self) -> str:
        head = self.model()
        self.batch = self.pick(self.batches)
        n, self.label_range = self.layers[0].inputs, self.classes
        with_values = self.chance(15) and not self.batch
        signature = f"lr, {'xs' if self.batch else 'x'}, y, label"
        scope = self.scope
        scope.numbers.append("lr")
        scope.vectors += [*self.parameters, *self.states, Vector("y", self.classes, "N")]
        scope.matrices += [Matrix(layer.weights, *self.shape(layer), "V", True) for layer in self.layers]
        if not self.batch:
            scope.vectors.append(Vector("x", n, "V" if with_values else "N"))
        self.index_name = "label"
        before = scope.copy()
        steps = [self.training_step()]
        for _ in range(self.pick(self.others)):
            self.scope = before.copy()
            steps.append(self.other_step())
        lines = ["import mgjit", "from array import array", "", "", "def make():", *head]
        for number, step in enumerate(steps):
            lines += ["", f"    def step{number}({signature}):", *step]
        names = ", ".join(f"step{number}" for number in range(len(steps)))
        states = ", ".join(state.name for state in self.states)
        lines += ["", f"    return [{names}], PS, [{states}]", "", ""]
        if with_values:
            lines.append(f"SHARED = [mgjit.Value(d) for d in {self.floats(n)}]")
        calls = [self.call(n, with_values) for _ in range(MODEL_CALL_COUNT)]
        lines += ["CALLS = [", *(f"    {call}," for call in calls), "]"]
        lines.append(f"ORDER = {[self.choose(len(steps)) for _ in calls]}")
        if self.host:
            lines += ["HOST = [", *(f"    {self.pick(self.host)}," for _ in calls), "]"]
        lines.append("")
        return "\n".join(lines)

    @staticmethod
    def shape(layer: Dense) -> tuple[int, int]:
        """Rows and columns of the weights as they are written."""
        return (layer.inputs, layer.outputs) if layer.transposed else (layer.outputs, layer.inputs)

    def call(self, n: int, with_values: bool) -> str:
        x = self.floats(n)
        if with_values:
            x = "SHARED" if self.data.random() < 0.5 else f"[mgjit.Value(d) for d in {x}]"
        elif self.batch:
            x = f"[{', '.join(self.floats(n) for _ in range(self.batch))}]"
        rate, label = self.data.choice((0.1, 0.05, 0.01)), self.data.randrange(self.classes)
        return f"({rate}, {x}, {self.floats(self.classes)}, {label})"
