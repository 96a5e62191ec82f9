"""Programs of courses and blogs: a class or a script of some thirty lines, as its author wrote it"""

from __future__ import annotations

from tests.programs.people.people import Program

PROGRAMS = [
    Program(
        "a neuron that keeps its output and its delta",
        """
class Neuron:
    def __init__(self, n):
        self.w, self.b = [0.1 * (k + 1) for k in range(n)], 0.0
        self.output = self.delta = None
    def activate(self, x):
        self.output = 1.0 / (1.0 + math.exp(-(sum(w * v for w, v in zip(self.w, x)) + self.b)))
        return self.output

layers = [[Neuron(2), Neuron(2)], [Neuron(2)]]

@mgjit.compile
def train(x, y):
    inputs = x
    for layer in layers:
        inputs = [n.activate(inputs) for n in layer]
    out = layers[-1][0]
    out.delta = (y - out.output) * out.output * (1 - out.output)
    for j, n in enumerate(layers[0]):
        n.delta = out.w[j] * out.delta * n.output * (1 - n.output)
    for n in layers[0]:
        for k in range(2):
            n.w[k] += 0.5 * n.delta * x[k]
        n.b += 0.5 * n.delta
    for j, n in enumerate(layers[0]):
        out.w[j] += 0.5 * out.delta * n.output
    out.b += 0.5 * out.delta
    return (y - out.output) ** 2

for k in range(20):
    check(train([k % 2 / 1.0, k // 2 % 2 / 1.0], float(k % 2 != k // 2 % 2)))
check([(n.w, n.b, n.output, n.delta) for layer in layers for n in layer])
""",
    ),
    Program(
        "layers with forward, backward and update in a loop",
        """
class Dense:
    def __init__(self, n, m):
        self.w = [[0.1 * (i + 1) - 0.05 * j for i in range(n)] for j in range(m)]
        self.b = [0.0] * m
    def forward(self, x):
        self.x = x
        return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(self.w, self.b)]
    def backward(self, grad):
        self.dw = [[g * v for v in self.x] for g in grad]
        self.db = list(grad)
        return [sum(self.w[j][i] * grad[j] for j in range(len(grad))) for i in range(len(self.x))]
    def update(self, rate):
        for j in range(len(self.w)):
            for i in range(len(self.w[j])):
                self.w[j][i] -= rate * self.dw[j][i]
            self.b[j] -= rate * self.db[j]

class Relu:
    def forward(self, x):
        self.x = x
        return [max(0.0, v) for v in x]
    def backward(self, grad):
        return [g if v > 0 else 0.0 for g, v in zip(grad, self.x)]
    def update(self, rate):
        pass

net = [Dense(2, 3), Relu(), Dense(3, 1)]

@mgjit.compile
def train(x, y, rate):
    for layer in net:
        x = layer.forward(x)
    grad = [2.0 * (x[0] - y)]
    for layer in reversed(net):
        grad = layer.backward(grad)
    for layer in net:
        layer.update(rate)
    return (x[0] - y) ** 2

for k in range(15):
    check(train([math.sin(k), math.cos(k)], 0.1 * k, 0.05))
check(net[0].w, net[0].b, net[2].w)
""",
    ),
    Program(
        "Q-learning on a line, a move a call",
        """
Q = {(s, a): 0.0 for s in range(5) for a in (-1, 1)}
random.seed(3)

def choose(s, eps):
    if random.random() < eps:
        return random.choice([-1, 1])
    return max((-1, 1), key=lambda a: Q[s, a])

@mgjit.compile
def move(s, eps):
    a = choose(s, eps)
    t = min(4, max(0, s + a))
    r = 1.0 if t == 4 else 0.0
    Q[s, a] += 0.5 * (r + 0.9 * max(Q[t, -1], Q[t, 1]) - Q[s, a])
    return t

s = 0
for k in range(60):
    s = move(s, 0.3)
    if s == 4:
        s = 0
check(s, Q, random.random())
""",
    ),
    Program(
        "SARSA with a table in a list of lists",
        """
q = [[0.0, 0.0] for _ in range(4)]

@mgjit.compile
def learn(s, a, r, t, b):
    target = r + 0.9 * q[t][b]
    q[s][a] = q[s][a] + 0.1 * (target - q[s][a])
    return target

for k in range(30):
    check(learn(k % 4, k % 2, 0.1 * (k % 3), (k + 1) % 4, (k // 2) % 2))
check(q)
""",
    ),
    Program(
        "a bandit with Thompson's samples",
        """
random.seed(5)
wins, losses = [1, 1, 1], [1, 1, 1]

@mgjit.compile
def pull(p):
    samples = [random.betavariate(a, b) for a, b in zip(wins, losses)]
    arm = samples.index(max(samples))
    if random.random() < p * (arm + 1):
        wins[arm] += 1
    else:
        losses[arm] += 1
    return arm

for k in range(20):
    check(pull(0.25))
check(wins, losses, random.random())
""",
    ),
    Program(
        "softmax regression on rows, the label last",
        """
W = [[0.01 * (i - j) for i in range(3)] for j in range(3)]
rows = [[0.1 * k, 1.0 - 0.05 * k, 1.0, k % 3] for k in range(12)]

@mgjit.compile
def step(row, rate):
    x, label = row[:-1], row[-1]
    scores = [sum(w * v for w, v in zip(ws, x)) for ws in W]
    m = max(scores)
    e = [math.exp(s - m) for s in scores]
    total = sum(e)
    p = [v / total for v in e]
    for j in range(3):
        g = p[j] - (1.0 if j == label else 0.0)
        for i in range(3):
            W[j][i] -= rate * g * x[i]
    return -math.log(p[label])

for epoch in range(2):
    for row in rows:
        check(step(row, 0.1))
check(W)
""",
    ),
    Program(
        "linear regression with a history and a best loss",
        """
class Regression:
    def __init__(self):
        self.w, self.b = 0.0, 0.0
        self.history, self.best = [], float("inf")
    @mgjit.compile
    def fit(self, xs, ys, rate):
        dw = db = loss = 0.0
        for x, y in zip(xs, ys):
            e = self.w * x + self.b - y
            loss += e * e
            dw += 2 * e * x
            db += 2 * e
        self.w -= rate * dw / len(xs)
        self.b -= rate * db / len(xs)
        if loss < self.best:
            self.best = loss
        self.history.append(loss)
        return loss

model = Regression()
for k in range(12):
    check(model.fit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 0.1))
check(model.w, model.b, model.best, model.history)
""",
    ),
    Program(
        "a genetic search that tunes weights",
        """
random.seed(7)
population = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(6)]

def fitness(genes):
    return -sum((g - t) ** 2 for g, t in zip(genes, (0.5, -0.25, 0.75)))

@mgjit.compile
def generation(rate):
    ranked = sorted(population, key=fitness, reverse=True)
    parents = ranked[:2]
    for k in range(len(population)):
        mother, father = random.choice(parents), random.choice(parents)
        population[k] = [
            (a if random.random() < 0.5 else b) + random.gauss(0, rate) for a, b in zip(mother, father)
        ]
    return fitness(ranked[0])

for k in range(10):
    check(generation(0.1))
check(population, random.random())
""",
    ),
    Program(
        "a character model with a table of logits",
        """
text = "hello world, hello there"
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
logits = [[0.0] * len(chars) for _ in chars]

@mgjit.compile
def step(i, j):
    row = logits[i]
    e = [math.exp(v) for v in row]
    total = sum(e)
    for k in range(len(row)):
        row[k] -= 0.5 * (e[k] / total - (k == j))
    return -math.log(e[j] / total)

for a, b in zip(text, text[1:]):
    check(step(stoi[a], stoi[b]))
check(logits)
""",
    ),
    Program(
        "an Elman network over a word, with clipped gradients",
        """
H = 3
wx, wh, wy = [0.1, -0.2, 0.3], [[0.05 * (i - j) for i in range(H)] for j in range(H)], [0.2, 0.1, -0.1]

@mgjit.compile
def step(xs, y):
    hs = [[0.0] * H]
    for x in xs:
        hs.append([math.tanh(wx[k] * x + sum(w * h for w, h in zip(wh[k], hs[-1]))) for k in range(H)])
    e = sum(w * h for w, h in zip(wy, hs[-1])) - y
    dh = [2 * e * w for w in wy]
    for k in range(H):
        wy[k] -= 0.1 * 2 * e * hs[-1][k]
    for t in reversed(range(len(xs))):
        d = [g * (1 - h * h) for g, h in zip(dh, hs[t + 1])]
        d = [max(-1.0, min(1.0, v)) for v in d]
        dh = [sum(wh[k][j] * d[k] for k in range(H)) for j in range(H)]
        for k in range(H):
            wx[k] -= 0.1 * d[k] * xs[t]
            for j in range(H):
                wh[k][j] -= 0.1 * d[k] * hs[t][j]
    return e * e

for k in range(10):
    check(step([0.1 * k, 0.2, -0.3, 0.5], math.sin(k)))
check(wx, wh, wy)
""",
    ),
    Program(
        "minitorch: scalars with unique names from a counter",
        """
class Scalar:
    counter = 0
    def __init__(self, data, parents=(), grads=()):
        Scalar.counter += 1
        self.unique_id = Scalar.counter
        self.name = str(self.unique_id)
        self.data, self.derivative, self.parents, self.grads = data, None, parents, grads
    def __mul__(self, other):
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))
    def __add__(self, other):
        return Scalar(self.data + other.data, (self, other), (1.0, 1.0))
    def backward(self, d=1.0):
        if not self.parents:
            self.derivative = (self.derivative or 0.0) + d
        for p, g in zip(self.parents, self.grads):
            p.backward(d * g)

w, b = Scalar(0.5), Scalar(0.1)

@mgjit.compile
def step(x, y):
    w.derivative = b.derivative = None
    out = w * Scalar(x) + b + Scalar(-y)
    loss = out * out
    loss.backward()
    w.data -= 0.1 * w.derivative
    b.data -= 0.1 * b.derivative
    return loss.data

for k in range(8):
    check(step(0.1 * k, 1.0))
check(w.data, b.data, w.derivative, Scalar.counter)
""",
    ),
    Program(
        "micrograd with a print of the loss every five calls",
        """
model = [Value(0.1), Value(-0.2)]
calls = [0]

@mgjit.compile
def step(x, y):
    calls[0] += 1
    loss = (model[0] * x + model[1] - y) ** 2
    for p in model:
        p.grad = 0.0
    loss.backward()
    for p in model:
        p.data -= 0.05 * p.grad
    if calls[0] % 5 == 0:
        print(f"step {calls[0]}: {loss.data:.4f}")
    return loss.data

for k in range(12):
    check(step(0.3 * k, 1.0))
check([p.data for p in model])
""",
    ),
    Program(
        "a trainer with callbacks in a list",
        """
class Trainer:
    def __init__(self):
        self.w, self.step_count, self.callbacks, self.log = [0.1, 0.2], 0, [], []
    @mgjit.compile
    def train_step(self, x, y):
        e = self.w[0] * x + self.w[1] - y
        self.w[0] -= 0.1 * e * x
        self.w[1] -= 0.1 * e
        self.step_count += 1
        for callback in self.callbacks:
            callback(self)
        return e * e

trainer = Trainer()
trainer.callbacks.append(lambda t: t.log.append(t.step_count))
for k in range(10):
    check(trainer.train_step(0.2 * k, 1.0))
check(trainer.w, trainer.step_count, trainer.log)
""",
    ),
    Program(
        "Adam in a class with a state dict by parameter",
        """
class Adam:
    def __init__(self, params):
        self.params, self.t = params, 0
        self.state = {id(p): {"m": 0.0, "v": 0.0} for p in params}
    def step(self, rate):
        self.t += 1
        for p in self.params:
            s = self.state[id(p)]
            s["m"] = 0.9 * s["m"] + 0.1 * p.grad
            s["v"] = 0.999 * s["v"] + 0.001 * p.grad * p.grad
            m, v = s["m"] / (1 - 0.9 ** self.t), s["v"] / (1 - 0.999 ** self.t)
            p.data -= rate * m / (v ** 0.5 + 1e-8)

ps = [Value(0.5), Value(-0.5)]
optimizer = Adam(ps)

@mgjit.compile
def step(x, y):
    loss = (ps[0] * x + ps[1] - y) ** 2
    for p in ps:
        p.grad = 0.0
    loss.backward()
    optimizer.step(0.01)
    return loss.data

for k in range(10):
    check(step(0.1 * k, 1.0))
check([p.data for p in ps], optimizer.t, list(optimizer.state.values()))
""",
    ),
    Program(
        "a learning rate of a schedule that the step asks for",
        """
class Schedule:
    def __init__(self):
        self.epoch = 0
    def rate(self):
        if self.epoch < 3:
            return 0.1 * (self.epoch + 1) / 3
        return 0.1 * 0.5 ** ((self.epoch - 3) // 4)

schedule, w = Schedule(), [0.0]

@mgjit.compile
def step(x, y):
    e = w[0] * x - y
    w[0] -= schedule.rate() * e * x
    return e

for k in range(16):
    check(step(1.0, 2.0))
    schedule.epoch += 1
check(w)
""",
    ),
    Program(
        "early stopping that raises StopIteration",
        """
w, patience = [0.0], [0, float("inf")]

@mgjit.compile
def step(x, y):
    e = w[0] * x - y
    w[0] -= 0.5 * e * x
    loss = e * e
    if loss < patience[1] - 1e-6:
        patience[0], patience[1] = 0, loss
    else:
        patience[0] += 1
        if patience[0] > 3:
            raise StopIteration
    return loss

done = 0
try:
    for k in range(80):
        check(step(1.0, 2.0))
        done += 1
except StopIteration:
    check("stopped")
check(w, done, patience)
""",
    ),
    Program(
        "a perceptron that returns early when it is right",
        """
w = [0.0, 0.0, 0.0]

@mgjit.compile
def learn(x, label):
    activation = w[0] + w[1] * x[0] + w[2] * x[1]
    guess = 1 if activation > 0 else -1
    if guess == label:
        return 0
    w[0] += 0.1 * label
    w[1] += 0.1 * label * x[0]
    w[2] += 0.1 * label * x[1]
    return 1

for k in range(24):
    x = [math.sin(k), math.cos(2 * k)]
    check(learn(x, 1 if x[0] > x[1] else -1))
check(w)
""",
    ),
    Program(
        "naive counts of words in a dict that grows",
        """
counts, total = {}, [0]

@mgjit.compile
def see(word, weight):
    counts[word] = counts.get(word, 0.0) + weight
    total[0] += 1
    return counts[word] / total[0]

for k, word in enumerate("the cat and the dog and the bird sat and sat".split() * 3):
    check(see(word, 0.5 + 0.1 * k))
check(counts, total)
""",
    ),
    Program(
        "a Kalman filter that keeps its estimate",
        """
class Kalman:
    def __init__(self):
        self.x, self.p = 0.0, 1.0
        self.gain = None
    @mgjit.compile
    def update(self, z, q, r):
        self.p += q
        self.gain = self.p / (self.p + r)
        self.x += self.gain * (z - self.x)
        self.p *= 1 - self.gain
        return self.x

k = Kalman()
for t in range(15):
    check(k.update(1.0 + 0.1 * math.sin(t), 0.01, 0.5))
check(k.x, k.p, k.gain)
""",
    ),
    Program(
        "a Hopfield network whose states are ints",
        """
state = [1, -1, 1, 1, -1]
W = [[0.0 if i == j else state[i] * state[j] / 5 for i in range(5)] for j in range(5)]

@mgjit.compile
def update(k, bias):
    total = sum(w * s for w, s in zip(W[k], state)) + bias
    state[k] = 1 if total >= 0 else -1
    return total

state[0] = -1
for k in range(10):
    check(update(k % 5, 0.01 * k))
check(state)
""",
    ),
    Program(
        "a self-organising map, the nearest unit",
        """
units = [[0.2 * k, 1.0 - 0.2 * k] for k in range(4)]

@mgjit.compile
def learn(x, y, rate):
    distances = [(u[0] - x) ** 2 + (u[1] - y) ** 2 for u in units]
    best = distances.index(min(distances))
    for k, u in enumerate(units):
        h = rate * math.exp(-abs(k - best))
        u[0] += h * (x - u[0])
        u[1] += h * (y - u[1])
    return best

for k in range(16):
    check(learn(abs(math.sin(k)), abs(math.cos(k)), 0.2))
check(units)
""",
    ),
    Program(
        "a decision stump by weighted errors",
        """
data = [(0.1 * k, 1 if k > 4 else -1) for k in range(9)]
weights = [1 / 9] * 9

@mgjit.compile
def boost(threshold):
    wrong = [(1 if x > threshold else -1) != y for x, y in data]
    error = sum(w for w, bad in zip(weights, wrong) if bad)
    alpha = 0.5 * math.log((1 - error + 1e-9) / (error + 1e-9))
    for k, (x, y) in enumerate(data):
        weights[k] *= math.exp(alpha if wrong[k] else -alpha)
    total = sum(weights)
    for k in range(len(weights)):
        weights[k] /= total
    return alpha

for t in (0.35, 0.5, 0.65, 0.45, 0.2):
    check(boost(t))
check(weights)
""",
    ),
    Program(
        "a replay memory of deque, and a target that is copied",
        """
memory = collections.deque(maxlen=6)
online, target, ticks = [0.1, 0.2], [0.1, 0.2], [0]
random.seed(9)

@mgjit.compile
def learn(s, r, t):
    memory.append((s, r, t))
    ticks[0] += 1
    for s, r, t in random.sample(list(memory), min(2, len(memory))):
        q = online[0] * s + online[1]
        goal = r + 0.9 * (target[0] * t + target[1])
        online[0] += 0.1 * (goal - q) * s
        online[1] += 0.1 * (goal - q)
    if ticks[0] % 4 == 0:
        target[:] = online
    return online[1]

for k in range(12):
    check(learn(0.1 * k, 0.5, 0.1 * k + 0.1))
check(online, target, ticks, list(memory), random.random())
""",
    ),
    Program(
        "a step that times itself",
        """
class Timer:
    def __init__(self):
        self.seconds, self.calls = 0.0, 0

timer, w = Timer(), [0.5]

@mgjit.compile
def step(x, y):
    began = time.perf_counter()
    e = w[0] * x - y
    w[0] -= 0.1 * e * x
    timer.seconds += time.perf_counter() - began
    timer.calls += 1
    return e

for k in range(10):
    check(step(0.1 * k, 1.0))
check(w, timer.calls, timer.seconds >= 0.0)
""",
    ),
    Program(
        "a progress bar by hand",
        """
w = [0.5]

def bar(done, total, loss):
    if done % 4 == 0:
        print("\\r[" + "#" * (done * 10 // total) + f"] {loss:.3f}", end="")

@mgjit.compile
def step(k, x, y):
    e = w[0] * x - y
    w[0] -= 0.1 * e * x
    bar(k, 12, e * e)
    return e

for k in range(12):
    check(step(k, 0.1 * k, 1.0))
check(w)
""",
    ),
    Program(
        "assertions on the numbers of the step",
        """
w = [0.5, -0.5]

@mgjit.compile
def step(x, y):
    p = 1 / (1 + math.exp(-(w[0] * x + w[1])))
    assert 0.0 < p < 1.0, p
    loss = -math.log(p if y else 1 - p)
    assert not math.isnan(loss)
    w[0] -= 0.1 * (p - y) * x
    w[1] -= 0.1 * (p - y)
    return loss

for k in range(10):
    check(step(0.1 * k, k % 2))
check(w)
""",
    ),
    Program(
        "a mixture of two experts and a gate",
        """
experts, gate = [[0.1, 0.0], [-0.1, 0.5]], [0.3, -0.2]

@mgjit.compile
def step(x, y):
    g = 1 / (1 + math.exp(-(gate[0] * x + gate[1])))
    outs = [w * x + b for w, b in experts]
    p = g * outs[0] + (1 - g) * outs[1]
    e = p - y
    for k, share in enumerate((g, 1 - g)):
        experts[k][0] -= 0.1 * e * share * x
        experts[k][1] -= 0.1 * e * share
    d = e * (outs[0] - outs[1]) * g * (1 - g)
    gate[0] -= 0.1 * d * x
    gate[1] -= 0.1 * d
    return e * e

for k in range(14):
    check(step(math.sin(k), abs(math.sin(k))))
check(experts, gate)
""",
    ),
    Program(
        "gradients by finite differences",
        """
params = {"a": 0.5, "b": -0.3, "c": 0.1}

def loss(p, x, y):
    return (p["a"] * x * x + p["b"] * x + p["c"] - y) ** 2

@mgjit.compile
def step(x, y, h):
    base = loss(params, x, y)
    grads = {}
    for name in params:
        params[name] += h
        grads[name] = (loss(params, x, y) - base) / h
        params[name] -= h
    for name, g in grads.items():
        params[name] -= 0.05 * g
    return base

for k in range(10):
    check(step(0.1 * k, 1.0, 1e-4))
check(params)
""",
    ),
    Program(
        "a model that is a named tuple, made anew in each call",
        """
Model = collections.namedtuple("Model", "w b")

@mgjit.compile
def step(model, x, y):
    e = model.w * x + model.b - y
    return Model(model.w - 0.1 * e * x, model.b - 0.1 * e), e * e

model = Model(0.0, 0.0)
for k in range(10):
    model, loss = step(model, 0.1 * k, 1.0)
    check(loss)
check(model.w, model.b, type(model).__name__)
""",
    ),
    Program(
        "a dataclass of settings, one of which changes",
        """
@dataclasses.dataclass
class Settings:
    rate: float = 0.1
    decay: float = 0.0
    mode: str = "train"

settings, w = Settings(), [0.5, 0.5]

@mgjit.compile
def step(x, y):
    e = w[0] * x + w[1] - y
    if settings.mode == "train":
        w[0] -= settings.rate * (e * x + settings.decay * w[0])
        w[1] -= settings.rate * e
    return e

for k in range(15):
    check(step(0.1 * k, 1.0))
    if k == 6:
        settings.rate = 0.05
    if k == 10:
        settings.mode = "test"
check(w)
""",
    ),
    Program(
        "weights that are saved and loaded in between",
        """
class Net:
    def __init__(self):
        self.w = [0.1, 0.2]
    @mgjit.compile
    def train(self, x, y):
        e = self.w[0] * x + self.w[1] - y
        self.w[0] -= 0.1 * e * x
        self.w[1] -= 0.1 * e
        return e

net = Net()
saved = None
for k in range(12):
    check(net.train(0.1 * k, 1.0))
    if k == 4:
        saved = pickle.dumps(net.w)
    if k == 8:
        net.w = pickle.loads(saved)
check(net.w)
""",
    ),
]
