"""A small GPT over made-up names, in the style of microgpt: a class of its own, one name a step, Adam in lists."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "200"))
WIDTH, HEADS, BLOCK = 8, 2, 10
random.seed(42)

syllables = [a + b for a in "bdklmnrst" for b in "aeiou"]
names = ["".join(random.choices(syllables, k=random.randint(1, 4))) + random.choice(["", "n", "s"]) for _ in range(300)]
letters = sorted(set("".join(names)))
BOS = len(letters)


class Value:
    __slots__ = ("_children", "_local_grads", "data", "grad")

    def __init__(self, data, children=(), local_grads=()):
        self.data = data
        self.grad = 0
        self._children = children
        self._local_grads = local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, other):
        return Value(self.data**other, (self,), (other * self.data ** (other - 1),))

    def log(self):
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def exp(self):
        return Value(math.exp(self.data), (self,), (math.exp(self.data),))

    def relu(self):
        return Value(max(0, self.data), (self,), (float(self.data > 0),))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __truediv__(self, other):
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v._children:
                    build(child)
                topo.append(v)

        build(self)
        self.grad = 1
        for v in reversed(topo):
            for child, local_grad in zip(v._children, v._local_grads):
                child.grad += local_grad * v.grad


def matrix(rows, columns):
    return [[Value(random.gauss(0, 0.1)) for _ in range(columns)] for _ in range(rows)]


wte, wpe, head = matrix(BOS + 1, WIDTH), matrix(BLOCK, WIDTH), matrix(BOS + 1, WIDTH)
wq, wk, wv, wo = (matrix(WIDTH, WIDTH) for _ in range(4))
fc1, fc2 = matrix(2 * WIDTH, WIDTH), matrix(WIDTH, 2 * WIDTH)
params = [p for mat in (wte, wpe, head, wq, wk, wv, wo, fc1, fc2) for row in mat for p in row]


def linear(x, w):
    return [sum(wi * xi for wi, xi in zip(row, x)) for row in w]


def softmax(logits):
    top = max(val.data for val in logits)
    exps = [(val - top).exp() for val in logits]
    total = sum(exps)
    return [e / total for e in exps]


def rmsnorm(x):
    scale = (sum(xi * xi for xi in x) / len(x) + 1e-5) ** -0.5
    return [xi * scale for xi in x]


def gpt(token, pos, keys, values):
    x = rmsnorm([t + p for t, p in zip(wte[token], wpe[pos])])
    before, x = x, rmsnorm(x)
    q = linear(x, wq)
    keys.append(linear(x, wk))
    values.append(linear(x, wv))
    attended = []
    size = WIDTH // HEADS
    for h in range(0, WIDTH, size):
        scores = [sum(q[j] * k[j] for j in range(h, h + size)) / size**0.5 for k in keys]
        weights = softmax(scores)
        attended += [sum(w * v[j] for w, v in zip(weights, values)) for j in range(h, h + size)]
    x = [a + b for a, b in zip(linear(attended, wo), before)]
    before, x = x, rmsnorm(x)
    x = linear([h.relu() for h in linear(x, fc1)], fc2)
    return linear([a + b for a, b in zip(x, before)], head)


m = [0.0] * len(params)
v = [0.0] * len(params)


@mgjit.compile
def train_step(step, tokens):
    n = min(BLOCK, len(tokens) - 1)
    keys, values, losses = [], [], []
    for pos in range(n):
        probs = softmax(gpt(tokens[pos], pos, keys, values))
        losses.append(-probs[tokens[pos + 1]].log())
    loss = sum(losses) * (1 / n)
    loss.backward()
    lr = 0.01 * (1 - step / STEPS)
    for i, p in enumerate(params):
        m[i] = 0.85 * m[i] + 0.15 * p.grad
        v[i] = 0.99 * v[i] + 0.01 * p.grad**2
        m_hat = m[i] / (1 - 0.85 ** (step + 1))
        v_hat = v[i] / (1 - 0.99 ** (step + 1))
        p.data -= lr * m_hat / (v_hat**0.5 + 1e-8)
        p.grad = 0
    return loss


for step in range(STEPS):
    name = names[step % len(names)]
    loss = train_step(step, [BOS, *map(letters.index, name), BOS])
    if step % 10 == 0 or step == STEPS - 1:
        print(f"step {step + 1} / {STEPS} | loss {loss.data!r}")

for _ in range(5):
    keys, values, token, sample = [], [], BOS, []
    for pos in range(BLOCK):
        probs = softmax([logit * 2.0 for logit in gpt(token, pos, keys, values)])
        token = random.choices(range(BOS + 1), weights=[p.data for p in probs])[0]
        if token == BOS:
            break
        sample.append(letters[token])
    print("sample:", "".join(sample))
print("checksum", sum(p.data for p in params))
