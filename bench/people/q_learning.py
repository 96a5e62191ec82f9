"""Tabular Q-learning in a grid: `Q[s][a] += alpha * (r + gamma * max(Q[t]) - Q[s][a])`, epsilon-greedy."""
import random

random.seed(4)
SIZE = 8
GOAL, HOLES = (7, 7), {(2, 3), (4, 4), (5, 1), (6, 5)}
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def env_step(state, action):
    row = min(max(state[0] + MOVES[action][0], 0), SIZE - 1)
    col = min(max(state[1] + MOVES[action][1], 0), SIZE - 1)
    if (row, col) == GOAL:
        return (row, col), 1.0, True
    if (row, col) in HOLES:
        return (row, col), -1.0, True
    return (row, col), -0.01, False


Q = {(r, c): [0.0] * 4 for r in range(SIZE) for c in range(SIZE)}
alpha, gamma, epsilon = 0.1, 0.95, 0.2
for episode in range(120000):
    state, done, total, steps = (0, 0), False, 0.0, 0
    while not done and steps < 100:
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            action = Q[state].index(max(Q[state]))
        nxt, reward, done = env_step(state, action)
        Q[state][action] += alpha * (reward + gamma * max(Q[nxt]) * (not done) - Q[state][action])
        state, total, steps = nxt, total + reward, steps + 1
    if episode % 20000 == 0:
        print(episode, total, steps)
print(Q[(0, 0)], Q[(6, 7)])
