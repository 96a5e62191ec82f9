"""Regressions, character models and other models on rows"""

from __future__ import annotations

from tests.programs.people.people import Program

PROGRAMS = [
    Program(
        "logistic regression on rows with labels",
        """
coef = [0.0, 0.0, 0.0]

def predict(row, coef):
    yhat = coef[0]
    for i in range(len(row) - 1):
        yhat += coef[i + 1] * row[i]
    return 1.0 / (1.0 + math.exp(-yhat))

@mgjit.compile
def update(row, rate):
    yhat = predict(row, coef)
    error = row[-1] - yhat
    coef[0] = coef[0] + rate * error * yhat * (1.0 - yhat)
    for i in range(len(row) - 1):
        coef[i + 1] = coef[i + 1] + rate * error * yhat * (1.0 - yhat) * row[i]
    return error ** 2

for k in range(12):
    check(update([k / 5, 2.0 - k / 4, k % 2], 0.3))
check(coef)
""",
    ),
    Program(
        "the perceptron and its threshold",
        """
weights = [0.0, 0.1, -0.1]

def predict(row):
    activation = weights[0]
    for i in range(len(row) - 1):
        activation += weights[i + 1] * row[i]
    return 1.0 if activation >= 0.0 else 0.0

@mgjit.compile
def update(row):
    error = row[-1] - predict(row)
    weights[0] = weights[0] + 0.1 * error
    for i in range(len(row) - 1):
        weights[i + 1] = weights[i + 1] + 0.1 * error * row[i]
    return error

for k in range(12):
    check(update([k / 5, 2.0 - k / 4, k % 2]))
check(weights)
""",
    ),
    Program(
        "a whole epoch over a data set, with the accuracy",
        """
data = [[k / 5, 1.0 - k / 6, k % 2] for k in range(6)]
w = [0.1, 0.2]

@mgjit.compile
def epoch(rate):
    right, total = 0, 0.0
    for a, b, label in data:
        p = 1.0 / (1.0 + math.exp(-(w[0] * a + w[1] * b)))
        right += (p > 0.5) == (label == 1)
        w[0] -= rate * (p - label) * a
        w[1] -= rate * (p - label) * b
        total -= math.log(p) if label else math.log(1.0 - p)
    return total, right

for k in range(8):
    check(epoch(0.5))
check(w)
""",
    ),
    Program(
        "a shuffle in every epoch",
        """
data = [(k / 5, 3.0 * k / 5 - 1.0) for k in range(6)]
w = [0.0, 0.0]
random.seed(4)

@mgjit.compile
def epoch(rate):
    random.shuffle(data)
    total = 0.0
    for x, y in data:
        error = w[0] * x + w[1] - y
        w[0] -= rate * error * x
        w[1] -= rate * error
        total += error ** 2
    return total

for k in range(8):
    check(epoch(0.1))
check(w, data, random.random())
""",
    ),
    Program(
        "bigrams of characters with a table of counts",
        """
text = "the cat sat on the mat and the dog sat on the log"
chars = sorted(set(text))
index = {c: k for k, c in enumerate(chars)}
table = [[0.0 for _ in chars] for _ in chars]

@mgjit.compile
def step(a, b, rate):
    row = table[index[a]]
    largest = max(row)
    e = [math.exp(x - largest) for x in row]
    total = sum(e)
    for k in range(len(row)):
        row[k] -= rate * (e[k] / total - (1.0 if k == index[b] else 0.0))
    return -math.log(e[index[b]] / total)

for a, b in zip(text, text[1:]):
    check(step(a, b, 0.5))
check(table)
""",
    ),
    Program(
        "characters as ints",
        """
text = "the cat sat on the mat"
chars = sorted(set(text))
ids = [chars.index(c) for c in text]
table = [[0.0 for _ in chars] for _ in chars]

@mgjit.compile
def step(a, b, rate):
    row = table[a]
    e = [math.exp(x) for x in row]
    total = sum(e)
    for k in range(len(row)):
        row[k] -= rate * e[k] / total
    row[b] += rate
    return -math.log(e[b] / total)

for a, b in zip(ids, ids[1:]):
    check(step(a, b, 0.5))
check(table)
""",
    ),
    Program(
        "a recurrent network that keeps its hidden state",
        """
class RNN:
    def __init__(self, n):
        rng = random.Random(2)
        self.h = [0.0] * n
        self.Wh = [[rng.gauss(0, 0.3) for _ in range(n)] for _ in range(n)]
        self.Wx = [rng.gauss(0, 0.3) for _ in range(n)]
        self.Wy = [rng.gauss(0, 0.3) for _ in range(n)]
    @mgjit.compile
    def step(self, x, y, rate):
        before = self.h
        self.h = [math.tanh(sum(a * b for a, b in zip(row, before)) + w * x) for row, w in zip(self.Wh, self.Wx)]
        p = sum(a * b for a, b in zip(self.Wy, self.h))
        d = p - y
        for i, h in enumerate(self.h):
            g = d * self.Wy[i] * (1.0 - h * h)
            self.Wy[i] -= rate * d * h
            self.Wx[i] -= rate * g * x
            for j, b in enumerate(before):
                self.Wh[i][j] -= rate * g * b
        return d * d

rnn = RNN(3)
for k in range(12):
    check(rnn.step(math.sin(k), math.sin(k + 1), 0.1))
check(rnn.h, rnn.Wh, rnn.Wx, rnn.Wy)
""",
    ),
    Program(
        "k-means, one point at a time",
        """
centers = [[0.0, 0.0], [1.0, 1.0]]
counts = [1, 1]

@mgjit.compile
def step(point):
    distances = [sum((a - b) ** 2 for a, b in zip(point, c)) for c in centers]
    best = distances.index(min(distances))
    counts[best] += 1
    for j in range(2):
        centers[best][j] += (point[j] - centers[best][j]) / counts[best]
    return distances[best]

rng = random.Random(3)
for k in range(12):
    check(step([rng.random(), rng.random()]))
check(centers, counts)
""",
    ),
    Program(
        "matrix factorisation with ratings (user, item, stars)",
        """
rng = random.Random(1)
users = [[rng.random() for _ in range(2)] for _ in range(3)]
items = [[rng.random() for _ in range(2)] for _ in range(4)]

@mgjit.compile
def step(rating, rate):
    u, i, stars = rating
    error = stars - sum(a * b for a, b in zip(users[u], items[i]))
    for f in range(2):
        a, b = users[u][f], items[i][f]
        users[u][f] += rate * (error * b - 0.02 * a)
        items[i][f] += rate * (error * a - 0.02 * b)
    return error ** 2

for k in range(16):
    check(step((k % 3, k % 4, 1 + k % 5), 0.05))
check(users, items)
""",
    ),
    Program(
        "word vectors with negative samples",
        """
random.seed(6)
vectors = [[random.uniform(-0.5, 0.5) for _ in range(2)] for _ in range(5)]
contexts = [[0.0, 0.0] for _ in range(5)]

@mgjit.compile
def step(word, context, rate):
    total = 0.0
    for target, label in [(context, 1.0), (random.randrange(5), 0.0)]:
        p = 1.0 / (1.0 + math.exp(-sum(a * b for a, b in zip(vectors[word], contexts[target]))))
        g = rate * (label - p)
        total += (label - p) ** 2
        for k in range(2):
            old = vectors[word][k]
            vectors[word][k] += g * contexts[target][k]
            contexts[target][k] += g * old
    return total

for k in range(16):
    check(step(k % 5, (k * 3 + 1) % 5, 0.5))
check(vectors, contexts, random.random())
""",
    ),
    Program(
        "dropout and a mode",
        """
random.seed(8)
class Model:
    def __init__(self):
        self.training = True
        self.w = [0.5, -0.5, 0.25]
    def __call__(self, x):
        if self.training:
            x = [a * (random.random() < 0.8) / 0.8 for a in x]
        return sum(a * b for a, b in zip(self.w, x))

model = Model()

@mgjit.compile
def step(x, y):
    d = model(x) - y
    for k in range(3):
        model.w[k] -= 0.1 * d * x[k]
    return d * d

for k in range(12):
    model.training = k % 4 != 3
    check(step([1.0, k / 3, -0.5], 0.5))
check(model.w, random.random())
""",
    ),
    Program(
        "a learning rate that decays by itself",
        """
class Schedule:
    def __init__(self):
        self.t, self.rate = 0, 0.5
    def next(self):
        self.t += 1
        if self.t % 5 == 0:
            self.rate *= 0.5
        return self.rate

schedule, w = Schedule(), [0.0]

@mgjit.compile
def step(x, y):
    d = w[0] * x - y
    w[0] -= schedule.next() * d * x
    return d * d

for k in range(16):
    check(step(0.5, 1.0))
check(w, schedule.t, schedule.rate)
""",
    ),
    Program(
        "Adam, with its state in a dict of dicts",
        """
params = {"w": [0.5, -0.5], "b": [0.0]}
state = {}

def adam(name, k, g, t):
    s = state.setdefault((name, k), {"m": 0.0, "v": 0.0})
    s["m"] = 0.9 * s["m"] + 0.1 * g
    s["v"] = 0.999 * s["v"] + 0.001 * g * g
    params[name][k] -= 0.05 * (s["m"] / (1 - 0.9 ** t)) / (math.sqrt(s["v"] / (1 - 0.999 ** t)) + 1e-8)

@mgjit.compile
def step(x, y, t):
    d = sum(a * b for a, b in zip(params["w"], x)) + params["b"][0] - y
    for k in range(2):
        adam("w", k, 2.0 * d * x[k], t)
    adam("b", 0, 2.0 * d, t)
    return d * d

for k in range(12):
    check(step([k / 5, 1.0 - k / 7], 0.5, k + 1))
check(params, state)
""",
    ),
    Program(
        "text that is printed every few calls",
        """
w, seen = [0.0], [0]

@mgjit.compile
def step(x, y):
    seen[0] += 1
    d = w[0] * x - y
    w[0] -= 0.1 * d * x
    if seen[0] % 5 == 0:
        print(f"step {seen[0]}: loss {d * d:.3f}")
    return d * d

for k in range(12):
    check(step(1.0, 0.5 + k % 2))
check(w, seen)
""",
    ),
]
