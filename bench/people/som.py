"""Self organising map of colours on a small grid."""
import math
import random


class SOM(object):
    def __init__(self, width, height, dim):
        self.width = width
        self.height = height
        self.nodes = []
        for i in range(width):
            for j in range(height):
                self.nodes.append((i, j, [random.random() for _ in range(dim)]))

    def best_matching_unit(self, vec):
        best, best_dist = None, float("inf")
        for node in self.nodes:
            d = 0.0
            for a, b in zip(node[2], vec):
                d += (a - b) ** 2
            if d < best_dist:
                best, best_dist = node, d
        return best

    def update(self, vec, radius, rate):
        bmu = self.best_matching_unit(vec)
        for (x, y, weights) in self.nodes:
            dist = (x - bmu[0]) ** 2 + (y - bmu[1]) ** 2
            influence = math.exp(-dist / (2 * radius * radius))
            for k in range(len(weights)):
                weights[k] += rate * influence * (vec[k] - weights[k])


random.seed(4)
colours = [[random.random() for _ in range(3)] for _ in range(60)]
som = SOM(9, 9, 3)
steps = 36000
for t in range(steps):
    frac = t / steps
    radius = 4.5 * math.exp(-frac * 2.5)
    rate = 0.2 * (1 - frac)
    som.update(random.choice(colours), radius, rate)
    if (t + 1) % 6000 == 0:
        q = sum(
            math.sqrt(sum((a - b) ** 2 for a, b in zip(som.best_matching_unit(c)[2], c))) for c in colours
        ) / len(colours)
        print("step", t + 1, "quantisation error", round(q, 6))
