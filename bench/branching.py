"""More steps that branch on their numbers, for branches.py: policies, clips, searches, look-ups, exceptions.

Each takes a `Model` of branches.py and a row of numbers.
"""

from __future__ import annotations

import math
import random
from typing import Any

ACTIONS = 4


def scores_of(model: Any, xs: list[float]) -> list[float]:
    """A linear policy: a score for each action."""
    return [sum(p.data * x for p, x in zip(model.parameters[32 * k : 32 * k + 32], xs)) for k in range(ACTIONS)]


def probabilities(scores: list[float]) -> list[float]:
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    total = sum(weights)
    return [w / total for w in weights]


# ---- policies and bandits -----------------------------------------------------------------------------------


def reinforce(model: Any, xs: list[float]) -> Any:
    ps = probabilities(scores_of(model, xs))
    u, action = random.random(), 0
    while action < ACTIONS - 1 and u > ps[action]:
        u -= ps[action]
        action += 1
    reward = 1.0 if xs[action] > 0.0 else -0.2
    for k in range(ACTIONS):
        gradient = (1.0 if k == action else 0.0) - ps[k]
        for p, x in zip(model.parameters[32 * k : 32 * k + 32], xs):
            p.data += 0.01 * reward * gradient * x
    return action, reward


def actor_critic(model: Any, xs: list[float]) -> Any:
    value = sum(w * x for w, x in zip(model.rows[0], xs))
    ps = probabilities(scores_of(model, xs))
    action = 0 if random.random() < ps[0] + ps[1] else 1
    advantage = (1.0 if action == (xs[1] > 0.0) else 0.0) - value
    for j in range(16):
        model.rows[0][j] += 0.05 * advantage * xs[j]
    sign = 1.0 if action == 0 else -1.0
    for p, x in zip(model.parameters[:32], xs):
        p.data += 0.01 * sign * advantage * x
    return action, value


def expected_sarsa(model: Any, xs: list[float]) -> Any:
    scores = scores_of(model, xs)
    best = scores.index(max(scores))
    expected = 0.9 * scores[best] + 0.1 * sum(scores) / ACTIONS
    error = xs[2] + 0.9 * expected - scores[0]
    for p, x in zip(model.parameters[:32], xs):
        p.data += 0.01 * error * x
    return best, error


def double_q(model: Any, xs: list[float]) -> Any:
    own, other = scores_of(model, xs), scores_of(model, xs[32:])
    if xs[3] > 0.0:
        own, other = other, own
    action = max(range(ACTIONS), key=own.__getitem__)
    target = xs[4] + 0.9 * other[action]
    error = target - own[action]
    for p, x in zip(model.parameters[32 * action : 32 * action + 32], xs):
        p.data += 0.01 * error * x
    return action, error


def upper_confidence(model: Any, xs: list[float]) -> Any:
    scores = scores_of(model, xs)
    total = sum(model.counts) + 1
    bounds = [s + math.sqrt(2.0 * math.log(total) / (n + 1)) for s, n in zip(scores, model.counts)]
    action = bounds.index(max(bounds))
    model.counts[action] += 1
    for p, x in zip(model.parameters[32 * action : 32 * action + 32], xs):
        p.data += 0.01 * (xs[5] - scores[action]) * x
    return action


def clipped_ratio(model: Any, xs: list[float]) -> Any:
    ratio = math.exp(0.1 * sum(p.data * x for p, x in zip(model.parameters, xs)))
    advantage = xs[6]
    low, high = 0.8, 1.2
    if advantage > 0.0 and ratio > high:
        return 0.0
    if advantage < 0.0 and ratio < low:
        return 0.0
    for p, x in zip(model.parameters, xs):
        p.data += 0.01 * advantage * ratio * x
    return ratio


