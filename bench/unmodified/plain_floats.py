"""No autograd: logistic regression with derivatives by hand, in nested loops over lists of floats."""

import math
import random
import sys

random.seed(9)
n = 6
data = [([random.gauss(0, 1) for _ in range(n)], random.randrange(2)) for _ in range(40)]
w = [0.0] * n
b = 0.0
rate = 0.1
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1500):
    gw = [0.0] * n
    gb = 0.0
    loss = 0.0
    for x, y in data:
        z = b
        for wi, xi in zip(w, x):
            z += wi * xi
        p = 1.0 / (1.0 + math.exp(-z))
        loss -= y * math.log(p) + (1 - y) * math.log(1.0 - p)
        for k in range(n):
            gw[k] += (p - y) * x[k]
        gb += p - y
    for k in range(n):
        w[k] -= rate * gw[k] / len(data)
    b -= rate * gb / len(data)
    if epoch % 100 == 0:
        print(epoch, loss / len(data))
print(w, b)
