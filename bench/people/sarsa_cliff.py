"""SARSA on the cliff walk: a table in a list of lists of lists, and an episode in a function."""
import random

random.seed(6)
ROWS, COLS, ACTIONS = 4, 12, 4
alpha, gamma = 0.5, 1.0
q = [[[0.0] * ACTIONS for _ in range(COLS)] for _ in range(ROWS)]


def move(r, c, a):
    if a == 0:
        r = max(r - 1, 0)
    elif a == 1:
        c = min(c + 1, COLS - 1)
    elif a == 2:
        r = min(r + 1, ROWS - 1)
    else:
        c = max(c - 1, 0)
    if r == ROWS - 1 and 0 < c < COLS - 1:
        return ROWS - 1, 0, -100.0, False
    return r, c, -1.0, r == ROWS - 1 and c == COLS - 1


def choose(r, c, eps):
    if random.random() < eps:
        return random.randrange(ACTIONS)
    values = q[r][c]
    return values.index(max(values))


def episode(eps):
    r, c, total = ROWS - 1, 0, 0.0
    a = choose(r, c, eps)
    done = False
    while not done:
        r2, c2, reward, done = move(r, c, a)
        a2 = choose(r2, c2, eps)
        target = reward + (0.0 if done else gamma * q[r2][c2][a2])
        q[r][c][a] += alpha * (target - q[r][c][a])
        r, c, a = r2, c2, a2
        total += reward
    return total


running = 0.0
for n in range(240000):
    running = 0.99 * running + 0.01 * episode(0.1)
    if n % 40000 == 0:
        print(n, running)
print([max(cell) for cell in q[2]])