def cart(model: Any, xs: list[float]) -> Any:
    position, speed, angle, turn = xs[0], xs[1], 0.2 * xs[2], xs[3]
    push = 10.0 if sum(p.data * x for p, x in zip(model.parameters, xs)) > 0.0 else -10.0
    for _ in range(4):
        pull = (push + 0.05 * turn * turn * math.sin(angle)) / 1.1
        bend = (9.8 * math.sin(angle) - math.cos(angle) * pull) / (0.5 * (4.0 / 3.0 - 0.1 * math.cos(angle) ** 2 / 1.1))
        speed, turn = speed + 0.02 * pull, turn + 0.02 * bend
        position, angle = position + 0.02 * speed, angle + 0.02 * turn
    done = abs(position) > 0.9 or abs(angle) > 0.2
    for p, x in zip(model.parameters, xs):
        p.data += (-0.01 if done else 0.001) * x
    return done, position, angle


def tournament(model: Any, xs: list[float]) -> Any:
    scores = scores_of(model, xs)
    first, second = (0, 1) if scores[0] > scores[1] else (1, 0)
    winner = first if scores[first] > scores[2] else 2
    for p, q in zip(model.parameters[32 * second : 32 * second + 32], model.parameters[32 * winner : 32 * winner + 32]):
        p.data = 0.9 * p.data + 0.1 * q.data
    return winner


# ---- clips and skips ----------------------------------------------------------------------------------------


