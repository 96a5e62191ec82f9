"""REINFORCE with a linear softmax policy; the action is found by walking down the probabilities."""
import math
import random

random.seed(12)
N, ACTIONS = 6, 3
theta = [[0.0] * N for _ in range(ACTIONS)]


def policy(state):
    scores = [sum(t * s for t, s in zip(row, state)) for row in theta]
    top = max(scores)
    exps = [math.exp(s - top) for s in scores]
    total = sum(exps)
    return [e / total for e in exps]


def sample(probs):
    r, acc = random.random(), 0.0
    for action, p in enumerate(probs):
        acc += p
        if r < acc:
            return action
    return len(probs) - 1


baseline = 0.0
for episode in range(40000):
    state, history, reward = [random.uniform(-1, 1) for _ in range(N)], [], 0.0
    for t in range(10):
        probs = policy(state)
        action = sample(probs)
        reward += 1.0 if (state[0] > 0) == (action == 1) else -0.5
        history.append((state, action, probs))
        state = [0.8 * s + 0.2 * random.uniform(-1, 1) for s in state]
    for state, action, probs in history:
        for a in range(ACTIONS):
            g = (1.0 if a == action else 0.0) - probs[a]
            for i in range(N):
                theta[a][i] += 0.01 * (reward - baseline) * g * state[i]
    baseline += 0.05 * (reward - baseline)
    if episode % 8000 == 0:
        print(episode, baseline)
print(theta)
