"""Deep Q-learning on a chain of rooms: replay buffer, batches of eight, a target network copied now and then."""

import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "250"))
ROOMS, BATCH = 8, 8
rng = random.Random(31)
online, target = nn.MLP(ROOMS, [20, 2], seed=7), nn.MLP(ROOMS, [20, 2], seed=7)
first, second = mgjit.zeros(len(online.parameters())), mgjit.zeros(len(online.parameters()))


def one_hot(room):
    return [1.0 if k == room else 0.0 for k in range(ROOMS)]


def copied():
    for mine, theirs in zip(target.parameters(), online.parameters()):
        mine.data = theirs.data


@mgjit.compile
def values(state):
    return online(state)


@mgjit.compile
def train(states, actions, rewards, following, done, rate, correction):
    loss = 0.0
    for s, a, r, f, d in zip(states, actions, rewards, following, done):
        best = mgjit.maximum(*[q.data for q in target(f)])
        error = mgjit.dot(online(s), mgjit.one_hot(a, 2)) - (r + 0.9 * (1.0 - d) * best)
        loss = loss + error * error
    loss = loss * (1.0 / BATCH)
    online.zero_grad()
    loss.backward()
    for i, p in enumerate(online.parameters()):
        first[i] = 0.9 * first[i] + 0.1 * p.grad
        second[i] = 0.99 * second[i] + 0.01 * p.grad * p.grad
        p.data -= rate * first[i] / (mgjit.sqrt(second[i] * correction) + 1e-8)
    return loss


replay, room, total = [], 0, 0.0
for k in range(STEPS):
    qs = [q.data for q in values(one_hot(room))]
    explore = rng.random() < max(0.1, 1.0 - k / 150)
    action = rng.randrange(2) if explore else qs.index(max(qs))
    nxt = min(room + 1, ROOMS - 1) if action and rng.random() < 0.9 else max(room - 1, 0)
    reward, end = (1.0, 1.0) if nxt == ROOMS - 1 else (0.01 if nxt == 0 else 0.0, 0.0)
    replay.append((one_hot(room), action, reward, one_hot(nxt), end))
    total += reward
    room = 0 if end else nxt
    batch = [rng.choice(replay) for _ in range(BATCH)]
    columns = [list(column) for column in zip(*batch)]
    loss = train(*columns, 0.01 / (1 - 0.9 ** (k + 1)), 1 / (1 - 0.99 ** (k + 1)))
    if k % 25 == 24:
        copied()
    if k % 50 == 49 or k == STEPS - 1:
        print("step", k + 1, "loss", loss.data, "reward", total, "q", qs)
print("checksum", sum(p.data for p in online.parameters()), sum(p.data for p in target.parameters()))
