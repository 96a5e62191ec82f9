"""CartPole in plain Python, with Gymnasium's interface and numbers."""

import math
import random


class CartPole:
    """A pole on a cart that is pushed to the left (0) or to the right (1)."""

    def __init__(self, seed, limit=200):
        self.random, self.limit = random.Random(seed), limit

    def reset(self):
        """Begin anew."""
        self.state, self.count = [self.random.uniform(-0.05, 0.05) for _ in range(4)], 0
        return list(self.state), {}

    def step(self, action):
        """The next state, the reward, whether the pole has fallen, whether the time is over."""
        x, x_dot, theta, theta_dot = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(theta), math.sin(theta)
        temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        self.state = [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
        self.count += 1
        terminated = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * 2 * math.pi / 360
        return list(self.state), 1.0, terminated, self.count >= self.limit, {}
