"""Networks with hand-written derivatives, which keep what forward computes for backward."""

from __future__ import annotations

from tests.programs.people.people import Program

_NET = """
class Net:
    def __init__(self, n, m):
        rng = random.Random(3)
        self.W = [[rng.uniform(-1, 1) for _ in range(n)] for _ in range(m)]
        self.v = [rng.uniform(-1, 1) for _ in range(m)]
{init}

    def forward(self, x):
        h = [math.tanh(sum(w * a for w, a in zip(row, x))) for row in self.W]
{keep}
        return sum(a * b for a, b in zip(self.v, h))

    def backward(self, d, lr):
{get}
        for i in range(len(self.v)):
            g = d * self.v[i] * (1.0 - h[i] ** 2)
            self.v[i] -= lr * d * h[i]
            for j in range(len(x)):
                self.W[i][j] -= lr * g * x[j]

net = Net(3, 4)

@mgjit.compile
def step(x, y, lr):
    p = net.forward(x)
    net.backward(p - y, lr)
    return (p - y) ** 2

rng = random.Random(7)
for k in range(12):
    check(step([rng.random() for _ in range(3)], rng.random(), 0.1))
check(net.W, net.v)
"""


def _net(init: str, keep: str, get: str) -> str:
    lines = [text.replace("\n", "\n        ") for text in (init, keep, get)]
    return _NET.format(init=f"        {lines[0]}", keep=f"        {lines[1]}", get=f"        {lines[2]}")


_CLASS = "class Cache:\n    def __init__(self, x, h):\n        self.x, self.h = x, h\n"
_DATA = "@dataclasses.dataclass\nclass Cache:\n    x: list\n    h: list\n"
_NAMED = "Cache = collections.namedtuple('Cache', 'x h')\n"
_GET_CACHE = "x, h = self.cache.x, self.cache.h"

