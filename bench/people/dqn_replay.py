"""Q-learning with a small neural network and a replay memory, on a corridor."""
import math
import random
from collections import deque

random.seed(12)


class QNet:
    def __init__(self, n_in, n_hid, n_out, lr):
        self.w1 = [[random.gauss(0, 0.3) for _ in range(n_in)] for _ in range(n_hid)]
        self.b1 = [0.0] * n_hid
        self.w2 = [[random.gauss(0, 0.3) for _ in range(n_hid)] for _ in range(n_out)]
        self.b2 = [0.0] * n_out
        self.lr = lr

    def __call__(self, s):
        self.s = s
        self.h = [math.tanh(sum(w * x for w, x in zip(row, s)) + b) for row, b in zip(self.w1, self.b1)]
        return [sum(w * x for w, x in zip(row, self.h)) + b for row, b in zip(self.w2, self.b2)]

    def step(self, action, target):
        q = self(self.s)
        err = q[action] - target
        row = self.w2[action]
        grads = [err * row[j] * (1 - self.h[j] ** 2) for j in range(len(self.h))]
        for j in range(len(self.h)):
            row[j] -= self.lr * err * self.h[j]
            for i in range(len(self.s)):
                self.w1[j][i] -= self.lr * grads[j] * self.s[i]
            self.b1[j] -= self.lr * grads[j]
        self.b2[action] -= self.lr * err


def encode(pos):
    return [math.cos(pos * k * 0.3) for k in range(1, 6)]


def env_step(pos, action):
    pos = max(0, min(11, pos + (1 if action == 1 else -1)))
    if pos == 11:
        return pos, 1.0, True
    return pos, -0.01, False


net = QNet(5, 16, 2, 0.02)
memory = deque(maxlen=800)
eps, gamma = 1.0, 0.95
for episode in range(320):
    pos, done, steps = 0, False, 0
    while not done and steps < 60:
        if random.random() < eps:
            action = random.randint(0, 1)
        else:
            q = net(encode(pos))
            action = 0 if q[0] > q[1] else 1
        nxt, reward, done = env_step(pos, action)
        memory.append((pos, action, reward, nxt, done))
        pos, steps = nxt, steps + 1
        if len(memory) >= 64:
            for p, a, r, n, d in random.sample(memory, 8):
                target = r if d else r + gamma * max(net(encode(n)))
                net(encode(p))
                net.step(a, target)
    eps = max(0.05, eps * 0.97)
    if episode % 40 == 39:
        print("episode", episode + 1, "steps", steps, "q0", [round(v, 4) for v in net(encode(0))])
