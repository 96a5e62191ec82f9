"""Episodes of a walk: a rollout of varying length, then an update of the policy."""

import random
import sys

from engine import MLP, SGD, digest, softmax

rng = random.Random(17)
policy = MLP([1, 6, 2], 23)
optimiser = SGD(policy.parameters(), 0.01)
baseline = 0.0
for episode in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
    position, states, actions = 2, [], []
    while 0 < position < 5 and len(states) < 8:
        probabilities = [p.data for p in softmax(policy([position / 5]))]
        action = rng.choices([0, 1], weights=probabilities)[0]
        states.append(position / 5)
        actions.append(action)
        position += 1 if action else -1
    reward = 1.0 if position == 5 else 0.0
    advantage = reward - baseline
    baseline += 0.05 * advantage
    loss = 0
    for state, action in zip(states, actions):
        loss = softmax(policy([state]))[action].log() * -advantage + loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if episode % 20 == 0:
        print(episode, len(states), reward, loss.data, baseline)
print(digest(policy.parameters()))
