"""Logistic regression by full batches: numpy style without numpy, with an early stop on the change of the loss."""
import math
import random

random.seed(23)


def sigmoid(z):
    if z >= 0:
        return 1 / (1 + math.exp(-z))
    e = math.exp(z)
    return e / (1 + e)


def train(X, y, lr=0.3, epochs=30000, l2=0.001, tol=1e-12):
    w, b, last = [0.0] * len(X[0]), 0.0, float("inf")
    for epoch in range(epochs):
        dw, db, loss = [l2 * wi for wi in w], 0.0, 0.0
        for xi, yi in zip(X, y):
            p = sigmoid(sum(wj * xj for wj, xj in zip(w, xi)) + b)
            loss -= yi * math.log(p + 1e-12) + (1 - yi) * math.log(1 - p + 1e-12)
            for j, xj in enumerate(xi):
                dw[j] += (p - yi) * xj / len(X)
            db += (p - yi) / len(X)
        w = [wj - lr * g for wj, g in zip(w, dw)]
        b -= lr * db
        loss /= len(X)
        if epoch % 5000 == 0:
            print(f"[{epoch:5d}] loss={loss:.10f}")
        if abs(last - loss) < tol:
            print("converged after", epoch)
            break
        last = loss
    return w, b


X = [[random.gauss(0, 1) for _ in range(5)] for _ in range(100)]
y = [1 if 2 * x[0] - x[1] + random.gauss(0, 0.7) > 0 else 0 for x in X]
w, b = train(X, y)
print(w, b)
