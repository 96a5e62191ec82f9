"""Exclusive or by a network of two layers over lists of lists, with everything in one loop at module level."""
import math
import random

random.seed(42)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


inputs = [[0, 0], [0, 1], [1, 0], [1, 1]]
outputs = [0, 1, 1, 0]
hidden = 4
w_hidden = [[random.uniform(-1, 1) for _ in range(2)] for _ in range(hidden)]
b_hidden = [0.0 for _ in range(hidden)]
w_out = [random.uniform(-1, 1) for _ in range(hidden)]
b_out = 0.0
lr = 0.5
for epoch in range(100000):
    loss = 0.0
    for x, y in zip(inputs, outputs):
        h = [sigmoid(sum(w * xi for w, xi in zip(w_hidden[j], x)) + b_hidden[j]) for j in range(hidden)]
        o = sigmoid(sum(w * hj for w, hj in zip(w_out, h)) + b_out)
        loss += (y - o) ** 2
        d_o = (y - o) * o * (1 - o)
        d_h = [d_o * w_out[j] * h[j] * (1 - h[j]) for j in range(hidden)]
        for j in range(hidden):
            w_out[j] += lr * d_o * h[j]
            for i in range(2):
                w_hidden[j][i] += lr * d_h[j] * x[i]
            b_hidden[j] += lr * d_h[j]
        b_out += lr * d_o
    if epoch % 20000 == 0:
        print(f"Epoch {epoch}, Loss: {loss:.6f}")
print(w_hidden, w_out, b_out)
