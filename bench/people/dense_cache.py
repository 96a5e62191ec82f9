"""Dense layers by hand: each keeps what it needs for its backward pass in self.cache."""
import math
import random

random.seed(3)


class Dense:
    def __init__(self, n_in, n_out):
        scale = math.sqrt(1.0 / n_in)
        self.w = [[random.gauss(0, scale) for _ in range(n_in)] for _ in range(n_out)]
        self.b = [0.0] * n_out

    def forward(self, x):
        self.cache = x
        return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(self.w, self.b)]

    def backward(self, grad):
        x = self.cache
        self.dw = [[g * v for v in x] for g in grad]
        self.db = list(grad)
        return [sum(self.w[j][i] * grad[j] for j in range(len(grad))) for i in range(len(x))]

    def step(self, lr):
        for j in range(len(self.w)):
            for i in range(len(self.w[j])):
                self.w[j][i] -= lr * self.dw[j][i]
            self.b[j] -= lr * self.db[j]


class Tanh:
    def forward(self, x):
        y = [math.tanh(v) for v in x]
        self.cache = (x, y)
        return y

    def backward(self, grad):
        _, y = self.cache
        return [g * (1 - a * a) for g, a in zip(grad, y)]

    def step(self, lr):
        pass


class Network:
    def __init__(self, layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad):
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        return grad

    def step(self, lr):
        for layer in self.layers:
            layer.step(lr)


net = Network([Dense(2, 12), Tanh(), Dense(12, 12), Tanh(), Dense(12, 1)])
points = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(60)]
data = [(list(p), [math.sin(3 * p[0]) * p[1]]) for p in points]
for epoch in range(900):
    total = 0.0
    random.shuffle(data)
    for x, target in data:
        out = net.forward(x)
        grad = [o - t for o, t in zip(out, target)]
        total += 0.5 * sum(g * g for g in grad)
        net.backward(grad)
        net.step(0.05)
    if epoch % 100 == 0:
        print(f"epoch {epoch} loss {total / len(data):.6f}")
print(net.forward([0.3, -0.7]))
