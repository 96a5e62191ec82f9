"""Matrix factorisation by stochastic gradient descent: users and items are chosen by numbers of the data."""
import random

random.seed(2)
K, USERS, ITEMS = 8, 60, 80
P = [[random.gauss(0, 0.3) for _ in range(K)] for _ in range(USERS)]
Q = [[random.gauss(0, 0.3) for _ in range(K)] for _ in range(ITEMS)]
bu, bi = [0.0] * USERS, [0.0] * ITEMS
ratings = [(random.randrange(USERS), random.randrange(ITEMS), random.randint(1, 5)) for _ in range(3000)]
mu = sum(r for _, _, r in ratings) / len(ratings)


def train_epoch(lr, reg):
    se = 0.0
    for u, i, r in ratings:
        pred = mu + bu[u] + bi[i] + sum(P[u][k] * Q[i][k] for k in range(K))
        e = r - pred
        se += e * e
        bu[u] += lr * (e - reg * bu[u])
        bi[i] += lr * (e - reg * bi[i])
        for k in range(K):
            p, q = P[u][k], Q[i][k]
            P[u][k] += lr * (e * q - reg * p)
            Q[i][k] += lr * (e * p - reg * q)
    return (se / len(ratings)) ** 0.5


for epoch in range(500):
    random.shuffle(ratings)
    rmse = train_epoch(0.01, 0.02)
    if epoch % 100 == 0:
        print(f"epoch {epoch}: rmse {rmse:.6f}")
print(P[0], bi[:3])
