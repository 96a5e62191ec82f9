"""Adaline: a class with `fit` over rows in a fixed order, and the cost of each epoch kept in a list."""
import random


class AdalineGD:
    def __init__(self, eta=0.001, n_iter=50, random_state=1):
        self.eta = eta
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X, y):
        rgen = random.Random(self.random_state)
        self.w_ = [rgen.gauss(0.0, 0.01) for _ in range(len(X[0]))]
        self.b_ = 0.0
        self.losses_ = []
        for i in range(self.n_iter):
            net_input = [self.net_input(xi) for xi in X]
            errors = [yi - out for yi, out in zip(y, net_input)]
            for j in range(len(self.w_)):
                self.w_[j] += self.eta * 2.0 * sum(xi[j] * e for xi, e in zip(X, errors)) / len(X)
            self.b_ += self.eta * 2.0 * sum(errors) / len(X)
            self.losses_.append(sum(e * e for e in errors) / len(X))
        return self

    def net_input(self, xi):
        return sum(w * x for w, x in zip(self.w_, xi)) + self.b_

    def predict(self, xi):
        return 1 if self.net_input(xi) >= 0.5 else 0


random.seed(3)
X = [[random.gauss(0, 1) for _ in range(6)] for _ in range(120)]
y = [1 if x[0] - x[3] + 0.3 * random.gauss(0, 1) > 0 else 0 for x in X]
ada = AdalineGD(eta=0.01, n_iter=40000).fit(X, y)
print("last losses", ada.losses_[0], ada.losses_[100], ada.losses_[-1])
print(ada.w_, ada.b_)
print("accuracy", sum(ada.predict(x) == t for x, t in zip(X, y)) / len(X))
