"""The demo notebook of PyPI's micrograd as a script; only the moons are made without scikit-learn."""

import math
import random
import sys

from micrograd.engine import Value
from micrograd.nn import MLP

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
random.seed(1337)


def make_moons(n_samples, noise):
    points, labels = [], []
    for i in range(n_samples):
        t = math.pi * (i // 2) / (n_samples / 2 - 1)
        if i % 2 == 0:
            x, y = math.cos(t), math.sin(t)
        else:
            x, y = 1 - math.cos(t), 0.5 - math.sin(t)
        points.append([x + random.gauss(0, noise), y + random.gauss(0, noise)])
        labels.append(i % 2 * 2 - 1)
    return points, labels


X, y = make_moons(n_samples=100, noise=0.1)

# initialize a model
model = MLP(2, [16, 16, 1])  # 2-layer neural network
print(model)
print("number of parameters", len(model.parameters()))


# loss function
def loss(batch_size=None):

    # inline DataLoader :)
    if batch_size is None:
        Xb, yb = X, y
    else:
        ri = random.sample(range(len(X)), batch_size)
        Xb, yb = [X[i] for i in ri], [y[i] for i in ri]
    inputs = [list(map(Value, xrow)) for xrow in Xb]

    # forward the model to get scores
    scores = list(map(model, inputs))

    # svm "max-margin" loss
    losses = [(1 + -yi * scorei).relu() for yi, scorei in zip(yb, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    # L2 regularization
    alpha = 1e-4
    reg_loss = alpha * sum(p * p for p in model.parameters())
    total_loss = data_loss + reg_loss

    # also get accuracy
    accuracy = [(yi > 0) == (scorei.data > 0) for yi, scorei in zip(yb, scores)]
    return total_loss, sum(accuracy) / len(accuracy)


total_loss, acc = loss()
print(total_loss, acc)

# optimization
for k in range(STEPS):
    # forward
    total_loss, acc = loss()

    # backward
    model.zero_grad()
    total_loss.backward()

    # update (sgd)
    learning_rate = 1.0 - 0.9 * k / STEPS
    for p in model.parameters():
        p.data -= learning_rate * p.grad

    if k % 1 == 0:
        print(f"step {k} loss {total_loss.data}, accuracy {acc * 100}%")
