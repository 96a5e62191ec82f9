"""A small language model over an autograd class of its own: nothing but the decorator knows of mgjit.

Token and position embeddings, one causal attention head, a hidden layer, cross-entropy of the next letter, Adam with
its moments in plain lists. Words of different lengths are traced once a length; tokens and targets are run-time inputs.

Run: python bench/own_class.py; with MGJIT_BACKGROUND=0 the table at the end has what each length has cost.
"""

import math
import random
import time

import mgjit


class Scalar:
    """A number, the numbers it was computed from, and the derivatives with respect to them."""

    __slots__ = ("data", "derivatives", "grad", "operands")

    def __init__(self, data, operands=(), derivatives=()):
        self.data, self.grad, self.operands, self.derivatives = data, 0, operands, derivatives

    def __add__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other):
        return self + other * -1

    def __truediv__(self, other):
        return self * (other.inverse() if isinstance(other, Scalar) else 1 / other)

    def inverse(self):
        return Scalar(1 / self.data, (self,), (-1 / (self.data * self.data),))

    def exp(self):
        result = math.exp(self.data)
        return Scalar(result, (self,), (result,))

    def log(self):
        return Scalar(math.log(self.data), (self,), (1 / self.data,))

    def relu(self):
        return Scalar(self.data if self.data > 0 else 0.0, (self,), (1.0 if self.data > 0 else 0.0,))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for operand in node.operands:
                    visit(operand)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            for operand, derivative in zip(node.operands, node.derivatives):
                operand.grad += derivative * node.grad


WORDS = ["ada", "anna", "carl", "edsger", "emmy", "grace", "hedy", "katherine", "margaret", "radia", "sophie"]
LETTERS = sorted(set("".join(WORDS)))
END = len(LETTERS)
SIZE, HIDDEN, LONGEST = 8, 16, 12

draw = random.Random(1)


def matrix(rows, columns):
    return [[Scalar(draw.gauss(0, 0.2)) for _ in range(columns)] for _ in range(rows)]


letters, places = matrix(END + 1, SIZE), matrix(LONGEST, SIZE)
query, key, value = matrix(SIZE, SIZE), matrix(SIZE, SIZE), matrix(SIZE, SIZE)
wide, narrow, head = matrix(HIDDEN, SIZE), matrix(SIZE, HIDDEN), matrix(END + 1, SIZE)
parameters = [p for m in (letters, places, query, key, value, wide, narrow, head) for row in m for p in row]
first, second = [0.0] * len(parameters), [0.0] * len(parameters)


def times(m, x):
    return [sum(w * v for w, v in zip(row, x)) for row in m]


def softmax(scores):
    biggest = max(score.data for score in scores)
    exps = [(score - biggest).exp() for score in scores]
    total = sum(exps)
    return [e / total for e in exps]


def next_letter(token, place, keys, values):
    x = [a + b for a, b in zip(letters[token], places[place])]
    keys.append(times(key, x))
    values.append(times(value, x))
    q = times(query, x)
    weights = softmax([sum(a * b for a, b in zip(q, k)) / SIZE**0.5 for k in keys])
    x = [a + sum(w * v[i] for w, v in zip(weights, values)) for i, a in enumerate(x)]
    hidden = [h.relu() for h in times(wide, x)]
    return softmax(times(head, [a + b for a, b in zip(x, times(narrow, hidden))]))


@mgjit.compile
def train_step(tokens, t, lr=0.01):
    keys, values, losses = [], [], []
    for place in range(len(tokens) - 1):
        probabilities = next_letter(tokens[place], place, keys, values)
        losses.append(probabilities[tokens[place + 1]].log() * -1)
    loss = sum(losses) / len(losses)
    loss.backward()
    for i, p in enumerate(parameters):
        first[i] = 0.9 * first[i] + 0.1 * p.grad
        second[i] = 0.99 * second[i] + 0.01 * p.grad * p.grad
        p.data -= lr * (first[i] / (1 - 0.9**t)) / ((second[i] / (1 - 0.99**t)) ** 0.5 + 1e-8)
        p.grad = 0
    return loss


if __name__ == "__main__":
    words = [[END, *map(LETTERS.index, word), END] for word in WORDS]
    started = time.perf_counter()
    for t in range(1, 401):
        loss = train_step(words[t % len(words)], t)
        if t % 100 == 0 or t == 1:
            print(f"step {t:4d}: loss {loss.data:.4f}, {time.perf_counter() - started:6.2f} s")
    print(f"{train_step.stats.traces} lengths traced, {train_step.stats.records:,} records in the last trace")
    print(train_step.stats.table())
