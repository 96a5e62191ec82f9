"""Weights of a small network found by evolution: a population, tournaments, crossover and mutation."""
import math
import random

random.seed(14)
POP, GENES, GENERATIONS = 60, 13, 4000
cases = [((a, b), float(a != b)) for a in (0, 1) for b in (0, 1)]


def forward(g, x):
    hidden = [math.tanh(g[3 * k] * x[0] + g[3 * k + 1] * x[1] + g[3 * k + 2]) for k in range(3)]
    return 1 / (1 + math.exp(-(g[9] * hidden[0] + g[10] * hidden[1] + g[11] * hidden[2] + g[12])))


def fitness(g):
    return -sum((forward(g, x) - t) ** 2 for x, t in cases)


def tournament(population, scores):
    picks = random.sample(range(len(population)), 3)
    return population[max(picks, key=lambda i: scores[i])]


population = [[random.gauss(0, 1) for _ in range(GENES)] for _ in range(POP)]
for generation in range(GENERATIONS):
    scores = [fitness(g) for g in population]
    best = max(range(POP), key=lambda i: scores[i])
    if generation % 1000 == 0:
        print("generation", generation, "best", scores[best])
    children = [population[best]]
    while len(children) < POP:
        mother, father = tournament(population, scores), tournament(population, scores)
        cut = random.randrange(1, GENES)
        child = mother[:cut] + father[cut:]
        children.append([w + random.gauss(0, 0.2) if random.random() < 0.3 else w for w in child])
    population = children
print([round(forward(population[0], x), 4) for x, _ in cases])
