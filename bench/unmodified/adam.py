"""Adam with moments in attributes of the parameters, made when they are first needed."""

import sys

from engine import MLP, digest


class Adam:
    def __init__(self, params, rate=0.01):
        self.params, self.rate, self.t = params, rate, 0

    def step(self):
        self.t += 1
        for p in self.params:
            if not hasattr(p, "m"):
                p.m = p.v = 0.0
            p.m = 0.9 * p.m + 0.1 * p.grad
            p.v = 0.999 * p.v + 0.001 * p.grad**2
            m, v = p.m / (1 - 0.9**self.t), p.v / (1 - 0.999**self.t)
            p.data -= self.rate * m / (v**0.5 + 1e-8)
            p.grad = 0.0


model = MLP([2, 10, 1], 77)
adam = Adam(model.parameters())
data = [([k / 8, k % 3 / 3], k % 2) for k in range(8)]
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    loss = sum((model(x)[0] - y) ** 2 for x, y in data)
    loss.backward()
    adam.step()
    if step % 30 == 0:
        print(step, loss.data, adam.t)
print(digest(model.parameters()))
