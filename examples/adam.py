"""Learn where an optimiser keeps its moments: a sine is fitted with Adam, whose moments are `mgjit.zeros`.

The step count is an ordinary argument, so the bias correction never compiles anything again.

Run: python examples/adam.py
"""

import math
import random

import mgjit
from mgjit import nn

hidden = nn.Layer(1, 24, nonlin=False)
output = nn.Neuron(24, nonlin=False)
parameters = hidden.parameters() + output.parameters()
m, v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))


def predict(x):
    return output([mgjit.tanh(h) for h in hidden([x])])


@mgjit.compile
def train_step(xs, ys, lr, t, beta1=0.9, beta2=0.999, eps=1e-8):
    loss = sum((predict(x) - y) ** 2 for x, y in zip(xs, ys)) / len(xs)
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for i, p in enumerate(parameters):
        m[i] = beta1 * m[i] + (1 - beta1) * p.grad
        v[i] = beta2 * v[i] + (1 - beta2) * p.grad**2
        m_hat = m[i] / (1 - beta1**t)
        v_hat = v[i] / (1 - beta2**t)
        p.data -= lr * m_hat / (mgjit.sqrt(v_hat) + eps)
    return loss


draw = random.Random(3)
STEPS = 2000
for t in range(1, STEPS + 1):
    xs = [draw.uniform(-math.pi, math.pi) for _ in range(16)]
    loss = train_step(xs, [math.sin(x) for x in xs], 0.01, t)
    if t == 1 or t % 400 == 0:
        print(f"step {t:4}  loss {loss:.6f}")

print()
for k in range(-6, 7, 2):
    x = k * math.pi / 6
    print(f"x {x:+.3f}  sin {math.sin(x):+.4f}  network {predict(x).data:+.4f}")
