"""A contextual bandit in plain floats: softmax policy gradient over many customers at once, draws inside the step."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "200"))
FEATURES, ARMS, CUSTOMERS = 6, 4, 500
random.seed(77)
truth = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(ARMS)]


class Policy:
    def __init__(self):
        self.weights = [[0.0] * FEATURES for _ in range(ARMS)]
        self.baseline = 0.0
        self.served = 0

    def probabilities(self, context):
        scores = [sum(w * x for w, x in zip(row, context)) for row in self.weights]
        top = max(scores)
        exps = [math.exp(s - top) for s in scores]
        total = sum(exps)
        return [e / total for e in exps]


policy = Policy()


@mgjit.compile
def serve(contexts, rewards, lr):
    """Chooses an arm for each customer and learns from the rewards of the arms that were chosen."""
    gradient = [[0.0] * FEATURES for _ in range(ARMS)]
    earned = 0.0
    for context, reward in zip(contexts, rewards):
        p = policy.probabilities(context)
        u = random.random()
        edge = 0.0
        chosen = []
        for q in p:
            chosen.append(1.0 if edge <= u < edge + q else 0.0)
            edge += q
        r = sum(c * w for c, w in zip(chosen, reward))
        earned += r
        for a in range(ARMS):
            scale = (r - policy.baseline) * (chosen[a] - p[a])
            for j in range(FEATURES):
                gradient[a][j] += scale * context[j]
    for a in range(ARMS):
        for j in range(FEATURES):
            policy.weights[a][j] += lr * gradient[a][j] / len(contexts)
    policy.baseline += 0.1 * (earned / len(contexts) - policy.baseline)
    policy.served += len(contexts)
    return earned / len(contexts)


for day in range(STEPS):
    contexts = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(CUSTOMERS)]
    rewards = [[sum(t * x for t, x in zip(row, c)) + random.gauss(0, 0.1) for row in truth] for c in contexts]
    earned = serve(contexts, rewards, 0.3)
    if day % 40 == 0 or day == STEPS - 1:
        print("day", day, "earned", earned, "baseline", policy.baseline, "served", policy.served)
print(policy.weights)
