"""The training loop."""

from .model import model


def train_one(x, y, rate):
    """One step."""
    loss = (model(x)[0] - y) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss.data


def fit(data, epochs, rate=0.05):
    """Train, and print how it goes."""
    for epoch in range(epochs):
        losses = []
        for x, y in data:
            loss = train_one(x, y, rate)
            losses.append(loss)
        print("epoch", epoch, sum(losses))
