"""A linear-chain CRF that tags words: forward algorithm in log space, Viterbi in plain Python, varying sentences."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "150"))
TAGS, FEATURES = 10, 8
random.seed(19)


class Num:
    """An autograd class with one closure a node that returns the gradients of its operands."""

    def __init__(self, data, args=(), grads=None):
        self.data, self.args, self.grads, self.grad = data, args, grads, 0.0

    @staticmethod
    def of(x):
        return x if isinstance(x, Num) else Num(x)

    def __add__(self, other):
        other = Num.of(other)
        return Num(self.data + other.data, (self, other), lambda g: (g, g))

    def __sub__(self, other):
        other = Num.of(other)
        return Num(self.data - other.data, (self, other), lambda g: (g, -g))

    def __mul__(self, other):
        other = Num.of(other)
        return Num(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    __radd__ = __add__
    __rmul__ = __mul__

    def exp(self):
        e = math.exp(self.data)
        return Num(e, (self,), lambda g: (g * e,))

    def log(self):
        return Num(math.log(self.data), (self,), lambda g: (g / self.data,))

    def backprop(self):
        order, marked = [], set()

        def walk(n):
            marked.add(n)
            for a in n.args:
                if a not in marked:
                    walk(a)
            order.append(n)

        walk(self)
        self.grad = 1.0
        while order:
            n = order.pop()
            if n.grads:
                for a, g in zip(n.args, n.grads(n.grad)):
                    a.grad += g


emission = [[Num(random.gauss(0, 0.1)) for _ in range(FEATURES)] for _ in range(TAGS)]
transition = [[Num(random.gauss(0, 0.1)) for _ in range(TAGS)] for _ in range(TAGS)]
weights = [w for row in emission + transition for w in row]


def log_sum(scores):
    top = max(s.data for s in scores)
    total = sum((s - top).exp() for s in scores)
    return total.log() + top


def emissions(words):
    return [[sum(w * x for w, x in zip(row, word)) for row in emission] for word in words]


@mgjit.compile
def step(words, gold, lr):
    scores = emissions(words)
    alpha = scores[0]
    path = sum(s * g for s, g in zip(scores[0], gold[0]))
    for t in range(1, len(words)):
        alpha = [log_sum([alpha[i] + transition[i][j] for i in range(TAGS)]) + scores[t][j] for j in range(TAGS)]
        path = path + sum(s * g for s, g in zip(scores[t], gold[t]))
        for i in range(TAGS):
            for j in range(TAGS):
                path = path + transition[i][j] * (gold[t - 1][i] * gold[t][j])
    loss = log_sum(alpha) - path
    for w in weights:
        w.grad = 0.0
    loss.backprop()
    for w in weights:
        w.data -= lr * (w.grad + 0.01 * w.data)
    return loss


def viterbi(words):
    scores = [[sum(w.data * x for w, x in zip(row, word)) for row in emission] for word in words]
    best, back = scores[0], []
    for row in scores[1:]:
        came = [max(range(TAGS), key=lambda i, j=j, best=best: best[i] + transition[i][j].data) for j in range(TAGS)]
        best = [best[i] + transition[i][j].data + row[j] for j, i in enumerate(came)]
        back.append(came)
    tag = best.index(max(best))
    tags = [tag]
    for came in reversed(back):
        tag = came[tag]
        tags.append(tag)
    return tags[::-1]


prototypes = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(TAGS)]


def tagged():
    tag, words, tags = random.randrange(TAGS), [], []
    for _ in range(random.randint(3, 8)):
        words.append([x + random.gauss(0, 0.7) for x in prototypes[tag]])
        tags.append(tag)
        tag = (tag + random.choice([1, 1, 1, 2])) % TAGS
    return words, tags


held_out = [tagged() for _ in range(20)]
for k in range(STEPS):
    words, tags = tagged()
    loss = step(words, [[1.0 if t == j else 0.0 for j in range(TAGS)] for t in tags], 0.1)
    if k % 30 == 29 or k == STEPS - 1:
        right = sum(a == b for words, tags in held_out for a, b in zip(viterbi(words), tags))
        print("sentence", k + 1, "loss", loss.data, "right", right, "of", sum(len(tags) for _, tags in held_out))
print("checksum", sum(w.data for w in weights))
