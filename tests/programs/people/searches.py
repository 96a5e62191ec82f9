"""Bandits, Q-learning, and searches without gradients"""

from __future__ import annotations

from tests.programs.people.people import Program

PROGRAMS = [
    Program(
        "an epsilon-greedy bandit",
        """
random.seed(1)
values, counts = [0.0] * 4, [0] * 4
truth = [0.1, 0.5, 0.3, 0.8]

@mgjit.compile
def pull(epsilon):
    if random.random() < epsilon:
        arm = random.randrange(4)
    else:
        arm = values.index(max(values))
    reward = truth[arm] + random.gauss(0, 0.1)
    counts[arm] += 1
    values[arm] += (reward - values[arm]) / counts[arm]
    return reward

for k in range(30):
    check(pull(0.2))
check(values, counts, random.random())
""",
    ),
    Program(
        "upper confidence bounds",
        """
values, counts, total = [0.0] * 3, [1] * 3, [3]

@mgjit.compile
def pull(noise):
    scores = [v + math.sqrt(2.0 * math.log(total[0]) / n) for v, n in zip(values, counts)]
    arm = max(range(3), key=lambda a: scores[a])
    counts[arm] += 1
    total[0] += 1
    values[arm] += (0.2 * arm + noise - values[arm]) / counts[arm]
    return scores[arm]

for k in range(15):
    check(pull(math.sin(k) / 5))
check(values, counts, total)
""",
    ),
    Program(
        "a gradient bandit with a baseline",
        """
prefs, baseline = [0.0, 0.0, 0.0], [0.0]

@mgjit.compile
def learn(arm, reward, rate):
    e = [math.exp(p) for p in prefs]
    total = sum(e)
    baseline[0] += 0.1 * (reward - baseline[0])
    for k in range(3):
        p = e[k] / total
        prefs[k] += rate * (reward - baseline[0]) * ((1.0 if k == arm else 0.0) - p)
    return e[arm] / total

for k in range(15):
    check(learn(k % 3, math.cos(k), 0.1))
check(prefs, baseline)
""",
    ),
    Program(
        "Q-learning in a table, state and action as ints",
        """
Q = [[0.0, 0.0] for _ in range(5)]

@mgjit.compile
def update(s, a, r, t, alpha, gamma):
    target = r + gamma * max(Q[t])
    Q[s][a] += alpha * (target - Q[s][a])
    return Q[s][a]

for k in range(25):
    check(update(k % 5, k % 2, 1.0 if k % 5 == 4 else 0.0, (k + 1) % 5, 0.5, 0.9))
check(Q)
""",
    ),
    Program(
        "Q-learning in a dict of pairs",
        """
Q = {}

@mgjit.compile
def update(s, a, r, t):
    best = max(Q.get((t, b), 0.0) for b in "LR")
    old = Q.get((s, a), 0.0)
    Q[(s, a)] = old + 0.5 * (r + 0.9 * best - old)
    return Q[(s, a)]

for k in range(25):
    check(update(k % 4, "LR"[k % 2], float(k % 4 == 3), (k + 1) % 4))
check(Q)
""",
    ),
    Program(
        "Q-learning in a defaultdict, with a done flag",
        """
Q = collections.defaultdict(lambda: [0.0, 0.0])

@mgjit.compile
def update(s, a, r, t, done):
    target = r if done else r + 0.9 * max(Q[t])
    Q[s][a] += 0.5 * (target - Q[s][a])
    return target

for k in range(25):
    check(update(f"room {k % 4}", k % 2, 0.1 * k, f"room {(k + 1) % 4}", k % 4 == 3))
check(dict(Q))
""",
    ),
    Program(
        "an agent with a replay memory",
        """
random.seed(3)
class Agent:
    def __init__(self):
        self.memory = collections.deque(maxlen=20)
        self.w = [[0.0, 0.0], [0.0, 0.0]]
    def remember(self, *what):
        self.memory.append(what)
    @mgjit.compile
    def replay(self, n):
        total = 0.0
        for s, a, r, t in random.sample(list(self.memory), n):
            q = sum(x * y for x, y in zip(self.w[a], s))
            best = max(sum(x * y for x, y in zip(w, t)) for w in self.w)
            d = r + 0.9 * best - q
            for k in range(2):
                self.w[a][k] += 0.1 * d * s[k]
            total += d * d
        return total

agent = Agent()
for k in range(14):
    agent.remember((math.sin(k), 1.0), k % 2, float(k % 3), (math.sin(k + 1), 1.0))
    if k >= 4:
        check(agent.replay(4))
check(agent.w, random.random())
""",
    ),
    Program(
        "an episode inside of the step",
        """
random.seed(5)
V = [0.0] * 6

@mgjit.compile
def episode(alpha):
    s, steps = 2, 0
    while 0 < s < 5:
        t = s + random.choice((-1, 1))
        V[s] += alpha * ((1.0 if t == 5 else 0.0) + V[t] - V[s])
        s, steps = t, steps + 1
    return steps

for k in range(10):
    check(episode(0.1))
check(V, random.random())
""",
    ),
    Program(
        "policy gradient with a drawn action",
        """
random.seed(7)
theta = [0.0, 0.0]

@mgjit.compile
def play(rate):
    e = [math.exp(t) for t in theta]
    p = e[0] / sum(e)
    action = 0 if random.random() < p else 1
    reward = 1.0 if action == 1 else 0.2
    for k in range(2):
        grad = (1.0 if k == action else 0.0) - e[k] / sum(e)
        theta[k] += rate * reward * grad
    return reward

for k in range(20):
    check(play(0.2))
check(theta, random.random())
""",
    ),
    Program(
        "hill climbing, which keeps what is better",
        """
random.seed(2)
best = {"x": [0.0, 0.0], "score": -1e9}

def score(x):
    return -sum((a - 1.0) ** 2 for a in x)

@mgjit.compile
def climb(width):
    candidate = [a + random.gauss(0, width) for a in best["x"]]
    found = score(candidate)
    if found > best["score"]:
        best["x"], best["score"] = candidate, found
    return found

for k in range(20):
    check(climb(0.3))
check(best, random.random())
""",
    ),
    Program(
        "a generation of a genetic search",
        """
random.seed(9)
population = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(6)]

def fitness(genes):
    return -abs(sum(genes) - 1.0)

@mgjit.compile
def generation():
    population.sort(key=fitness, reverse=True)
    for k in range(3, 6):
        a, b = random.sample(population[:3], 2)
        cut = random.randrange(3)
        population[k] = [g + random.gauss(0, 0.05) for g in a[:cut] + b[cut:]]
    return fitness(population[0])

for k in range(10):
    check(generation())
check(population, random.random())
""",
    ),
    Program(
        "simulated annealing",
        """
random.seed(4)
place, heat = [2.0], [1.0]

@mgjit.compile
def move():
    new = place[0] + random.uniform(-0.5, 0.5)
    gain = place[0] ** 2 - new ** 2
    if gain > 0 or random.random() < math.exp(gain / heat[0]):
        place[0] = new
    heat[0] *= 0.95
    return place[0]

for k in range(20):
    check(move())
check(place, heat, random.random())
""",
    ),
    Program(
        "an evolution strategy with numbers",
        """
random.seed(6)
w, sigma = [0.5, -0.5], 0.1

@mgjit.compile
def step(rate):
    noise = [[random.gauss(0, 1) for _ in w] for _ in range(4)]
    rewards = [-sum((a + sigma * n - 1.0) ** 2 for a, n in zip(w, one)) for one in noise]
    mean = sum(rewards) / 4
    for k in range(2):
        w[k] += rate * sum((r - mean) * one[k] for r, one in zip(rewards, noise)) / (4 * sigma)
    return mean

for k in range(15):
    check(step(0.05))
check(w, random.random())
""",
    ),
    Program(
        "particles, each with its own best",
        """
random.seed(8)
class Particle:
    def __init__(self):
        self.x, self.v = random.uniform(-2, 2), 0.0
        self.best, self.score = self.x, self.x ** 2

swarm = [Particle() for _ in range(4)]

@mgjit.compile
def move():
    leader = min(swarm, key=lambda p: p.score)
    for p in swarm:
        p.v = 0.7 * p.v + random.random() * (p.best - p.x) + random.random() * (leader.best - p.x)
        p.x += p.v
        if p.x ** 2 < p.score:
            p.best, p.score = p.x, p.x ** 2
    return leader.score

for k in range(12):
    check(move())
check([(p.x, p.v, p.best, p.score) for p in swarm], random.random())
""",
    ),
]