PROGRAMS = [
    Program(
        "activations in attributes",
        _net("self.x = self.h = None", "self.x, self.h = x, h", "x, h = self.x, self.h"),
    ),
    Program(
        "a copy of the inputs",
        _net("self.x, self.h = [], []", "self.x, self.h = list(x), h", "x, h = self.x, self.h"),
    ),
    Program("a tuple", _net("self.cache = None", "self.cache = (x, h)", "x, h = self.cache")),
    Program(
        "a dict",
        _net("self.cache = None", "self.cache = {'x': x, 'h': h}", "x, h = self.cache['x'], self.cache['h']"),
    ),
    Program(
        "entries of a dict",
        _net("self.cache = {}", "self.cache['x'] = x\nself.cache['h'] = h", "x, h = self.cache['x'], self.cache['h']"),
    ),
    Program(
        "a list that is made anew",
        _net("self.acts = []", "self.acts = [x]\nself.acts.append(h)", "x, h = self.acts"),
    ),
    Program(
        "a list that is cleared",
        _net("self.acts = []", "self.acts.clear()\nself.acts.append(x)\nself.acts.append(h)", "x, h = self.acts"),
    ),
    Program("an object", _CLASS + _net("self.cache = None", "self.cache = Cache(x, h)", _GET_CACHE)),
    Program("a dataclass", _DATA + _net("self.cache = None", "self.cache = Cache(x, h)", _GET_CACHE)),
    Program("a named tuple", _NAMED + _net("self.cache = None", "self.cache = Cache(x, h)", _GET_CACHE)),
    Program("a stack", _net("self.stack = []", "self.stack.append((x, h))", "x, h = self.stack.pop()")),
    Program(
        "all losses, too",
        _net("self.cache = []\nself.seen = []", "self.cache = [x, h]\nself.seen.append(1)", "x, h = self.cache"),
    ),
    Program(
        "a counter beside None",
        _net(
            "self.calls = 0\nself.best = None\nself.h = None",
            "self.calls += 1\nself.x, self.h = x, h",
            "x, h = self.x, self.h",
        ),
    ),
    Program(
        "a counter that has a text",
        _net(
            "self.calls = 0\nself.name = ''",
            "self.calls += 1\nself.name = 'call ' + str(self.calls)\nself.x, self.h = x, h",
            "x, h = self.x, self.h",
        ),
    ),
    Program(
        "a flag",
        _net(
            "self.training = True",
            "self.x, self.h = x, h\nself.fresh = self.training",
            "x, h = self.x, self.h\nself.fresh = False",
        ),
    ),
    Program(
        "layers in a list, each with its inputs",
        """
class Linear:
    def __init__(self, n, m, rng):
        self.w = [[rng.gauss(0, 0.5) for _ in range(n)] for _ in range(m)]
        self.b = [0.0] * m
    def __call__(self, x):
        self.x = x
        return [sum(a * b for a, b in zip(row, x)) + c for row, c in zip(self.w, self.b)]
    def back(self, d, lr):
        below = [sum(self.w[i][j] * d[i] for i in range(len(d))) for j in range(len(self.x))]
        for i, g in enumerate(d):
            self.b[i] -= lr * g
            for j, a in enumerate(self.x):
                self.w[i][j] -= lr * g * a
        return below

class Sigmoid:
    def __call__(self, x):
        self.y = [1.0 / (1.0 + math.exp(-a)) for a in x]
        return self.y
    def back(self, d, lr):
        return [g * y * (1.0 - y) for g, y in zip(d, self.y)]

rng = random.Random(1)
layers = [Linear(2, 3, rng), Sigmoid(), Linear(3, 1, rng), Sigmoid()]

@mgjit.compile
def train(x, y):
    for layer in layers:
        x = layer(x)
    d = [2.0 * (x[0] - y)]
    for layer in reversed(layers):
        d = layer.back(d, 0.5)
    return (x[0] - y) ** 2

for k in range(12):
    a, b = k % 2, k // 2 % 2
    check(train([float(a), float(b)], float(a ^ b)))
check([layer.w for layer in layers if hasattr(layer, "w")])
""",
    ),
    Program(
        "dicts of layers, as in the tutorial",
        """
random.seed(1)
def layer(n, m):
    return [{"weights": [random.random() for _ in range(n + 1)]} for _ in range(m)]
network = [layer(2, 2), layer(2, 2)]

@mgjit.compile
def train(row, expected, rate):
    inputs = row
    for one in network:
        new = []
        for neuron in one:
            total = neuron["weights"][-1]
            for i in range(len(neuron["weights"]) - 1):
                total += neuron["weights"][i] * inputs[i]
            neuron["output"] = 1.0 / (1.0 + math.exp(-total))
            new.append(neuron["output"])
        inputs = new
    for i in reversed(range(len(network))):
        one = network[i]
        for j, neuron in enumerate(one):
            if i == len(network) - 1:
                error = neuron["output"] - expected[j]
            else:
                error = sum(above["weights"][j] * above["delta"] for above in network[i + 1])
            neuron["delta"] = error * neuron["output"] * (1.0 - neuron["output"])
    for i in range(len(network)):
        inputs = row if i == 0 else [neuron["output"] for neuron in network[i - 1]]
        for neuron in network[i]:
            for j in range(len(inputs)):
                neuron["weights"][j] -= rate * neuron["delta"] * inputs[j]
            neuron["weights"][-1] -= rate * neuron["delta"]
    return sum((a - b) ** 2 for a, b in zip([n["output"] for n in network[-1]], expected))

for k in range(10):
    check(train([k / 10, 1.0 - k / 10], [1.0, 0.0] if k % 2 else [0.0, 1.0], 0.5))
check([[n["weights"] for n in one] for one in network])
""",
    ),
    Program(
        "the class is the last number of a row",
        """
w = [[0.1, -0.2], [0.05, 0.1], [0.2, 0.0]]

@mgjit.compile
def step(row, outputs):
    expected = [0 for _ in range(outputs)]
    expected[row[-1]] = 1
    total = 0.0
    for i in range(outputs):
        y = sum(a * b for a, b in zip(w[i], row))
        total += (expected[i] - y) ** 2
        for j in range(2):
            w[i][j] += 0.1 * (expected[i] - y) * row[j]
    return total

for k in range(9):
    check(step([k / 9, 1.5 - k / 5, k % 3], 3))
check(w)
""",
    ),
    Program(
        "momentum in a dict by name, and a history",
        """
params = {"w": 0.5, "b": -0.25}
speed = {name: 0.0 for name in params}
history = []

@mgjit.compile
def step(x, y):
    error = params["w"] * x + params["b"] - y
    grads = {"w": 2.0 * error * x, "b": 2.0 * error}
    for name in params:
        speed[name] = 0.9 * speed[name] - 0.01 * grads[name]
        params[name] += speed[name]
    history.append(error * error)
    return error * error

for k in range(12):
    check(step(k / 5, 1.0 - k / 7))
check(params, speed, history)
""",
    ),
    Program(
        "early stopping inside of the step",
        """
state = {"best": 1e9, "bad": 0}
w = [0.0]

@mgjit.compile
def step(x, y):
    error = w[0] * x - y
    w[0] -= 0.1 * error * x
    loss = error * error
    if loss < state["best"]:
        state["best"] = loss
        state["bad"] = 0
    else:
        state["bad"] += 1
    return loss

for k in range(14):
    check(step(1.0 + k % 3, 2.0))
check(state, w)
""",
    ),
]
