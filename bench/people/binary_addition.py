"""A recurrent network that learns to add binary numbers of eight digits, bit by bit, with everything in one loop."""
import math
import random

random.seed(0)
BITS, HIDDEN = 8, 10
alpha = 0.1


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def digits(n):
    return [(n >> k) & 1 for k in range(BITS)]


synapse_0 = [[2 * random.random() - 1 for _ in range(HIDDEN)] for _ in range(2)]
synapse_1 = [2 * random.random() - 1 for _ in range(HIDDEN)]
synapse_h = [[2 * random.random() - 1 for _ in range(HIDDEN)] for _ in range(HIDDEN)]

for j in range(10000):
    a_int = random.randrange(2 ** BITS // 2)
    b_int = random.randrange(2 ** BITS // 2)
    a, b, c = digits(a_int), digits(b_int), digits(a_int + b_int)
    overall = 0.0
    layers, deltas, guesses = [[0.0] * HIDDEN], [], []
    for t in range(BITS):
        x = [a[t], b[t]]
        h = [sigmoid(x[0] * synapse_0[0][k] + x[1] * synapse_0[1][k]
                     + sum(layers[-1][i] * synapse_h[i][k] for i in range(HIDDEN))) for k in range(HIDDEN)]
        y = sigmoid(sum(hk * s for hk, s in zip(h, synapse_1)))
        deltas.append((c[t] - y) * y * (1 - y))
        overall += abs(c[t] - y)
        guesses.append(y)
        layers.append(h)
    future = [0.0] * HIDDEN
    u0 = [[0.0] * HIDDEN for _ in range(2)]
    u1 = [0.0] * HIDDEN
    uh = [[0.0] * HIDDEN for _ in range(HIDDEN)]
    for t in reversed(range(BITS)):
        h, before = layers[t + 1], layers[t]
        dh = [(sum(future[i] * synapse_h[k][i] for i in range(HIDDEN)) + deltas[t] * synapse_1[k]) * h[k] * (1 - h[k])
              for k in range(HIDDEN)]
        for k in range(HIDDEN):
            u1[k] += h[k] * deltas[t]
            u0[0][k] += a[t] * dh[k]
            u0[1][k] += b[t] * dh[k]
            for i in range(HIDDEN):
                uh[i][k] += before[i] * dh[k]
        future = dh
    for k in range(HIDDEN):
        synapse_1[k] += alpha * u1[k]
        synapse_0[0][k] += alpha * u0[0][k]
        synapse_0[1][k] += alpha * u0[1][k]
        for i in range(HIDDEN):
            synapse_h[i][k] += alpha * uh[i][k]
    if j % 2000 == 0:
        print("Error:", overall, "Pred:", [round(g) for g in guesses], "True:", c)
print(synapse_1)
