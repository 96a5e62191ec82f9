"""`theta = gradient_step(theta, gradient, -rate)` over mini-batches, with vectors of helper functions."""
import random

random.seed(0)


def add(v, w):
    return [a + b for a, b in zip(v, w)]


def scalar_multiply(c, v):
    return [c * a for a in v]


def dot(v, w):
    return sum(a * b for a, b in zip(v, w))


def vector_mean(vectors):
    n = len(vectors)
    return [sum(vector[i] for vector in vectors) / n for i in range(len(vectors[0]))]


def gradient_step(v, gradient, step_size):
    return add(v, scalar_multiply(step_size, gradient))


def linear_gradient(x, y, theta):
    error = dot(theta, x) - y
    return [2 * error * v for v in x]


def minibatches(dataset, batch_size, shuffle=True):
    starts = [start for start in range(0, len(dataset), batch_size)]
    if shuffle:
        random.shuffle(starts)
    for start in starts:
        yield dataset[start:start + batch_size]


true = [0.5, -1.5, 2.0, 3.0, -0.25]
inputs = []
for _ in range(200):
    x = [1.0] + [random.uniform(-1, 1) for _ in range(4)]
    inputs.append((x, dot(true, x) + random.gauss(0, 0.1)))
theta = [random.uniform(-1, 1) for _ in range(5)]
learning_rate = 0.01
for epoch in range(14000):
    for batch in minibatches(inputs, batch_size=20):
        grad = vector_mean([linear_gradient(x, y, theta) for x, y in batch])
        theta = gradient_step(theta, grad, -learning_rate)
    if epoch % 2000 == 0:
        print(epoch, theta)
print(theta)
