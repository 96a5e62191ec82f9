"""The gradient bandit: preferences of ten arms, softmax, and a running baseline."""
import math
import random

random.seed(77)
ARMS, STEPS, RUNS = 10, 1000, 500


def softmax(h):
    top = max(h)
    e = [math.exp(v - top) for v in h]
    s = sum(e)
    return [v / s for v in e]


average = [0.0] * STEPS
for run in range(RUNS):
    means = [random.gauss(4, 1) for _ in range(ARMS)]
    preference, baseline = [0.0] * ARMS, 0.0
    for step in range(STEPS):
        pi = softmax(preference)
        action = random.choices(range(ARMS), weights=pi)[0]
        reward = random.gauss(means[action], 1)
        baseline += (reward - baseline) / (step + 1)
        for a in range(ARMS):
            preference[a] += 0.1 * (reward - baseline) * ((1.0 if a == action else 0.0) - pi[a])
        average[step] += reward / RUNS
    if run % 100 == 0:
        print("run", run, "best arm", means.index(max(means)), "preferred", preference.index(max(preference)))
print(average[0], average[100], average[-1])
