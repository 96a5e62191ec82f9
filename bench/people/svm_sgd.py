"""A linear support vector machine by the Pegasos algorithm: a branch on the margin."""
import random

random.seed(11)
DIM = 12
truth = [random.gauss(0, 1) for _ in range(DIM)]
X = [[random.gauss(0, 1) for _ in range(DIM)] for _ in range(300)]
Y = [1 if sum(t * v for t, v in zip(truth, x)) > 0 else -1 for x in X]


class SVM:
    def __init__(self, lam):
        self.lam = lam
        self.w = [0.0] * DIM
        self.t = 0

    def decision(self, x):
        return sum(wi * xi for wi, xi in zip(self.w, x))

    def fit(self, X, Y, epochs):
        for epoch in range(epochs):
            hinge = 0.0
            for x, y in zip(X, Y):
                self.t += 1
                eta = 1.0 / (self.lam * self.t)
                margin = y * self.decision(x)
                hinge += max(0.0, 1.0 - margin)
                if margin < 1:
                    self.w = [(1 - eta * self.lam) * wi + eta * y * xi for wi, xi in zip(self.w, x)]
                else:
                    self.w = [(1 - eta * self.lam) * wi for wi in self.w]
            if epoch % 1000 == 0:
                print("epoch", epoch, "hinge", hinge / len(X))


svm = SVM(0.01)
svm.fit(X, Y, 6000)
print(svm.w, sum((svm.decision(x) > 0) == (y > 0) for x, y in zip(X, Y)))