def warm_up(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    model.skipped += 1
    rate = 0.1 * model.skipped / 100 if model.skipped < 100 else 0.1
    for p in model.parameters:
        p.data -= rate * p.grad
    return loss, rate


def clip_and_count(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    norm = math.sqrt(sum(p.grad * p.grad for p in model.parameters))
    if norm > 1.0:
        model.worse += 1
        for p in model.parameters:
            p.grad /= norm
    elif norm < 1e-4:
        return None
    model.update()
    return loss, norm


def early_stop(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    if loss < model.best - 1e-3:
        model.best, model.worse = loss, 0
    else:
        model.worse += 1
        if model.worse >= 3:
            model.worse, model.rate = 0, max(0.5 * model.rate, 1e-3)
    model.update()
    return model.best


def project_to_ball(model: Any, xs: list[float]) -> Any:
    model.gradients(xs)
    model.update()
    norm = math.sqrt(sum(p.data * p.data for p in model.parameters))
    if norm > 2.0:
        for p in model.parameters:
            p.data *= 2.0 / norm
    return norm


def trust_region(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    moved = sum((p.data - model.scale * p.grad) * x for p, x in zip(model.parameters, xs)) - xs[0]
    gain = (loss - moved * moved) / (model.scale * sum(p.grad * p.grad for p in model.parameters) + 1e-9)
    if gain > 0.75:
        model.scale = min(2.0 * model.scale, 16.0)
    elif gain < 0.25:
        model.scale *= 0.25
    if gain > 0.0:
        for p in model.parameters:
            p.data -= model.scale * p.grad
    return gain


# ---- searches and loops -------------------------------------------------------------------------------------


def bisection(model: Any, xs: list[float]) -> Any:
    low, high = -8.0, 8.0
    slope = 1.0 + abs(model.parameters[0].data)
    while high - low > 0.05:
        middle = 0.5 * (low + high)
        if math.tanh(slope * middle) + 0.1 * middle < xs[0]:
            low = middle
        else:
            high = middle
    model.parameters[0].data += 0.01 * (0.5 * (low + high) - model.parameters[0].data)
    return low


def newton(model: Any, xs: list[float]) -> Any:
    w = model.parameters[1].data
    steps = 0
    while steps < 20:
        f = w * w * w - w - xs[0]
        if abs(f) < 1e-9:
            break
        steps += 1
        w -= f / (3.0 * w * w - 1.0 + 1e-3)
    model.parameters[1].data = 0.9 * model.parameters[1].data + 0.1 * max(-2.0, min(2.0, w))
    return steps


def coordinate_search(model: Any, xs: list[float]) -> Any:
    row, moves = model.rows[1], 0
    for j in range(16):
        error = sum(w * x for w, x in zip(row, xs)) - xs[0]
        for change in (0.05, -0.05):
            if (error + change * xs[j]) ** 2 < error * error:
                row[j] += change
                moves += 1
                break
    return moves


def power_iteration(model: Any, xs: list[float]) -> Any:
    v, last, rounds = [1.0, 0.5, 0.25, 0.125], 0.0, 0
    matrix = [[xs[4 * i + j] + xs[4 * j + i] + (3.0 if i == j == 0 else 0.0) for j in range(4)] for i in range(4)]
    while rounds < 12:
        v = [sum(a * b for a, b in zip(line, v)) for line in matrix]
        norm = math.sqrt(sum(a * a for a in v))
        v = [a / norm for a in v]
        rounds += 1
        if abs(norm - last) < 0.05:
            break
        last = norm
    model.parameters[2].data = norm
    return rounds, norm


def beam(model: Any, xs: list[float]) -> Any:
    beams = [(0.0, 0)]
    for depth in range(3):
        pairs = [(score, 2 * state + side) for score, state in beams for side in (0, 1)]
        found = [(score + xs[8 * depth + following], following % 4) for score, following in pairs]
        beams = sorted(found, key=lambda pair: -pair[0])[:2]
    model.counts[beams[0][1]] += 1
    return beams[0]


# ---- look-ups -----------------------------------------------------------------------------------------------


def binned(model: Any, xs: list[float]) -> Any:
    bin_ = min(3, max(0, int(2.0 * (xs[0] + 1.0))))
    model.counts[bin_] += 1
    error = model.parameters[bin_].data - xs[1]
    model.parameters[bin_].data -= 0.1 * error
    return bin_, error


def tiles(model: Any, xs: list[float]) -> Any:
    tile = 8 * int(4.0 * (xs[0] + 1.0) * 0.999) + int(4.0 * (xs[1] + 1.0) * 0.999)
    error = xs[2] - model.parameters[tile].data
    model.parameters[tile].data += 0.1 * error
    return error


def interpolated(model: Any, xs: list[float]) -> Any:
    place = 7.0 * (xs[0] + 1.0)
    k = int(place)
    part = place - k
    row = model.rows[2]
    value = (1.0 - part) * row[k] + part * row[k + 1]
    error = value - xs[1]
    row[k] -= 0.1 * error * (1.0 - part)
    row[k + 1] -= 0.1 * error * part
    return error


def named_by_sign(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    key = "n" if loss > 1.0 else "sum"
    model.table[key] += 1
    model.update()
    return key


def majority(model: Any, xs: list[float]) -> Any:
    votes = [0, 0]
    for row in model.rows:
        votes[sum(w * x for w, x in zip(row, xs)) > 0.0] += 1
    if votes[0] != votes[1]:
        model.counts[votes.index(max(votes))] += 1
    return votes


# ---- exceptions ---------------------------------------------------------------------------------------------


def overflowing(model: Any, xs: list[float]) -> Any:
    score = sum(p.data * x for p, x in zip(model.parameters, xs))
    try:
        odds = math.exp(400.0 * score)
    except OverflowError:
        odds = math.inf
    error = odds / (1.0 + odds) if odds < math.inf else 1.0
    for p, x in zip(model.parameters, xs):
        p.data -= 0.01 * (error - (xs[0] > 0.0)) * x
    return error


def log_of_negative(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    try:
        told = math.log(xs[0])
    except ValueError:
        told = -9.0
    model.update()
    return told, loss


def division(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    active = max(0.0, xs[0])
    try:
        rate = 0.01 / active
    except ZeroDivisionError:
        rate = 0.0
    for p in model.parameters:
        p.data -= min(rate, 0.05) * p.grad
    return loss


def checked(model: Any, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    try:
        assert loss < 4.0, "the loss explodes"
    except AssertionError:
        model.skipped += 1
        return None
    model.update()
    return loss


def key_missing(model: Any, xs: list[float]) -> Any:
    names = {0: "a", 1: "b", 2: "c"}
    try:
        name = names[int(4.0 * abs(xs[0]))]
    except KeyError:
        name = "other"
    loss = model.gradients(xs)
    model.update()
    return name, loss


MORE = [
    reinforce, actor_critic, expected_sarsa, double_q, upper_confidence, clipped_ratio, cart, tournament, warm_up,
    clip_and_count, early_stop, project_to_ball, trust_region, bisection, newton, coordinate_search, power_iteration,
    beam, binned, tiles, interpolated, named_by_sign, majority, overflowing, log_of_negative, division, checked,
    key_missing,
]  # fmt: skip
