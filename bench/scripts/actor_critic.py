"""Actor and critic on a windy grid: both learn at every move, with a compiled policy that chooses the moves."""

import math
import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "300"))
SIDE, ACTIONS = 5, 4
random.seed(23)
actor, critic = nn.MLP(2 * SIDE, [40, ACTIONS], seed=1), nn.MLP(2 * SIDE, [40, 1], seed=2)


def seen(row, column):
    return [float(row == k) for k in range(SIDE)] + [float(column == k) for k in range(SIDE)]


@mgjit.compile
def policy(observation):
    return actor(observation)


@mgjit.compile
def learn(observation, action, reward, following, alive, lr):
    target = reward + 0.95 * alive * critic(following).data
    value = critic(observation)
    advantage = target - value.data
    scores = actor(observation)
    top = max(s.data for s in scores)
    normaliser = mgjit.log(sum(mgjit.exp(s - top) for s in scores)) + top
    chosen = mgjit.dot(scores, mgjit.one_hot(action, ACTIONS))
    loss = (normaliser - chosen) * advantage + 0.5 * (value - target) ** 2
    actor.zero_grad()
    critic.zero_grad()
    loss.backward()
    for p in actor.parameters():
        p.data -= lr * p.grad
    for p in critic.parameters():
        p.data -= 2 * lr * p.grad
    return loss, advantage


def moved(row, column, action):
    row, column = row + (-1, 1, 0, 0)[action], column + (0, 0, -1, 1)[action]
    if random.random() < 0.1:
        row += 1  # the wind
    return min(max(row, 0), SIDE - 1), min(max(column, 0), SIDE - 1)


row, column, found, moves = 0, 0, 0, 0
for k in range(STEPS):
    observation = seen(row, column)
    powers = [math.exp(s.data) for s in policy(observation)]
    action = random.choices(range(ACTIONS), weights=powers)[0]
    row, column = moved(row, column, action)
    moves += 1
    goal = row == column == SIDE - 1
    loss, advantage = learn(observation, action, 1.0 if goal else -0.02, seen(row, column), 0.0 if goal else 1.0, 0.05)
    if goal or moves == 40:
        found += goal
        print("after", k + 1, "found" if goal else "lost", "in", moves, "loss", loss.data, "advantage", advantage)
        row, column, moves = 0, 0, 0
print("found", found, "checksum", sum(p.data for p in actor.parameters() + critic.parameters()))
