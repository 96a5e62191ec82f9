"""A polynomial fitted with Adam written by hand; parameters and moments in dicts."""
import math
import random

random.seed(31)
xs = [i / 20 - 1 for i in range(41)]
ys = [math.sin(3 * x) + random.gauss(0, 0.05) for x in xs]
params = {"c0": 0.0, "c1": 0.0, "c2": 0.0, "c3": 0.0, "c4": 0.0, "c5": 0.0}
m = {k: 0.0 for k in params}
v = {k: 0.0 for k in params}
lr, beta1, beta2, eps = 0.01, 0.9, 0.999, 1e-8


def evaluate(p, x):
    return p["c0"] + x * (p["c1"] + x * (p["c2"] + x * (p["c3"] + x * (p["c4"] + x * p["c5"]))))


for t in range(1, 60001):
    grads = {k: 0.0 for k in params}
    loss = 0.0
    for x, y in zip(xs, ys):
        e = evaluate(params, x) - y
        loss += e * e / len(xs)
        power = 1.0
        for k in params:
            grads[k] += 2 * e * power / len(xs)
            power *= x
    for k in params:
        m[k] = beta1 * m[k] + (1 - beta1) * grads[k]
        v[k] = beta2 * v[k] + (1 - beta2) * grads[k] ** 2
        m_hat = m[k] / (1 - beta1 ** t)
        v_hat = v[k] / (1 - beta2 ** t)
        params[k] -= lr * m_hat / (math.sqrt(v_hat) + eps)
    if t % 15000 == 0:
        print(t, loss)
print(params)
